// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control_listen.h"

#include "base/err.h"
#include "base/trusted_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAITING	      1024 /* connections that were not accepted yet; more fail, or block */
#define LOCK	      ".lock"
#define LOCK_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(LOCK))

/* Half a second in total. */
#define LOCK_TRIES   50
#define LOCK_WAIT_US 10000

/* Create the directory of the socket with mode 0755, if only the last component is missing. */
static int make_directory(const char *path, struct err *err)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	slash[slash == dir] = 0;
	if (!mkdir(dir, 0755))
		chmod(dir, 0755); /* regardless of the umask */
	return trusted_dir_check(dir, true, err);
}

static void lock_of(const char *path, char lock[LOCK_PATH_MAX])
{
	snprintf(lock, LOCK_PATH_MAX, "%s" LOCK, path);
}

/* Who held a lock may have removed its file meanwhile: then others lock another one. */
static bool is_at(const char *path, int fd)
{
	struct stat there, ours;

	return !lstat(path, &there) && !fstat(fd, &ours) && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino;
}

/*
 * Two collectors that start at the same time would both find the path free. The lock is a file that
 * only its owner may open, since any user can lock a directory. Return: fd, or -errno with @err.
 */
static int lock_place(const char *path, struct err *err)
{
	char lock[LOCK_PATH_MAX];
	int fd, ret;

	lock_of(path, lock);
	for (int i = 0; i < LOCK_TRIES; i++) {
		fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (fd < 0)
			return err_set(err, -errno, "cannot open %s: %s", lock, strerror(errno));
		ret = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		if (!ret && is_at(lock, fd))
			return fd;
		close(fd);
		if (ret && ret != -EWOULDBLOCK)
			return err_set(err, ret, "cannot lock %s: %s", lock, strerror(-ret));
		usleep(ret ? LOCK_WAIT_US : 0);
	}
	return err_set(err, -EBUSY, "another process holds %s: find it with fuser -v %s", lock,
		       lock);
}

/* It is needed only while a socket is put there, or taken away. */
static void unlock_place(const char *path, int fd)
{
	char lock[LOCK_PATH_MAX];

	lock_of(path, lock);
	unlink(lock);
	close(fd);
}

/* Remove the socket of a collector that was killed before it could rename it. */
static int remove_leftover(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s exists and is not a socket", path);
	if (unlink(path))
		return err_set(err, -errno, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* Return: 0 if the path is free, or is a socket that nobody listens on; or -errno with @err. */
static int check_place(const char *path, const struct sockaddr_un *addr, struct err *err)
{
	struct stat st;
	int fd, ret;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s exists and is not a socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	ret = connect(fd, (struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
	close(fd);
	if (ret == ECONNREFUSED || ret == ENOENT)
		return 0;
	return err_set(err, -EADDRINUSE, "another process listens at %s", path);
}

/* Clients never see the socket before it listens or with another mode: it is renamed into place. */
static int bind_at(struct control_place *p, mode_t mode, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX }, fresh = addr;
	struct stat st;
	mode_t old;
	int ret;

	strcpy(addr.sun_path, p->path);
	snprintf(fresh.sun_path, sizeof(fresh.sun_path), "%.*s" CONTROL_NEW,
		 (int)(sizeof(fresh.sun_path) - sizeof(CONTROL_NEW)), p->path);
	ret = check_place(p->path, &addr, err) ?: remove_leftover(fresh.sun_path, err);
	if (ret)
		return ret;
	old = umask(~mode & 0777);
	ret = bind(p->fd, (struct sockaddr *)&fresh, sizeof(fresh)) ? -errno : 0;
	umask(old);
	if (ret)
		return err_set(err, ret, "cannot create the socket %s: %s", p->path,
			       strerror(-ret));
	if (listen(p->fd, WAITING) || lstat(fresh.sun_path, &st) ||
	    rename(fresh.sun_path, p->path)) {
		ret = err_set(err, -errno, "cannot create the socket %s: %s", p->path,
			      strerror(errno));
		unlink(fresh.sun_path);
		return ret;
	}
	p->bound = true;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return 0;
}

int control_listen(struct control_place *p, mode_t mode, struct err *err)
{
	int ret, lock;

	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	ret = make_directory(p->path, err);
	if (ret)
		return ret;
	lock = lock_place(p->path, err);
	if (lock < 0)
		return lock;
	ret = bind_at(p, mode, err);
	unlock_place(p->path, lock);
	return ret;
}

void control_remove(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct err err;
	int lock;

	if (strlen(path) >= sizeof(addr.sun_path) || access(path, F_OK))
		return;
	strcpy(addr.sun_path, path);
	lock = lock_place(path, &err);
	if (lock < 0)
		return;
	if (!check_place(path, &addr, &err))
		unlink(path);
	unlock_place(path, lock);
}

void control_leave(struct control_place *p)
{
	struct stat st;

	if (p->bound && !lstat(p->path, &st) && st.st_dev == p->dev && st.st_ino == p->ino)
		unlink(p->path);
	if (p->fd >= 0)
		close(p->fd);
}
