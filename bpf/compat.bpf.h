/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Differences between kernels 5.10 and 7.2, in one place. The loader probes the running kernel
 * (src/host/machine/kernel_features.c) and sets a constant per feature before load; the verifier then
 * drops the branch not taken, so one object may name helpers and kfuncs that an old kernel lacks.
 */
#ifndef IBSCOPE_COMPAT_BPF_H
#define IBSCOPE_COMPAT_BPF_H

#include "kernel_types.h"
#include <ibscope/maps.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Programs that the loader folds constants into (sampler_load.c); libbpf does not know the section. */
#define SAMPLE_SECTION SEC("ibs")

/* v5.19 or so for tracing programs: bpf_get_current_ancestor_cgroup_id(). */
const volatile bool cfg_ancestor_helper = false;

/* v5.11: bpf_get_current_task_btf(), so that plain loads can read kernel structures. */
const volatile bool cfg_task_btf = false;

/* v5.17 pads names of tasks with zeros, as bpf_get_current_comm() does: they can be read in place. */
const volatile bool cfg_comm_padded = false;

/* With ibs_config.cgroup_v1: controller of the v1 hierarchy, enum cgroup_subsys_id. */
const volatile __u32 cfg_cgroup_subsys = 0;

/* v6.2: plain loads read a sample's registers, without bpf_probe_read_kernel(). */
extern void *bpf_cast_to_kern_ctx(void *obj) __ksym __weak;
extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym __weak;

struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	__u64 serial_nr;
} __attribute__((preserve_access_index));

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	int level;
} __attribute__((preserve_access_index));

/* v6.1 replaced the array of ids by one of pointers. */
struct cgroup___ids {
	__u64 ancestor_ids[1];
} __attribute__((preserve_access_index));

struct cgroup___ptrs {
	struct cgroup *ancestors[1];
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct upid {
	int nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct task_struct {
	int pid; /* of the thread */
	int tgid;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	struct css_set *cgroups;
	char comm[16];
	void *stack; /* of the kernel */
} __attribute__((preserve_access_index));

/* The PID namespace of the loader, as stat() reports it; 0: the initial one. */
const volatile __u64 cfg_pid_ns_dev = 0;
const volatile __u64 cfg_pid_ns_ino = 0;

/* tgid << 32 | tid in that namespace; 0: the task is in another one. */
static __always_inline __u64 current_pid_tgid(void)
{
	struct bpf_pidns_info ids = {};

	if (!cfg_pid_ns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(cfg_pid_ns_dev, cfg_pid_ns_ino, &ids, sizeof(ids)))
		return 0;
	return (__u64)ids.tgid << 32 | ids.pid;
}

/* The name of the current task. Return: 0, or a negative errno. */
static __always_inline long current_comm(__u64 words[2])
{
	struct task_struct *task;
	const __u64 *comm;

	if (!cfg_comm_padded)
		return bpf_get_current_comm(words, 16);
	task = (void *)bpf_get_current_task_btf();
	comm = (void *)task + bpf_core_field_offset(task->comm);
	words[0] = comm[0];
	words[1] = comm[1];
	return 0;
}

/* The tid of any task in that namespace; 0: it is in another one. */
static __always_inline __u32 task_tid(struct task_struct *task)
{
	struct pid *pid = cfg_pid_ns_ino ? BPF_CORE_READ(task, thread_pid) : NULL;
	struct upid *numbers, own = {};

	if (!cfg_pid_ns_ino)
		return BPF_CORE_READ(task, pid);
	numbers = (void *)pid + bpf_core_field_offset(pid->numbers);
	numbers += BPF_CORE_READ(pid, level);
	if (bpf_probe_read_kernel(&own, sizeof(own), numbers) ||
	    BPF_CORE_READ(own.ns, ns.inum) != cfg_pid_ns_ino)
		return 0;
	return own.nr;
}

/* Offset in css_set of the controller's state, which points to the v1 cgroup of a task. */
static __always_inline __u64 css_offset(void)
{
	return bpf_core_field_offset(struct css_set, subsys) + cfg_cgroup_subsys * sizeof(void *);
}

static __always_inline struct cgroup *current_cgroup_v1(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	void *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *css = NULL;

	bpf_probe_read_kernel(&css, sizeof(css), set + css_offset());
	return BPF_CORE_READ(css, cgroup);
}

static __always_inline struct cgroup_subsys_state *current_css_v1(struct css_set *set)
{
	struct cgroup_subsys_state *css = NULL;

	if (cfg_task_btf)
		return *(struct cgroup_subsys_state **)((void *)set + css_offset());
	bpf_probe_read_kernel(&css, sizeof(css), (void *)set + css_offset());
	return css;
}

/*
 * A key that no other cgroup has or had, unlike an address: the serial number of its css, in v1
 * that of the controller's css. It is in the first cache line that the task's css_set points to,
 * whereas the id is two pointers further.
 */
static __always_inline __u64 cgroup_key_of(bool v1)
{
	struct task_struct *task;
	struct css_set *set;

	if (cfg_task_btf) {
		set = ((struct task_struct *)bpf_get_current_task_btf())->cgroups;
		return v1 ? current_css_v1(set)->serial_nr : set->dfl_cgrp->self.serial_nr;
	}
	if (!v1)
		return bpf_get_current_cgroup_id(); /* cheaper than following the pointers */
	task = (void *)bpf_get_current_task();
	set = BPF_CORE_READ(task, cgroups);
	return BPF_CORE_READ(current_css_v1(set), serial_nr);
}

/* Id of the current task's cgroup, in v2 or in the chosen v1 hierarchy; never 0. */
static __always_inline __u64 cgroup_id_of(bool v1)
{
	__u64 id;

	if (!v1)
		return bpf_get_current_cgroup_id();
	id = BPF_CORE_READ(current_cgroup_v1(), kn, id);
	return id ? id : 1;
}

/* Id of that cgroup's ancestor at @level (0 is the root), or 0. */
static __always_inline __u64 current_ancestor_cgroup_id(int level, bool v1)
{
	struct task_struct *task;
	struct cgroup *cgrp;
	__u64 id = 0;

	if (v1) {
		cgrp = current_cgroup_v1();
	} else {
		if (cfg_ancestor_helper)
			return bpf_get_current_ancestor_cgroup_id(level);
		task = (void *)bpf_get_current_task();
		cgrp = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	}
	if (level > BPF_CORE_READ(cgrp, level))
		return 0;
	if (bpf_core_field_exists(struct cgroup___ids, ancestor_ids)) {
		bpf_probe_read_kernel(
			&id, sizeof(id),
			(void *)cgrp + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
				level * sizeof(id));
	} else if (bpf_core_field_exists(struct cgroup___ptrs, ancestors)) {
		struct cgroup *ancestor = NULL;

		bpf_probe_read_kernel(
			&ancestor, sizeof(ancestor),
			(void *)cgrp + bpf_core_field_offset(struct cgroup___ptrs, ancestors) +
				level * sizeof(ancestor));
		id = BPF_CORE_READ(ancestor, kn, id);
	}
	return id;
}

#endif
