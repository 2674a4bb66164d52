/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by bench_layout.bpf.c and tools/bench/layouts.c. */
#ifndef IBSCOPE_BENCH_LAYOUT_H
#define IBSCOPE_BENCH_LAYOUT_H

#include <ibscope/maps.h>

#define BENCH_MIX     16384 /* samples, a power of two */
#define BENCH_CGROUPS 1000
#define BENCH_SERIES  16384 /* as many as the mix can have */

enum bench_kind {
	BENCH_FLOOR,
	BENCH_PERCPU_HASH,
	BENCH_SHARED_HASH,
	BENCH_ARRAY_CACHED,
	BENCH_ARRAY_HASHED,
};

struct bench_key {
	__u64 cgroup_id;
	__u32 pair;
	__u32 pad;
};

struct bench_hist {
	__u64 words[IBS_HIST_REACH];
};

struct bench_sample {
	__u64 cgroup_id;
	__u16 lat;
	__u8 pair; /* IBS_LAYOUT_IDX() */
	__u8 has_lat;
	__u32 pad;
};

struct bench_ctx {
	__u32 kind; /* enum bench_kind */
	__u32 repeat;
	__u32 start; /* first sample of the mix */
	__u32 shard;
	__u64 ns, lost, sink; /* out */
};

#endif
