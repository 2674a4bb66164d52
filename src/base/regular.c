// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "regular.h"
#include "std.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directory of this process's descriptors; before regular_chroot() a path is used. */
static int links = AT_FDCWD;

int regular_chroot(int dir)
{
	int fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fds < 0 || fchdir(dir) || chroot("."))
		return -errno;
	links = fds;
	return 0;
}

int regular_open(const char *path)
{
	int fd, ret, at = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	char link[32];

	if (at < 0)
		return -errno;
	ret = fstat(at, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!ret) {
		snprintf(link, sizeof(link), "%s%d", links == AT_FDCWD ? "/proc/self/fd/" : "", at);
		fd = openat(links, link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		ret = fd < 0 ? -errno : fd;
	}
	close(at);
	return ret;
}

int regular_check_secret(const char *path, const struct stat *st, const char *what, struct err *err)
{
	if (st->st_mode & (S_IWGRP | S_IRWXO))
		return err_set(err, -EINVAL,
			       "%s has mode %04o, so that other users can %s the %s: use mode "
			       "0600, or 0640 to let a group read it",
			       path, (unsigned int)st->st_mode & 07777,
			       st->st_mode & S_IROTH ? "read" : "replace", what);
	if (geteuid() && st->st_uid && st->st_uid != geteuid())
		return err_set(err, -EINVAL,
			       "%s belongs to uid %u: a %s must belong to root or to the user "
			       "that reads it (uid %u)",
			       path, st->st_uid, what, geteuid());
	return 0;
}
