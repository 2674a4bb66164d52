// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random --cgroup and --container, resolved for the running system and for a recording, against the
 * rule itself: a cgroup is selected if every option that lists some lists it or one above it, and no
 * option excludes it or one above it.
 */
#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cgroup_select/cgroup_select.h"

#include <ibscope/sim.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OTHER	 999

#define ID1 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "0123fedcba9876540123456789abcdef0123456789abcdef0123456789abcdef"
#define ID3 "beef456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* In order, so that those above come first. The running system lists all, the recording some. */
static const struct box {
	const char *path;
	const char *id, *name; /* of a container's own cgroup */
	bool recorded;
} boxes[] = {
	{ "/", NULL, NULL, true },
	{ "/a", NULL, NULL, false },
	{ "/a/b", NULL, NULL, true },
	{ "/a/b/c", NULL, NULL, true },
	{ "/a/docker-" ID1 ".scope", ID1, "web", false },
	{ "/a/docker-" ID1 ".scope/in", NULL, NULL, true },
	{ "/ab", NULL, NULL, true },
	{ "/d", NULL, NULL, true },
	{ "/d/e-1", NULL, NULL, true },
	{ "/d/docker-" ID2 ".scope", ID2, "", true },
	{ "/d/docker-" ID2 ".scope/docker-" ID3 ".scope", ID3, "beef", true },
	{ "/x:200", NULL, NULL, true },
};

static __u64 state = 3;
static bool web_runs = true; /* else it and what is in it is not there yet */

static unsigned int below(unsigned int n)
{
	return ibs_sim_mix(state++) % n;
}

/* --- where the cgroups are looked up --- */

static bool exists(size_t i)
{
	return web_runs || !strstr(boxes[i].path, ID1);
}

static int find(void *recorded, const char *text, __u64 *id, char **path, struct err *err)
{
	*path = NULL;
	*id = 0;
	for (size_t i = 0; i < COUNT(boxes); i++) {
		const bool by_number = !text[strspn(text, "0123456789")] && *text &&
				       strtoul(text, NULL, 10) == 100 + i;

		if ((!by_number && strcmp(text, boxes[i].path)) || !exists(i))
			continue;
		if (by_number && recorded && !boxes[i].recorded)
			continue;
		*id = recorded && !boxes[i].recorded ? 0 : 100 + i;
		*path = strdup(boxes[i].path);
		return 0;
	}
	return err_set(err, -ENOENT, "no cgroup '%s'", text);
}

static int path_of(void *arg, const char *text, char **path, struct err *err)
{
	(void)arg;
	return cgroup_path_clean(text, path, err);
}

static int each(void *recorded, cgroup_cb *cb, void *arg)
{
	int ret = recorded ? cb(300, NULL, arg) : 0;

	for (size_t i = 0; !ret && i < COUNT(boxes); i++)
		if (exists(i) && (!recorded || boxes[i].recorded))
			ret = cb(100 + i, boxes[i].path, arg);
	return ret;
}

static const struct container_name *name(void *arg, const char *path, const struct container *c)
{
	static struct container_name found;

	(void)arg;
	found = (struct container_name){ "", "", "" };
	for (size_t i = 0; i < COUNT(boxes); i++)
		if (boxes[i].id && strlen(boxes[i].path) == c->path_len &&
		    !strncmp(boxes[i].path, path, c->path_len))
			found.container = boxes[i].name;
	return &found;
}

static const struct cgroup_source live = {
	.find = find, .path_of = path_of, .each = each, .name = name
};
static const struct cgroup_source recording = {
	.arg = (void *)&recording,
	.recorded = true,
	.find = find,
	.path_of = path_of,
	.each = each,
	.name = name,
};

/* --- the rule --- */

static const struct what {
	const char *text;
	bool container;
	bool exact;
} whats[] = {
	{ "/", false, true },	     { "/a", false, true },	    { "/a/b", false, true },
	{ "/a/b/c", false, true },   { "/d", false, true },	    { "/x:200", false, true },
	{ "102", false, true },	     { "/*", false, false },	    { "/?/[b-e]*", false, false },
	{ "/[!d]/*", false, false }, { "/nothing*", false, false }, { "web", true, true },
	{ "w*", true, false },	     { ID1, true, true },	    { "0123f", true, true },
	{ "beef", true, true },	     { "0123*", true, false },	    { "*", true, false },
	{ "nothing*", true, false },
};

/* Does it name that cgroup, not one above it? */
static bool names(const struct what *w, size_t i)
{
	const struct box *b = &boxes[i];

	if (!w->container)
		return w->exact ? !strcmp(w->text, b->path) || (size_t)atoi(w->text) == 100 + i
				: b->path[1] &&
					  !fnmatch(w->text, b->path, FNM_PATHNAME | FNM_NOESCAPE);
	if (!b->id)
		return false;
	if (w->exact)
		return !strcmp(w->text, b->name) || /* ID3's is "beef", and its id begins so */
		       !strncmp(w->text, b->id, strlen(w->text));
	return !fnmatch(w->text, *b->name ? b->name : b->id, 0);
}

static bool is_above(size_t above, size_t i)
{
	const char *a = boxes[above].path, *b = boxes[i].path;
	size_t n = a[1] ? strlen(a) : 0;

	return !strncmp(a, b, n) && (!n || !b[n] || b[n] == '/');
}

struct list {
	char text[512];
	const struct what *what[4];
	unsigned int min[4];
	size_t n;
	bool container, out;
};

struct draw {
	struct list list[4];
	size_t n;
};

static void draw_lists(struct draw *d)
{
	memset(d, 0, sizeof(*d));
	for (d->n = 0; d->n < 1 + below(4); d->n++) {
		struct list *l = &d->list[d->n];

		l->container = below(2);
		l->out = !below(3);
		strcpy(l->text, l->out ? "!" : "");
		while (l->n < 1 + below(4)) {
			const struct what *w = &whats[below(COUNT(whats))];
			size_t len = strlen(l->text);

			if (w->container != l->container)
				continue;
			l->min[l->n] = below(3) ? 0 : 1 + below(500);
			len += sprintf(l->text + len, "%s%s", l->n ? "," : "", w->text);
			if (l->min[l->n])
				sprintf(l->text + len, ":%u", l->min[l->n]);
			l->what[l->n++] = w;
		}
	}
}

/* Return: is it selected? *min is the least latency. */
static bool selects(const struct draw *d, size_t i, unsigned int *min)
{
	bool wanted[2] = {}, in[2] = {}, out = false;
	unsigned int least[2] = {};
	long deepest[2] = { -1, -1 };

	for (size_t l = 0; l < d->n; l++) {
		const struct list *list = &d->list[l];

		wanted[list->container] |= !list->out;
		for (size_t k = 0; k < list->n; k++) {
			for (size_t above = 0; above <= i; above++) {
				if (!is_above(above, i) || !names(list->what[k], above))
					continue;
				out |= list->out;
				in[list->container] |= !list->out;
				if (list->out || (long)above < deepest[list->container])
					continue;
				if ((long)above > deepest[list->container])
					least[list->container] = 0;
				deepest[list->container] = above;
				if (list->min[k] > least[list->container])
					least[list->container] = list->min[k];
			}
		}
	}
	*min = least[0] > least[1] ? least[0] : least[1];
	return !out && (!wanted[0] || in[0]) && (!wanted[1] || in[1]);
}

/* --- what the result means --- */

static const struct selected_cgroup *entry(const struct selected_cgroup *sel, size_t n, __u64 id)
{
	for (size_t i = 0; i < n; i++)
		if (sel[i].id == id && !sel[i].filter_only)
			return &sel[i];
	return NULL;
}

/* As the sampler has it: of a cgroup without an entry, that of the nearest one above it. */
static const struct selected_cgroup *entry_above(const struct selected_cgroup *sel, size_t n,
						 size_t i)
{
	for (size_t above = i + 1; above--;) {
		const struct selected_cgroup *e =
			is_above(above, i) ? entry(sel, n, 100 + above) : NULL;

		if (e)
			return e;
	}
	return NULL;
}

static bool any_selected(const struct selected_cgroup *sel, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!sel[i].out && !sel[i].filter_only)
			return true;
	return false;
}

static void compare(const struct draw *d, const struct cgroup_select *s, bool recorded)
{
	size_t n;
	const struct selected_cgroup *sel = cgroup_select_result(s, &n);
	const bool only = any_selected(sel, n);

	for (size_t i = 0; i < COUNT(boxes); i++) {
		const struct selected_cgroup *e =
			recorded ? entry(sel, n, 100 + i) : entry_above(sel, n, i);
		unsigned int min;
		bool want = selects(d, i, &min), got = e ? !e->out : !only;

		if (!exists(i) || (recorded && !boxes[i].recorded))
			continue;
		if (want != got || (want && (e ? e->min_lat : 0) != min))
			fail_msg("'%s' '%s' '%s' '%s': %s is %sselected%s, with %u",
				 d->list[0].text, d->list[1].text, d->list[2].text, d->list[3].text,
				 boxes[i].path, got ? "" : "not ",
				 recorded ? " of a recording" : "", e ? e->min_lat : 0);
	}
	if (recorded)
		assert_true(entry(sel, n, OTHER)->out);
}

static struct cgroup_select *open_draw(const struct draw *d, const struct cgroup_source *src)
{
	struct cgroup_select_opts opts = { .wait = true, .other = src->recorded ? OTHER : 0 };
	struct cgroup_select *s = NULL;
	char *cgroups[4], *containers[4];
	struct err err = {};

	opts.cgroups = cgroups;
	opts.containers = containers;
	for (size_t i = 0; i < d->n; i++) {
		if (d->list[i].container)
			containers[opts.n_containers++] = (char *)d->list[i].text;
		else
			cgroups[opts.n_cgroups++] = (char *)d->list[i].text;
	}
	if (cgroup_select_open(src, &opts, &s, &err))
		fail_msg("'%s' '%s': %s", d->list[0].text, d->list[1].text, err.text);
	return s;
}

static void test_random(void **state_)
{
	struct draw d;

	(void)state_;
	for (int i = 0; i < 20000; i++) {
		const struct cgroup_source *src = i & 1 ? &recording : &live;
		struct cgroup_select *s;

		draw_lists(&d);
		/* a recording is resolved once, when all is known */
		web_runs = src->recorded || below(2);
		s = open_draw(&d, src);
		compare(&d, s, src->recorded);
		if (!web_runs) {
			size_t missing = cgroup_select_missing(s, NULL, NULL);

			web_runs = true;
			assert_true(cgroup_select_update(s) >= 0);
			assert_true(cgroup_select_missing(s, NULL, NULL) <= missing);
			compare(&d, s, false);
		}
		assert_int_equal(cgroup_select_update(s), 0);
		cgroup_select_close(s);
	}
}

/* --- what is refused, or waited for --- */

static int refused(const struct cgroup_source *src, char *cgroup, char *container, bool wait,
		   struct err *err)
{
	const struct cgroup_select_opts opts = {
		.cgroups = &cgroup,
		.n_cgroups = cgroup != NULL,
		.containers = &container,
		.n_containers = container != NULL,
		.wait = wait,
	};
	struct cgroup_select *s;
	int ret = cgroup_select_open(src, &opts, &s, err);

	if (!ret)
		cgroup_select_close(s);
	return ret;
}

static void test_refusals(void **state_)
{
	struct err err = {};

	(void)state_;
	for (int i = 0; i < 2; i++) {
		const struct cgroup_source *src = i ? &recording : &live;

		assert_int_equal(refused(src, "/no/such", NULL, false, &err), -ENOENT);
		assert_string_equal(err.text, "--cgroup: no cgroup '/no/such'");
		assert_int_equal(refused(src, "!/a,/no/such", NULL, false, &err), -ENOENT);
		assert_int_equal(refused(src, NULL, "we", false, &err), -ENOENT);
		assert_non_null(strstr(err.text, "did you mean web?"));
		assert_int_equal(refused(src, NULL, "0123", false, &err), -ENOTUNIQ);
		assert_non_null(strstr(err.text, "0123456"));
		assert_non_null(strstr(err.text, "0123fed"));
		assert_int_equal(refused(src, NULL, "0123", true, &err), -ENOTUNIQ);
		assert_int_equal(refused(src, ",", NULL, false, &err), -EINVAL);
		assert_string_equal(err.text, "--cgroup: no cgroup named");
		assert_int_equal(refused(src, "/a:0", NULL, false, &err), -ERANGE);
		assert_int_equal(refused(src, "/..", NULL, false, &err), -ENOENT);
		assert_int_equal(refused(src, "/../*", NULL, false, &err), -EINVAL);
		assert_int_equal(refused(src, NULL, "a b", false, &err), -EINVAL);
		assert_int_equal(refused(src, NULL, "a/b/c/d", false, &err), -EINVAL);
		assert_int_equal(refused(src, "/no*", "no*", false, &err), 0);
		assert_int_equal(refused(src, "/a:20,/x:200", "beef:70", false, &err), 0);
	}
	assert_int_equal(refused(&live, "/no/such", "no-such", true, &err), 0);
}

static void note(void *arg, const char *option, const char *name)
{
	strcat(strcat(strcat(strcat(arg, option), " "), name), ";");
}

static void test_missing(void **state_)
{
	char *cgroups[] = { "/a,/no/such:7,/a*", "!/nothing*" }, *containers[] = { "web,gone" };
	const struct cgroup_select_opts opts = {
		.cgroups = cgroups,
		.n_cgroups = 2,
		.containers = containers,
		.n_containers = 1,
		.wait = true,
	};
	struct cgroup_select *s;
	struct err err = {};
	char text[256] = "";

	(void)state_;
	web_runs = false;
	assert_int_equal(cgroup_select_open(&live, &opts, &s, &err), 0);
	assert_int_equal(cgroup_select_missing(s, note, text), 4);
	assert_string_equal(text, "--cgroup /no/such;--cgroup /nothing*;--container web;"
				  "--container gone;");
	web_runs = true;
	assert_int_equal(cgroup_select_update(s), 1);
	assert_int_equal(cgroup_select_missing(s, NULL, NULL), 3);
	cgroup_select_close(s);
}

/* Digits mean the container that they were first seen to mean, as others may begin so later. */
static void test_pinned(void **state_)
{
	char *containers[] = { "0123" };
	const struct cgroup_select_opts opts = { .containers = containers, .n_containers = 1 };
	const struct selected_cgroup *sel;
	struct cgroup_select *s;
	struct err err = {};
	size_t n;

	(void)state_;
	web_runs = false;
	assert_int_equal(cgroup_select_open(&live, &opts, &s, &err), 0);
	web_runs = true;
	assert_int_equal(cgroup_select_update(s), 0);
	sel = cgroup_select_result(s, &n);
	assert_int_equal(n, 1);
	assert_int_equal(sel[0].id, 109);
	cgroup_select_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
