/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directories of a cgroup hierarchy as the kernel names them: by paths below the
 * mount, which is "/" here, and by ids. A path has at most PATH_MAX - 1 bytes.
 */
#ifndef IBSCOPE_CGROUP_DIRS_H
#define IBSCOPE_CGROUP_DIRS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct cgroup_dirs {
	int fd; /* of the mount; -1: not open */
	dev_t dev;
	char *real;  /* what /proc says of it, as it does of its directories; NULL: not known */
	bool kernfs; /* so file handles are ids */
};

/* @mount: its directory. Return: 0 or a negative errno; cgroup_dirs_close() in both cases. */
int cgroup_dirs_open(struct cgroup_dirs *d, const char *mount);
void cgroup_dirs_close(struct cgroup_dirs *d);

/* Return: an fd, the caller's to close, or a negative errno. */
int cgroup_dirs_open_path(const struct cgroup_dirs *d, const char *path);

/* Return: 0 with the inode of the directory, whose number is the id, or a negative errno; -ENOENT
 * also for other files. */
int cgroup_dirs_stat(const struct cgroup_dirs *d, const char *path, struct stat *st);

/* The same of @name in the directory @at, an fd. */
int cgroup_dirs_stat_at(const struct cgroup_dirs *d, int at, const char *name, struct stat *st);

/**
 * cgroup_dirs_path() - ask the kernel for the path of an id (CAP_DAC_READ_SEARCH)
 * @out: the caller's to free
 *
 * Return: 0, also for one that died while it was looked at; -ESTALE if it is dead; -EXDEV if the
 * mount does not show it; -ENAMETOOLONG; other errors if the kernel cannot be asked; -ENOMEM.
 */
int cgroup_dirs_path(const struct cgroup_dirs *d, uint64_t id, char **out);

#endif
