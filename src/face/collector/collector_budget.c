// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"
#include "base/clock.h"
#include "base/num.h"
#include "counts/counts.h"
#include "perf/sample_cost.h"
#include "status/reading.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#define RATE_EVERY_S	 10
#define OVERHEAD_S	 0.9 /* the least time that an overhead is of */
#define ALLOWANCE	 0.8 /* of the CPU time per sample that the kernel allows */
#define SIM_MAX_PERIOD	 (1ULL << 30)
#define RSS_BESIDES_MAPS (64ULL << 20)

/* --- input --- */

static __u64 read_sysctl(const char *name)
{
	char path[96];
	int64_t v;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	return num_read("", path, &v, NULL) || v < 0 ? 0 : v;
}

/* Mean of the last window of timed runs, else of all, else an assumption. */
static double bpf_ns(const struct collector_event *e)
{
	const struct budget *b = &e->budget;

	if (b->window_runs >= GOVERNOR_BPF_RUNS)
		return b->window_ns;
	return status_bpf_ns(&e->status);
}

/* The kernel lowers its sample rate limit for all users if samples take too long. */
static void check_allowance(const struct collector_event *e)
{
	const struct budget *b = &e->budget;
	__u64 percent = read_sysctl("perf_cpu_time_max_percent"), max_rate = e->c->max_rate;
	double allowed, takes = b->nmi_ns + bpf_ns(e);

	/* only for PMU interrupts */
	if (!percent || percent >= 100 || !max_rate || b->nmi_source == IBS_NMI_ASSUMED ||
	    opened(e)->info.simulated)
		return;
	allowed = percent / 100.0 * 1e9 / max_rate;
	if (takes <= ALLOWANCE * allowed)
		return;
	log_warn("a sample takes %.0f ns; above %.0f ns the kernel lowers its limit for "
		 "all users: set kernel.perf_event_max_sample_rate to %.0f, or "
		 "kernel.perf_cpu_time_max_percent to 0",
		 takes, allowed, floor(percent / 100.0 * 1e9 / (2 * takes) / 1000) * 1000);
}

/* --- opening --- */

static void close_governor(struct budget *b)
{
	governor_free(b->governor);
	free(b->seen);
	b->governor = NULL;
	b->seen = NULL;
}

void budget_close(struct collector *c)
{
	for (int i = 0; i < COLLECTOR_EVENTS; i++)
		close_governor(&c->event[i].budget);
}

static __u64 longest_period(const struct collector_event *e)
{
	const struct session_event *s = opened(e);
	uint64_t min, max;

	if (s->opts.attr.freq)
		return 0;
	if (s->info.simulated)
		return s->info.period > SIM_MAX_PERIOD ? s->info.period : SIM_MAX_PERIOD;
	event_period_bounds(s->spec->pmu, session_cpu(e->c->session), &min, &max);
	return max;
}

static int open_governor(struct collector_event *e, struct err *err)
{
	const struct session_event *of = opened(e);
	struct budget *b = &e->budget;
	struct ibs_meta_status *st = &e->status;
	struct governor_config config = {
		.budget = e->c->set.max_overhead / e->c->n_events,
		.floor = of->info.period,
		.max = longest_period(e),
		.bpf_max_ns = e->c->set.max_bpf_ns,
		.rss_max = e == e->c->event ? e->c->rss_max : 0,
		.n_cpus = sampler_counts(of->sampler)->n_cpus,
	};
	struct governor *governor;
	__u64 *seen;

	/* an earlier collector, or this one before a reload, needed a longer period */
	if (st->period_asked == config.floor) {
		config.start = b->governor ? governor_period(b->governor) : st->period;
		config.start_reason =
			b->governor ? governor_longer(b->governor) : st->governor_reason;
	}
	governor = governor_new(&config);
	seen = xcalloc(config.n_cpus, sizeof(*seen));
	if (!governor || !seen) {
		governor_free(governor);
		free(seen);
		return err_set(err, -ENOMEM, "out of memory");
	}
	close_governor(b);
	b->governor = governor;
	b->seen = seen;
	b->windows = b->window_runs = 0;
	b->timing = false;
	b->unseen = st->unseen;
	b->unseen_ops_s = 0;
	if (governor_period(b->governor) != sampler_period(of->sampler)) {
		int ret = sampler_set_period(of->sampler, governor_period(b->governor), err);

		if (ret)
			return ret;
	}
	b->cost_ns = 0;
	b->retry_s = 0;
	b->state = config.budget ? GOVERNOR_STATE_AT_RATE : GOVERNOR_STATE_OFF;
	return 0;
}

/* The cost of a sample without the program: given, measured or assumed. */

/*
 * Used if the cost cannot be measured; the same for all processors: some 1,600 instructions of
 * interrupt and driver, including a dozen MSR accesses, take 1 to 1.5 us at 3 to 4 GHz; rounded up.
 */
#define NMI_ASSUMED_NS 2000

#define CALIBRATE_S 0.4

/* Prefer the current CPU. */
static unsigned int choose_cpu(const struct session_event *s)
{
	int here = sched_getcpu();

	for (size_t i = 0; i < s->opts.n_cpus; i++)
		if ((int)s->opts.cpus[i] == here)
			return here;
	return s->opts.cpus[0];
}

static void measure(struct collector_event *e)
{
	struct budget *b = &e->budget;
	unsigned int cpu = choose_cpu(opened(e));
	struct sample_cost cost;
	struct err why = { "" };

	if (sample_cost_floor(&opened(e)->opts.attr, cpu, CALIBRATE_S, &cost, &why)) {
		b->measured_ns = -1;
		log_info("the cost of a sample without BPF cannot be measured (%s); assuming %d ns",
			 why.text, NMI_ASSUMED_NS);
		return;
	}
	b->measured_ns = cost.ns + cost.spread_ns; /* the upper end, to be safe */
	log_info("measured %.0f ns (+-%.0f) per sample of %s without BPF, on CPU %u", cost.ns,
		 cost.spread_ns, opened(e)->spec->pmu, cpu);
}

static bool must_measure(const struct collector_event *e)
{
	return !e->c->set.nmi_ns && !e->budget.measured_ns &&
	       e->status.nmi_source != IBS_NMI_MEASURED;
}

/* Nothing else may sample while calibrate_all() measures. */
static bool must_calibrate(struct collector *c)
{
	bool must = false;

	for_each_event (e, c)
		must |= must_measure(e);
	return must;
}

static void calibrate(struct collector_event *e)
{
	struct budget *b = &e->budget;

	b->nmi_ns = e->c->set.nmi_ns;
	b->nmi_source = IBS_NMI_GIVEN;
	if (e->c->set.nmi_ns)
		return;
	if (must_measure(e))
		measure(e);
	else if (!b->measured_ns) /* an earlier collector has measured it */
		b->measured_ns = e->status.nmi_ns;
	b->nmi_ns = b->measured_ns > 0 ? b->measured_ns : NMI_ASSUMED_NS;
	b->nmi_source = b->measured_ns > 0 ? IBS_NMI_MEASURED : IBS_NMI_ASSUMED;
}

/* Set budget.nmi_ns of all events, between session_open() and sampler_start(). Measures once. */
static void calibrate_all(struct collector *c)
{
	for_each_event (e, c)
		calibrate(e);
}

/* Mapped counters count as resident, and so do rings of a flight recorder that no --max-memory limits. */
static __u64 default_rss(struct collector *c)
{
	__u64 maps = 0;

	for_each_event (e, c) {
		const struct session_event *s = opened(e);
		const __u64 used = sampler_memory_used(s->sampler)->total,
			    most = s->opts.max_memory_bytes ?: SAMPLER_MAX_MEMORY;

		maps += used > most ? used : most;
	}
	return maps + RSS_BESIDES_MAPS;
}

int budget_open(struct collector *c, struct err *err)
{
	const struct session_event *first = opened(c->event);
	int ret = 0;

	c->rss_max = c->set.max_rss_bytes ?: default_rss(c);
	c->max_rate = read_sysctl("perf_event_max_sample_rate");
	c->cost_before_ns = c->event[0].status.overhead_ns;
	c->overhead_cost_ns = 0;
	c->overhead_at_s = c->reported_s = now_s();
	c->next_rate_s = c->reported_s + RATE_EVERY_S;
	for_each_event (e, c)
		ret = ret ?: open_governor(e, err);
	if (ret)
		return ret;
	calibrate_all(c);
	for_each_event (e, c)
		check_allowance(e);
	work_limit_set_budget(&c->work, c->set.max_overhead, sampler_n_cpus(first->sampler));
	if (first->opts.attr.freq)
		log_info("no budget: with -F the kernel chooses the period");
	return budget_step(c, err); /* the first step only records the counters */
}

int budget_reopen(struct collector *c, bool *paused, struct err *err)
{
	int ret;

	*paused = must_calibrate(c);
	if (*paused)
		session_stop(c->session);
	ret = budget_open(c, err);
	for_each_event (e, c)
		ret = ret ?: sampler_start(opened(e)->sampler, err);
	return ret;
}

static void event_timed(struct collector_event *e, bool on)
{
	struct budget *b = &e->budget;
	__u64 ns, runs;

	if (sampler_run_time(opened(e)->sampler, &ns, &runs))
		return;
	if (!on && b->timing && ns >= b->timed_ns && runs > b->timed_runs) {
		b->windows++;
		b->window_runs = runs - b->timed_runs;
		b->window_ns = (double)(ns - b->timed_ns) / b->window_runs;
	}
	b->timing = on;
	b->timed_ns = ns;
	b->timed_runs = runs;
}

void budget_timed(struct collector *c, bool on)
{
	for_each_event (e, c)
		event_timed(e, on);
}

/* --- steps --- */

static void log_decision(struct collector_event *e, const struct governor_decision *d, __u64 old)
{
	const char *why = governor_reason_help(d->why),
		   *of = e->c->n_events > 1 ? opened(e)->spec->pmu : "";
	const char *sep = *of ? ": " : "";
	struct budget *b = &e->budget;
	double percent = 100 * d->overhead;

	if (d->stop && d->why == GOVERNOR_REASON_BPF_SLOW)
		log_warn("%s%ssampling stopped: the BPF program takes %.0f ns on average, far more "
			 "than %.0f (--max-bpf-time); next try in %.0f s",
			 of, sep, b->window_ns, e->c->set.max_bpf_ns, d->retry_s);
	else if (d->stop)
		log_warn("%s%ssampling stopped: %s (overhead %.3f%%); next try in %.0f s", of, sep,
			 why, percent, d->retry_s);
	else if (d->start)
		log_info("%s%ssampling again", of, sep);
	else if (d->state != b->state)
		log_info("%s%speriod %llu instead of %llu: %s (overhead was %.3f%%)", of, sep,
			 d->period, old, why, percent);
	else
		log_debug("%s%speriod %llu instead of %llu: %s (overhead was %.3f%%)", of, sep,
			  d->period, old, why, percent);
}

static int act(struct collector_event *e, const struct governor_decision *d, struct err *err)
{
	struct sampler *sampler = opened(e)->sampler;
	struct budget *b = &e->budget;
	__u64 old = sampler_period(sampler);
	int ret = 0;

	b->cost_ns = d->cost_ns;
	if (d->changed) {
		ret = sampler_set_period(sampler, d->period, err);
		e->status.period_changes += !ret;
	}
	if (d->stop)
		sampler_stop(sampler);
	if (d->start)
		ret = ret ?: sampler_start(sampler, err);
	if (d->trim)
		malloc_trim(0);
	if (d->why) {
		e->status.governor_changes[d->why]++;
		log_decision(e, d, old);
	}
	b->retry_s = d->stop ? now_s() + d->retry_s : d->start ? 0 : b->retry_s;
	b->state = d->state;
	b->reason = d->reason;
	if (!ret && d->end)
		ret = err_set(
			err, -ENOMEM,
			"resident memory is %.1f MiB, above --max-rss (%.0f MiB): exiting; the "
			"next collector resumes the counters",
			e->c->event[0].status.rss_bytes / 1048576.0, e->c->rss_max / 1048576.0);
	return ret;
}

static __u64 work_of_others(const struct collector *c)
{
	__u64 ns = 0;

	for (int i = 0; i < IBS_WORK_N; i++)
		if (i != IBS_WORK_COUNTERS)
			ns += c->work.part[i].ns;
	return ns;
}

/* Each event gets half of the budget, or all of it while the other one is stopped. */
static double budget_of(const struct collector_event *e)
{
	const struct collector *c = e->c;
	unsigned int running = 1;

	for (unsigned int i = 0; i < c->n_events; i++)
		running += &c->event[i] != e && c->event[i].budget.state != GOVERNOR_STATE_STOPPED;
	return c->set.max_overhead / running;
}

/* @cpu_ns, @other_ns: the collector's CPU time, divided among the events */
static void step(struct collector_event *e, __u64 cpu_ns, __u64 other_ns,
		 struct governor_decision *d)
{
	struct budget *b = &e->budget;
	struct sampler *sampler = opened(e)->sampler;
	const struct counts *counts = sampler_counts(sampler);
	struct governor_input in = {
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.seen = b->seen,
		.throttled = sampler_throttled(sampler),
		.cpu_ns = (cpu_ns - other_ns) / e->c->n_events,
		.other_ns = other_ns / e->c->n_events,
		.rss_bytes = e->c->event[0].status.rss_bytes,
		.max_rate = e->c->max_rate,
		.cpus = sampler_n_cpus(sampler),
		.nmi_ns = b->nmi_ns,
		.bpf_ns = bpf_ns(e),
		.windows = b->windows,
		.window_runs = b->window_runs,
		.window_ns = b->window_ns,
		.unseen_ops_s = b->unseen_ops_s,
	};

	for (unsigned int cpu = 0; cpu < counts->n_cpus; cpu++)
		b->seen[cpu] = __atomic_load_n(&counts->state->cpu[cpu].seen, __ATOMIC_RELAXED);
	governor_set_budget(b->governor, budget_of(e));
	governor_step(b->governor, &in, d);
}

/* From a step of the governor to one about a second later: statuses may come between two of them. */
static void note_overhead(struct collector *c)
{
	struct ibs_meta_status *st = &c->event[0].status;
	const double now = now_s(), passed = now - c->overhead_at_s;
	__u64 cost_ns = 0;

	if (passed < OVERHEAD_S)
		return;
	for_each_event (e, c)
		cost_ns += e->budget.cost_ns;
	st->overhead_ppb = (cost_ns - c->overhead_cost_ns) / passed / (st->cpus ? st->cpus : 1);
	c->overhead_cost_ns = cost_ns;
	c->overhead_at_s = now;
}

int budget_step(struct collector *c, struct err *err)
{
	__u64 cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), other_ns = work_of_others(c);
	double next_s = INFINITY;
	int ret = 0;

	for_each_event (e, c) {
		struct governor_decision d;

		step(e, cpu_ns, other_ns, &d);
		ret = ret ?: act(e, &d, err);
		next_s = fmin(next_s, d.next_s);
	}
	note_overhead(c);
	c->next_step_s = now_s() + next_s;
	if (fabs(c->next_step_s - c->next_tick_s) < next_s / 2)
		c->next_step_s = c->next_tick_s; /* one wakeup serves both */
	return ret;
}

static void watch_kernel(struct collector *c, double now_s)
{
	__u64 rate;

	if (now_s < c->next_rate_s)
		return;
	c->next_rate_s = now_s + RATE_EVERY_S;
	rate = read_sysctl("perf_event_max_sample_rate");
	if (rate < c->max_rate && rate) {
		c->event[0].status.kernel_lowered++;
		log_warn("the kernel lowered kernel.perf_event_max_sample_rate to %llu from %llu, "
			 "because interrupts take too long",
			 rate, c->max_rate);
	}
	c->max_rate = rate;
}

static void event_status(struct collector_event *e, double now_s, double passed)
{
	struct ibs_meta_status *st = &e->status;
	struct budget *b = &e->budget;
	double left = b->retry_s - now_s;

	if (passed > 0) {
		/* samples that the driver drops have cost their interrupt */
		b->unseen_ops_s = st->pmu_exact && st->unseen > b->unseen
					  ? (double)(st->unseen - b->unseen) * st->period / passed
					  : 0;
		b->unseen = st->unseen;
	}
	st->governor_state = b->state;
	st->governor_reason = b->reason;
	st->governor_retry_ns = b->retry_s && left > 0 ? clock_ns(CLOCK_BOOTTIME) + left * 1e9 : 0;
	st->period_asked = opened(e)->info.period;
	st->nmi_ns = b->nmi_ns;
	st->nmi_source = b->nmi_source;
}

void budget_status(struct collector *c, double now_s)
{
	struct ibs_meta_status *st = &c->event[0].status;
	double passed = now_s - c->reported_s;
	__u64 cost_ns = 0;

	if (!c->event[0].budget.governor)
		return;
	watch_kernel(c, now_s);
	for_each_event (e, c) {
		event_status(e, now_s, passed > 0.1 ? passed : 0);
		cost_ns += e->budget.cost_ns;
	}
	if (passed > 0.1)
		c->reported_s = now_s;
	st->budget_ppb = c->set.max_overhead * 1e9;
	st->overhead_ns = c->cost_before_ns + cost_ns;
	st->kernel_rate = c->max_rate;
	st->rss_max = c->rss_max;
}
