// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worker: its start, its limits, and what becomes of objects that exceed them. */
#include "naming.h"
#include "naming_private.h"

#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_MS 20
#define START_S	 60 /* a machine under load may take long to execute a program */

struct naming *naming_new(const struct naming_opts *opts)
{
	struct naming *n = xcalloc(1, sizeof(*n));

	n->opts = *opts;
	n->sock = -1;
	n->began_s = now_s();
	n->attempt_s = INFINITY;
	n->debug_dir = opts->debug_dir ? realpath(opts->debug_dir, NULL) : NULL;
	return n;
}

static void stop_worker(struct naming *n)
{
	if (!n->pid)
		return;
	close(n->sock);
	kill(n->pid, SIGKILL);
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
		;
	n->sock = -1;
	n->pid = 0;
}

void naming_free(struct naming *n)
{
	if (!n)
		return;
	stop_worker(n);
	intern_free(&n->texts);
	free(n->chunk);
	free(n->debug_dir);
	free(n);
}

/* --- time --- */

static double left_s(const struct naming *n)
{
	return n->opts.wall_s ? n->opts.wall_s - (now_s() - n->began_s) : INFINITY;
}

bool naming_is_over(const struct naming *n)
{
	return n->ended || left_s(n) <= 0 || (n->opts.cpu_s && n->spent_ns > n->opts.cpu_s * 1e9);
}

/* Has the object, after so much more CPU time, time left in this attempt? Return: false with o->why, or it is deferred. */
static bool has_time(struct object *o, __u64 more_ns)
{
	const struct naming *n = o->naming;
	double own_s = (o->spent_ns + more_ns) / 1e9, all_s = (n->spent_ns + more_ns) / 1e9;
	double most_s = n->opts.cpu_s ?: INFINITY;

	if (all_s > most_s && !o->is_last) {
		o->is_last = true;
		o->last_from_s = own_s;
	}
	if (left_s(n) <= 0) {
		snprintf(o->why, sizeof(o->why), "it was not reached within %g s", n->opts.wall_s);
	} else if (n->ended) {
		snprintf(o->why, sizeof(o->why), "it takes long, and no time was left for it");
	} else if (all_s > 2 * most_s || (o->is_last && own_s - o->last_from_s > OBJECT_SMALL_S)) {
		snprintf(o->why, sizeof(o->why), "other files took all of the %g s of CPU time",
			 most_s);
	} else {
		o->deferred = own_s >= n->attempt_s;
		return !o->deferred;
	}
	o->given_up = o->lacks_time = true;
	return false;
}

/* --- start --- */

static int spawn(struct naming *n, int sock)
{
	static const char *const kept[] = { "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=" };
	char *argv[] = { (char *)naming_worker, NULL }, *env[ARRAY_SIZE(kept) + 1] = {};
	posix_spawn_file_actions_t files;
	int ret, n_env = 0;

	for (char **e = environ; *e && n_env < (int)ARRAY_SIZE(kept); e++)
		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			if (!strncmp(*e, kept[i], strlen(kept[i])))
				env[n_env++] = *e;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, sock, NAMING_FD);
	ret = posix_spawn(&n->pid, "/proc/self/exe", &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	if (ret)
		n->pid = 0;
	else if (n->opts.nice)
		setpriority(PRIO_PROCESS, n->pid, n->opts.nice);
	return -ret;
}

static bool is_ready(struct naming *n)
{
	struct pollfd p = { .fd = n->sock, .events = POLLIN };
	double end = now_s() + fmin(START_S, left_s(n));
	int fd;

	while (poll(&p, 1, 100) <= 0)
		if (now_s() > end)
			return false;
	return naming_receive(n->sock, &n->reply, sizeof(n->reply), &fd) >=
		       (ssize_t)NAMING_REPLY_HEAD &&
	       n->reply.kind == NAMING_READY;
}

static bool start_worker(struct naming *n)
{
	int pair[2] = { -1, -1 }, ret = 0;

	if (n->pid || *n->why)
		return n->pid;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		ret = -errno;
	ret = ret ?: spawn(n, pair[1]);
	close(pair[1]);
	n->sock = pair[0];
	n->generation++;
	n->served = 0;
	n->base_ns = 0;
	if (!ret && is_ready(n))
		return true;
	snprintf(n->why, sizeof(n->why), "cannot start the process that reads object files%s%s",
		 ret ? ": " : "", ret ? strerror(-ret) : "");
	stop_worker(n);
	return false;
}

/* --- files --- */

static bool is_below(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	return n && !strncmp(path, dir, n) && !strncmp(path + n, "/.build-id/", 11) &&
	       !strstr(path, "..");
}

/* Debug files are this machine's by build-id only; all other paths are those of the object's root. */
static int open_wanted(struct object *o, const char *path)
{
	const struct naming *n = o->naming;
	size_t prefix = strlen(NAMING_FROM_NET);

	if (!strcmp(path, o->path))
		return o->fd < 0 ? -o->path_errno : fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	if (!strncmp(path, NAMING_FROM_NET, prefix))
		return n->opts.debuginfod ? file_fetch(path + prefix) : -ENOENT;
	if (is_below(path, NAMING_DEBUG_DIR) || is_below(path, n->debug_dir))
		return file_open(NULL, path);
	return o->fd < 0 ? -ENOENT : file_open(&o->root, path);
}

static int give_file(struct object *o, const char *path)
{
	int fd = open_wanted(o, path), ret;
	struct naming_request r = { .op = NAMING_FILE, .a = fd < 0 ? -fd : 0 };

	ret = naming_send(o->naming->sock, &r, naming_request_bytes(&r), fd);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* --- limits --- */

static __u64 cpu_ns(const struct naming *n)
{
	clockid_t clock;

	return clock_getcpuclockid(n->pid, &clock) ? 0 : clock_ns(clock);
}

/* Bytes of the worker that are not of files. */
static __u64 memory_of(pid_t pid)
{
	unsigned long long resident = 0, shared = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
		resident = shared = 0;
	fclose(f);
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

/* Progress of a question. */
struct watch {
	__u64 cpu_ns;	/* when it last moved */
	double moved_s; /* since then */
};

static bool is_too_dear(struct object *o, __u64 more_ns)
{
	if (o->spent_ns + more_ns <= OBJECT_CPU_S * 1e9)
		return false;
	snprintf(o->why, sizeof(o->why), "reading it takes more than %g s of CPU time",
		 OBJECT_CPU_S);
	return true;
}

/* Return: false if the object has cost too much, with o->why, or its attempt. */
static bool is_within_limits(struct object *o, struct watch *w)
{
	const struct naming *n = o->naming;
	__u64 now = cpu_ns(n);
	double waits_s;

	if (now != w->cpu_ns)
		*w = (struct watch){ now, now_s() };
	waits_s = now_s() - w->moved_s;
	if (is_too_dear(o, now - n->base_ns))
		return false;
	if (memory_of(n->pid) > OBJECT_MEMORY)
		snprintf(o->why, sizeof(o->why), "reading it takes more than %llu MiB of memory",
			 OBJECT_MEMORY >> 20);
	else if (waits_s > OBJECT_STUCK_S)
		snprintf(o->why, sizeof(o->why), "its file system does not answer");
	else if (n->attempt_s < INFINITY && waits_s > ATTEMPT_STUCK_S)
		o->deferred = true;
	else
		return has_time(o, now - n->base_ns);
	return false;
}

/* CPU time since the last call is the object's. */
static void account(struct object *o)
{
	struct naming *n = o->naming;
	__u64 now = cpu_ns(n);

	if (now < n->base_ns)
		return;
	o->spent_ns += now - n->base_ns;
	n->spent_ns += now - n->base_ns;
	if (n->attempt_s > DEAR_S)
		naming_spend(n->opts.memory, (now - n->base_ns) / 1e9);
	n->base_ns = now;
}

/* Wait for the reply, opening files meanwhile. Return: false with o->why, "" if the worker has gone. */
static bool await(struct object *o, const char *texts[NAMING_TEXTS])
{
	struct naming *n = o->naming;
	struct pollfd p = { .fd = n->sock, .events = POLLIN };
	struct watch w = { n->base_ns, now_s() };
	ssize_t bytes;
	int fd;

	*o->why = 0;
	for (;;) {
		if (poll(&p, 1, WATCH_MS) <= 0) {
			if (!is_within_limits(o, &w))
				return false;
			continue;
		}
		bytes = naming_receive(n->sock, &n->reply, sizeof(n->reply), &fd);
		if (fd >= 0)
			close(fd);
		if (bytes <= 0 || !naming_reply_check(&n->reply, bytes, texts))
			return false;
		if (n->reply.kind == NAMING_ANSWER)
			return true;
		if (n->reply.kind != NAMING_WANTS_FILE || !texts[0] || give_file(o, texts[0]) ||
		    !is_within_limits(o, &w))
			return false;
	}
}

static bool transact(struct object *o, const struct naming_request *q,
		     const char *texts[NAMING_TEXTS])
{
	bool ok;

	*o->why = 0;
	ok = !naming_send(o->naming->sock, q, naming_request_bytes(q), -1) && await(o, texts);
	account(o);
	return ok;
}

static bool open_in_worker(struct object *o)
{
	struct naming_request q = { .op = NAMING_OPEN,
				    .object = o->number,
				    .trusted = o->trusted,
				    .debuginfod = o->naming->opts.debuginfod,
				    .flag = (o->naming->opts.mangled ? NAMING_MANGLED : 0) |
					    o->code_list,
				    .build_id_len = o->build_id_len };
	const char *texts[NAMING_TEXTS], *dir = o->naming->debug_dir ?: "";
	size_t path = strlen(o->path) + 1;

	if (path > PATH_MAX || strlen(dir) >= PATH_MAX)
		return false;
	memcpy(q.build_id, o->build_id, sizeof(q.build_id));
	memcpy(q.text, o->path, path);
	q.text_len = path;
	if (*dir) {
		strcpy(q.text + path, dir);
		q.text_len += strlen(dir) + 1;
	}
	o->naming->served++;
	if (!transact(o, &q, texts))
		return false;
	o->generation = o->naming->generation;
	if (!o->naming->reply.ret) {
		o->given_up = o->other = true;
		snprintf(o->why, sizeof(o->why), "%s", texts[0] ?: "unreadable");
	}
	return true;
}

static void give_up(struct object *o)
{
	if (!*o->why)
		snprintf(o->why, sizeof(o->why), "reading it crashes");
	o->given_up = true;
	naming_remember(o->naming->opts.memory, o);
}

/* @q: NULL: only open it */
static bool ask(struct object *o, const struct naming_request *q, const char *texts[NAMING_TEXTS])
{
	struct naming *n = o->naming;

	for (;;) {
		bool shared;

		if (o->given_up || o->deferred)
			return false;
		if (is_too_dear(o, 0)) {
			give_up(o);
			return false;
		}
		if (!has_time(o, 0))
			return false;
		if (!start_worker(n)) {
			if (!has_time(o, 0))
				return false;
			snprintf(o->why, sizeof(o->why), "%s", n->why);
			o->given_up = true;
			return false;
		}
		shared = n->served > 1 || (n->served && o->generation != n->generation);
		if (o->generation == n->generation || open_in_worker(o)) {
			if (o->given_up || !q)
				return !o->given_up;
			if (transact(o, q, texts))
				return true;
		}
		stop_worker(n);
		if (o->lacks_time || o->deferred)
			return false;
		/* an exhausted limit of time is the object's own; memory may be that of those before it */
		if (!shared || o->spent_ns > OBJECT_CPU_S * 1e9)
			give_up(o);
	}
}

bool naming_ask(struct object *o, const char *texts[NAMING_TEXTS])
{
	/* opening uses a request of its own */
	return ask(o, &o->naming->request, texts);
}

bool naming_open(struct object *o)
{
	const char *texts[NAMING_TEXTS];

	return ask(o, NULL, texts);
}
