// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resctrl.h"
#include "resctrl_map.h"
#include "base/array.h"
#include "base/cpulist.h"
#include "base/num.h"
#include "base/text.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERIES 1024  /* a reading may interrupt a CPU of each L3 */
#define CELLS  16384 /* with more, further containers are unknown */
#define LOOK   10    /* readings from one look at the tasks to the next */
#define SHORTEST \
	0.5 /* seconds; the hardware counts in steps, so that rates of less have false peaks */
#define PLAUSIBLE   1e13 /* bytes per second; more is a counter that was reset */
#define COUNTER_MAX 32	 /* bytes of a file with a number */
#define INITIAL_PID "pid:[4026531836]"

static const char *const files[RESCTRL_MEASURES] = { "mbm_total_bytes", "mbm_local_bytes",
						     "llc_occupancy" };

/* A domain of a group. */
struct series {
	struct resctrl_group group;
	char domain[32];
	__u64 key; /* the same for the same group and domain */
	__u32 cell;
	uint64_t last[RESCTRL_MEASURES];
	bool has[RESCTRL_MEASURES];
};

/* A container on a complex: the sum of its groups. */
struct cell {
	__u32 container;
	unsigned int complex;
	__u64 groups, groups_before; /* which ones: the sum of their keys */
	double now[RESCTRL_MEASURES];
	bool unknown[RESCTRL_MEASURES];
	struct resctrl_figures pending; /* since the last look at the tasks */
	struct resctrl_figures known;
};

struct resctrl {
	int top;
	struct resctrl_tasks tasks;
	struct intern containers;
	struct topology *topology;
	struct series *series;
	size_t n_series, room_series;
	struct cell *cell;
	size_t n_cells, room_cells;
	struct u64_map cell_of;
	size_t groups, owned;
	unsigned int readings;
	double read_s;
};

static bool sees_all_tasks(const char *root)
{
	char path[4096], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	return !strcmp(link, INITIAL_PID);
}

static struct topology *read_topology(const char *root)
{
	struct cpulist possible = {};
	unsigned int cpus = 0;
	int cpu;

	if (!cpulist_read(root, "possible", &possible, NULL))
		cpulist_for_each (cpu, &possible)
			cpus = cpu + 1;
	return topology_open(root, cpus);
}

struct resctrl *resctrl_open(const char *root)
{
	struct resctrl *r = xcalloc(1, sizeof(*r));
	char path[4096];

	r->tasks.containers = &r->containers;
	snprintf(path, sizeof(path), "%s/sys/fs/resctrl", root);
	r->top = resctrl_open_dir(AT_FDCWD, path);
	snprintf(path, sizeof(path), "%s/proc", root);
	r->tasks.proc = resctrl_open_dir(AT_FDCWD, path);
	if (r->top < 0 || r->tasks.proc < 0 || faccessat(r->top, "tasks", R_OK, 0) ||
	    !sees_all_tasks(root) || cgroup_hierarchy_choose(root, "auto", &r->tasks.fs, NULL) ||
	    !*r->tasks.fs.path) {
		resctrl_close(r);
		return NULL;
	}
	r->tasks.names = container_names_open(root);
	r->topology = read_topology(root);
	return r;
}

static void free_series(struct series *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(s[i].group.name);
		free(s[i].group.inside);
	}
	free(s);
}

void resctrl_close(struct resctrl *r)
{
	if (!r)
		return;
	if (r->top >= 0)
		close(r->top);
	if (r->tasks.proc >= 0)
		close(r->tasks.proc);
	container_names_close(r->tasks.names);
	topology_close(r->topology);
	free_series(r->series, r->n_series);
	free(r->cell);
	u64_map_free(&r->cell_of);
	intern_free(&r->containers);
	free(r);
}

/* --- counters --- */

static bool read_counter(int dir, const char *name, uint64_t *out)
{
	const struct num_arg arg = { .name = name, .max = UINT64_MAX };
	char *text = resctrl_read_file(dir, name, COUNTER_MAX);
	bool is;

	if (!text)
		return false;
	text[strcspn(text, "\n")] = 0;
	is = text[strspn(text, "0123456789")] == 0 && !num_parse(&arg, text, out, NULL);
	free(text);
	return is;
}

/* Of another group with the same name nothing is kept in the end: its key is another one. Return: -1 on failure. */
static int open_domain(int top, const struct series *s)
{
	int fd = resctrl_open_group(top, &s->group), data, domain;

	if (fd < 0)
		return -1;
	data = resctrl_open_dir(fd, "mon_data");
	close(fd);
	if (data < 0)
		return -1;
	domain = resctrl_open_dir(data, s->domain);
	close(data);
	return domain;
}

static void read_series(struct resctrl *r, struct series *s, double seconds)
{
	struct cell *c = &r->cell[s->cell];
	int fd = open_domain(r->top, s);

	for (int m = 0; m < RESCTRL_MEASURES; m++) {
		const bool had = s->has[m];
		uint64_t v = 0;
		double rate;

		s->has[m] = fd >= 0 && read_counter(fd, files[m], &v);
		rate = m == RESCTRL_OCCUPANCY	? (double)v
		       : had && v >= s->last[m] ? (double)(v - s->last[m]) / seconds
						: INFINITY;
		s->last[m] = v;
		if (s->has[m] && rate < PLAUSIBLE)
			c->now[m] += rate;
		else
			c->unknown[m] = true;
	}
	if (fd >= 0)
		close(fd);
}

static void add_reading(struct resctrl_figures *f, int m, double v)
{
	f->of[m].sum += v;
	f->of[m].peak = fmax(f->of[m].peak, v);
	f->of[m].readings++;
}

static void read_counters(struct resctrl *r, double seconds)
{
	for (size_t i = 0; i < r->n_series; i++)
		read_series(r, &r->series[i], seconds);
	for (size_t i = 0; i < r->n_cells; i++) {
		struct cell *c = &r->cell[i];

		for (int m = 0; m < RESCTRL_MEASURES; m++) {
			if (c->groups && !c->unknown[m])
				add_reading(&c->pending, m, c->now[m]);
			c->now[m] = 0;
			c->unknown[m] = false;
		}
	}
}

/* --- whose the groups are --- */

static __u32 cell_get(struct resctrl *r, __u32 container, unsigned int complex)
{
	const __u64 key = (__u64)container << 32 | complex;
	__u32 at = u64_map_get(&r->cell_of, key);

	if (at != U64_MAP_NONE || r->n_cells >= CELLS)
		return at;
	at = r->n_cells;
	array_reserve(r->cell, r->room_cells, at + 1);
	r->cell[r->n_cells++] = (struct cell){ .container = container, .complex = complex };
	u64_map_put(&r->cell_of, key, at);
	return at;
}

/* "mon_L3_07"; -1: something else, or an L3 without CPUs */
static int complex_of_domain(const struct resctrl *r, const char *name)
{
	const struct num_arg arg = { .name = name, .max = INT32_MAX };
	const char *digits = name + strlen("mon_L3_");
	uint64_t id;

	if (strncmp(name, "mon_L3_", strlen("mon_L3_")) || strlen(digits) > 10 ||
	    digits[strspn(digits, "0123456789")] || num_parse(&arg, digits, &id, NULL))
		return -1;
	return topology_complex_of_l3(r->topology, (long)id);
}

/* Return: false if not all of it can be read. */
static bool add_domains(struct resctrl *r, const struct resctrl_group *g)
{
	int fd = resctrl_open_group(r->top, g),
	    data = fd < 0 ? -1 : resctrl_open_dir(fd, "mon_data");
	char *names[SERIES];
	size_t n = resctrl_list(data, names, SERIES);
	bool all = n && n < SERIES;

	if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < n; i++) {
		struct series s = {};
		int complex = complex_of_domain(r, names[i]);

		s.cell = complex < 0 ? U64_MAP_NONE : cell_get(r, g->owner, complex);
		all &= complex < 0 || (s.cell != U64_MAP_NONE && r->n_series < SERIES);
		if (all && complex >= 0) {
			s.group.name = xstrdup(g->name);
			s.group.inside = g->inside ? xstrdup(g->inside) : NULL;
			snprintf(s.domain, sizeof(s.domain), "%s", names[i]);
			s.key = u64_hash(u64_hash(g->id ^ text_hash(g->name)) ^
					 text_hash(g->inside ?: "/") ^ complex);
			array_reserve(r->series, r->room_series, r->n_series + 1);
			r->series[r->n_series++] = s;
		}
		free(names[i]);
	}
	return all;
}

static void carry_counters(struct resctrl *r, const struct series *old, size_t n)
{
	struct u64_map by_key = {};

	for (size_t i = 0; i < n; i++)
		u64_map_put(&by_key, old[i].key, i);
	for (size_t i = 0; i < r->n_series; i++) {
		__u32 at = u64_map_get(&by_key, r->series[i].key);

		if (at == U64_MAP_NONE)
			continue;
		memcpy(r->series[i].last, old[at].last, sizeof(old[at].last));
		memcpy(r->series[i].has, old[at].has, sizeof(old[at].has));
	}
	u64_map_free(&by_key);
}

/* Figures of groups that changed are forgotten. */
static void keep_figures(struct cell *c)
{
	const struct resctrl_figures *p = &c->pending;

	for (int m = 0; c->groups == c->groups_before && m < RESCTRL_MEASURES; m++) {
		c->known.of[m].sum += p->of[m].sum;
		c->known.of[m].peak = fmax(c->known.of[m].peak, p->of[m].peak);
		c->known.of[m].readings += p->of[m].readings;
	}
	c->pending = (struct resctrl_figures){};
}

static void look_at_tasks(struct resctrl *r)
{
	struct series *old = r->series;
	const size_t n_old = r->n_series;
	struct resctrl_map map;

	r->series = NULL;
	r->n_series = r->room_series = 0;
	r->owned = 0;
	resctrl_map_read(&map, r->top, &r->tasks);
	r->groups = map.n;
	for (size_t i = 0; i < map.n && map.complete; i++) {
		const struct resctrl_group *g = &map.group[i];

		if (g->owner == RESCTRL_NOBODY)
			continue;
		r->owned++;
		if (!add_domains(r, g))
			u64_map_put(&map.partial, g->owner, 1);
	}
	for (size_t i = 0; i < r->n_cells; i++) {
		r->cell[i].groups_before = r->cell[i].groups;
		r->cell[i].groups = 0;
	}
	for (size_t i = 0; i < r->n_series; i++) {
		struct cell *c = &r->cell[r->series[i].cell];

		if (u64_map_get(&map.partial, c->container) == U64_MAP_NONE)
			c->groups += r->series[i].key;
	}
	carry_counters(r, old, n_old);
	for (size_t i = 0; i < r->n_cells; i++)
		keep_figures(&r->cell[i]);
	resctrl_map_free(&map);
	free_series(old, n_old);
}

void resctrl_read(struct resctrl *r, double now_s, bool last)
{
	if (now_s - r->read_s >= SHORTEST) {
		read_counters(r, now_s - r->read_s);
		r->read_s = now_s;
	}
	if (r->readings++ % LOOK && !last)
		return;
	look_at_tasks(r);
}

bool resctrl_of(const struct resctrl *r, const char *container, unsigned int complex,
		struct resctrl_figures *out)
{
	const __u32 who = intern_find(&r->containers, container);
	const __u32 at = who == INTERN_NONE ? U64_MAP_NONE
					    : u64_map_get(&r->cell_of, (__u64)who << 32 | complex);
	bool known = false;

	if (at == U64_MAP_NONE)
		return false;
	*out = r->cell[at].known;
	for (int m = 0; m < RESCTRL_MEASURES; m++)
		known |= out->of[m].readings;
	return known;
}

void resctrl_groups(const struct resctrl *r, size_t *all, size_t *owned)
{
	*all = r->groups;
	*owned = r->owned;
}

void resctrl_text(const struct resctrl_figures *f, char *buf, size_t size)
{
	const bool traffic = f->of[RESCTRL_TOTAL].readings;
	size_t at = 0;

	*buf = 0;
	if (traffic)
		at = text_at(buf, size, at, "%.1f GB/s of memory traffic",
			     f->of[RESCTRL_TOTAL].peak / 1e9);
	if (f->of[RESCTRL_OCCUPANCY].readings)
		text_at(buf, size, at, "%s%.1f MiB of the L3", traffic ? ", " : "",
			f->of[RESCTRL_OCCUPANCY].peak / (1 << 20));
}
