// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which cgroups fit what was said of them, and what that makes of each. */
#include "cgroup_terms.h"

#include "container_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a kind says of a cgroup and, if nothing is said of one further down, what is below. */
struct choice {
	bool named, out;
	__u16 min_lat;
};

void hits_free(struct hits *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->hit[i].path);
	free(h->hit);
}

static struct hit *add_hit(struct hits *h, const struct term *t, __u64 id, const char *path)
{
	struct hit *more;

	if (h->n == h->room) {
		h->room = h->room * 2 + 64;
		more = reallocarray(h->hit, h->room, sizeof(*more));
		if (!more)
			return NULL;
		h->hit = more;
	}
	more = &h->hit[h->n];
	*more = (struct hit){ .id = id, .term = t, .path = path ? strdup(path) : NULL };
	if (path && !more->path)
		return NULL;
	h->n++;
	return more;
}

static int add_path(uint64_t id, const char *path, void *arg)
{
	struct look *l = arg;

	return add_hit(&l->hits, l->term, id, l->paths ? path : NULL) ? 0 : -ENOMEM;
}

bool cgroup_term_is_pattern(const char *text)
{
	return strpbrk(text, "*?[");
}

static bool matches_text(const struct term *t, const struct container *c,
			 const struct container_name *name)
{
	if (t->pattern || !cgroup_term_is_pattern(t->text))
		return container_matches(t->text, c, name);
	return !strcmp(t->text, name->container); /* of --filter with "==" */
}

static bool matches_id(const struct term *t, const struct container *c)
{
	if (!*c->id)
		return false;
	if (*t->id)
		return !strcmp(t->id, c->id);
	return container_is_id_prefix(t->text) && !strncmp(t->text, c->id, strlen(t->text));
}

/* A cgroup that may be a container's own, or a pod's. */
static int look_at_container(uint64_t id, const char *path, void *arg)
{
	struct look *l = arg;
	struct cgroup_terms *ts = l->s->terms;
	const struct container_name *name;
	struct container c;

	if (!container_of_path(path, &c) || path[c.path_len])
		return 0;
	name = container_names_find(l->s->names, path, &c);
	ts->nameless += *c.id && !*name->container;
	for (size_t i = 0; i < ts->n; i++) {
		const struct term *t = &ts->term[i];
		bool by_id = t->container && matches_id(t, &c);
		struct hit *hit;

		if (!t->container || (!by_id && (*t->id || !matches_text(t, &c, name))))
			continue;
		hit = add_hit(&l->hits, t, id, l->paths ? path : NULL);
		if (!hit)
			return -ENOMEM;
		hit->by_id = by_id && !matches_text(t, &c, name);
		strcpy(hit->container, c.id);
	}
	return 0;
}

/* Of a name that is one, what only begins so is not meant. */
static void drop_by_id(struct hits *h, const struct term *t)
{
	bool named = false;
	size_t n = 0;

	if (*t->id)
		return;
	for (size_t i = 0; i < h->n; i++)
		named |= h->hit[i].term == t && !h->hit[i].by_id;
	for (size_t i = 0; i < h->n; i++) {
		if (named && h->hit[i].term == t && h->hit[i].by_id)
			free(h->hit[i].path);
		else
			h->hit[n++] = h->hit[i];
	}
	h->n = n;
}

int hits_look(struct look *l)
{
	struct sampling *s = l->s;
	struct cgroup_terms *ts = s->terms;
	int ret = 0;

	l->paths = (ts->kinds & TERM_SELECTING) == TERM_SELECTING;
	ts->nameless = 0;
	if (ts->containers || ts->labels)
		ret = cgroup_tree_each(s->tree, look_at_container, l);
	for (size_t i = 0; !ret && i < ts->n; i++) {
		const struct term *t = &ts->term[i];
		uint64_t id;

		l->term = t;
		if (t->container) {
			drop_by_id(&l->hits, t);
		} else if (t->pattern) {
			ret = cgroup_glob(s->tree, t->text, add_path, l);
			ret = ret < 0 ? ret : 0;
		} else if (!cgroup_id_of_path(s->tree, t->text, &id, NULL)) {
			ret = add_path(id, cgroup_tree_path(s->tree, id), l);
		}
	}
	return ret;
}

/* --- from what fits to a selection --- */

static int hits_by_path(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return strcmp(a->path ?: "", b->path ?: "");
}

static int hits_by_id(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

static void choose(struct choice *c, const struct term *t)
{
	c->out = t->out || (c->named && c->out);
	c->named = true;
	if (t->min_lat > c->min_lat)
		c->min_lat = t->min_lat;
}

/* What @kind says of a path, which is cut down: the longest part of it that the kind names rules. */
static struct choice choice_at(const struct hits *by_path, const struct cgroup_terms *ts,
			       enum term_kind kind, char *path)
{
	struct choice c = { .out = ts->wants >> kind & 1 };
	struct hit want = { .path = path };

	for (;;) {
		struct hit *h =
			bsearch(&want, by_path->hit, by_path->n, sizeof(want), hits_by_path);
		char *slash = strrchr(path, '/');

		while (h && h > by_path->hit && !hits_by_path(h - 1, &want))
			h--;
		for (; h && h < by_path->hit + by_path->n && !hits_by_path(h, &want); h++)
			if (h->term->kind == kind)
				choose(&c, h->term);
		if (c.named || !path[1] || !slash)
			return c;
		slash[slash == path] = 0;
	}
}

/*
 * Two kinds must both agree. Each says something of the cgroups it names; said of those that the
 * other names too, the deepest that either names tells what both say of all below.
 */
static int agree(const struct cgroup_terms *ts, struct hits *h, struct selected_cgroup *sel,
		 const char *path)
{
	char *part = strdup(path);

	if (!part)
		return -ENOMEM;
	for (enum term_kind kind = 0; kind < TERM_SELECTS; kind++) {
		struct choice c = choice_at(h, ts, kind, strcpy(part, path));

		sel->out |= c.out;
		if (c.min_lat > sel->min_lat)
			sel->min_lat = c.min_lat;
	}
	free(part);
	return 0;
}

int hits_select(struct cgroup_terms *ts, struct hits *h, struct selected_cgroup **out,
		size_t *n_out)
{
	struct hits by_path = { NULL };
	struct selected_cgroup *sel = calloc(h->n + 1, sizeof(*sel));
	bool any_in = false;
	size_t n = 0;
	int err = 0;

	if (!sel)
		return -ENOMEM;
	if ((ts->kinds & TERM_SELECTING) == TERM_SELECTING && h->n) {
		by_path.hit = malloc(h->n * sizeof(*by_path.hit));
		if (!by_path.hit) {
			free(sel);
			return -ENOMEM;
		}
		memcpy(by_path.hit, h->hit, h->n * sizeof(*h->hit));
		by_path.n = h->n;
		qsort(by_path.hit, by_path.n, sizeof(*by_path.hit), hits_by_path);
	}
	if (h->n)
		qsort(h->hit, h->n, sizeof(*h->hit), hits_by_id);
	for (size_t i = 0, next; i < h->n; i = next) {
		struct selected_cgroup *one = &sel[n++];
		struct choice c = { 0 };

		one->id = h->hit[i].id;
		for (next = i; next < h->n && h->hit[next].id == one->id; next++) {
			one->filter |= h->hit[next].term->filter;
			if (h->hit[next].term->kind != TERM_FILTER)
				choose(&c, h->hit[next].term);
		}
		one->filter_only = !c.named;
		one->out = c.out;
		one->min_lat = c.min_lat;
		if (c.named && by_path.n && h->hit[i].path)
			err = err ?: agree(ts, &by_path, one, h->hit[i].path);
		any_in |= !one->filter_only && !one->out;
	}
	free(by_path.hit);
	if (err) {
		free(sel);
		return err;
	}
	if (!any_in && ts->wants & TERM_SELECTING)
		n++; /* id 0: what is wanted is not there, so nothing is */
	*out = sel;
	*n_out = n;
	return 0;
}
