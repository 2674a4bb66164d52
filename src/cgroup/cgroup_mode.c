// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_mode.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

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
	const char *controller; /* NULL: v2 is looked for */
	bool v1, v2;
	int best; /* rank() of the mount taken, 0: none yet */
};

/* "rw,cpu,cpuacct" has "cpu". */
static bool has_option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = options; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, name, n) && (!p[n] || p[n] == ','))
			return true;
	}
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

	while (errno = 0, getline(&line, &size, f) >= 0) {
		if (!split(line, &inner, &path, &type, &options))
			continue;
		if (!strcmp(type, "cgroup"))
			s->v1 = true;
		else if (!strcmp(type, "cgroup2"))
			s->v2 = true;
		else
			continue;
		if (s->controller ? !strcmp(type, "cgroup") && has_option(options, s->controller)
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

/* Each v2 directory has cgroup.controllers; v1 hierarchies have the names of controllers. */
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
