/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The running kernel: what its BPF and perf support, and its slab caches. */
#ifndef IBSCOPE_KERNEL_H
#define IBSCOPE_KERNEL_H

#include "base/err.h"
#include "base/u64_map.h"

#include <ibscope/record.h>
#include <stdbool.h>

/* What the running kernel's BPF and perf support, probed rather than guessed from the version. */

struct kernel_features {
	bool direct_read;     /* kfuncs to read the sample in place (v6.2) */
	bool ancestor_helper; /* bpf_get_current_ancestor_cgroup_id() for perf_event programs */
	bool task_btf;	      /* bpf_get_current_task_btf() for perf_event programs (v5.11) */
	bool task_pt_regs;    /* bpf_task_pt_regs() for perf_event programs (v5.15) */
	bool perf_link;	      /* bpf_link for perf events (v5.15) */
	bool memcg_charge; /* BPF memory is charged to the cgroup, not to RLIMIT_MEMLOCK (v5.11) */
	bool syscall_prog; /* BPF_PROG_TYPE_SYSCALL (v5.14) */
	bool probe_read;   /* bpf_probe_read_kernel(); denied by lockdown=confidentiality */
	/* PERF_EVENT_IOC_REFRESH counts only overflows that the program passes on (v6.10) */
	bool limit_after_prog;
};

/**
 * kernel_features_probe() - probe the running kernel
 *
 * Without the privilege to load BPF programs, members that need no BTF are false.
 *
 * Return: 0, or a negative errno with @err:
 * -ENOENT  the kernel has no BTF, so programs cannot be relocated for it
 * -EPERM   no privilege for bpf()
 */
int kernel_features_probe(struct kernel_features *f, struct err *err);

/**
 * kernel_features_btf() - check for the kernel's types, without any privilege
 * @root:        prefix of the file system, "" for the real one
 * @direct_read: as in struct kernel_features
 *
 * Return: 0, or with @err set -ENOENT.
 */
int kernel_features_btf(const char *root, bool *direct_read, struct err *err);

/* True if BPF programs can look up and list slab caches (v6.13). Needs no privilege. */
bool kernel_finds_slabs(void);

/*
 * The PID namespace of this process, as stat() reports it. Return: false if it is the initial one, or unknown.
 */
bool kernel_pid_namespace(const char *root, unsigned long long *dev, unsigned long long *ino);

/* The address of a kernel symbol; 0: unknown, or hidden (kernel.kptr_restrict). */
unsigned long long kernel_symbol(const char *name);

/**
 * kernel_cgroup_subsys() - index of a controller in the kernel's array
 * @controller: name as in mount options: "memory", "cpu", "blkio"
 *
 * Return: 0 or above; or a negative errno with @err: -EOPNOTSUPP if this kernel has no such controller.
 */
int kernel_cgroup_subsys(const char *controller, struct err *err);

/* Slab caches of a kernel by id: this one, or the one of a recording. */

/* The zero value is empty. */
struct slab_list {
	struct ibs_slab *v;
	size_t n, room;
	struct u64_map of; /* by id */
};

void slab_list_add(struct slab_list *l, const struct ibs_slab *slab);
void slab_list_free(struct slab_list *l);

/*
 * The cache of trace_sample.slab, valid until the next one is added. Return: NULL if there is none, it is unknown,
 * or several caches had this id.
 */
const struct ibs_slab *slab_list_find(const struct slab_list *l, __u64 slab);

#endif
