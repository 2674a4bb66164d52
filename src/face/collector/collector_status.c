// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"
#include "base/clock.h"
#include "cgroup/container.h"
#include "counts/counts.h"
#include "perf/perf.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Timing costs two clock reads per run of the program, so do it a tenth of the time. */
#define STATS_EVERY_S 10
#define STATS_S	      1

#define DELAY_MIN_NS 500000000 /* delay of work that is worth a warning */
#define WARN_EVERY_S 60

#define LIVE_VALUE_MAX 300 /* characters of the value of one option */
#define CUT	       " .."

static __u64 cpu_time_ns(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000ULL +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000ULL;
}

static __u64 rss_bytes(void)
{
	unsigned long long size, rss = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &size, &rss) != 2)
		rss = 0;
	fclose(f);
	return rss * sysconf(_SC_PAGESIZE);
}

static void toggle_stats(struct collector *c, double now_s)
{
	if (now_s < c->next_stats_s)
		return;
	if (c->stats_fd >= 0) {
		budget_timed(c, false);
		close(c->stats_fd);
		c->stats_fd = -1;
		c->next_stats_s = now_s + STATS_EVERY_S - STATS_S;
		return;
	}
	c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME); /* needs CAP_SYS_ADMIN */
	if (c->stats_fd >= 0)
		budget_timed(c, true);
	c->next_stats_s = now_s + STATS_S;
}

/* Charge all new samples with the mean of the timed runs. */
static void add_bpf_time(struct collector_event *e, __u64 seen)
{
	struct ibs_meta_status *st = &e->status;
	__u64 ns, runs, new_samples = seen - e->stats_seen;

	e->stats_seen = seen;
	if (sampler_run_time(opened(e)->sampler, &ns, &runs) || !runs)
		return;
	st->bpf_runs += new_samples;
	st->bpf_ns += (double)ns / runs * new_samples;
}

static const char *const work_helps[] = {
#define HELP(id, name, help) help,
	IBS_WORK_TABLE(HELP)
#undef HELP
};

/* CPU time by kind of work; the first kind is what the others do not account for. */
static void work_status(struct collector *c)
{
	struct ibs_meta_status *st = &c->event[0].status;
	__u64 others = 0;

	for (int i = 0; i < IBS_WORK_N; i++) {
		const struct work_part *p = &c->work.part[i];

		if (i == IBS_WORK_COUNTERS)
			continue;
		st->work_ns[i] = c->work_before_ns[i] + p->ns;
		st->work_delayed_ns[i] = c->delayed_before_ns[i] + p->delayed_ns;
		others += st->work_ns[i];
	}
	st->work_ns[IBS_WORK_COUNTERS] = st->cpu_ns > others ? st->cpu_ns - others : 0;
}

/* At most once a minute, so that others cannot flood the log. */
static void warn_of_delays(struct collector *c, double now_s)
{
	for (int i = 0; i < IBS_WORK_N; i++) {
		const struct work_part *p = &c->work.part[i];
		__u64 delayed_ns = p->delayed_ns - c->warned_delayed_ns[i];

		if (delayed_ns < DELAY_MIN_NS || now_s < c->warned_s[i] + WARN_EVERY_S)
			continue;
		log_warn("%s: delayed for %.1f s, as it would take more than %.1f%% of a CPU",
			 work_helps[i], delayed_ns / 1e9, 100 * c->work.rate);
		c->warned_delayed_ns[i] = p->delayed_ns;
		c->warned_s[i] = now_s;
	}
}

/* @to = @a + @b; or with @sign -1 the difference. */
static void add_pushed(struct ibs_push_counts *to, const struct ibs_push_counts *a, int sign,
		       const struct ibs_push_counts *b)
{
	for (int i = 0; i < IBS_PUSH_ROOM; i++) {
		to->profiles[i] = a->profiles[i] + sign * b->profiles[i];
		to->samples[i] = a->samples[i] + sign * b->samples[i];
	}
	to->unnamed_files = a->unnamed_files + sign * b->unnamed_files;
	to->unnamed_samples = a->unnamed_samples + sign * b->unnamed_samples;
	to->retries = a->retries + sign * b->retries;
	to->collectors = a->collectors + sign * b->collectors;
}

/* Sum over all CPUs between two ticks. Another user of the PMU occupies it for milliseconds. */
#define SHARED_MIN_NS 1000000

void machine_watch_start(struct collector *c)
{
	struct clock_reading now;

	/* not again on a reload, so as to detect changes during it */
	if (!c->clock_watched) {
		clock_read(&now);
		clock_watch_start(&c->clock, &now);
		c->clock_watched = true;
	}
	for_each_event (e, c)
		e->off_pmu_ns = e->status.enabled_ns - e->status.running_ns;
}

static void watch_clocks(struct collector *c)
{
	struct err err;
	struct clock_reading now;
	struct clock_change change;

	clock_read(&now);
	if (!clock_watch_check(&c->clock, &now, &change))
		return;
	if (change.step_ns) {
		c->event[0].status.clock_steps++;
		log_info("the clock was set by %+.3f s; counters are not affected",
			 change.step_ns / 1e9);
	}
	if (!change.slept_ns)
		return;
	c->event[0].status.suspends++;
	log_info("the machine was suspended for %.3f s; restarting the events",
		 change.slept_ns / 1e9);
	for_each_event (e, c)
		if (sampler_restart(opened(e)->sampler, &err))
			log_warn("%s; trying again in a second", err.text);
}

/* Call once a second: a shared PMU shows in the time off the PMU since the last call. */
static void watch_pmu(struct collector_event *e, const struct pmu_state *pmu)
{
	struct err err;
	__u64 off = pmu->enabled_ns - pmu->running_ns;
	bool shared = off > e->off_pmu_ns + SHARED_MIN_NS;
	char users[256];

	if (shared && !e->shared) {
		e->status.pmu_shared++;
		log_warn("another user of %s shares the PMU (%s); sampling pauses during its turns",
			 opened(e)->spec->pmu,
			 perf_users("", users, sizeof(users)) ? users : "perf, another ibscope");
	} else if (!shared && e->shared) {
		log_info("the PMU is no longer shared");
		if (sampler_pmu_alone(opened(e)->sampler, &err))
			log_warn("%s", err.text);
	}
	e->shared = shared;
	e->off_pmu_ns = off;
}

/* Update the status of this event alone. Return: 0 or a negative errno with @err. */
static int update_event(struct collector_event *e, bool ticks, struct err *err)
{
	struct ibs_meta_status *st = &e->status;
	struct pmu_state pmu;
	struct ledger ledger;
	int ret = sampler_ledger(opened(e)->sampler, &ledger, &pmu, err);

	if (ret)
		return ret;
	if (ticks)
		watch_pmu(e, &pmu);
	add_bpf_time(e, ledger.seen);
	st->pmu_samples = ledger.pmu_samples;
	st->unseen = ledger.unseen;
	st->pmu_exact = ledger.pmu_exact;
	st->dropped = ledger.dropped;
	st->dropped_known = ledger.dropped_known;
	st->undelivered = ledger.undelivered;
	st->undelivered_known = ledger.undelivered_known;
	st->counted = pmu.counted;
	st->enabled_ns = pmu.enabled_ns;
	st->running_ns = pmu.running_ns;
	st->throttled = pmu.throttled;
	st->cpus_went = pmu.went;
	st->cpus_came = pmu.came;
	st->cpus = pmu.cpus;
	st->period = sampler_period(opened(e)->sampler);
	st->memory_bytes = sampler_memory_used(opened(e)->sampler)->total;
	return 0;
}

/* The status of an event, merged with the common part, which is in the first one. */
static struct ibs_meta_status merged_status(const struct collector_event *e)
{
	struct ibs_meta_status own = e->status, st = e->c->event[0].status;

#define OWN(member) st.member = own.member
	OWN(pmu_samples), OWN(unseen), OWN(pmu_exact);
	OWN(dropped), OWN(dropped_known), OWN(undelivered), OWN(undelivered_known);
	OWN(counted), OWN(enabled_ns), OWN(running_ns), OWN(throttled), OWN(pmu_shared);
	OWN(cpus_went), OWN(cpus_came), OWN(cpus);
	OWN(bpf_ns), OWN(bpf_runs), OWN(nmi_ns), OWN(nmi_source);
	OWN(governor_state), OWN(governor_reason), OWN(governor_retry_ns), OWN(period_changes);
	memcpy(st.governor_changes, own.governor_changes, sizeof(st.governor_changes));
	OWN(period), OWN(period_asked), OWN(memory_bytes), OWN(folded), OWN(displaced);
#undef OWN
	return st;
}

static int update(struct collector *c, double now_s, bool ticks, struct err *err)
{
	struct ibs_meta_status *st = &c->event[0].status;
	int ret = 0;

	if (ticks) {
		watch_clocks(c);
		warn_of_delays(c, now_s);
	}
	toggle_stats(c, now_s);
	for_each_event (e, c)
		ret = ret ?: update_event(e, ticks, err);
	if (ret)
		return ret;
	st->time_ns = clock_ns(CLOCK_BOOTTIME);
	st->cpu_ns = c->cpu_before_ns + cpu_time_ns();
	st->rss_bytes = rss_bytes();
	budget_status(c, now_s);
	work_status(c);
	add_pushed(&st->push, &c->pushed_before, 1, &c->pushed);
	for_each_event (e, c) {
		struct ibs_meta *meta = pins_meta(e->pins);
		char unresolved[sizeof(meta->unresolved)] = "";

		e->status = merged_status(e);
		e->status.unresolved =
			session_unresolved(c->session, unresolved, sizeof(unresolved));
		pins_write_begin(&meta->seq);
		meta->status = e->status;
		memcpy(meta->unresolved, unresolved, sizeof(unresolved));
		meta->pins_repaired = c->pins_repaired;
		meta->pins_missing = c->pins_missing;
		pins_write_end(&meta->seq);
	}
	return 0;
}

int status_update(struct collector *c, double now_s, struct err *err)
{
	return update(c, now_s, false, err);
}

int status_tick(struct collector *c, double now_s, struct err *err)
{
	return update(c, now_s, true, err);
}

/* Continue the sums of earlier collectors from the status of the first event. */
static void resume_sums(struct collector *c)
{
	const struct ibs_meta_status *st = &c->event[0].status;

	c->cpu_before_ns = st->cpu_ns - cpu_time_ns();
	add_pushed(&c->pushed_before, &st->push, -1, &c->pushed);
	for (int i = 0; i < IBS_WORK_N; i++) {
		c->work_before_ns[i] = st->work_ns[i] - c->work.part[i].ns;
		c->delayed_before_ns[i] = st->work_delayed_ns[i] - c->work.part[i].delayed_ns;
	}
}

void status_texts(struct collector_event *e)
{
	const struct session_event *of = opened(e);
	struct ibs_meta *meta = pins_meta(e->pins);
	char selection[sizeof(meta->selection)];

	settings_command_line(&e->c->source, selection, sizeof(selection));
	pins_write_begin(&meta->seq);
	snprintf(meta->version, sizeof(meta->version), "%s", IBSCOPE_VERSION);
	snprintf(meta->event, sizeof(meta->event), "%.255s", of->text);
	snprintf(meta->source, sizeof(meta->source), "%s", of->info.source);
	snprintf(meta->selection, sizeof(meta->selection), "%s", selection);
	meta->by_path = !!(of->labels & 1U << LABEL_CGROUP);
	/* report as alive now, although the rest may take a second or two */
	meta->status.time_ns = clock_ns(CLOCK_BOOTTIME);
	pins_write_end(&meta->seq);
}

void status_begin(struct collector_event *e)
{
	e->status = pins_meta(e->pins)->status;
	e->stats_seen = 0;
	if (e == e->c->event)
		resume_sums(e->c);
	status_texts(e);
}

static void live_one(FILE *f, const struct live_option *o)
{
	const char *value = o->value ?: "";
	struct tm tm;
	char date[32];

	strftime(date, sizeof(date), "%F %T UTC", gmtime_r(&o->when, &tm));
	fprintf(f, "%s%s%.*s%s (uid %u, %s)", o->name, o->value ? "=" : "", LIVE_VALUE_MAX, value,
		strlen(value) > LIVE_VALUE_MAX ? CUT : "", o->uid, date);
}

/* Text that does not fit is cut and marked. */
static void live_text(const struct live_options *l, char *out, size_t size)
{
	char *all;
	size_t n;
	FILE *f = xmemopen(&all, &n);

	for (size_t i = 0; i < l->n; i++) {
		fputs(i ? ", " : "", f);
		live_one(f, &l->one[i]);
	}
	xmemclose(f);
	if (n < size)
		strcpy(out, all);
	else
		snprintf(out, size, "%.*s" CUT, (int)(size - sizeof(CUT)), all);
	free(all);
}

void status_live(struct collector *c)
{
	for_each_event (e, c) {
		struct ibs_meta *meta = pins_meta(e->pins);
		char text[sizeof(meta->live)] = "";

		live_text(&c->live, text, sizeof(text));
		pins_write_begin(&meta->seq);
		memcpy(meta->live, text, sizeof(text));
		snprintf(meta->control, sizeof(meta->control), "%s",
			 c->control ? c->set.control : "");
		pins_write_end(&meta->seq);
	}
}

/* Containers without a known name are shown by id. Return: false if the cgroup is unknown. */
static bool find_texts(const struct session *s, __u64 id, struct ibs_slot_name *out)
{
	const char *path = cgroup_tree_path(session_tree(s), id);
	const struct container_name *name;
	struct container_owner owner;
	struct container container;

	memset(out, 0, sizeof(*out));
	if (!path)
		return false;
	out->cgroup_id = id;
	snprintf(out->cgroup, sizeof(out->cgroup), "%s", path);
	cgroup_tree_owner(session_tree(s), id, &owner);
	if (!container_of_path(path, &owner, &container))
		return true;
	name = container_names_find(session_names(s), &container);
	snprintf(out->name_space, sizeof(out->name_space), "%s", name->ns);
	snprintf(out->pod, sizeof(out->pod), "%s", *name->pod ? name->pod : container.pod_uid);
	snprintf(out->container, sizeof(out->container), "%s",
		 container_names_label(session_names(s), &container));
	snprintf(out->runtime, sizeof(out->runtime), "%s", container.runtime);
	return true;
}

static bool same_names(const struct ibs_slot_name *a, const struct ibs_slot_name *b)
{
	return !strcmp(a->name_space, b->name_space) && !strcmp(a->pod, b->pod) &&
	       !strcmp(a->container, b->container);
}

static bool same_texts(const struct ibs_slot_name *a, const struct ibs_slot_name *b)
{
	return a->cgroup_id == b->cgroup_id && !strcmp(a->cgroup, b->cgroup) && same_names(a, b) &&
	       !strcmp(a->runtime, b->runtime);
}

/* The names in a slot, if they belong to its present group; else NULL. */
static struct ibs_slot_name *slot_name(const struct collector_event *e, __u32 slot)
{
	const struct ibs_slot_owner *owner = &sampler_counts(opened(e)->sampler)->owners[slot];
	struct ibs_slot_name *n = &pins_names(e->pins)[slot];

	return __atomic_load_n(&owner->used, __ATOMIC_ACQUIRE) == IBS_SLOT_USED &&
			       n->cgroup_id == owner->key.cgroup_id
		       ? n
		       : NULL;
}

/*
 * Groups with equal names are one series, unless their runtimes differ: then the runtime is a
 * label. A group that has it keeps it and passes it on to its successor, for a stable series.
 */
static void compare_runtimes(struct collector_event *e, struct ibs_slot_name *now)
{
	const __u32 max_slots = sampler_counts(opened(e)->sampler)->max_slots;

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < max_slots && *now->container; slot++) {
		struct ibs_slot_name *n = slot_name(e, slot);
		bool differ;

		if (!n || n->cgroup_id == now->cgroup_id || !same_names(n, now))
			continue;
		differ = *n->runtime && *now->runtime && strcmp(n->runtime, now->runtime);
		now->show_runtime |= differ || n->show_runtime;
		if (!differ || n->show_runtime)
			continue;
		pins_write_begin(&n->seq);
		n->show_runtime = 1;
		pins_write_end(&n->seq);
	}
}

static void name_slot(struct collector_event *e, __u64 id, struct ibs_slot_name *n)
{
	struct ibs_slot_name now;

	if (!find_texts(e->c->session, id, &now) || same_texts(n, &now))
		return;
	compare_runtimes(e, &now);
	now.seq = n->seq;
	pins_write_begin(&n->seq);
	memcpy((char *)n + sizeof(n->seq), (char *)&now + sizeof(n->seq),
	       sizeof(*n) - sizeof(n->seq));
	pins_write_end(&n->seq);
}

void collector_names_update(struct collector_event *e)
{
	const struct counts *counts = sampler_counts(opened(e)->sampler);
	struct ibs_slot_name *names = pins_names(e->pins);

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < counts->max_slots; slot++) {
		__u64 id = counts->owners[slot].key.cgroup_id;

		/* even if named: a runtime may write its files late, or rename */
		if (__atomic_load_n(&counts->owners[slot].used, __ATOMIC_ACQUIRE) && id)
			name_slot(e, id, &names[slot]);
	}
}

void collector_put_slowest(struct collector_event *e, const struct flight_slowest *slowest)
{
	static const struct ibs_exemplar none[IBS_EXEMPLARS];
	const struct counts *counts = sampler_counts(opened(e)->sampler);
	struct ibs_slot_name *names = pins_names(e->pins);

	for (__u32 slot = 0; slot < counts->max_slots; slot++) {
		const struct ibs_exemplar *of = NULL;
		struct ibs_slot_name *n = &names[slot];

		if (slot != IBS_SLOT_OTHER && slot_name(e, slot))
			of = flight_slowest_of(slowest, &counts->owners[slot].key);
		of = of ?: none;
		if (!memcmp(n->slowest, of, sizeof(n->slowest)))
			continue;
		pins_write_begin(&n->seq);
		memcpy(n->slowest, of, sizeof(n->slowest));
		pins_write_end(&n->seq);
	}
}

static bool same_labels(const struct collector_event *e, const struct ibs_slot_name *a,
			const struct ibs_slot_name *b)
{
	const bool by_path = pins_meta(e->pins)->by_path;

	if (ibs_slot_name_has_path(a, by_path) && strcmp(a->cgroup, b->cgroup))
		return false;
	return same_names(a, b) && a->show_runtime == b->show_runtime &&
	       (!a->show_runtime || !strcmp(a->runtime, b->runtime));
}

__u32 collector_heir(void *arg, __u32 slot)
{
	const struct collector_event *e = arg;
	const struct counts *counts = sampler_counts(opened(e)->sampler);
	const struct ibs_slot_name *names = pins_names(e->pins);
	struct ibs_group_key key = counts->owners[slot].key;

	if (!key.cgroup_id || names[slot].cgroup_id != key.cgroup_id)
		return 0;
	for (__u32 heir = IBS_SLOT_OTHER + 1; heir < counts->max_slots; heir++) {
		const struct ibs_slot_name *n = slot_name(e, heir);

		if (!n || heir == slot || !same_labels(e, &names[slot], n))
			continue;
		key.cgroup_id = n->cgroup_id;
		if (!memcmp(&key, &counts->owners[heir].key, sizeof(key)))
			return heir;
	}
	return 0;
}
