// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_terms.h"

#include "base/num.h"

#include <fnmatch.h>

#include <ibscope/maps.h>

#define DIGITS	   "0123456789"
#define HEX_DIGITS DIGITS "abcdef"
#define WILDCARDS  "*?["
#define ID_DIGITS  4 /* minimum digits for a pattern to match ids */

#define CONTAINER_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "_.-*?[]!^/"

/* What tables print for processes in no container is not a name: say which option has them. */
static int check_none(const char *option, const char *text, struct err *err)
{
	if (!strstr(text, CONTAINER_NONE))
		return 0;
	return err_set(err, -EINVAL,
		       "%s: '" CONTAINER_NONE "' is not a name: give %s to select what runs in no "
		       "container",
		       option,
		       strcmp(option, "--filter") ? "--container '!*'"
						  : "--filter '!(container =~ \"*\")'");
}

static int check_container(const struct term *t, struct err *err)
{
	const char *slash = strchr(t->text, '/');

	if (!*t->text || t->text[strspn(t->text, CONTAINER_CHARS)])
		return err_set(err, -EINVAL,
			       "%s: invalid container '%s': a name has letters, digits, '_', '.' "
			       "and '-', a pattern also '*', '?' and '[..]'",
			       t->option, t->text);
	slash = slash ? strchr(slash + 1, '/') : NULL;
	if (slash && strchr(slash + 1, '/'))
		return err_set(err, -EINVAL,
			       "%s: invalid container '%s': give NAME, NAMESPACE/POD or "
			       "NAMESPACE/POD/CONTAINER",
			       t->option, t->text);
	return 0;
}

static int add_pattern(struct term *t, const struct cgroup_source *src, struct err *err)
{
	int ret = src->path_of(src->arg, t->text, &t->path, err);

	if (ret) {
		err_prefix(err, "%s", t->option);
		return ret;
	}
	ret = cgroup_pattern_new(t->path, &t->pattern);
	free(t->path);
	t->path = NULL;
	if (ret == -E2BIG)
		return err_set(err, -EINVAL, "%s: pattern longer than %d bytes", t->option,
			       CGROUP_PATTERN_MAX);
	if (ret)
		out_of_memory();
	return 0;
}

/* @t->text is copied. */
static int add_term(struct terms *ts, const struct cgroup_source *src, const struct term *t,
		    struct err *err)
{
	struct term *one;

	array_reserve(ts->term, ts->room, ts->n + 1);
	one = &ts->term[ts->n++];
	*one = *t;
	one->text = xstrdup(t->text);
	ts->containers |= t->container;
	ts->patterns |= t->glob && !t->container;
	if (t->kind < TERM_FILTER) {
		ts->selects = true;
		ts->wanted[t->kind] |= !t->out;
	}
	if (t->container)
		return check_container(one, err);
	return t->glob ? add_pattern(one, src, err) : 0;
}

static bool exists(const struct cgroup_source *src, const char *text)
{
	struct err ignored;
	char *path = NULL;
	__u64 id;
	int ret = src->find(src->arg, text, &id, &path, &ignored);

	free(path);
	return !ret;
}

/* "NAME" or "NAME:MIN". A path may contain a colon, so an existing path is taken as it is. */
static int add_name(struct terms *ts, const struct cgroup_source *src, struct term *t,
		    struct err *err)
{
	const struct num_arg num = {
		.name = t->option, .unit = "cycles", .min = 1, .max = IBS_LAT_MAX
	};
	char *colon = strrchr(t->text, ':');
	uint64_t v = 0;

	if (colon && colon[1] && !colon[1 + strspn(colon + 1, DIGITS)] &&
	    (t->container || !exists(src, t->text))) {
		int ret = num_parse(&num, colon + 1, &v, err);

		if (ret)
			return ret;
		*colon = 0;
	}
	t->min_lat = v;
	t->glob = strpbrk(t->text, WILDCARDS);
	return add_term(ts, src, t, err);
}

/* One option: "A,B" or "!A,B". */
static int add_list(struct terms *ts, const struct cgroup_source *src, enum term_kind kind,
		    const char *list, struct err *err)
{
	struct term t = { .kind = kind,
			  .option = kind == TERM_CONTAINER ? "--container" : "--cgroup",
			  .container = kind == TERM_CONTAINER,
			  .out = *list == '!' };
	char *copy = xstrdup(list), *save;
	size_t before = ts->n;
	int ret = check_none(t.option, list, err);

	for (char *p = strtok_r(copy + t.out, ",", &save); !ret && p;
	     p = strtok_r(NULL, ",", &save)) {
		t.text = p;
		ret = add_name(ts, src, &t, err);
	}
	free(copy);
	if (!ret && ts->n == before)
		ret = err_set(err, -EINVAL, "%s: no %s named", t.option, t.option + 2);
	return ret;
}

static int add_filter(struct terms *ts, const struct cgroup_source *src, const struct filter *f,
		      struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < f->n_cgroups; i++) {
		const struct filter_cgroup *c = &f->cgroups[i];
		struct term t = {
			.kind = TERM_FILTER,
			.option = "--filter",
			.text = (char *)c->text,
			.filter = 1U << i,
			.container =
				c->kind == FILTER_CONTAINER || c->kind == FILTER_CONTAINER_GLOB,
			.glob = c->kind == FILTER_CGROUP_GLOB || c->kind == FILTER_CONTAINER_GLOB,
		};

		ret = check_none(t.option, t.text, err) ?: add_term(ts, src, &t, err);
	}
	return ret;
}

static int add_command(struct terms *ts, const struct cgroup_source *src, __u64 id, struct err *err)
{
	char text[24];
	struct term t = { .kind = TERM_CGROUP, .option = "--", .text = text };

	snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
	return add_term(ts, src, &t, err);
}

int terms_parse(struct terms *ts, const struct cgroup_source *src,
		const struct cgroup_select_opts *o, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < o->n_cgroups; i++)
		ret = add_list(ts, src, TERM_CGROUP, o->cgroups[i], err);
	for (size_t i = 0; !ret && i < o->n_containers; i++)
		ret = add_list(ts, src, TERM_CONTAINER, o->containers[i], err);
	if (!ret && o->command)
		ret = add_command(ts, src, o->command, err);
	if (!ret && o->filter)
		ret = add_filter(ts, src, o->filter, err);
	return ret;
}

bool term_names(const struct term *t, const struct container *c, const struct container_name *name)
{
	if (t->glob || !strpbrk(t->text, WILDCARDS))
		return container_matches(t->text, c, name);
	return !strcmp(t->text, name->container); /* from a filter with "==" */
}

/* A pattern matches ids only if the name, whatever it is, could not decide otherwise. */
static bool pattern_has_id(const char *text, const char *id, const struct container_name *name)
{
	if (*name->container || fnmatch(text, id, FNM_NOESCAPE))
		return false;
	return !text[strspn(text, "*")] || strspn(text, HEX_DIGITS) >= ID_DIGITS;
}

bool term_has_id(const struct term *t, const struct container *c, const struct container_name *name)
{
	if (!*c->id || c->kind != CONTAINER_BY_ID)
		return false;
	if (t->pinned)
		return !strcmp(t->container_id, c->id) && t->container_uid == c->uid &&
		       t->nested == (c->depth > 1);
	if (t->glob)
		return pattern_has_id(t->text, c->id, name);
	return container_is_id_prefix(t->text) && !strncmp(t->text, c->id, strlen(t->text));
}

void terms_free(struct terms *ts)
{
	for (size_t i = 0; i < ts->n; i++) {
		free(ts->term[i].text);
		free(ts->term[i].path);
		cgroup_pattern_free(ts->term[i].pattern);
	}
	free(ts->term);
}
