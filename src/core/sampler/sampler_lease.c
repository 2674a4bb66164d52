// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The lease: sampling ends if nobody renews it. */
#include "sampler_private.h"

#include "base/clock.h"

#include "ibs_op.skel.h"

#include <string.h>

/*
 * Undo bpf/lease.bpf.h. A CPU that read the old lease may still be about to lapse: it sets the mark last,
 * so the next call finds it.
 */
static bool revive_cpu(struct sampler *s, struct ibs_cpu_state *st)
{
	const typeof(s->skel->rodata) cfg = s->skel->rodata;

	if (!__atomic_load_n(&st->lapsed, __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&st->lapsed, 0, __ATOMIC_RELEASE);
	memcpy(st->layout, (const void *)cfg->config.layout, sizeof(st->layout));
	return true;
}

__u64 sampler_renew_lease(struct sampler *s, double seconds, bool *lapsed)
{
	const __u64 end_ns = seconds ? clock_ns(CLOCK_MONOTONIC) + seconds * 1e9 : 0;
	const typeof(s->skel->rodata) cfg = s->skel->rodata;
	struct err err;

	__atomic_store_n(&s->state->control.lease_ns, end_ns, __ATOMIC_RELEASE);
	*lapsed = false;
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		*lapsed |= revive_cpu(s, &s->state->cpu[cpu]);
	if (*lapsed && ibs_metric_of_fetch(cfg->config.metric))
		sampler_put_fetch_layout(s);
	if (*lapsed && cfg->cfg_lease_disables && s->events && perf_events_are_enabled(s->events)) {
		perf_events_disable(s->events);
		if (perf_events_enable(s->events, &err))
			log_warn("%s; trying again in a second", err.text);
	}
	return end_ns;
}
