// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reading.h"
#include "reading_text.h"
#include "base/choice.h"
#include "base/clock.h"
#include "base/std.h"
#include "base/utf8.h"
#include "counts/snapshot.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define ALIVE_NS 10000000000ULL

bool collector_alive(const struct ibs_meta *m)
{
	return m->pid && clock_ns(CLOCK_BOOTTIME) < m->status.time_ns + ALIVE_NS;
}

double collector_lease_s(const struct ibs_meta *m)
{
	const __u64 now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!m->lease_ns)
		return NAN;
	return m->lease_ns > now_ns ? (m->lease_ns - now_ns) / 1e9 : 0;
}

/* Was it killed while it sampled, and its links stayed? */
static bool left_links(const struct ibs_meta *m)
{
	return m->pid && !collector_alive(m) && m->outlives && !status_stopped(&m->status);
}

static bool lease_ended(const struct ibs_meta *m)
{
	return left_links(m) && collector_lease_s(m) <= 0;
}

bool collector_orphaned(const struct ibs_meta *m)
{
	return left_links(m) && !lease_ended(m);
}

enum ibs_metric reading_metric(const struct ibs_meta *m)
{
	return m->layout.metric < IBS_METRIC_N ? m->layout.metric : 0;
}

__u32 reading_groups_limit(const struct ibs_meta *m)
{
	return m->layout.max_slots > 2 ? m->layout.max_slots - 2 : 0;
}

#define GOVERNOR_HELP(id, name, help) help,

CHOICE_NAMES(governor_state_name, enum governor_state, GOVERNOR_STATE_TABLE)

CHOICE_NAMES(governor_reason_name, enum governor_reason, GOVERNOR_REASON_TABLE)

const char *governor_reason_help(enum governor_reason r)
{
	static const char *const helps[] = { GOVERNOR_REASON_TABLE(GOVERNOR_HELP) };

	return helps[r];
}

static const char *status_governor_state(const struct ibs_meta_status *st)
{
	return st->governor_state < GOVERNOR_STATE_N ? governor_state_name(st->governor_state)
						     : "unknown";
}

static const char *status_governor_reason(const struct ibs_meta_status *st)
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

double status_overhead(const struct ibs_meta_status *st)
{
	return st->overhead_ppb ? st->overhead_ppb / 1e9 : (double)NAN;
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

void reading_finish(struct reading *r, const struct counts *counts, const struct ledger *counted,
		    size_t groups)
{
	const struct ibs_meta_status *st = &r->meta.status;

	r->ledger = *counted;
	pinned_ledger(st, &r->ledger);
	r->groups = groups;
	r->strata = counts->state->control.strata;
}

static void name_pinned(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	pinned_name(arg, g, out);
}

void reading_pinned_neighbours(struct reading *r, const struct pinned *p)
{
	struct ibs_neighbours all;

	pinned_neighbours(p, &all);
	neighbours_read(&r->neighbours, r->time_ns, &all, name_pinned, p);
}

int reading_pinned(const struct pinned *p, struct reading *out, struct err *err)
{
	struct ibs_meta meta;
	struct snapshot s;
	int ret;

	pinned_meta(p, &meta);
	reading_begin(out, &meta);
	ret = pinned_snapshot(p, &s, err);
	if (ret)
		return ret;
	reading_finish(out, pinned_counts(p), &s.ledger, snapshot_groups(&s));
	reading_pinned_neighbours(out, p);
	snapshot_free(&s);
	return 0;
}

static double age_s(const struct reading *r)
{
	return ((double)r->time_ns - r->meta.status.time_ns) / 1e9;
}

static double retry_s(const struct reading *r)
{
	double s = ((double)r->meta.status.governor_retry_ns - r->time_ns) / 1e9;

	return s > 0 ? s : 0;
}

/* --- for people --- */

static void print_line(FILE *f, const char *name, const char *text)
{
	fprintf(f, "%s: ", name);
	utf8_put(f, text);
	fputc('\n', f);
}

static void print_state(FILE *f, const struct reading *r)
{
	const struct ibs_meta_status *st = &r->meta.status;
	const char *sep = "; changes: ";

	fprintf(f, "governor: %s", status_governor_state(st));
	if (st->governor_reason)
		fprintf(f, " (%s)", status_governor_reason(st));
	if (status_stopped(st))
		fprintf(f, ", next try in %.0f s", retry_s(r));
	else if (st->period && st->period != st->period_asked)
		fprintf(f, ", period %s instead of %s", TEXT_COUNT(st->period),
			TEXT_COUNT(st->period_asked));
	else if (st->period)
		fprintf(f, ", period %s", TEXT_COUNT(st->period));
	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++) {
		if (!st->governor_changes[i])
			continue;
		fprintf(f, "%s%s %s", sep, governor_reason_name(i),
			TEXT_COUNT(st->governor_changes[i]));
		sep = ", ";
	}
	fputc('\n', f);
}

/* For all events; the cost of a sample is that of the first. */
static void print_overhead(FILE *f, const struct ibs_meta_status *st)
{
	if (st->overhead_ppb)
		fprintf(f, "overhead: %.3f%% of CPU time", st->overhead_ppb / 1e7);
	else
		fputs("overhead: not known yet", f);
	if (st->budget_ppb)
		fprintf(f, ", budget %.3g%%", st->budget_ppb / 1e7);
	else
		fputs(", not controlled", f);
	fprintf(f, "; per sample %s ns without BPF (%s) and %.0f ns in BPF (%s)",
		TEXT_COUNT(st->nmi_ns), status_nmi_source(st), status_bpf_ns(st),
		status_bpf_source(st));
	if (st->kernel_lowered)
		fprintf(f, "; sample rate limit lowered by the kernel %s times, now %s/s",
			TEXT_COUNT(st->kernel_lowered), TEXT_COUNT(st->kernel_rate));
	fputc('\n', f);
}

const char *const work_names[] = {
#define NAME(id, name, help) name,
	IBS_WORK_TABLE(NAME)
#undef NAME
};

const char *const push_outcome_names[] = {
#define NAME(id, name, help) name,
	IBS_PUSH_TABLE(NAME)
#undef NAME
};

const char *const flight_outcome_names[] = {
#define NAME(id, name, help) name,
	IBS_FLIGHT_TABLE(NAME)
#undef NAME
};

/* @none: outcome that they do not have, or IBS_PUSH_N */
static void print_pushed(FILE *f, const char *what, const __u64 *n, int none)
{
	fprintf(f, "%s", what);
	for (int i = 0; i < IBS_PUSH_N; i++)
		if (i != none && (n[i] || i == IBS_PUSH_DELIVERED))
			fprintf(f, "%s%s %s", i ? ", " : " ", TEXT_COUNT(n[i]),
				push_outcome_names[i]);
}

static void print_push(FILE *f, const struct ibs_push_counts *c)
{
	print_pushed(f, "push: profiles", c->profiles, IBS_PUSH_DROPPED);
	print_pushed(f, "; samples", c->samples, IBS_PUSH_N);
	fprintf(f, "; %s tries again", TEXT_COUNT(c->retries));
	if (c->unnamed_files)
		fprintf(f, "; for lack of time %s files with %s samples not named",
			TEXT_COUNT(c->unnamed_files), TEXT_COUNT(c->unnamed_samples));
	if (c->profiles[IBS_PUSH_CHAINS_LOST])
		fprintf(f, "; %s samples without call chain, which found no room",
			TEXT_COUNT(c->profiles[IBS_PUSH_CHAINS_LOST]));
	fputc('\n', f);
}

static void print_flight(FILE *f, const struct ibs_meta_status *st)
{
	fprintf(f, "flight recorder: recordings");
	for (int i = 0; i < IBS_FLIGHT_N; i++)
		fprintf(f, "%s %s %s", i ? "," : "", TEXT_COUNT(ibs_flight_count(st, i)),
			flight_outcome_names[i]);
	fputc('\n', f);
}

/* The collector's own CPU time, and work that was delayed because others cause too much. */
static void print_work(FILE *f, const struct ibs_meta_status *st)
{
	fprintf(f, "work: ");
	for (int i = 0; i < IBS_WORK_N; i++) {
		fprintf(f, "%s%s %.1f s", i ? ", " : "", work_names[i], st->work_ns[i] / 1e9);
		if (st->work_delayed_ns[i])
			fprintf(f, " (delayed for %.1f s)", st->work_delayed_ns[i] / 1e9);
	}
	fputc('\n', f);
}

static void print_event(FILE *f, const struct ibs_meta *m)
{
	fprintf(f, "sampling: ");
	utf8_put(f, m->event);
	fprintf(f, " on %u CPU%s\n", m->status.cpus, text_plural(m->status.cpus));
}

static void print_groups(FILE *f, const struct reading *r)
{
	const struct ibs_meta_status *st = &r->meta.status;

	fprintf(f, "groups: %s of %s, %s folded, %s displaced by busier ones\n",
		TEXT_COUNT(r->groups), TEXT_COUNT(reading_groups_limit(&r->meta)),
		TEXT_COUNT(st->folded), TEXT_COUNT(st->displaced));
}

static void print_cost(FILE *f, const struct ibs_meta_status *st, bool second)
{
	if (!st->bpf_runs)
		return;
	fprintf(f, "cost: %.0f ns per sample in BPF, %.1f s in total", status_bpf_ns(st),
		st->bpf_ns / 1e9);
	if (!second)
		fprintf(f, "; collector %.1f s", st->cpu_ns / 1e9);
	fputc('\n', f);
}

static void print_ledger(FILE *f, const struct reading *r)
{
	fprintf(f, "ledger: ");
	ledger_print(f, &r->ledger);
	fputc('\n', f);
	strata_status_print(f, &r->strata);
}

static void print_orphaned(FILE *f, const struct reading *r)
{
	const double lease_s = collector_lease_s(&r->meta);

	fprintf(f,
		"collector: orphaned for %.0f s: it was killed, and sampling continues "
		"without a governor",
		age_s(r));
	if (lease_s > 0)
		fprintf(f, " for another %.0f s (--lease)", lease_s);
	fprintf(f, "; resume it with `ibscope serve`, or end it with `ibscope ctl stop`\n");
}

void collector_print(FILE *f, const struct reading *r, unsigned int n)
{
	const struct ibs_meta *m = &r->meta;
	const struct ibs_meta_status *st = &m->status;
	const bool alive = collector_alive(m);

	if (m->layout.simulated)
		fprintf(f, "SIMULATED samples, not measurements\n");
	if (alive)
		fprintf(f, "collector: process %u, version %s, last update %.1f s ago\n", m->pid,
			m->version, age_s(r));
	else if (collector_orphaned(m))
		print_orphaned(f, r);
	else if (lease_ended(m))
		fprintf(f,
			"collector: not running for %.0f s: it was killed, and sampling ended with "
			"its lease; its counters are kept\n",
			age_s(r));
	else
		fprintf(f, "collector: not running for %.0f s; its counters are kept\n", age_s(r));
	print_event(f, m);
	print_line(f, "options", *m->selection ? m->selection : "none");
	if (alive && *m->live)
		print_line(f, "set live", m->live);
	if (alive && st->unresolved)
		print_line(f, "waiting for", m->unresolved);
	if (alive && m->pins_missing)
		fprintf(f,
			"pins: %u are missing, and cannot be pinned again: the log of the "
			"collector gives the reason\n",
			m->pins_missing);
	if (alive && *m->control) {
		fprintf(f, "control: ");
		utf8_put(f, m->control);
		fprintf(f, ", %llu changes\n", st->live_changes);
	}
	print_groups(f, r);
	fprintf(f,
		"machine: %s CPUs went offline, %s came online, clock set %s times, "
		"suspended %s times, PMU shared %s times\n",
		TEXT_COUNT(st->cpus_went), TEXT_COUNT(st->cpus_came), TEXT_COUNT(st->clock_steps),
		TEXT_COUNT(st->suspends), TEXT_COUNT(st->pmu_shared));
	fprintf(f, "memory: %.1f MiB of maps, %.1f MiB of the collector\n",
		st->memory_bytes / 1048576.0, st->rss_bytes / 1048576.0);
	print_cost(f, st, false);
	print_work(f, st);
	if (st->push.collectors)
		print_push(f, &st->push);
	if (st->flight_on)
		print_flight(f, st);
	if (r->neighbours.known)
		neighbours_print(f, &r->neighbours);
	print_state(f, r);
	print_overhead(f, st);
	print_ledger(f, r);
	for (unsigned int i = 1; i < n; i++) {
		print_event(f, &r[i].meta);
		print_state(f, &r[i]);
		print_groups(f, &r[i]);
		print_cost(f, &r[i].meta.status, true);
		print_ledger(f, &r[i]);
	}
}

/* --- JSON --- */

static void put_governor(struct json_writer *w, const struct reading *r)
{
	const struct ibs_meta_status *st = &r->meta.status;

	json_begin_object(w, "governor");
	json_put_text(w, "state", status_governor_state(st));
	json_put_text(w, "reason", status_governor_reason(st));
	json_put_double(w, "budget", st->budget_ppb ? st->budget_ppb / 1e9 : (double)NAN);
	json_put_double(w, "overhead", status_overhead(st));
	json_put_double(w, "overhead_s", st->overhead_ns / 1e9);
	json_put_known(w, "period_asked", st->period_asked, st->period_asked);
	json_put_u64(w, "nmi_ns", st->nmi_ns);
	json_put_text(w, "nmi_source", status_nmi_source(st));
	json_put_double(w, "bpf_ns", status_bpf_ns(st));
	json_put_text(w, "bpf_source", status_bpf_source(st));
	json_put_known(w, "kernel_max_sample_rate", st->kernel_rate, st->kernel_rate);
	json_put_u64(w, "kernel_rate_lowered", st->kernel_lowered);
	json_begin_object(w, "changes");
	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++)
		if (st->governor_changes[i])
			json_put_u64(w, governor_reason_name(i), st->governor_changes[i]);
	json_end(w);
	if (status_stopped(st))
		json_put_double(w, "retry_s", retry_s(r));
	json_end(w);
}

static void put_work(struct json_writer *w, const struct ibs_meta_status *st)
{
	json_begin_object(w, "work");
	for (int i = 0; i < IBS_WORK_N; i++) {
		json_begin_object(w, work_names[i]);
		json_put_double(w, "cpu_s", st->work_ns[i] / 1e9);
		json_put_double(w, "delayed_s", st->work_delayed_ns[i] / 1e9);
		json_end(w);
	}
	json_end(w);
}

/* @none: outcome that they do not have, or IBS_PUSH_N */
static void put_outcomes(struct json_writer *w, const char *key, const __u64 *n, int none)
{
	json_begin_object(w, key);
	for (int i = 0; i < IBS_PUSH_N; i++)
		json_put_u64(w, push_outcome_names[i], i == none ? 0 : n[i]);
	json_end(w);
}

static void put_push(struct json_writer *w, const struct ibs_push_counts *c,
		     const struct reading_push *now)
{
	json_begin_object(w, "push");
	put_outcomes(w, "profiles", c->profiles, IBS_PUSH_DROPPED);
	put_outcomes(w, "samples", c->samples, IBS_PUSH_N);
	json_put_u64(w, "retries", c->retries);
	json_put_u64(w, "unnamed_files", c->unnamed_files);
	json_put_u64(w, "unnamed_samples", c->unnamed_samples);
	json_put_u64(w, "chains_lost", c->profiles[IBS_PUSH_CHAINS_LOST]);
	if (now) {
		json_put_bool(w, "pending", now->pending);
		json_put_u64(w, "files_given_up", now->files_given_up);
		json_put_text_if_any(w, "failure", now->failure);
	}
	json_end(w);
}

static void put_flight(struct json_writer *w, const struct ibs_meta_status *st)
{
	json_begin_object(w, "flight");
	for (int i = 0; i < IBS_FLIGHT_N; i++)
		json_put_u64(w, flight_outcome_names[i], ibs_flight_count(st, i));
	json_end(w);
}

/* Self-measurements of the collector. */
static void put_counts(struct json_writer *w, const struct reading *r)
{
	const struct ibs_meta *m = &r->meta;
	const struct ibs_meta_status *st = &m->status;

	json_put_u64(w, "pid", m->pid);
	json_put_u64(w, "starts", m->starts);
	json_put_u64(w, "cpus", st->cpus);
	json_put_u64(w, "groups", r->groups);
	json_put_u64(w, "groups_limit", reading_groups_limit(m));
	json_put_u64(w, "groups_folded", st->folded);
	json_put_u64(w, "groups_displaced", st->displaced);
	json_put_u64(w, "map_bytes", st->memory_bytes);
	json_put_u64(w, "rss_bytes", st->rss_bytes);
	json_put_u64(w, "cpus_went_offline", st->cpus_went);
	json_put_u64(w, "cpus_came_online", st->cpus_came);
	json_put_u64(w, "clock_steps", st->clock_steps);
	json_put_u64(w, "suspends", st->suspends);
	json_put_u64(w, "pmu_shared", st->pmu_shared);
	json_put_u64(w, "throttled", st->throttled);
	json_put_u64(w, "unresolved", st->unresolved);
	json_put_u64(w, "pins_missing", m->pins_missing);
	json_put_u64(w, "pins_repaired", m->pins_repaired);
}

double collector_overhead(const struct reading *r, unsigned int n)
{
	const struct ibs_meta_status *st = &r->meta.status;
	__u64 ns = st->cpu_ns;

	for (unsigned int i = 0; i < n; i++)
		ns += r[i].meta.status.bpf_ns;
	return st->enabled_ns && st->bpf_runs ? (double)ns / st->enabled_ns : (double)NAN;
}

static void put_texts(struct json_writer *w, const struct ibs_meta *m)
{
	struct utsname machine;

	collector_put_text(w, "host", uname(&machine) ? "" : machine.nodename);
	collector_put_text(w, "version", m->version);
	collector_put_text(w, "event", m->event);
	collector_put_text(w, "source", m->source);
	collector_put_text(w, "selection", m->selection);
	collector_put_text(w, "live", m->live);
	collector_put_text(w, "waiting_for", m->status.unresolved ? m->unresolved : "");
	json_put_text(w, "metric", metric_name(reading_metric(m)));
}

void collector_put(struct json_writer *w, const struct reading *r, unsigned int n,
		   const struct reading_push *push)
{
	const struct ibs_meta *m = &r->meta;
	const struct ibs_meta_status *st = &m->status;

	json_put_bool(w, "simulated", m->layout.simulated);
	json_put_bool(w, "alive", collector_alive(m));
	json_put_bool(w, "orphaned", collector_orphaned(m));
	json_put_double(w, "lease_s", collector_lease_s(m));
	json_put_double(w, "age_s", age_s(r));
	json_put_double(w, "time_s", r->time_ns / 1e9);
	json_put_double(w, "start_s", m->start_realtime_ns / 1e9);
	json_put_double(w, "enabled_s", st->enabled_ns / 1e9);
	json_put_double(w, "running_s", st->running_ns / 1e9);
	json_put_known(w, "period", st->period, st->period);
	json_put_double(w, "overhead", collector_overhead(r, n));
	put_counts(w, r);
	put_texts(w, m);
	put_work(w, st);
	if (st->push.collectors)
		put_push(w, &st->push, push);
	if (st->flight_on)
		put_flight(w, st);
	if (r->neighbours.known)
		neighbours_put(w, &r->neighbours);
	put_governor(w, r);
	ledger_put(w, &r->ledger);
	strata_status_put(w, &r->strata);
	if (n < 2)
		return;
	json_begin_object(w, "fetch");
	collector_put(w, &r[1], 1, NULL);
	json_end(w);
}

void collector_print_json(FILE *f, const struct reading *r, unsigned int n,
			  const struct reading_push *push)
{
	struct json_writer w = { .f = f, .precision = READING_PRECISION };

	json_begin_object(&w, NULL);
	collector_put(&w, r, n, push);
	json_finish(&w);
}
