// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sampling in strata: the sampler of the event and another one with a hardware filter, by turns. Each
 * has its own maps, ledger and counters of tags, so that no sample belongs to both or to none.
 */
#include "session_private.h"

#include "base/clock.h"
#include "plan/plan.h"

#include <math.h>
#include <sys/random.h>

/* How often a tag of the miss stratum interrupts, until that was seen. */
#define SHARE_FIRST  (1.0 / 32)
#define SHARE_SEEN   32	  /* samples that tell */
#define SHARE_CHANGE 1.25 /* change the period if it is wrong by more */

#define RECORDED_WINDOW_S 1 /* slices of a recording are as short as those of such an interval */

struct session_strata {
	struct session_event *full;
	struct sampler *miss;
	struct sampler_opts opts; /* of the miss stratum */
	enum stratum now;
	struct snapshot last[STRATUM_N]; /* at the end of the last slice */
	struct stratified *window;
	double interval_s, mean_s, since_s, until_s;
	double seen, tagged;	   /* of the miss stratum, to find its period */
	struct session_slice done; /* the last slice that has ended */
	__u64 random;
};

static double uniform(struct session_strata *x)
{
	x->random = x->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(x->random >> 11) * 0x1p-53;
}

static struct sampler *sampler_of(const struct session_strata *x, enum stratum of)
{
	return of == STRATUM_FULL ? x->full->sampler : x->miss;
}

static __u32 reach(const struct session_event *e)
{
	return e->opts.sel.src_mask ? e->opts.sel.src_mask & PLAN_L3_MISSES : PLAN_L3_MISSES;
}

int session_strata_open(struct session *s, struct err *err)
{
	struct session_event *e = &s->setup->event[0];
	struct session_strata *x;

	if (!e->plan.strata || e->opts.miss_attr.size)
		return 0;
	s->strata = x = xcalloc(1, sizeof(*x));
	x->full = e;
	x->opts = e->opts;
	x->opts.attr = e->miss_attr;
	x->opts.attr.sample_type = e->opts.attr.sample_type;
	x->opts.attr.sample_period = strata_period(e->info.period, SHARE_FIRST);
	x->opts.event = e->miss_text;
	x->opts.filter = EVENT_FILTER_HARDWARE;
	x->opts.count_ops = true; /* or the period could not change */
	x->opts.sel.src_mask = reach(e);
	if (getrandom(&x->random, sizeof(x->random), 0) != sizeof(x->random))
		x->random = clock_ns(CLOCK_MONOTONIC);
	x->now = uniform(x) < STRATA_FULL_SHARE ? STRATUM_FULL : STRATUM_MISS;
	return sampler_open(&x->opts, &x->miss, err);
}

void session_strata_close(struct session *s)
{
	struct session_strata *x = s->strata;

	if (!x)
		return;
	sampler_close(x->miss);
	stratified_free(x->window);
	for (int of = 0; of < STRATUM_N; of++)
		snapshot_free(&x->last[of]);
	free(x);
	s->strata = NULL;
}

struct sampler *session_strata_sampler(const struct session *s)
{
	return s->strata ? s->strata->miss : NULL;
}

static void begin_slice(struct session_strata *x)
{
	x->since_s = now_s();
	x->until_s = x->since_s + strata_next_s(x->now, x->mean_s, uniform(x));
}

static void begin_window(struct session_strata *x)
{
	x->window = stratified_new(reach(x->full));
	x->mean_s = strata_slice_s(x->interval_s);
	begin_slice(x);
}

int session_strata_start(struct session *s, double interval_s, struct err *err)
{
	struct session_strata *x = s->strata;
	int ret = 0;

	x->interval_s = interval_s;
	for (enum stratum of = 0; !ret && of < STRATUM_N; of++)
		ret = sampler_snapshot(sampler_of(x, of), &x->last[of], err);
	return ret;
}

void session_strata_interval(struct session *s, double interval_s)
{
	if (s->strata)
		s->strata->interval_s = interval_s;
}

int session_strata_begin(struct session *s, struct err *err)
{
	struct session_strata *x = s->strata;
	int ret = sampler_start(sampler_of(x, x->now), err);

	begin_window(x);
	return ret;
}

double session_strata_due(const struct session *s)
{
	return s->strata ? s->strata->until_s : INFINITY;
}

/* Choose the period of the miss stratum, which is stopped, so that it costs as much as the other. */
static int adapt(struct session_strata *x, struct err *err)
{
	const double full = x->full->info.period, now = sampler_period(x->miss);
	unsigned long long want;

	if (x->seen < SHARE_SEEN)
		return 0;
	want = strata_period(full, x->seen / x->tagged);
	if (want < now * SHARE_CHANGE && now < want * SHARE_CHANGE)
		return 0;
	return sampler_set_period(x->miss, want, err);
}

/* Samples of the stratum since the end of its last slice, which no other slice has. */
static int add_slice(struct session_strata *x, enum stratum of, double end_s, struct err *err)
{
	struct snapshot now, slice;
	int ret = sampler_snapshot(sampler_of(x, of), &now, err);

	if (ret)
		return ret;
	snapshot_diff(&now, &x->last[of], &slice);
	snapshot_free(&x->last[of]);
	x->last[of] = now;
	slice.time_ns = llround((end_s - x->since_s) * 1e9);
	if (ledger_residual(&slice.ledger))
		ret = err_set(
			err, -EUCLEAN,
			"the ledger of a slice does not balance by %lld samples; this is a bug of "
			"ibscope, please report it",
			ledger_residual(&slice.ledger));
	if (stratified_is_full(x->window))
		x->mean_s *= 2;
	stratified_add(x->window, of, sampler_period(sampler_of(x, of)), 1, &slice);
	x->done = (struct session_slice){ .of = of,
					  .start_ns = llround(x->since_s * 1e9),
					  .end_ns = llround(end_s * 1e9),
					  .ops = slice.pmu.ops,
					  .tags = slice.pmu.tagged,
					  .period = sampler_period(sampler_of(x, of)) };
	if (of == STRATUM_MISS) {
		/* the last slices count most: the load changes */
		x->seen = x->seen / 2 + slice.ledger.seen;
		x->tagged = x->tagged / 2 + slice.pmu.tagged;
	}
	/* events of CPUs that were offline while theirs were stopped cannot be resumed */
	if (!ret && (slice.pmu.went || slice.pmu.came))
		ret = sampler_restart(sampler_of(x, !of), err);
	snapshot_free(&slice);
	return ret;
}

int session_strata_turn(struct session *s, struct err *err)
{
	struct session_strata *x = s->strata;
	enum stratum of;
	double end_s;
	int ret;

	if (!x || now_s() < x->until_s)
		return 0;
	of = x->now;
	sampler_stop(sampler_of(x, of));
	end_s = now_s();
	x->now = !of;
	ret = x->now == STRATUM_MISS ? adapt(x, err) : 0;
	ret = ret ?: sampler_resume(sampler_of(x, x->now), err);
	/* while the other stratum samples */
	ret = ret ?: add_slice(x, of, end_s, err);
	begin_slice(x);
	x->since_s = end_s;
	return ret;
}

int session_strata_end(struct session *s, struct snapshot *out, struct err *err)
{
	struct session_strata *x = s->strata;
	const double end_s = now_s();
	int ret = add_slice(x, x->now, end_s, err);

	if (ret)
		return ret;
	stratified_end(x->window, out);
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		out->strata->event[of] = of == STRATUM_FULL ? x->full->text : x->full->miss_text;
		out->strata->period[of] = sampler_period(sampler_of(x, of));
	}
	stratified_free(x->window);
	begin_window(x);
	x->since_s = end_s;
	return 0;
}

/* --- recordings, which have no groups: readers combine the slices --- */

unsigned int session_samplers(const struct session *s)
{
	return s->setup->options.n_events + !!s->strata;
}

struct sampler *session_sampler(const struct session *s, unsigned int n)
{
	return n < s->setup->options.n_events ? s->setup->event[n].sampler
					      : session_strata_sampler(s);
}

__u32 session_strata_reach(const struct session *s)
{
	return s->strata ? reach(s->strata->full) : 0;
}

int session_slices_start(struct session *s, struct err *err)
{
	return s->strata ? session_strata_start(s, RECORDED_WINDOW_S, err) : 0;
}

struct session_slice session_slice_now(const struct session *s)
{
	const struct session_strata *x = s->strata;

	return (struct session_slice){ .of = x->now, .start_ns = llround(x->since_s * 1e9) };
}

double session_slice_due(const struct session *s)
{
	return session_strata_due(s);
}

int session_slice_end(struct session *s, bool last, struct session_slice *out, struct err *err)
{
	struct session_strata *x = s->strata;
	int ret;

	if (!x || (!last && now_s() < x->until_s))
		return 0;
	ret = last ? add_slice(x, x->now, now_s(), err) : session_strata_turn(s, err);
	if (ret)
		return ret;
	*out = x->done;
	if (stratified_is_full(x->window)) {
		stratified_free(x->window);
		x->window = stratified_new(reach(x->full));
	}
	return 1;
}
