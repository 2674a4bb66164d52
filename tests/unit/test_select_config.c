// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the decision core is configured to test, by each member of a selection alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "counts/counts.h"
#include "select/selection.h"

#include <ibscope/fetch.h>

static struct ibs_config config_of(const struct selection *sel)
{
	struct ibs_config c = { .ibs.caps = 0x3ff };

	config_select(&c, sel);
	return c;
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(config_max_slots(0), MAX_GROUPS + 1);
	assert_int_equal(config_max_slots(1), 2);
	assert_int_equal(config_max_slots(70000), 70001);
	assert_int_equal(config_max_cgroups(2), 16384);
	assert_int_equal(config_max_cgroups(4000), 16384);
	assert_int_equal(config_max_cgroups(4096), 16384);
	assert_int_equal(config_max_cgroups(4097), 4 * 4097);
}

/* One test of tasks for each, and none for what may not change and is not asked for. */
static void test_tasks(void **state)
{
	static const __u32 pid = 7;
	static const char *const comms[] = { "a name of 15 by", "b" };
	static const struct selected_cgroup in = { .id = 3 },
					    only = { .id = 4, .filter_only = true };
	const struct {
		struct selection sel;
		__u32 tests;
	} rows[] = {
		{ {}, 0 },
		{ { .processes = { &pid, 1, false } }, IBS_TASK_TGID },
		{ { .processes = { &pid, 1, true } }, IBS_TASK_TGID },
		{ { .processes = { NULL, 0, true } }, IBS_TASK_TGID },
		{ { .live = SAMPLER_LIVE_PROCESSES }, IBS_TASK_TGID },
		{ { .threads = { &pid, 1, false } }, IBS_TASK_TID },
		{ { .comms = comms, .n_comms = 2 }, IBS_TASK_COMM },
		{ { .cgroups = &in, .n_cgroups = 1 }, IBS_TASK_CGROUP },
		{ { .cgroups = &only, .n_cgroups = 1 }, 0 },
		{ { .live = SAMPLER_LIVE_CGROUPS }, IBS_TASK_CGROUP },
		{ { .live = SAMPLER_LIVE_LATENCY | SAMPLER_LIVE_FILTER }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(config_of(&rows[i].sel).task_select, rows[i].tests);
	assert_true(selected_pids_left_out(&(struct selected_pids){ NULL, 0, false }));
	assert_true(selected_pids_left_out(&(struct selected_pids){ &pid, 1, true }));
	assert_false(selected_pids_left_out(&(struct selected_pids){ &pid, 1, false }));
}

static void test_names(void **state)
{
	static const char *const comms[] = { "a name of 15 by", "b" };
	struct selection sel = { .comms = comms, .n_comms = 2 };
	struct ibs_config c = config_of(&sel);

	(void)state;
	assert_int_equal(c.n_comms, 2);
	assert_false(c.comm_but);
	assert_memory_equal(c.comms[0], "a name of 15 by\0", 16);
	assert_memory_equal(c.comms[1], "b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	sel.comms_but = true;
	assert_true(config_of(&sel).comm_but);
}

static void test_registers(void **state)
{
	static const struct selected_cgroup slow[] = { { .id = 3 }, { .id = 4, .min_lat = 50 } };
	static const struct ibs_filter filter = { .needs = IBS_FILTER_NEEDS_CGROUP };
	const struct {
		struct selection sel;
		bool kind, lat, filter;
	} rows[] = {
		{ {}, 0, 0, 0 },
		{ { .op_mask = 1 << IBS_OP_KIND_LOAD }, 1, 0, 0 },
		{ { .src_mask = 1 << IBS_SRC_DRAM }, 1, 0, 0 },
		{ { .min_lat = 1 }, 0, 1, 0 },
		{ { .max_lat = 1 }, 0, 1, 0 },
		{ { .live = SAMPLER_LIVE_LATENCY }, 0, 1, 0 },
		{ { .live = SAMPLER_LIVE_CGROUPS }, 0, 0, 0 },
		{ { .cgroups = slow, .n_cgroups = 1 }, 0, 0, 0 },
		{ { .cgroups = slow, .n_cgroups = 2 }, 0, 1, 0 },
		{ { .filter = &filter }, 0, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibs_config c = config_of(&rows[i].sel);

		assert_int_equal(c.kind_select, rows[i].kind);
		assert_int_equal(c.lat_select, rows[i].lat);
		assert_int_equal(c.cgroup_filter, rows[i].filter);
		assert_int_equal(c.filter.needs, rows[i].filter ? IBS_FILTER_NEEDS_CGROUP : 0);
	}
}

static void test_cgroup_value(void **state)
{
	static const struct {
		struct selected_cgroup c;
		int selected;
	} rows[] = {
		{ { .id = 1, .min_lat = 7, .filter = 5 }, IBS_CGROUP_IN },
		{ { .id = 1, .min_lat = 7, .filter = 5, .out = true }, IBS_CGROUP_OUT },
		{ { .id = 1, .min_lat = 7, .filter = 5, .filter_only = true },
		  IBS_CGROUP_AS_ABOVE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibs_selected_cgroup v = selected_cgroup_value(&rows[i].c);

		assert_int_equal(v.selected, rows[i].selected);
		assert_int_equal(v.min_lat, 7);
		assert_int_equal(v.filter, 5);
	}
}

/* Words of a slot for each pair that is selected; hot lines are fed by loads of the sources that are asked for. */
static void test_layout(void **state)
{
	const struct selection all = {}, dram = { .src_mask = 1 << IBS_SRC_DRAM },
			       loads = { .op_mask = 1 << IBS_OP_KIND_LOAD };
	struct ibs_config c = { .ibs.caps = 0x3ff, .line_sets = 1, .line_feed = 1 << IBS_SRC_DRAM };
	struct layout layout;

	(void)state;
	layout_init(&layout, c.metric, c.ibs.caps);
	for (int sets = 0; sets < 2; sets++) {
		c.line_sets = sets;
		config_select(&c, &all);
		for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
			const unsigned int op = i % IBS_LAYOUT_OPS, src = i / IBS_LAYOUT_OPS;
			const bool fed = sets && src == IBS_SRC_DRAM && layout_has(&layout, i) &&
					 (op == IBS_OP_KIND_LOAD || op == IBS_OP_KIND_LOCKED);

			assert_int_equal(c.layout[i],
					 layout.entry[i] | (fed ? IBS_LAYOUT_FEED : 0));
		}
		assert_true(!sets || c.layout[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, IBS_SRC_DRAM)] &
					     IBS_LAYOUT_FEED);
	}
	c = config_of(&dram);
	layout_filter(&layout, ~0U, 1 << IBS_SRC_DRAM);
	assert_memory_equal(c.layout, layout.entry, sizeof(c.layout));
	layout_init(&layout, c.metric, c.ibs.caps);
	layout_filter(&layout, 1 << IBS_OP_KIND_LOAD, ~0U);
	c = config_of(&loads);
	assert_memory_equal(c.layout, layout.entry, sizeof(c.layout));
	assert_int_equal(c.slot_words, layout.words);
}

/* What a filter in hardware keeps is marked where the strata are weighed, and of pairs that there are. */
static void test_reach(void **state)
{
	const struct selection all = {};
	struct ibs_config c = { .ibs.caps = 0x3ff, .reach = 1 << IBS_SRC_DRAM | 1 << IBS_SRC_L1 };
	struct layout layout;

	(void)state;
	layout_init(&layout, c.metric, c.ibs.caps);
	for (int strata = 0; strata < 2; strata++) {
		unsigned int marked = 0;

		c.weigh = strata ? IBS_WEIGH_STRATA : 0;
		config_select(&c, &all);
		for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
			const bool reach = strata && layout_has(&layout, i) &&
					   c.reach >> (i / IBS_LAYOUT_OPS) & 1;

			assert_int_equal(c.layout[i],
					 layout.entry[i] | (reach ? IBS_LAYOUT_REACH : 0));
			marked += reach;
		}
		assert_true(!strata || marked > 1);
	}
}

/* Of each status that a fetch may end with: where it counts, and whether it has the latency that is asked for. */
static void test_fetch_layout(void **state)
{
	struct ibs_config c = { .ibs.caps = 0x3ff, .metric = IBS_METRIC_FETCH_LAT };
	const struct selection all = {};
	__u16 out[IBS_FETCH_LAYOUT_ENTRIES];
	unsigned int with = 0;

	(void)state;
	config_select(&c, &all);
	memset(out, 0xff, sizeof(out));
	config_fetch_layout(&c, out);
	for (__u64 status = 0; status < IBS_FETCH_LAYOUT_ENTRIES; status++) {
		const __u64 ctl = status << IBS_FETCH_CTL_STATUS;
		const __u16 entry = c.layout[IBS_LAYOUT_IDX(ibs_fetch_itlb(c.ibs, ctl),
							    ibs_fetch_class(c.ibs, ctl))];
		const bool valid = ibs_fetch_metric_valid(c.metric, c.ibs, ctl);

		assert_int_equal(out[status], valid ? entry : entry & ~IBS_LAYOUT_HIST);
		with += valid && entry & IBS_LAYOUT_HIST;
	}
	assert_in_range(with, 1, IBS_FETCH_LAYOUT_ENTRIES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	     cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_registers),
		cmocka_unit_test(test_cgroup_value), cmocka_unit_test(test_layout),
		cmocka_unit_test(test_reach),	     cmocka_unit_test(test_fetch_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
