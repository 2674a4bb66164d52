// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metrics that have several lines, by a label. */
#include "metrics_private.h"

#include <math.h>
#include <stdio.h>

void metric_line_label(struct metric_line *out, const char *name, const char *value)
{
	int i = 0;

	while (out->label[i].name)
		i++;
	out->label[i].name = name;
	out->label[i].value = value;
}

/* One line, with one label. */
static bool only_line(unsigned int i, struct metric_line *out, const char *name, const char *label,
		      double value)
{
	metric_line_label(out, name, label);
	out->value = value;
	return !i;
}

/* One of several lines, which differ in a label. */
static bool one_line(struct metric_line *out, const char *name, const char *label, double value)
{
	return only_line(0, out, name, label, value);
}

static bool reason_line(const struct reading *r, enum ibs_outcome_kind kind, unsigned int i,
			struct metric_line *out)
{
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		if (outcome_kind(o) != kind || i--)
			continue;
		return one_line(out, "reason", outcome_name(o), r->ledger.outcome[o]);
	}
	return false;
}

bool lines_filtered(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return reason_line(r, IBS_OUTCOME_KIND_FILTERED, i, out);
}

bool lines_lost(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return reason_line(r, IBS_OUTCOME_KIND_LOST, i, out);
}

bool lines_strata_seconds(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return i < STRATUM_N && r->strata.used &&
	       one_line(out, "stratum", stratum_names[i], r->strata.of[i].time_ns / 1e9);
}

bool lines_strata_samples(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return i < STRATUM_N && r->strata.used &&
	       one_line(out, "stratum", stratum_names[i], r->strata.of[i].seen);
}

static bool work_line(const __u64 *ns, unsigned int i, struct metric_line *out)
{
	return i < IBS_WORK_N && one_line(out, "work", work_names[i], ns[i] / 1e9);
}

bool lines_work(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return work_line(r->meta.status.work_ns, i, out);
}

bool lines_work_delayed(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return work_line(r->meta.status.work_delayed_ns, i, out);
}

static bool push_line(const struct reading *r, const __u64 *n, unsigned int i,
		      struct metric_line *out)
{
	return i < IBS_PUSH_N && r->meta.status.push.collectors &&
	       one_line(out, "outcome", push_outcome_names[i], n[i]);
}

bool lines_push_profiles(const struct reading *r, unsigned int i, struct metric_line *out)
{
	/* of profiles none is dropped */
	return push_line(r, r->meta.status.push.profiles, i + (i >= IBS_PUSH_DROPPED), out);
}

bool lines_push_samples(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return push_line(r, r->meta.status.push.samples, i, out);
}

bool lines_flights(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return i < IBS_FLIGHT_N && r->meta.status.flight_on &&
	       one_line(out, "outcome", flight_outcome_names[i],
			ibs_flight_count(&r->meta.status, i));
}

static bool neighbour_line(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const struct reading_neighbours *all = &r->neighbours;

	if (i >= all->n)
		return false;
	snprintf(out->text, sizeof(out->text), "%u", all->pair[i].complex);
	metric_line_label(out, "namespace", all->victim[i].name_space);
	metric_line_label(out, "pod", all->victim[i].pod);
	metric_line_label(out, "container", all->victim[i].container);
	metric_line_label(out, "suspect_namespace", all->suspect[i].name_space);
	metric_line_label(out, "suspect_pod", all->suspect[i].pod);
	metric_line_label(out, "suspect_container", all->suspect[i].container);
	metric_line_label(out, "ccx", out->text);
	return true;
}

bool lines_neighbour_slowdowns(const struct reading *r, unsigned int i, struct metric_line *out)
{
	bool any = neighbour_line(r, i, out);

	out->value = any ? neighbour_slowdown(&r->neighbours.pair[i]) : (double)NAN;
	return any;
}

bool lines_neighbour_shares(const struct reading *r, unsigned int i, struct metric_line *out)
{
	bool any = neighbour_line(r, i, out);

	out->value = any ? r->neighbours.pair[i].share : (double)NAN;
	return any;
}

bool lines_neighbour_chances(const struct reading *r, unsigned int i, struct metric_line *out)
{
	bool any = neighbour_line(r, i, out);

	out->value = any ? r->neighbours.pair[i].chance : (double)NAN;
	return any;
}

/* The pair with the @i-th figure that resctrl knows; IBS_NEIGHBOURS: there are not so many. */
static unsigned int pair_with(const struct reading *r, __u64 known, unsigned int i)
{
	for (unsigned int p = 0; p < r->neighbours.n; p++)
		if ((r->neighbours.use[p].known & known) && !i--)
			return p;
	return IBS_NEIGHBOURS;
}

bool lines_neighbour_traffic(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const unsigned int p = pair_with(r, IBS_NEIGHBOUR_TRAFFIC, i);
	bool any = neighbour_line(r, p, out);

	out->value = any ? r->neighbours.use[p].traffic : (double)NAN;
	return any;
}

bool lines_neighbour_l3(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const unsigned int p = pair_with(r, IBS_NEIGHBOUR_L3, i);
	bool any = neighbour_line(r, p, out);

	out->value = any ? r->neighbours.use[p].l3 : (double)NAN;
	return any;
}

bool lines_governor_states(const struct reading *r, unsigned int i, struct metric_line *out)
{
	return i < GOVERNOR_STATE_N &&
	       one_line(out, "state", governor_state_name(i), i == r->meta.status.governor_state);
}

bool lines_governor_changes(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const unsigned int reason = GOVERNOR_REASON_NONE + 1 + i;

	if (reason >= GOVERNOR_REASON_N)
		return false;
	return one_line(out, "reason", governor_reason_name(reason),
			r->meta.status.governor_changes[reason]);
}

bool lines_nmi_cost(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const struct ibs_meta_status *st = &r->meta.status;

	return only_line(i, out, "source", status_nmi_source(st), st->nmi_ns / 1e9);
}

bool lines_bpf_cost(const struct reading *r, unsigned int i, struct metric_line *out)
{
	const struct ibs_meta_status *st = &r->meta.status;

	return only_line(i, out, "source", status_bpf_source(st), status_bpf_ns(st) / 1e9);
}

bool lines_build_info(const struct reading *r, unsigned int i, struct metric_line *out)
{
	metric_line_label(out, "version", r->meta.version);
	return only_line(i, out, "exporter_version", IBSCOPE_VERSION, 1);
}

bool lines_collector_info(const struct reading *r, unsigned int i, struct metric_line *out)
{
	snprintf(out->text, sizeof(out->text), "%#x", r->meta.layout.caps);
	metric_line_label(out, ibs_metric_of_fetch(reading_metric(&r->meta)) ? "terms" : "event",
			  r->meta.event);
	metric_line_label(out, "source", r->meta.source);
	metric_line_label(out, "metric", metric_name(reading_metric(&r->meta)));
	return only_line(i, out, "ibs_caps", out->text, 1);
}
