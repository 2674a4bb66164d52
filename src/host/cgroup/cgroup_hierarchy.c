// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup.h"
#include "container.h"
#include "base/array.h"
#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* kubelet's and systemd's containers are at most five below the root */
#define DIRS_MAX  4096

/* Runtimes create every container's cgroup in the first ones; systemd has units in two. */
static const char *const controllers[] = { "memory",  "pids",	 "cpu",	       "cpuacct", "blkio",
					   "devices", "freezer", "perf_event", "cpuset" };
#define N_CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

struct census {
	unsigned int dirs;
	bool container;
};

/* Takes ownership of @fd, the directory of @path; counts cgroups until it finds a container. */
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
		below = xasprintf("%s/%s", path, entry->d_name);
		c->container =
			container_of_path(below, NULL, &found) && found.kind != CONTAINER_GUESS;
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
		       "unknown or unmounted hierarchy '%.40s': must be one of auto, v2%s", name,
		       known);
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

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	static const char *const names[] = {
		[CGROUP_MODE_NONE] = "none",
		[CGROUP_MODE_V1] = "v1",
		[CGROUP_MODE_HYBRID] = "hybrid",
		[CGROUP_MODE_V2] = "v2",
	};

	return names[mode];
}

/* mountinfo writes blank, tab, newline and backslash as \ooo (proc_pid_mountinfo(5)). */
static void unescape(char *s)
{
	char *d = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*d++ = (s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0');
			s += 3;
		} else {
			*d++ = *s;
		}
	}
	*d = 0;
}

/* ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAG...] - FSTYPE SOURCE SUPEROPTIONS */
static bool split(char *line, char **inner, char **path, char **type, char **options)
{
	char *sep = strstr(line, " - "), *f[5], *save;
	int i;

	if (!sep)
		return false;
	*sep = 0;
	for (i = 0; i < 5; i++) {
		f[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!f[i])
			return false;
	}
	*inner = f[3];
	*path = f[4];
	*type = strtok_r(sep + 3, " \n", &save);
	if (!*type)
		return false;
	strtok_r(NULL, " \n", &save); /* the source */
	*options = strtok_r(NULL, " \n", &save);
	unescape(*inner);
	unescape(*path);
	return true;
}

static int rank(const char *inner, const char *path)
{
	return 2 * !strcmp(inner, "/") + !strcmp(path, "/sys/fs/cgroup") + 1;
}

struct scan {
	const char *controller; /* NULL: v2 */
	bool v1, v2;
	int best; /* rank() of the mount taken, 0: none yet */
};

/* True if @name is in a list such as "rw,cpu,cpuacct". "" is v2, with an empty list. */
static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	if (!n)
		return !*list;
	for (const char *at = list; at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

static void take(struct scan *s, struct cgroup_fs *fs, const char *inner, const char *path)
{
	if (rank(inner, path) <= s->best || strlen(path) >= sizeof(fs->path) ||
	    strlen(inner) >= sizeof(fs->inner))
		return;
	s->best = rank(inner, path);
	strcpy(fs->path, path);
	strcpy(fs->inner, inner);
}

static int scan_mountinfo(FILE *f, const char *name, struct scan *s, struct cgroup_fs *fs,
			  struct err *e)
{
	char *line = NULL, *inner, *path, *type, *options;
	size_t size = 0;
	int err = 0;

	while (xgetline(&line, &size, f) >= 0) {
		if (!split(line, &inner, &path, &type, &options))
			continue;
		if (!strcmp(type, "cgroup"))
			s->v1 = true;
		else if (!strcmp(type, "cgroup2"))
			s->v2 = true;
		else
			continue;
		if (s->controller ? !strcmp(type, "cgroup") && in_list(options, s->controller)
				  : !strcmp(type, "cgroup2"))
			take(s, fs, inner, path);
	}
	if (ferror(f)) {
		err = errno ? -errno : -EIO;
		err_set(e, err, "%s: cannot read: %s", name, strerror(-err));
	}
	free(line);
	return err;
}

static bool exists(const char *root, const char *path)
{
	char full[PATH_MAX];

	return snprintf(full, sizeof(full), "%s%s", root, path) < (int)sizeof(full) &&
	       !access(full, F_OK);
}

/* v2 directories have cgroup.controllers; v1 hierarchies are named after controllers. */
static void guess(const char *root, struct scan *s, struct cgroup_fs *fs)
{
	static const char unified[] = "/sys/fs/cgroup/unified";
	char path[sizeof(fs->path)], tasks[sizeof(fs->path) + 8];
	const char *v2 = NULL;

	if (exists(root, "/sys/fs/cgroup/cgroup.controllers"))
		v2 = "/sys/fs/cgroup";
	else if (exists(root, "/sys/fs/cgroup/unified/cgroup.controllers"))
		v2 = unified;
	s->v2 = v2;
	s->v1 = exists(root, "/sys/fs/cgroup/memory/tasks") ||
		exists(root, "/sys/fs/cgroup/cpu/tasks") ||
		exists(root, "/sys/fs/cgroup/systemd/tasks");
	if (!s->controller && v2)
		take(s, fs, "/", v2);
	if (!s->controller ||
	    snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", s->controller) >= (int)sizeof(path))
		return;
	snprintf(tasks, sizeof(tasks), "%s/tasks", path);
	if (exists(root, tasks))
		take(s, fs, "/", path);
}

static int detect(const char *root, struct scan *s, struct cgroup_fs *out, struct err *e)
{
	struct cgroup_fs fs = { 0 };
	char name[PATH_MAX];
	int err = 0;
	FILE *f;

	if (snprintf(name, sizeof(name), "%s/proc/self/mountinfo", root) >= (int)sizeof(name))
		return err_set(e, -ENAMETOOLONG, "%.60s...: path too long", root);
	f = fopen(name, "re");
	if (f) {
		err = scan_mountinfo(f, name, s, &fs, e);
		fclose(f);
		if (err)
			return err;
	} else {
		guess(root, s, &fs);
	}
	fs.mode = s->v2 ? (s->v1 ? CGROUP_MODE_HYBRID : CGROUP_MODE_V2)
			: (s->v1 ? CGROUP_MODE_V1 : CGROUP_MODE_NONE);
	if (s->controller && s->best)
		snprintf(fs.controller, sizeof(fs.controller), "%s", s->controller);
	*out = fs;
	return 0;
}

int cgroup_mode_detect(const char *root, struct cgroup_fs *out, struct err *e)
{
	struct scan s = { 0 };

	return detect(root, &s, out, e);
}

int cgroup_mode_v1(const char *root, const char *controller, struct cgroup_fs *out, struct err *e)
{
	struct scan s = { .controller = controller };

	return detect(root, &s, out, e);
}

char *cgroup_of_process(const struct cgroup_fs *fs, int proc)
{
	size_t size = 0, n = strcmp(fs->inner, "/") ? strlen(fs->inner) : 0;
	int fd = openat(proc, "cgroup", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL, *path = NULL;

	while (f && !path && xgetline(&line, &size, f) > 0) {
		char *list = strchr(line, ':'), *own = list ? strchr(list + 1, ':') : NULL;

		if (!own)
			continue;
		*own++ = 0;
		if (!in_list(list + 1, fs->controller))
			continue;
		own[strcspn(own, "\n")] = 0;
		/* "/..": above the root of our cgroup namespace */
		if (strncmp(own, fs->inner, n) || (own[n] && own[n] != '/') ||
		    !strncmp(own, "/..", 3))
			break;
		path = xstrdup(strcmp(own + n, "/") ? own + n : "");
	}
	if (f)
		fclose(f);
	free(line);
	return path;
}
