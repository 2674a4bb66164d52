// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sampling within a budget: what the governor is told, and what is done of what it says. */
#include "serve.h"

#include "clock.h"
#include "counts.h"
#include "num.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_EVERY_S	 10
#define ALLOWANCE	 0.8 /* of what the kernel allows a sample to take */
#define SIM_MAX_PERIOD	 (1ULL << 30)
#define RSS_BESIDES_MAPS (64ULL << 20)

static int set_overhead(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	o->overhead_given = true;
	o->max_overhead = 0;
	if (!strcmp(arg, "off"))
		return 0;
	if (num_parse_percent("--max-overhead", arg, 0.001, 50, &o->max_overhead, err))
		return err_set(err, -EINVAL,
			       "--max-overhead: '%s' is no share of the CPUs' time: give 0.001%% "
			       "to 50%%, as in 0.5%%, or off",
			       arg);
	return 0;
}

/* @word: what 0 is given as. */
static int parse_ns(const char *option, const char *word, const char *arg, double *out,
		    struct err *err)
{
	char *end;
	double ns;

	*out = 0;
	if (!strcmp(arg, word))
		return 0;
	ns = strspn(arg, "0123456789.") ? strtod(arg, &end) : 0;
	if (ns > 0 && !strcmp(end, "us"))
		ns *= 1000;
	else if (ns > 0 && *end && strcmp(end, "ns"))
		ns = 0;
	if (ns < SERVE_NMI_MIN_NS || ns > SERVE_NMI_MAX_NS)
		return err_set(err, -EINVAL,
			       "%s: '%s' is no time of %d ns to %d us: give one, as 1500ns or 2us, "
			       "or %s",
			       option, arg, SERVE_NMI_MIN_NS, SERVE_NMI_MAX_NS / 1000, word);
	*out = ns;
	return 0;
}

static int set_nmi_cost(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	return parse_ns("--nmi-cost", "auto", arg, &o->nmi_ns, err);
}

static int set_bpf_time(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	return parse_ns("--max-bpf-time", "off", arg, &o->max_bpf_ns, err);
}

static int set_rss(void *ctx, const char *arg, struct err *err)
{
	const struct num_arg num = {
		.name = "--max-rss", .unit = "MiB", .min = 16, .max = 1 << 20
	};
	struct serve_options *o = ctx;
	uint64_t v;
	int ret = num_parse(&num, arg, &v, err);

	o->max_rss_bytes = v << 20;
	return ret;
}

/* clang-format off: a row is a row */
const struct option_row serve_governor_rows[] = {
	{ "max-overhead", 0, "N%|off",
	  "share of the CPUs' time that all of it may take: the period\n"
	  "                            is lengthened, or sampling stops; default 0.5%",
	  set_overhead },
	{ "nmi-cost", 0, "TIME|auto",
	  "CPU time of a sample without BPF, as in 2us; auto (default):\n"
	  "                            measured at the start, if that can be",
	  set_nmi_cost },
	{ "max-bpf-time", 0, "TIME|off",
	  "stop sampling where the BPF program takes more on average;\n"
	  "                            default 2.5us",
	  set_bpf_time },
	{ "max-rss", 0, "MIB",
	  "end in order above so much memory of the process; default\n"
	  "                            64 more than --max-memory",
	  set_rss },
};
/* clang-format on */
const size_t serve_governor_n_rows = sizeof(serve_governor_rows) / sizeof(serve_governor_rows[0]);

int serve_governor_settle(struct serve_options *o, struct err *err)
{
	const struct sampling *s = &o->sampling;
	bool by_freq = s->event.rate.has_freq || s->rate.has_freq;

	if (!by_freq)
		return 0;
	if (o->overhead_given && o->max_overhead)
		return err_set(err, -EINVAL,
			       "--max-overhead governs the period, which -F leaves to the kernel: "
			       "give -c instead, or --max-overhead off");
	o->max_overhead = 0;
	return 0;
}

/* --- what it is told */

static __u64 read_sysctl(const char *name)
{
	char path[96];
	int64_t v;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	return num_read("", path, &v, NULL) || v < 0 ? 0 : v;
}

/* Mean of the last window, else of all, else a guess. */
static double bpf_ns(const struct serve *s)
{
	const struct serve_governor *g = &s->governor;
	const struct ibs_meta_status *st = &s->status;

	if (g->window_runs >= GOVERNOR_BPF_RUNS)
		return g->window_ns;
	return st->bpf_runs ? (double)st->bpf_ns / st->bpf_runs : GOVERNOR_BPF_ASSUMED_NS;
}

/* If samples take longer than that on average, the kernel lowers its limit, for all and for good. */
static void check_allowance(const struct serve *s)
{
	const struct serve_governor *g = &s->governor;
	__u64 percent = read_sysctl("perf_cpu_time_max_percent");
	double allowed, takes = g->nmi_ns + bpf_ns(s);

	/* it looks at the interrupts of PMUs only */
	if (!percent || percent >= 100 || !g->max_rate || g->nmi_source == IBS_NMI_ASSUMED ||
	    s->opts.sampling.info.simulated)
		return;
	allowed = percent / 100.0 * 1e9 / g->max_rate;
	if (takes <= ALLOWANCE * allowed)
		return;
	log_warn("a sample takes %.0f ns, and the kernel lowers perf_event_max_sample_rate for "
		 "everybody where they take more than %.0f: set kernel.perf_event_max_sample_rate "
		 "to %.0f, or kernel.perf_cpu_time_max_percent to 0",
		 takes, allowed, floor(percent / 100.0 * 1e9 / (2 * takes) / 1000) * 1000);
}

/* --- the life of it */

void serve_governor_close(struct serve *s)
{
	governor_free(s->governor.law);
	free(s->governor.seen);
	s->governor.law = NULL;
	s->governor.seen = NULL;
}

static __u64 longest_period(const struct sampling *s)
{
	uint64_t min, max;

	if (s->opts.attr.freq)
		return 0;
	if (s->info.simulated)
		return s->info.period > SIM_MAX_PERIOD ? s->info.period : SIM_MAX_PERIOD;
	event_period_bounds("ibs_op", &s->cpu, &min, &max);
	return max;
}

int serve_governor_open(struct serve *s, struct err *err)
{
	const struct sampling *sampling = &s->opts.sampling;
	struct serve_governor *g = &s->governor;
	struct ibs_meta_status *st = &s->status;
	struct governor_config config = {
		.budget = s->opts.max_overhead,
		.floor = sampling->info.period,
		.max = longest_period(sampling),
		.bpf_max_ns = s->opts.max_bpf_ns,
		.rss_max = s->opts.max_rss_bytes,
		.n_cpus = sampler_counts(sampling->sampler)->n_cpus,
	};
	struct governor *law;
	__u64 *seen;

	/* an earlier collector, or we with other options, found that out already */
	if (st->period_asked == config.floor) {
		config.start = g->law ? governor_period(g->law) : st->period;
		config.start_reason = g->law ? governor_longer(g->law) : st->governor_reason;
	}
	if (!config.rss_max)
		config.rss_max =
			(sampling->opts.max_memory_bytes ?: SAMPLER_MAX_MEMORY) + RSS_BESIDES_MAPS;
	law = governor_new(&config);
	seen = calloc(config.n_cpus, sizeof(*seen));
	if (!law || !seen) {
		governor_free(law);
		free(seen);
		return err_set(err, -ENOMEM, "out of memory");
	}
	serve_governor_close(s);
	g->law = law;
	g->seen = seen;
	g->max_rate = read_sysctl("perf_event_max_sample_rate");
	g->windows = g->window_runs = 0;
	g->timing = false;
	g->unseen = st->unseen;
	g->unseen_ops_s = 0;
	if (governor_period(g->law) != sampler_period(sampling->sampler)) {
		int ret = sampler_set_period(sampling->sampler, governor_period(g->law), err);

		if (ret)
			return ret;
	}
	g->cost_before_ns = st->overhead_ns;
	g->rss_max = config.rss_max;
	g->told_ns = g->cost_ns = 0;
	serve_calibrate(s);
	check_allowance(s);
	g->retry_s = 0;
	g->told_s = now_s();
	g->next_rate_s = g->told_s + RATE_EVERY_S;
	if (sampling->opts.attr.freq)
		log_info("the period is the kernel's business with -F: there is no budget");
	return serve_governor_look(s, err); /* the first one only notes what there is */
}

int serve_governor_renew(struct serve *s, bool *paused, struct err *err)
{
	struct sampler *sampler = s->opts.sampling.sampler;
	int ret;

	/* what a sample costs is measured while nothing else samples */
	*paused = serve_must_calibrate(s);
	if (*paused)
		sampler_stop(sampler);
	ret = serve_governor_open(s, err);
	return ret ?: sampler_start(sampler, err);
}

void serve_governor_timed(struct serve *s, bool on)
{
	struct serve_governor *g = &s->governor;
	__u64 ns, runs;

	if (sampler_run_time(s->opts.sampling.sampler, &ns, &runs))
		return;
	if (!on && g->timing && ns >= g->timed_ns && runs > g->timed_runs) {
		g->windows++;
		g->window_runs = runs - g->timed_runs;
		g->window_ns = (double)(ns - g->timed_ns) / g->window_runs;
	}
	g->timing = on;
	g->timed_ns = ns;
	g->timed_runs = runs;
}

/* --- looks */

static void tell(struct serve *s, const struct governor_decision *d, __u64 old)
{
	const char *why = governor_reason_help(d->why);
	struct serve_governor *g = &s->governor;
	double percent = 100 * d->overhead;

	if (d->why == GOVERNOR_REASON_BPF_SLOW)
		log_warn("sampling is stopped: the BPF program takes %.0f ns on average, and may "
			 "%.0f (--max-bpf-time); it is tried again in %.0f s",
			 g->window_ns, s->opts.max_bpf_ns, d->retry_s);
	else if (d->stop)
		log_warn("sampling is stopped: %s; it is tried again in %.0f s (overhead %.3f%%)",
			 why, d->retry_s, percent);
	else if (d->start)
		log_info("sampling is tried again");
	else if (d->state != g->state)
		log_info("the period is %llu instead of %llu: %s (overhead was %.3f%%)", d->period,
			 old, why, percent);
	else
		log_debug("the period is %llu instead of %llu: %s (overhead was %.3f%%)", d->period,
			  old, why, percent);
}

static int act(struct serve *s, const struct governor_decision *d, struct err *err)
{
	struct sampler *sampler = s->opts.sampling.sampler;
	struct serve_governor *g = &s->governor;
	__u64 old = sampler_period(sampler);
	int ret = 0;

	g->cost_ns = d->cost_ns;
	if (d->changed) {
		ret = sampler_set_period(sampler, d->period, err);
		s->status.period_changes += !ret;
	}
	if (d->stop)
		sampler_stop(sampler);
	if (d->start)
		ret = ret ?: sampler_start(sampler, err);
	if (d->trim)
		malloc_trim(0);
	if (d->why) {
		s->status.governor_changes[d->why]++;
		tell(s, d, old);
	}
	g->retry_s = d->stop ? now_s() + d->retry_s : d->start ? 0 : g->retry_s;
	g->state = d->state;
	g->reason = d->reason;
	g->next_s = now_s() + d->look_s;
	if (fabs(g->next_s - g->tick_s) < d->look_s / 2)
		g->next_s = g->tick_s; /* one wakeup serves both */
	if (!ret && d->end) {
		serve_status_update(s, now_s(), err);
		ret = err_set(err, -ENOMEM,
			      "the process has %.1f MiB of memory, more than --max-rss allows "
			      "(%.0f MiB): it ends; the counters stay, and the next one goes on "
			      "with them",
			      s->status.rss_bytes / 1048576.0, g->rss_max / 1048576.0);
	}
	return ret;
}

int serve_governor_look(struct serve *s, struct err *err)
{
	struct serve_governor *g = &s->governor;
	struct sampler *sampler = s->opts.sampling.sampler;
	const struct counts *c = sampler_counts(sampler);
	struct governor_input in = {
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.seen = g->seen,
		.throttled = sampler_throttled(sampler),
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.rss_bytes = s->status.rss_bytes,
		.max_rate = g->max_rate,
		.cpus = sampler_n_cpus(sampler),
		.nmi_ns = g->nmi_ns,
		.bpf_ns = bpf_ns(s),
		.windows = g->windows,
		.window_runs = g->window_runs,
		.window_ns = g->window_ns,
		.unseen_ops_s = g->unseen_ops_s,
	};
	struct governor_decision d;

	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++)
		g->seen[cpu] = __atomic_load_n(&c->cpus[cpu].seen, __ATOMIC_RELAXED);
	governor_step(g->law, &in, &d);
	return act(s, &d, err);
}

static void watch_kernel(struct serve *s, double now_s)
{
	struct serve_governor *g = &s->governor;
	__u64 rate;

	if (now_s < g->next_rate_s)
		return;
	g->next_rate_s = now_s + RATE_EVERY_S;
	rate = read_sysctl("perf_event_max_sample_rate");
	if (rate < g->max_rate && rate) {
		s->status.kernel_lowered++;
		log_warn("kernel.perf_event_max_sample_rate is %llu now, and was %llu: the kernel "
			 "lowers it where interrupts are slow",
			 rate, g->max_rate);
	}
	g->max_rate = rate;
}

void serve_governor_status(struct serve *s, double now_s)
{
	struct serve_governor *g = &s->governor;
	struct ibs_meta_status *st = &s->status;
	double left = g->retry_s - now_s, passed = now_s - g->told_s;

	if (!g->law)
		return;
	watch_kernel(s, now_s);
	if (passed > 0.1) {
		/* what the driver drops after its interrupt costs, too */
		g->unseen_ops_s = st->pmu_exact && st->unseen > g->unseen
					  ? (double)(st->unseen - g->unseen) * st->period / passed
					  : 0;
		g->unseen = st->unseen;
		st->overhead_ppb = (g->cost_ns - g->told_ns) / passed / (st->cpus ? st->cpus : 1);
		g->told_ns = g->cost_ns;
		g->told_s = now_s;
	}
	st->governor_state = g->state;
	st->governor_reason = g->reason;
	st->governor_retry_ns = g->retry_s && left > 0 ? clock_ns(CLOCK_BOOTTIME) + left * 1e9 : 0;
	st->period_asked = s->opts.sampling.info.period;
	st->budget_ppb = s->opts.max_overhead * 1e9;
	st->overhead_ns = g->cost_before_ns + g->cost_ns;
	st->nmi_ns = g->nmi_ns;
	st->nmi_source = g->nmi_source;
	st->kernel_rate = g->max_rate;
	st->rss_max = g->rss_max;
}
