// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trusted_dir.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel's limit */

static int check_one(const char *path, const struct stat *st, bool sticky_ok, struct err *err)
{
	const mode_t shared = S_IWOTH | (st->st_gid ? S_IWGRP : 0);

	if (st->st_uid && st->st_uid != geteuid())
		return err_set(err, -EPERM,
			       "%s belongs to uid %u, who could replace its contents: chown it to "
			       "root, or use another directory",
			       path, st->st_uid);
	if (S_ISLNK(st->st_mode))
		return 0;
	if (!S_ISDIR(st->st_mode))
		return err_set(err, -ENOTDIR, "%s is not a directory", path);
	if (!(st->st_mode & shared) || (sticky_ok && st->st_mode & S_ISVTX))
		return 0;
	return err_set(err, -EPERM,
		       "%s has mode %04o, so other users could add or replace files "
		       "in it: `chmod go-w` it, or use a directory that only root can write to",
		       path, st->st_mode & 07777);
}

/* Replace the first @len bytes of @path, a symbolic link, by its target. */
static int follow(char *path, size_t len, struct err *err)
{
	char target[PATH_MAX], whole[PATH_MAX];
	char *rest = path + len, saved = *rest;
	size_t dir = len;
	ssize_t n;
	int size;

	*rest = 0;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return err_set(err, -errno, "cannot read the link %s: %s", path, strerror(errno));
	target[n] = 0;
	*rest = saved;
	while (path[dir - 1] != '/')
		dir--;
	size = snprintf(whole, sizeof(whole), "%.*s%s%s", *target == '/' ? 0 : (int)dir, path,
			target, rest);
	if (size >= (int)sizeof(whole))
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long", path);
	strcpy(path, whole);
	return 0;
}

int trusted_dir_check(const char *path, bool sticky_ok, struct err *err)
{
	char now[PATH_MAX];
	unsigned int links = 0;
	size_t len = 1;

	if (*path != '/' || strlen(path) >= sizeof(now))
		return err_set(err, -EINVAL, "'%.200s' is not an absolute path", path);
	strcpy(now, path);
	for (;;) {
		bool last = !now[len + strspn(now + len, "/")];
		char saved = now[len];
		struct stat st;
		int ret;

		now[len] = 0;
		ret = lstat(now, &st) ? err_set(err, -errno, "%s: %s", now, strerror(errno))
				      : check_one(now, &st, sticky_ok && !last, err);
		now[len] = saved;
		if (ret)
			return ret;
		if (S_ISLNK(st.st_mode)) {
			if (++links > LINKS_MAX)
				return err_set(err, -ELOOP, "%s: %s", path, strerror(ELOOP));
			ret = follow(now, len, err);
			if (ret)
				return ret;
			len = 1;
			continue;
		}
		if (last)
			return 0;
		len += strspn(now + len, "/");
		len += strcspn(now + len, "/");
	}
}
