// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output_file.h"
#include "exit_status.h"
#include "on_kill.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_TRIES 16
#define FIFO_MS	   50

static const char *kind_of(mode_t mode)
{
	return S_ISLNK(mode)	? "a symbolic link"
	       : S_ISDIR(mode)	? "a directory"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISFIFO(mode) ? "another user's FIFO"
				: "another user's device";
}

static bool is_ours(const struct stat *st)
{
	return (S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode)) &&
	       (!st->st_uid || st->st_uid == geteuid());
}

/* Without a reader, opening a FIFO for writing fails (ENXIO); waiting must be interruptible. */
static int open_special(const char *path, const volatile sig_atomic_t *stop, struct err *err)
{
	struct stat st;
	int fd;

	while ((fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) {
		if (stop && *stop)
			return err_set(err, -EINTR, "%s: interrupted before anyone read from it",
				       path);
		if (errno != ENXIO && errno != EINTR)
			return err_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
		poll(NULL, 0, FIFO_MS);
	}
	if (fstat(fd, &st) || !is_ours(&st) || fcntl(fd, F_SETFL, O_WRONLY) < 0) {
		close(fd);
		return err_set(err, -EPERM, "cannot write %s: replaced while opening", path);
	}
	return fd;
}

static int random_name(char *name, size_t size)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		return -errno;
	snprintf(name, size, ".ibscope-%016llx", (unsigned long long)r);
	return 0;
}

/* Return: an fd, with @name set, or a negative errno. */
static int create_new(int dir, char *name, size_t size)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		int fd = random_name(name, size);

		if (fd)
			return fd;
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int create_as(int dir, const char *base)
{
	char name[OUTPUT_NAME_MAX];
	int err, fd = create_new(dir, name, sizeof(name));

	if (fd < 0 || !renameat(dir, name, dir, base))
		return fd;
	err = -errno;
	unlinkat(dir, name, 0);
	close(fd);
	return err;
}

/* Return: 0 for a new or regular file; 1: a FIFO or device of ours; or a negative errno with @err. */
static int check_path(const char *path, struct err *err)
{
	struct stat st;

	if (!*path || strlen(path) >= PATH_MAX)
		return err_set(err, -ENAMETOOLONG, "cannot write '%s': %s", path,
			       *path ? strerror(ENAMETOOLONG) : "the name is empty");
	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	if (is_ours(&st))
		return 1;
	return err_set(
		err, -EEXIST,
		"cannot write %s: it is %s; give the name of a file, or '-' for standard output",
		path, kind_of(st.st_mode));
}

/* Return: an fd of the directory of a path, or a negative errno. */
static int open_dir(const char *path)
{
	char buf[PATH_MAX];
	int dir = open(dirname(strcpy(buf, path)), O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? -errno : dir;
}

static int cannot_create(const char *path, int code, struct err *err)
{
	return err_set(err, code, "cannot create %s: %s", path, strerror(-code));
}

int output_file_open(const char *path, const volatile sig_atomic_t *stop, struct err *err)
{
	char buf[PATH_MAX];
	int special = check_path(path, err), dir, fd;

	if (special)
		return special < 0 ? special : open_special(path, stop, err);
	dir = open_dir(path);
	fd = dir < 0 ? dir : create_as(dir, basename(strcpy(buf, path)));
	if (dir >= 0)
		close(dir);
	return fd < 0 ? cannot_create(path, fd, err) : fd;
}

int output_file_check(const char *path, struct err *err)
{
	int special, dir, ret = 0;

	if (!strcmp(path, "-"))
		return 0;
	special = check_path(path, err);
	if (special)
		return special < 0 ? special : 0;
	dir = open_dir(path);
	if (dir < 0)
		return cannot_create(path, dir, err);
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS))
		ret = cannot_create(path, -errno, err);
	close(dir);
	return ret;
}

/* With a temporary name; NULL: none. */
static struct output_file *volatile unfinished;

static void remove_unfinished(void)
{
	struct output_file *o = unfinished;

	if (o)
		unlinkat(o->dir, o->name, 0);
}

static const char *proc_name(int fd, char *buf, size_t size)
{
	snprintf(buf, size, "/proc/self/fd/%d", fd);
	return buf;
}

/* A file without a name, which only /proc can give one later; or one with a temporary name. */
static int create_hidden(struct output_file *o)
{
	char proc[32];
	int fd = openat(o->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0 && !access(proc_name(fd, proc, sizeof(proc)), F_OK))
		return fd;
	if (fd >= 0)
		close(fd);
	fd = create_new(o->dir, o->name, sizeof(o->name));
	if (fd >= 0) {
		unfinished = o;
		on_kill(remove_unfinished);
	}
	return fd;
}

static int open_stdout(const char *option, struct err *err)
{
	int fd;

	if (option && isatty(STDOUT_FILENO))
		return err_set(err, -EINVAL,
			       "%s -: standard output is a terminal, but the output is binary; "
			       "redirect it, or give the name of a file",
			       option);
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? err_set(err, -errno, "cannot write to standard output: %s", strerror(errno))
		      : fd;
}

int output_file_begin(struct output_file *o, const char *option, const char *path, struct err *err)
{
	int special;

	*o = (struct output_file){ .path = path, .dir = -1 };
	if (!strcmp(path, "-")) {
		o->fd = open_stdout(option, err);
		return o->fd < 0 ? o->fd : 0;
	}
	special = check_path(path, err);
	if (special) {
		o->fd = special < 0 ? special : open_special(path, NULL, err);
		return o->fd < 0 ? o->fd : 0;
	}
	o->dir = open_dir(path);
	if (o->dir < 0)
		return cannot_create(path, o->dir, err);
	o->fd = create_hidden(o);
	if (o->fd >= 0)
		return 0;
	close(o->dir);
	return cannot_create(path, o->fd, err);
}

FILE *output_file_stream(struct output_file *o)
{
	int fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);

	o->f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!o->f)
		out_of_memory();
	return o->f;
}

/* Some file systems report only when a descriptor is closed that something was not written. */
static int flush_file(struct output_file *o)
{
	bool failed = o->f && ferror(o->f);
	int fd = o->f ? -1 : fcntl(o->fd, F_DUPFD_CLOEXEC, 3);

	errno = 0;
	if ((o->f ? fclose(o->f) : close(fd)) || failed)
		failed = true;
	o->f = NULL;
	return failed ? -(errno ?: EIO) : 0;
}

static int give_name(struct output_file *o)
{
	char proc[32];

	proc_name(o->fd, proc, sizeof(proc));
	for (int i = 0; i < NAME_TRIES; i++) {
		int ret = random_name(o->name, sizeof(o->name));

		if (ret)
			return ret;
		if (!linkat(AT_FDCWD, proc, o->dir, o->name, AT_SYMLINK_FOLLOW))
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Replace what has the name. Signals wait, so that no temporary name is left. */
static int put_in_place(struct output_file *o)
{
	char buf[PATH_MAX];
	const char *base = basename(strcpy(buf, o->path));
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	ret = *o->name ? 0 : give_name(o);
	if (!ret && renameat(o->dir, o->name, o->dir, base)) {
		ret = -errno;
		unlinkat(o->dir, o->name, 0);
	}
	unfinished = NULL;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

int output_file_end(struct output_file *o, int ret, struct err *err)
{
	int flushed = flush_file(o);

	if (flushed && !ret)
		ret = err_set(err, flushed, "cannot write %s: %s",
			      strcmp(o->path, "-") ? o->path : "to standard output",
			      strerror(-flushed));
	if (o->dir >= 0 && !ret) {
		ret = put_in_place(o);
		if (ret)
			cannot_create(o->path, ret, err);
	} else if (*o->name) {
		unlinkat(o->dir, o->name, 0);
		unfinished = NULL;
	}
	close(o->fd);
	if (o->dir >= 0)
		close(o->dir);
	return ret;
}

void output_start(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			/* the wrong way round, so that using it fails as if it were closed */
			open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

int output_stream_flush(FILE *f, struct err *err)
{
	int ret;

	errno = 0;
	if (!fflush(f) && !ferror(f))
		return 0;
	ret = err_set(err, -EIO, "cannot write the output: %s",
		      errno ? strerror(errno) : "it is incomplete");
	__fpurge(f);
	clearerr(f);
	return ret;
}

int output_end(int status)
{
	struct err err = { "" };

	if (!output_stream_flush(stdout, &err))
		return status;
	log_error("%s", err.text);
	return status ?: EXIT_FAILED;
}
