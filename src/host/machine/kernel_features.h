/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the running kernel's BPF and perf support, probed rather than guessed from the version. */
#ifndef IBSCOPE_KERNEL_FEATURES_H
#define IBSCOPE_KERNEL_FEATURES_H

#include "base/err.h"

#include <stdbool.h>

struct kernel_features {
	bool direct_read;     /* kfuncs to read the sample in place (v6.2) */
	bool ancestor_helper; /* bpf_get_current_ancestor_cgroup_id() for perf_event programs */
	bool task_btf;	      /* bpf_get_current_task_btf() for perf_event programs (v5.11) */
	bool perf_link;	      /* bpf_link for perf events (v5.15) */
	bool memcg_charge; /* BPF memory is charged to the cgroup, not to RLIMIT_MEMLOCK (v5.11) */
	bool syscall_prog; /* BPF_PROG_TYPE_SYSCALL (v5.14) */
	bool probe_read;   /* bpf_probe_read_kernel(); denied by lockdown=confidentiality */
};

/**
 * kernel_features_probe() - probe the running kernel
 *
 * Without the privilege to load BPF programs all but @direct_read are false.
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

/* The address of a kernel symbol; 0: unknown, or hidden (kernel.kptr_restrict). */
unsigned long long kernel_symbol(const char *name);

/**
 * kernel_cgroup_subsys() - index of a controller in the kernel's array
 * @controller: name as in mount options: "memory", "cpu", "blkio"
 *
 * Return: 0 or above; or a negative errno with @err: -EOPNOTSUPP if this kernel has no such controller.
 */
int kernel_cgroup_subsys(const char *controller, struct err *err);

#endif
