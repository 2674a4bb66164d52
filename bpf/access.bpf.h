/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Environment of the decision core in the kernel: the current task, constants and maps. */
#ifndef IBSCOPE_ACCESS_BPF_H
#define IBSCOPE_ACCESS_BPF_H

#include "compat.bpf.h"
#include "maps.bpf.h"
#include "slabs.bpf.h"
#include <ibscope/config.h>
#include <ibscope/memory_nodes.h>

const volatile struct ibs_config config;

/* No initializers from here on: this puts them after `config`, whose hot line has no room left. */
const volatile struct ibs_memory_nodes memory_nodes;

/* A sample being processed. */
struct sample {
	/* with `copy` IBS_OP_REG_FIXED of them, else as many as `bytes` says */
	const __u64 *regs;
	void *ctx;	     /* of the program */
	const __u64 *period; /* NULL: the context has it */
	/* for raw records only: reading in place costs ten instructions */
	bool copy;	 /* compile-time constant: read the raw record by bpf_probe_read_kernel() */
	__u64 copy_from; /* address of the raw record */
	const __u32 *bytes; /* size of the raw record, checked */
	const __u32 *caps;  /* only without `copy` */
};

#define sample_period sample_period /* for decide_env.h */
static __always_inline __u64 sample_period(const struct sample *s)
{
	return s->period ? *s->period : ((struct bpf_perf_event_data *)s->ctx)->sample_period;
}

/* The state of the CPU that runs the program. */
typedef struct ibs_cpu_state *core_t;
#define core_t core_t
/* A number for the verifier, which does not pass this pointer to global functions. */
typedef __u64 core_arg_t;
#define core_arg(core) ((void)(core), 0ULL)

static __always_inline __u64 this_cpu(const volatile struct ibs_config *cfg)
{
	return bpf_get_smp_processor_id() & cfg->cpu_mask;
}

static __always_inline core_t this_core(const volatile struct ibs_config *cfg)
{
	/* the loader sets `state` to the first CPU's entry, which gives the shortest offsets */
	return MAP_VALUE(state) + this_cpu(cfg) * sizeof(struct ibs_cpu_state);
}

#define core_state core_state
static __always_inline struct ibs_cpu_state *core_state(core_t core)
{
	return core;
}

static __always_inline struct ibs_control *current_control(void)
{
	return &((struct ibs_state *)MAP_VALUE(state) - 1)->control;
}

/* Only user space uses the parameter. */
#define core_control(core)	  ((void)(core), current_control())
#define core_config(core)	  ((void)(core), &config)
#define core_memory_nodes(core)	  ((void)(core), &memory_nodes)
#define core_layout(core)	  (core_state(core)->layout)
#define core_fetch_layout(core)	  ((void)(core), (const __u16 *)MAP_VALUE(fetch_layout))
#define task_pid_tgid(core)	  ((void)(core), current_pid_tgid())
#define task_uid_gid(core)	  ((void)(core), bpf_get_current_uid_gid())
#define task_cpu(core)		  ((void)(core), bpf_get_smp_processor_id())
#define task_comm(core, words)	  ((void)(core), current_comm(words))
#define task_cgroup_id(core, v1)  ((void)(core), cgroup_id_of(v1))
#define task_cgroup_key(core, v1) ((void)(core), cgroup_key_of(v1))
#define address_slab(core, addr)  ((void)(core), (__u64)bpf_get_kmem_cache(addr))
#define task_ancestor_id(core, level) \
	current_ancestor_cgroup_id(level, core_config(core)->cgroup_v1)
#define map_find(core, map, key) ((void)(core), bpf_map_lookup_elem(&map, key))
#define map_add(core, map, key, value) \
	((void)(core), bpf_map_update_elem(&map, key, value, BPF_NOEXIST))
#define map_delete(core, map, key) ((void)(core), bpf_map_delete_elem(&map, key))
#define count_add(word, n)	   __sync_fetch_and_add(word, n)

#endif
