// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From what --cgroup, --container and --filter say of cgroups to ids, at the start and as cgroups
 * come and go. What is named exactly must be there at the start; a pattern may wait for its first.
 */
#include "cgroup_terms.h"

#include "container_names.h"

#include "cgroup_hierarchy.h"
#include "clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The tree is looked through for a tenth of the time at most, and for names twice a second. */
#define LOOK_SHARE 10
#define NAMELESS_S 0.5
#define SUGGESTED  5 /* names in a message */

#define CONTAINER_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-*?[]!^/"

int sampling_open_tree(struct sampling *s, struct err *err)
{
	struct cgroup_fs fs;
	int ret = cgroup_hierarchy_choose("", s->hierarchy ? s->hierarchy : "auto", &fs, err);

	if (ret) {
		err_prefix(err, "--cgroup-hierarchy");
		return sampling_usage_error(s, ret == -ENOENT ? -EINVAL : ret);
	}
	ret = cgroup_tree_open_at("", &fs, &s->tree, err);
	if (ret)
		return ret;
	if (*fs.controller)
		log_info("cgroups are those of the v1 hierarchy of %s at %s", fs.controller,
			 fs.path);
	s->opts.cgroup_controller = cgroup_tree_fs(s->tree)->controller;
	if ((s->opts.by & IBS_BY_CGROUP) && !cgroup_tree_per_cgroup(s->tree))
		log_warn("no cgroup hierarchy is mounted: all samples belong to '/'");
	return 0;
}

/* --- terms --- */

static int check_container(const struct term *t, struct err *err)
{
	const char *slash = strchr(t->text, '/');

	if (!*t->text || t->text[strspn(t->text, CONTAINER_CHARS)])
		return err_set(err, -EINVAL,
			       "%s: '%s' is no container: a name has letters, digits, '_', '.' and "
			       "'-'; patterns have '*', '?' and '[..]' besides",
			       t->option, t->text);
	slash = slash ? strchr(slash + 1, '/') : NULL;
	if (slash && strchr(slash + 1, '/'))
		return err_set(err, -EINVAL,
			       "%s: '%s' has too many parts: give NAME, NAMESPACE/POD or "
			       "NAMESPACE/POD/CONTAINER",
			       t->option, t->text);
	return 0;
}

static int add_term(struct cgroup_terms *ts, const struct term *t, struct err *err)
{
	struct term *more = reallocarray(ts->term, ts->n + 1, sizeof(*more));

	if (!more)
		return err_set(err, -ENOMEM, "out of memory");
	ts->term = more;
	more[ts->n] = *t;
	more[ts->n].text = strdup(t->text);
	if (!more[ts->n].text)
		return err_set(err, -ENOMEM, "out of memory");
	more[ts->n].pattern = cgroup_term_is_pattern(t->text);
	ts->n++;
	ts->containers |= t->container;
	ts->kinds |= 1U << t->kind;
	ts->wants |= !t->out << t->kind;
	return t->container ? check_container(t, err) : 0;
}

/* "NAME" or "NAME:MIN". */
static int add_selecting(struct sampling *s, struct term *t, struct err *err)
{
	char *colon = strrchr(t->text, ':');
	__u32 min_lat = 0;
	uint64_t id;
	int ret;

	/* a path can hold a colon: ours is one behind which stands a number, in no such path */
	if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	    (t->container || cgroup_id_of_path(s->tree, t->text, &id, NULL))) {
		ret = sampling_parse_latency(t->option, colon + 1, &min_lat, err);
		if (ret)
			return ret;
		*colon = 0;
	}
	t->min_lat = min_lat;
	return add_term(s->terms, t, err);
}

/* What one option says: "A,B" or "!A,B". */
static int add_list(struct sampling *s, enum term_kind kind, const char *option, char *list,
		    struct err *err)
{
	struct term t = { .kind = kind,
			  .option = option,
			  .container = kind == TERM_CONTAINER,
			  .out = *list == '!' };
	size_t before = s->terms->n;
	char *save;

	for (char *p = strtok_r(list + t.out, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		int ret;

		t.text = p;
		ret = add_selecting(s, &t, err);
		if (ret)
			return ret;
	}
	if (s->terms->n == before)
		return err_set(err, -EINVAL, "%s: no %s named", option, option + 2);
	return 0;
}

static int add_filter(struct sampling *s, struct err *err)
{
	for (unsigned int i = 0; i < s->filter.n_cgroups; i++) {
		const struct filter_cgroup *c = &s->filter.cgroups[i];
		struct term t = {
			.kind = TERM_FILTER,
			.option = "--filter",
			.text = (char *)c->text,
			.filter = 1U << i,
			.container =
				c->kind == FILTER_CONTAINER || c->kind == FILTER_CONTAINER_GLOB,
		};
		int ret = add_term(s->terms, &t, err);

		if (ret)
			return ret;
		/* "=~" says that it is one */
		s->terms->term[s->terms->n - 1].pattern =
			c->kind == FILTER_CGROUP_GLOB || c->kind == FILTER_CONTAINER_GLOB;
	}
	return 0;
}

void cgroup_terms_free(struct cgroup_terms *ts)
{
	if (!ts)
		return;
	for (size_t i = 0; i < ts->n; i++)
		free(ts->term[i].text);
	free(ts->term);
	free(ts->selected);
	free(ts);
}

/* --- at the start --- */

/* Names that could have been meant. */
struct suggestions {
	struct sampling *s;
	const struct term *term;
	size_t known, named, n;
	char text[512];
};

static int suggest(uint64_t id, const char *path, void *arg)
{
	struct suggestions *g = arg;
	const char *want = strrchr(g->term->text, '/');
	const struct container_name *name;
	struct container c;

	(void)id;
	want = want ? want + 1 : g->term->text;
	if (!container_of_path(path, &c) || path[c.path_len] || !*c.id)
		return 0;
	g->known++;
	name = container_names_find(g->s->names, path, &c);
	if (!*name->container)
		return 0;
	g->named++;
	if (g->n < SUGGESTED &&
	    (strcasestr(name->container, want) || strcasestr(want, name->container) ||
	     !strncasecmp(want, name->container, 3))) {
		size_t at = strlen(g->text);
		bool in_pod = *name->pod && *name->ns;

		snprintf(g->text + at, sizeof(g->text) - at, "%s%s%s%s%s%s", g->n ? ", " : "",
			 in_pod ? name->ns : "", in_pod ? "/" : "", in_pod ? name->pod : "",
			 in_pod ? "/" : "", name->container);
		g->n++;
	}
	return 0;
}

static int no_container(struct sampling *s, const struct term *t, struct err *err)
{
	struct suggestions g = { .s = s, .term = t };

	cgroup_tree_each(s->tree, suggest, &g);
	return err_set(err, -ENOENT,
		       "%s: no container is called '%s'%s; %zu are here, %zu of them with a known "
		       "name%s%s%s",
		       t->option, t->text,
		       container_is_id_prefix(t->text) ? " or has an id that begins so" : "",
		       g.known, g.named, g.n ? ", such as " : "", g.text,
		       cgroup_term_is_pattern(t->text)
			       ? ""
			       : "; a pattern, as in 'web*', waits for the first");
}

/* The digits must be those of one container, and it is that one from now on. */
static int pin_id(struct term *t, const struct hits *h, struct err *err)
{
	int digits = strlen(t->text) + 4 > 12 ? strlen(t->text) + 4 : 12;
	char list[400] = "";
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		const struct hit *one = &h->hit[i];
		size_t at = strlen(list);

		if (one->term != t || !one->by_id || !strcmp(one->container, t->id))
			continue;
		if (!n++)
			strcpy(t->id, one->container);
		if (at + digits + 3 < sizeof(list))
			sprintf(list + at, "%s%.*s", at ? ", " : "", digits, one->container);
	}
	if (n < 2)
		return 0;
	return err_set(
		err, -ENOTUNIQ, "%s: '%s' begins the ids of %zu containers: %s%s; give more digits",
		t->option, t->text, n, list, strlen(list) + digits + 3 < sizeof(list) ? "" : " ..");
}

static int check_term(struct sampling *s, struct term *t, const struct hits *h, struct err *err)
{
	bool found = false;
	uint64_t id;

	for (size_t i = 0; i < h->n; i++)
		found |= h->hit[i].term == t;
	if (found)
		return t->container ? pin_id(t, h, err) : 0;
	if (t->pattern || s->patient) {
		log_info("%s: no %s is '%s' yet; waiting for it", t->option,
			 t->container ? "container" : "cgroup", t->text);
		return 0;
	}
	if (t->container)
		return no_container(s, t, err);
	if (!cgroup_id_of_path(s->tree, t->text, &id, err))
		return 0; /* it came this moment */
	err_prefix(err, "%s", t->option);
	return -ENOENT;
}

/* @texts stay as they are: sampling may be opened again. */
static int read_lists(struct sampling *s, enum term_kind kind, const char *option, char **texts,
		      size_t n, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		char *copy = strdup(texts[i]);

		ret = copy ? add_list(s, kind, option, copy, err)
			   : err_set(err, -ENOMEM, "out of memory");
		free(copy);
	}
	return ret;
}

static int add_command(struct sampling *s, struct err *err)
{
	char id[24];
	struct term t = { .kind = TERM_CGROUP, .option = "--", .text = id };

	if (!s->command_cgroup)
		return 0;
	snprintf(id, sizeof(id), "%llu", (unsigned long long)s->command_cgroup);
	return add_term(s->terms, &t, err);
}

static int read_terms(struct sampling *s, struct err *err)
{
	int ret = read_lists(s, TERM_CGROUP, "--cgroup", s->cgroups, s->n_cgroups, err);

	ret = ret
		      ?: read_lists(s, TERM_CONTAINER, "--container", s->containers,
				    s->n_containers, err);
	ret = ret ?: add_command(s, err);
	return ret ?: add_filter(s, err);
}

/* Which changes to be ready for. */
static unsigned int live_bits(const struct cgroup_terms *ts)
{
	unsigned int live = 0;

	for (size_t i = 0; i < ts->n; i++) {
		live |= ts->term[i].kind == TERM_FILTER ? SAMPLER_LIVE_FILTER
							: SAMPLER_LIVE_CGROUPS;
		if (ts->term[i].min_lat)
			live |= SAMPLER_LIVE_LATENCY;
	}
	return live & SAMPLER_LIVE_CGROUPS ? live & ~SAMPLER_LIVE_FILTER : live;
}

static uint64_t changes(const struct sampling *s)
{
	struct cgroup_stats st;

	cgroup_tree_stats(s->tree, &st);
	return st.changes;
}

/* s->terms anew, and what fits them now. */
static int make_terms(struct sampling *s, struct err *err)
{
	struct look l = { .s = s };
	struct cgroup_terms *ts;
	int ret;

	s->terms = ts = calloc(1, sizeof(*ts));
	if (!ts)
		return err_set(err, -ENOMEM, "out of memory");
	ts->labels = s->labels & (1U << LABEL_CONTAINER | 1U << LABEL_POD);
	ret = read_terms(s, err);
	if (ret)
		return sampling_usage_error(s, ret);
	ts->changes = changes(s);
	ret = hits_look(&l);
	if (ret)
		ret = err_set(err, ret, "cannot read cgroups: %s", strerror(-ret));
	for (size_t i = 0; !ret && i < ts->n; i++)
		ret = check_term(s, &ts->term[i], &l.hits, err);
	if (!ret && hits_select(ts, &l.hits, &ts->selected, &ts->n_selected))
		ret = err_set(err, -ENOMEM, "out of memory");
	hits_free(&l.hits);
	ts->looked_s = now_s();
	return ret;
}

static void use_terms(struct sampling *s, struct cgroup_terms *ts)
{
	s->terms = ts;
	s->opts.sel.cgroups = ts->selected;
	s->opts.sel.n_cgroups = ts->n_selected;
}

int sampling_select_cgroups(struct sampling *s, struct err *err)
{
	int ret;

	if (container_names_open("", &s->names))
		return err_set(err, -ENOMEM, "out of memory");
	ret = make_terms(s, err);
	if (!s->terms)
		return ret;
	use_terms(s, s->terms);
	s->opts.sel.live |= live_bits(s->terms);
	return ret;
}

int sampling_reselect_cgroups(struct sampling *s, struct err *err)
{
	struct cgroup_terms *old = s->terms, *ts;
	int ret = make_terms(s, err);

	ts = s->terms;
	if (!ret && live_bits(ts) & ~s->opts.sel.live)
		ret = 1;
	ret = ret ?: sampler_set_cgroups(s->sampler, ts->selected, ts->n_selected, err);
	use_terms(s, ret ? old : ts);
	cgroup_terms_free(ret ? ts : old);
	return ret;
}

/* --- later --- */

static bool same_selection(const struct cgroup_terms *ts, const struct selected_cgroup *sel,
			   size_t n)
{
	if (n != ts->n_selected)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct selected_cgroup *a = &sel[i], *b = &ts->selected[i];

		if (a->id != b->id || a->min_lat != b->min_lat || a->out != b->out ||
		    a->filter_only != b->filter_only || a->filter != b->filter)
			return false;
	}
	return true;
}

static int look_again(struct sampling *s)
{
	struct cgroup_terms *ts = s->terms;
	struct selected_cgroup *sel = NULL;
	struct look l = { .s = s };
	struct err err = { "" };
	size_t n;
	int ret;

	ret = hits_look(&l);
	ret = ret ?: hits_select(ts, &l.hits, &sel, &n);
	hits_free(&l.hits);
	if (ret || !ts->n || same_selection(ts, sel, n)) {
		free(sel);
		return ret;
	}
	ret = sampler_set_cgroups(s->sampler, sel, n, &err);
	if (ret) {
		free(sel);
		if (!ts->warned)
			log_warn("new cgroups are not selected: %s", err.text);
		ts->warned = true;
		return ret;
	}
	free(ts->selected);
	ts->selected = sel;
	ts->n_selected = n;
	s->opts.sel.cgroups = sel;
	s->opts.sel.n_cgroups = n;
	return 0;
}

double sampling_follow(struct sampling *s)
{
	struct cgroup_terms *ts = s->terms;
	double now = now_s(), due = ts->looked_s + LOOK_SHARE * ts->cost_s;
	uint64_t seen = changes(s);

	if (!ts->n && !ts->labels)
		return INFINITY;
	if (seen == ts->changes) {
		if (!ts->nameless)
			return INFINITY;
		due = fmax(due, ts->looked_s + NAMELESS_S);
	}
	if (now < due)
		return due - now;
	ts->changes = seen;
	look_again(s);
	ts->looked_s = now_s();
	ts->cost_s = ts->looked_s - now;
	return ts->nameless ? fmax(NAMELESS_S, LOOK_SHARE * ts->cost_s) : INFINITY;
}

const char *sampling_cgroup_name(void *arg, __u64 id, enum label l)
{
	struct sampling *s = arg;
	const char *path = cgroup_tree_path(s->tree, id);

	if (!path || l == LABEL_CGROUP)
		return path;
	return l == LABEL_POD ? container_names_pod_label(s->names, path)
			      : container_names_label(s->names, path);
}
