// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_status.h"

#include "collector_budget.h"
#include "collector_machine.h"
#include "base/clock.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Timing costs two readings of the clock per run of the program: a tenth of the time has to do. */
#define STATS_EVERY_S 10
#define STATS_S	      1

#define DELAY_MIN_NS 500000000 /* of work, that is worth a warning */
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

/* All new samples count with the mean of the runs that were timed. */
static void add_bpf_time(struct collector *c, __u64 seen)
{
	struct ibs_meta_status *st = &c->status;
	__u64 ns, runs, new_samples = seen - c->stats_seen;

	c->stats_seen = seen;
	if (sampler_run_time(c->set.sampling.sampler, &ns, &runs) || !runs)
		return;
	st->bpf_runs += new_samples;
	st->bpf_ns += (double)ns / runs * new_samples;
}

static const char *const work_helps[] = {
#define HELP(id, name, help) help,
	IBS_WORK_TABLE(HELP)
#undef HELP
};

/* CPU time by what it was spent on; the first part is all that the others do not account for. */
static void work_status(struct collector *c)
{
	struct ibs_meta_status *st = &c->status;
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

/* Once a minute at most, so that others cannot fill the log with it. */
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

static int update(struct collector *c, double now_s, bool ticks, struct err *err)
{
	struct sampling *sampling = &c->set.sampling;
	struct ibs_meta *meta = pins_meta(c->pins);
	struct ibs_meta_status *st = &c->status;
	struct pmu_state pmu;
	struct ledger ledger;
	char unresolved[sizeof(meta->unresolved)] = "";
	int ret = sampler_ledger(sampling->sampler, &ledger, &pmu, err);

	if (ret)
		return ret;
	if (ticks) {
		machine_watch(c, &pmu);
		warn_of_delays(c, now_s);
	}
	toggle_stats(c, now_s);
	add_bpf_time(c, ledger.seen);
	st->time_ns = clock_ns(CLOCK_BOOTTIME);
	st->pmu_samples = ledger.pmu_samples;
	st->unseen = ledger.unseen;
	st->pmu_exact = ledger.pmu_exact;
	st->counted = pmu.counted;
	st->enabled_ns = pmu.enabled_ns;
	st->running_ns = pmu.running_ns;
	st->throttled = pmu.throttled;
	st->cpus_went = pmu.went;
	st->cpus_came = pmu.came;
	st->cpus = pmu.cpus;
	st->cpu_ns = c->cpu_before_ns + cpu_time_ns();
	st->rss_bytes = rss_bytes();
	st->period = sampler_period(sampling->sampler);
	st->memory_bytes = sampler_memory_used(sampling->sampler)->total;
	budget_status(c, now_s);
	work_status(c);
	st->unresolved = sampling_unresolved(sampling, unresolved, sizeof(unresolved));
	pins_write_begin(&meta->seq);
	meta->status = *st;
	memcpy(meta->unresolved, unresolved, sizeof(unresolved));
	pins_write_end(&meta->seq);
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

void status_begin(struct collector *c)
{
	const struct sampling *sampling = &c->set.sampling;
	struct ibs_meta *meta = pins_meta(c->pins);
	char selection[sizeof(meta->selection)];

	/* sums of earlier collectors */
	c->status = meta->status;
	c->cpu_before_ns = meta->status.cpu_ns - cpu_time_ns();
	c->stats_seen = 0;
	for (int i = 0; i < IBS_WORK_N; i++) {
		c->work_before_ns[i] = meta->status.work_ns[i] - c->work.part[i].ns;
		c->delayed_before_ns[i] =
			meta->status.work_delayed_ns[i] - c->work.part[i].delayed_ns;
	}
	settings_command_line(&c->source, selection, sizeof(selection));
	pins_write_begin(&meta->seq);
	snprintf(meta->version, sizeof(meta->version), "%s", IBSCOPE_VERSION);
	snprintf(meta->event, sizeof(meta->event), "%.255s", sampling->event_text);
	snprintf(meta->source, sizeof(meta->source), "%s", sampling->info.source);
	snprintf(meta->selection, sizeof(meta->selection), "%s", selection);
	/* alive from now on, though the rest may take a second or two */
	meta->status.time_ns = clock_ns(CLOCK_BOOTTIME);
	pins_write_end(&meta->seq);
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
	char *all = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&all, &n);

	if (!f)
		return;
	for (size_t i = 0; i < l->n; i++) {
		fputs(i ? ", " : "", f);
		live_one(f, &l->one[i]);
	}
	if (fclose(f)) {
		free(all);
		return;
	}
	if (n < size)
		strcpy(out, all);
	else
		snprintf(out, size, "%.*s" CUT, (int)(size - sizeof(CUT)), all);
	free(all);
}

void status_live(struct collector *c)
{
	struct ibs_meta *meta = pins_meta(c->pins);
	char text[sizeof(meta->live)] = "";

	live_text(&c->live, text, sizeof(text));
	pins_write_begin(&meta->seq);
	memcpy(meta->live, text, sizeof(text));
	snprintf(meta->control, sizeof(meta->control), "%s", c->control ? c->set.control : "");
	pins_write_end(&meta->seq);
}
