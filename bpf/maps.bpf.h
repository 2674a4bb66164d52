/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps. Sizes marked "loader" are set between open and load. All are preallocated: programs run
 * in NMI context.
 */
#ifndef IBSCOPE_MAPS_BPF_H
#define IBSCOPE_MAPS_BPF_H

#include <ibscope/hot_lines.h>
#include <ibscope/maps.h>
#include <bpf/bpf_helpers.h>

/* Index: shard * cfg_max_slots + slot. Value: the words of a slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader */
} series SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, __u64);	/* cgroup id */
	__type(value, struct ibs_cgroup);
} cgroups SEC(".maps");

/* Only with --by other than cgroup alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, struct ibs_group_key);
	__type(value, __u32); /* slot */
} groups SEC(".maps");

/* Slots in use. Inserting with BPF_NOEXIST is the claim: 5.10 has no atomic that returns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, __u32);
	__type(value, __u8);
} slots SEC(".maps");

/* Whose a slot is, for readers: mapped, so that reading needs no bpf() and costs no samples. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader: cfg_max_slots */
	__type(key, __u32);
	__type(value, struct ibs_slot_owner);
} slot_owners SEC(".maps");

/* The cgroups that --cgroup selects, descendants included. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, __u64);
	__type(value, struct ibs_selected_cgroup);
} selected_cgroups SEC(".maps");

/* Block pid / IBS_PID_BLOCK holds the byte of a pid; one block, unused, where none is selected. */
struct pid_set {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, IBS_PID_BLOCK);
};
struct pid_set tgids SEC(".maps"), tids SEC(".maps");

/*
 * Records that are forwarded, a ring of them for each CPU that samples: ibs_cpu_state.ring says where.
 * The two maps are only there when records are.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader: a record and what is behind it */
} records SEC(".maps");

/* What is in it has no meaning: that something is wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, IBS_BELL_BYTES);
} bell SEC(".maps");

/* Call chains by the id that records bear; only there when they are asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader: that times kernel.perf_event_max_stack */
} stacks SEC(".maps");

/*
 * One element, as long as there are CPUs: struct ibs_state, which is pinned for readers. Programs use the
 * address of the value itself, without a look-up.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader */
} state SEC(".maps");

/* One element, a struct ibs_raw_place for each CPU; never pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ibs_raw_place)); /* loader */
} raw_places SEC(".maps");

/* Where samples of ibs_fetch are counted; it is there only if those are sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u16[IBS_FETCH_LAYOUT_ENTRIES]);
} fetch_layout SEC(".maps");

/*
 * Two tables a CPU that samples (struct ibs_lines), by ibs_cpu_state.lines; only there when hot lines are
 * kept. Never pinned for everybody: it holds addresses.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, IBS_LINES_BYTES(1)); /* loader */
} hot_lines SEC(".maps");

/* The loader turns the address of such a map into that of its value (sampler_open.c). */
#define MAP_VALUE(map)              \
	({                          \
		void *p_ = &(map);  \
                                    \
		asm("" : "+r"(p_)); \
		p_;                 \
	})

#endif
