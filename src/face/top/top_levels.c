// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What rows can be, and going into one of them and out again. */
#include "top_private.h"
#include "base/std.h"

#include "base/utf8.h"

#define L(name) (1U << LABEL_##name)

enum { CONTAINERS, PODS, CGROUPS, PROCESSES, THREADS, COMMS, SYMBOLS, CPUS, COMPLEXES, NODES };

static const struct {
	const char *name;
	unsigned int labels;
	int inside; /* the level that Enter goes to; -1: none */
} levels[] = {
	[CONTAINERS] = { "container", TABLE_LABELS, PROCESSES },
	[PODS] = { "pod", L(POD), CONTAINERS },
	[CGROUPS] = { "cgroup", L(CGROUP), PROCESSES },
	[PROCESSES] = { "process", L(PID) | L(COMM), THREADS },
	[THREADS] = { "thread", L(TID) | L(COMM), SYMBOLS },
	[COMMS] = { "comm", L(COMM), PROCESSES },
	[SYMBOLS] = { "symbol", L(SYMBOL), -1 },
	[CPUS] = { "CPU", L(CPU), PROCESSES },
	[COMPLEXES] = { "L3 complex", L(CCX), CPUS },
	[NODES] = { "node", L(NODE), COMPLEXES },
};
#define LEVELS (int)(sizeof(levels) / sizeof(levels[0]))

/* What Enter goes to instead of processes, for keys with others of their own in a command line. */
static const struct {
	enum label label;
	const char *option;
} zoom_options[] = {
	{ LABEL_PID, "-p" },	      { LABEL_TID, "-t" },
	{ LABEL_CPU, "-C" },	      { LABEL_CONTAINER, "--container" },
	{ LABEL_CGROUP, "--cgroup" }, { LABEL_COMM, "--comm" },
};

static int level_of(unsigned int labels)
{
	for (int i = 0; i < LEVELS; i++)
		if (levels[i].labels == labels)
			return i;
	return -1;
}

unsigned int top_row_labels(const struct top *t)
{
	return t->level < 0 ? t->opts.labels : levels[t->level].labels;
}

const char *top_level_name(const struct top *t)
{
	return t->level < 0 ? "key" : levels[t->level].name;
}

unsigned int top_labels(const struct top *t)
{
	unsigned int labels = top_row_labels(t);

	for (unsigned int i = 0; i < t->n_zooms; i++)
		labels |= t->zoom[i].labels;
	return labels;
}

bool top_in_zoom(struct top *t, const struct group *g)
{
	for (unsigned int i = 0; i < t->n_zooms; i++)
		if (table_group_hash(g, t->zoom[i].labels, history_name, t->history) !=
		    t->zoom[i].hash)
			return false;
	return true;
}

bool top_in_row(struct top *t, const struct group *g)
{
	return top_in_zoom(t, g) && table_group_hash(g, top_row_labels(t), history_name,
						     t->history) == t->hash[t->cursor];
}

const char *top_function(struct top *t)
{
	top_update(t);
	return t->level == SYMBOLS && t->cursor < t->table.n - t->table.n_rest
		       ? t->table.row[t->cursor].name[LABEL_SYMBOL]
		       : NULL;
}

static void clear_zoom(struct top_zoom *z)
{
	free(z->name);
	free(z->option);
	memset(z, 0, sizeof(*z));
}

static void go_to(struct top *t, int level)
{
	t->level = level;
	t->has_selected = false;
	t->cursor = t->first = 0;
	t->fresh = false;
}

/* Can the source tell them apart? */
static bool possible(const struct top *t, int level)
{
	const unsigned int labels = levels[level].labels & ~TABLE_JOINED;

	if (labels & L(COMM) && top_labels(t) & L(SLAB))
		return false; /* no counter has both */
	return !(labels_by(labels) & ~t->opts.info->by_possible);
}

void top_cycle(struct top *t)
{
	for (int i = 1; i <= LEVELS; i++) {
		int level = (t->level + i) % LEVELS;

		if (!possible(t, level))
			continue;
		go_to(t, level);
		return;
	}
}

static char *quote(const char *option, const char *value)
{
	char *text = NULL;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	fprintf(f, " %s ", option);
	if (*value && !value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_-./:@%+=,")]) {
		fputs(value, f);
	} else {
		fputc('\'', f);
		for (; *value; value++)
			fputs(*value == '\'' ? "'\\''" : (char[]){ *value, 0 }, f);
		fputc('\'', f);
	}
	xmemclose(f);
	return text;
}

/* The option that selects what the row is of. */
static char *zoom_option(struct top *t, unsigned int labels, __u64 hash)
{
	for (size_t i = 0; i < t->shown.n_groups; i++) {
		const struct group *g = &t->shown.groups[i];

		if (table_group_hash(g, labels, history_name, t->history) != hash)
			continue;
		for (size_t o = 0; o < sizeof(zoom_options) / sizeof(zoom_options[0]); o++) {
			enum label l = zoom_options[o].label;
			char *value = labels >> l & 1 ? group_label(g, l, history_name, t->history)
						      : NULL;
			char *out = value && *value && *value != '#' && !g->other
					    ? quote(zoom_options[o].option, value)
					    : NULL;

			free(value);
			if (out)
				return out;
		}
	}
	return xstrdup("");
}

void top_zoom_in(struct top *t)
{
	int inside = t->level < 0 ? PROCESSES : levels[t->level].inside;
	struct top_zoom *z = &t->zoom[t->n_zooms];
	const struct table_row *r;

	top_update(t);
	if (t->cursor >= t->table.n - t->table.n_rest)
		return;
	if (inside < 0 || t->n_zooms == TOP_ZOOMS) {
		top_say(t, "there is nothing inside a %s", top_level_name(t));
		return;
	}
	if (!possible(t, inside)) {
		if (inside == SYMBOLS)
			top_say(t,
				"counters keep no symbols: make a recording with `ibscope record`, "
				"see it with `ibscope top -i FILE`");
		else
			top_say(t, "%s does not group by %s", t->opts.info->origin,
				levels[inside].name);
		return;
	}
	r = &t->table.row[t->cursor];
	*z = (struct top_zoom){ .labels = top_row_labels(t), .hash = t->hash[t->cursor] };
	for (int l = 0; l < TABLE_NAMES; l++) {
		char *name;

		if (!r->name[l])
			continue;
		name = xasprintf("%s%s%s", z->name ?: "", z->name ? " " : "", r->name[l]);
		free(z->name);
		z->name = name;
	}
	z->option = zoom_option(t, z->labels, z->hash);
	t->n_zooms++;
	go_to(t, inside);
}

void top_zoom_out(struct top *t)
{
	struct top_zoom *z = &t->zoom[--t->n_zooms];

	go_to(t, level_of(z->labels));
	t->selected = z->hash;
	t->has_selected = true;
	clear_zoom(z);
}

void top_leave_zooms(struct top *t)
{
	while (t->n_zooms)
		clear_zoom(&t->zoom[--t->n_zooms]);
}

void top_first_level(struct top *t)
{
	t->level = t->opts.labels ? level_of(t->opts.labels) : CONTAINERS;
	if (t->level >= 0 && !possible(t, t->level))
		top_cycle(t);
}

void top_command(const struct top *t, char *out, size_t size)
{
	unsigned int labels = top_row_labels(t) & ~TABLE_JOINED;
	const char *sep = " --by ";
	size_t n = snprintf(out, size, "%s", t->opts.command);

#define ADD(...) (n += n < size ? snprintf(out + n, size - n, __VA_ARGS__) : 0)
	for (unsigned int i = 0; i < t->n_zooms; i++)
		ADD("%s", t->zoom[i].option);
	for (int l = 0; t->level && l < LABEL_N; l++) {
		if (!(labels >> l & 1))
			continue;
		ADD("%s%s", sep, label_name(l));
		sep = ",";
	}
	if (t->sort != TABLE_CYCLES)
		ADD(" --sort %s", t->sort == SORT_NAME ? "name" : table_column_name(t->sort));
	if (t->opts.reverse)
		ADD(" --reverse");
	if (*t->opts.match) {
		char *match = quote("--match", t->opts.match);

		ADD("%s", match);
		free(match);
	}
	ADD(" -d %g", t->opts.interval_s);
#undef ADD
}
