// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of strata on the live screen: kept to the bit, added up, and shown for what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "top/top.h"

#include <math.h>

#define EVENT "ibs_op/cnt_ctl=1/"
#define MISS  "ibs_op/cnt_ctl=1,l3missonly=1/"
#define BY    IBS_BY_CGROUP
#define PMU   2000000000 /* ops of a slice */

static const enum ibs_src srcs[] = { IBS_SRC_NONE, IBS_SRC_L2, IBS_SRC_L3, IBS_SRC_DRAM };
#define SRCS ARRAY_SIZE(srcs)

static unsigned int seed;

static unsigned int draw(unsigned int below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static const char *name_of(void *arg, __u64 id, enum label l)
{
	static char text[32];

	(void)arg;
	snprintf(text, sizeof(text), "%s%llu", l == LABEL_CGROUP ? "/" : "",
		 (unsigned long long)id);
	return l == LABEL_POD ? "" : text;
}

/* @n samples of a group in a slice; the first sources do not reach the miss stratum. */
static void make_series(struct group *g, enum stratum of, unsigned int n)
{
	g->series = calloc(SRCS, sizeof(*g->series));
	assert_non_null(g->series);
	for (size_t i = of == STRATUM_MISS ? SRCS - 1 : 0; i < SRCS; i++) {
		struct series *s = &g->series[g->n_series++];

		*s = (struct series){
			.op = IBS_OP_KIND_LOAD, .src = srcs[i], .samples = n + draw(3), .open_n = 1
		};
		if (!i)
			continue;
		s->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
		assert_non_null(s->buckets);
		for (unsigned int k = 0; k < s->samples; k++) {
			const unsigned int latency = (20u << 2 * i) + draw(10u << 2 * i);

			s->sum += latency;
			s->valid++;
			s->buckets[ibs_lat_bucket(latency)]++;
		}
		s->hitm = s->sum / 3;
	}
}

/* An interval of @slices by turns, with @groups. */
static void make_part(struct snapshot *out, unsigned int groups, unsigned int slices,
		      unsigned int samples)
{
	struct stratified *w = stratified_new(1U << IBS_SRC_DRAM);

	for (unsigned int k = 0; k < slices; k++) {
		const enum stratum of = k % 2 ? STRATUM_MISS : STRATUM_FULL;
		struct group *g = calloc(groups, sizeof(*g));
		struct snapshot slice = { .time_ns = of == STRATUM_FULL ? 55000000 : 45000000,
					  .by = BY,
					  .groups = g,
					  .n_groups = groups,
					  .pmu = { .cpus = 2,
						   .ops = PMU + draw(1000000),
						   .tagged = of == STRATUM_FULL ? 2000 : 30000,
						   .enabled_ns = 100,
						   .running_ns = 100 } };

		assert_non_null(g);
		for (unsigned int i = 0; i < groups; i++) {
			g[i].slot = i + 1;
			g[i].key.cgroup_id = i + 1;
			make_series(&g[i], of, samples);
			for (size_t s = 0; s < g[i].n_series; s++)
				slice.ledger.seen += g[i].series[s].samples;
		}
		slice.ledger.outcome[IBS_OUTCOME_AGGREGATED] = slice.ledger.seen;
		slice.ledger.pmu_exact = of == STRATUM_FULL;
		slice.ledger.dropped_known = true;
		slice.ledger.dropped = 7;
		stratified_add(w, of, of == STRATUM_FULL ? 1000000 : 65536 + k / 8 * 1024, 1,
			       &slice);
		snapshot_free(&slice);
	}
	stratified_end(w, out);
	stratified_free(w);
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		out->strata->event[of] = of == STRATUM_FULL ? EVENT : MISS;
		out->strata->period[of] = 1000 + of;
	}
}

static void make(struct snapshot *out, unsigned int groups, unsigned int samples)
{
	make_part(out, groups, STRATA_WINDOW, samples);
}

static struct frame frame_at(unsigned int i)
{
	return (struct frame){ .end_ns = (1795356221ULL + 2 * i) * 1000000000,
			       .by = BY,
			       .period = 1000000,
			       .cost = 0.0021 };
}

static void keep(struct history *h, const struct snapshot *s, unsigned int i)
{
	const struct frame f = frame_at(i);

	history_add(h, s, &f, name_of, NULL);
}

static void same_sum(const struct strata_sum *a, const struct strata_sum *b)
{
	assert_memory_equal(a->part, b->part, sizeof(a->part));
	assert_memory_equal(a->square, b->square, sizeof(a->square));
}

static void same_intervals(const struct series *a, const struct series *b)
{
	static const double q[] = { 0.5, 0.9, 0.99 };
	double low[2] = {}, high[2] = {};
	long from[2] = {}, to[2] = {};

	assert_int_equal(series_cycles_interval(a, &low[0], &high[0]),
			 series_cycles_interval(b, &low[1], &high[1]));
	assert_true(low[0] == low[1] && high[0] == high[1]);
	assert_int_equal(series_ops_interval(a, &low[0], &high[0]),
			 series_ops_interval(b, &low[1], &high[1]));
	assert_true(low[0] == low[1] && high[0] == high[1]);
	for (size_t i = 0; i < ARRAY_SIZE(q); i++) {
		assert_int_equal(series_percentile(a, q[i]), series_percentile(b, q[i]));
		assert_int_equal(series_percentile_interval(a, q[i], &from[0], &to[0]),
				 series_percentile_interval(b, q[i], &from[1], &to[1]));
		assert_int_equal(from[0], from[1]);
		assert_int_equal(to[0], to[1]);
	}
	assert_true(series_mean(a) == series_mean(b) || (!a->valid && !b->valid));
}

static void same_series(const struct series *a, const struct series *b)
{
	assert_int_equal(a->src, b->src);
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->valid, b->valid);
	assert_int_equal(a->sum, b->sum);
	assert_int_equal(a->ops, b->ops);
	assert_int_equal(a->cycles, b->cycles);
	assert_int_equal(a->hitm, b->hitm);
	assert_non_null(b->strata);
	same_sum(&a->strata->cycles, &b->strata->cycles);
	same_sum(&a->strata->ops, &b->strata->ops);
	assert_memory_equal(a->strata->buckets, b->strata->buckets, sizeof(a->strata->buckets));
	same_intervals(a, b);
}

static void same_report(const struct strata_report *a, const struct strata_report *b)
{
	assert_non_null(b);
	assert_int_equal(a->design.n, b->design.n);
	for (unsigned int k = 0; k < a->design.n; k++) {
		const struct strata_slice *x = &a->design.slice[k], *y = &b->design.slice[k];

		assert_int_equal(x->of, y->of);
		assert_int_equal(x->period, y->period);
		assert_true(x->ops == y->ops && x->tags == y->tags && x->seconds == y->seconds);
	}
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		assert_string_equal(a->event[of], b->event[of]);
		assert_int_equal(a->period[of], b->period[of]);
		assert_int_equal(a->ledger[of].seen, b->ledger[of].seen);
		assert_int_equal(a->ledger[of].dropped, b->ledger[of].dropped);
		assert_int_equal(a->ledger[of].dropped_known, b->ledger[of].dropped_known);
		assert_int_equal(a->ledger[of].pmu_exact, b->ledger[of].pmu_exact);
		assert_int_equal(ledger_residual(&b->ledger[of]), 0);
	}
}

/* What comes out of the history is what went in, to the last bit. */
static void test_round_trip(void **state)
{
	struct history *h = history_new();
	struct snapshot was, is;

	(void)state;
	make(&was, 3, 9);
	keep(h, &was, 0);
	history_snapshot(h, 0, &is);
	same_report(was.strata, is.strata);
	assert_int_equal(is.n_groups, was.n_groups);
	for (size_t g = 0; g < was.n_groups; g++) {
		assert_int_equal(is.groups[g].n_series, was.groups[g].n_series);
		for (size_t i = 0; i < was.groups[g].n_series; i++) {
			same_series(&was.groups[g].series[i], &is.groups[g].series[i]);
			assert_ptr_equal(is.groups[g].series[i].strata->design, &is.strata->design);
		}
	}
	snapshot_free(&was);
	snapshot_free(&is);
	history_free(h);
}

/* Of all that the history has. */
static void add_history(const struct history *h, double *ops, double *cycles, double *seconds,
			__u64 *seen)
{
	for (size_t i = 0; i < history_n(h); i++) {
		struct snapshot s;

		history_snapshot(h, i, &s);
		for (size_t g = 0; g < s.n_groups; g++) {
			for (size_t k = 0; k < s.groups[g].n_series; k++) {
				const struct series *one = &s.groups[g].series[k];
				double sum = 0;

				for (unsigned int n = 0; n < s.strata->design.n; n++)
					sum += one->strata->cycles.part[n];
				*ops += one->ops;
				*cycles += one->cycles;
				assert_true(fabs(sum - one->cycles) <= 1e-5 * sum + 1);
			}
		}
		*seconds += strata_total(&s.strata->design, STRATUM_N).seconds;
		assert_true(s.strata->design.n <= STRATA_SLICES);
		for (enum stratum of = 0; of < STRATUM_N; of++)
			*seen += s.strata->ledger[of].seen;
		snapshot_free(&s);
	}
}

static double half_width(const struct snapshot *s)
{
	struct series all = {};
	double low, high, half;

	for (size_t i = 0; i < s->n_groups; i++)
		series_add(&all, &s->groups[i].series[SRCS - 1]);
	assert_true(series_cycles_interval(&all, &low, &high));
	assert_true(low < all.cycles && all.cycles < high);
	half = (high - low) / 2 / all.cycles;
	series_free(&all);
	return half;
}

/* Old intervals are added up: not an op less, and intervals as narrow as of so much time. */
static void test_added_up(void **state)
{
	const unsigned int n = 100, groups = 60;
	struct history *h = history_new();
	double ops = 0, cycles = 0, seconds = 0, got_ops = 0, got_cycles = 0, got_seconds = 0, one;
	__u64 seen = 0, got_seen = 0, intervals = 0;
	const struct frame *oldest;
	struct snapshot s;
	size_t at = 0;

	(void)state;
	seed = 3;
	for (unsigned int i = 0; i < n; i++) {
		make(&s, groups, 3);
		seen += s.ledger.seen;
		seconds += s.time_ns / 1e9;
		for (unsigned int g = 0; g < groups; g++) {
			for (size_t k = 0; k < s.groups[g].n_series; k++) {
				ops += s.groups[g].series[k].ops;
				cycles += s.groups[g].series[k].cycles;
			}
		}
		keep(h, &s, i);
		snapshot_free(&s);
	}
	assert_true(history_n(h) < n);
	add_history(h, &got_ops, &got_cycles, &got_seconds, &got_seen);
	assert_true(fabs(got_ops - ops) < 1 && fabs(got_cycles - cycles) < 1);
	assert_true(fabs(got_seconds / seconds - 1) < 1e-9);
	assert_int_equal(got_seen, seen);
	history_snapshot(h, 0, &s);
	one = half_width(&s);
	snapshot_free(&s);
	for (size_t i = 0; i < history_n(h); i++) {
		const struct frame *f = history_frame(h, i);

		at = f->number - f->first + 1 > intervals ? i : at;
		intervals = fmax(intervals, f->number - f->first + 1);
	}
	oldest = history_frame(h, at);
	print_message("%zu intervals of %u; one is the sum of %llu\n", history_n(h), n,
		      (unsigned long long)intervals);
	assert_true(intervals >= 8); /* more slices than a design has */
	history_snapshot(h, at, &s);
	assert_int_equal(s.time_ns, oldest->time_ns);
	assert_in_range(half_width(&s) / one * 100, 50 / sqrt(intervals), 200 / sqrt(intervals));
	snapshot_free(&s);
	history_free(h);
}

/* The slices of two intervals, one after the other, with all that they have. */
static void test_two(void **state)
{
	struct snapshot a, b, both;
	struct strata_design d;
	struct strata_sum sum = {};
	double low, high, got_low, got_high;
	const struct series *was, *more;
	struct series_strata *x;
	float timed[STRATA_SLICES] = {};

	(void)state;
	make(&a, 1, 9);
	make(&b, 1, 20);
	d = a.strata->design;
	was = &a.groups[0].series[SRCS - 1];
	more = &b.groups[0].series[SRCS - 1];
	sum = was->strata->cycles;
	for (unsigned int k = 0; k < STRATA_WINDOW; k++) {
		d.slice[d.n] = b.strata->design.slice[k];
		sum.part[d.n++] = more->strata->cycles.part[k];
	}
	for (int of = 0; of < STRATUM_N; of++)
		sum.square[of] += more->strata->cycles.square[of];
	assert_true(strata_interval(&d, &sum, &low, &high));
	both = a;
	snapshot_share_design(&both, &b, STRATA_SLICES);
	series_add(&both.groups[0].series[SRCS - 1], more);
	assert_int_equal(both.strata->design.n, 2 * STRATA_WINDOW);
	assert_int_equal(both.strata->ledger[STRATUM_MISS].dropped, STRATA_WINDOW * 7);
	assert_true(series_cycles_interval(&both.groups[0].series[SRCS - 1], &got_low, &got_high));
	assert_true(got_low == low && got_high == high);
	/* latencies are in the same slices: all samples have one */
	x = both.groups[0].series[SRCS - 1].strata;
	for (size_t i = 0; i < x->n_timed; i++)
		timed[x->timed[i].slice] += x->timed[i].ops;
	for (unsigned int k = 0; k < STRATA_SLICES; k++)
		assert_true(fabsf(timed[k] - x->ops.part[k]) <= 1e-4f * timed[k]);
	snapshot_free(&both);
	snapshot_free(&b);
}

/* Neither kind of interval is added to the other. */
static void test_not_mixed(void **state)
{
	const unsigned int n = 100;
	struct history *h = history_new();
	struct series dram = { .src = IBS_SRC_DRAM, .samples = 3, .valid = 3, .ops = 3000 };
	struct group plain = { .slot = 1, .n_series = 1, .series = &dram };
	const struct snapshot other = { .groups = &plain, .n_groups = 1, .time_ns = 2000000000 };

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		struct snapshot s;

		make(&s, 60, 3);
		keep(h, i % 5 ? &s : &other, i);
		snapshot_free(&s);
	}
	for (size_t i = 0; i < history_n(h); i++) {
		struct snapshot s;

		history_snapshot(h, i, &s);
		for (size_t g = 0; g < s.n_groups; g++)
			for (size_t k = 0; k < s.groups[g].n_series; k++)
				assert_int_equal(!s.groups[g].series[k].strata, !s.strata);
		snapshot_free(&s);
	}
	history_free(h);
}

/* --- the screen --- */

static struct top_source_info info;

static struct top *start(unsigned int intervals)
{
	const struct top_opts opts = { .view.sort = TABLE_CURRENCY,
				       .interval_s = 2,
				       .info = &info,
				       .command = "ibscope top --strata auto",
				       .in_strata = true };
	struct top *t;

	info = (struct top_source_info){ .hist = { .source = "ibs", .event = EVENT },
					 .by = BY,
					 .by_possible = BY };
	t = top_new(&opts);
	for (unsigned int i = 0; i < intervals; i++) {
		const struct frame f = frame_at(i);
		struct snapshot s;

		make(&s, 4, 9);
		top_add(t, &s, &f, name_of, NULL);
		snapshot_free(&s);
	}
	return t;
}

static char *painted(struct top *t, int width)
{
	const struct screen screen = { .width = width, .height = 45, .utf8 = true };
	char *text;
	struct grid g;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	grid_open(&g, width, 45);
	top_paint(t, &screen, &g);
	grid_print(f, &g, false);
	fclose(f);
	grid_free(&g);
	return text;
}

static void has(struct top *t, const char *what, bool wanted)
{
	char *text = painted(t, 100);

	if (!strstr(text, what) == wanted)
		fail_msg("%s'%s' in:\n%s", wanted ? "no " : "", what, text);
	free(text);
}

static void test_screen(void **state)
{
	static const struct snapshot none = { .time_ns = 2000000000 };
	struct top *t = start(3);
	struct frame f = frame_at(3);

	(void)state;
	has(t, "every 2 s (1.2 s)   strata: full 0.7 s, miss 0.5 s", true);
	has(t, "95% intervals of cycles", true);
	has(t, "unseen unknown", true);
	has(t, "MISS CYCLES/s BY L3", false); /* slices do not know where */
	top_key(t, 'h');
	has(t, "est. ops", true);
	top_key(t, 'h');
	/* frozen, and without strata, as after --strata auto on another machine */
	top_key(t, TOP_LEFT);
	has(t, "strata: full", true);
	top_key(t, ' ');
	top_add(t, &none, &f, name_of, NULL);
	has(t, "strata:", false);
	top_free(t);
}

static void test_interval_keys(void **state)
{
	struct top *t = start(1);
	char command[256];

	(void)state;
	top_key(t, '-');
	has(t, "every 1 s", true);
	top_key(t, '-');
	has(t, "--strata needs intervals of 1 s or longer", true);
	has(t, "every 1 s", true);
	assert_true(top_interval(t) == TOP_STRATA_INTERVAL_S);
	top_command(t, command, sizeof(command));
	assert_string_equal(command, "ibscope top --strata auto -d 1");
	top_key(t, '+');
	has(t, "--strata needs", false);
	has(t, "every 2 s", true);
	top_free(t);
}

/* 'w' writes what `hist --json` prints. */
static void test_json(void **state)
{
	struct top *t = start(3);
	struct err err;
	char *text, *at;
	size_t n, found = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(top_write(t, true, f, &err), 0);
	fclose(f);
	at = text;
	while ((at = strstr(at, "\"strata\":[{\"name\":\"full\",\"event\":\"" EVENT "\"")))
		at += ++found > 0;
	assert_int_equal(found, 3);
	assert_non_null(strstr(text, "\"ops_buckets\":[["));
	assert_null(strstr(text, "\"estimated_ops_interval\":null"));
	free(text);
	top_free(t);
}

static struct series of_400(enum ibs_src src, __u64 samples, __u64 *buckets)
{
	memset(buckets, 0, IBS_LAT_BUCKETS * sizeof(*buckets));
	buckets[ibs_lat_bucket(400)] = samples;
	return (struct series){ .op = IBS_OP_KIND_LOAD,
				.src = src,
				.samples = samples,
				.valid = samples,
				.sum = 400 * samples,
				.buckets = buckets };
}

/* Add an interval with @more hits in the L3, which only full slices see; in three of these, or in all. */
static void add_hits(struct top *t, unsigned int i, unsigned int more, bool burst)
{
	struct stratified *w = stratified_new(1U << IBS_SRC_DRAM);
	__u64 near[IBS_LAT_BUCKETS], far[IBS_LAT_BUCKETS];
	const struct frame f = frame_at(i);
	struct snapshot s;

	for (unsigned int k = 0; k < STRATA_WINDOW; k++) {
		const bool full = !(k % 2);
		const unsigned int part = !burst ? more / 12 : k % 8 == 2 ? more / 3 : 0;
		struct series of[] = { of_400(IBS_SRC_L3, 4 + part, near),
				       of_400(IBS_SRC_DRAM, full ? 4 : 60, far) };
		struct group g = {
			.slot = 1, .key.cgroup_id = 1, .series = of + !full, .n_series = 1 + full
		};
		const struct snapshot slice = { .time_ns = 100000000,
						.groups = &g,
						.n_groups = 1,
						.pmu = { .ops = PMU,
							 .tagged = full ? 2000 : 30000 } };

		stratified_add(w, full ? STRATUM_FULL : STRATUM_MISS, 1000000, 1, &slice);
	}
	stratified_end(w, &s);
	stratified_free(w);
	s.strata->event[STRATUM_FULL] = s.strata->event[STRATUM_MISS] = EVENT;
	top_add(t, &s, &f, name_of, NULL);
	snapshot_free(&s);
}

/* Of few samples that represent most of the cycles, a row changes as its slices say. */
static void test_change(void **state)
{
	(void)state;
	for (int burst = 0; burst < 2; burst++) {
		struct top *t = start(0);

		for (unsigned int i = 0; i < 20; i++)
			add_hits(t, i, 0, false);
		has(t, "▲", false);
		add_hits(t, 20, 120, burst);
		has(t, "▲", !burst);
		top_free(t);
	}
}

/* The history keeps 6 MiB, whatever that is in intervals; a row takes this much of it. */
static void test_bytes(void **state)
{
	static const unsigned int samples[] = { 1, 9, 80 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const unsigned int groups = 50;
		struct history *h = history_new();
		struct snapshot s, one_event;
		size_t bytes, plain, all = 0;

		make(&s, groups, samples[i]);
		keep(h, &s, 0);
		bytes = history_frame(h, 0)->bytes;
		one_event = s;
		one_event.strata = NULL;
		keep(h, &one_event, 1);
		plain = history_frame(h, 0)->bytes;
		for (size_t g = 0; g < s.n_groups; g++)
			for (size_t k = 0; k < s.groups[g].n_series; k++)
				all += s.groups[g].series[k].samples;
		print_message("%zu samples: %zu bytes a row of %zu series, of one event %zu\n",
			      all / groups, bytes / groups, SRCS, plain / groups);
		/* as many as latencies, of which there are a hundred a slice */
		assert_in_range(bytes / groups, 100, 900 + 4 * all / groups);
		snapshot_free(&s);
		history_free(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_two),
		cmocka_unit_test(test_added_up),      cmocka_unit_test(test_not_mixed),
		cmocka_unit_test(test_screen),	      cmocka_unit_test(test_json),
		cmocka_unit_test(test_interval_keys), cmocka_unit_test(test_change),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
