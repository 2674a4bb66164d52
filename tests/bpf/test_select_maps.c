// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A selection that changes while programs run, in the maps that they read; and the tables of hot lines, which take turns. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "bind_to.h"
#include "sampler/sampler_private.h"
#include "twin_model.h"

static struct sampler *s;
static struct err err;

static void open_live(unsigned int live)
{
	struct sampler_opts opts = zen4;

	opts.by = IBS_BY_CGROUP;
	opts.sel.live = live;
	s = open_twin(&opts);
}

static int end(void **state)
{
	(void)state;
	sampler_close(s);
	s = NULL;
	return 0;
}

/* The entry of a cgroup in the map, if it has one. */
static bool entry(__u64 id, struct ibs_selected_cgroup *out)
{
	return !bpf_map_lookup_elem(s->select.cgroups_fd, &id, out);
}

static void in_map(__u64 id, int selected, __u16 min_lat)
{
	struct ibs_selected_cgroup e;

	assert_true(entry(id, &e));
	assert_int_equal(e.selected, selected);
	assert_int_equal(e.min_lat, min_lat);
}

static void not_in_map(__u64 id)
{
	struct ibs_selected_cgroup e;

	assert_false(entry(id, &e));
}

static void select_cgroups(const struct selected_cgroup *list, size_t n)
{
	const __u32 gen = s->select.cpus[0].live & IBS_LIVE_GEN;

	if (sampler_set_cgroups(s, list, n, &err))
		fail_msg("%s", err.text);
	/* all decisions are made again */
	assert_int_not_equal(s->select.cpus[0].live & IBS_LIVE_GEN, gen);
}

static void test_cgroups(void **state)
{
	const struct selected_cgroup first[] = { { .id = 30 },
						 { .id = 10 },
						 { .id = 20, .out = true } };
	const struct selected_cgroup second[] = { { .id = 10 },
						  { .id = 20, .min_lat = 7 },
						  { .id = 40 } };
	const struct selected_cgroup outs[] = { { .id = 40, .out = true },
						{ .id = 50, .filter_only = true } };
	const __u64 ten = 10;

	(void)state;
	open_live(SAMPLER_LIVE_CGROUPS);
	assert_int_equal(s->select.control->cgroup_default, IBS_CGROUP_IN);
	select_cgroups(first, 3);
	in_map(10, IBS_CGROUP_IN, 0);
	in_map(20, IBS_CGROUP_OUT, 0);
	in_map(30, IBS_CGROUP_IN, 0);
	/* some are selected: others are not */
	assert_int_equal(s->select.control->cgroup_default, IBS_CGROUP_OUT);
	/* an entry that stays is not written again, which would cost samples */
	assert_int_equal(bpf_map_delete_elem(s->select.cgroups_fd, &ten), 0);
	select_cgroups(second, 3);
	not_in_map(10);
	in_map(20, IBS_CGROUP_IN, 7);
	not_in_map(30);
	in_map(40, IBS_CGROUP_IN, 0);
	select_cgroups(outs, 2);
	not_in_map(20);
	in_map(40, IBS_CGROUP_OUT, 0);
	in_map(50, IBS_CGROUP_AS_ABOVE, 0);
	assert_int_equal(s->select.control->cgroup_default, IBS_CGROUP_IN);
	select_cgroups(NULL, 0);
	not_in_map(40);
	not_in_map(50);
}

static void test_most_cgroups(void **state)
{
	static struct selected_cgroup list[SAMPLER_MAX_SELECTED + 1];

	(void)state;
	open_live(SAMPLER_LIVE_CGROUPS);
	for (size_t i = 0; i <= SAMPLER_MAX_SELECTED; i++)
		list[i].id = i + 1;
	select_cgroups(list, SAMPLER_MAX_SELECTED);
	in_map(SAMPLER_MAX_SELECTED, IBS_CGROUP_IN, 0);
	/* as many others have room beside them */
	for (size_t i = 0; i <= SAMPLER_MAX_SELECTED; i++)
		list[i].id += SAMPLER_MAX_SELECTED;
	select_cgroups(list, SAMPLER_MAX_SELECTED);
	not_in_map(1);
	in_map(2 * SAMPLER_MAX_SELECTED, IBS_CGROUP_IN, 0);
	assert_int_equal(sampler_set_cgroups(s, list, SAMPLER_MAX_SELECTED + 1, &err), -E2BIG);
	assert_string_equal(err.text, "4097 cgroups selected; the maximum is 4096");
	in_map(2 * SAMPLER_MAX_SELECTED, IBS_CGROUP_IN, 0);
	not_in_map(2 * SAMPLER_MAX_SELECTED + 1);
}

/* What was not announced cannot change. */
static void test_not_live(void **state)
{
	static const char refused[] =
		"this collection was not started with a selection that can be changed";
	const struct selected_cgroup named[] = { { .id = 10 } },
				     only[] = { { .id = 10, .filter_only = true } };
	const __u32 pids[] = { 1 };
	const struct selected_pids set = { .pids = pids, .n = 1 };

	(void)state;
	open_live(SAMPLER_LIVE_FILTER);
	assert_int_equal(sampler_set_cgroups(s, named, 1, &err), -EINVAL);
	assert_string_equal(err.text, refused);
	not_in_map(10);
	/* cgroups of a filter may */
	select_cgroups(only, 1);
	in_map(10, IBS_CGROUP_AS_ABOVE, 0);
	err = (struct err){ "" };
	assert_int_equal(sampler_set_latency(s, 1, 2, &err), -EINVAL);
	assert_string_equal(err.text, refused);
	err = (struct err){ "" };
	assert_int_equal(sampler_set_processes(s, &set, &err), -EINVAL);
	assert_string_equal(err.text, refused);
	end(NULL);
	open_live(SAMPLER_LIVE_LATENCY);
	assert_int_equal(sampler_set_cgroups(s, only, 1, &err), -EINVAL);
	assert_int_equal(sampler_set_latency(s, 300, 4000, &err), 0);
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		assert_int_equal(s->select.cpus[cpu].lat, 4000u << IBS_LAT_MAX_SHIFT | 300);
}

/* Bytes of processes: those that are selected, or those that are left out. */
static void test_processes(void **state)
{
	const __u32 two[] = { 7, 9 }, one[] = { 9 };
	__u32 beyond[] = { 11, 0 };
	struct selected_pids set = { .pids = two, .n = 2 };
	char want[100];

	(void)state;
	open_live(SAMPLER_LIVE_PROCESSES);
	assert_int_equal(sampler_set_processes(s, &set, &err), 0);
	assert_int_equal(s->select.processes[7], IBS_PID_IN);
	assert_int_equal(s->select.processes[9], IBS_PID_IN);
	assert_int_equal(s->select.processes[8], 0);
	assert_true(s->select.cpus[0].live & IBS_PID_TEST_IN);
	set = (struct selected_pids){ .pids = one, .n = 1 };
	assert_int_equal(sampler_set_processes(s, &set, &err), 0);
	assert_int_equal(s->select.processes[7], 0);
	assert_int_equal(s->select.processes[9], IBS_PID_IN);
	set.but = true;
	assert_int_equal(sampler_set_processes(s, &set, &err), 0);
	assert_int_equal(s->select.processes[9], IBS_PID_OUT);
	assert_true(s->select.cpus[0].live & IBS_PID_TEST_OUT);
	assert_false(s->select.cpus[0].live & IBS_PID_TEST_IN);
	/* one that cannot exist changes nothing */
	beyond[1] = s->select.pids_n;
	set = (struct selected_pids){ .pids = beyond, .n = 2 };
	assert_int_equal(sampler_set_processes(s, &set, &err), -ERANGE);
	snprintf(want, sizeof(want), "process %zu: out of range: pids are below %zu",
		 s->select.pids_n, s->select.pids_n);
	assert_string_equal(err.text, want);
	assert_int_equal(s->select.processes[11], 0);
	assert_int_equal(s->select.processes[9], IBS_PID_OUT);
}

/* Each CPU has two tables, the second one of which is empty when it is taken. */
static void test_lines(void **state)
{
	struct sampler_opts opts = zen4;
	const __u32 sets = 16;

	(void)state;
	opts.line_sets = sets;
	s = open_twin(&opts);
	for (int turn = 0; turn < 4; turn++) {
		for (__u32 n = 0; n < s->possible_cpus; n++) {
			struct ibs_lines *now = (void *)sampler_lines(s, n, true);
			struct ibs_lines *last = (void *)sampler_lines(s, n, false);

			assert_ptr_not_equal(now, last);
			assert_int_equal(now->hand, 0);
			if (turn)
				assert_int_equal(last->hand, 1000 * turn + n);
			now->hand = 1000 * (turn + 1) + n;
			assert_int_equal(s->state->cpu[n].lines, 2 * n + (turn & 1));
		}
		sampler_lines_next(s);
	}
	assert_null(sampler_lines(s, s->possible_cpus, true));
	assert_null(sampler_lines(s, s->possible_cpus, false));
}

#define T(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cgroups),   T(test_most_cgroups), T(test_not_live),
		T(test_processes), T(test_lines),
	};

	bind_to(0);
	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
