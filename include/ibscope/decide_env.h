/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the includer of the decision core provides: the types core_t and struct sample, and the
 * names below. A name that is a function or a type is also defined as a macro of itself, so that a
 * missing one is reported here.
 */
#ifndef IBSCOPE_DECIDE_ENV_H
#define IBSCOPE_DECIDE_ENV_H

#include <ibscope/config.h>

/* handle of the CPU that samples, one word */
#ifndef core_t
#error "decide.h needs core_t"
#endif
/* (core): constants; each call and each read costs an instruction */
#ifndef core_config
#error "decide.h needs core_config"
#endif
/* (core): shared words */
#ifndef core_control
#error "decide.h needs core_control"
#endif
/* (core): the CPU's state */
#ifndef core_state
#error "decide.h needs core_state"
#endif
/* (core): the configured layout */
#ifndef core_layout
#error "decide.h needs core_layout"
#endif
/* (core): struct ibs_memory_nodes */
#ifndef core_memory_nodes
#error "decide.h needs core_memory_nodes"
#endif
/* (core): IBS_FETCH_LAYOUT_ENTRIES of config_fetch_layout() */
#ifndef core_fetch_layout
#error "decide.h needs core_fetch_layout"
#endif
/* (core): tgid << 32 | tid */
#ifndef task_pid_tgid
#error "decide.h needs task_pid_tgid"
#endif
/* (core): gid << 32 | uid */
#ifndef task_uid_gid
#error "decide.h needs task_uid_gid"
#endif
/* (core): number of the CPU */
#ifndef task_cpu
#error "decide.h needs task_cpu"
#endif
/* (core, words): 16 bytes padded with zeros; nonzero if there is no name */
#ifndef task_comm
#error "decide.h needs task_comm"
#endif
/* (core, v1): never 0 */
#ifndef task_cgroup_id
#error "decide.h needs task_cgroup_id"
#endif
/* (core, v1): never reused for another cgroup; cheaper than the id */
#ifndef task_cgroup_key
#error "decide.h needs task_cgroup_key"
#endif
/* (core, level): 0 below the task's cgroup */
#ifndef task_ancestor_id
#error "decide.h needs task_ancestor_id"
#endif
/* (core, address): id of the slab cache of kernel data */
#ifndef address_slab
#error "decide.h needs address_slab"
#endif
/* (sample): ops that it counts for; `regs` is a member of struct sample */
#ifndef sample_period
#error "decide.h needs sample_period"
#endif
/* (core, map, key): pointer to the value, or NULL; maps are those of bpf/maps.bpf.h */
#ifndef map_find
#error "decide.h needs map_find"
#endif
/* (core, map, key, value): 0, -EEXIST, or another negative error */
#ifndef map_add
#error "decide.h needs map_add"
#endif
/* (core, map, key) */
#ifndef map_delete
#error "decide.h needs map_delete"
#endif
/* (word, n) */
#ifndef count_add
#error "decide.h needs count_add"
#endif

typedef const volatile struct ibs_config core_cfg;

/*
 * A function that the verifier checks separately, once for all callers. It cannot take a core_t,
 * and in BPF does not need it: declare its parameter as core_arg_t and pass core_arg(core).
 */
#ifdef __bpf__
/*
 * Weak: otherwise clang sees that the argument is not used and does not set its register. The verifier refuses the
 * program if a pointer is there.
 */
#define IBS_GLOBAL_FUNC __weak __noinline
#ifndef core_arg
#error "decide.h needs core_arg_t and core_arg"
#endif
#else
#define IBS_GLOBAL_FUNC static
#define core_arg_t	core_t
#define core_arg(core)	(core)
#endif

#endif
