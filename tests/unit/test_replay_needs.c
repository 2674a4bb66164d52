// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a selection and keys need of a recording, and what is said of one that lacks it. */
#include "memory_trace.h"

#include <errno.h>

#define OFFSET 4711 /* of the sample in its file */

static struct trace_topology topology = { .n = 2, .ccx = { 4, 5, 6 }, .node = { 7, 8, 9 } };
static struct filter filter;
static struct err err;

static const struct filter *of_filter(const char *text)
{
	filter_free(&filter);
	memset(&filter, 0, sizeof(filter));
	if (filter_parse(text, &filter, &err))
		fail_msg("%s", err.text);
	return &filter;
}

static int tear_down(void **state)
{
	(void)state;
	filter_free(&filter);
	memset(&filter, 0, sizeof(filter));
	return 0;
}

/* Return: of opening the recording, or of replaying all samples. */
static int run(const struct replay_opts *opts)
{
	struct replay *r = NULL;
	int ret;

	trace.at = 0;
	memset(&err, 0, sizeof(err));
	ret = replay_open(&trace.t, opts, &r, &err);
	ret = ret ?: replay_run(r, &err);
	replay_close(r);
	return ret;
}

static void lacks(const struct replay_opts *opts, const char *text)
{
	assert_int_equal(run(opts), -ENODATA);
	if (!strstr(err.text, text))
		fail_msg("'%s' lacks '%s'", err.text, text);
}

static void lacks_nothing(const struct replay_opts *opts)
{
	if (run(opts))
		fail_msg("%s", err.text);
}

/* @opts needs what @s lacks, in a replay and to judge the sample. */
static void needs(const struct replay_opts *opts, struct trace_event *ev, const char *text)
{
	struct replay *r = open_replay(opts);
	struct replay_rest rest;
	char message[128];

	snprintf(message, sizeof(message), "offset %d: the recording lacks the %s of its samples",
		 OFFSET, text);
	ev->offset = OFFSET;
	lacks(opts, message);
	assert_int_equal(replay_judge(r, ev, &err), -ENODATA);
	assert_non_null(strstr(err.text, message));
	replay_rest(r, &rest);
	assert_int_equal(rest.other_cpus, 0);
	replay_close(r);
}

/* The CPU of samples: perf records it if it is asked to. */
static void test_cpu(void **state)
{
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct cpulist cpus = {};
	struct replay_opts opts = { .cpus = &cpus };

	(void)state;
	trace.t.info.topology = &topology;
	cpulist_add(&cpus, 0);
	ev->sample.has_cpu = false;
	needs(&opts, ev, "CPU");
	opts.cpus = NULL;
	for (__u32 by = 1; by <= IBS_BY_MEM_NODE; by *= 2) {
		opts.by = by;
		if (by & (IBS_BY_CPU | IBS_BY_NODE | IBS_BY_COMPLEX))
			needs(&opts, ev, "CPU");
		else
			lacks_nothing(&opts);
	}
	opts.by = IBS_BY_PID;
	opts.filter = of_filter("cpu == 1");
	needs(&opts, ev, "CPU");
	opts.filter = of_filter("pid == 10 && dc_miss");
	lacks_nothing(&opts);
}

/* The complex and the node of a CPU, from the topology of the machine. */
static void test_place(void **state)
{
	static const __u32 by[] = { IBS_BY_COMPLEX, IBS_BY_NODE };
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct cpulist cpus = {};
	struct replay_opts opts = {};

	(void)state;
	cpulist_add(&cpus, 1);
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		opts = (struct replay_opts){ .by = by[i] };
		trace.t.info.topology = NULL;
		lacks(&opts, "--by: the recording lacks the topology of its machine");
		trace.t.info.topology = &topology;
		ev->sample.cpu = 1;
		lacks_nothing(&opts);
		ev->sample.cpu = 2;
		needs(&opts, ev, "CPU's L3 complex and NUMA node");
		/* of a CPU that is not selected, nothing is needed */
		opts.cpus = &cpus;
		lacks_nothing(&opts);
	}
	trace.t.info.topology = NULL;
	opts = (struct replay_opts){ .by = IBS_BY_CPU };
	lacks_nothing(&opts);
}

/* A filter decides by the cgroup; --cgroup leaves out samples of which it is unknown. */
static void test_cgroup(void **state)
{
	static char *names[] = { "/a" };
	struct replay_opts opts = { .by = IBS_BY_CGROUP };
	struct trace_event *ev;

	(void)state;
	put_cgroup(7, "/a");
	ev = add_load(0x17, 0x31, 0);
	opts.filter = of_filter("cgroup == \"/a\"");
	lacks_nothing(&opts);
	ev->sample.cgroup_id = 0;
	needs(&opts, ev, "cgroup");
	opts.filter = of_filter("cpu == 0");
	lacks_nothing(&opts);
	opts = (struct replay_opts){ .cgroups = names, .n_cgroups = 1 };
	lacks_nothing(&opts);
	assert_int_equal(judge(&opts, ev), 0);
}

/* The process of samples, if it is unknown of all. */
static void test_task(void **state)
{
	static const char message[] = "the recording lacks the process of all samples";
	static const char *const comms[] = { "x" };
	static const __u32 pid = KNOWN;
	const struct replay_opts rows[] = {
		{ .sel.processes = { &pid, 1, false } },
		{ .sel.processes = { &pid, 1, true } },
		{ .sel.processes = { NULL, 0, true } },
		{ .sel.threads = { &pid, 1, false } },
		{ .by = IBS_BY_PID },
		{ .by = IBS_BY_TID },
		{ .filter = of_filter("pid == 10") },
	};
	const struct replay_opts others[] = { { .by = IBS_BY_CGROUP | IBS_BY_CPU | IBS_BY_MODE },
					      { .sel.comms = comms, .sel.n_comms = 1 } };
	struct trace_event *ev = add_load(0x17, 0x31, 0), *second = add_load(0x17, 0x31, 0);

	(void)state;
	ev->sample.has_task = second->sample.has_task = false;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		lacks(&rows[i], message);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		lacks_nothing(&others[i]);
	second->sample.has_task = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		lacks_nothing(&rows[i]);
	trace.n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		lacks_nothing(&rows[i]);
}

/* Slab caches, and users, which no recording has. */
static void test_others(void **state)
{
	struct replay_opts opts = { .by = IBS_BY_SLAB };

	(void)state;
	add_load(0x17, 0x31, 0);
	lacks(&opts, "--by slab: the recording has no slab caches");
	add_event(TRACE_SLAB)->slab = (struct ibs_slab){ .id = 64, .name = "dentry" };
	lacks_nothing(&opts);
	opts.filter = of_filter("uid == 0");
	lacks(&opts, "--filter: recordings do not contain users and groups");
	opts.by = IBS_BY_COMPLEX;
	lacks(&opts, "--filter: recordings do not contain users and groups");
	opts.by = 0;
	opts.filter = of_filter("tid == 0");
	lacks_nothing(&opts);
}

/* A file that cannot be read to its end: the message is that of the reader. */
static void test_damage(void **state)
{
	static char *nothing[] = { "/nothing" };
	struct replay_opts opts = { .cgroups = nothing, .n_cgroups = 1 };
	struct replay *r;
	__u64 next = 0;

	(void)state;
	add_load(0x17, 0x31, 0)->sample.has_task = false;
	trace.error = -EBADMSG;
	assert_int_equal(run(&opts), -EBADMSG);
	assert_string_equal(err.text, "bad block");
	opts = (struct replay_opts){ .by = IBS_BY_PID };
	trace.error = 0;
	r = open_replay(&opts);
	trace.error = -EBADMSG;
	memset(&err, 0, sizeof(err));
	assert_int_equal(replay_until(r, 100, &next, &err), -EBADMSG);
	assert_string_equal(err.text, "bad block");
	replay_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cpu, reset, tear_down),
		cmocka_unit_test_setup_teardown(test_place, reset, tear_down),
		cmocka_unit_test_setup_teardown(test_cgroup, reset, tear_down),
		cmocka_unit_test_setup_teardown(test_task, reset, tear_down),
		cmocka_unit_test_setup_teardown(test_others, reset, tear_down),
		cmocka_unit_test_setup_teardown(test_damage, reset, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
