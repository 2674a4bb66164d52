// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_dirs.h"
#include "cgroup_table.h"
#include "err.h"
#include "clock.h"

#define NS_PER_S      1000000000ULL
#define RESCAN_MIN_NS NS_PER_S
#define RESCAN_SHARE  10 /* rescans take at most 1/10 of the time */
#define DEAD_MAX      65536
#define READS_MAX     64 /* of one update */
#define EVENTS_BYTES  16384

/*
 * IN_DELETE: kernfs tells a watched directory nothing of its own end, and keeps the
 * watch, which counts against the limit, until it is removed by hand (seen on 6.18).
 */
#define WATCH_MASK (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)

struct cgroup_tree {
	struct cgroup_fs fs;
	char *mount;  /* with the root prefix */
	int watch_fd; /* -1: nothing is watched */
	/* its .fd is -1 without v2 */
	struct cgroup_dirs dirs;
	bool unwatched; /* a walk could not watch all it met */
	bool warned;
	bool stale; /* a walk is needed, since events were lost */
	unsigned int walk;
	uint64_t opened_ns, rescanned_ns, rescan_cost_ns, rescans, missed, changes;
	struct cgroup_table table;
	struct cgroup_node *queue, **queue_end; /* to be watched and read */
};

/* --- what is known --- */

static void die(struct cgroup_tree *t, struct cgroup_node *n)
{
	if (n->wd >= 0)
		inotify_rm_watch(t->watch_fd, n->wd); /* EINVAL if it ended by itself */
	t->changes++;
	cgroup_table_kill(&t->table, n, clock_ns(CLOCK_MONOTONIC));
}

static void enqueue(struct cgroup_tree *t, struct cgroup_node *n)
{
	if (n->queued)
		return;
	n->queued = true;
	n->next_queued = NULL;
	*t->queue_end = n;
	t->queue_end = &n->next_queued;
}

/* @path, which this takes over, has @id. What is new, or not met by this walk, is to be read. */
static int found(struct cgroup_tree *t, char *path, uint64_t id)
{
	struct cgroup_node *n;
	bool is_new;

	if (!path)
		return -ENOMEM;
	n = cgroup_table_by_path(&t->table, path, strlen(path));
	if (n && n->id != id)
		die(t, n);
	n = cgroup_table_put(&t->table, id, path, &is_new);
	if (!n)
		return -ENOMEM;
	t->changes += is_new;
	if (is_new || n->walk != t->walk)
		enqueue(t, n);
	n->walk = t->walk;
	return 0;
}

/* --- reading directories --- */

static char *join(const char *parent, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", parent[1] ? parent : "", name) < 0 ? NULL : path;
}

static void watch(struct cgroup_tree *t, struct cgroup_node *n, int fd)
{
	char link[32];
	int wd;

	if (n->wd >= 0)
		return;
	t->unwatched |= t->watch_fd < 0;
	if (t->watch_fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d",
		 fd); /* there is no inotify_add_watch_at() */
	wd = inotify_add_watch(t->watch_fd, link, WATCH_MASK);
	if (wd >= 0) {
		cgroup_table_watch(&t->table, n, wd);
		return;
	}
	t->unwatched = true;
	if (t->warned)
		return;
	t->warned = true;
	if (errno == ENOSPC)
		log_warn("cgroups: cannot watch more than %zu directories, so cgroups that live "
			 "less than about a second can stay without name; raise sysctl "
			 "fs.inotify.max_user_watches",
			 t->table.n_watched);
	else
		log_warn("cgroups: cannot watch directories (%s), so cgroups that live less than "
			 "about a second can stay without name",
			 strerror(errno));
}

/* Takes @fd. */
static int read_dir(struct cgroup_tree *t, const struct cgroup_node *n, int fd)
{
	struct dirent *entry;
	uint64_t id;
	int err = 0;
	DIR *dir;

	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!cgroup_dirs_id_at(&t->dirs, fd, entry->d_name, &id))
			err = found(t, join(n->path, entry->d_name), id);
	}
	closedir(dir);
	return err;
}

static int visit(struct cgroup_tree *t, struct cgroup_node *n)
{
	struct stat st;
	int fd;

	fd = cgroup_dirs_open_path(&t->dirs, n->path);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENODEV) {
		die(t, n);
		return 0;
	}
	if (fd < 0) {
		t->stale |= fd == -EMFILE || fd == -ENFILE;
		return fd == -ENOMEM ? fd : 0; /* EACCES: this subtree has no names */
	}
	/* Watched before it is looked into: what is created in between is found twice, not never. */
	watch(t, n, fd);
	if (fstat(fd, &st)) {
		close(fd);
		return 0;
	}
	if (st.st_ino != n->id) { /* made again since it was found; the watch is on the new one */
		close(fd);
		return found(t, strdup(n->path), st.st_ino);
	}
	if (st.st_nlink == 2) { /* no directories in it: spares reading some 50 names */
		close(fd);
		return 0;
	}
	return read_dir(t, n, fd);
}

static int run_queue(struct cgroup_tree *t)
{
	struct cgroup_node *n;
	int err = 0, one;

	while ((n = t->queue)) {
		t->queue = n->next_queued;
		if (!t->queue)
			t->queue_end = &t->queue;
		n->queued = false;
		if (n->died_ns)
			continue;
		one = visit(t, n);
		err = err ?: one;
	}
	t->stale |= err != 0;
	return err;
}

/* Read all of it; what is not met is dead. */
static int walk(struct cgroup_tree *t)
{
	struct cgroup_node *n;
	uint64_t id;
	size_t i;
	int err;

	err = cgroup_dirs_id_at(&t->dirs, t->dirs.fd, ".", &id);
	if (err)
		return err;
	t->walk++;
	t->stale = t->unwatched = false;
	err = found(t, strdup("/"), id);
	err = run_queue(t) ?: err;
	for (i = 0; !err && !t->stale && i < t->table.size; i++) {
		for (n = t->table.heads[CGROUP_BY_ID][i]; n; n = n->chain[CGROUP_BY_ID]) {
			if (!n->died_ns && n->walk != t->walk)
				die(t, n);
		}
	}
	return err;
}

static int rescan_if_due(struct cgroup_tree *t)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), pause = t->rescan_cost_ns * RESCAN_SHARE;
	int err;

	if (t->rescanned_ns &&
	    start - t->rescanned_ns < (pause > RESCAN_MIN_NS ? pause : RESCAN_MIN_NS))
		return 0;
	t->rescans++;
	err = walk(t);
	t->rescanned_ns = clock_ns(CLOCK_MONOTONIC);
	t->rescan_cost_ns = t->rescanned_ns - start;
	return err;
}

/* --- events --- */

static int handle_event(struct cgroup_tree *t, const struct inotify_event *ev)
{
	struct cgroup_node *parent, *n;
	uint64_t id = 0;
	char *path;
	int err;

	if (ev->mask & IN_Q_OVERFLOW)
		t->stale = true;
	parent = cgroup_table_by_wd(&t->table, ev->wd);
	if (!parent)
		return 0;
	if (ev->mask & IN_IGNORED) {
		cgroup_table_watch(&t->table, parent, -1);
		return 0;
	}
	if (!(ev->mask & IN_ISDIR) || !ev->len)
		return 0;
	path = join(parent->path, ev->name);
	if (!path)
		return -ENOMEM;
	err = cgroup_dirs_id(&t->dirs, path, &id);
	if (!err) /* after IN_DELETE too: made again meanwhile */
		return found(t, path, id);
	t->missed += err == -ENOENT && ev->mask & IN_CREATE &&
		     !cgroup_table_by_path(&t->table, path, strlen(path));
	n = cgroup_table_by_path(&t->table, path, strlen(path));
	if (n && err == -ENOENT)
		die(t, n);
	if (ev->mask & IN_MOVED_FROM) /* not on cgroupfs: all below it has other paths now */
		t->stale = true;
	free(path);
	return 0;
}

int cgroup_tree_update(struct cgroup_tree *t)
{
	char buf[EVENTS_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *ev;
	int err = 0, i, one;
	ssize_t n;
	char *p;

	for (i = 0; t->watch_fd >= 0 && i < READS_MAX; i++) {
		n = read(t->watch_fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		for (p = buf; p < buf + n; p += sizeof(*ev) + ev->len) {
			ev = (const struct inotify_event *)p;
			one = handle_event(t, ev);
			t->stale |= one != 0;
			err = err ?: one;
		}
		one = run_queue(t);
		err = err ?: one;
	}
	if (t->stale) {
		one = rescan_if_due(t);
		err = err ?: one;
	}
	cgroup_table_trim(&t->table, DEAD_MAX);
	return err;
}

/* --- questions --- */

/* Return: 0, with the id known; -ESTALE if it is dead; other errors if nobody can be asked. */
static int by_handle(struct cgroup_tree *t, uint64_t id)
{
	char *path;
	int err;

	err = cgroup_dirs_path(&t->dirs, id, &path);
	if (err)
		return err;
	err = found(t, path, id);
	return run_queue(t) ?: err;
}

const char *cgroup_tree_path(struct cgroup_tree *t, uint64_t id)
{
	struct cgroup_node *n = cgroup_table_by_id(&t->table, id);
	int err;

	if (n || t->dirs.fd < 0)
		return n ? n->path : NULL;
	err = by_handle(t, id);
	if (err == -ESTALE)
		return NULL;
	if (err)
		cgroup_tree_update(t);
	n = cgroup_table_by_id(&t->table, id);
	if (!n) {
		rescan_if_due(t);
		n = cgroup_table_by_id(&t->table, id);
	}
	return n ? n->path : NULL;
}

bool cgroup_tree_alive(struct cgroup_tree *t, uint64_t id)
{
	struct cgroup_node *n;
	uint64_t there;
	int err;

	if (!cgroup_tree_path(t, id))
		return false;
	if (t->dirs.fd < 0)
		return true;
	n = cgroup_table_by_id(&t->table, id);
	if (n->died_ns)
		return false;
	err = cgroup_dirs_id(&t->dirs, n->path, &there);
	if (err == -ENOENT || (!err && there != id))
		die(t, n);
	return !n->died_ns;
}

bool cgroup_tree_died(struct cgroup_tree *t, uint64_t id, uint64_t older_than_ns)
{
	const struct cgroup_node *n;
	uint64_t since = t->opened_ns;

	if (cgroup_tree_path(t, id)) {
		n = cgroup_table_by_id(&t->table, id);
		if (!n->died_ns)
			return false;
		since = n->died_ns;
	}
	return clock_ns(CLOCK_MONOTONIC) - since >= older_than_ns;
}

size_t cgroup_tree_forget_dead(struct cgroup_tree *t, uint64_t older_than_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return older_than_ns > now ? 0 : cgroup_table_forget(&t->table, now - older_than_ns);
}

int cgroup_tree_lookup(struct cgroup_tree *t, const char *path, uint64_t *id)
{
	int err;

	if (t->dirs.fd < 0) {
		*id = 1;
		return path[1] ? -ENOENT : 0;
	}
	err = cgroup_dirs_id(&t->dirs, path, id);
	if (!err)
		err = found(t, strdup(path), *id);
	return run_queue(t) ?: err;
}

int cgroup_tree_each(struct cgroup_tree *t, cgroup_cb *cb, void *arg)
{
	struct cgroup_node *n;
	size_t i;
	int ret;

	cgroup_tree_update(t);
	if (t->unwatched)
		rescan_if_due(t);
	for (i = 0; i < t->table.size; i++) {
		for (n = t->table.heads[CGROUP_BY_PATH][i]; n; n = n->chain[CGROUP_BY_PATH]) {
			ret = cb(n->id, n->path, arg);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* --- opening --- */

/* Where no v2 is mounted all tasks are in its root. */
static int only_root(struct cgroup_tree *t, struct err *e)
{
	char *path = strdup("/");
	bool is_new;

	if (!path || !cgroup_table_put(&t->table, 1, path, &is_new))
		return err_set(e, -ENOMEM, "cgroup: out of memory");
	return 0;
}

static int open_mount(struct cgroup_tree *t, struct err *e)
{
	int err = cgroup_dirs_open(&t->dirs, t->mount);

	if (err)
		return err_set(e, err, "%s: cannot open the cgroup mount: %s", t->mount,
			       strerror(-err));
	t->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (t->watch_fd < 0) {
		t->unwatched = true;
		log_warn("cgroups: inotify cannot be used (%s), so cgroups that live less than "
			 "about a second can stay without name; %s",
			 strerror(errno),
			 errno == EMFILE ? "raise sysctl fs.inotify.max_user_instances"
					 : "see `ibscope doctor`");
	}
	err = walk(t);
	return err ? err_set(e, err, "%s: cannot read cgroups: %s", t->mount, strerror(-err)) : 0;
}

int cgroup_tree_open(const char *root, struct cgroup_tree **out, struct err *e)
{
	struct cgroup_fs fs;

	return cgroup_mode_detect(root, &fs, e) ?: cgroup_tree_open_at(root, &fs, out, e);
}

int cgroup_tree_open_at(const char *root, const struct cgroup_fs *fs, struct cgroup_tree **out,
			struct err *e)
{
	struct cgroup_tree *t;
	int err;

	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, -ENOMEM, "cgroup: out of memory");
	t->opened_ns = clock_ns(CLOCK_MONOTONIC);
	t->dirs.fd = t->watch_fd = -1;
	t->queue_end = &t->queue;
	t->fs = *fs;
	err = cgroup_table_init(&t->table);
	if (err || asprintf(&t->mount, "%s%s", *t->fs.path ? root : "", t->fs.path) < 0) {
		err = err_set(e, -ENOMEM, "cgroup: out of memory");
		goto fail;
	}
	err = *t->fs.path ? open_mount(t, e) : only_root(t, e);
	if (err)
		goto fail;
	*out = t;
	return 0;
fail:
	cgroup_tree_close(t);
	return err;
}

void cgroup_tree_close(struct cgroup_tree *t)
{
	if (!t)
		return;
	if (t->watch_fd >= 0)
		close(t->watch_fd);
	cgroup_dirs_close(&t->dirs);
	cgroup_table_free(&t->table);
	free(t->mount);
	free(t);
}

const struct cgroup_fs *cgroup_tree_fs(const struct cgroup_tree *t)
{
	return &t->fs;
}

const char *cgroup_tree_mount(const struct cgroup_tree *t)
{
	return t->mount;
}

bool cgroup_tree_per_cgroup(const struct cgroup_tree *t)
{
	return t->dirs.fd >= 0;
}

int cgroup_tree_fd(const struct cgroup_tree *t)
{
	return t->watch_fd;
}

void cgroup_tree_stats(const struct cgroup_tree *t, struct cgroup_stats *out)
{
	*out = (struct cgroup_stats){
		.alive = t->table.n - t->table.n_dead,
		.dead = t->table.n_dead,
		.watched = t->table.n_watched,
		.rescans = t->rescans,
		.missed = t->missed,
		.changes = t->changes,
		.unwatched = t->unwatched,
	};
}
