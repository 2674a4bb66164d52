// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Snapshots of the programs' and the PMU's counts. */
#include "sampler_private.h"
#include "base/clock.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#define SNAPSHOT_TRIES 3

static void read_events(struct sampler *s, struct perf_events_total *t)
{
	struct perf_events_total resting;

	perf_events_read(s->events, t);
	if (!s->resting)
		return;
	perf_events_read(s->resting, &resting);
	t->samples += resting.samples;
	t->counted += resting.counted;
	t->enabled_ns += resting.enabled_ns;
	t->running_ns += resting.running_ns;
	t->exact &= resting.exact;
	/* both notice most CPUs that go and come */
	t->went = resting.went > t->went ? resting.went : t->went;
	t->came = resting.came > t->came ? resting.came : t->came;
}

static void read_pmu(struct sampler *s, struct snapshot *out)
{
	struct perf_events_total t;

	out->ledger.pmu_exact = s->counts_periods;
	if (!s->events)
		return;
	read_events(s, &t);
	out->ledger.pmu_exact &= t.exact;
	out->ledger.dropped_known = s->filter != EVENT_FILTER_HARDWARE;
	out->ledger.pmu_samples = s->pmu_samples_before + (s->counts_periods ? t.samples : 0);
	out->pmu = (struct pmu_state){
		.cpus = t.cpus,
		.counted = s->pmu_before.counted + t.counted,
		.went = s->pmu_before.went + t.went,
		.came = s->pmu_before.came + t.came,
		.enabled_ns = s->pmu_before.enabled_ns + t.enabled_ns,
		.running_ns = s->pmu_before.running_ns + t.running_ns,
		.extra_ns = sampler_share_extra(s),
		.throttled = s->pmu_before.throttled + sampler_throttled(s),
	};
	sampler_share_spread(s, &out->pmu);
	sampler_tags_read(s, &out->pmu); /* last: each sample was tagged before */
	out->ledger.dropped = s->dropped_before + s->dropped;
	if (out->ledger.dropped_known || !out->pmu.tags_known || !t.exact || s->by_freq)
		return;
	if (out->pmu.tagged > t.samples + s->dropped)
		s->dropped = out->pmu.tagged - t.samples;
	out->ledger.dropped = s->dropped_before + s->dropped;
	out->ledger.dropped_known = true;
}

/*
 * The driver counts a sample at the start of its NMI, the program at the end: one in flight during
 * the read looks unseen. So a missing sample must still be missing after each CPU has answered a
 * second read, which it cannot do within an NMI.
 */
static int read_unseen(struct sampler *s, struct snapshot *out, struct err *err)
{
	struct perf_events_total t;
	struct ledger later;
	int ret;

	/* a count disturbed by another user of the PMU may be too high */
	if (out->ledger.pmu_exact && out->ledger.pmu_samples > out->ledger.seen + s->unseen) {
		perf_events_read(s->events, &t);
		ret = counts_ledger(&s->counts, &later, err);
		if (ret)
			return ret;
		if (out->ledger.pmu_samples > later.seen + s->unseen)
			s->unseen = out->ledger.pmu_samples - later.seen;
	}
	out->ledger.unseen = s->unseen;
	/* samples since the counters were read make this less, never more */
	if (out->pmu.valid_known &&
	    out->pmu.valid > out->ledger.seen - s->seen_before + s->undelivered)
		s->undelivered = out->pmu.valid - (out->ledger.seen - s->seen_before);
	out->ledger.undelivered = s->undelivered_before + s->undelivered;
	out->ledger.undelivered_known = out->pmu.valid_known;
	return 0;
}

int sampler_ledger(struct sampler *s, struct ledger *ledger, struct pmu_state *pmu, struct err *err)
{
	struct snapshot all = {};
	struct ledger counted;
	int ret;

	read_pmu(s, &all);
	ret = counts_ledger(&s->counts, &counted, err);
	if (ret)
		return ret;
	all.ledger.seen = counted.seen;
	memcpy(all.ledger.outcome, counted.outcome, sizeof(counted.outcome));
	ret = read_unseen(s, &all, err);
	*ledger = all.ledger;
	*pmu = all.pmu;
	return ret;
}

int sampler_pmu_alone(struct sampler *s, struct err *err)
{
	struct perf_events_total t;
	struct ledger now;
	struct err later;
	bool go_on;
	int ret, step;

	if (!s->events || !s->counts_periods)
		return 0;
	ret = perf_events_realign(s->events, &go_on, err);
	step = counts_ledger(&s->counts, &now, ret ? &later : err);
	if (!step) {
		perf_events_read(s->events, &t);
		s->pmu_samples_before = now.seen + s->unseen - t.samples;
	}
	ret = ret ?: step;
	step = go_on ? perf_events_enable(s->events, ret ? &later : err) : 0;
	sampler_pins_mark(s);
	return ret ?: step;
}

static int try_snapshot(struct sampler *s, struct snapshot *out, struct err *err)
{
	int ret;

	memset(out, 0, sizeof(*out));
	out->time_ns = clock_ns(CLOCK_MONOTONIC);
	/* first, so that samples in between count as seen, not unseen */
	read_pmu(s, out);
	ret = counts_read(&s->counts, out, err);
	if (ret)
		return ret;
	ret = read_unseen(s, out, err);
	if (ret)
		snapshot_free(out);
	return ret;
}

int sampler_snapshot(struct sampler *s, struct snapshot *out, struct err *err)
{
	int ret = -EUCLEAN;

	/* a group created during the read may be missed once */
	for (int tries = 0; ret == -EUCLEAN && tries < SNAPSHOT_TRIES; tries++)
		ret = try_snapshot(s, out, err);
	return ret;
}

int sampler_run_time(const struct sampler *s, __u64 *ns, __u64 *runs)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(s->prog_fd, &info, &len))
		return -errno;
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
	return 0;
}

__u64 sampler_throttled(struct sampler *s)
{
	return (s->events ? perf_events_throttled(s->events) : 0) +
	       (s->resting ? perf_events_throttled(s->resting) : 0);
}

const struct counts *sampler_counts(const struct sampler *s)
{
	return &s->counts;
}
