// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options that select the samples of a row of the live screen, or none, if no option does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/std.h"
#include "top/top_private.h"

#define L(name) (1U << LABEL_##name)
#define BY                                                                                     \
	(IBS_BY_CGROUP | IBS_BY_PID | IBS_BY_TID | IBS_BY_COMM | IBS_BY_CPU | IBS_BY_COMPLEX | \
	 IBS_BY_NODE)
#define CPUS 8

enum { WEB, BELOW, ROOT, ODD, NEAR, UNNAMED, NAMELESS, FAR, GROUPS };

/* NULL: nobody knows the cgroup */
static const struct {
	const char *cgroup, *container, *pod, *comm;
} named[GROUPS] = {
	[WEB] = { "/a", "web", "shop/web-0", "nginx" },
	[BELOW] = { "/a/b", "", "", "it's" },
	[ROOT] = { "/", "", "", "" },
	[ODD] = { "/x*y", "odd,name", "plain", "a:b" },
	[NEAR] = { "/ab", "db", "plain", "-" },
	[UNNAMED] = { NULL, NULL, NULL, "x y" },
	[NAMELESS] = { "", "", "", "z" },
	[FAR] = { "/far", "db", "other", "far" },
};

static struct top t;
static struct top_source_info info;
/* two complexes of four CPUs; of each, half is on each node */
static __u16 complexes[CPUS] = { 0, 0, 0, 0, 1, 1, 1, 1 }, nodes[CPUS] = { 0, 0, 1, 1, 0, 0, 1, 1 };

static const char *name_of(void *arg, __u64 id, enum label l)
{
	(void)arg;
	return l == LABEL_CGROUP ? named[id].cgroup
	       : l == LABEL_POD	 ? named[id].pod
				 : named[id].container;
}

/* The groups from @from to @to are in the interval that is shown. */
static void show(int from, int to)
{
	struct snapshot s = { .n_groups = to - from + 1, .time_ns = 1000000000 };
	const struct frame f = { .end_ns = 1000000000, .by = BY };

	history_free(t.history);
	snapshot_free(&t.shown);
	s.groups = xcalloc(s.n_groups, sizeof(*s.groups));
	for (int i = from; i <= to; i++) {
		struct group *g = &s.groups[i - from];

		g->slot = i + 1;
		g->key = (struct ibs_group_key){ .cgroup_id = i,
						 .tgid = 100 * i + 7,
						 .tid = 100 * i + 8,
						 .cpu = i + 1,
						 .complex = i % 2,
						 .node = i / 2 % 2 };
		memcpy(g->key.comm, named[i].comm, strlen(named[i].comm));
		g->n_series = 1;
		g->series = xcalloc(1, sizeof(*g->series));
		*g->series =
			(struct series){ .op = IBS_OP_KIND_LOAD, .src = IBS_SRC_L2, .samples = 1 };
	}
	t.history = history_new();
	history_add(t.history, &s, &f, name_of, NULL);
	snapshot_free(&s);
	history_snapshot(t.history, 0, &t.shown);
	assert_int_equal(t.shown.n_groups, to - from + 1);
}

static int set_up(void **state)
{
	(void)state;
	info = (struct top_source_info){
		.places = { .cpus = CPUS, .complex_of = complexes, .node_of = nodes }
	};
	t = (struct top){ .opts.info = &info };
	show(0, GROUPS - 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	history_free(t.history);
	snapshot_free(&t.shown);
	return 0;
}

static const struct group *group_at(int i)
{
	for (size_t k = 0; k < t.shown.n_groups; k++)
		if (t.shown.groups[k].key.cgroup_id == (__u64)i)
			return &t.shown.groups[k];
	fail_msg("no group %d", i);
	return NULL;
}

/* The row of a group, under these labels, has these options in this order; @all: they select nothing else. */
static void options_are(int group, unsigned int labels, const char *want, bool all)
{
	struct top_zoom z = { .labels = labels,
			      .hash = table_group_hash(group_at(group), labels, history_name,
						       t.history) };
	char text[256] = "";

	top_zoom_options(&t, &z);
	for (size_t o = 0; o < TABLE_OPTIONS; o++) {
		strcat(text, z.option[o] ?: "");
		free(z.option[o]);
	}
	assert_string_equal(text, want);
	assert_int_equal(z.selected, all);
}

static void selects(int group, unsigned int labels, const char *want)
{
	options_are(group, labels, want, true);
}

/* These options, if any, select more than the row. */
static void selects_more(int group, unsigned int labels, const char *want)
{
	options_are(group, labels, want, false);
}

static void test_tasks(void **state)
{
	(void)state;
	selects(WEB, L(PID), " -p 7");
	selects(NEAR, L(PID), " -p 407");
	selects(BELOW, L(TID), " -t 108");
	selects(WEB, L(COMM), " --comm nginx");
	selects(WEB, L(PID) | L(COMM), " -p 7 --comm nginx");
	selects(UNNAMED, L(TID) | L(COMM), " -t 508 --comm 'x y'");
	selects(BELOW, L(COMM), " --comm 'it'\\''s'");
	/* an option takes these for more than a name */
	selects_more(ODD, L(COMM), "");
	selects_more(NEAR, L(COMM), "");
	selects_more(ROOT, L(COMM), "");
	selects_more(ODD, L(PID) | L(COMM), " -p 307");
}

static void test_places(void **state)
{
	struct cpulist only = {};

	(void)state;
	selects(WEB, L(CPU), " -C 1");
	selects(ROOT, L(CPU), " -C 3");
	selects(WEB, L(CCX), " -C 0-3");
	selects(BELOW, L(CCX), " -C 4-7");
	selects(WEB, L(NODE), " -C 0-1,4-5");
	selects(ROOT, L(NODE), " -C 2-3,6-7");
	selects(ROOT, L(CCX) | L(NODE), " -C 2-3");
	/* a CPU is of one complex and one node */
	selects(ODD, L(CPU) | L(CCX) | L(NODE), " -C 4");
	selects(WEB, L(CCX) | L(PID), " -p 7 -C 0-3");
	/* of the CPUs that were asked for */
	cpulist_add(&only, 2);
	cpulist_add(&only, 4);
	t.opts.cpus = &only;
	selects(WEB, L(CCX), " -C 2");
	selects_more(WEB, L(CCX) | L(NODE), "");
	selects_more(WEB, L(CCX) | L(NODE) | L(PID), " -p 7");
	/* nobody knows where CPUs are */
	info.places.cpus = 0;
	selects_more(WEB, L(NODE), "");
}

/* A container, in its pod if that is known by name: several pods have containers of one name. */
static void test_containers(void **state)
{
	(void)state;
	selects(WEB, L(CONTAINER), " --container web");
	selects(WEB, L(CONTAINER) | L(POD), " --container shop/web-0/web");
	selects(WEB, L(POD), " --container shop/web-0");
	selects_more(NEAR, L(POD), "");
	/* of a pod whose name nobody knows, the container alone is named */
	selects(NEAR, L(CONTAINER), " --container db");
	selects_more(NEAR, L(CONTAINER) | L(POD), " --container db");
	selects_more(FAR, TABLE_LABELS, " --container db");
	selects_more(ODD, L(CONTAINER), "");
	/* unknown cgroups are in no container either, or in one */
	selects_more(BELOW, L(CONTAINER), "");
	selects_more(UNNAMED, L(CONTAINER), "");
	show(WEB, NEAR);
	selects(NEAR, L(CONTAINER) | L(POD), " --container db");
	selects(BELOW, L(CONTAINER), " --container '!*'");
	selects(ROOT, L(CONTAINER) | L(PID), " -p 207 --container '!*'");
	selects_more(BELOW, L(POD), "");
}

/* A cgroup, without those below it. */
static void test_cgroups(void **state)
{
	(void)state;
	selects(WEB, L(CGROUP), " --cgroup /a --cgroup '!/a/*'");
	selects(BELOW, L(CGROUP), " --cgroup /a/b");
	selects(NEAR, L(CGROUP), " --cgroup /ab");
	selects(ROOT, L(CGROUP), " --cgroup / --cgroup '!/*'");
	selects(NAMELESS, L(CGROUP), " --cgroup / --cgroup '!/*'");
	selects_more(ODD, L(CGROUP), "");
	selects_more(UNNAMED, L(CGROUP), "");
	selects(BELOW, L(CGROUP) | L(CONTAINER), " --cgroup /a/b");
	show(WEB, WEB);
	selects(WEB, L(CGROUP), " --cgroup /a");
}

/* Rows of the first level have one name of the three: the container's, or else the cgroup's. */
static void test_joined(void **state)
{
	(void)state;
	selects(WEB, TABLE_LABELS, " --container shop/web-0/web");
	selects(BELOW, TABLE_LABELS, " --cgroup /a/b");
	selects(WEB, TABLE_LABELS | L(PID), " -p 7 --container shop/web-0/web");
	selects_more(UNNAMED, TABLE_LABELS, "");
	selects_more(ODD, TABLE_LABELS, "");
}

/* A row of a source or an op has the options of its group. */
static void test_rest(void **state)
{
	(void)state;
	selects(WEB, L(PID) | L(SRC), " -p 7");
	selects_more(WEB, L(SRC), "");
	selects_more(WEB, L(MODE), "");
	selects_more(WEB, L(MODE) | L(PID), " -p 7");
	/* samples without a place in the counters have no names */
	for (size_t i = 0; i < t.shown.n_groups; i++)
		t.shown.groups[i].other = true;
	selects_more(WEB, L(PID), "");
	selects_more(WEB, L(CCX), "");
	tear_down(NULL);
	set_up(NULL);
	/* a collector selects by itself */
	info.unselectable = true;
	selects_more(WEB, L(PID), "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_tasks),	 T(test_places), T(test_containers),
		T(test_cgroups), T(test_joined), T(test_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
