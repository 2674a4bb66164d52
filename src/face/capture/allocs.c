// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "allocs.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/rlimit.h"
#include "base/u64_map.h"
#include "namespace_tasks.h"
#include "regions.h"

#include <ibscope/alloc_file.h>
#include <ibscope/maps.h>

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX   4096 /* open at a time */
#define DELAY_S	    0.02
#define LOOK_S	    0.02	  /* interval between searches for new files */
#define PENDING_MAX (1u << 19)	  /* events that are read ahead; the others wait in their rings */
#define FUTURE_NS   1000000000ull /* a valid event is not further ahead */

#define FIELD_OF(name) offsetof(struct ibscope_alloc_file, name)

struct file {
	int fd;
	__u32 pid;    /* as the process sees itself */
	__u32 tgid;   /* as we see it; 0: unknown */
	bool foreign; /* its ids are those of another PID namespace */
	__u64 ring_bytes, mean;
	__u64 read; /* bytes */
	__u64 lost; /* as of the last reading */
};

struct pending {
	__u64 time, seq, addr, size, weight;
	size_t stack; /* index in allocs.stacks */
	__u32 tgid, tid;
	__u16 n_stack, kind;
	bool probed; /* of any process that has the probe */
};

struct allocs {
	char (*dirs)[REGIONS_DIR_MAX];
	size_t n_dirs, dirs_room;
	struct file *files;
	size_t n_files, files_room;
	struct pending *pending; /* sorted; those before `next` have been returned */
	size_t n, room, next;
	__u64 *stacks; /* of pending events */
	size_t n_stacks, stacks_room;
	struct u64_map obstacles; /* that were counted, by process */
	struct u64_map threads;	  /* of other PID namespaces: by process and their own id */
	__u64 seq, started, own_namespace;
	double searched_s; /* when new files were searched for */
	bool warned_files;
	struct probes *probes; /* NULL: none */
	const struct task_choice *choice;
	__u64 probes_lost; /* as of the last reading */
	struct allocs_counts counts;
	unsigned char ring[IBSCOPE_ALLOC_LARGE]; /* what is read of a file at a time */
};

struct allocs *allocs_new(void)
{
	struct allocs *a = xcalloc(1, sizeof(*a));

	rlimit_files(FILES_MAX);
	a->started = clock_ns(CLOCK_MONOTONIC);
	a->own_namespace = namespace_of(0);
	return a;
}

void allocs_add(struct allocs *a, const char *dir)
{
	array_reserve(a->dirs, a->dirs_room, a->n_dirs + 1);
	snprintf(a->dirs[a->n_dirs++], REGIONS_DIR_MAX, "%s", dir);
}

void allocs_add_probes(struct allocs *a, struct probes *probes, const struct task_choice *choice)
{
	a->probes = probes;
	a->choice = choice;
	a->counts.probes = probes_files(probes);
}

void allocs_free(struct allocs *a)
{
	if (!a)
		return;
	probes_close(a->probes);
	for (size_t i = 0; i < a->n_files; i++)
		close(a->files[i].fd);
	free(a->dirs);
	free(a->files);
	free(a->pending);
	free(a->stacks);
	u64_map_free(&a->obstacles);
	u64_map_free(&a->threads);
	free(a);
}

/* --- files */

static bool read_head(int fd, struct ibscope_alloc_file *head)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       pread(fd, head, sizeof(*head), 0) == sizeof(*head) &&
	       head->magic == IBSCOPE_ALLOC_MAGIC && head->bytes &&
	       head->bytes <= INT64_MAX / 2 / IBSCOPE_ALLOC_INTERVAL &&
	       (head->ring_bytes == IBSCOPE_ALLOC_SMALL || head->ring_bytes == IBSCOPE_ALLOC_LARGE);
}

static bool has_room(struct allocs *a)
{
	if (a->n_files < FILES_MAX)
		return true;
	if (!a->warned_files)
		log_warn("more than %d processes allocate at a time: ignoring the allocations of "
			 "the others",
			 FILES_MAX);
	a->warned_files = true;
	return false;
}

/*
 * Open a new file, and unlink it, so that the kernel frees it when the process exits. Retry incomplete files later.
 */
static void open_file(struct allocs *a, int dir, const char *name)
{
	struct file f = { .pid = strtoul(name + strlen(IBSCOPE_ALLOC_FILE), NULL, 10) };
	struct ibscope_alloc_file head;

	if (!has_room(a))
		return;
	f.fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (f.fd < 0)
		return;
	if (!f.pid || f.pid >= IBS_PID_MAX || !read_head(f.fd, &head)) {
		close(f.fd);
		return;
	}
	f.ring_bytes = head.ring_bytes;
	f.mean = head.bytes * IBSCOPE_ALLOC_INTERVAL;
	f.foreign =
		head.pid_namespace && a->own_namespace && head.pid_namespace != a->own_namespace;
	f.tgid = f.foreign ? namespace_process(head.pid_namespace, f.pid) : f.pid;
	unlinkat(dir, name, 0);
	a->counts.programs += head.ring_bytes == IBSCOPE_ALLOC_SMALL; /* their first one */
	a->counts.own_malloc += head.own_malloc && head.ring_bytes == IBSCOPE_ALLOC_SMALL;
	array_reserve(a->files, a->files_room, a->n_files + 1);
	a->files[a->n_files++] = f;
}

static void find_new_files(struct allocs *a)
{
	struct dirent *e;

	for (size_t i = 0; i < a->n_dirs; i++) {
		DIR *d = opendir(a->dirs[i]);

		while (d && (e = readdir(d)))
			if (!strncmp(e->d_name, IBSCOPE_ALLOC_FILE, strlen(IBSCOPE_ALLOC_FILE)))
				open_file(a, dirfd(d), e->d_name);
		if (d)
			closedir(d);
	}
	a->searched_s = now_s();
}

/* --- events */

static __u32 thread_of(struct allocs *a, const struct file *f, __u32 tid)
{
	const __u64 key = (__u64)f->tgid << 32 | tid;
	__u32 known;

	if (!f->foreign)
		return tid;
	if (tid == f->pid)
		return f->tgid;
	known = u64_map_get(&a->threads, key);
	if (known != U64_MAP_NONE)
		return known;
	/* one that has exited is taken for the first thread of its process */
	known = namespace_thread(f->tgid, tid) ?: f->tgid;
	u64_map_put(&a->threads, key, known);
	return known;
}

/*
 * The bytes that a sampled allocation represents: its own, divided by the probability that one of the points that are
 * `mean` bytes apart on average falls on it.
 */
static __u64 weight_of(const struct file *f, const struct ibscope_alloc_event *e)
{
	if (e->kind != IBSCOPE_ALLOC_SAMPLED)
		return e->size;
	if (!e->size)
		return 0;
	return llround(e->size / -expm1(-(double)e->size / f->mean));
}

/* Add an event that is valid. */
static void add_pending(struct allocs *a, struct pending p, const uint64_t *stack)
{
	p.seq = a->seq++;
	p.stack = a->n_stacks;
	array_reserve(a->stacks, a->stacks_room, a->n_stacks + p.n_stack);
	if (p.n_stack)
		memcpy(a->stacks + a->n_stacks, stack, p.n_stack * sizeof(*stack));
	a->n_stacks += p.n_stack;
	array_reserve(a->pending, a->room, a->n + 1);
	a->pending[a->n++] = p;
}

/* Return: whether the event is valid. */
static bool add_event(struct allocs *a, const struct file *f, const struct ibscope_alloc_event *e,
		      const uint64_t *stack, __u64 now)
{
	const bool frees = e->kind >= IBSCOPE_ALLOC_FREED;
	struct pending p = { .time = e->time_ns,
			     .addr = e->addr,
			     .size = e->size,
			     .weight = frees ? 0 : weight_of(f, e),
			     .n_stack = e->n_stack,
			     .kind = e->kind,
			     .tgid = f->tgid };

	if (!f->tgid || e->time_ns < a->started || e->time_ns > now + FUTURE_NS || !e->tid ||
	    e->tid >= IBS_PID_MAX || !e->kind || e->kind > IBSCOPE_ALLOC_UNMAPPED ||
	    (e->kind == IBSCOPE_ALLOC_SAMPLED && e->size >= f->mean))
		return false;
	p.tid = thread_of(a, f, e->tid);
	add_pending(a, p, stack);
	a->counts.events++;
	return true;
}

/* Read @n bytes of the ring from f->read on. Return: how many there are. */
static size_t read_ring(struct allocs *a, const struct file *f, __u64 n)
{
	const __u64 at = f->read % f->ring_bytes,
		    first = n < f->ring_bytes - at ? n : f->ring_bytes - at;
	ssize_t got = pread(f->fd, a->ring, first, IBSCOPE_ALLOC_HEAD + at), more = 0;

	if (got == (ssize_t)first && n > first)
		more = pread(f->fd, a->ring + first, n - first, IBSCOPE_ALLOC_HEAD);
	return (got < 0 ? 0 : got) + (more < 0 ? 0 : more);
}

static const uint64_t *stack_of(const struct ibscope_alloc_event *e)
{
	return (const uint64_t *)(e + 1);
}

/* The bytes of the event at the start of @in; 0 if it is not complete. */
static size_t event_bytes(const unsigned char *in, size_t n, __u64 position)
{
	const struct ibscope_alloc_event *e = (const void *)in;
	const size_t bytes = n < sizeof(*e) ? 0 : sizeof(*e) + e->n_stack * sizeof(__u64);

	if (n < sizeof(*e) || e->n_stack > IBSCOPE_ALLOC_STACK || bytes > n ||
	    ibscope_alloc_check(e, stack_of(e), position) != e->check)
		return 0;
	return bytes;
}

/*
 * Take events out of what was read. An incomplete one is being written: the next call finds it. @last: its writer was
 * killed, so look for the event after it. Return: bytes that were taken.
 */
static size_t take_events(struct allocs *a, const struct file *f, size_t n, bool last)
{
	const __u64 now = clock_ns(CLOCK_MONOTONIC);
	bool in_gap = false;
	size_t at = 0;

	while (at < n) {
		const struct ibscope_alloc_event *e = (const void *)(a->ring + at);
		const size_t bytes = event_bytes(a->ring + at, n - at, f->read + at);

		if (!bytes && !last)
			break;
		if (bytes)
			a->counts.lost += !add_event(a, f, e, stack_of(e), now);
		else
			a->counts.lost += !in_gap;
		in_gap = !bytes;
		at += bytes ?: sizeof(__u64);
	}
	return at < n ? at : n;
}

static void read_file(struct allocs *a, struct file *f, bool last)
{
	struct ibscope_alloc_file head;
	__u64 n;
	size_t got;

	if (pread(f->fd, &head, sizeof(head), 0) != sizeof(head))
		return;
	if (head.lost > f->lost)
		a->counts.lost += head.lost - f->lost;
	f->lost = head.lost;
	n = head.written - f->read;
	if (n > f->ring_bytes ||
	    n % sizeof(__u64)) { /* nobody writes that but an error or an enemy */
		a->counts.lost++;
		f->read = head.written & -sizeof(__u64);
		return;
	}
	if (!n || (!last && a->n >= PENDING_MAX))
		return;
	got = read_ring(a, f, n);
	f->read += take_events(a, f, got, last);
	if (pwrite(f->fd, &f->read, sizeof(f->read), FIELD_OF(read)) != sizeof(f->read))
		a->counts.lost++;
}

/* --- probes */

static bool add_probe_event(const struct ibs_alloc_probe_event *e, void *arg)
{
	struct allocs *a = arg;
	struct pending p = { .time = e->time_ns,
			     .addr = e->addr,
			     .size = e->frees ? 0 : e->size,
			     .weight = e->frees ? 0 : e->weight,
			     .tgid = e->tgid,
			     .tid = e->tid,
			     .n_stack = e->n_stack,
			     .kind = e->frees ? IBSCOPE_ALLOC_FREED : IBSCOPE_ALLOC_SAMPLED,
			     .probed = true };

	add_pending(a, p, (const uint64_t *)e->stack);
	return a->n < PENDING_MAX;
}

static void read_probes(struct allocs *a)
{
	const __u64 lost = a->probes ? probes_lost(a->probes) : 0;

	if (a->probes && a->n < PENDING_MAX)
		probes_read(a->probes, add_probe_event, a);
	a->counts.lost += lost - a->probes_lost;
	a->probes_lost = lost;
}

/* --- all */

/* Forget the events that were returned, with their stacks. */
static void drop_returned(struct allocs *a)
{
	const size_t kept = a->n - a->next;
	__u64 *stacks = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < kept; i++) {
		struct pending *p = &a->pending[i];

		*p = a->pending[a->next + i];
		array_reserve(stacks, room, n + p->n_stack);
		if (p->n_stack)
			memcpy(stacks + n, a->stacks + p->stack, p->n_stack * sizeof(*stacks));
		p->stack = n;
		n += p->n_stack;
	}
	if (kept) {
		free(a->stacks);
		a->stacks = stacks;
		a->stacks_room = room;
	}
	a->n_stacks = n;
	a->n = kept;
	a->next = 0;
}

static int by_time(const void *pa, const void *pb)
{
	const struct pending *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void allocs_refresh(struct allocs *a, bool last)
{
	size_t kept = 0;

	if (!a)
		return;
	if (last || now_s() > a->searched_s + LOOK_S)
		find_new_files(a);
	drop_returned(a);
	for (size_t i = 0; i < a->n_files; i++) {
		struct file *f = &a->files[i];
		const bool gone = !f->tgid || (kill(f->tgid, 0) && errno == ESRCH);

		read_file(a, f, last || gone);
		if (gone)
			close(f->fd);
		else
			a->files[kept++] = *f;
	}
	a->n_files = kept;
	read_probes(a);
	if (a->n)
		qsort(a->pending, a->n, sizeof(*a->pending), by_time);
}

void allocs_note_exec(struct allocs *a, __u32 tgid)
{
	const enum obstacle is = a && !a->probes ? obstacle_of(tgid) : OBSTACLE_NONE;
	const __u64 key = (__u64)tgid << 32 | is;

	/* once: when an event is read, the process may run the program after that one already */
	if (!is || u64_map_get(&a->obstacles, key) != U64_MAP_NONE)
		return;
	u64_map_put(&a->obstacles, key, 0);
	a->counts.obstacle[is]++;
}

__u64 allocs_peek(const struct allocs *a)
{
	return a && a->next < a->n ? a->pending[a->next].time : UINT64_MAX;
}

bool allocs_next(struct allocs *a, struct trace_event *ev)
{
	const struct pending *p = &a->pending[a->next++];

	if (p->probed && !task_choice_has(a->choice, p->tgid))
		return false;
	a->counts.events += p->probed;
	*ev = (struct trace_event){ .time = p->time };
	if (p->kind >= IBSCOPE_ALLOC_FREED) {
		ev->kind = TRACE_FREE;
		ev->free = (typeof(ev->free)){ p->tgid, p->tid, p->addr, p->size };
		return true;
	}
	ev->kind = TRACE_ALLOC;
	ev->alloc = (struct trace_alloc){ .tgid = p->tgid,
					  .tid = p->tid,
					  .addr = p->addr,
					  .size = p->size,
					  .weight = p->weight,
					  .stack = a->stacks + p->stack,
					  .n_stack = p->n_stack,
					  .mapped = p->kind == IBSCOPE_ALLOC_MAPPED };
	return true;
}

double allocs_delay_s(const struct allocs *a)
{
	return a ? DELAY_S : (double)INFINITY;
}

struct allocs_counts allocs_counts(const struct allocs *a)
{
	return a ? a->counts : (struct allocs_counts){};
}
