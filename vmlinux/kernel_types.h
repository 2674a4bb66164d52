/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the programs read, written by hand: only the members in use, found in the
 * running kernel by CO-RE. Names and meaning after Linux include/linux/perf_event.h,
 * arch/x86/events/amd/ibs.c, include/linux/cgroup-defs.h (5.10 .. 7.2).
 *
 * None is packed, although the kernel's perf_raw_frag is: of a packed type clang splits pointer
 * loads, which the verifier refuses on a kernel pointer.
 */
#ifndef IBSCOPE_KERNEL_TYPES_H
#define IBSCOPE_KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct perf_raw_frag {
	void *data;
	__u32 size;
};

struct perf_raw_record {
	struct perf_raw_frag frag;
};

struct perf_sample_data {
	__u64 sample_flags; /* v6.1 */
	struct perf_raw_record *raw;
};

struct hw_perf_event {
	__u64 sample_period;
	__u64 interrupts;
};

/* A counter of a single CPU. */
typedef struct {
	struct {
		long counter;
	} a;
} local64_t;

struct perf_event {
	local64_t count;
	__u64 total_time_enabled, total_time_running;
	struct hw_perf_event hw;
};

struct file {
	void *private_data;
};

struct bpf_link {
	__u32 id;
	enum bpf_link_type type;
};

struct bpf_perf_link {
	struct bpf_link link;
	struct file *perf_file;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_link {
	struct bpf_iter_meta *meta;
	struct bpf_link *link;
};

/* What the context of a perf_event program really is. */
struct bpf_perf_event_data_kern {
	struct perf_sample_data *data;
	struct perf_event *event;
};

/* Private to the IBS driver; `caps` on are the raw record. */
struct perf_ibs_data {
	__u32 caps;
	__u64 regs[8];
};

#pragma clang attribute pop

#endif
