// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sizes of all maps, from the options alone. */
#include "base/num.h"
#include "sampler_private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/* An element of a preallocated hash and its bucket (Linux kernel/bpf/hashtab.c, 64 bit). */
#define HASH_ELEM_OVERHEAD 48
#define HASH_BUCKET	   16

static __u64 hash_bytes(__u64 entries, __u64 key, __u64 value)
{
	__u64 buckets = 1;

	while (buckets < entries)
		buckets *= 2;
	return entries * (HASH_ELEM_OVERHEAD + (key + 7) / 8 * 8 + (value + 7) / 8 * 8) +
	       buckets * HASH_BUCKET;
}

/* Blocks of a pid set, for all pids up to kernel.pid_max, which can change at any time. */
__u32 sampler_pid_blocks(void)
{
	int64_t pid_max;

	if (num_read("", "/proc/sys/kernel/pid_max", &pid_max, NULL) || pid_max < 1 ||
	    pid_max > IBS_PID_MAX)
		pid_max = IBS_PID_MAX;
	return (pid_max + IBS_PID_BLOCK - 1) / IBS_PID_BLOCK;
}

/* A power of two: a mask keeps indices below it. */
__u32 sampler_cpu_entries(unsigned int possible_cpus)
{
	__u32 n = 1;

	while (n < possible_cpus)
		n *= 2;
	return n;
}

bool watches_forks(const struct sampler_opts *opts)
{
	return selects_processes(&opts->sel) || selects_threads(&opts->sel);
}

/* Cgroups that a selection can name; 0: cgroups are not tested. */
size_t sampler_max_selected(const struct selection *sel)
{
	if (!(sel->live & (SAMPLER_LIVE_CGROUPS | SAMPLER_LIVE_FILTER)))
		return sel->n_cgroups;
	return sel->n_cgroups > SAMPLER_MAX_SELECTED / 2 ? 2 * sel->n_cgroups
							 : SAMPLER_MAX_SELECTED;
}

/* During a change the map holds the old and the new selection. */
size_t sampler_max_selected_entries(const struct selection *sel)
{
	bool live = sel->live & (SAMPLER_LIVE_CGROUPS | SAMPLER_LIVE_FILTER);

	return sampler_max_selected(sel) << live;
}

__u32 sampler_group_by(const struct sampler_opts *opts)
{
	return opts->output == SAMPLER_SERIES ? opts->by : 0;
}

__u32 sampler_max_slots(const struct sampler_opts *opts)
{
	if (opts->output != SAMPLER_SERIES)
		return IBS_SLOT_OTHER + 1 + 1;
	return config_max_slots(opts->max_groups) + !!opts->pins;
}

bool sampler_has_rings(const struct sampler_opts *opts)
{
	return opts->output != SAMPLER_SERIES || opts->copies;
}

size_t sampler_sampled_cpus(const struct sampler_opts *opts)
{
	return opts->source == SAMPLER_TWIN ? (size_t)libbpf_num_possible_cpus() : opts->n_cpus;
}

size_t sampler_ring_cpus(const struct sampler_opts *opts)
{
	return sampler_has_rings(opts) ? sampler_sampled_cpus(opts) : 0;
}

size_t sampler_line_bytes(const struct sampler_opts *opts)
{
	return IBS_LINES_BYTES((size_t)opts->line_sets);
}

size_t sampler_record_bytes(const struct sampler_opts *opts)
{
	return rings_record_bytes(opts->output == SAMPLER_RECORDS_RAW, opts->stacks || opts->slabs,
				  opts->copy_bytes);
}

bool sampler_has_chains(const struct sampler_opts *opts)
{
	return opts->stacks && !opts->copy_bytes;
}

/* Addresses per chain: as many as the kernel unwinds, at most what recordings hold. */
__u32 sampler_stack_depth(void)
{
	int64_t max;

	if (num_read("", "/proc/sys/kernel/perf_event_max_stack", &max, NULL) || max < 1 ||
	    max > IBS_STACK_MAX)
		max = IBS_STACK_MAX;
	return max;
}

/* A pointer per bucket, and preallocated elements (Linux kernel/bpf/stackmap.c). */
static __u64 stacks_bytes(void)
{
	return SAMPLER_STACKS * (8 + 24 + (__u64)sampler_stack_depth() * sizeof(__u64));
}

/* All rings are one map, whose size has 32 bits before v5.11. */
#define RINGS_MAX (UINT32_MAX - (1U << 16))

static int check_rings(const struct sampler_opts *opts, __u64 n, __u64 room,
		       struct sampler_memory *out, struct err *err)
{
	const bool given = opts->ring_bytes || opts->history_bytes;

	out->rings = rings_bytes(n, out->ring_slots, sampler_record_bytes(opts));
	if (out->rings > RINGS_MAX)
		return err_set(err, -E2BIG,
			       "%llu ring buffers of %u KiB are %.1f GiB; the maximum is "
			       "4 GiB: use a smaller %s, or sample fewer CPUs (-C)",
			       n, out->ring_bytes >> 10, out->rings / 1073741824.0,
			       opts->history_bytes ? "--flight" : "--ring-size");
	if (out->rings <= room || (given && !opts->max_memory_bytes))
		return 0;
	return err_set(err, -ENOSPC,
		       "%llu ring buffers of %u KiB need %.1f MiB of kernel memory, %.1f MiB are "
		       "left of the limit: allow more with --max-memory, or sample fewer CPUs (-C)",
		       n, out->ring_bytes >> 10, out->rings / 1048576.0, room / 1048576.0);
}

/* The share of a CPU; a power of two of records, so that their positions survive a wrap of the count. */
static int plan_history(const struct sampler_opts *opts, struct sampler_memory *out,
			struct err *err)
{
	size_t bytes = sampler_record_bytes(opts);
	__u64 n = sampler_ring_cpus(opts), share = opts->history_bytes / n;

	if (share < SAMPLER_RING_MIN)
		return err_set(err, -EINVAL,
			       "%.1f MiB are too little to keep the last samples of %llu CPUs: "
			       "each needs %u KiB",
			       opts->history_bytes / 1048576.0, n, SAMPLER_RING_MIN >> 10);
	out->ring_slots = 1;
	while (out->ring_slots * 2ULL * bytes <= share && out->ring_slots < 1U << 30)
		out->ring_slots *= 2;
	out->ring_bytes = out->ring_slots * bytes;
	return 0;
}

#define RING_RECORDS_MIN 16 /* of a ring, however large they are */

/* Plan rings in @room bytes of memory, or of the configured size. */
static int plan_rings(const struct sampler_opts *opts, __u64 room, struct sampler_memory *out,
		      struct err *err)
{
	__u32 most = opts->copy_bytes ? SAMPLER_RING_MAX : SAMPLER_RING_MAX_DEFAULT;
	size_t bytes = sampler_record_bytes(opts);
	__u64 n = sampler_ring_cpus(opts);

	if (!n)
		return 0;
	if (opts->history_bytes) {
		int ret = plan_history(opts, out, err);

		return ret ?: check_rings(opts, n, room, out, err);
	}
	out->ring_bytes = SAMPLER_RING_MIN;
	while (out->ring_bytes < RING_RECORDS_MIN * bytes ||
	       (opts->ring_bytes
			? out->ring_bytes < opts->ring_bytes && out->ring_bytes < SAMPLER_RING_MAX
			: out->ring_bytes < most &&
				  rings_bytes(n, 2 * out->ring_bytes / bytes, bytes) <= room))
		out->ring_bytes *= 2;
	out->ring_slots = out->ring_bytes / bytes;
	return check_rings(opts, n, room, out, err);
}

int sampler_memory(const struct sampler_opts *opts, unsigned int complexes,
		   struct sampler_memory *out, struct err *err)
{
	__u64 limit = opts->max_memory_bytes ? opts->max_memory_bytes : SAMPLER_MAX_MEMORY;
	__u64 slots_n = sampler_max_slots(opts), shard, rest;
	struct layout layout;
	int ret;

	if (opts->output != SAMPLER_SERIES)
		complexes = 1;
	layout_init(&layout, opts->metric, opts->ibs.caps);
	memset(out, 0, sizeof(*out));
	shard = slots_n * layout.words * sizeof(__u64);
	out->cpu_states = sizeof(struct ibs_state) +
			  sampler_cpu_entries(libbpf_num_possible_cpus()) *
				  (sizeof(struct ibs_cpu_state) + sizeof(struct ibs_raw_place));
	out->cgroups =
		hash_bytes(config_max_cgroups(slots_n), sizeof(__u64), sizeof(struct ibs_cgroup)) +
		hash_bytes(sampler_max_selected_entries(&opts->sel), sizeof(__u64),
			   sizeof(struct ibs_selected_cgroup));
	out->pids = (__u64)IBS_PID_BLOCK *
		    (selects_processes(&opts->sel) + selects_threads(&opts->sel)) *
		    sampler_pid_blocks();
	if (sampler_group_by(opts) && opts->by != IBS_BY_CGROUP)
		out->groups = hash_bytes(slots_n, sizeof(struct ibs_group_key), sizeof(__u32));
	out->slots = hash_bytes(slots_n, sizeof(__u32), sizeof(__u8)) +
		     slots_n * sizeof(struct ibs_slot_owner);
	if (opts->line_sets)
		out->lines = 2 * sampler_sampled_cpus(opts) * sampler_line_bytes(opts);
	rest = out->cpu_states + out->cgroups + out->groups + out->slots + out->pids;
	if (rest + shard > limit)
		return err_set(
			err, -ENOSPC,
			"%llu groups need %.1f MiB of kernel memory, the limit is %.1f MiB: allow "
			"more with --max-memory, or fewer groups with --max-groups",
			slots_n - 1, (rest + shard) / 1048576.0, limit / 1048576.0);
	out->complexes = complexes;
	if (sampler_has_chains(opts))
		out->stacks = stacks_bytes();
	if (rest + shard + out->stacks > limit)
		return err_set(err, -ENOSPC,
			       "call chains need %.1f MiB of kernel memory, the limit is %.1f MiB: "
			       "allow more with --max-memory",
			       out->stacks / 1048576.0, limit / 1048576.0);
	out->shards = (limit - rest - out->stacks) / shard;
	if (out->shards > complexes)
		out->shards = complexes;
	out->series = out->shards * shard;
	ret = plan_rings(opts, limit - rest - out->series - out->stacks, out, err);
	out->total = rest + out->series + out->stacks + out->rings + out->lines;
	return ret;
}

int sampler_prog_size(const struct sampler *s, struct sampler_prog_size *out, struct err *err)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(s->prog_fd, &info, &len))
		return err_set(err, -errno, "cannot get the program's size: %s", strerror(errno));
	*out = (struct sampler_prog_size){
		.insns = info.xlated_prog_len / 8,
		.bytes = info.jited_prog_len,
		.verified = info.verified_insns,
	};
	return 0;
}
