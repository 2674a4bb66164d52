// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of a command line that select the samples of a row. */
#include "top_private.h"

#include "base/std.h"
#include "base/text.h"

#include <limits.h>

#define CPUS_TEXT 512
#define SPECIAL	  ",:*?[]!\\" /* an option would take these for more than a name */

static bool is_plain(const char *name)
{
	return !strpbrk(name, SPECIAL) && screen_is_repeatable(name);
}

static char *label_of(struct top *t, const struct group *g, enum label l)
{
	char *value = group_label(g, l, history_name, t->history);

	if (*value != '#' && !g->other)
		return value;
	free(value);
	return NULL;
}

static char *words(const char *option, const char *value)
{
	char *text = NULL;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	fprintf(f, " %s ", option);
	text_put_word(f, value);
	xmemclose(f);
	return text;
}

/* A cgroup without the groups below it, which have rows of their own; below the root there are always some. */
static char *cgroup_words(struct top *t, const char *path)
{
	const size_t n = strcmp(path, "/") ? strlen(path) : 0;
	char *below = n ? NULL : xstrdup("!/*"), *in = words("--cgroup", path), *out;

	for (size_t i = 0; i < t->shown.n_groups && !below; i++) {
		char *other = label_of(t, &t->shown.groups[i], LABEL_CGROUP);

		if (other && !strncmp(other, path, n) && other[n] == '/' && other[n + 1])
			below = xasprintf("!%.*s/*", (int)n, path);
		free(other);
	}
	if (!below)
		return in;
	out = words("--cgroup", below);
	free(below);
	below = xasprintf("%s%s", in, out);
	free(in);
	free(out);
	return below;
}

/* Whether all groups have a known cgroup: "!*" also selects the others. */
static bool all_known(struct top *t)
{
	bool known = true;

	for (size_t i = 0; known && i < t->shown.n_groups; i++) {
		char *container = label_of(t, &t->shown.groups[i], LABEL_CONTAINER);

		known = container != NULL;
		free(container);
	}
	return known;
}

/* Containers of several pods may have one name. */
static char *container_words(struct top *t, const struct group *g, unsigned int labels)
{
	char *container = label_of(t, g, LABEL_CONTAINER), *pod = label_of(t, g, LABEL_POD);
	const bool by_pod = labels >> LABEL_POD & 1 && pod && strchr(pod, '/');
	char *name = NULL, *out = NULL;

	if (!(labels >> LABEL_CONTAINER & 1))
		name = by_pod ? xstrdup(pod) : NULL;
	else if (container && *container)
		name = by_pod ? xasprintf("%s/%s", pod, container) : xstrdup(container);
	else if (container && !(labels >> LABEL_CGROUP & 1) && all_known(t))
		out = words("--container", "!*");
	if (name && is_plain(name))
		out = words("--container", name);
	free(name);
	free(container);
	free(pod);
	return out;
}

/* Whether another pod has a container of this name, too, and the option cannot say which: only the pod's uid is known. */
static bool is_shared(struct top *t, const struct group *g, unsigned int labels)
{
	char *container = label_of(t, g, LABEL_CONTAINER), *pod = label_of(t, g, LABEL_POD);
	const unsigned int both = 1U << LABEL_CONTAINER | 1U << LABEL_POD;
	const bool by_name =
		(labels & both) == both && container && *container && pod && !strchr(pod, '/');
	bool shared = false;

	for (size_t i = 0; by_name && !shared && i < t->shown.n_groups; i++) {
		char *name = label_of(t, &t->shown.groups[i], LABEL_CONTAINER);
		char *other = label_of(t, &t->shown.groups[i], LABEL_POD);

		shared = name && other && !strcmp(name, container) && strcmp(other, pod) != 0;
		free(name);
		free(other);
	}
	free(container);
	free(pod);
	return shared;
}

/* A number that is a label of @g; -1: it is not a label of the row, or unknown. */
static int number_of(struct top *t, const struct group *g, unsigned int labels, enum label l)
{
	char *value = labels >> l & 1 ? label_of(t, g, l) : NULL, *end;
	long n = value ? strtol(value, &end, 10) : -1;

	n = value && (*end || !*value || n < 0 || n > INT_MAX) ? -1 : n;
	free(value);
	return n;
}

/* The CPUs of a complex or a node. */
static char *cpu_words(struct top *t, const struct group *g, unsigned int labels)
{
	const int complex = number_of(t, g, labels, LABEL_CCX);
	const int node = number_of(t, g, labels, LABEL_NODE);
	char list[CPUS_TEXT];

	if (complex < 0 && node < 0)
		return NULL;
	return places_list(&t->opts.info->places, complex, node, t->opts.cpus, list, sizeof(list))
		       ? words("-C", list)
		       : NULL;
}

static char *option_words(struct top *t, const struct group *g, unsigned int labels,
			  const struct table_option *o)
{
	char *value, *container, *out = NULL;
	bool contained;

	if (o->label == LABEL_CONTAINER)
		return container_words(t, g, labels);
	if (o->label == LABEL_CPU && !(labels >> LABEL_CPU & 1))
		return cpu_words(t, g, labels);
	if (!(labels >> o->label & 1))
		return NULL;
	value = label_of(t, g, o->label);
	container = label_of(t, g, LABEL_CONTAINER);
	/* a container is more than the path that it has now */
	contained = labels & TABLE_JOINED && container && *container;
	if (o->label == LABEL_CGROUP && value && !contained && is_plain(value))
		out = cgroup_words(t, *value ? value : "/");
	else if (o->label != LABEL_CGROUP && value && *value && is_plain(value))
		out = words(o->option, value);
	free(value);
	free(container);
	return out;
}

/* A CPU has one complex and one node. */
static unsigned int selected_by(enum label l)
{
	return l == LABEL_CPU ? 1U << LABEL_CPU | 1U << LABEL_CCX | 1U << LABEL_NODE : 1U << l;
}

void top_zoom_options(struct top *t, struct top_zoom *z)
{
	unsigned int left = z->labels & ~LABELS_PAIR;
	bool any = false;

	if (t->opts.info->unselectable)
		return;
	for (size_t i = 0; i < t->shown.n_groups; i++) {
		const struct group *g = &t->shown.groups[i];

		if (table_group_hash(g, z->labels, history_name, t->history) != z->hash)
			continue;
		for (size_t o = 0; o < TABLE_OPTIONS; o++) {
			z->option[o] = option_words(t, g, z->labels, &table_options[o]);
			if (z->option[o])
				left &= ~selected_by(table_options[o].label);
			any |= z->option[o] != NULL;
		}
		/* the cgroup, the container and the pod of a row are one thing */
		z->selected = any && !(left & ~TABLE_LABELS) && !is_shared(t, g, z->labels);
		return;
	}
}
