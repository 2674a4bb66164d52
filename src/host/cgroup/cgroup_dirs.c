// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define KERNFS_FID_TYPE 0xfe /* Linux include/linux/exportfs.h, FILEID_KERNFS (v5.5) */

static void read_real(struct cgroup_dirs *d)
{
	char link[32], text[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", d->fd);
	n = readlink(link, text, sizeof(text));
	if (n > 0 && n < (ssize_t)sizeof(text))
		d->real = xstrndup(text, n);
}

int cgroup_dirs_open(struct cgroup_dirs *d, const char *mount)
{
	struct statfs fs;
	struct stat st;

	d->fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st))
		return -errno;
	d->dev = st.st_dev;
	d->kernfs = !fstatfs(d->fd, &fs) &&
		    (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
	read_real(d);
	return 0;
}

void cgroup_dirs_close(struct cgroup_dirs *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->real);
}

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cgroup_dirs_open_path(const struct cgroup_dirs *d, const char *path)
{
	return open_dir(d->fd, path[1] ? path + 1 : ".");
}

int cgroup_dirs_stat_at(const struct cgroup_dirs *d, int at, const char *name, struct stat *st)
{
	if (fstatat(at, name, st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOTDIR ? -ENOENT : -errno;
	return S_ISDIR(st->st_mode) && st->st_dev == d->dev ? 0 : -ENOENT;
}

int cgroup_dirs_stat(const struct cgroup_dirs *d, const char *path, struct stat *st)
{
	return cgroup_dirs_stat_at(d, d->fd, path[1] ? path + 1 : ".", st);
}

int cgroup_dirs_path(const struct cgroup_dirs *d, uint64_t id, char **out)
{
	static const char deleted[] = " (deleted)";
	union {
		struct file_handle h;
		char bytes[sizeof(struct file_handle) + sizeof(id)];
	} u = { .h = { .handle_bytes = sizeof(id), .handle_type = KERNFS_FID_TYPE } };
	char link[32], text[PATH_MAX], *path;
	size_t skip = d->real ? strlen(d->real) : 0;
	struct stat st;
	ssize_t n;
	int fd;

	if (!d->kernfs || !d->real)
		return -EOPNOTSUPP;
	memcpy(u.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(d->fd, &u.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	if (strncmp(text, d->real, skip) || (text[skip] && text[skip] != '/'))
		return -EXDEV; /* outside the part of the hierarchy that this mount shows */
	path = text[skip] ? text + skip : "/";
	if (cgroup_dirs_stat(d, path, &st) || st.st_ino != id) {
		n -= strlen(deleted);
		if (n <= 0 || strcmp(text + n, deleted))
			return -ESTALE;
		text[n] = 0; /* it died just now */
	}
	*out = xstrdup(path);
	return 0;
}
