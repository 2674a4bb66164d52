// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a recording: no crash, no hang, and the same again after a rewind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recording_mutator.h"
#include "trace/trace.h"

/* The other format is fuzzed alone. */
const struct trace_format perf_data_format;

static void need(int condition)
{
	if (!condition)
		abort();
}

static __u64 add(__u64 sum, __u64 v)
{
	return (sum ^ v) * 0x100000001b3ULL;
}

static __u64 add_text(__u64 sum, const char *s)
{
	while (*s)
		sum = add(sum, *s++);
	return sum;
}

static __u64 add_copy(__u64 sum, const struct trace_copy *c)
{
	if (!c)
		return sum;
	need(c->bytes <= IBS_COPY_MAX);
	for (unsigned int i = 0; i < IBS_USER_REGS; i++)
		sum = add(sum, c->regs[i]);
	for (unsigned int i = 0; i < c->bytes; i++)
		sum = add(sum, c->data[i]);
	return add(sum, c->cut);
}

/* Touches all that the event points to. */
static __u64 add_event(__u64 sum, const struct trace_info *info, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;

	sum = add(add(sum, ev->kind), ev->time);
	switch (ev->kind) {
	case TRACE_SAMPLE_OP:
		need(s->pmu < info->n_pmus);
		need(s->n_stack <= 2 * (TRACE_STACK_MAX + 1));
		for (unsigned int i = 0; i < s->n_stack; i++)
			sum = add(sum, s->stack[i]);
		for (unsigned int i = 0; i < IBS_OP_REG_N; i++)
			sum = add(sum, s->op.reg[i]);
		return add_copy(add(sum, s->op.present ^ s->ip), s->copy);
	case TRACE_SAMPLE_FETCH:
		need(s->pmu < info->n_pmus && !info->pmu[s->pmu].op);
		need(s->n_stack <= 2 * (TRACE_STACK_MAX + 1));
		for (unsigned int i = 0; i < IBS_FETCH_REG_N; i++)
			sum = add(sum, s->fetch.reg[i]);
		return add_copy(add(sum, s->fetch.present ^ s->ip), s->copy);
	case TRACE_COMM:
		return add_text(sum, ev->comm.name);
	case TRACE_MMAP:
		need(ev->mmap.build_id_len <= sizeof(ev->mmap.build_id));
		return add_text(sum, ev->mmap.path);
	case TRACE_CGROUP:
		sum = add_text(add_text(sum, ev->cgroup.path), ev->cgroup.container);
		return add_text(add_text(sum, ev->cgroup.pod), ev->cgroup.ns);
	case TRACE_LOST:
		return add(sum, ev->lost.n);
	case TRACE_RANK:
		return add(sum, ev->rank.rank);
	case TRACE_REGION:
		return add_text(add(sum, ev->region.addr), ev->region.name);
	case TRACE_SLAB:
		return add_text(add(sum, ev->slab.id), ev->slab.name);
	case TRACE_ALLOC:
		need(ev->alloc.n_stack <= TRACE_STACK_MAX);
		for (unsigned int i = 0; i < ev->alloc.n_stack; i++)
			sum = add(sum, ev->alloc.stack[i]);
		return add(sum, ev->alloc.addr ^ ev->alloc.weight);
	case TRACE_FREE:
		return add(sum, ev->free.addr ^ ev->free.size);
	case TRACE_SLICE:
		return add(sum, ev->slice.tags);
	case TRACE_FORK:
	case TRACE_EXIT:
		return add(sum, ev->fork.tid);
	default:
		abort();
	}
}

static __u64 read_all(struct trace *state)
{
	const struct trace_info *info = trace_info(state);
	const struct trace_end *end;
	struct trace_event ev;
	struct err err = {};
	__u64 sum = 0, done, total;
	int ret;

	while ((ret = recording_format.next(state, &ev, &err)) > 0)
		sum = add_event(sum, info, &ev);
	need(!ret);
	done = state->done, total = state->total;
	need(done == total);
	end = trace_end(state);
	need(end->whole == !end->missing[0]);
	need(end->skipped_bytes <= total);
	return add(add(sum, end->skipped_bytes), end->skipped_blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", 0);
	struct err err = {};
	struct trace *state;
	__u64 sum;

	need(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	recording_format.magic(data, size < TRACE_MAGIC_BYTES ? size : TRACE_MAGIC_BYTES);
	if (recording_format.open(fd, 0, 0, &state, &err)) {
		need(err.text[0]);
		return 0;
	}
	sum = read_all(state);
	recording_format.rewind(state);
	need(read_all(state) == sum);
	recording_format.close(state);
	return 0;
}
