// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resctrl_map.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS	       1024 /* beyond the RMIDs of most machines */
#define TASKS	       262144
#define TASK_BYTES     (4U << 20)
#define CONTAINERS     65536
#define HOST	       (INTERN_NONE - 1) /* in no container, or unknown */
#define GONE	       INTERN_NONE
#define CPU_LIST_BYTES 65536

/* --- files --- */

int resctrl_open_dir(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

char *resctrl_read_file(int dir, const char *name, size_t max)
{
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	char *text = NULL;
	size_t n = 0, room = 0;
	ssize_t got = -1;
	struct stat st;

	if (fd < 0)
		return NULL;
	while (!fstat(fd, &st) && S_ISREG(st.st_mode) && n < max) {
		array_reserve(text, room, n + 4096);
		got = read(fd, text + n, 4095);
		if (got <= 0)
			break;
		n += got;
	}
	close(fd);
	if (got || n >= max || !text || memchr(text, 0, n)) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

size_t resctrl_list(int dir, char **names, size_t max)
{
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *e;
	size_t n = 0;

	while (d && n < max && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			names[n++] = xstrdup(e->d_name);
	if (d)
		closedir(d);
	else if (dir >= 0)
		close(dir);
	return n;
}

int resctrl_open_group(int top, const struct resctrl_group *g)
{
	int fd = resctrl_open_dir(top, *g->name ? g->name : "."), all, inside;

	if (fd < 0 || !g->inside)
		return fd;
	all = resctrl_open_dir(fd, "mon_groups");
	inside = all < 0 ? -1 : resctrl_open_dir(all, g->inside);
	if (all >= 0)
		close(all);
	close(fd);
	return inside;
}

/* --- the container of a task --- */

static __u32 container_of_cgroup(const struct resctrl_tasks *t, const char *path)
{
	struct container c;
	char *pod, *text;
	const char *name;
	__u32 number = HOST;

	if (!container_of_path(*path ? path : "/", NULL, &c))
		return HOST;
	pod = xstrdup(container_names_pod_label(t->names, &c));
	name = container_names_label(t->names, &c);
	text = xasprintf("%s%s%s", pod, *pod ? "/" : "", name);
	if (*name && t->containers->n < CONTAINERS)
		number = intern_get(t->containers, text);
	else if (*name && intern_find(t->containers, text) != INTERN_NONE)
		number = intern_find(t->containers, text);
	free(text);
	free(pod);
	return number;
}

/* A task that has ended says nothing, one that cannot be read may be anybody's. */
static __u32 container_of_task(const struct resctrl_tasks *t, struct u64_map *seen, __u32 task)
{
	__u32 found = u64_map_get(seen, task);
	char name[16], *path;
	int fd;

	if (found != U64_MAP_NONE)
		return found;
	snprintf(name, sizeof(name), "%u", task);
	fd = openat(t->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? GONE : HOST;
	path = cgroup_of_process(&t->fs, fd);
	if (path)
		found = strstr(path, " (deleted)") ? GONE : container_of_cgroup(t, path);
	else
		found = faccessat(fd, "cgroup", F_OK, 0) ? GONE : HOST;
	free(path);
	close(fd);
	if (found != GONE)
		u64_map_put(seen, task, found);
	return found;
}

/* --- groups --- */

static bool parse_tasks(struct resctrl_map *m, struct resctrl_group *g, const char *text)
{
	while (*text) {
		char *end;
		unsigned long v = strtoul(text, &end, 10);

		if (*text < '1' || *text > '9' || *end != '\n' || v > 0x7fffffff ||
		    m->tasks >= TASKS)
			return false;
		m->tasks++;
		array_reserve(g->task, g->room, g->n + 1);
		g->task[g->n++] = v;
		text = end + 1;
	}
	return true;
}

/* Differs between groups that have the same name one after the other. */
static __u64 id_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : u64_hash(st.st_ino) ^ st.st_dev;
}

/* A CPU of a group counts the root's tasks for it. */
static bool has_cpus(int fd)
{
	char *cpus = resctrl_read_file(fd, "cpus_list", CPU_LIST_BYTES);
	bool has = !cpus || (*cpus && strcmp(cpus, "\n"));

	free(cpus);
	return has;
}

/* Takes the names. Return: false if there is none with that name. */
static bool add_group(struct resctrl_map *m, int top, char *name, char *inside)
{
	struct resctrl_group g = { .name = name, .inside = inside, .owner = RESCTRL_NOBODY };
	int fd = resctrl_open_group(top, &g);
	char *text;

	if (fd < 0 || faccessat(fd, "tasks", F_OK, 0)) {
		if (fd >= 0)
			close(fd);
		free(name);
		free(inside);
		return false;
	}
	g.id = id_of(fd);
	text = resctrl_read_file(fd, "tasks", TASK_BYTES);
	g.known = text && parse_tasks(m, &g, text);
	g.owner = g.known && !has_cpus(fd) ? HOST : RESCTRL_NOBODY;
	free(text);
	close(fd);
	array_reserve(m->group, m->room, m->n + 1);
	m->group[m->n++] = g;
	return true;
}

static void add_inside(struct resctrl_map *m, int top, const char *name)
{
	char *names[GROUPS];
	int fd = resctrl_open_dir(top, *name ? name : "."), all;
	size_t n;

	if (fd < 0)
		return;
	all = resctrl_open_dir(fd, "mon_groups");
	close(fd);
	n = resctrl_list(all, names, GROUPS);
	for (size_t i = 0; i < n; i++)
		if (m->n < GROUPS)
			add_group(m, top, xstrdup(name), names[i]);
		else
			free(names[i]);
}

/* @g->owner: HOST if its counters are those of its tasks */
static void find_owner(struct resctrl_group *g, const struct resctrl_tasks *t, struct u64_map *seen)
{
	__u32 owner = RESCTRL_NOBODY, who;

	if (g->owner == RESCTRL_NOBODY)
		return;
	g->owner = RESCTRL_NOBODY;
	for (size_t i = 0; i < g->n; i++) {
		who = container_of_task(t, seen, g->task[i]);
		if (who == GONE)
			continue;
		if (who == HOST || (owner != RESCTRL_NOBODY && owner != who))
			return;
		owner = who;
	}
	g->owner = owner;
}

/* A control group that is not one container's, with the groups in it: whom do these not count as a whole? */
static void find_partial(struct resctrl_map *m, const struct resctrl_group *g, size_t n,
			 const struct resctrl_tasks *t, struct u64_map *seen)
{
	struct u64_map counted = {};

	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; g[i].owner != RESCTRL_NOBODY && k < g[i].n; k++)
			u64_map_put(&counted, g[i].task[k], 1);
	for (size_t k = 0; k < g->n; k++) {
		__u32 who;

		if (u64_map_get(&counted, g->task[k]) != U64_MAP_NONE)
			continue;
		who = container_of_task(t, seen, g->task[k]);
		if (who != GONE && who != HOST)
			u64_map_put(&m->partial, who, 1);
	}
	u64_map_free(&counted);
}

static void find_owners(struct resctrl_map *m, const struct resctrl_tasks *t)
{
	struct u64_map seen = {};

	for (size_t i = 0, n; i < m->n; i += n) {
		struct resctrl_group *g = &m->group[i];

		for (n = 1; i + n < m->n && g[n].inside; n++)
			;
		m->complete &= g->known;
		for (size_t k = 0; k < n; k++)
			find_owner(&g[k], t, &seen);
		if (g->owner == RESCTRL_NOBODY)
			find_partial(m, g, n, t, &seen);
		/* its counters include those of the groups in it */
		for (size_t k = 1; g->owner != RESCTRL_NOBODY && k < n; k++)
			g[k].owner = RESCTRL_NOBODY;
	}
	u64_map_free(&seen);
}

/* The tasks of a control group are read before those of the groups in it, so that new ones do not seem uncounted. */
void resctrl_map_read(struct resctrl_map *m, int top, const struct resctrl_tasks *tasks)
{
	char *names[GROUPS];
	size_t n = resctrl_list(resctrl_open_dir(top, "."), names, GROUPS);

	*m = (struct resctrl_map){ .complete = n < GROUPS };
	m->complete &= add_group(m, top, xstrdup(""), NULL);
	add_inside(m, top, "");
	for (size_t i = 0; i < n; i++) {
		if (m->n >= GROUPS)
			m->complete = false;
		else if (add_group(m, top, xstrdup(names[i]), NULL))
			add_inside(m, top, names[i]);
		free(names[i]);
	}
	find_owners(m, tasks);
}

void resctrl_map_free(struct resctrl_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->group[i].name);
		free(m->group[i].inside);
		free(m->group[i].task);
	}
	free(m->group);
	u64_map_free(&m->partial);
	*m = (struct resctrl_map){};
}
