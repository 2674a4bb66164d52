// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "regions.h"

#include "base/clock.h"
#include "base/intern.h"
#include "base/rlimit.h"
#include "trace/tasks.h"

#include <ibscope/maps.h>
#include <ibscope/region.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#define FILES_MAX 4096 /* open at a time */
#define DELAY_S	  0.1
#define LOOK_S	  0.05 /* interval between searches for new files */
#define BATCH	  1024 /* events read at a time */
#define STALE_S	  60
#define FUTURE_NS 1000000000ull /* a valid event is not further ahead */
#define PREFIX	  "ibscope-regions."

/* A thread's regions, or those of OpenMP */
#define THREAD(tid, omp) ((__u64)(tid) << 1 | (omp))

static const char *const bases[] = { "/dev/shm", "/tmp" };

struct file {
	int fd;
	pid_t pid;
	__u64 read; /* events */
	struct ibscope_region_name *names;
};

struct pending {
	__u64 time, value;
	size_t seq;
	__u32 tid, team;
	__u16 kind, number;
};

struct regions {
	char (*dirs)[REGIONS_DIR_MAX];
	size_t n_dirs, dirs_room;
	struct file *files;
	size_t n_files, files_room;
	struct pending *pending; /* sorted; those before `next` have been returned */
	size_t n, room, next, seq;
	struct intern names;
	struct region_tree tree;
	struct u64_map in; /* current nodes of threads, by THREAD() */
	__u64 started, lost;
	double searched_s; /* when new files were searched for */
	bool warned_files;
};

void regions_dir_remove(const char *dir)
{
	DIR *d = *dir ? opendir(dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (*e->d_name != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	if (*dir)
		rmdir(dir);
}

/* Remove directories of dead instances. A recent one may belong to another rank and be unread. */
static void sweep(const char *base)
{
	char path[REGIONS_DIR_MAX];
	DIR *d = opendir(base);
	struct dirent *e;
	struct stat st;
	int pid;

	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, PREFIX "%d.", &pid) != 1 || pid <= 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		    st.st_mtime > time(NULL) - STALE_S || !kill(pid, 0) || errno != ESRCH ||
		    snprintf(path, sizeof(path), "%s/%s", base, e->d_name) >= (int)sizeof(path))
			continue;
		regions_dir_remove(path);
	}
	if (d)
		closedir(d);
}

int regions_dir_new(char dir[REGIONS_DIR_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		sweep(bases[i]);
		snprintf(dir, REGIONS_DIR_MAX, "%s/" PREFIX "%d.XXXXXX", bases[i], getpid());
		if (mkdtemp(dir) && !setenv(IBSCOPE_REGION_DIR, dir, 1))
			return 0;
	}
	*dir = 0;
	return -errno;
}

struct regions *regions_new(void)
{
	struct regions *r = xcalloc(1, sizeof(*r));

	rlimit_files(FILES_MAX);
	r->started = clock_ns(CLOCK_MONOTONIC);
	return r;
}

void regions_add(struct regions *r, const char *dir)
{
	array_reserve(r->dirs, r->dirs_room, r->n_dirs + 1);
	snprintf(r->dirs[r->n_dirs++], REGIONS_DIR_MAX, "%s", dir);
}

static void close_file(struct file *f)
{
	close(f->fd);
	free(f->names);
}

void regions_free(struct regions *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_files; i++)
		close_file(&r->files[i]);
	for (size_t i = 0; i < r->n_dirs; i++)
		regions_dir_remove(r->dirs[i]);
	free(r->dirs);
	free(r->files);
	free(r->pending);
	intern_free(&r->names);
	region_tree_free(&r->tree);
	u64_map_free(&r->in);
	free(r);
}

/*
 * Open a new file, and unlink it, so that the kernel frees it when the process exits. Retry
 * incomplete files later.
 */
static void open_file(struct regions *r, int dir, const char *name)
{
	struct file f = { .pid = atoi(name) };
	__u64 magic = 0;
	struct stat st;

	if (r->n_files == FILES_MAX) {
		if (!r->warned_files)
			log_warn("more than %d processes have regions: ignoring those of the "
				 "others",
				 FILES_MAX);
		r->warned_files = true;
		return;
	}
	f.fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (f.fd < 0)
		return;
	if (fstat(f.fd, &st) || !S_ISREG(st.st_mode) || f.pid <= 0 ||
	    pread(f.fd, &magic, sizeof(magic), 0) != sizeof(magic) ||
	    magic != IBSCOPE_REGION_MAGIC) {
		close(f.fd);
		return;
	}
	unlinkat(dir, name, 0);
	f.names = xcalloc(IBSCOPE_REGION_NAMES, sizeof(*f.names));
	array_reserve(r->files, r->files_room, r->n_files + 1);
	r->files[r->n_files++] = f;
}

static void find_new_files(struct regions *r)
{
	struct dirent *e;

	for (size_t i = 0; i < r->n_dirs; i++) {
		DIR *d = opendir(r->dirs[i]);

		while (d && (e = readdir(d)))
			if (*e->d_name >= '0' && *e->d_name <= '9') /* others are of allocs.c */
				open_file(r, dirfd(d), e->d_name);
		if (d)
			closedir(d);
	}
	r->searched_s = now_s();
}

/* The number of a name in `names`. Return: INTERN_NONE if unknown. */
static __u32 name_of(struct regions *r, struct file *f, __u64 i)
{
	struct ibscope_region_name *name;

	if (i == IBSCOPE_REGION_NAMES - 1)
		return intern_get(&r->names, "[other]");
	if (i >= IBSCOPE_REGION_NAMES)
		return INTERN_NONE;
	name = &f->names[i];
	if (name->state != 2 &&
	    pread(f->fd, name, sizeof(*name),
		  offsetof(struct ibscope_region_file, name) + i * sizeof(*name)) != sizeof(*name))
		return INTERN_NONE;
	name->text[sizeof(name->text) - 1] = 0;
	return name->state == 2 ? intern_get(&r->names, name->text) : INTERN_NONE;
}

/* Return: whether the event is valid. */
static bool add_event(struct regions *r, struct file *f, const struct ibscope_region_event *e,
		      __u64 now)
{
	struct pending p = { .time = e->time_ns,
			     .value = e->value,
			     .seq = r->seq++,
			     .tid = e->tid,
			     .team = e->team,
			     .kind = e->kind,
			     .number = e->number };

	if (e->time_ns < r->started || e->time_ns > now + FUTURE_NS || e->tid >= IBS_PID_MAX ||
	    e->kind < IBSCOPE_REGION_BEGIN || e->kind > IBSCOPE_REGION_OMP_END)
		return false;
	if (e->kind == IBSCOPE_REGION_BEGIN) {
		p.value = name_of(r, f, e->value);
		if (p.value == INTERN_NONE)
			return false;
	}
	array_reserve(r->pending, r->room, r->n + 1);
	r->pending[r->n++] = p;
	return true;
}

static __u64 count_of(const struct file *f)
{
	__u64 n;

	if (pread(f->fd, &n, sizeof(n), offsetof(struct ibscope_region_file, n)) != sizeof(n) ||
	    n < f->read)
		return f->read;
	return n;
}

/* Contiguous events in the ring from f->read on. Return: their number, at most BATCH. */
static size_t read_batch(const struct file *f, __u64 n, struct ibscope_region_event *out)
{
	__u64 at = f->read % IBSCOPE_REGION_EVENTS, want = n - f->read;
	ssize_t bytes;

	if (want > IBSCOPE_REGION_EVENTS - at)
		want = IBSCOPE_REGION_EVENTS - at;
	if (want > BATCH)
		want = BATCH;
	bytes = pread(f->fd, out, want * sizeof(*out),
		      offsetof(struct ibscope_region_file, event) + at * sizeof(*out));
	return bytes < 0 ? 0 : bytes / sizeof(*out);
}

/* An incomplete event is being written: the next call finds it. @last: its writer was killed. */
static void read_file(struct regions *r, struct file *f, bool last)
{
	struct ibscope_region_event batch[BATCH];
	__u64 n = count_of(f), now = clock_ns(CLOCK_MONOTONIC);
	size_t got;

	while (f->read < n) {
		if (n - f->read > IBSCOPE_REGION_EVENTS) {
			r->lost += n - f->read - IBSCOPE_REGION_EVENTS;
			f->read = n - IBSCOPE_REGION_EVENTS;
		}
		got = read_batch(f, n, batch);
		for (size_t i = 0; i < got; i++, f->read++) {
			bool complete = ibscope_region_check(&batch[i], f->read) == batch[i].check;

			if (!complete && !last)
				return;
			r->lost += !complete || !add_event(r, f, &batch[i], now);
		}
		if (!got) { /* the file was truncated */
			r->lost += n - f->read;
			f->read = n;
		}
	}
}

static int by_time(const void *pa, const void *pb)
{
	const struct pending *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void regions_refresh(struct regions *r, bool last)
{
	size_t kept = 0;

	if (!r)
		return;
	if (last || now_s() > r->searched_s + LOOK_S)
		find_new_files(r);
	r->n -= r->next;
	if (r->n)
		memmove(r->pending, r->pending + r->next, r->n * sizeof(*r->pending));
	r->next = 0;
	for (size_t i = 0; i < r->n_files; i++) {
		struct file *f = &r->files[i];
		bool gone = kill(f->pid, 0) && errno == ESRCH;

		read_file(r, f, last || gone);
		if (gone)
			close_file(f);
		else
			r->files[kept++] = *f;
	}
	r->n_files = kept;
	if (r->n)
		qsort(r->pending, r->n, sizeof(*r->pending), by_time);
}

__u64 regions_peek(const struct regions *r)
{
	return r && r->next < r->n ? r->pending[r->next].time : UINT64_MAX;
}

static __u32 node_of(const struct regions *r, __u64 thread)
{
	__u32 node = u64_map_get(&r->in, thread);

	return node == U64_MAP_NONE ? 0 : node;
}

static void set_node(struct regions *r, __u64 thread, __u32 node)
{
	if (node)
		u64_map_put(&r->in, thread, node);
	else if (node_of(r, thread))
		u64_map_remove(&r->in, thread, node_of(r, thread));
}

static void follow(struct regions *r, const struct trace_event *ev)
{
	__u64 thread = THREAD(ev->region.tid, ev->region.omp);
	__u32 in = node_of(r, thread), to;

	if (ev->region.end) {
		to = region_tree_node(&r->tree, in).parent;
	} else {
		to = region_tree_begin(&r->tree, in, ev->region.name, ev->region.team,
				       ev->region.number, ev->region.addr);
		r->lost += to == in; /* too many nodes */
	}
	set_node(r, thread, to);
}

void regions_forget(struct regions *r, __u32 tid)
{
	if (!r)
		return;
	set_node(r, THREAD(tid, false), 0);
	set_node(r, THREAD(tid, true), 0);
}

/* Report a thread's regions, outermost first. */
static int put_node(const struct regions *r, __u64 thread, __u32 node, __u64 time,
		    trace_event_cb *cb, void *arg, struct err *err)
{
	__u32 depth = region_tree_node(&r->tree, node).depth;
	__u32 *chain = xcalloc(depth, sizeof(*chain));
	struct trace_event ev = { .kind = TRACE_REGION, .time = time };
	int ret = 0;

	for (__u32 i = depth; i--; node = region_tree_node(&r->tree, node).parent)
		chain[i] = node;
	for (__u32 i = 0; i < depth && !ret; i++) {
		const struct region_node n = region_tree_node(&r->tree, chain[i]);

		ev.region = (typeof(ev.region)){ .tid = thread >> 1,
						 .omp = thread & 1,
						 .team = n.team,
						 .number = n.number,
						 .addr = n.addr,
						 .name = region_tree_name(&r->tree, chain[i]) };
		ret = cb(&ev, arg, err);
	}
	free(chain);
	return ret;
}

int regions_now(const struct regions *r, __u64 time, trace_event_cb *cb, void *arg, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; r && i < r->in.size && !ret; i++)
		if (r->in.slots[i].value != U64_MAP_NONE)
			ret = put_node(r, r->in.slots[i].key, r->in.slots[i].value, time, cb, arg,
				       err);
	return ret;
}

void regions_next(struct regions *r, struct trace_event *ev)
{
	const struct pending *p = &r->pending[r->next++];
	bool omp = p->kind >= IBSCOPE_REGION_OMP_BEGIN, begin = p->kind == IBSCOPE_REGION_BEGIN;

	*ev = (struct trace_event){
		.kind = TRACE_REGION,
		.time = p->time,
		.region = { .tid = p->tid,
			    .team = p->team,
			    .number = p->number,
			    .omp = omp,
			    .end = p->kind == IBSCOPE_REGION_END ||
				   p->kind == IBSCOPE_REGION_OMP_END,
			    .addr = omp ? p->value : 0,
			    .name = begin ? intern_text(&r->names, p->value) : "" },
	};
	follow(r, ev);
}

double regions_delay_s(const struct regions *r)
{
	return r && r->n_files ? DELAY_S : (double)INFINITY;
}

__u64 regions_lost(const struct regions *r)
{
	return r ? r->lost : 0;
}
