// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reading.h"

#include "base/clock.h"
#include "collector/governor.h"

#include <string.h>

#define ALIVE_NS 10000000000ULL

bool collector_alive(const struct ibs_meta *m)
{
	return m->pid && clock_ns(CLOCK_BOOTTIME) < m->status.time_ns + ALIVE_NS;
}

enum ibs_metric reading_metric(const struct ibs_meta *m)
{
	return m->layout.metric < IBS_METRIC_N ? m->layout.metric : 0;
}

const char *status_governor_state(const struct ibs_meta_status *st)
{
	return st->governor_state < GOVERNOR_STATE_N ? governor_state_name(st->governor_state)
						     : "unknown";
}

const char *status_governor_reason(const struct ibs_meta_status *st)
{
	return st->governor_reason < GOVERNOR_REASON_N ? governor_reason_name(st->governor_reason)
						       : "unknown";
}

const char *status_nmi_source(const struct ibs_meta_status *st)
{
#define NMI_SOURCE_NAME(NAME, name) name,
	static const char *const names[] = { IBS_NMI_SOURCE_TABLE(NMI_SOURCE_NAME) };
#undef NMI_SOURCE_NAME

	return st->nmi_source < IBS_NMI_SOURCES ? names[st->nmi_source] : "unknown";
}

bool status_stopped(const struct ibs_meta_status *st)
{
	return st->governor_state == GOVERNOR_STATE_STOPPED;
}

double status_bpf_ns(const struct ibs_meta_status *st)
{
	return st->bpf_runs ? (double)st->bpf_ns / st->bpf_runs : GOVERNOR_BPF_ASSUMED_NS;
}

const char *status_bpf_source(const struct ibs_meta_status *st)
{
	return st->bpf_runs ? "measured" : "assumed";
}

void reading_begin(struct reading *r, const struct ibs_meta *m)
{
	memset(r, 0, sizeof(*r));
	r->meta = *m;
	r->time_ns = clock_ns(CLOCK_BOOTTIME);
}

void reading_finish(struct reading *r, const struct ledger *counted, size_t groups)
{
	const struct ibs_meta_status *st = &r->meta.status;

	r->ledger = *counted;
	r->ledger.pmu_samples = st->pmu_samples;
	r->ledger.unseen = st->unseen;
	r->ledger.pmu_exact = st->pmu_exact;
	r->groups = groups;
}

int reading_pinned(const struct pinned *p, struct reading *out, struct err *err)
{
	struct ibs_meta meta;
	struct snapshot s;
	size_t groups = 0;
	int ret;

	pinned_meta(p, &meta);
	reading_begin(out, &meta);
	ret = pinned_snapshot(p, &s, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < s.n_groups; i++)
		groups += !s.groups[i].other;
	reading_finish(out, &s.ledger, groups);
	snapshot_free(&s);
	return 0;
}
