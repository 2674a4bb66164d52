// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "governor.h"
#include "base/std.h"

#include <math.h>
#include <stdlib.h>

#define AIM	    0.8 /* of the budget, backing off */
#define RETURN_AIM  0.7 /* of the budget, returning */
#define RETURN_MIN  0.9 /* of the period: a smaller change is not worth it */
#define RETURN_STEP 2.0
#define HOLD_S	    5.0 /* quiet interval before the period is lowered */
#define HOLD_MAX_S  60.0
#define TRUST_S	    300.0 /* time without backing off until the interval is the shortest again */
#define OWN_S	    60.0  /* averaging time of the collector's own CPU time */
#define OWN_MAX	    0.5	  /* of the budget: maximum that the collector's own time counts */
#define DEBT_MAX_S  300.0

/* Shares of kernel.perf_event_max_sample_rate, on the CPU with the most samples. */
#define LIMIT	     0.5
#define LIMIT_AIM    0.4
#define LIMIT_RETURN 0.35
/*
 * At lower rates the kernel throttles a CPU because its tick has stopped, as on idle ones, not
 * because of too many samples: a longer period would not help.
 */
#define THROTTLE_MIN 0.125

#define STOP_AFTER_S 1.0
#define RETRY_S	     60.0
#define RETRY_MAX_S  3600.0
#define MEMORY_S     10.0 /* time above the limit although free memory was returned */
#define BPF_WINDOWS  2
/*
 * Times the limit, above which the program itself must be at fault. Below, it may be a neighbour: one that
 * empties the caches, or a hypervisor that takes the CPU away while the program runs. Neither must be able
 * to end sampling, so the period is raised, and the program takes no more time than at the limit.
 */
#define BPF_BROKEN 10
#define SPANS	   20  /* history of five seconds */
#define PEAKS	   64  /* history in seconds; more than HOLD_MAX_S */
#define JUMP_S	   1.0 /* a longer pause between steps counts as this much quiet time */

struct past_span {
	double s, samples;
};

/* Ops per second: of the machine, and of its busiest CPU. */
struct peak {
	double ops, hot_ops;
};

struct governor {
	struct governor_config c;
	enum governor_state state;
	enum governor_reason reason;
	enum governor_reason longer; /* see governor_longer() */
	__u64 period;

	/* as of the last step */
	bool begun;
	__u64 *seen;
	__u64 time_ns, throttled, cpu_ns, other_ns, windows;

	struct past_span spans[SPANS]; /* since the last change, newest first */
	unsigned int n_spans;

	/* whole seconds, and the current one */
	struct peak peaks[PEAKS];
	unsigned int peak;
	double second_s, second_n, second_hot;

	double own;    /* averaged share of the CPUs' time that the collector spends on sampling */
	double other;  /* the same for work that others cause */
	double debt_s; /* time for which the budget was exceeded */
	double calm_s; /* since the period was changed */
	double hold_s, trust_s; /* the quiet interval, and the time since backing off */
	bool returned;		/* since backing off */

	double over_s;	   /* time for which samples were too expensive at the longest period */
	unsigned int slow; /* windows in a row, */
	double slow_ns, last_ns; /* shorter mean of the last two, and the last one */
	double retry_s, stopped_s;
	double memory_s;
	bool trimmed;
	double cost_ns;
};

/* These raise the period; the others stop sampling or lower it. */
static bool raises_period(enum governor_reason r)
{
	return r == GOVERNOR_REASON_BUDGET || r == GOVERNOR_REASON_THROTTLED ||
	       r == GOVERNOR_REASON_KERNEL_LIMIT || r == GOVERNOR_REASON_BPF_SLOW;
}

struct governor *governor_new(const struct governor_config *c)
{
	struct governor *g = NULL;

	if ((c->floor || !c->budget) && c->floor <= c->max)
		g = xcalloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->c = *c;
	g->period = c->floor;
	g->state = c->budget ? GOVERNOR_STATE_AT_RATE : GOVERNOR_STATE_OFF;
	if (c->budget && c->start > c->floor && c->start <= c->max) {
		g->period = c->start;
		g->state = GOVERNOR_STATE_BACKED_OFF;
		if (raises_period(c->start_reason))
			g->reason = g->longer = c->start_reason;
	}
	g->hold_s = HOLD_S;
	g->retry_s = RETRY_S;
	g->seen = xcalloc(c->n_cpus, sizeof(*g->seen));
	return g;
}

void governor_free(struct governor *g)
{
	if (g)
		free(g->seen);
	free(g);
}

void governor_set_budget(struct governor *g, double budget)
{
	if (g->c.budget)
		g->c.budget = budget;
}

__u64 governor_period(const struct governor *g)
{
	return g->period;
}

enum governor_reason governor_longer(const struct governor *g)
{
	return g->longer;
}

/* What happened since the last step. */
struct span {
	double s;
	double samples, hottest; /* of all CPUs, and of the busiest one */
	double own_ns, other_ns;
	double sample_ns, hidden; /* hidden: CPUs busy with interrupts that no program saw */
	bool throttled;
};

/* Return: false if unknown because counters were reset. */
static bool read_span(struct governor *g, const struct governor_input *in, struct span *sp)
{
	bool good = g->begun && in->time_ns > g->time_ns && in->cpu_ns >= g->cpu_ns &&
		    in->other_ns >= g->other_ns;

	*sp = (struct span){ .s = (in->time_ns - g->time_ns) / 1e9,
			     .own_ns = in->cpu_ns - g->cpu_ns,
			     .other_ns = in->other_ns - g->other_ns,
			     .sample_ns = in->nmi_ns + in->bpf_ns,
			     .throttled = in->throttled > g->throttled };
	for (unsigned int cpu = 0; cpu < g->c.n_cpus; cpu++) {
		double n = in->seen[cpu] >= g->seen[cpu] ? in->seen[cpu] - g->seen[cpu] : 0;

		sp->samples += n;
		sp->hottest = fmax(sp->hottest, n);
		g->seen[cpu] = in->seen[cpu];
	}
	if (g->period)
		sp->hidden = in->unseen_ops_s / g->period * in->nmi_ns / 1e9;
	g->time_ns = in->time_ns;
	g->throttled = in->throttled;
	g->cpu_ns = in->cpu_ns;
	g->other_ns = in->other_ns;
	if (!g->begun)
		g->windows = in->windows;
	g->begun = true;
	return good;
}

static void forget_spans(struct governor *g)
{
	g->n_spans = 0;
	g->over_s = 0;
}

static void remember(struct governor *g, const struct span *sp)
{
	if (g->n_spans < SPANS)
		g->n_spans++;
	for (unsigned int i = g->n_spans - 1; i > 0; i--)
		g->spans[i] = g->spans[i - 1];
	g->spans[0] = (struct past_span){ sp->s, sp->samples };

	g->second_s += sp->s;
	g->second_n += sp->samples;
	g->second_hot += sp->hottest;
}

/* A lower bound of the mean, given a count, so that chance alone does not raise the period. */
static double at_least(double n)
{
	return n - sqrt(n);
}

/* Call after a full second, or when the period changes. */
static void end_second(struct governor *g)
{
	if (g->second_s <= 0)
		return;
	g->peak = (g->peak + 1) % PEAKS;
	g->peaks[g->peak] = (struct peak){ g->second_n * g->period / g->second_s,
					   g->second_hot * g->period / g->second_s };
	g->second_s = g->second_n = g->second_hot = 0;
}

static struct peak peak_of(const struct governor *g, double seconds)
{
	struct peak max = {};

	for (unsigned int i = 0; i < PEAKS && i < seconds; i++) {
		const struct peak *p = &g->peaks[(g->peak + PEAKS - i) % PEAKS];

		max.ops = fmax(max.ops, p->ops);
		max.hot_ops = fmax(max.hot_ops, p->hot_ops);
	}
	return max;
}

/* Share of the CPUs' time for this sample rate. */
static double share(const struct span *sp, const struct governor_input *in, double samples_s)
{
	return (samples_s * sp->sample_ns / 1e9 + sp->hidden) / fmax(in->cpus, 1);
}

/* Share of the budget charged for the collector's own time. */
static double weighed_own(const struct governor *g)
{
	return fmin(g->own, OWN_MAX * g->c.budget);
}

/*
 * The highest sample rate, over any time up to now, whose cost plus @own exceeds the budget; 0:
 * none. A jump shows in the last span, a slow rise only in several.
 */
static double over_budget(const struct governor *g, const struct span *sp,
			  const struct governor_input *in, double own)
{
	double s = 0, n = 0, worst = 0;

	for (unsigned int i = 0; i < g->n_spans; i++) {
		s += g->spans[i].s;
		n += g->spans[i].samples;
		if (share(sp, in, at_least(n) / s) + own > g->c.budget)
			worst = fmax(worst, n / s);
	}
	return worst;
}

static __u64 bounded(const struct governor *g, double period)
{
	if (period <= g->c.floor)
		return g->c.floor;
	period = ceil(period / GOVERNOR_ROUND) * GOVERNOR_ROUND;
	return period < g->c.max ? period : g->c.max;
}

/* What remains of this part of the budget for samples. */
static double left(const struct governor *g, double part)
{
	return part * g->c.budget - weighed_own(g);
}

/* The required period; g->period or less: keep it. *@why: the main reason. */
static double needed_period(const struct governor *g, const struct span *sp,
			    const struct governor_input *in, enum governor_reason *why)
{
	double hot = sp->hottest / sp->s, want = 0, over;

	*why = GOVERNOR_REASON_NONE;
	over = over_budget(g, sp, in, weighed_own(g));
	if (over > 0) {
		want = g->period * fmax(share(sp, in, over) / left(g, AIM), 1 / AIM);
		*why = GOVERNOR_REASON_BUDGET;
	}
	if (in->max_rate && hot > LIMIT * in->max_rate) {
		double p = g->period * hot / (LIMIT_AIM * in->max_rate);

		if (p > want)
			*why = GOVERNOR_REASON_KERNEL_LIMIT;
		want = fmax(want, p);
	}
	if (sp->throttled && (!in->max_rate || hot > THROTTLE_MIN * in->max_rate)) {
		if (2.0 * g->period > want)
			*why = GOVERNOR_REASON_THROTTLED;
		want = fmax(want, 2.0 * g->period);
	}
	return want;
}

static void set_period(struct governor *g, __u64 period, enum governor_reason why,
		       struct governor_decision *out)
{
	if (period == g->period)
		return;
	end_second(g);
	forget_spans(g);
	g->period = period;
	g->calm_s = 0;
	out->changed = true;
	out->why = why;
}

static void back_off(struct governor *g, __u64 period, enum governor_reason why,
		     struct governor_decision *out)
{
	if (g->returned)
		g->hold_s = fmin(2 * g->hold_s, HOLD_MAX_S);
	g->returned = false;
	g->trust_s = 0;
	set_period(g, period, why, out);
	g->state = GOVERNOR_STATE_BACKED_OFF;
	g->reason = g->longer = why;
}

static void stop(struct governor *g, enum governor_reason why, struct governor_decision *out)
{
	g->state = GOVERNOR_STATE_STOPPED;
	g->reason = why;
	g->stopped_s = 0;
	g->slow = 0;
	g->trust_s = 0;
	out->stop = true;
	out->why = why;
	out->retry_s = g->retry_s;
	end_second(g);
	forget_spans(g);
}

/* The period at which a slow program takes as much time as at its limit; 0: it is not slow. */
static double slow_period(const struct governor *g)
{
	return g->slow >= BPF_WINDOWS ? g->c.floor * g->slow_ns / g->c.bpf_max_ns : 0;
}

/* Lower the period after a long enough quiet interval. */
static void lower_period(struct governor *g, const struct span *sp, const struct governor_input *in,
			 struct governor_decision *out)
{
	struct peak peak;
	double want;
	__u64 period;

	if (g->period == g->c.floor || g->calm_s < g->hold_s || g->debt_s > 0)
		return;
	peak = peak_of(g, g->hold_s);
	/* the hidden part is proportional to the samples */
	want = (peak.ops * sp->sample_ns / 1e9 + sp->hidden * g->period) / fmax(in->cpus, 1) /
	       left(g, RETURN_AIM);
	if (in->max_rate)
		want = fmax(want, peak.hot_ops / (LIMIT_RETURN * in->max_rate));
	want = fmax(want, slow_period(g));
	if (want > RETURN_MIN * g->period && want > g->c.floor)
		return;
	period = bounded(g, fmax(want, g->period / RETURN_STEP));
	if (period >= g->period)
		return;
	set_period(g, period, GOVERNOR_REASON_CALM, out);
	g->returned = true;
	if (period > g->c.floor) {
		g->state = GOVERNOR_STATE_RETURNING;
	} else {
		g->state = GOVERNOR_STATE_AT_RATE;
		g->reason = GOVERNOR_REASON_NONE;
	}
}

static void regulate(struct governor *g, const struct span *sp, const struct governor_input *in,
		     struct governor_decision *out)
{
	enum governor_reason why;
	double want = needed_period(g, sp, in, &why);
	bool too_dear = g->period == g->c.max && over_budget(g, sp, in, 0) > 0;

	g->over_s = too_dear ? g->over_s + fmin(sp->s, JUMP_S) : 0;
	if (want <= g->period)
		lower_period(g, sp, in, out);
	else if (g->period < g->c.max)
		back_off(g, bounded(g, want), why, out);
	else if (g->over_s >= STOP_AFTER_S)
		stop(g, GOVERNOR_REASON_BUDGET, out);
}

static void check_program(struct governor *g, const struct governor_input *in,
			  struct governor_decision *out)
{
	if (in->windows == g->windows)
		return;
	g->windows = in->windows;
	if (in->window_runs < GOVERNOR_BPF_RUNS)
		return;
	g->slow = g->c.bpf_max_ns && in->window_ns > g->c.bpf_max_ns ? g->slow + 1 : 0;
	g->slow_ns = fmin(g->last_ns, in->window_ns);
	g->last_ns = in->window_ns;
	if (g->slow < BPF_WINDOWS || g->state == GOVERNOR_STATE_STOPPED)
		return;
	if (!g->c.budget || g->slow_ns > BPF_BROKEN * g->c.bpf_max_ns || slow_period(g) > g->c.max)
		stop(g, GOVERNOR_REASON_BPF_SLOW, out);
	else if (bounded(g, slow_period(g)) > g->period)
		back_off(g, bounded(g, slow_period(g)), GOVERNOR_REASON_BPF_SLOW, out);
}

static void check_memory(struct governor *g, const struct governor_input *in, double s,
			 struct governor_decision *out)
{
	if (!g->c.rss_max || in->rss_bytes <= g->c.rss_max) {
		g->trimmed = false;
		g->memory_s = 0;
		return;
	}
	out->trim = !g->trimmed;
	g->trimmed = true;
	g->memory_s += fmin(s, JUMP_S);
	if (g->memory_s < MEMORY_S)
		return;
	if (g->state != GOVERNOR_STATE_STOPPED)
		stop(g, GOVERNOR_REASON_MEMORY, out);
	g->reason = GOVERNOR_REASON_MEMORY;
	out->end = true;
}

static void retry_sampling(struct governor *g, double s, struct governor_decision *out)
{
	g->stopped_s += s;
	if (g->stopped_s < g->retry_s)
		return;
	g->retry_s = fmin(2 * g->retry_s, RETRY_MAX_S);
	g->calm_s = 0;
	g->state = g->period > g->c.floor ? GOVERNOR_STATE_BACKED_OFF
		   : g->c.budget	  ? GOVERNOR_STATE_AT_RATE
					  : GOVERNOR_STATE_OFF;
	out->start = true;
	out->why = GOVERNOR_REASON_CALM;
	g->reason = g->state == GOVERNOR_STATE_BACKED_OFF ? g->longer : GOVERNOR_REASON_NONE;
}

static void account(struct governor *g, const struct span *sp, const struct governor_input *in,
		    struct governor_decision *out)
{
	double per_ns = 1 / (1e9 * sp->s * fmax(in->cpus, 1));
	double samples = share(sp, in, sp->samples / sp->s), part = 1 - exp(-sp->s / OWN_S);

	g->own += (sp->own_ns * per_ns - g->own) * part;
	g->other += (sp->other_ns * per_ns - g->other) * part;
	out->overhead = samples + g->own + g->other;
	g->cost_ns +=
		sp->samples * sp->sample_ns + sp->hidden * sp->s * 1e9 + sp->own_ns + sp->other_ns;
	if (!g->c.budget)
		return;
	g->debt_s += ((samples + weighed_own(g)) / g->c.budget - 1) * sp->s;
	g->debt_s = fmin(fmax(g->debt_s, 0), DEBT_MAX_S);
}

static void grow_trust(struct governor *g, double s)
{
	g->calm_s += fmin(s, JUMP_S);
	g->trust_s += fmin(s, JUMP_S);
	if (g->trust_s < TRUST_S)
		return;
	g->hold_s = HOLD_S;
	g->retry_s = RETRY_S;
	g->returned = false;
}

void governor_step(struct governor *g, const struct governor_input *in,
		   struct governor_decision *out)
{
	struct span sp;

	*out = (struct governor_decision){ .next_s = GOVERNOR_STEP_S };
	if (read_span(g, in, &sp)) {
		account(g, &sp, in, out);
		if (g->state == GOVERNOR_STATE_STOPPED) {
			retry_sampling(g, sp.s, out);
		} else {
			grow_trust(g, sp.s);
			remember(g, &sp);
			if (g->second_s >= 1)
				end_second(g);
			check_program(g, in, out);
			if (g->state != GOVERNOR_STATE_STOPPED && g->c.budget && !out->changed)
				regulate(g, &sp, in, out);
		}
		check_memory(g, in, sp.s, out);
		if (!out->changed && out->overhead < g->c.budget / 4)
			out->next_s = GOVERNOR_IDLE_STEP_S;
	}
	if (!g->c.budget || g->state == GOVERNOR_STATE_STOPPED)
		out->next_s = 1;
	out->period = g->period;
	out->state = g->state;
	out->reason = g->reason;
	out->own = g->own + g->other;
	out->cost_ns = g->cost_ns;
}
