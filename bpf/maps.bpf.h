/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps. The loader sets sizes marked "loader" between open and load. All maps are preallocated:
 * programs run in NMI context.
 */
#ifndef IBSCOPE_MAPS_BPF_H
#define IBSCOPE_MAPS_BPF_H

#include <ibscope/hot_lines.h>
#include <ibscope/maps.h>
#include <bpf/bpf_helpers.h>

/* Index: shard * ibs_config.max_slots + slot. Value: the words of a slot. */
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

/* Only used if --by is not just cgroup. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, struct ibs_group_key);
	__type(value, __u32); /* slot */
} groups SEC(".maps");

/* Slots in use. BPF_NOEXIST claims a slot: 5.10 has no atomics that return a value. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, __u32);
	__type(value, __u8);
} slots SEC(".maps");

/* Groups of the slots, for readers: mapped, so that reading needs no bpf() and costs no samples. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader: ibs_config.max_slots */
	__type(key, __u32);
	__type(value, struct ibs_slot_owner);
} slot_owners SEC(".maps");

/* Cgroups that the selection names. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* loader */
	__type(key, __u64);
	__type(value, struct ibs_selected_cgroup);
} selected_cgroups SEC(".maps");

/* Block pid / IBS_PID_BLOCK has the byte of a pid; a single unused block if no pid is selected. */
struct pid_set {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, IBS_PID_BLOCK);
};
struct pid_set tgids SEC(".maps"), tids SEC(".maps");

/*
 * Forwarded records, a ring per sampled CPU: see ibs_cpu_state.ring. The loader creates this map
 * and the next only if records are forwarded.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader: a record and its extra */
} records SEC(".maps");

/* The payload is unused; any entry wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, IBS_BELL_BYTES);
} bell SEC(".maps");

/* Call chains by the id in the records; created only if they are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader: times kernel.perf_event_max_stack */
} stacks SEC(".maps");

/*
 * Chains whose place in `stacks` has another one: there, the place follows from the hash. Their ids
 * go on behind those of `stacks`.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader: as for `stacks` */
} more_stacks SEC(".maps");

/*
 * One element, sized by the number of CPUs: struct ibs_state, pinned for readers. Programs use the
 * address of the value itself, without a lookup.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64)); /* loader */
} state SEC(".maps");

/* One element, a struct ibs_raw_place per CPU; never pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ibs_raw_place)); /* loader */
} raw_places SEC(".maps");

/* Layout entries of ibs_fetch samples; created only if ibs_fetch is sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u16[IBS_FETCH_LAYOUT_ENTRIES]);
} fetch_layout SEC(".maps");

/*
 * Two tables per sampled CPU (struct ibs_lines), indexed by ibs_cpu_state.lines; created only if
 * hot lines are kept. Never pinned for everybody: they hold addresses.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, IBS_LINES_BYTES(1)); /* loader */
} hot_lines SEC(".maps");

/* The loader replaces the address of such a map by that of its value (core/constants). */
#define MAP_VALUE(map)              \
	({                          \
		void *p_ = &(map);  \
                                    \
		asm("" : "+r"(p_)); \
		p_;                 \
	})

#endif
