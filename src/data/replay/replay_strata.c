// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replay_strata.h"

struct replay_strata {
	const struct trace_info *info;
	const struct trace_slice *slice;
	size_t n, at;	     /* slices, and the first one that goes on */
	size_t open;	     /* the first of those that go on to the end */
	unsigned int joined; /* slices of a stratum that are read at once: each costs a snapshot */
	struct engine *engine[STRATUM_N];
	struct snapshot last[STRATUM_N];    /* at the end of the last slice that was read */
	struct strata_slice sum[STRATUM_N]; /* of slices since then */
	unsigned int slices[STRATUM_N];
	bool unread[STRATUM_N]; /* there were samples since then */
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
	x->joined = x->n <= STRATA_SLICES ? 1 : STRATUM_N * x->n / STRATA_SLICES;
	/* what comes after the last slice counts as part of the last one of its stratum */
	x->open = x->n ? x->n - 1 : 0;
	if (x->open && x->slice[x->open - 1].counts.of != x->slice[x->open].counts.of)
		x->open--;
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
	const enum stratum of = s->pmu == STRATUM_MISS ? STRATUM_MISS : STRATUM_FULL;

	x->unread[of] = true;
	return &x->engine[of];
}

/* Read the samples of a stratum since the last call, which are those of x->sum. */
static int add_samples(struct replay_strata *x, enum stratum of, struct err *err)
{
	const struct strata_slice *sum = &x->sum[of];
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
	stratified_add(x->window, of, sum->period, x->slices[of], &slice);
	snapshot_free(&slice);
	x->sum[of] = (struct strata_slice){};
	x->slices[of] = 0;
	x->unread[of] = false;
	return 0;
}

/* May slice @i be read together with the next one of its stratum? */
static bool joins_next(const struct replay_strata *x, size_t i)
{
	const struct strata_slice *s = &x->slice[i].counts;
	size_t next = i + 1;

	while (next < x->n && x->slice[next].counts.of != s->of)
		next++;
	return next < x->n && x->slice[next].counts.period == s->period &&
	       next / STRATA_WINDOW == i / STRATA_WINDOW;
}

static int end_slice(struct replay_strata *x, struct err *err)
{
	const struct strata_slice *s = &x->slice[x->at].counts;
	struct strata_slice *sum = &x->sum[s->of];
	const bool joins = ++x->slices[s->of] < x->joined && joins_next(x, x->at);

	x->at++;
	sum->ops += s->ops;
	sum->tags += s->tags;
	sum->seconds += s->seconds;
	sum->period = s->period;
	return joins ? 0 : add_samples(x, s->of, err);
}

/* The time of the last sample of the slice that goes on: one may come late, while the other stratum samples. */
static __u64 last_time(const struct replay_strata *x)
{
	const struct trace_slice *s = &x->slice[x->at];

	return s[0].counts.of != s[1].counts.of ? s[1].end : s[0].end;
}

int replay_strata_until(struct replay_strata *x, __u64 time, struct err *err)
{
	int ret = 0;

	while (!ret && x->at < x->open && last_time(x) < time)
		ret = end_slice(x, err);
	return ret;
}

int replay_strata_end(struct replay_strata *x, struct snapshot *out, struct err *err)
{
	int ret = 0;

	if (!x->window) {
		*out = (struct snapshot){ .ledger = x->ledger };
		return 0;
	}
	while (!ret && x->at < x->n)
		ret = end_slice(x, err);
	/* samples in no slice, as those of a stratum were lost: nothing is known of what they represent */
	for (enum stratum of = 0; !ret && of < STRATUM_N; of++)
		ret = x->unread[of] ? add_samples(x, of, err) : 0;
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
