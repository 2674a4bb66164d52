// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reading.h"
#include "base/clock.h"
#include "base/std.h"
#include "base/utf8.h"
#include "counts/snapshot.h"

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

enum ibs_metric reading_metric(const struct ibs_meta *m)
{
	return m->layout.metric < IBS_METRIC_N ? m->layout.metric : 0;
}

__u32 reading_groups_limit(const struct ibs_meta *m)
{
	return m->layout.max_slots > 2 ? m->layout.max_slots - 2 : 0;
}

#define GOVERNOR_NAME(id, name, help) name,
#define GOVERNOR_HELP(id, name, help) help,

const char *governor_state_name(enum governor_state s)
{
	static const char *const names[] = { GOVERNOR_STATE_TABLE(GOVERNOR_NAME) };

	return names[s];
}

const char *governor_reason_name(enum governor_reason r)
{
	static const char *const names[] = { GOVERNOR_REASON_TABLE(GOVERNOR_NAME) };

	return names[r];
}

const char *governor_reason_help(enum governor_reason r)
{
	static const char *const helps[] = { GOVERNOR_REASON_TABLE(GOVERNOR_HELP) };

	return helps[r];
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
	pinned_ledger(st, &r->ledger);
	r->groups = groups;
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
	reading_finish(out, &s.ledger, snapshot_groups(&s));
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
		fprintf(f, ", period %llu instead of %llu", st->period, st->period_asked);
	else if (st->period)
		fprintf(f, ", period %llu", st->period);
	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++) {
		if (!st->governor_changes[i])
			continue;
		fprintf(f, "%s%s %llu", sep, governor_reason_name(i), st->governor_changes[i]);
		sep = ", ";
	}
	fputc('\n', f);
}

/* For all events; the cost of a sample is that of the first. */
static void print_overhead(FILE *f, const struct ibs_meta_status *st)
{
	fprintf(f, "overhead: %.3f%% of CPU time", st->overhead_ppb / 1e7);
	if (st->budget_ppb)
		fprintf(f, ", budget %.3g%%", st->budget_ppb / 1e7);
	fprintf(f, "; per sample %llu ns without BPF (%s) and %.0f ns in BPF (%s)", st->nmi_ns,
		status_nmi_source(st), status_bpf_ns(st), status_bpf_source(st));
	if (st->kernel_lowered)
		fprintf(f, "; sample rate limit lowered by the kernel %llu times, now %llu/s",
			st->kernel_lowered, st->kernel_rate);
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

static void print_pushed(FILE *f, const char *what, const __u64 *n)
{
	fprintf(f, "%s", what);
	for (int i = 0; i < IBS_PUSH_N; i++)
		if (n[i] || i == IBS_PUSH_DELIVERED)
			fprintf(f, "%s%llu %s", i ? ", " : " ", n[i], push_outcome_names[i]);
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
	fprintf(f, " on %u CPUs\n", m->status.cpus);
}

static void print_groups(FILE *f, const struct reading *r)
{
	const struct ibs_meta_status *st = &r->meta.status;

	fprintf(f, "groups: %zu of %u, %llu folded, %llu displaced by busier ones\n", r->groups,
		reading_groups_limit(&r->meta), st->folded, st->displaced);
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
	else
		fprintf(f, "collector: not running for %.0f s; its counters are kept\n", age_s(r));
	print_event(f, m);
	print_line(f, "options", *m->selection ? m->selection : "none");
	if (alive && *m->live)
		print_line(f, "set live", m->live);
	if (alive && st->unresolved)
		print_line(f, "waiting for", m->unresolved);
	if (alive && *m->control) {
		fprintf(f, "control: ");
		utf8_put(f, m->control);
		fprintf(f, ", %llu changes\n", st->live_changes);
	}
	print_groups(f, r);
	fprintf(f,
		"machine: %llu CPUs went offline, %llu came online, clock set %llu times, "
		"suspended %llu times, PMU shared %llu times\n",
		st->cpus_went, st->cpus_came, st->clock_steps, st->suspends, st->pmu_shared);
	fprintf(f, "memory: %.1f MiB of maps, %.1f MiB of the collector\n",
		st->memory_bytes / 1048576.0, st->rss_bytes / 1048576.0);
	print_cost(f, st, false);
	print_work(f, st);
	if (st->push.collectors) {
		print_pushed(f, "push: profiles", st->push.profiles);
		print_pushed(f, "; samples", st->push.samples);
		fprintf(f, "; %llu tries again\n", st->push.retries);
	}
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

json_t *collector_json_text(const char *text)
{
	char *escaped;
	size_t n;
	FILE *f = xmemopen(&escaped, &n);
	json_t *s;

	utf8_put(f, text);
	xmemclose(f);
	s = json_string(escaped);
	free(escaped);
	return s;
}

/* Unknown is null. */
static json_t *known(__u64 value, bool is_known)
{
	return is_known ? json_integer(value) : json_null();
}

static json_t *known_real(double value, bool is_known)
{
	return is_known ? json_real(value) : json_null();
}

static json_t *governor_json(const struct reading *r)
{
	const struct ibs_meta_status *st = &r->meta.status;
	json_t *changes = json_object(), *o;

	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++)
		if (st->governor_changes[i])
			json_object_set_new(changes, governor_reason_name(i),
					    json_integer(st->governor_changes[i]));
	o = json_pack("{s:s, s:s, s:o, s:f, s:f, s:o, s:I, s:s, s:f, s:s, s:o, s:I, s:o}", "state",
		      status_governor_state(st), "reason", status_governor_reason(st), "budget",
		      known_real(st->budget_ppb / 1e9, st->budget_ppb), "overhead",
		      st->overhead_ppb / 1e9, "overhead_s", st->overhead_ns / 1e9, "period_asked",
		      known(st->period_asked, st->period_asked), "nmi_ns", (json_int_t)st->nmi_ns,
		      "nmi_source", status_nmi_source(st), "bpf_ns", status_bpf_ns(st),
		      "bpf_source", status_bpf_source(st), "kernel_max_sample_rate",
		      known(st->kernel_rate, st->kernel_rate), "kernel_rate_lowered",
		      (json_int_t)st->kernel_lowered, "changes", changes);
	if (status_stopped(st))
		json_object_set_new(o, "retry_s", json_real(retry_s(r)));
	return o;
}

static json_t *work_json(const struct ibs_meta_status *st)
{
	json_t *o = json_object();

	for (int i = 0; i < IBS_WORK_N; i++)
		json_object_set_new(o, work_names[i],
				    json_pack("{s:f, s:f}", "cpu_s", st->work_ns[i] / 1e9,
					      "delayed_s", st->work_delayed_ns[i] / 1e9));
	return o;
}

static json_t *pushed_json(const struct ibs_push_counts *c)
{
	json_t *profiles = json_object(), *samples = json_object();

	for (int i = 0; i < IBS_PUSH_N; i++) {
		json_object_set_new(profiles, push_outcome_names[i], json_integer(c->profiles[i]));
		json_object_set_new(samples, push_outcome_names[i], json_integer(c->samples[i]));
	}
	return json_pack("{s:o, s:o, s:I}", "profiles", profiles, "samples", samples, "retries",
			 (json_int_t)c->retries);
}

/* Self-measurements of the collector. */
static void add_counts(json_t *o, const struct reading *r)
{
	const struct ibs_meta *m = &r->meta;
	const struct ibs_meta_status *st = &m->status;
	const struct {
		const char *name;
		__u64 value;
	} rows[] = {
		{ "pid", m->pid },
		{ "starts", m->starts },
		{ "cpus", st->cpus },
		{ "groups", r->groups },
		{ "groups_limit", reading_groups_limit(m) },
		{ "groups_folded", st->folded },
		{ "groups_displaced", st->displaced },
		{ "map_bytes", st->memory_bytes },
		{ "rss_bytes", st->rss_bytes },
		{ "cpus_went_offline", st->cpus_went },
		{ "cpus_came_online", st->cpus_came },
		{ "clock_steps", st->clock_steps },
		{ "suspends", st->suspends },
		{ "pmu_shared", st->pmu_shared },
		{ "throttled", st->throttled },
		{ "unresolved", st->unresolved },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		json_object_set_new(o, rows[i].name, json_integer(rows[i].value));
}

double collector_overhead(const struct reading *r, const struct reading *second)
{
	const struct ibs_meta_status *st = &r->meta.status;
	const __u64 bpf_ns = st->bpf_ns + (second ? second->meta.status.bpf_ns : 0);

	return st->enabled_ns && st->bpf_runs ? (double)(bpf_ns + st->cpu_ns) / st->enabled_ns
					      : (double)NAN;
}

json_t *collector_json(const struct reading *r, unsigned int n)
{
	const double overhead = collector_overhead(r, n > 1 ? &r[1] : NULL);
	const struct ibs_meta *m = &r->meta;
	const struct ibs_meta_status *st = &m->status;
	struct utsname machine;
	const struct {
		const char *name, *text;
	} texts[] = {
		{ "host", uname(&machine) ? "" : machine.nodename },
		{ "version", m->version },
		{ "event", m->event },
		{ "source", m->source },
		{ "selection", m->selection },
		{ "live", m->live },
		{ "waiting_for", st->unresolved ? m->unresolved : "" },
		{ "metric", metric_name(reading_metric(m)) },
	};
	json_t *o = json_pack("{s:b, s:b, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "simulated",
			      m->layout.simulated, "alive", collector_alive(m), "age_s", age_s(r),
			      "time_s", r->time_ns / 1e9, "start_s", m->start_realtime_ns / 1e9,
			      "enabled_s", st->enabled_ns / 1e9, "running_s", st->running_ns / 1e9,
			      "period", known(st->period, st->period), "overhead",
			      known_real(overhead, !isnan(overhead)));

	add_counts(o, r);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_object_set_new(o, texts[i].name, collector_json_text(texts[i].text));
	json_object_set_new(o, "work", work_json(st));
	if (st->push.collectors)
		json_object_set_new(o, "push", pushed_json(&st->push));
	json_object_set_new(o, "governor", governor_json(r));
	json_object_set_new(o, "ledger", ledger_json(&r->ledger));
	if (n > 1)
		json_object_set_new(o, "fetch", collector_json(&r[1], 1));
	return o;
}

void collector_print_json(FILE *f, const struct reading *r, unsigned int n)
{
	json_t *o = collector_json(r, n);

	json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fputc('\n', f);
	json_decref(o);
}
