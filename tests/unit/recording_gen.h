/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random recordings, and what their reader must give. */
#ifndef IBSCOPE_TESTS_RECORDING_GEN_H
#define IBSCOPE_TESTS_RECORDING_GEN_H

#include <ibscope/sim.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

struct gen {
	__u64 state;
};

static inline __u64 gen_u64(struct gen *g)
{
	return ibs_sim_mix(g->state++);
}

static inline unsigned int gen_below(struct gen *g, unsigned int n)
{
	return gen_u64(g) % n;
}

/* Few or many bits: small values and extremes are as likely as large ones. */
static inline __u64 gen_value(struct gen *g)
{
	__u64 v = gen_u64(g) >> gen_below(g, 64);

	return gen_below(g, 8) ? v : -v;
}

static inline void gen_record(struct gen *g, struct ibs_record *r)
{
	*r = (struct ibs_record){
		.cgroup_id = gen_value(g),
		.tgid = gen_value(g),
		.tid = gen_value(g),
		.ip = gen_value(g),
		.addr = gen_value(g),
		.phys = gen_value(g),
		.data3 = gen_value(g),
		.packed = ibs_record_pack(gen_value(g), gen_value(g), gen_value(g)),
	};
}

static inline void gen_raw(struct gen *g, struct ibs_record_raw *r)
{
	*r = (struct ibs_record_raw){
		.cgroup_id = gen_value(g),
		.tgid = gen_value(g),
		.tid = gen_value(g),
		.cpu = gen_value(g),
		.bytes = IBS_OP_RAW_MIN + 8 * gen_below(g, 3),
		.caps = gen_value(g),
	};
	for (unsigned int k = 0; k < (r->bytes - 4) / 8; k++)
		r->regs[k] = gen_value(g);
}

/* Any bytes but 0; @buf has @size. */
static inline const char *gen_string(struct gen *g, char *buf, size_t size)
{
	size_t n = gen_below(g, size);

	for (size_t i = 0; i < n; i++)
		buf[i] = 1 + gen_below(g, 255);
	buf[n] = 0;
	return buf;
}

/* An event of any kind but samples; its string or stack is in @buf, which is aligned for addresses. */
static inline void gen_event(struct gen *g, struct trace_event *ev, char *buf, size_t size)
{
	*ev = (struct trace_event){ .kind = TRACE_COMM + gen_below(g, TRACE_KIND_N - TRACE_COMM) };
	switch (ev->kind) {
	case TRACE_COMM:
		ev->comm.tgid = gen_u64(g);
		ev->comm.tid = gen_u64(g);
		ev->comm.exec = gen_below(g, 2);
		ev->comm.name = gen_string(g, buf, size);
		break;
	case TRACE_MMAP:
		ev->mmap.tgid = gen_u64(g);
		ev->mmap.tid = gen_u64(g);
		ev->mmap.kernel = gen_below(g, 2);
		ev->mmap.exec = gen_below(g, 2);
		ev->mmap.start = gen_u64(g);
		ev->mmap.len = gen_u64(g);
		ev->mmap.pgoff = gen_u64(g);
		ev->mmap.path = gen_string(g, buf, size);
		ev->mmap.build_id_len = gen_below(g, sizeof(ev->mmap.build_id) + 1);
		for (unsigned int i = 0; i < ev->mmap.build_id_len; i++)
			ev->mmap.build_id[i] = gen_u64(g);
		break;
	case TRACE_CGROUP:
		ev->cgroup.id = gen_u64(g);
		ev->cgroup.path = gen_string(g, buf, size);
		if (gen_below(g, 2)) {
			ev->cgroup.container = gen_below(g, 2) ? "web" : "";
			ev->cgroup.pod = gen_below(g, 2) ? "web-0" : "";
			ev->cgroup.ns = gen_below(g, 2) ? "shop" : "";
		}
		break;
	case TRACE_LOST:
		ev->lost.n = gen_u64(g);
		ev->lost.samples = gen_below(g, 2);
		ev->lost.cpu = gen_u64(g);
		break;
	case TRACE_RANK:
		ev->rank.tgid = gen_u64(g);
		ev->rank.rank = gen_u64(g);
		ev->rank.ended = gen_below(g, 2);
		ev->rank.status = gen_u64(g);
		break;
	case TRACE_REGION:
		ev->region.tid = gen_u64(g);
		ev->region.omp = gen_below(g, 2);
		ev->region.end = gen_below(g, 2);
		ev->region.team = gen_u64(g);
		ev->region.number = gen_u64(g);
		ev->region.addr = gen_u64(g);
		ev->region.name = gen_string(g, buf, size);
		break;
	case TRACE_SLAB:
		ev->slab.id = gen_u64(g);
		ev->slab.object_size = gen_u64(g);
		ev->slab.size = gen_u64(g);
		ev->slab.pad = gen_u64(g);
		ev->slab.order = gen_u64(g);
		ev->slab.min_order = gen_u64(g);
		ev->slab.merged = gen_below(g, 2);
		snprintf(ev->slab.name, sizeof(ev->slab.name), "%.60s", gen_string(g, buf, size));
		break;
	case TRACE_ALLOC:
		ev->alloc.tgid = gen_u64(g);
		ev->alloc.tid = gen_u64(g);
		ev->alloc.addr = gen_u64(g);
		ev->alloc.size = gen_u64(g);
		ev->alloc.weight = gen_u64(g);
		ev->alloc.mapped = gen_below(g, 2);
		ev->alloc.n_stack = gen_below(g, size / sizeof(*ev->alloc.stack) + 1);
		gen_string(g, buf, size);
		ev->alloc.stack = (const __u64 *)buf;
		break;
	case TRACE_FREE:
		ev->free.tgid = gen_u64(g);
		ev->free.tid = gen_u64(g);
		ev->free.addr = gen_u64(g);
		ev->free.size = gen_u64(g);
		break;
	case TRACE_SLICE:
		ev->slice.of = gen_u64(g);
		ev->slice.start = gen_u64(g);
		ev->slice.end = gen_u64(g);
		ev->slice.ops = gen_u64(g);
		ev->slice.tags = gen_u64(g);
		ev->slice.period = gen_u64(g);
		break;
	default:
		ev->fork.tgid = gen_u64(g);
		ev->fork.tid = gen_u64(g);
		ev->fork.parent_tgid = gen_u64(g);
		ev->fork.parent_tid = gen_u64(g);
	}
}

#endif
