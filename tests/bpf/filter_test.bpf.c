// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The filter in BPF, fed by test_filter.c: filter_run answers for samples in a map (v5.17),
 * filter_nmi is for the verifiers of old kernels and for counting instructions.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

/* before ours: linux/stddef.h made __always_inline a mere hint, this one makes it an order */
#include <bpf/bpf_helpers.h>
#include <ibscope/predicate.h>

#include "filter_test.h"

const volatile struct ibs_filter cfg_filter;
const volatile struct ibs_cpu cfg_ibs;

struct filter_test_area area;
__u64 accepted;

/* One copy for all callers, as the collector has it. */
static __noinline __u32 filter_outcome(const __u64 *regs)
{
	struct ibs_filter_sample s = { .regs = regs, .ibs = &cfg_ibs };
	const __u32 needs = cfg_filter.needs;

	if (needs & IBS_FILTER_NEEDS_MORE) {
		if (needs & IBS_FILTER_NEEDS_SRC)
			s.src = ibs_filter_src(&s);
		if (needs & IBS_FILTER_NEEDS_CONTEXT) {
			if (needs & IBS_FILTER_NEEDS_TASK)
				s.pid_tgid = bpf_get_current_pid_tgid();
			if (needs & IBS_FILTER_NEEDS_UID)
				s.uid_gid = bpf_get_current_uid_gid();
			if (needs & IBS_FILTER_NEEDS_CPU)
				s.cpu = bpf_get_smp_processor_id();
			if (needs & IBS_FILTER_NEEDS_CGROUP)
				s.cgroups = bpf_get_current_cgroup_id() & 0xff;
		}
	}
	return ibs_filter_outcome(&cfg_filter, &s);
}

/* The same with the task's part from the map too. */
static __noinline __u32 filter_outcome_test(const struct filter_test_sample *in)
{
	struct ibs_filter_sample s = {
		.regs = in->regs,
		.ibs = &cfg_ibs,
		.pid_tgid = in->pid_tgid,
		.uid_gid = in->uid_gid,
		.cpu = in->cpu,
		.cgroups = in->cgroups,
	};

	if (cfg_filter.needs & IBS_FILTER_NEEDS_SRC)
		s.src = ibs_filter_src(&s);
	return ibs_filter_outcome(&cfg_filter, &s);
}

static long run_one(__u32 i, void *arg)
{
	(void)arg;
	i &= FILTER_TEST_SAMPLES - 1;
	area.outcome[i] = filter_outcome_test(&area.sample[i]);
	return 0;
}

SEC("syscall")
int filter_run(void *ctx)
{
	(void)ctx;
	bpf_loop(FILTER_TEST_SAMPLES, run_one, NULL, 0);
	return 0;
}

SEC("perf_event")
int filter_nmi(struct bpf_perf_event_data *ctx)
{
	__u64 regs[IBS_OP_REG_FIXED];

	if (bpf_probe_read_kernel(regs, sizeof(regs), (void *)(__u64)ctx->addr))
		return 0;
	/* n first: without a filter not even the call is left */
	if (!cfg_filter.n || filter_outcome(regs) == IBS_OUTCOME_AGGREGATED)
		accepted++;
	return 0;
}

/* What filter_nmi costs around the filter. */
SEC("perf_event")
int filter_empty(struct bpf_perf_event_data *ctx)
{
	__u64 regs[IBS_OP_REG_FIXED];

	if (bpf_probe_read_kernel(regs, sizeof(regs), (void *)(__u64)ctx->addr))
		return 0;
	accepted++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
