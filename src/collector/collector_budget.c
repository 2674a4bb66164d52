// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_private.h"
#include "base/clock.h"
#include "base/num.h"
#include "counts/counts.h"
#include "perf/sample_cost.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>

#define RATE_EVERY_S	 10
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
	const struct ibs_meta_status *st = &e->status;

	if (e->window_runs >= GOVERNOR_BPF_RUNS)
		return e->window_ns;
	return st->bpf_runs ? (double)st->bpf_ns / st->bpf_runs : GOVERNOR_BPF_ASSUMED_NS;
}

/* The kernel lowers its sample rate limit for everybody if samples take too long. */
static void check_allowance(const struct collector_event *e)
{
	const struct budget *b = &e->c->budget;
	__u64 percent = read_sysctl("perf_cpu_time_max_percent");
	double allowed, takes = e->nmi_ns + bpf_ns(e);

	/* it does so for interrupts of PMUs only */
	if (!percent || percent >= 100 || !b->max_rate || e->nmi_source == IBS_NMI_ASSUMED ||
	    e->sampling->info.simulated)
		return;
	allowed = percent / 100.0 * 1e9 / b->max_rate;
	if (takes <= ALLOWANCE * allowed)
		return;
	log_warn("a sample takes %.0f ns; above %.0f ns the kernel lowers its limit for "
		 "everybody: set kernel.perf_event_max_sample_rate to %.0f, or "
		 "kernel.perf_cpu_time_max_percent to 0",
		 takes, allowed, floor(percent / 100.0 * 1e9 / (2 * takes) / 1000) * 1000);
}

/* --- opening --- */

void budget_close(struct collector *c)
{
	governor_free(c->budget.governor);
	free(c->budget.seen);
	c->budget.governor = NULL;
	c->budget.seen = NULL;
}

static __u64 longest_period(const struct sampling *s)
{
	uint64_t min, max;

	if (s->opts.attr.freq)
		return 0;
	if (s->info.simulated)
		return s->info.period > SIM_MAX_PERIOD ? s->info.period : SIM_MAX_PERIOD;
	event_period_bounds(s->event.pmu, &s->cpu, &min, &max);
	return max;
}

/* The period of an event when that of the first one is @first: all are raised in proportion, as far as they can be. */
static __u64 period_of(const struct collector_event *e, __u64 first)
{
	const __u64 asked = e->sampling->info.period, floor = e->c->event[0].sampling->info.period;
	const __u64 max = longest_period(e->sampling);
	const double period = ceil((double)asked * first / (floor ?: 1) / GOVERNOR_ROUND);

	if (first == floor || !asked)
		return asked;
	return e == e->c->event ? first : fmin(period * GOVERNOR_ROUND, max - max % GOVERNOR_ROUND);
}

static int set_periods(struct collector *c, __u64 first, struct err *err)
{
	int ret = 0;

	for_each_event (e, c)
		if (!ret && period_of(e, first) != sampler_period(e->sampling->sampler))
			ret = sampler_set_period(e->sampling->sampler, period_of(e, first), err);
	return ret;
}

int budget_open(struct collector *c, struct err *err)
{
	const struct sampling *sampling = c->event[0].sampling;
	struct budget *b = &c->budget;
	struct ibs_meta_status *st = &c->event[0].status;
	struct governor_config config = {
		.budget = c->set.max_overhead,
		.floor = sampling->info.period,
		.max = longest_period(sampling),
		.bpf_max_ns = c->set.max_bpf_ns,
		.rss_max = c->set.max_rss_bytes,
		.n_cpus = c->n_events * sampler_counts(sampling->sampler)->n_cpus,
	};
	struct governor *governor;
	__u64 *seen;
	int ret;

	/* an earlier collector, or this one before a reload, has needed a longer period */
	if (st->period_asked == config.floor) {
		config.start = b->governor ? governor_period(b->governor) : st->period;
		config.start_reason =
			b->governor ? governor_longer(b->governor) : st->governor_reason;
	}
	if (!config.rss_max)
		config.rss_max =
			c->n_events * (sampling->opts.max_memory_bytes ?: SAMPLER_MAX_MEMORY) +
			RSS_BESIDES_MAPS;
	governor = governor_new(&config);
	seen = calloc(config.n_cpus, sizeof(*seen));
	if (!governor || !seen) {
		governor_free(governor);
		free(seen);
		return err_set(err, -ENOMEM, "out of memory");
	}
	budget_close(c);
	b->governor = governor;
	b->seen = seen;
	b->max_rate = read_sysctl("perf_event_max_sample_rate");
	b->windows = 0;
	b->timing = false;
	b->unseen_ops_s = 0;
	ret = set_periods(c, governor_period(b->governor), err);
	if (ret)
		return ret;
	b->cost_before_ns = st->overhead_ns;
	b->rss_max = config.rss_max;
	b->reported_ns = b->cost_ns = 0;
	collector_calibrate(c);
	for_each_event (e, c) {
		e->window_runs = 0;
		e->unseen = e->status.unseen;
		check_allowance(e);
	}
	work_limit_set_budget(&c->work, config.budget, sampler_n_cpus(sampling->sampler));
	b->retry_s = 0;
	b->reported_s = now_s();
	b->next_rate_s = b->reported_s + RATE_EVERY_S;
	if (sampling->opts.attr.freq)
		log_info("no budget: with -F the kernel chooses the period");
	return budget_step(c, err); /* the first one only notes the counters */
}

int budget_reopen(struct collector *c, bool *paused, struct err *err)
{
	int ret;

	*paused = collector_must_calibrate(c);
	for_each_event (e, c)
		if (*paused)
			sampler_stop(e->sampling->sampler);
	ret = budget_open(c, err);
	for_each_event (e, c)
		ret = ret ?: sampler_start(e->sampling->sampler, err);
	return ret;
}

void budget_timed(struct collector *c, bool on)
{
	struct budget *b = &c->budget;

	for_each_event (e, c) {
		__u64 ns, runs;

		if (sampler_run_time(e->sampling->sampler, &ns, &runs))
			continue;
		if (!on && b->timing && ns >= e->timed_ns && runs > e->timed_runs) {
			e->window_runs = runs - e->timed_runs;
			e->window_ns = (double)(ns - e->timed_ns) / e->window_runs;
		}
		e->timed_ns = ns;
		e->timed_runs = runs;
	}
	b->windows += !on && b->timing;
	b->timing = on;
}

/* The event with the slowest program, of those whose window has enough runs. */
static const struct collector_event *slowest(struct collector *c)
{
	const struct collector_event *slow = &c->event[0];

	for_each_event (e, c)
		if (e->window_runs >= GOVERNOR_BPF_RUNS &&
		    (slow->window_runs < GOVERNOR_BPF_RUNS || e->window_ns > slow->window_ns))
			slow = e;
	return slow;
}

/* --- steps --- */

static void log_decision(struct collector *c, const struct governor_decision *d, __u64 old)
{
	const char *why = governor_reason_help(d->why);
	struct budget *b = &c->budget;
	double percent = 100 * d->overhead;

	if (d->why == GOVERNOR_REASON_BPF_SLOW)
		log_warn("sampling stopped: the BPF program takes %.0f ns on average, more than "
			 "%.0f (--max-bpf-time); next try in %.0f s",
			 slowest(c)->window_ns, c->set.max_bpf_ns, d->retry_s);
	else if (d->stop)
		log_warn("sampling stopped: %s (overhead %.3f%%); next try in %.0f s", why, percent,
			 d->retry_s);
	else if (d->start)
		log_info("sampling again");
	else if (d->state != b->state)
		log_info("period %llu instead of %llu: %s (overhead was %.3f%%)", d->period, old,
			 why, percent);
	else
		log_debug("period %llu instead of %llu: %s (overhead was %.3f%%)", d->period, old,
			  why, percent);
}

static int act(struct collector *c, const struct governor_decision *d, struct err *err)
{
	struct ibs_meta_status *st = &c->event[0].status;
	struct budget *b = &c->budget;
	__u64 old = sampler_period(c->event[0].sampling->sampler);
	int ret = 0;

	b->cost_ns = d->cost_ns;
	if (d->changed) {
		ret = set_periods(c, d->period, err);
		st->period_changes += !ret;
	}
	for_each_event (e, c) {
		if (d->stop)
			sampler_stop(e->sampling->sampler);
		if (d->start)
			ret = ret ?: sampler_start(e->sampling->sampler, err);
	}
	if (d->trim)
		malloc_trim(0);
	if (d->why) {
		st->governor_changes[d->why]++;
		log_decision(c, d, old);
	}
	b->retry_s = d->stop ? now_s() + d->retry_s : d->start ? 0 : b->retry_s;
	b->state = d->state;
	b->reason = d->reason;
	b->next_s = now_s() + d->next_s;
	if (fabs(b->next_s - c->next_tick_s) < d->next_s / 2)
		b->next_s = c->next_tick_s; /* one wakeup serves both */
	if (!ret && d->end)
		ret = err_set(
			err, -ENOMEM,
			"resident memory is %.1f MiB, above --max-rss (%.0f MiB): exiting; the "
			"next collector resumes the counters",
			st->rss_bytes / 1048576.0, b->rss_max / 1048576.0);
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

int budget_step(struct collector *c, struct err *err)
{
	struct budget *b = &c->budget;
	__u64 other_ns = work_of_others(c), *seen = b->seen;
	struct governor_input in = {
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.seen = b->seen,
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - other_ns,
		.other_ns = other_ns,
		.rss_bytes = c->event[0].status.rss_bytes,
		.max_rate = b->max_rate,
		.cpus = sampler_n_cpus(c->event[0].sampling->sampler),
		.windows = b->windows,
		.window_runs = slowest(c)->window_runs,
		.window_ns = slowest(c)->window_ns,
		.unseen_ops_s = b->unseen_ops_s,
	};
	struct governor_decision d;
	double samples = 0;

	/* the cost of a sample is the mean over those since the last step */
	for_each_event (e, c) {
		const struct counts *counts = sampler_counts(e->sampling->sampler);
		__u64 sum = 0;
		double n;

		for (unsigned int cpu = 0; cpu < counts->n_cpus; cpu++)
			sum += *seen++ =
				__atomic_load_n(&counts->state->cpu[cpu].seen, __ATOMIC_RELAXED);
		n = sum > e->seen ? sum - e->seen : 1e-3;
		e->seen = sum;
		in.throttled += sampler_throttled(e->sampling->sampler);
		in.nmi_ns += n * e->nmi_ns;
		in.bpf_ns += n * bpf_ns(e);
		samples += n;
	}
	in.nmi_ns /= samples;
	in.bpf_ns /= samples;
	governor_step(b->governor, &in, &d);
	return act(c, &d, err);
}

static void watch_kernel(struct collector *c, double now_s)
{
	struct budget *b = &c->budget;
	__u64 rate;

	if (now_s < b->next_rate_s)
		return;
	b->next_rate_s = now_s + RATE_EVERY_S;
	rate = read_sysctl("perf_event_max_sample_rate");
	if (rate < b->max_rate && rate) {
		c->event[0].status.kernel_lowered++;
		log_warn("the kernel lowered kernel.perf_event_max_sample_rate to %llu from %llu, "
			 "because interrupts take too long",
			 rate, b->max_rate);
	}
	b->max_rate = rate;
}

void budget_status(struct collector *c, double now_s)
{
	struct budget *b = &c->budget;
	struct ibs_meta_status *st = &c->event[0].status;
	double left = b->retry_s - now_s, passed = now_s - b->reported_s;

	if (!b->governor)
		return;
	watch_kernel(c, now_s);
	if (passed > 0.1) {
		/* samples that the driver drops after their interrupt cost as well */
		b->unseen_ops_s = 0;
		for_each_event (e, c) {
			if (e->status.pmu_exact && e->status.unseen > e->unseen)
				b->unseen_ops_s += (double)(e->status.unseen - e->unseen) *
						   st->period / passed;
			e->unseen = e->status.unseen;
		}
		st->overhead_ppb =
			(b->cost_ns - b->reported_ns) / passed / (st->cpus ? st->cpus : 1);
		b->reported_ns = b->cost_ns;
		b->reported_s = now_s;
	}
	st->governor_state = b->state;
	st->governor_reason = b->reason;
	st->governor_retry_ns = b->retry_s && left > 0 ? clock_ns(CLOCK_BOOTTIME) + left * 1e9 : 0;
	st->budget_ppb = c->set.max_overhead * 1e9;
	st->overhead_ns = b->cost_before_ns + b->cost_ns;
	st->kernel_rate = b->max_rate;
	st->rss_max = b->rss_max;
}

/*
 * For machines where it cannot be measured, and the same for all processors: some 1,600 instructions
 * of interrupt and driver, a dozen of them accesses to MSRs, take 1 to 1.5 us at 3 to 4 GHz. An
 * estimate that is too high is the safer one.
 */
#define NMI_ASSUMED_NS 2000

#define CALIBRATE_S 0.4

/* Preferably the CPU that we run on. */
static unsigned int choose_cpu(const struct sampling *s)
{
	int here = sched_getcpu();

	for (size_t i = 0; i < s->opts.n_cpus; i++)
		if ((int)s->opts.cpus[i] == here)
			return here;
	return s->opts.cpus[0];
}

static void measure(struct collector_event *e)
{
	unsigned int cpu = choose_cpu(e->sampling);
	struct sample_cost cost;
	struct err why = { "" };

	if (sample_cost_floor(&e->sampling->opts.attr, cpu, CALIBRATE_S, &cost, &why)) {
		e->measured_ns = -1;
		log_info("the cost of a sample without BPF cannot be measured (%s); assuming %d ns",
			 why.text, NMI_ASSUMED_NS);
		return;
	}
	e->measured_ns = cost.ns + cost.spread_ns; /* the upper end, to be safe */
	log_info("measured %.0f ns (+-%.0f) per sample of %s without BPF, on CPU %u", cost.ns,
		 cost.spread_ns, e->sampling->event.pmu, cpu);
}

static bool must_measure(const struct collector_event *e)
{
	return !e->c->set.nmi_ns && !e->measured_ns && e->status.nmi_source != IBS_NMI_MEASURED;
}

bool collector_must_calibrate(struct collector *c)
{
	bool must = false;

	for_each_event (e, c)
		must |= must_measure(e);
	return must;
}

void collector_calibrate(struct collector *c)
{
	for_each_event (e, c) {
		e->nmi_ns = c->set.nmi_ns;
		e->nmi_source = IBS_NMI_GIVEN;
		if (c->set.nmi_ns)
			continue;
		if (must_measure(e))
			measure(e);
		else if (!e->measured_ns) /* an earlier collector has measured it */
			e->measured_ns = e->status.nmi_ns;
		e->nmi_ns = e->measured_ns > 0 ? e->measured_ns : NMI_ASSUMED_NS;
		e->nmi_source = e->measured_ns > 0 ? IBS_NMI_MEASURED : IBS_NMI_ASSUMED;
	}
}
