// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where sampling in strata is possible, and what it changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"

#include <string.h>

static char *cgroups[] = { "/a" };

static const struct {
	const char *machine, *event;
	__u32 src;
	unsigned int stages;
	bool simulated, cgroup;
	const char *no_weights, *refused; /* refused: ""; a part of the reason, if not in strata */
} cases[] = {
	{ "zen4:6.12", "ibs_op//", 0, PLAN_AUTO, .refused = "" },
	{ "zen5:7.2", "ibs_op/cnt_ctl=1/", 0, PLAN_AUTO, .refused = "" },
	{ "zen6:7.2", "ibs_op//", 0, PLAN_AUTO, .cgroup = true, .refused = "" },
	{ "zen4:6.12", "ibs_op//", 1U << IBS_SRC_DRAM | 1U << IBS_SRC_L3, PLAN_AUTO,
	  .refused = "" },
	{ "zen4:6.12", "ibs_op//", 1U << IBS_SRC_L3, PLAN_AUTO, .refused = "no selected source" },
	{ "zen4:6.12", "ibs_op//", 1U << IBS_SRC_DRAM, PLAN_AUTO,
	  .refused = "filters all the time" },
	{ "zen4:6.12", "ibs_op/l3missonly=1/", 0, PLAN_AUTO, .refused = "has filters already" },
	{ "zen4:6.12", "ibs_op//", 0, 0, .refused = "--plan" },
	{ "zen4:6.12", "ibs_op//", 0, PLAN_AUTO, .no_weights = "too few", .refused = "too few" },
	{ "zen4:6.12", "ibs_op//", 0, PLAN_AUTO, .simulated = true, .refused = "simulation" },
	{ "zen4:6.12", "ibs_fetch//", 0, PLAN_AUTO, .refused = "only ibs_op" },
	{ "zen3:7.2", "ibs_op//", 0, PLAN_AUTO, .refused = "requires Zen 4" },
	{ "zen4:5.10", "ibs_op//", 0, PLAN_AUTO, .cgroup = true, .refused = "requires Linux 5.19" },
};

static void check(size_t i, bool strata, struct plan *p, struct event_spec *miss)
{
	struct abilities a;
	struct event_spec event;
	struct select_options o = { .sel.src_mask = cases[i].src };
	const struct plan_context c = {
		.abilities = &a,
		.event = &event,
		.stages = cases[i].stages,
		.no_weights = cases[i].no_weights,
		.no_slices = cases[i].no_weights,
		.metric = IBS_METRIC_DC_MISS_LAT,
		.simulated = cases[i].simulated,
		.strata = strata,
	};

	if (cases[i].cgroup) {
		o.cgroups = cgroups;
		o.n_cgroups = 1;
	}
	assert_int_equal(abilities_parse(cases[i].machine, &a, NULL), 0);
	assert_int_equal(event_parse(cases[i].event, &event, NULL), 0);
	plan_make(&o, &c, p);
	plan_miss_event(p, &c, miss);
}

static void possible(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plan p, without;
		struct event_spec miss;

		check(i, false, &without, &miss);
		assert_false(without.strata);
		assert_string_equal(without.no_strata, "");
		check(i, true, &p, &miss);
		print_message("%zu: %s\n", i, p.no_strata);
		assert_int_equal(p.strata, !*cases[i].refused);
		assert_non_null(strstr(p.no_strata, cases[i].refused));
		if (p.strata) {
			/* counters of both strata; no cgroup events, which would not follow for both */
			assert_true(p.tags && p.estimates && !p.unseen && !p.cgroup);
			assert_int_equal(event_term(&miss, "l3missonly"), 1);
			continue;
		}
		/* as if not requested */
		memset(p.no_strata, 0, sizeof(p.no_strata));
		assert_int_equal(p.tags, without.tags);
		assert_int_equal(p.cgroup, without.cgroup);
		assert_int_equal(p.l3missonly, without.l3missonly);
		assert_int_equal(p.unseen, without.unseen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
