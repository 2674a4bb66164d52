// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_private.h"
#include "container.h"
#include "base/err.h"
#include "base/clock.h"

#define RESCAN_MIN_NS 1000000000ULL
#define DEAD_MAX      65536
#define EVENTS_BYTES  4096
#define PATH_SHOWN    60 /* bytes in a warning */

struct cgroup_tree {
	struct cgroup_fs fs;
	char *mount; /* with the root prefix */
	/* .fd is -1 without v2 */
	struct cgroup_dirs dirs;
	struct cgroup_watch watch;
	bool unwatched;	    /* a walk could not watch all directories */
	bool stale, warned; /* events were lost, so a walk is needed */
	unsigned int walk;
	uint64_t opened_ns, rescanned_ns, rescans, missed, changes, refused;
	struct cgroup_table table;
	struct cgroup_node *queue, **queue_end; /* nodes to watch and read */
	char path[PATH_MAX];			/* result of cgroup_tree_path() */
};

/* --- updating the table --- */

static void mark_dead(struct cgroup_tree *t, struct cgroup_node *n)
{
	struct cgroup_node *delegate = n->delegate;

	if (n->wd >= 0)
		cgroup_watch_remove(&t->watch, n->wd);
	t->changes++;
	cgroup_table_kill(&t->table, n, clock_ns(CLOCK_MONOTONIC));
	/* there is room again: look for cgroups that were left out */
	if (delegate && delegate->refused && delegate->user_cgroups < CGROUP_USER_MAX / 2) {
		delegate->refused = false;
		t->stale = true;
	}
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

/* Leave out a cgroup below @parent; @why is from cgroup_table_room(). */
static void refuse(struct cgroup_tree *t, struct cgroup_node *parent, int why)
{
	char path[PATH_MAX];

	t->refused++;
	if (why == -ENOSPC && parent->delegate)
		parent->delegate->refused = true;
	if (t->warned)
		return;
	t->warned = true;
	cgroup_table_path(why != -ENAMETOOLONG && parent->delegate ? parent->delegate : parent,
			  path);
	log_warn("cgroups: some %s; they are shown as '%s'. The first is below %.*s%s%s",
		 why == -ENAMETOOLONG ? "are nested too deeply to be named"
				      : "have no name, because there are too many",
		 CGROUP_OTHER, PATH_SHOWN, path, strlen(path) > PATH_SHOWN ? "..." : "",
		 parent->delegate ? ", which is not root's" : "");
}

/* Root may have delegated @n, or an ancestor of it, after it was found. */
static void find_delegate(struct cgroup_tree *t, struct cgroup_node *n)
{
	char path[PATH_MAX];
	struct stat st;

	if (n->delegate || !n->parent ||
	    cgroup_dirs_stat(&t->dirs, cgroup_table_path(n, path), &st) || !st.st_uid)
		return;
	find_delegate(t, n->parent);
	cgroup_table_delegate(n, st.st_uid);
}

/*
 * @parent has a cgroup @name with the id and owner of @st. Queue it for reading if it is new, or
 * not yet visited by this walk.
 */
static void note_cgroup(struct cgroup_tree *t, struct cgroup_node *parent, const char *name,
			const struct stat *st)
{
	struct cgroup_node *n = cgroup_table_child(&t->table, parent, name, strlen(name));
	bool is_new;
	int err;

	if (n && n->id != st->st_ino)
		mark_dead(t, n);
	if (parent && st->st_uid && !parent->delegate)
		find_delegate(t, parent);
	err = cgroup_table_put(&t->table, st->st_ino, parent, name, st->st_uid, &n, &is_new);
	if (err) {
		refuse(t, parent, err);
		return;
	}
	t->changes += is_new;
	if (is_new || n->walk != t->walk)
		enqueue(t, n);
	n->walk = t->walk;
}

/*
 * The same by path, including unknown ancestors. @id: its id a moment ago; 0: unknown. Return: 0,
 * -ENAMETOOLONG or -ENOSPC if it is left out, or errors of stat().
 */
static int note_path(struct cgroup_tree *t, const char *path, uint64_t id)
{
	struct cgroup_node *at = t->table.root;
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (const char *s = path, *end; at && s[0] && s[1]; s = end) {
		struct cgroup_node *parent = at;
		struct stat st;
		int err;

		end = strchrnul(s + 1, '/');
		memcpy(part, path, end - path);
		part[end - path] = 0;
		at = cgroup_table_child(&t->table, parent, s + 1, end - s - 1);
		if (at && *end)
			continue;
		err = cgroup_dirs_stat(&t->dirs, part, &st);
		if (err == -ENOENT && id && !*end)
			st = (struct stat){ .st_ino = id };
		else if (err)
			return err;
		note_cgroup(t, parent, part + (s + 1 - path), &st);
		at = cgroup_table_child(&t->table, parent, s + 1, end - s - 1);
		if (!at)
			return cgroup_table_room(&t->table, parent, end - s - 1);
	}
	return at ? 0 : -ENOENT;
}

/* --- reading directories --- */

static void watch(struct cgroup_tree *t, struct cgroup_node *n, int fd)
{
	int wd;

	if (n->wd >= 0)
		return;
	wd = cgroup_watch_add(&t->watch, fd);
	if (wd >= 0)
		cgroup_table_watch(&t->table, n, wd);
	else
		t->unwatched = true;
}

/* Takes ownership of @fd. */
static void read_dir(struct cgroup_tree *t, struct cgroup_node *n, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir)
		out_of_memory();
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;
		int room;

		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		/* there may be very many that are not kept */
		room = cgroup_table_room(&t->table, n, strlen(name));
		if (room && !cgroup_table_child(&t->table, n, name, strlen(name)))
			refuse(t, n, room);
		else if (!cgroup_dirs_stat_at(&t->dirs, fd, name, &st))
			note_cgroup(t, n, name, &st);
	}
	closedir(dir);
}

static void visit(struct cgroup_tree *t, struct cgroup_node *n)
{
	char path[PATH_MAX];
	struct stat st;
	bool known;
	int fd;

	fd = cgroup_dirs_open_path(&t->dirs, cgroup_table_path(n, path));
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENODEV) {
		mark_dead(t, n);
		return;
	}
	if (fd < 0) { /* EACCES: names in this subtree stay unknown */
		t->stale |= fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM;
		return;
	}
	/* watch before reading: a directory created in between is found twice, not never */
	watch(t, n, fd);
	known = !fstat(fd, &st);
	/* two links: no subdirectories, which saves reading some 50 names */
	if (known && st.st_ino == n->id && st.st_nlink != 2) {
		read_dir(t, n, fd);
		return;
	}
	close(fd);
	if (known &&
	    st.st_ino != n->id) /* recreated since it was found; the watch is on the new one */
		note_cgroup(t, n->parent, strrchr(path, '/') + 1, &st);
}

static void run_queue(struct cgroup_tree *t)
{
	struct cgroup_node *n;

	while ((n = t->queue)) {
		t->queue = n->next_queued;
		if (!t->queue)
			t->queue_end = &t->queue;
		n->queued = false;
		if (!n->died_ns)
			visit(t, n);
	}
}

/* Read the whole tree; nodes that are not found are dead. */
static int walk(struct cgroup_tree *t)
{
	struct cgroup_node *n;
	struct stat st;
	size_t i;
	int err;

	err = cgroup_dirs_stat_at(&t->dirs, t->dirs.fd, ".", &st);
	if (err)
		return err;
	t->walk++;
	t->stale = t->unwatched = false;
	note_cgroup(t, NULL, "", &st);
	run_queue(t);
	for (i = 0; !t->stale && i < t->table.size; i++) {
		n = t->table.node[i];
		if (n && !n->died_ns && n->walk != t->walk)
			mark_dead(t, n);
	}
	return 0;
}

static void rescan_if_due(struct cgroup_tree *t)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	if ((t->rescanned_ns && start - t->rescanned_ns < RESCAN_MIN_NS) ||
	    cgroup_watch_spent(&t->watch))
		return;
	t->rescans++;
	t->rescanned_ns = start;
	t->stale |= walk(t) != 0;
}

/* --- events --- */

static void handle_event(struct cgroup_tree *t, const struct inotify_event *ev)
{
	struct cgroup_node *parent, *n;
	char path[PATH_MAX];
	struct stat st;
	size_t len;
	int err;

	if (ev->mask & IN_Q_OVERFLOW)
		t->stale = true;
	parent = cgroup_table_by_wd(&t->table, ev->wd);
	if (!parent)
		return;
	if (ev->mask & IN_IGNORED) {
		cgroup_table_watch(&t->table, parent, -1);
		return;
	}
	if (!(ev->mask & IN_ISDIR) || !ev->len)
		return;
	n = cgroup_table_child(&t->table, parent, ev->name, strlen(ev->name));
	err = cgroup_table_room(&t->table, parent, strlen(ev->name));
	if (err && !n) {
		if (ev->mask & (IN_CREATE | IN_MOVED_TO))
			refuse(t, parent, err);
		return;
	}
	cgroup_table_path(parent, path);
	len = path[1] ? strlen(path) : 0;
	snprintf(path + len, sizeof(path) - len, "/%s", ev->name);
	err = cgroup_dirs_stat(&t->dirs, path, &st);
	if (!err) { /* also after IN_DELETE: it may have been recreated */
		note_cgroup(t, parent, ev->name, &st);
		return;
	}
	t->missed += err == -ENOENT && ev->mask & IN_CREATE && !n;
	if (n && err == -ENOENT)
		mark_dead(t, n);
	if (ev->mask & IN_MOVED_FROM) /* not on cgroupfs: the paths of all descendants change */
		t->stale = true;
}

static void take_events(struct cgroup_tree *t)
{
	char buf[EVENTS_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *ev;
	size_t n;

	while (!cgroup_watch_spent(&t->watch) &&
	       (n = cgroup_watch_read(&t->watch, buf, sizeof(buf)))) {
		for (char *p = buf; p < buf + n; p += sizeof(*ev) + ev->len) {
			ev = (const struct inotify_event *)p;
			handle_event(t, ev);
		}
		run_queue(t);
	}
	if (t->stale)
		rescan_if_due(t);
	cgroup_table_trim(&t->table, DEAD_MAX);
}

void cgroup_tree_update(struct cgroup_tree *t)
{
	if (t->dirs.fd < 0 || !cgroup_watch_begin(&t->watch))
		return;
	take_events(t);
	cgroup_watch_end(&t->watch);
}

/* --- queries --- */

/* Find a cgroup by file handle. Return: 0; -ESTALE if dead; others if the kernel cannot tell. */
static int find_by_handle(struct cgroup_tree *t, uint64_t id)
{
	char *path;
	int err = cgroup_dirs_path(&t->dirs, id, &path);

	if (err)
		return err;
	err = note_path(t, path, id);
	free(path);
	run_queue(t);
	return err;
}

/* Find any id. Return: 0; -ENOENT; -EAGAIN: no budget; -ENOSPC, -ENAMETOOLONG: it is left out. */
static int find_id(struct cgroup_tree *t, uint64_t id)
{
	int err;

	if (cgroup_table_by_id(&t->table, id))
		return 0;
	if (t->dirs.fd < 0 || !cgroup_watch_begin(&t->watch))
		return t->dirs.fd < 0 ? -ENOENT : -EAGAIN;
	err = find_by_handle(t, id);
	if (err && err != -ESTALE && err != -ENOSPC && err != -ENAMETOOLONG) {
		take_events(t);
		if (!cgroup_table_by_id(&t->table, id))
			rescan_if_due(t);
	}
	cgroup_watch_end(&t->watch);
	if (cgroup_table_by_id(&t->table, id))
		return 0;
	return err == -ENOSPC || err == -ENAMETOOLONG ? err : -ENOENT;
}

void cgroup_tree_freeze(struct cgroup_tree *t)
{
	t->dirs.fd = -1;
}

const char *cgroup_tree_path(struct cgroup_tree *t, uint64_t id)
{
	int err = find_id(t, id);

	if (err)
		return err == -ENOSPC || err == -ENAMETOOLONG ? CGROUP_OTHER : NULL;
	return cgroup_table_path(cgroup_table_by_id(&t->table, id), t->path);
}

void cgroup_tree_owner(const struct cgroup_tree *t, uint64_t id, struct container_owner *out)
{
	const struct cgroup_node *n = cgroup_table_by_id(&t->table, id);

	*out = (struct container_owner){ 0, 0 };
	if (n)
		*out = (struct container_owner){ n->owner_uid, n->owner_len };
}

bool cgroup_tree_alive(struct cgroup_tree *t, uint64_t id)
{
	const char *path = cgroup_tree_path(t, id);
	struct cgroup_node *n = cgroup_table_by_id(&t->table, id);
	struct stat st;
	int err;

	if (!path || !n || t->dirs.fd < 0)
		return path;
	if (n->died_ns)
		return false;
	err = cgroup_dirs_stat(&t->dirs, path, &st);
	if (err == -ENOENT || (!err && st.st_ino != id))
		mark_dead(t, n);
	return !n->died_ns;
}

bool cgroup_tree_died(struct cgroup_tree *t, uint64_t id, uint64_t older_than_ns)
{
	const struct cgroup_node *n;
	uint64_t since;
	int err = find_id(t, id);

	if (err && err != -ENOENT)
		return false; /* alive or unknown */
	n = cgroup_table_by_id(&t->table, id);
	if (n && !n->died_ns)
		return false;
	since = n ? n->died_ns : t->opened_ns;
	return clock_ns(CLOCK_MONOTONIC) - since >= older_than_ns;
}

size_t cgroup_tree_forget_dead(struct cgroup_tree *t, uint64_t older_than_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return older_than_ns > now ? 0 : cgroup_table_forget(&t->table, now - older_than_ns);
}

int cgroup_tree_lookup(struct cgroup_tree *t, const char *path, uint64_t *id)
{
	struct stat st;
	int err;

	if (t->dirs.fd < 0) {
		*id = 1;
		return path[1] ? -ENOENT : 0;
	}
	err = cgroup_dirs_stat(&t->dirs, path, &st) ?: note_path(t, path, 0);
	run_queue(t);
	if (!err)
		*id = st.st_ino;
	return err;
}

int cgroup_tree_each(struct cgroup_tree *t, cgroup_cb *cb, void *arg)
{
	char path[PATH_MAX];
	struct cgroup_node *n;
	size_t i;
	int ret = 0;

	cgroup_tree_update(t);
	if (t->unwatched && cgroup_watch_begin(&t->watch)) {
		rescan_if_due(t);
		cgroup_watch_end(&t->watch);
	}
	for (i = 0; !ret && i < t->table.size; i++) {
		n = t->table.node[i];
		if (n && !n->died_ns)
			ret = cb(n->id, cgroup_table_path(n, path), arg);
	}
	return ret;
}

/* --- opening --- */

static int open_mount(struct cgroup_tree *t, struct err *e)
{
	int err = cgroup_dirs_open(&t->dirs, t->mount);

	if (err)
		return err_set(e, err, "%s: cannot open the cgroup mount: %s", t->mount,
			       strerror(-err));
	cgroup_watch_open(&t->watch);
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
	struct cgroup_tree *t = xcalloc(1, sizeof(*t));
	struct cgroup_node *n;
	bool is_new;
	int err = 0;

	t->opened_ns = clock_ns(CLOCK_MONOTONIC);
	t->dirs.fd = t->watch.inotify = t->watch.epoll = t->watch.timer = -1;
	t->queue_end = &t->queue;
	t->fs = *fs;
	t->mount = xasprintf("%s%s", *t->fs.path ? root : "", t->fs.path);
	if (*t->fs.path)
		err = open_mount(t, e);
	else /* all tasks are in the v2 root */
		cgroup_table_put(&t->table, 1, NULL, "", 0, &n, &is_new);
	if (err)
		cgroup_tree_close(t);
	else
		*out = t;
	return err;
}

void cgroup_tree_close(struct cgroup_tree *t)
{
	if (!t)
		return;
	cgroup_watch_close(&t->watch);
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
	return cgroup_watch_fd(&t->watch);
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
		.refused = t->refused,
		.unwatched = t->unwatched,
	};
}
