/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between kernels 5.10 and 7.2, in one place. The loader asks the running kernel for
 * each ability (src/kernel_features.c) and sets a constant before load; the verifier then drops the branch
 * that is not taken, so the one object may name helpers and kfuncs that an old kernel lacks.
 */
#ifndef IBSCOPE_COMPAT_BPF_H
#define IBSCOPE_COMPAT_BPF_H

#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* v5.19 or so for tracing programs: bpf_get_current_ancestor_cgroup_id(). */
const volatile bool cfg_ancestor_helper = false;

/* v6.2: a sample's registers are read by plain loads, without bpf_probe_read_kernel(). */
extern void *bpf_cast_to_kern_ctx(void *obj) __ksym __weak;
extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym __weak;

/* v6.1 replaced the array of ids by one of pointers. */
struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
	int level;
} __attribute__((preserve_access_index));

struct cgroup___ids {
	__u64 ancestor_ids[1];
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid; /* of the thread */
	int tgid;
	struct css_set *cgroups;
} __attribute__((preserve_access_index));

/* Id of the current task's ancestor at @level of the default hierarchy (0 is the root), or 0. */
static __always_inline __u64 current_ancestor_cgroup_id(int level)
{
	struct task_struct *task;
	struct cgroup *cgrp;
	__u64 id = 0;

	if (cfg_ancestor_helper)
		return bpf_get_current_ancestor_cgroup_id(level);
	task = (void *)bpf_get_current_task();
	cgrp = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	if (level > BPF_CORE_READ(cgrp, level))
		return 0;
	if (bpf_core_field_exists(struct cgroup___ids, ancestor_ids))
		bpf_probe_read_kernel(&id, sizeof(id),
				      (void *)cgrp +
					      bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
					      level * sizeof(id));
	return id;
}

#endif
