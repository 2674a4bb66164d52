// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command_tree.h"
#include "base/std.h"
#include "cgroup/container.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_TRIES    16
#define DEPTH_MAX     64   /* limit of sweeping and removing: one fd per level */
#define REMOVE_MAX_MS 2000 /* wait for the last processes to exit */
#define NAP_MAX_MS    50
#define MOVE_ROUNDS   100 /* moved processes may fork meanwhile */

static void nap(unsigned int ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000L };

	nanosleep(&ts, NULL);
}

/* --- processes of a cgroup --- */

static int write_at(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

typedef int pid_cb(pid_t pid, int arg);

/* Call @cb for all processes. Return: number of successes; or the first errno, except -ESRCH. */
static int each_pid(int dir, pid_cb *cb, int arg)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), n = 0, first = 0, err, pid;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (fscanf(f, "%d", &pid) == 1) {
		if (!pid) /* in another pid namespace; writing 0 would move ourselves */
			continue;
		err = cb(pid, arg);
		n += !err;
		if (err && err != -ESRCH && !first)
			first = err;
	}
	fclose(f);
	return first ? first : n;
}

int command_tree_move(pid_t pid, int to)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return write_at(to, "cgroup.procs", text);
}

/* --- trees of cgroups --- */

struct walk {
	int at;		  /* parent directory */
	const char *name; /* its name there */
	int dir;
	int depth;
	int arg;
};

typedef int dir_cb(const struct walk *w);

/* Call @cb for the directories in w->dir. Return: the sum of its results, or its first errno. */
static int each_dir(const struct walk *w, dir_cb *cb)
{
	struct walk sub = { .at = w->dir, .depth = w->depth + 1, .arg = w->arg };
	int fd, sum = 0, first = 0, ret;
	struct dirent *ent;
	DIR *d;

	if (w->depth >= DEPTH_MAX)
		return -ELOOP;
	fd = openat(w->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while ((ent = readdir(d))) {
		sub.name = ent->d_name;
		if (ent->d_type != DT_DIR || !strcmp(sub.name, ".") || !strcmp(sub.name, ".."))
			continue;
		sub.dir = openat(w->dir, sub.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub.dir < 0)
			continue; /* gone, or no permission */
		ret = cb(&sub);
		close(sub.dir);
		if (ret > 0)
			sum += ret;
		else if (!first)
			first = ret;
	}
	closedir(d);
	return first ? first : sum;
}

/*
 * A running instance holds the lock. A pid in the name would not identify it: the instance may run
 * in another pid namespace, with the same cgroups mounted.
 */
static int lock(int dir)
{
	return flock(dir, LOCK_EX | LOCK_NB) ? -errno : 0;
}

/* Open and lock a new cgroup. Return: -ENOENT if another instance's sweep removed it. */
static int hold(int at, const char *name, int *dir, uint64_t *id)
{
	struct stat st, now;

	*dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return -errno;
	if (lock(*dir) == -EWOULDBLOCK || fstat(*dir, &st) || fstatat(at, name, &now, 0) ||
	    st.st_ino != now.st_ino) {
		close(*dir);
		*dir = -1;
		return -ENOENT;
	}
	*id = st.st_ino;
	return 0;
}

int command_tree_make(int at, char name[COMMAND_TREE_NAME], int *dir, uint64_t *id)
{
	static unsigned int last;
	int err = -EEXIST, i;

	for (i = 0; i < NAME_TRIES && (err == -EEXIST || err == -ENOENT); i++) {
		snprintf(name, COMMAND_TREE_NAME, CONTAINER_COMMAND "%d-%u", getpid(),
			 __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
		err = mkdirat(at, name, 0755) ? -errno : hold(at, name, dir, id);
	}
	return err;
}

/* Move all processes to the cgroup w->arg, and remove everything below w->dir. */
static int clear(const struct walk *w);

static int clear_cb(const struct walk *w)
{
	int err;

	if (container_is_command(w->name) && lock(w->dir))
		return -EBUSY;
	err = clear(w);
	if (unlinkat(w->at, w->name, AT_REMOVEDIR) && errno != EBUSY && errno != ENOENT && !err)
		err = -errno;
	return err;
}

static int clear(const struct walk *w)
{
	int n = 1, i;

	for (i = 0; i < MOVE_ROUNDS && n > 0; i++)
		n = each_pid(w->dir, command_tree_move, w->arg);
	if (n < 0)
		return n;
	n = each_dir(w, clear_cb);
	return n < 0 ? n : 0;
}

int command_tree_remove(int at, const char *name, int dir, int to)
{
	struct walk w = { .at = at, .name = name, .dir = dir, .arg = to };
	unsigned int ms = 1, spent_ms = 0;
	int err;

	for (;;) {
		err = clear(&w);
		if (!unlinkat(at, name, AT_REMOVEDIR) || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		if (err || spent_ms >= REMOVE_MAX_MS)
			return err ? err : -EBUSY;
		nap(ms);
		spent_ms += ms;
		ms = ms * 2 > NAP_MAX_MS ? NAP_MAX_MS : ms * 2;
	}
}

static int sweep_cb(const struct walk *w)
{
	int n;

	if (container_is_command(w->name) && !lock(w->dir))
		return !command_tree_remove(w->at, w->name, w->dir, w->at);
	n = each_dir(w, sweep_cb);
	return n < 0 ? 0 : n;
}

int command_tree_sweep(const char *mount)
{
	struct walk w = { .dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int n;

	if (w.dir < 0)
		return -errno;
	n = each_dir(&w, sweep_cb);
	close(w.dir);
	return n;
}
