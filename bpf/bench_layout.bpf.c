// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ways to keep a histogram a cgroup, kind of op and source, each fed the same samples in a loop:
 * for `make bench` only. The samples are decoded already, so that what is left is the map.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "bench_layout.h"

const volatile __u16 cfg_layout[IBS_LAYOUT_ENTRIES];
const volatile __u32 cfg_slot_words = 1;
const volatile __u32 cfg_max_slots = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, BENCH_SERIES);
	__type(key, struct bench_key);
	__type(value, struct bench_hist);
} percpu_hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BENCH_SERIES);
	__type(key, struct bench_key);
	__type(value, struct bench_hist);
} shared_hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * BENCH_CGROUPS);
	__type(key, __u64);
	__type(value, struct ibs_cgroup);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader */
} series SEC(".maps");

struct bench_sample mix[BENCH_MIX];
struct bench_hist zero_hist;
struct {
	struct ibs_cgroup_cached cgroup[IBS_CGROUP_CACHE] __attribute__((aligned(512)));
} caches[IBS_MAX_CPUS];

struct run {
	__u32 start;
	__u32 shard;
	__u64 sink, lost;
};

static __always_inline const struct bench_sample *sample(__u32 i, const struct run *run)
{
	return &mix[(i + run->start) & (BENCH_MIX - 1)];
}

static long loop_floor(__u32 i, struct run *run)
{
	const struct bench_sample *s = sample(i, run);

	run->sink += s->cgroup_id + s->lat + s->pair + s->has_lat;
	return 0;
}

static __always_inline struct bench_hist *find_hist(void *map, const struct bench_sample *s)
{
	struct bench_key key = { .cgroup_id = s->cgroup_id, .pair = s->pair };
	struct bench_hist *h = bpf_map_lookup_elem(map, &key);

	if (h)
		return h;
	bpf_map_update_elem(map, &key, &zero_hist, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, &key);
}

static long loop_percpu_hash(__u32 i, struct run *run)
{
	const struct bench_sample *s = sample(i, run);
	struct bench_hist *h = find_hist(&percpu_hists, s);
	__u32 b = ibs_lat_bucket(s->lat) & IBS_HIST_BUCKET_MASK;

	if (!h) {
		run->lost++;
	} else if (s->has_lat) {
		h->words[IBS_HIST_SUM] += s->lat;
		h->words[IBS_HIST_BUCKET + b]++;
	} else {
		h->words[IBS_HIST_NO_LAT]++;
	}
	return 0;
}

static __always_inline void add(__u64 *words, const struct bench_sample *s, bool hist)
{
	__u32 b;

	if (hist && s->has_lat) {
		b = ibs_lat_bucket(s->lat) & IBS_HIST_BUCKET_MASK;
		__sync_fetch_and_add(&words[IBS_HIST_BUCKET + b], 1);
		__sync_fetch_and_add(&words[IBS_HIST_SUM], s->lat);
	} else {
		__sync_fetch_and_add(&words[IBS_HIST_NO_LAT], 1);
	}
}

static long loop_shared_hash(__u32 i, struct run *run)
{
	const struct bench_sample *s = sample(i, run);
	struct bench_hist *h = find_hist(&shared_hists, s);

	if (h)
		add(h->words, s, true);
	else
		run->lost++;
	return 0;
}

static __noinline int fill_cache(struct ibs_cgroup_cached *c, __u64 id, __u32 shard)
{
	struct ibs_cgroup *cg = bpf_map_lookup_elem(&cgroups, &id);

	if (!cg)
		return 1;
	c->cgroup_id = id;
	c->index = shard * cfg_max_slots + cg->slot;
	return 0;
}

static __always_inline void add_slot(__u32 index, const struct bench_sample *s, struct run *run)
{
	__u32 word = cfg_layout[s->pair & (IBS_LAYOUT_ENTRIES - 1)];
	bool hist = word & IBS_LAYOUT_HIST;
	__u64 *words;

	word &= IBS_LAYOUT_WORD;
	words = bpf_map_lookup_elem(&series, &index);
	if (!words || word > cfg_slot_words - IBS_HIST_REACH) {
		run->lost++;
		return;
	}
	add(words + word, s, hist);
}

static long loop_array_cached(__u32 i, struct run *run)
{
	const struct bench_sample *s = sample(i, run);
	__u64 id = s->cgroup_id;
	struct ibs_cgroup_cached *c = &caches[bpf_get_smp_processor_id() & (IBS_MAX_CPUS - 1)]
					       .cgroup[id & (IBS_CGROUP_CACHE - 1)];

	if (c->cgroup_id != id && fill_cache(c, id, run->shard))
		run->lost++;
	else
		add_slot(c->index, s, run);
	return 0;
}

static long loop_array_hashed(__u32 i, struct run *run)
{
	const struct bench_sample *s = sample(i, run);
	__u64 id = s->cgroup_id;
	struct ibs_cgroup *cg = bpf_map_lookup_elem(&cgroups, &id);

	if (!cg)
		run->lost++;
	else
		add_slot(run->shard * cfg_max_slots + cg->slot, s, run);
	return 0;
}

SEC("syscall")
int bench(struct bench_ctx *c)
{
	struct run run = { .start = c->start, .shard = c->shard };
	__u32 repeat = c->repeat, kind = c->kind;
	__u64 start = bpf_ktime_get_ns();

	if (kind == BENCH_FLOOR)
		bpf_loop(repeat, loop_floor, &run, 0);
	else if (kind == BENCH_PERCPU_HASH)
		bpf_loop(repeat, loop_percpu_hash, &run, 0);
	else if (kind == BENCH_SHARED_HASH)
		bpf_loop(repeat, loop_shared_hash, &run, 0);
	else if (kind == BENCH_ARRAY_CACHED)
		bpf_loop(repeat, loop_array_cached, &run, 0);
	else if (kind == BENCH_ARRAY_HASHED)
		bpf_loop(repeat, loop_array_hashed, &run, 0);
	c->ns = bpf_ktime_get_ns() - start;
	c->lost = run.lost;
	c->sink = run.sink;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
