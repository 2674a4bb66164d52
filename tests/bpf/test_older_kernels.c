// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs as on kernels with fewer features than this one: what they find out of the current task is the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lacking.h"
#include "twin_child.h"
#include "twin_model.h"

/* The cgroup of a sample, and those above it: by the helper, and by the kernel's structures. */
static void test_ancestors(void **state)
{
	struct selected_cgroup sel = {};
	struct sampler_opts opts = zen4;
	char path[640];

	(void)state;
	need_cgroups();
	make_tree();
	sel.id = make_cgroup("a/b/c", path);
	for (int lacks = 0; lacks < 4; lacks++) {
		struct sampler *s;

		lacking.ancestor_helper = lacks & 1;
		opts.probe_read = lacks & 2;
		opts.sel = (struct selection){};
		check_filter_cgroup(opts);
		opts.sel.cgroups = &sel;
		opts.sel.n_cgroups = 1;
		s = open_twin(&opts);
		for (size_t i = 0; i < TREE_N; i++)
			assert_int_equal(outcome_in(s, tree[i], 300),
					 !strncmp(tree[i], "a/b/c", 5)
						 ? IBS_OUTCOME_AGGREGATED
						 : IBS_OUTCOME_FILTERED_CGROUP);
		close_twin(s);
	}
	lacking.ancestor_helper = false;
}

/* What a cgroup asks for overrides what is asked of all of the hierarchy, however few levels it is below. */
static void test_below_root(void **state)
{
	struct selected_cgroup sel[2] = { { .min_lat = 50 }, { .min_lat = 400 } };
	struct sampler_opts opts = zen4;
	char path[640];

	(void)state;
	need_cgroups();
	make_tree();
	sel[0].id = make_cgroup("..", path);
	sel[1].id = make_cgroup("a", path);
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 2;
	for (int lacks = 0; lacks < 2; lacks++) {
		struct sampler *s;

		lacking.ancestor_helper = lacks;
		s = open_twin(&opts);
		assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_LAT);
		assert_int_equal(outcome_in(s, "a/b/c", 300), IBS_OUTCOME_FILTERED_LAT);
		assert_int_equal(outcome_in(s, "a", 400), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(outcome_in(s, "z", 300), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(outcome_in(s, "z", 49), IBS_OUTCOME_FILTERED_LAT);
		close_twin(s);
	}
	lacking.ancestor_helper = false;
}

/* The name of a task as the key of its group. */
static void test_names(void **state)
{
	static const char *const names[] = { "", "a", "of-eight", "of-eight-", "a-name-of-15-ch" };
	struct sampler_opts opts = zen4;
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	opts.by = IBS_BY_COMM;
	for (int probe = 0; probe < 2; probe++) {
		struct snapshot snap;
		struct sampler *s;

		opts.probe_read = probe;
		s = open_twin(&opts);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			/* a longer one before it leaves nothing behind */
			prctl(PR_SET_NAME, "xxxxxxxxxxxxxxx");
			prctl(PR_SET_NAME, names[i]);
			assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
		}
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, sizeof(names) / sizeof(*names));
		for (size_t g = 0; g < snap.n_groups; g++) {
			char want[16] = "";
			size_t i = 0;

			while (i < snap.n_groups && strcmp(snap.groups[g].key.comm, names[i]))
				i++;
			assert_in_range(i, 0, snap.n_groups - 1);
			strcpy(want, names[i]);
			assert_memory_equal(snap.groups[g].key.comm, want, sizeof(want));
		}
		snapshot_free(&snap);
		close_twin(s);
	}
	prctl(PR_SET_NAME, "test_older_kern");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ancestors),
		cmocka_unit_test(test_below_root),
		cmocka_unit_test(test_names),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, children_up, children_down);
}
