// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_settings.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Mutually exclusive options: setting one overrides the other. */
static const char *const pairs[][2] = { { "period", "freq" } };

static const char *other_of(const char *name)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (int k = 0; k < 2; k++)
			if (!strcmp(name, pairs[i][k]))
				return pairs[i][!k];
	return NULL;
}

static void free_one(struct live_option *o)
{
	free(o->name);
	free(o->value);
}

static void add(struct live_options *l, const struct live_option *o)
{
	struct live_option *more;

	array_reserve(l->one, l->room, l->n + 1);
	more = &l->one[l->n++];
	*more = *o;
	more->name = xstrdup(o->name);
	more->value = o->value ? xstrdup(o->value) : NULL;
}

void live_options_copy(struct live_options *to, const struct live_options *from)
{
	*to = (struct live_options){};
	for (size_t i = 0; i < from->n; i++)
		add(to, &from->one[i]);
}

bool live_options_unset(struct live_options *l, const char *name)
{
	size_t kept = 0, n = l->n;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(l->one[i].name, name))
			l->one[kept++] = l->one[i];
		else
			free_one(&l->one[i]);
	}
	l->n = kept;
	return kept < n;
}

void live_options_set(struct live_options *l, const struct control_request *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct control_line *line = &r->line[i];
		const char *other = other_of(line->name);

		live_options_unset(l, line->name);
		if (other && line->value && *line->value)
			live_options_unset(l, other);
	}
	for (size_t i = 0; i < r->n; i++)
		add(l, &(struct live_option){ .name = (char *)r->line[i].name,
					      .value = (char *)r->line[i].value,
					      .uid = r->uid,
					      .when = time(NULL) });
}

static const struct live_option *next_of(const struct live_options *l, const char *name, size_t *i)
{
	for (; *i < l->n; ++*i)
		if (!strcmp(l->one[*i].name, name))
			return &l->one[(*i)++];
	return NULL;
}

static bool has(const struct live_options *l, const char *name)
{
	size_t i = 0;

	return next_of(l, name, &i);
}

bool live_options_same(const struct live_options *a, const struct live_options *b, const char *name)
{
	size_t ia = 0, ib = 0;

	for (;;) {
		const struct live_option *x = next_of(a, name, &ia), *y = next_of(b, name, &ib);

		if (!x || !y)
			return !x && !y;
		if (!x->value != !y->value || (x->value && strcmp(x->value, y->value)))
			return false;
	}
}

static bool gives(const struct live_options *l, const char *name)
{
	const struct live_option *o;
	size_t i = 0;

	while ((o = next_of(l, name, &i)))
		if (!o->value || *o->value)
			return true;
	return false;
}

bool live_options_hide(void *arg, const char *name)
{
	const struct live_options *l = arg;
	const char *other = other_of(name);

	return has(l, name) || (other && gives(l, other));
}

int live_options_apply(const struct live_options *l, const struct option_set *sets, size_t n_sets,
		       struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < l->n; i++)
		if (!l->one[i].value || *l->one[i].value)
			ret = options_one(l->one[i].name, l->one[i].value, sets, n_sets, err);
	return ret;
}

void live_options_free(struct live_options *l)
{
	for (size_t i = 0; i < l->n; i++)
		free_one(&l->one[i]);
	free(l->one);
	*l = (struct live_options){};
}
