// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a collector tells its readers of itself. */
#include "serve.h"
#include "clock.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/*
 * Taking the time costs the program two readings of the clock a run, so it is done for a part of the
 * time only, and its mean is taken for the rest.
 */
#define STATS_EVERY_S 10
#define STATS_S	      1

#define LIVE_VALUE_MAX 300 /* characters of what one option is set to */
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

static void toggle_stats(struct serve *s, double now_s)
{
	if (now_s < s->next_stats_s)
		return;
	if (s->stats_fd >= 0) {
		serve_governor_timed(s, false);
		close(s->stats_fd);
		s->stats_fd = -1;
		s->next_stats_s = now_s + STATS_EVERY_S - STATS_S;
		return;
	}
	s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME); /* without CAP_SYS_ADMIN never */
	if (s->stats_fd >= 0)
		serve_governor_timed(s, true);
	s->next_stats_s = now_s + STATS_S;
}

/* Samples since the last look, at the mean of the runs that were timed. */
static void add_bpf_time(struct serve *s, __u64 seen)
{
	struct ibs_meta_status *st = &s->status;
	__u64 ns, runs, new_samples = seen - s->stats_seen;

	s->stats_seen = seen;
	if (sampler_run_time(s->opts.sampling.sampler, &ns, &runs) || !runs)
		return;
	st->bpf_runs += new_samples;
	st->bpf_ns += (double)ns / runs * new_samples;
}

static int update(struct serve *s, double now_s, bool ticks, struct err *err)
{
	struct sampling *sampling = &s->opts.sampling;
	struct ibs_meta *meta = pins_meta(s->pins);
	struct ibs_meta_status *st = &s->status;
	struct pmu_state pmu;
	struct ledger ledger;
	int ret = sampler_ledger(sampling->sampler, &ledger, &pmu, err);

	if (ret)
		return ret;
	if (ticks)
		serve_machine_look(s, &pmu);
	toggle_stats(s, now_s);
	add_bpf_time(s, ledger.seen);
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
	st->cpu_ns = s->cpu_before_ns + cpu_time_ns();
	st->rss_bytes = rss_bytes();
	st->period = sampler_period(sampling->sampler);
	st->memory_bytes = sampler_memory_used(sampling->sampler)->total;
	serve_governor_status(s, now_s);
	pins_write_begin(&meta->seq);
	meta->status = *st;
	pins_write_end(&meta->seq);
	return 0;
}

int serve_status_update(struct serve *s, double now_s, struct err *err)
{
	return update(s, now_s, false, err);
}

int serve_status_tick(struct serve *s, double now_s, struct err *err)
{
	return update(s, now_s, true, err);
}

void serve_status_texts(struct serve *s, const char *selection)
{
	const struct sampling *sampling = &s->opts.sampling;
	struct ibs_meta *meta = pins_meta(s->pins);

	/* what an earlier collector had counted goes on */
	s->status = meta->status;
	s->cpu_before_ns = meta->status.cpu_ns - cpu_time_ns();
	s->stats_seen = 0;
	pins_write_begin(&meta->seq);
	snprintf(meta->version, sizeof(meta->version), "%s", IBSCOPE_VERSION);
	snprintf(meta->event, sizeof(meta->event), "%.255s", sampling->event_text);
	snprintf(meta->source, sizeof(meta->source), "%s", sampling->info.source);
	snprintf(meta->selection, sizeof(meta->selection), "%s", selection);
	/* it runs from now on, and what else it tells may take a second or two to be known */
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

/* @size bytes with the NUL; what does not fit is cut, and marked. */
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

void serve_status_live(struct serve *s)
{
	struct ibs_meta *meta = pins_meta(s->pins);
	char text[sizeof(meta->live)] = "";

	live_text(&s->live, text, sizeof(text));
	pins_write_begin(&meta->seq);
	memcpy(meta->live, text, sizeof(text));
	snprintf(meta->control, sizeof(meta->control), "%s", s->control ? s->opts.control : "");
	pins_write_end(&meta->seq);
}
