/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose a sample is: the current task's, or what a recording says (ibscope/twin.h). Programs that
 * sample pass NULL, a constant, so that nothing of the choice is left in them.
 */
#ifndef IBSCOPE_WHO_BPF_H
#define IBSCOPE_WHO_BPF_H

#include <ibscope/twin_area.h>
#include "compat.bpf.h"

static __always_inline __u64 who_pid_tgid(const struct ibs_twin_who *who)
{
	return who ? who->pid_tgid : bpf_get_current_pid_tgid();
}

static __always_inline __u64 who_uid_gid(const struct ibs_twin_who *who)
{
	return who ? 0 : bpf_get_current_uid_gid(); /* user space refuses filters that ask */
}

static __always_inline __u64 who_cgroup_id(struct ibs_cpu_state *st, const struct ibs_twin_who *who,
					   bool v1)
{
	return who ? who->cgroup_id : cgroup_id_of(st, v1);
}

static __always_inline __u32 who_cpu(const struct ibs_twin_who *who)
{
	return who ? who->cpu : bpf_get_smp_processor_id();
}

/* Sixteen bytes, padded with zeros. Return: not 0 if there is no name. */
static __always_inline long who_comm(const struct ibs_twin_who *who, __u64 *comm)
{
	if (!who)
		return bpf_get_current_comm(comm, 16);
	comm[0] = who->comm[0];
	comm[1] = who->comm[1];
	return 0;
}

#endif
