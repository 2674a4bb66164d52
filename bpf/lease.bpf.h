/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of sampling when no collector renews its lease: pinned links sample on after a collector
 * was killed, and nobody governs their cost.
 */
#ifndef IBSCOPE_LEASE_BPF_H
#define IBSCOPE_LEASE_BPF_H

#include "access.bpf.h"

/*
 * The event is disabled when the program returns 1: the loader allows it a single overflow that the
 * program passes on (struct kernel_features.limit_after_prog).
 */
const volatile bool cfg_lease_disables = false;

/* Let the samples of this CPU end at the test of the layout, which they all pass anyway. */
static __always_inline void drop_samples(core_t core)
{
	__u64 lost = IBS_OUTCOME_LOST_LEASE * 0x0001000100010001ULL, *words;
	__u32 i, n;

	if (ibs_metric_of_fetch(config.metric)) {
		words = MAP_VALUE(fetch_layout);
		n = IBS_FETCH_LAYOUT_ENTRIES;
	} else {
		words = (__u64 *)core_state(core)->layout;
		n = IBS_LAYOUT_ENTRIES;
	}
	for (i = 0; i < n * sizeof(__u16) / sizeof(*words); i++)
		WRITE_ONCE(words[i], lost);
}

#define EFLAGS_IF (1 << 9)

/*
 * The kernel disables the event in an interrupt that it raises itself. If the sample interrupted code with
 * interrupts off, the next sample could come first, and the driver would swallow it: neither seen nor counted.
 */
static __always_inline bool ends_at_once(const struct bpf_perf_event_data *ctx)
{
	return ctx->regs.eflags & EFLAGS_IF;
}

/* Return: what the program returns. */
static __noinline __attribute__((used)) int lease_end(__u64 seen __attribute__((unused)),
						      const struct bpf_perf_event_data *ctx)
{
	const core_t core = this_core(&config);
	const __u64 end_ns = READ_ONCE(core_control(core)->lease_ns);

	if (!end_ns || bpf_ktime_get_ns() < end_ns)
		return 0;
	if (cfg_lease_disables && !ends_at_once(ctx))
		return 0;
	if (!cfg_lease_disables)
		drop_samples(core);
	barrier();
	WRITE_ONCE(core_state(core)->lapsed, 1); /* last: see sampler_lease.c */
	return cfg_lease_disables;
}

/*
 * Once in IBS_LEASE_EVERY samples, look at the lease. Two instructions for all others, one of which
 * compilers do not emit: `if r1 & (IBS_LEASE_EVERY - 1) goto +2`.
 */
#define SKIP_CALL_UNLESS_DUE (0x45ULL | 1 << 8 | 2 << 16 | (IBS_LEASE_EVERY - 1ULL) << 32)

static __always_inline int lease_check(__u64 seen, void *ctx)
{
	register __u64 r1 asm("r1") = seen;
	register int r0 asm("r0") = 0;

	asm volatile(".8byte %[skip]\n\tr2 = %[ctx]\n\tcall lease_end"
		     : "+r"(r0), "+r"(r1)
		     : [skip] "i"(SKIP_CALL_UNLESS_DUE), [ctx] "r"(ctx)
		     : "r2", "r3", "r4", "r5", "memory");
	return r0;
}

#endif
