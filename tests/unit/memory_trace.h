/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A trace in memory: processors, tasks, events and times that no file of ours mixes. */
#ifndef IBSCOPE_TESTS_MEMORY_TRACE_H
#define IBSCOPE_TESTS_MEMORY_TRACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
	struct trace_event events[24];
	size_t n, at;
	int error; /* at the end; 0: none */
} trace;

static inline int next_event(struct trace *t, struct trace_event *ev, struct err *err)
{
	(void)t;
	if (trace.at == trace.n)
		return trace.error ? err_set(err, trace.error, "bad block") : 0;
	*ev = trace.events[trace.at++];
	return 1;
}

static inline void rewind_events(struct trace *t)
{
	(void)t;
	trace.at = 0;
}

static const struct trace_format in_memory = { .next = next_event, .rewind = rewind_events };

static inline int reset(void **state)
{
	(void)state;
	memset(&trace, 0, sizeof(trace));
	trace.t.format = &in_memory;
	return 0;
}

static inline struct trace_event *add_event(enum trace_kind kind)
{
	struct trace_event *ev = &trace.events[trace.n++];

	assert_true(trace.n <= ARRAY_SIZE(trace.events));
	*ev = (struct trace_event){ .kind = kind, .time = trace.n };
	return ev;
}

/* A load that missed L1 and L2; @more: further bits of IBS_OP_DATA3. */
static inline struct trace_event *add_load(__u32 family, __u32 model, __u64 more)
{
	struct trace_event *ev = add_event(TRACE_SAMPLE_OP);
	struct trace_sample *s = &ev->sample;

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

static inline void put_cgroup(__u64 id, const char *path)
{
	struct trace_event *ev = add_event(TRACE_CGROUP);

	ev->time = 0;
	ev->cgroup.id = id;
	ev->cgroup.path = path;
}

static inline void add_comm(__u32 tgid, const char *name)
{
	struct trace_event *ev = add_event(TRACE_COMM);

	ev->time = 0;
	ev->comm.tgid = ev->comm.tid = tgid;
	ev->comm.name = name;
}

static inline struct replay *open_replay(const struct replay_opts *opts)
{
	struct replay *r = NULL;
	struct err err = {};

	trace.at = 0;
	if (replay_open(&trace.t, opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* All samples at once; the caller frees the result. */
static inline void replay_all(const struct replay_opts *opts, struct snapshot *snap)
{
	struct replay *r = open_replay(opts);
	struct err err = {};

	if (replay_run(r, &err) || replay_snapshot(r, snap, &err))
		fail_msg("%s", err.text);
	replay_close(r);
}

static inline int judge(const struct replay_opts *opts, struct trace_event *ev)
{
	struct replay *r = open_replay(opts);
	struct err err = {};
	int ret = replay_judge(r, ev, &err);

	if (ret < 0)
		fail_msg("%s", err.text);
	replay_close(r);
	return ret;
}

#endif
