// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pin_file.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASIDE_MAX 100 /* names that are tried */

bool pin_file_note(struct pin_file *p, const char *path)
{
	struct stat st;

	if (lstat(path, &st)) {
		memset(p, 0, sizeof(*p));
		return false;
	}
	*p = (struct pin_file){ st.st_dev, st.st_ino, st.st_mode & 0777, st.st_gid };
	return true;
}

bool pin_file_is(struct pin_file *p, const char *path)
{
	struct pin_file now;

	if (!pin_file_note(&now, path) || now.dev != p->dev || now.ino != p->ino)
		return false;
	*p = now;
	return true;
}

/* What was set aside; times of one tick of the kernel are equal. */
struct aside {
	struct timespec ctime;
	int number; /* 0: none */
};

static bool is_later(const struct aside *a, const struct aside *b)
{
	if (a->ctime.tv_sec != b->ctime.tv_sec)
		return a->ctime.tv_sec > b->ctime.tv_sec;
	if (a->ctime.tv_nsec != b->ctime.tv_nsec)
		return a->ctime.tv_nsec > b->ctime.tv_nsec;
	return a->number > b->number;
}

/* The name of the @i-th file that was moved from @path. */
static void aside_path(const char *path, const char *dir, int i, char to[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	/* no '.', which bpffs rejects */
	snprintf(to, PATH_MAX, "%s/%s-foreign%d", dir, slash ? slash + 1 : path, i);
}

/*
 * Remove what was set aside first, so that whoever pins under our names again and again cannot keep
 * collectors from starting. Directories that have something in them stay.
 */
static void remove_oldest(const char *path, const char *dir)
{
	struct aside passed = { { .tv_sec = -1 }, 0 };
	char to[PATH_MAX];
	struct stat st;

	/* each round removes a file, or passes over a directory */
	for (int tries = 0; tries < ASIDE_MAX; tries++) {
		struct aside oldest = {};

		for (int i = 1; i <= ASIDE_MAX; i++) {
			struct aside a = { .number = i };

			aside_path(path, dir, i, to);
			if (lstat(to, &st))
				continue;
			a.ctime = st.st_ctim;
			if (is_later(&a, &passed) && (!oldest.number || is_later(&oldest, &a)))
				oldest = a;
		}
		if (!oldest.number)
			return;
		aside_path(path, dir, oldest.number, to);
		if (!remove(to)) {
			log_warn("removed %s, the oldest of %d", to, ASIDE_MAX);
			return;
		}
		passed = oldest;
	}
}

static int set_aside(const char *path, const char *dir, struct err *err)
{
	char to[PATH_MAX];

	for (int i = 1; i <= ASIDE_MAX; i++) {
		aside_path(path, dir, i, to);
		if (!renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE)) {
			log_warn("%s was not pinned by a collector: moved to %s; remove it if "
				 "nothing else uses it",
				 path, to);
			return 0;
		}
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_set(err, -errno,
		       "%s was not pinned by a collector, and cannot be moved to %s: %s; remove it",
		       path, to, strerror(errno));
}

int pin_file_set_aside(const char *path, const char *dir, struct err *err)
{
	int ret = set_aside(path, dir, err);

	if (ret != -EEXIST)
		return ret;
	remove_oldest(path, dir);
	return set_aside(path, dir, err);
}

int pin_file_put(struct pin_file *p, int fd, const char *path, const char *aside, struct err *err)
{
	int ret = bpf_obj_pin(fd, path) ? -errno : 0;

	if (ret == -EEXIST) {
		ret = pin_file_set_aside(path, aside, err);
		if (ret)
			return ret;
		ret = bpf_obj_pin(fd, path) ? -errno : 0;
	}
	if (ret)
		return err_set(err, ret, "cannot pin %s: %s", path, strerror(-ret));
	pin_file_note(p, path);
	return 0;
}
