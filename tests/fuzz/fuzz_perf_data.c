// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a perf.data: no crash, and reading it twice gives the same. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/trace.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3;
}

static uint64_t mix_text(uint64_t sum, const char *text)
{
	while (*text)
		sum = mix(sum, (unsigned char)*text++);
	return sum;
}

static uint64_t mix_sample(uint64_t sum, const struct trace_event *ev,
			   const struct trace_info *info)
{
	const struct trace_sample *s = &ev->sample;

	need(s->pmu < info->n_pmus);
	need(info->pmu[s->pmu].op == (ev->kind == TRACE_SAMPLE_OP));
	need(s->n_stack <= TRACE_STACK_MAX);
	for (unsigned int i = 0; i < s->n_stack; i++)
		sum = mix(sum, s->stack[i]);
	for (int r = 0; r < (ev->kind == TRACE_SAMPLE_OP ? IBS_OP_REG_N : IBS_FETCH_REG_N); r++)
		sum = mix(sum, ev->kind == TRACE_SAMPLE_OP ? s->op.reg[r] : s->fetch.reg[r]);
	sum = mix(sum, s->tgid ^ (uint64_t)s->tid << 32);
	return mix(mix(sum, s->ip), s->cgroup_id);
}

static uint64_t mix_event(uint64_t sum, const struct trace_event *ev, const struct trace_info *info)
{
	sum = mix(mix(mix(sum, ev->kind), ev->time), ev->offset);
	switch (ev->kind) {
	case TRACE_SAMPLE_OP:
	case TRACE_SAMPLE_FETCH:
		return mix_sample(sum, ev, info);
	case TRACE_COMM:
		return mix_text(mix(sum, ev->comm.tid), ev->comm.name);
	case TRACE_MMAP:
		need(ev->mmap.build_id_len <= sizeof(ev->mmap.build_id));
		return mix_text(mix(sum, ev->mmap.start), ev->mmap.path);
	case TRACE_FORK:
	case TRACE_EXIT:
		return mix(sum, ev->fork.tid);
	case TRACE_CGROUP:
		return mix_text(mix(sum, ev->cgroup.id), ev->cgroup.path);
	case TRACE_LOST:
		return mix(sum, ev->lost.n);
	case TRACE_RANK:
	case TRACE_REGION:
	case TRACE_SLAB:
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_SLICE:
	case TRACE_KIND_N:
		break;
	}
	abort();
}

static uint64_t read_all(struct trace *state)
{
	struct trace_event ev;
	struct err e = { 0 };
	uint64_t sum = 0;
	int ret;

	while ((ret = perf_data_format.next(state, &ev, &e)) > 0)
		sum = mix_event(sum, &ev, trace_info(state));
	need(!ret == !*e.text);
	need(!trace_end(state)->whole == !!*trace_end(state)->missing);
	need(ret == 0 || !trace_end(state)->whole);
	need(perf_data_format.next(state, &ev, NULL) == ret);
	return mix(sum, trace_end(state)->skipped_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct err e = { 0 };
	struct trace *state;
	uint64_t sum;

	need(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (perf_data_format.open(fd, 0, 0, &state, &e)) {
		need(*e.text);
		need(fcntl(fd, F_GETFD) < 0);
		return 0;
	}
	sum = read_all(state);
	perf_data_format.rewind(state);
	need(read_all(state) == sum);
	perf_data_format.close(state);
	need(fcntl(fd, F_GETFD) < 0);
	return 0;
}
