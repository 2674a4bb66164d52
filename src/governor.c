// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "governor.h"

#include <math.h>
#include <stdlib.h>

#define AIM	    0.8 /* of the budget, backing off */
#define RETURN_AIM  0.7 /* of the budget, returning */
#define RETURN_MIN  0.9 /* of the period: less of a change is not worth it */
#define RETURN_STEP 2.0
#define HOLD_S	    5.0 /* that it is calm before the period is shortened */
#define HOLD_MAX_S  60.0
#define TRUST_S	    300.0 /* without backing off, after which the hold is the shortest again */
#define OWN_S	    60.0  /* over which the collector's own time is averaged */
#define DEBT_MAX_S  300.0

/* Of the kernel's limit, on the CPU with most samples. */
#define LIMIT	     0.5
#define LIMIT_AIM    0.4
#define LIMIT_RETURN 0.35
/*
 * Below it a notice of throttling tells of a CPU whose tick stood still, as idle ones' do, not of
 * too many samples: a longer period would not end it.
 */
#define THROTTLE_MIN 0.125

#define STOP_AFTER_S 1.0
#define RETRY_S	     60.0
#define RETRY_MAX_S  3600.0
#define MEMORY_S     10.0 /* above the bound although memory was given back */
#define BPF_WINDOWS  2
#define LOOKS	     20	 /* that are remembered: five seconds */
#define PEAKS	     64	 /* seconds that are; more than HOLD_MAX_S */
#define JUMP_S	     1.0 /* a look after a longer pause counts as this much of calm */

struct look {
	double s, samples;
};

/* The most of all seconds in it, ops a second: of the machine, and of its busiest CPU. */
struct peak {
	double ops, hot_ops;
};

struct governor {
	struct governor_config c;
	enum governor_state state;
	enum governor_reason reason;
	enum governor_reason longer; /* why the period is longer than asked for, stopped or not */
	__u64 period;

	/* as of the last look */
	bool begun;
	__u64 *seen;
	__u64 time_ns, throttled, cpu_ns, windows;

	struct look looks[LOOKS]; /* since the last change, newest first */
	unsigned int n_looks;

	/* of seconds, and of the one that is not over yet */
	struct peak peaks[PEAKS];
	unsigned int peak;
	double second_s, second_n, second_hot;

	double own;		/* CPUs that the collector takes, averaged */
	double debt_s;		/* seconds of the whole budget that were spent too much */
	double calm_s;		/* since the period was changed */
	double hold_s, trust_s; /* and time since backing off */
	bool returned;		/* since backing off */

	double over_s;	   /* that the longest period was too short */
	unsigned int slow; /* windows in a row */
	double retry_s, stopped_s;
	double memory_s;
	bool trimmed;
	double cost_ns;
};

#define NAME(id, name, help) name,
#define HELP(id, name, help) help,

const char *governor_state_name(enum governor_state s)
{
	static const char *const names[] = { GOVERNOR_STATE_TABLE(NAME) };

	return names[s];
}

const char *governor_state_help(enum governor_state s)
{
	static const char *const helps[] = { GOVERNOR_STATE_TABLE(HELP) };

	return helps[s];
}

const char *governor_reason_name(enum governor_reason r)
{
	static const char *const names[] = { GOVERNOR_REASON_TABLE(NAME) };

	return names[r];
}

const char *governor_reason_help(enum governor_reason r)
{
	static const char *const helps[] = { GOVERNOR_REASON_TABLE(HELP) };

	return helps[r];
}

/* A period is longer for these; the others are of stops, and of changes. */
static bool lengthens(enum governor_reason r)
{
	return r == GOVERNOR_REASON_BUDGET || r == GOVERNOR_REASON_THROTTLED ||
	       r == GOVERNOR_REASON_KERNEL_LIMIT;
}

struct governor *governor_new(const struct governor_config *c)
{
	struct governor *g = NULL;

	if ((c->floor || !c->budget) && c->floor <= c->max)
		g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->c = *c;
	g->period = c->floor;
	g->state = c->budget ? GOVERNOR_STATE_AT_RATE : GOVERNOR_STATE_OFF;
	if (c->budget && c->start > c->floor && c->start <= c->max) {
		g->period = c->start;
		g->state = GOVERNOR_STATE_BACKED_OFF;
		if (lengthens(c->start_reason))
			g->reason = g->longer = c->start_reason;
	}
	g->hold_s = HOLD_S;
	g->retry_s = RETRY_S;
	g->seen = calloc(c->n_cpus ? c->n_cpus : 1, sizeof(*g->seen));
	if (!g->seen) {
		free(g);
		return NULL;
	}
	return g;
}

void governor_free(struct governor *g)
{
	if (g)
		free(g->seen);
	free(g);
}

__u64 governor_period(const struct governor *g)
{
	return g->period;
}

enum governor_reason governor_longer(const struct governor *g)
{
	return g->longer;
}

/* What happened since the last look. */
struct span {
	double s;
	double samples, hottest; /* of all CPUs, and of the one with most */
	double own_ns;
	double sample_ns, hidden; /* hidden: CPUs that interrupts take that no program saw */
	bool throttled;
};

/* false: nothing can be said, and the look begins anew. */
static bool take(struct governor *g, const struct governor_input *in, struct span *sp)
{
	bool good = g->begun && in->time_ns > g->time_ns && in->cpu_ns >= g->cpu_ns;

	*sp = (struct span){ .s = (in->time_ns - g->time_ns) / 1e9,
			     .own_ns = in->cpu_ns - g->cpu_ns,
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
	if (!g->begun)
		g->windows = in->windows;
	g->begun = true;
	return good;
}

static void forget_looks(struct governor *g)
{
	g->n_looks = 0;
	g->over_s = 0;
}

static void remember(struct governor *g, const struct span *sp)
{
	if (g->n_looks < LOOKS)
		g->n_looks++;
	for (unsigned int i = g->n_looks - 1; i > 0; i--)
		g->looks[i] = g->looks[i - 1];
	g->looks[0] = (struct look){ sp->s, sp->samples };

	g->second_s += sp->s;
	g->second_n += sp->samples;
	g->second_hot += sp->hottest;
}

/* Of what is counted by chance: what there is at least, most of the time. */
static double at_least(double n)
{
	return n - sqrt(n);
}

/* A second is over, or the period is changed. */
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

/* Share of the CPUs' time, of so many samples a second. */
static double share(const struct span *sp, const struct governor_input *in, double samples_s)
{
	return (samples_s * sp->sample_ns / 1e9 + sp->hidden) / fmax(in->cpus, 1);
}

/*
 * Samples a second of the end of what is remembered in which the cost was above the budget; 0: there
 * is none. A jump shows in the last look, a slow rise only in several.
 */
static double over_budget(const struct governor *g, const struct span *sp,
			  const struct governor_input *in)
{
	double s = 0, n = 0, worst = 0;

	for (unsigned int i = 0; i < g->n_looks; i++) {
		s += g->looks[i].s;
		n += g->looks[i].samples;
		if (share(sp, in, at_least(n) / s) + g->own > g->c.budget)
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

/* What is left of a part of the budget for sampling; never nothing, so that it can be divided by. */
static double left(const struct governor *g, double part)
{
	return fmax(part * g->c.budget - g->own, g->c.budget / 1000);
}

/* The period that is needed now; not above g->period: none. *@why: by what most is asked for. */
static double needed(const struct governor *g, const struct span *sp,
		     const struct governor_input *in, enum governor_reason *why, bool *exceeded)
{
	double hot = sp->hottest / sp->s, want = 0, over;

	*why = GOVERNOR_REASON_NONE;
	over = over_budget(g, sp, in);
	*exceeded = over > 0;
	if (*exceeded) {
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
	forget_looks(g);
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
	forget_looks(g);
}

/* It is as calm as it has to be: how short may the period be? */
static void come_back(struct governor *g, const struct span *sp, const struct governor_input *in,
		      struct governor_decision *out)
{
	struct peak peak;
	double want;
	__u64 period;

	if (g->period == g->c.floor || g->calm_s < g->hold_s || g->debt_s > 0)
		return;
	peak = peak_of(g, g->hold_s);
	/* what is hidden grows as the samples do */
	want = (peak.ops * sp->sample_ns / 1e9 + sp->hidden * g->period) / fmax(in->cpus, 1) /
	       left(g, RETURN_AIM);
	if (in->max_rate)
		want = fmax(want, peak.hot_ops / (LIMIT_RETURN * in->max_rate));
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
	bool exceeded;
	double want = needed(g, sp, in, &why, &exceeded);

	g->over_s = exceeded && g->period == g->c.max ? g->over_s + fmin(sp->s, JUMP_S) : 0;
	if (want <= g->period)
		come_back(g, sp, in, out);
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
	if (g->slow >= BPF_WINDOWS && g->state != GOVERNOR_STATE_STOPPED)
		stop(g, GOVERNOR_REASON_BPF_SLOW, out);
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

static void try_again(struct governor *g, double s, struct governor_decision *out)
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
	double cpus = fmax(in->cpus, 1), now = sp->own_ns / 1e9 / sp->s / cpus;

	g->own += (now - g->own) * (1 - exp(-sp->s / OWN_S));
	out->overhead = share(sp, in, sp->samples / sp->s) + g->own;
	g->cost_ns += sp->samples * sp->sample_ns + sp->hidden * sp->s * 1e9 + sp->own_ns;
	if (!g->c.budget)
		return;
	g->debt_s += (out->overhead / g->c.budget - 1) * sp->s;
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

	*out = (struct governor_decision){ .look_s = GOVERNOR_LOOK_S };
	if (take(g, in, &sp)) {
		account(g, &sp, in, out);
		if (g->state == GOVERNOR_STATE_STOPPED) {
			try_again(g, sp.s, out);
		} else {
			grow_trust(g, sp.s);
			remember(g, &sp);
			if (g->second_s >= 1)
				end_second(g);
			check_program(g, in, out);
			if (g->state != GOVERNOR_STATE_STOPPED && g->c.budget)
				regulate(g, &sp, in, out);
		}
		check_memory(g, in, sp.s, out);
		if (!out->changed && out->overhead < g->c.budget / 4)
			out->look_s = GOVERNOR_IDLE_LOOK_S;
	}
	if (!g->c.budget || g->state == GOVERNOR_STATE_STOPPED)
		out->look_s = 1;
	out->period = g->period;
	out->state = g->state;
	out->reason = g->reason;
	out->own = g->own;
	out->cost_ns = g->cost_ns;
}
