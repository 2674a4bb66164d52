// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel memory of a sampler, of options alone: each map, what a limit leaves of them, and what is said if nothing fits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/libbpf.h>

#include <ibscope/hot_lines.h>

#include "base/err.h"
#include "sampler/rings.h"
#include "sampler/sampler_private.h"

#define ZEN4_CAPS 0xbffU
#define COMPLEXES 4
#define SLOTS	  1025 /* 1024 groups, and the one of the others */

static const unsigned int cpus[4] = { 0, 1, 2, 3 };
static struct sampler_opts opts;

static int begin(void **state)
{
	(void)state;
	opts = (struct sampler_opts){ .source = SAMPLER_IBS,
				      .cpus = cpus,
				      .n_cpus = 4,
				      .ibs.caps = ZEN4_CAPS,
				      .by = IBS_BY_CGROUP,
				      .max_memory_bytes = 1ULL << 30 };
	return 0;
}

static struct sampler_memory memory(void)
{
	struct sampler_memory m;
	struct err err = { "" };

	if (sampler_memory(&opts, COMPLEXES, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m.total, m.series + m.cgroups + m.groups + m.slots + m.pids + m.rings +
					  m.stacks + m.cpu_states + m.lines);
	return m;
}

static void fails(int code, const char *want)
{
	struct sampler_memory m;
	struct err err = { "" };

	assert_int_equal(sampler_memory(&opts, COMPLEXES, &m, &err), code);
	assert_string_equal(err.text, want);
}

/* Of preallocated hashes: 48 bytes, key and value of each element, and 16 of each bucket, a power of two of them. */
static __u64 hash(__u64 entries, __u64 buckets, __u64 key, __u64 value)
{
	return entries * (48 + key + (value + 7) / 8 * 8) + buckets * 16;
}

static __u64 shard(void)
{
	struct layout layout;

	layout_init(&layout, opts.metric, opts.ibs.caps);
	return (__u64)SLOTS * layout.words * 8;
}

static void test_counters(void **state)
{
	struct sampler_memory m = memory();

	(void)state;
	assert_int_equal(m.complexes, COMPLEXES);
	assert_int_equal(m.shards, COMPLEXES);
	assert_int_equal(m.series, COMPLEXES * shard());
	assert_int_equal(m.slots, hash(SLOTS, 2048, 8, 8) + SLOTS * sizeof(struct ibs_slot_owner));
	assert_int_equal(m.groups | m.pids | m.rings | m.stacks | m.lines, 0);
	/* groups by more than cgroups have their keys in a map */
	opts.by = IBS_BY_CGROUP | IBS_BY_PID;
	assert_int_equal(memory().groups, hash(SLOTS, 2048, sizeof(struct ibs_group_key), 8));
	opts.by = IBS_BY_PID;
	assert_int_equal(memory().groups, hash(SLOTS, 2048, sizeof(struct ibs_group_key), 8));
	opts.by = 0;
	assert_int_equal(memory().groups, 0);
	/* records have no groups */
	opts.by = IBS_BY_PID;
	opts.output = SAMPLER_RECORDS;
	m = memory();
	assert_int_equal(m.groups, 0);
	assert_int_equal(m.shards, 1);
	assert_true(m.series < shard());
	/* buckets for a power of two of groups */
	opts.output = SAMPLER_SERIES;
	opts.max_groups = 1023;
	m = memory();
	assert_int_equal(m.slots, hash(1024, 1024, 8, 8) + 1024 * sizeof(struct ibs_slot_owner));
}

static void test_selection(void **state)
{
	const __u64 element = hash(1, 0, 8, sizeof(struct ibs_selected_cgroup));
	const __u64 none = memory().cgroups;
	const __u32 blocks = sampler_pid_blocks();
	const __u32 pids[] = { 1 };

	(void)state;
	assert_in_range(blocks, 1, IBS_PID_MAX / IBS_PID_BLOCK);
	opts.sel.n_cgroups = 10;
	assert_int_equal(memory().cgroups - none, 10 * element + 15 * 16);
	/* one that may change: the old and the new one, of 4096 cgroups each, or of twice the number */
	opts.sel.live = SAMPLER_LIVE_CGROUPS;
	assert_int_equal(memory().cgroups - none, 8192 * element + 8191 * 16);
	opts.sel.n_cgroups = 2048;
	assert_int_equal(memory().cgroups - none, 8192 * element + 8191 * 16);
	opts.sel.n_cgroups = 2049;
	assert_int_equal(memory().cgroups - none, 8196 * element + 16383 * 16);
	opts.sel.live = SAMPLER_LIVE_FILTER;
	assert_int_equal(memory().cgroups - none, 8196 * element + 16383 * 16);
	/* a byte for each possible process, or thread */
	opts.sel.processes.pids = pids;
	opts.sel.processes.n = 1;
	assert_int_equal(memory().pids, blocks * 4096);
	opts.sel.threads = opts.sel.processes;
	assert_int_equal(memory().pids, 2 * blocks * 4096);
	opts.sel.processes.n = 0;
	assert_int_equal(memory().pids, blocks * 4096);
}

/* A limit leaves fewer shards, but at least one. */
static void test_limit(void **state)
{
	const __u64 all = memory().total, rest = all - COMPLEXES * shard();
	char want[300];

	(void)state;
	opts.max_memory_bytes = all;
	assert_int_equal(memory().shards, COMPLEXES);
	opts.max_memory_bytes = all - 1;
	assert_int_equal(memory().shards, COMPLEXES - 1);
	opts.max_memory_bytes = rest + shard();
	assert_int_equal(memory().shards, 1);
	opts.max_memory_bytes--;
	snprintf(want, sizeof(want),
		 "1024 groups need %.1f MiB of kernel memory, the limit is %.1f MiB: allow more "
		 "with --max-memory, or fewer groups with --max-groups",
		 (rest + shard()) / 1048576.0, (rest + shard() - 1) / 1048576.0);
	fails(-ENOSPC, want);
	/* 64 MiB, if none is given */
	opts.max_memory_bytes = 0;
	assert_int_equal(memory().shards, ((64 << 20) - rest) / shard());
	assert_in_range(memory().shards, 1, COMPLEXES - 1);
}

/* Keys of call chains come before shards: a pointer, a head and the addresses of each. */
static void test_stacks(void **state)
{
	const __u64 rest = memory().total - COMPLEXES * shard();
	const __u64 chains = SAMPLER_STACKS * (32 + 8ULL * sampler_stack_depth());
	char want[300];

	(void)state;
	assert_in_range(sampler_stack_depth(), 1, IBS_STACK_MAX);
	opts.stacks = true;
	opts.max_memory_bytes = rest + chains + 2 * shard();
	assert_int_equal(memory().stacks, chains);
	assert_int_equal(memory().shards, 2);
	opts.max_memory_bytes = rest + chains + shard();
	assert_int_equal(memory().shards, 1);
	opts.max_memory_bytes--;
	snprintf(want, sizeof(want),
		 "call chains need %.1f MiB of kernel memory, the limit is %.1f MiB: allow more "
		 "with --max-memory",
		 chains / 1048576.0, (rest + chains + shard() - 1) / 1048576.0);
	fails(-ENOSPC, want);
	/* copies of stacks are in records */
	opts.copy_bytes = 1024;
	assert_int_equal(memory().stacks, 0);
}

/* Two tables for each CPU, without a limit. */
static void test_lines(void **state)
{
	const struct sampler_memory without = memory();

	(void)state;
	opts.line_sets = 1024;
	opts.max_memory_bytes = without.total;
	assert_int_equal(memory().lines, 2 * 4 * IBS_LINES_BYTES(1024));
	assert_int_equal(memory().shards, COMPLEXES);
	assert_int_equal(memory().total, without.total + 2 * 4 * IBS_LINES_BYTES(1024));
	opts.source = SAMPLER_TWIN; /* may run on any CPU */
	assert_int_equal(memory().lines, 2 * libbpf_num_possible_cpus() * IBS_LINES_BYTES(1024));
}

static void test_record_sizes(void **state)
{
	(void)state;
	opts.output = SAMPLER_RECORDS;
	assert_int_equal(sampler_record_bytes(&opts), sizeof(struct ibs_record));
	opts.stacks = true;
	assert_int_equal(sampler_record_bytes(&opts),
			 sizeof(struct ibs_record) + sizeof(struct ibs_record_extra));
	opts.stacks = false;
	opts.slabs = true;
	assert_int_equal(sampler_record_bytes(&opts),
			 sizeof(struct ibs_record) + sizeof(struct ibs_record_extra));
	opts.output = SAMPLER_RECORDS_RAW;
	opts.slabs = false;
	assert_int_equal(sampler_record_bytes(&opts), sizeof(struct ibs_record_raw));
	/* a ring of each CPU of records, or of counters that also keep copies of samples */
	assert_int_equal(sampler_ring_cpus(&opts), 4);
	opts.output = SAMPLER_SERIES;
	assert_int_equal(sampler_ring_cpus(&opts), 0);
	opts.copies = true;
	assert_int_equal(sampler_ring_cpus(&opts), 4);
}

/* A power of two of 16 KiB or more; without a given one, the largest up to 1 MiB of which all fit. */
static void test_rings(void **state)
{
	const size_t bytes = sizeof(struct ibs_record);
	struct sampler_memory m;
	char want[300];
	__u64 rest;

	(void)state;
	opts.max_memory_bytes = 0;
	opts.output = SAMPLER_RECORDS;
	m = memory();
	assert_int_equal(m.ring_bytes, 1 << 20);
	assert_int_equal(m.ring_slots, (1 << 20) / bytes);
	assert_int_equal(m.rings, rings_bytes(4, (1 << 20) / bytes, bytes));
	rest = m.total - m.rings;
	opts.max_memory_bytes = rest + rings_bytes(4, (1 << 19) / bytes, bytes);
	assert_int_equal(memory().ring_bytes, 1 << 19);
	opts.max_memory_bytes--;
	assert_int_equal(memory().ring_bytes, 1 << 18);
	opts.max_memory_bytes = rest + rings_bytes(4, (16 << 10) / bytes, bytes);
	assert_int_equal(memory().ring_bytes, 16 << 10);
	opts.max_memory_bytes--;
	snprintf(want, sizeof(want),
		 "4 ring buffers of 16 KiB need %.1f MiB of kernel memory, %.1f MiB are left of "
		 "the limit: allow more with --max-memory, or sample fewer CPUs (-C)",
		 rings_bytes(4, (16 << 10) / bytes, bytes) / 1048576.0,
		 (rings_bytes(4, (16 << 10) / bytes, bytes) - 1) / 1048576.0);
	fails(-ENOSPC, want);
	/* a given size counts against a given limit alone */
	opts.ring_bytes = (16 << 10) + 1;
	opts.max_memory_bytes = rest + rings_bytes(4, (32 << 10) / bytes, bytes);
	assert_int_equal(memory().ring_bytes, 32 << 10);
	opts.ring_bytes = 32 << 10;
	assert_int_equal(memory().ring_bytes, 32 << 10);
	opts.ring_bytes = 128 << 20; /* the maximum is 64 MiB */
	opts.max_memory_bytes = 0;
	assert_int_equal(memory().ring_bytes, 64 << 20);
}

/* Copies of stacks are large: rings of 16 of them at least, and up to 64 MiB. */
static void test_copies(void **state)
{
	struct sampler_memory m;
	size_t bytes;

	(void)state;
	opts.output = SAMPLER_RECORDS;
	opts.stacks = true;
	opts.copy_bytes = IBS_COPY_MAX;
	bytes = sampler_record_bytes(&opts);
	opts.ring_bytes = 1;
	m = memory();
	assert_true(m.ring_bytes >= 16 * bytes && m.ring_bytes < 32 * bytes);
	assert_int_equal(m.ring_slots, m.ring_bytes / bytes);
	opts.ring_bytes = 0;
	opts.max_memory_bytes = 1ULL << 32;
	assert_int_equal(memory().ring_bytes, 64 << 20);
}

/* One map has all rings, of less than 4 GiB. */
static void test_too_large(void **state)
{
	static unsigned int many[64];

	(void)state;
	opts.max_memory_bytes = 0;
	opts.output = SAMPLER_RECORDS;
	opts.cpus = many;
	opts.n_cpus = 63;
	opts.ring_bytes = 64 << 20;
	assert_int_equal(memory().ring_bytes, 64 << 20);
	opts.n_cpus = 64;
	fails(-E2BIG,
	      "64 ring buffers of 65536 KiB are 4.0 GiB; the maximum is 4 GiB: use a smaller "
	      "--ring-size, or sample fewer CPUs (-C)");
	opts.ring_bytes = 0;
	opts.history_bytes = 1ULL << 32;
	fails(-E2BIG,
	      "64 ring buffers of 65536 KiB are 4.0 GiB; the maximum is 4 GiB: use a smaller "
	      "--flight, or sample fewer CPUs (-C)");
}

/* Of what was given for the last samples each CPU gets the same, a power of two of records, or none is kept. */
static void test_history(void **state)
{
	const size_t bytes = sizeof(struct ibs_record);

	(void)state;
	opts.max_memory_bytes = 0;
	opts.copies = true;
	opts.history_bytes = 4 * 1024 * bytes;
	assert_int_equal(memory().ring_slots, 1024);
	assert_int_equal(memory().ring_bytes, 1024 * bytes);
	opts.history_bytes--;
	assert_int_equal(memory().ring_slots, 512);
	opts.history_bytes = 4 * (16 << 10);
	assert_int_equal(memory().ring_bytes, 16 << 10);
	opts.history_bytes--;
	fails(-EINVAL, "0.1 MiB are too little to keep the last samples of 4 CPUs: each needs 16 "
		       "KiB");
}

static void test_helpers(void **state)
{
	(void)state;
	assert_int_equal(sampler_cpu_entries(1), 1);
	assert_int_equal(sampler_cpu_entries(2), 2);
	assert_int_equal(sampler_cpu_entries(3), 4);
	assert_int_equal(sampler_cpu_entries(4), 4);
	assert_int_equal(sampler_cpu_entries(5), 8);
	/* a slot for the counts of ended groups, which pins keep */
	assert_int_equal(sampler_max_slots(&opts), SLOTS);
	opts.pins = (void *)&opts;
	assert_int_equal(sampler_max_slots(&opts), SLOTS + 1);
	opts.output = SAMPLER_RECORDS;
	assert_int_equal(sampler_max_slots(&opts), 2);
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_counters),  T(test_selection),	 T(test_limit),	  T(test_stacks),
		T(test_lines),	   T(test_record_sizes), T(test_rings),	  T(test_copies),
		T(test_too_large), T(test_history),	 T(test_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
