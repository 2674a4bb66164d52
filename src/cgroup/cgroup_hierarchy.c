// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container.h"
#include "base/err.h"

#define DEPTH_MAX 8 /* kubelet's and systemd's containers are at most five below the root */
#define DIRS_MAX  4096

/* Those in which runtimes put every container come first; systemd has its units in the first two. */
static const char *const controllers[] = { "memory",  "pids",	 "cpu",	       "cpuacct", "blkio",
					   "devices", "freezer", "perf_event", "cpuset" };
#define N_CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

struct census {
	unsigned int dirs;
	bool container;
};

/* Takes @fd, the directory of @path; counts what is below it until there is a container. */
static void count(int fd, const char *path, int depth, struct census *c)
{
	DIR *dir = fdopendir(fd);
	struct container found;
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while (!c->container && c->dirs < DIRS_MAX && (entry = readdir(dir))) {
		char *below;
		int sub;

		if (entry->d_name[0] == '.' ||
		    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		sub = openat(dirfd(dir), entry->d_name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		c->dirs++;
		if (asprintf(&below, "%s/%s", path, entry->d_name) < 0) {
			close(sub);
			break;
		}
		c->container = container_of_path(below, NULL, &found);
		if (depth < DEPTH_MAX)
			count(sub, below, depth + 1, c);
		else
			close(sub);
		free(below);
	}
	closedir(dir);
}

static struct census take_census(const char *root, const struct cgroup_fs *fs)
{
	struct census c = { 0 };
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s%s", root, fs->path) >= (int)sizeof(path))
		return c;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		count(fd, "", 1, &c);
	return c;
}

static int choose_v1(const char *root, const char *name, struct cgroup_fs *out, struct err *e)
{
	char known[256] = "";
	struct cgroup_fs fs;
	int ret = cgroup_mode_v1(root, name, out, e);

	if (ret || *out->path)
		return ret;
	for (size_t i = 0; i < N_CONTROLLERS; i++)
		if (!cgroup_mode_v1(root, controllers[i], &fs, e) && *fs.path)
			strcat(strcat(known, ", "), controllers[i]);
	return err_set(e, -ENOENT,
		       "'%.40s' is no controller that is mounted as cgroup v1; there %s%s", name,
		       *known ? "are auto, v2" : "are auto and v2", known);
}

static int choose_auto(const char *root, struct cgroup_fs *out, struct err *e)
{
	struct cgroup_fs all[1 + N_CONTROLLERS];
	const struct cgroup_fs *populated = NULL;
	size_t n = 0;

	if (*out->path)
		all[n++] = *out;
	for (size_t i = 0; i < N_CONTROLLERS; i++) {
		int ret = cgroup_mode_v1(root, controllers[i], &all[n], e);

		if (ret)
			return ret;
		n += *all[n].path != 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct census c = take_census(root, &all[i]);

		if (c.container) {
			*out = all[i];
			return 0;
		}
		if (c.dirs && !populated)
			populated = &all[i];
	}
	if (n)
		*out = populated ? *populated : all[0];
	return 0;
}

int cgroup_hierarchy_choose(const char *root, const char *name, struct cgroup_fs *out,
			    struct err *e)
{
	int ret = cgroup_mode_detect(root, out, e);

	if (ret)
		return ret;
	if (!strcmp(name, "auto"))
		return out->mode == CGROUP_MODE_V2 ? 0 : choose_auto(root, out, e);
	if (strcmp(name, "v2"))
		return choose_v1(root, name, out, e);
	return *out->path ? 0 : err_set(e, -ENOENT, "no cgroup v2 is mounted");
}
