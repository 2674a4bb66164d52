// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replay_strata.h"

/* More slices are read in steps, each of both strata. */
#define STEPS (STRATA_SLICES / STRATUM_N)

struct replay_strata {
	const struct trace_info *info;
	const struct trace_slice *slice;
	size_t n, steps, step; /* slices; steps, and the one that goes on */
	struct engine *engine[STRATUM_N];
	struct snapshot last[STRATUM_N]; /* at the end of the last step */
	__u64 period[STRATUM_N];
	struct stratified *window; /* NULL: ended, with this: */
	struct ledger ledger;
};

struct replay_strata *replay_strata_new(const struct trace *t)
{
	struct replay_strata *x;

	if (!trace_has_strata(trace_info(t)))
		return NULL;
	x = xcalloc(1, sizeof(*x));
	x->info = trace_info(t);
	x->slice = trace_slices(t, &x->n);
	x->steps = x->n <= STRATA_SLICES ? x->n : STEPS;
	x->window = stratified_new(x->info->pmu[STRATUM_FULL].reach);
	return x;
}

void replay_strata_free(struct replay_strata *x)
{
	for (int of = 0; x && of < STRATUM_N; of++) {
		engine_close(x->engine[of]);
		snapshot_free(&x->last[of]);
	}
	if (x)
		stratified_free(x->window);
	free(x);
}

struct engine **replay_strata_engine(struct replay_strata *x, const struct trace_sample *s)
{
	return &x->engine[s->pmu == STRATUM_MISS ? STRATUM_MISS : STRATUM_FULL];
}

/* The first slice of a step. */
static size_t first_of(const struct replay_strata *x, size_t step)
{
	return step * x->n / x->steps;
}

/* Samples of a stratum since the last step that had one of its slices. */
static int add_samples(struct replay_strata *x, enum stratum of, const struct strata_slice *sum,
		       struct err *err)
{
	struct snapshot now = {}, slice;
	int ret = x->engine[of] ? engine_snapshot(x->engine[of], &now, err) : 0;

	if (ret)
		return ret;
	snapshot_diff(&now, &x->last[of], &slice);
	snapshot_free(&x->last[of]);
	x->last[of] = now;
	slice.pmu.ops = sum->ops;
	slice.pmu.tagged = sum->tags;
	slice.time_ns = sum->seconds * 1e9;
	stratified_add(x->window, of, &slice);
	snapshot_free(&slice);
	return 0;
}

static int end_step(struct replay_strata *x, struct err *err)
{
	struct strata_slice sum[STRATUM_N] = {};
	int ret = 0;

	for (size_t i = first_of(x, x->step); i < first_of(x, x->step + 1); i++) {
		const struct strata_slice *s = &x->slice[i].counts;

		sum[s->of].ops += s->ops;
		sum[s->of].tags += s->tags;
		sum[s->of].seconds += s->seconds;
	}
	for (enum stratum of = 0; !ret && of < STRATUM_N; of++)
		if (sum[of].seconds > 0)
			ret = add_samples(x, of, &sum[of], err);
	x->step++;
	return ret;
}

int replay_strata_until(struct replay_strata *x, __u64 time, struct err *err)
{
	int ret = 0;

	/* what comes after the last slice counts as part of it */
	while (!ret && x->step + 1 < x->steps && x->slice[first_of(x, x->step + 1) - 1].end < time)
		ret = end_step(x, err);
	return ret;
}

int replay_strata_end(struct replay_strata *x, struct snapshot *out, struct err *err)
{
	int ret = 0;

	if (!x->window) {
		*out = (struct snapshot){ .ledger = x->ledger };
		return 0;
	}
	while (!ret && x->step < x->steps)
		ret = end_step(x, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < x->n; i++)
		x->period[x->slice[i].counts.of] = x->slice[i].counts.period;
	stratified_end(x->window, out);
	stratified_free(x->window);
	x->window = NULL;
	x->ledger = out->ledger;
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		out->strata->event[of] = x->info->pmu[of].name;
		out->strata->period[of] = x->period[of];
	}
	return 0;
}
