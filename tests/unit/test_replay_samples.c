// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replay of single samples, of a trace in memory: processors, tasks and events that no file of ours mixes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/std.h"
#include "replay/replay.h"

#define CAPS   0x3ffU /* of Zen 2 and of Zen 3 */
#define MEMORY 3      /* DataSrc */
#define KNOWN  10
#define OTHER  11

static struct memory_trace {
	struct trace t; /* must be first */
	struct trace_event events[8];
	size_t n, at;
} trace;

static int next_event(struct trace *t, struct trace_event *ev, struct err *err)
{
	(void)t;
	(void)err;
	if (trace.at == trace.n)
		return 0;
	*ev = trace.events[trace.at++];
	return 1;
}

static void rewind_events(struct trace *t)
{
	(void)t;
	trace.at = 0;
}

static const struct trace_format in_memory = { .next = next_event, .rewind = rewind_events };

static int reset(void **state)
{
	(void)state;
	memset(&trace, 0, sizeof(trace));
	trace.t.format = &in_memory;
	return 0;
}

/* A load that missed L1 and L2; @more: further bits of IBS_OP_DATA3. */
static struct trace_event *add_load(__u32 family, __u32 model, __u64 more)
{
	struct trace_event *ev = &trace.events[trace.n++];
	struct trace_sample *s = &ev->sample;

	*ev = (struct trace_event){ .kind = TRACE_SAMPLE_OP, .time = trace.n };
	s->op.cpu = (struct ibs_cpu){ .caps = CAPS, .quirks = ibs_quirks(family, model) };
	s->op.nregs = IBS_OP_REG_FIXED;
	s->op.present = (1U << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_DATA2] = MEMORY;
	s->op.reg[IBS_OP_DATA3] =
		IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | more;
	s->has_task = s->has_cpu = s->has_time = true;
	s->tgid = s->tid = KNOWN;
	s->cgroup_id = 1;
	return ev;
}

static void put_cgroup(__u64 id, const char *path)
{
	trace.events[trace.n++] =
		(struct trace_event){ .kind = TRACE_CGROUP, .cgroup = { .id = id, .path = path } };
}

static struct replay *open_replay(const struct replay_opts *opts)
{
	struct replay *r = NULL;
	struct err err = {};

	if (replay_open(&trace.t, opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* Samples of each source after a replay of everything. */
static void count_sources(const struct replay_opts *opts, __u64 *samples)
{
	struct replay *r = open_replay(opts);
	struct snapshot snap;
	struct err err = {};

	memset(samples, 0, IBS_SRC_N * sizeof(*samples));
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			samples[snap.groups[g].series[i].src] += snap.groups[g].series[i].samples;
	snapshot_free(&snap);
	replay_close(r);
}

/* Erratum 1293 invalidates DataSrc of such a load on Zen 3, but not on Zen 2, which has the same caps. */
static void test_two_processors(void **state)
{
	const struct replay_opts opts = {};
	__u64 samples[IBS_SRC_N];

	(void)state;
	for (int zen3_first = 0; zen3_first < 2; zen3_first++) {
		reset(NULL);
		for (int i = 0; i < 4; i++) {
			const bool zen3 = (i & 1) == !zen3_first;

			add_load(zen3 ? 0x19 : 0x17, zen3 ? 0x01 : 0x31, IBS_OP_DATA3_NO_MAB);
		}
		count_sources(&opts, samples);
		assert_int_equal(samples[IBS_SRC_DRAM], 2);
		assert_int_equal(samples[IBS_SRC_MAB], 2);
	}
}

static int judge(const struct replay_opts *opts, struct trace_event *ev)
{
	struct replay *r = open_replay(opts);
	struct err err = {};
	int ret = replay_judge(r, ev, &err);

	if (ret < 0)
		fail_msg("%s", err.text);
	replay_close(r);
	return ret;
}

/* A task that exits has no pid in perf's samples: it is neither excluded nor selected. */
static void test_unknown_task(void **state)
{
	static const __u32 pid = KNOWN, unknown = REPLAY_NO_TASK;
	struct replay_opts opts = { .sel.processes = { &pid, 1, true } };
	struct trace_event *ev = add_load(0x17, 0x31, 0);

	(void)state;
	assert_int_equal(judge(&opts, ev), 0);
	ev->sample.tgid = OTHER;
	assert_int_equal(judge(&opts, ev), 1);
	ev->sample.has_task = false;
	assert_int_equal(judge(&opts, ev), 0);
	opts.sel.processes.but = false;
	assert_int_equal(judge(&opts, ev), 0);
	opts.sel.processes.pids = &unknown;
	opts.sel.processes.n = 0;
	assert_int_equal(judge(&opts, ev), 1);
	opts.sel.threads = (struct selected_pids){ &pid, 1, false };
	assert_int_equal(judge(&opts, ev), 0);
}

/* Names are compared to their end, also where they begin with the same eight bytes. */
static void test_names(void **state)
{
	static const char *const selected[] = { "web worker", "db" };
	struct replay_opts opts = { .sel.comms = selected, .sel.n_comms = 2 };
	static const struct {
		const char *name;
		bool in;
	} rows[] = { { "web worker", true }, { "web works", false }, { "web work", false },
		     { "db", true },	     { "db2", false },	     { "web worker 15 b", false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event *ev;

		reset(NULL);
		trace.events[trace.n++] = (struct trace_event){
			.kind = TRACE_COMM,
			.comm = { .tgid = KNOWN, .tid = KNOWN, .name = rows[i].name }
		};
		ev = add_load(0x17, 0x31, 0);
		for (int but = 0; but < 2; but++) {
			opts.sel.comms_but = but;
			assert_int_equal(judge(&opts, ev), rows[i].in != but);
		}
	}
}

/* What a selection asks of registers, a sample of the other event does not answer. */
static void test_other_event(void **state)
{
	struct replay_opts by_regs[] = {
		{ .sel.op_mask = ~0U },
		{ .sel.src_mask = ~0U },
		{ .sel.min_lat = 1 },
		{ .sel.max_lat = 0xffff },
	};
	static const __u32 pid = KNOWN;
	const struct replay_opts by_task = { .sel.processes = { &pid, 1, false } };
	static char *cgroups[] = { "/slow:50,/any" };
	const struct replay_opts by_cgroup = { .cgroups = cgroups, .n_cgroups = 1 };
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct trace_sample *s = &ev->sample;

	(void)state;
	ev->kind = TRACE_SAMPLE_FETCH;
	s->fetch = (struct ibs_fetch_sample){ .cpu.caps = CAPS,
					      .nregs = IBS_FETCH_REG_FIXED,
					      .present = (1U << IBS_FETCH_REG_FIXED) - 1 };
	/* as registers of ibs_op: a load that missed, with a latency */
	for (int i = 0; i < IBS_OP_REG_FIXED; i++)
		s->op.reg[i] = 100ULL << 32 | IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS;
	for (size_t i = 0; i < ARRAY_SIZE(by_regs); i++)
		assert_int_equal(judge(&by_regs[i], ev), 0);
	assert_int_equal(judge(&by_task, ev), 1);
	/* of /slow the selection tests the latency, of /any nothing */
	put_cgroup(7, "/slow");
	put_cgroup(8, "/any");
	for (s->cgroup_id = 7; s->cgroup_id < 10; s->cgroup_id++)
		assert_int_equal(judge(&by_cgroup, ev), s->cgroup_id == 8);
	s->tgid = OTHER;
	assert_int_equal(judge(&by_task, ev), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_two_processors, reset),
		cmocka_unit_test_setup(test_unknown_task, reset),
		cmocka_unit_test_setup(test_names, reset),
		cmocka_unit_test_setup(test_other_event, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
