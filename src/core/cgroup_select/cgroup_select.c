// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_select.h"
#include "cgroup_terms.h"

#define SUGGESTED 5 /* names in a message */

struct cgroup_select {
	struct cgroup_source src;
	struct terms terms;
	ssize_t *depth; /* how much of the current path each term names, or -1 */
	struct selected_cgroup *result;
	size_t n, room;
	__u64 other;
	bool names;
	size_t nameless;
};

/* --- resolving terms --- */

/* A path to search for containers. */
struct visit {
	struct cgroup_select *s;
	const char *path;
};

/* Of two containers with the same id, the one of root's runtime on this machine is real. */
static void note_id(struct term *t, const struct container *c)
{
	if (!*t->container_id) {
		strcpy(t->container_id, c->id);
		t->container_uid = c->uid;
		t->nested = c->depth > 1;
	} else if (strcmp(t->container_id, c->id)) {
		strcpy(t->second_id, c->id);
	} else if (!c->uid && c->depth == 1) {
		t->container_uid = 0;
		t->nested = false;
	}
}

static int each_container(struct visit *v, __u64 id, container_cb *cb)
{
	const struct cgroup_source *src = &v->s->src;
	struct container_owner owner;
	struct container c;

	if (!v->path)
		return 0;
	if (src->owner)
		src->owner(src->arg, id, &owner);
	return container_each(v->path, src->owner ? &owner : NULL, &c, cb, v);
}

static int note_container(void *arg, const struct container *c)
{
	struct visit *v = arg;
	struct cgroup_select *s = v->s;
	const struct container_name *name;

	/* skip outer containers: they are visited, too, except in recordings */
	if (v->path[c->path_len] && !s->src.recorded)
		return 0;
	name = s->src.name(s->src.names, v->path, c);
	s->nameless += container_is_nameless(c, name);
	for (size_t i = 0; i < s->terms.n; i++) {
		struct term *t = &s->terms.term[i];

		if (!t->container)
			continue;
		if (!t->pinned && term_names(t, c, name)) {
			t->named = t->found = true;
		} else if (term_has_id(t, c, name)) {
			t->found = true;
			if (!t->glob && !t->pinned)
				note_id(t, c);
		}
	}
	return 0;
}

static int note_containers(uint64_t id, const char *path, void *arg)
{
	struct visit *v = arg;

	v->path = path;
	return each_container(v, id, note_container);
}

static ssize_t path_len(const char *path)
{
	return path && path[1] ? strlen(path) : 0; /* of the root: 0 */
}

static void forget(struct term *t)
{
	free(t->path);
	t->path = NULL;
	t->id = 0;
	t->found = t->named = false;
	*t->second_id = 0;
	if (!t->pinned)
		*t->container_id = 0;
}

static int find_names(struct cgroup_select *s)
{
	struct visit v = { .s = s };
	struct err ignored;
	int ret = 0;

	s->nameless = 0;
	for (size_t i = 0; i < s->terms.n; i++) {
		struct term *t = &s->terms.term[i];

		forget(t);
		if (t->container || t->glob)
			continue;
		t->found = !s->src.find(s->src.arg, t->text, &t->id, &t->path, &ignored);
		t->path_len = path_len(t->path);
	}
	if (s->terms.containers || s->names)
		ret = s->src.each(s->src.arg, note_containers, &v);
	/* from now on the digits mean this container, unless they are a container's name */
	for (size_t i = 0; i < s->terms.n; i++) {
		struct term *t = &s->terms.term[i];

		t->pinned = *t->container_id && !*t->second_id && !t->named;
	}
	return ret;
}

/* --- applying terms to a cgroup --- */

static bool fits(const struct term *t, const struct container *c, const struct container_name *name)
{
	if (!t->pinned && term_names(t, c, name))
		return true;
	return (t->glob || !t->named) && term_has_id(t, c, name);
}

static int measure_container(void *arg, const struct container *c)
{
	struct visit *v = arg;
	struct cgroup_select *s = v->s;
	const struct container_name *name = s->src.name(s->src.names, v->path, c);

	for (size_t i = 0; i < s->terms.n; i++)
		if (s->terms.term[i].container && fits(&s->terms.term[i], c, name))
			s->depth[i] = c->path_len;
	return 0;
}

static ssize_t depth_of(const struct term *t, __u64 id, const char *path)
{
	if (t->container)
		return -1;
	if (t->glob)
		return path ? cgroup_pattern_deepest(t->pattern, path) : -1;
	if (!t->found)
		return -1;
	if (t->path && path && !strncmp(path, t->path, t->path_len) &&
	    (!t->path_len || !path[t->path_len] || path[t->path_len] == '/'))
		return t->path_len;
	return id && id == t->id ? path_len(path) : -1;
}

/* Set s->depth, how much of a path each term names. Return: whether any names all of it. */
static bool measure_depths(struct cgroup_select *s, __u64 id, const char *path)
{
	const ssize_t len = path_len(path);
	struct visit v = { .s = s, .path = path };
	bool whole = false;

	for (size_t i = 0; i < s->terms.n; i++) {
		s->depth[i] = depth_of(&s->terms.term[i], id, path);
		s->terms.term[i].found |= s->depth[i] >= 0;
	}
	if (s->terms.containers)
		each_container(&v, id, measure_container);
	for (size_t i = 0; i < s->terms.n; i++)
		whole |= s->depth[i] == len;
	return whole;
}

/* A kind excludes the cgroup explicitly, or by listing only others. */
static void decide_kind(const struct cgroup_select *s, enum term_kind kind,
			struct selected_cgroup *sel)
{
	ssize_t deepest = -1;
	__u16 min_lat = 0;
	bool in = false;

	for (size_t i = 0; i < s->terms.n; i++) {
		const struct term *t = &s->terms.term[i];

		if (t->kind != kind || s->depth[i] < 0)
			continue;
		sel->filter_only = false;
		sel->out |= t->out;
		in |= !t->out;
		/* of nested cgroups, the innermost sets the minimum latency */
		if (!t->out && s->depth[i] >= deepest) {
			min_lat = s->depth[i] > deepest || t->min_lat > min_lat ? t->min_lat
										: min_lat;
			deepest = s->depth[i];
		}
	}
	sel->out |= s->terms.wanted[kind] && !in;
	if (min_lat > sel->min_lat)
		sel->min_lat = min_lat;
}

/* Decide about a cgroup from s->depth. */
static void decide(const struct cgroup_select *s, struct selected_cgroup *sel)
{
	sel->filter_only = true;
	for (size_t i = 0; i < s->terms.n; i++)
		if (s->depth[i] >= 0)
			sel->filter |= s->terms.term[i].filter;
	for (enum term_kind kind = 0; kind < TERM_FILTER; kind++)
		decide_kind(s, kind, sel);
	if (sel->filter_only)
		sel->out = false;
}

/* --- the result --- */

static struct selected_cgroup *add_entry(struct cgroup_select *s, __u64 id)
{
	array_reserve(s->result, s->room, s->n + 1);
	s->result[s->n] = (struct selected_cgroup){ .id = id };
	return &s->result[s->n++];
}

/* The sampler walks up to the nearest ancestor with an entry; the replay does not. */
static int add_cgroup(uint64_t id, const char *path, void *arg)
{
	struct cgroup_select *s = arg;
	bool whole = measure_depths(s, id, path);

	if (s->src.recorded)
		for (size_t i = 0; i < s->terms.n; i++)
			whole |= s->depth[i] >= 0;
	if (whole)
		decide(s, add_entry(s, id));
	return 0;
}

static int by_id(const void *pa, const void *pb)
{
	const struct selected_cgroup *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* Several terms can name a cgroup. */
static void make_unique(struct cgroup_select *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->result, s->n, sizeof(*s->result), by_id);
	for (size_t i = 0; i < s->n; i++)
		if (!n || s->result[n - 1].id != s->result[i].id)
			s->result[n++] = s->result[i];
	s->n = n;
}

static int add_all(struct cgroup_select *s)
{
	int ret = 0;

	if (s->src.recorded || s->terms.patterns || s->terms.containers)
		ret = s->src.each(s->src.arg, add_cgroup, s);
	for (size_t i = 0; !ret && !s->src.recorded && i < s->terms.n; i++)
		if (s->terms.term[i].id)
			ret = add_cgroup(s->terms.term[i].id, s->terms.term[i].path, s);
	return ret;
}

/* Add entries for samples outside of the listed cgroups. */
static void add_defaults(struct cgroup_select *s)
{
	bool wanted = s->terms.wanted[TERM_CGROUP] || s->terms.wanted[TERM_CONTAINER];

	for (size_t i = 0; i < s->n; i++)
		wanted &= s->result[i].out || s->result[i].filter_only;
	if (wanted) /* cgroups are selected, but none exist */
		add_entry(s, 0);
	if (s->other && s->terms.selects)
		add_entry(s, s->other)->out = true;
}

static int resolve(struct cgroup_select *s)
{
	int ret = find_names(s);

	s->n = 0;
	if (!ret && s->terms.n)
		ret = add_all(s);
	make_unique(s);
	if (!ret && s->terms.n)
		add_defaults(s);
	return ret;
}

/* --- names that match nothing --- */

struct suggestions {
	struct visit visit; /* first: see suggest() */
	const char *want;
	size_t known, named, n;
	char text[512];
};

static int suggest(void *arg, const struct container *c)
{
	struct suggestions *g = arg;
	const struct cgroup_source *src = &g->visit.s->src;
	const struct container_name *name;
	bool in_pod;
	size_t at;

	if (!*c->id || (g->visit.path[c->path_len] && !src->recorded))
		return 0;
	name = src->name(src->names, g->visit.path, c);
	g->known += *name->container || container_is_nameless(c, name);
	if (!*name->container)
		return 0;
	g->named++;
	if (g->n == SUGGESTED ||
	    (!strcasestr(name->container, g->want) && !strcasestr(g->want, name->container) &&
	     strncasecmp(g->want, name->container, 3)))
		return 0;
	at = strlen(g->text);
	in_pod = *name->pod && *name->ns;
	snprintf(g->text + at, sizeof(g->text) - at, "%s%s%s%s%s%s",
		 g->n ? ", " : ": did you mean ", in_pod ? name->ns : "", in_pod ? "/" : "",
		 in_pod ? name->pod : "", in_pod ? "/" : "", name->container);
	g->n++;
	return 0;
}

static int suggest_of(uint64_t id, const char *path, void *arg)
{
	struct suggestions *g = arg;

	g->visit.path = path;
	return each_container(&g->visit, id, suggest);
}

static int no_container(struct cgroup_select *s, const struct term *t, struct err *err)
{
	struct suggestions g = { .visit.s = s, .want = strrchr(t->text, '/') };

	g.want = g.want ? g.want + 1 : t->text;
	s->src.each(s->src.arg, suggest_of, &g);
	if (s->src.recorded)
		return err_set(err, -ENOENT, "%s: no container '%s' in the recording%s%s",
			       t->option, t->text, g.text, *g.text ? "?" : "");
	return err_set(err, -ENOENT,
		       "%s: no container '%s' is running (%zu of %zu containers have a known "
		       "name)%s%s",
		       t->option, t->text, g.named, g.known, g.text, *g.text ? "?" : "");
}

static int no_cgroup(struct cgroup_select *s, const struct term *t, struct err *err)
{
	char *path = NULL;
	__u64 id;
	int ret = s->src.find(s->src.arg, t->text, &id, &path, err);

	free(path);
	if (!ret)
		return 0; /* it was created just now */
	err_prefix(err, "%s", t->option);
	return -ENOENT;
}

static int check_term(struct cgroup_select *s, const struct term *t, bool wait, struct err *err)
{
	const int digits = strlen(t->text) + 4 > 12 ? strlen(t->text) + 4 : 12;
	const char *what = t->container ? "container" : "cgroup";

	if (*t->second_id && !t->named)
		return err_set(err, -ENOTUNIQ,
			       "%s: '%s' begins the ids of several containers, such as %.*s and "
			       "%.*s; give more digits",
			       t->option, t->text, digits, t->container_id, digits, t->second_id);
	if (t->found)
		return 0;
	if (s->src.recorded && (t->glob || t->kind == TERM_FILTER)) {
		log_warn("%s: no %s in the recording %s '%s'", t->option, what,
			 t->glob ? "matches" : "is", t->text);
		return 0;
	}
	if (t->glob || wait) {
		log_info("%s: no %s %s '%s' yet; waiting for it", t->option, what,
			 t->glob ? "matches" : "is named", t->text);
		return 0;
	}
	return t->container ? no_container(s, t, err) : no_cgroup(s, t, err);
}

size_t cgroup_select_missing(const struct cgroup_select *s, missing_cb *cb, void *arg)
{
	size_t n = 0;

	for (size_t i = 0; i < s->terms.n; i++) {
		const struct term *t = &s->terms.term[i];

		if (t->found)
			continue;
		n++;
		if (cb)
			cb(arg, t->option, t->text);
	}
	return n;
}

/* --- public functions --- */

int cgroup_select_open(const struct cgroup_source *src, const struct cgroup_select_opts *o,
		       struct cgroup_select **out, struct err *err)
{
	struct cgroup_select *s = xcalloc(1, sizeof(*s));
	int ret;

	s->src = *src;
	s->other = o->other;
	s->names = o->names;
	ret = terms_parse(&s->terms, src, o, err);
	if (!ret) {
		s->depth = xcalloc(s->terms.n, sizeof(*s->depth));
		ret = resolve(s);
		if (ret)
			err_set(err, ret, "cannot read cgroups: %s", strerror(-ret));
	}
	for (size_t i = 0; !ret && i < s->terms.n; i++)
		ret = check_term(s, &s->terms.term[i], o->wait, err);
	if (ret)
		cgroup_select_close(s);
	else
		*out = s;
	return ret;
}

static bool same(const struct selected_cgroup *a, const struct selected_cgroup *b)
{
	return a->id == b->id && a->min_lat == b->min_lat && a->out == b->out &&
	       a->filter_only == b->filter_only && a->filter == b->filter;
}

int cgroup_select_update(struct cgroup_select *s)
{
	struct selected_cgroup *old = s->result;
	size_t n = s->n, room = s->room;
	bool differs;
	int ret;

	s->result = NULL;
	s->n = s->room = 0;
	ret = resolve(s);
	if (ret) {
		free(s->result);
		s->result = old;
		s->n = n;
		s->room = room;
		return ret;
	}
	differs = n != s->n;
	for (size_t i = 0; !differs && i < n; i++)
		differs = !same(&old[i], &s->result[i]);
	free(old);
	return differs;
}

const struct selected_cgroup *cgroup_select_result(const struct cgroup_select *s, size_t *n)
{
	*n = s->n;
	return s->result;
}

bool cgroup_select_any(const struct cgroup_select *s)
{
	return s->terms.n;
}

unsigned int cgroup_select_live(const struct cgroup_select *s)
{
	unsigned int live = s->terms.selects ? SAMPLER_LIVE_CGROUPS
			    : s->terms.n     ? SAMPLER_LIVE_FILTER
					     : 0;

	for (size_t i = 0; i < s->terms.n; i++)
		if (s->terms.term[i].min_lat)
			live |= SAMPLER_LIVE_LATENCY;
	return live;
}

size_t cgroup_select_nameless(const struct cgroup_select *s)
{
	return s->nameless;
}

void cgroup_select_close(struct cgroup_select *s)
{
	if (!s)
		return;
	terms_free(&s->terms);
	free(s->depth);
	free(s->result);
	free(s);
}
