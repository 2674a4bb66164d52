// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Differences of constructed streams: one cause is changed at a time, and must be the one that is
 * named. COMPARE_SEEDS=100 build/tests/unit/test_compare prints the table of what was said, for 100
 * seeds of each; by default there are 10. Ten seeds allow for two misses, a hundred for five.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "compare/compare.h"

#define SECONDS	   60
#define PER_SECOND 600 /* samples, on average */
#define PERIOD	   100000.
#define SYMBOLS	   12
#define ROUNDS	   COMPARE_ROUNDS

enum { L1, L2, L3, DRAM, REMOTE, SOURCES };
static const char *const source[] = { "l1", "l2", "l3", "dram", "remote-dram" };
static const char *const container[] = { "web", "db" };

/* How a side behaves: what differs in B is the truth that is to be found. */
struct behaviour {
	double weight[SOURCES], latency[SOURCES];
	double container;	/* share of samples in db */
	double symbol[SYMBOLS]; /* more of its samples are from DRAM: a factor */
	unsigned int until;	/* second at which it ends; 0: it stays */
};

struct random {
	uint64_t s;
};

static double uniform(struct random *r)
{
	uint64_t x = r->s += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return ((x ^ x >> 31) >> 11) / 9007199254740992.;
}

static double normal(struct random *r)
{
	return sqrt(-2 * log(1 - uniform(r))) * cos(2 * M_PI * uniform(r));
}

static const struct behaviour usual = {
	.weight = { 80, 8, 6, 4, 2 },
	.latency = { 0, 16, 60, 400, 700 },
	.container = .5,
	.symbol = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
};

static unsigned int draw_source(struct random *r, const struct behaviour *b, double memory)
{
	double w[SOURCES], all = 0, x;

	for (unsigned int k = 0; k < SOURCES; k++)
		all += w[k] = b->weight[k] * (k >= DRAM ? memory : 1);
	x = uniform(r) * all;
	for (unsigned int k = 0; k < SOURCES - 1; k++)
		if ((x -= w[k]) < 0)
			return k;
	return SOURCES - 1;
}

/* @by_symbol: a row is a symbol of a container; else it is a container */
static void add_sample(struct compare *c, struct random *r, const struct behaviour *b, double burst,
		       bool by_symbol)
{
	char symbol[16];
	const unsigned int which = uniform(r) < b->container, fn = uniform(r) * SYMBOLS;
	const char *name[] = { container[which], by_symbol ? symbol : NULL };
	unsigned int k = draw_source(r, b, b->symbol[fn] * burst);
	uint32_t lat = b->latency[k] * exp(.35 * normal(r) - .06), row, cause;
	struct compare_amount a = { .samples = 1, .base = PERIOD };

	snprintf(symbol, sizeof(symbol), "fn%u", fn);
	row = compare_row(c, name, 2);
	cause = compare_cause(c, source[k]);
	if (k != L1) {
		a.valid = 1;
		a.ops = PERIOD;
		a.cycles = lat * PERIOD;
	}
	compare_add(c, row, cause, &a);
	if (k != L1)
		compare_latency(c, cause, ibs_lat_bucket(lat), PERIOD);
}

/* Rates and memory accesses come in bursts that differ from second to second. */
static void add_side(struct compare *c, enum compare_side side, struct random *r,
		     const struct behaviour *b)
{
	for (unsigned int t = 0; t < SECONDS; t++) {
		const struct behaviour *now = b->until && t >= b->until ? &usual : b;
		const unsigned int n = PER_SECOND * exp(.3 * normal(r) - .045);
		const double burst = exp(.2 * normal(r) - .02);

		for (unsigned int i = 0; i < n; i++) {
			compare_at(c, side, 1 + t * 1000000000ull + i * 1000000000ull / n);
			add_sample(c, r, now, burst, true);
		}
	}
}

/* What a result says: the scenarios, and anything else. */
enum said { NOTHING, SHARE, COST, BOTH, SYMBOL, CONTAINER, MOVED, GONE, OTHER, SAID };
#define RENAMED	  OTHER /* a scenario in this place: of it is said that something moved */
#define SCENARIOS (RENAMED + 1)
static const char *const said_name[] = { "nothing",   "share", "cost", "both", "symbol",
					 "container", "moved", "gone", "else" };

struct scenario {
	const char *name;
	struct behaviour b;
};

/* In the order of enum said. */
static struct scenario scenario[] = {
	[NOTHING] = { .name = "nothing" },   [SHARE] = { .name = "more from DRAM" },
	[COST] = { .name = "DRAM slower" },  [BOTH] = { .name = "both" },
	[SYMBOL] = { .name = "one symbol" }, [CONTAINER] = { .name = "one container" },
	[MOVED] = { .name = "moved" },	     [GONE] = { .name = "went away" },
	[RENAMED] = { .name = "renamed" },
};

static void make_scenarios(void)
{
	for (size_t i = 0; i < sizeof(scenario) / sizeof(*scenario); i++)
		scenario[i].b = usual;
	scenario[SHARE].b.weight[DRAM] *= 1.6;
	scenario[COST].b.latency[DRAM] *= 1.4;
	scenario[BOTH].b.weight[DRAM] *= 2;
	scenario[BOTH].b.latency[DRAM] *= 1.3;
	scenario[SYMBOL].b.symbol[3] = 4;
	scenario[GONE].b.weight[DRAM] *= 4;
	scenario[GONE].b.until = SECONDS / 2;
}

/* The samples of one symbol come under another name in B; or with @container those of all. */
static void add_moved(struct compare *c, struct random *r, bool container, bool after)
{
	for (unsigned int t = 0; t < SECONDS; t++)
		for (unsigned int i = 0; i < PER_SECOND; i++) {
			static const char *const fn[] = { "a", "b", "c", "d", "ExecScan" };
			const unsigned int which = uniform(r) * 5, k = draw_source(r, &usual, 1);
			const char *name[] = { container && after ? "db-2" : "db",
					       which == 4 && after && !container ? "Fetch"
										 : fn[which] };
			uint32_t lat = usual.latency[k] * exp(.35 * normal(r) - .06);
			const struct compare_amount a = { 1, k != L1, PERIOD, PERIOD,
							  lat * PERIOD };

			compare_at(c, after, 1 + t * 1000000000ull + i);
			compare_add(c, compare_row(c, name, 2), compare_cause(c, source[k]), &a);
		}
}

/* Only one of two containers changes, as `diff --by container` looks at them. */
static void add_container(struct compare *c, struct random *r, bool after)
{
	struct behaviour b = usual, hot = usual;

	hot.weight[DRAM] *= after ? 2 : 1;
	for (unsigned int t = 0; t < SECONDS; t++)
		for (unsigned int i = 0; i < PER_SECOND; i++) {
			const bool db = uniform(r) < .5;

			compare_at(c, after, 1 + t * 1000000000ull + i);
			b.container = hot.container = db;
			add_sample(c, r, db ? &hot : &b, 1, false);
		}
}

static struct compare *make(enum said what, unsigned int seed)
{
	struct compare *c = compare_new(false, ROUNDS);
	struct random r = { seed * 1000003ull };

	if (what == MOVED || what == RENAMED) {
		add_moved(c, &r, what == RENAMED, false);
		add_moved(c, &r, what == RENAMED, true);
	} else if (what == CONTAINER) {
		add_container(c, &r, false);
		add_container(c, &r, true);
	} else {
		add_side(c, COMPARE_A, &r, &usual);
		add_side(c, COMPARE_B, &r, &scenario[what].b);
	}
	return c;
}

static void assert_sums(const struct compare_result *r)
{
	double terms = 0, found = r->other_terms.change, rows = r->other_rows.change, factors = 0;
	const double y = r->side[COMPARE_B].y - r->side[COMPARE_A].y;

	for (size_t i = 0; i < r->n_terms; i++) {
		terms += r->term[i].change.change;
		found += i < r->n_findings ? r->term[i].change.change : 0;
	}
	for (size_t i = 0; i < r->n_row_findings; i++)
		rows += r->row[i].change.change;
	for (size_t i = 0; i < r->n_factors; i++)
		factors += r->factor[i].change.change;
	assert_true(fabs(terms - y) < 1e-9 * r->side[COMPARE_A].y);
	assert_true(fabs(found - y) < 1e-9 * r->side[COMPARE_A].y);
	assert_true(fabs(rows - y) < 1e-9 * r->side[COMPARE_A].y);
	assert_true(fabs(factors - r->quantile_change.change) < 1e-6);
}

/*
 * Rows of this name have three quarters of what the found rows explain, and a quarter of the whole change; chance would
 * spread it over 24 equal rows.
 */
static bool is_in(const struct compare_result *r, unsigned int k, const char *name)
{
	double in = 0, all = 0;

	for (size_t i = 0; i < r->n_row_findings; i++) {
		all += r->row[i].change.change;
		in += strcmp(r->row[i].name[k] ?: "", name) ? 0 : r->row[i].change.change;
	}
	return in > 0 && in > .75 * all && in > .25 * r->change.change;
}

static const struct compare_term *found(const struct compare *c, const struct compare_result *r,
					const char *cause, enum compare_kind kind)
{
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->term[i].kind == kind &&
		    !strcmp(compare_cause_name(c, r->term[i].cause), cause))
			return &r->term[i];
	return NULL;
}

static bool has_moved(const struct compare_result *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		if (r->row[i].moved >= 0)
			return true;
	return false;
}

/* Causes by their source, unless one place has it all. */
static enum said what_is_said(const struct compare *c, const struct compare_result *r)
{
	const struct compare_term *share = found(c, r, "dram", COMPARE_OFTEN),
				  *cost = found(c, r, "dram", COMPARE_COST), *first = r->term;

	if (!r->n_findings && !r->n_row_findings && !r->change.finding &&
	    !r->quantile_change.finding)
		return r->change.gone ? GONE : has_moved(r) ? MOVED : NOTHING;
	if (is_in(r, 1, "fn3"))
		return SYMBOL;
	if (is_in(r, 0, "db"))
		return CONTAINER;
	if (!r->n_findings || (share && share->change.change < 0) ||
	    (cost && cost->change.change < 0) || (first != share && first != cost))
		return OTHER;
	return share && cost ? BOTH : share ? SHARE : COST;
}

static unsigned int seeds(void)
{
	const char *n = getenv("COMPARE_SEEDS");

	return n ? atoi(n) : 10;
}

/* A row of the table. Return: how often it was right. */
static unsigned int put_row(enum said what, unsigned int n)
{
	unsigned int said[SAID] = {};
	double detectable = 0;

	for (unsigned int seed = 1; seed <= n; seed++) {
		struct compare *c = make(what, seed + 1000 * what);
		struct compare_result r;
		struct err err;

		assert_int_equal(compare_finish(c, &r, &err), 0);
		assert_sums(&r);
		said[what_is_said(c, &r)]++;
		detectable += r.detectable / n;
		compare_result_free(&r);
		compare_free(c);
	}
	printf("%-14s", scenario[what].name);
	for (unsigned int k = 0; k < SAID; k++)
		printf(said[k] ? "%10u" : "         -", said[k]);
	printf("%11.1f %%\n", detectable * 100);
	return said[what == RENAMED ? MOVED : what];
}

static void test_truth(void **state)
{
	const unsigned int n = seeds();
	bool bad = false;

	(void)state;
	make_scenarios();
	printf("%u seeds. Rows: what was changed; columns: what was said; last: a change that is "
	       "seen\n%-14s",
	       n, "");
	for (unsigned int k = 0; k < SAID; k++)
		printf("%10s", said_name[k]);
	printf("%13s\n", "detectable");
	for (unsigned int k = 0; k < SCENARIOS; k++)
		bad |= put_row(k, n) < (n < 100 ? .8 : .95) * n;
	assert_false(bad);
}

/* One side has none of a cause, or nothing at all. */
static void test_edges(void **state)
{
	struct compare *c = compare_new(false, 10);
	const char *name[] = { NULL };
	struct compare_result r;
	struct err err;

	(void)state;
	assert_int_equal(compare_finish(c, &r, &err), -ENODATA);
	assert_non_null(strstr(err.text, "A has 0 samples"));
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int i = 0; i < 1000; i++) {
			struct compare_amount a = { 1, 1, 10, 10, (s ? 500 : 100) * 10 };
			unsigned int k = compare_cause(c, s ? "dram" : "l3");

			compare_at(c, s, 0); /* no times: the order is */
			compare_add(c, compare_row(c, name, 1), k, &a);
			compare_latency(c, k, ibs_lat_bucket(s ? 500 : 100), 10);
		}
	assert_int_equal(compare_finish(c, &r, &err), 0);
	assert_sums(&r);
	assert_true(fabs(r.side[COMPARE_A].y - 100) < 1e-9 &&
		    fabs(r.side[COMPARE_B].y - 500) < 1e-9);
	for (size_t i = 0; i < r.n_terms; i++) /* neither became slower: each is on one side only */
		assert_true(r.term[i].kind == COMPARE_OFTEN || r.term[i].change.change == 0);
	assert_int_equal(r.n_findings, 2);
	compare_result_free(&r);
	compare_free(c);
}

/* More causes and blocks than there is room for are added up. */
static void test_limits(void **state)
{
	struct compare *c = compare_new(true, 10);
	struct compare_result r;
	struct err err;

	(void)state;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int i = 0; i < 5000; i++) {
			char cause[16], row[16];
			const char *name[] = { row };
			struct compare_amount a = { 1, 1, 1, 1, 100 };

			snprintf(cause, sizeof(cause), "cause%u", i % 200);
			snprintf(row, sizeof(row), "row%u", i % 3000);
			compare_at(c, s, 1 + i * 1000000000ull);
			compare_add(c, compare_row(c, name, 1), compare_cause(c, cause), &a);
		}
	assert_int_equal(compare_finish(c, &r, &err), 0);
	assert_sums(&r);
	assert_int_equal(r.n_terms, 2 * COMPARE_CAUSES);
	assert_true(r.side[0].blocks <= COMPARE_BLOCKS && r.side[0].blocks > COMPARE_BLOCKS / 2);
	assert_true(fabs(r.side[0].base - 4999) < 1e-6); /* seconds */
	assert_true(fabs(r.side[0].y - 500000 / 4999.) < 1e-6);
	compare_result_free(&r);
	compare_free(c);
}

/* Counts without times vary as independent samples do. */
static void test_spread(void **state)
{
	struct compare *c = compare_new(false, COMPARE_ROUNDS);
	const char *name[] = { "x" };
	__u64 buckets[IBS_LAT_BUCKETS] = { [50] = 9000, [80] = 1000 };
	struct compare_amount a = { 100000, 10000, 100000, 10000, 10000 * 300. };
	struct compare_result r;
	struct err err;
	double l50 = (ibs_lat_le(49) + 1 + ibs_lat_le(50)) / 2.,
	       l80 = (ibs_lat_le(79) + 1 + ibs_lat_le(80)) / 2.,
	       scale = 300 / (.9 * l50 + .1 * l80), error;

	(void)state;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		compare_spread(c, s, compare_row(c, name, 1), compare_cause(c, "dram"), &a,
			       buckets);
	assert_int_equal(compare_finish(c, &r, &err), 0);
	assert_sums(&r);
	assert_int_equal(r.side[0].samples, 100000);
	assert_true(fabs(r.side[0].y - 30) < 1e-6);
	/* of a sum of independent latencies: the root of the sum of their squares */
	error = scale * sqrt(2 * (9000 * l50 * l50 + 1000 * l80 * l80)) / 100000;
	assert_true(fabs((r.change.high - r.change.low) / 2 / (2 * error) - 1) < .25);
	assert_false(r.change.finding);
	compare_result_free(&r);
	compare_free(c);
}

/* Latencies of wide buckets: all at 300, then some of a cause at 700, in buckets that end at 256, 512 and 1024. */
static void add_wide(struct compare *c, enum compare_side side, double slow, unsigned int block)
{
	const char *name[] = { NULL };
	const __u32 edge[] = { ibs_lat_bucket(256), ibs_lat_bucket(512), ibs_lat_bucket(1024) };
	const unsigned int dram = compare_cause(c, "dram");
	const double n = 1000 + block % 3, ops[] = { n * (1 - slow), n * slow };
	const struct compare_amount a = { n, n, n, n, ops[0] * 300 + ops[1] * 700 };

	compare_at(c, side, 1 + block * COMPARE_SECOND);
	compare_add(c, compare_row(c, name, 1), dram, &a);
	for (unsigned int i = 0; i < 2; i++)
		compare_wide(c, dram, edge[i] + 1, edge[i + 1], ops[i]);
}

/* A percentile of wide buckets lies between their edges, and a change within one bucket is no finding. */
static void test_wide(void **state)
{
	static const struct {
		double slow[COMPARE_SIDES];
		double edge[COMPARE_SIDES + 1];
		bool finding;
	} cases[] = { { { 0, .1 }, { 256, 512, 1024 }, true },
		      { { .05, .1 }, { 512, 512, 1024 }, false } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct compare *c = compare_new(false, 200);
		struct compare_result r;
		struct err err;

		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			for (unsigned int t = 0; t < 20; t++)
				add_wide(c, s, cases[i].slow[s], t);
		assert_int_equal(compare_finish(c, &r, &err), 0);
		assert_sums(&r);
		assert_true(r.has_quantile && r.quantile_wide);
		assert_true(r.quantile_low[COMPARE_A] == cases[i].edge[0]);
		assert_true(r.quantile_low[COMPARE_B] == cases[i].edge[1]);
		assert_true(r.quantile_high[COMPARE_B] == cases[i].edge[2]);
		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			assert_true(r.quantile[s] > r.quantile_low[s] &&
				    r.quantile[s] <= r.quantile_high[s]);
		assert_true(r.quantile_change.change > 0);
		assert_true(r.quantile_change.high >=
			    r.quantile_high[COMPARE_B] - r.quantile_low[COMPARE_A]);
		assert_int_equal(r.quantile_change.finding, cases[i].finding);
		compare_result_free(&r);
		compare_no_latency(c);
		assert_int_equal(compare_finish(c, &r, &err), 0);
		assert_false(r.has_quantile || r.quantile_change.finding);
		compare_result_free(&r);
		compare_free(c);
	}
}

/* @n ops of a cause that waited @cycles, which is the edge of a bucket. */
static void add_ops(struct compare *c, const char *cause, double n, __u32 cycles)
{
	const char *name[] = { NULL };
	const struct compare_amount a = { n, n, n, n, n * cycles };
	const unsigned int k = compare_cause(c, cause);

	compare_add(c, compare_row(c, name, 1), k, &a);
	compare_latency(c, k, ibs_lat_bucket(cycles), n);
}

static void near(double v, double want)
{
	if (!(fabs(v - want) < 1e-6 * (1 + fabs(want))))
		fail_msg("%g is not %g", v, want);
}

/*
 * Five causes have factors of their own, those with most ops behind the percentiles. Two more, whose latencies double, have
 * one together, and explain all of the change.
 */
static void test_factors(void **state)
{
	static const char *const steady[] = { "a", "b", "c", "d", "e" };
	struct compare *c = compare_new(false, 50);
	struct compare_result r;
	struct err err;
	const double from = .99 - 970. / 996;

	(void)state;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int t = 0; t < 20; t++) {
			const double n = 10 + t % 3;

			compare_at(c, s, 1 + t * COMPARE_SECOND);
			add_ops(c, "most", 970 * n, 64);
			for (unsigned int k = 0; k < 5; k++)
				add_ops(c, steady[k], 4 * n, 512);
			add_ops(c, "f", 3 * n, s ? 1024 : 512);
			add_ops(c, "g", 3 * n, s ? 1024 : 512);
		}
	assert_int_equal(compare_finish(c, &r, &err), 0);
	assert_sums(&r);
	/* in the bucket of 480 to 512, which has 26 or 20 of 996 ops */
	near(r.quantile[COMPARE_A], 480 + 32 * from / (26. / 996));
	near(r.quantile[COMPARE_B], 480 + 32 * from / (20. / 996));
	assert_true(r.quantile_low[COMPARE_A] == 480 && r.quantile_high[COMPARE_A] == 512);
	assert_int_equal(r.n_factors, COMPARE_FACTORS);
	assert_int_equal(r.factor[0].cause, COMPARE_FACTOR_MIX);
	assert_int_equal(r.factor[6].cause, COMPARE_FACTOR_OTHERS);
	near(r.factor[6].change.change, r.quantile_change.change);
	for (unsigned int f = 0; f < 6; f++)
		near(r.factor[f].change.change, 0);
	for (unsigned int f = 1; f < 6; f++)
		assert_string_equal(compare_cause_name(c, r.factor[f].cause), steady[f - 1]);
	compare_result_free(&r);
	compare_free(c);
}

/* As many causes as have names of their own. */
static void test_most_causes(void **state)
{
	struct compare *c = compare_new(false, 2);
	struct compare_result r;
	struct err err;

	(void)state;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int t = 0; t < 10; t++)
			for (unsigned int k = 0; k < COMPARE_CAUSES; k++) {
				char name[16];

				snprintf(name, sizeof(name), "cause%u", k);
				compare_at(c, s, 1 + t * COMPARE_SECOND);
				add_ops(c, name, 10, 64);
			}
	assert_int_equal(compare_finish(c, &r, &err), 0);
	assert_sums(&r);
	assert_int_equal(r.n_terms, 2 * COMPARE_CAUSES);
	near(r.side[COMPARE_A].y, 64);
	assert_true(r.has_quantile);
	near(r.quantile[COMPARE_A], 60 + 4 * .99);
	near(r.quantile_change.change, 0);
	compare_result_free(&r);
	compare_free(c);
}

/* Sixty seconds with slow ops on side B in the first 40 of them, and in the second @late, if that is not 0. */
static void slow_until(struct compare *c, unsigned int late, bool stays)
{
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int t = 0; t < 60; t++) {
			const double n = 10 + t % 3, slow = !s			? 0
							    : t < 40 || stays	? .05
							    : late && t == late ? .4
										: 0;

			compare_at(c, s, 1 + t * COMPARE_SECOND);
			add_ops(c, "dram", 1000 * n * (1 - slow), 512);
			if (slow > 0)
				add_ops(c, "dram", 1000 * n * slow, 1024);
		}
}

/* A percentile that has returned to its old value in the last third is not reported, unless one second there is slow. */
static void test_percentile_gone(void **state)
{
	(void)state;
	for (unsigned int late = 38; late < 60; late++) {
		struct compare *c = compare_new(false, 50);
		struct compare_result r;
		struct err err;

		slow_until(c, late < 40 ? 0 : late, late == 39);
		assert_int_equal(compare_finish(c, &r, &err), 0);
		assert_true(r.quantile[COMPARE_A] <= 512 && r.quantile[COMPARE_B] > 960);
		assert_int_equal(r.quantile_change.gone, late == 38);
		assert_int_equal(r.quantile_change.finding, late != 38);
		compare_result_free(&r);
		compare_free(c);
	}
}

/* What a side is in each second: ops of a cause with a latency, in a row, and ops without one. */
static void add_second(struct compare *c, enum compare_side side, unsigned int second,
		       double dram_latency, double l3_ops)
{
	const double noise = second % 2 ? 1 : -1; /* half of the seconds are a little slower */
	const struct compare_amount dram = { .samples = 150,
					     .valid = 100,
					     .base = 9000,
					     .ops = 1000,
					     .cycles = 1000 * (dram_latency + noise) },
				    l3 = { .samples = 200,
					   .valid = 200,
					   .base = 1000,
					   .ops = l3_ops,
					   .cycles = l3_ops * 40 },
				    none = { .samples = 7 };
	__u32 f = compare_row(c, (const char *[]){ "web", "f" }, 2),
	      g = compare_row(c, (const char *[]){ "web", NULL }, 2);

	compare_at(c, side, 5 + second * COMPARE_SECOND);
	compare_add(c, f, compare_cause(c, "dram"), &dram);
	compare_add(c, g, compare_cause(c, "l3"), &l3);
	compare_add(c, g, compare_cause(c, "none"), &none);
	compare_latency(c, compare_cause(c, "dram"), ibs_lat_bucket(300), 990);
	compare_latency(c, compare_cause(c, "dram"), ibs_lat_bucket(side ? 1000 : 600), 10);
}

/* Sums, terms and rows, worked out by hand. */
static void test_numbers(void **state)
{
	struct compare *c = compare_new(false, 50);
	const struct compare_term *slower, *more;
	struct compare_result r;
	struct err err;

	(void)state;
	for (int s = 0; s < 2; s++)
		compare_width(c, s, COMPARE_SECOND);
	for (unsigned int second = 0; second < 20; second++) {
		add_second(c, COMPARE_A, second, 300, 400);
		add_second(c, COMPARE_B, second, 400, 200);
	}
	assert_int_equal(compare_finish(c, &r, &err), 0);
	for (int s = 0; s < 2; s++) {
		const double l3 = s ? 200 : 400;

		assert_int_equal(r.side[s].samples, 20 * 357);
		assert_int_equal(r.side[s].valid, 20 * 300);
		near(r.side[s].effective,
		     20 * (1000 + l3) * (1000 + l3) / (1000. * 1000 / 100 + l3 * l3 / 200));
		near(r.side[s].base, 20 * 10000);
		near(r.side[s].y, s ? 40.8 : 31.6);
		near(r.side[s].seconds, 19 * COMPARE_SECOND / 1e9);
		assert_int_equal(r.side[s].blocks, 20);
	}
	near(r.change.change, 9.2);
	assert_true(r.change.low < 9.2 && r.change.high > 9.2 && r.change.low > 9);
	assert_true(r.change.finding && !r.change.gone);
	/* dram: 0.1 ops, which became 100 cycles slower; l3: 0.04 became 0.02 ops of 40 cycles */
	assert_int_equal(r.n_terms, 6);
	assert_int_equal(r.n_findings, 2);
	slower = &r.term[0];
	more = &r.term[1];
	assert_string_equal(compare_cause_name(c, slower->cause), "dram");
	assert_int_equal(slower->kind, COMPARE_COST);
	near(slower->a, 300);
	near(slower->b, 400);
	near(slower->change.change, 10);
	assert_string_equal(compare_cause_name(c, more->cause), "l3");
	assert_int_equal(more->kind, COMPARE_OFTEN);
	near(more->a, 0.04);
	near(more->b, 0.02);
	near(more->change.change, -0.8);
	for (size_t i = 2; i < 6; i++) {
		near(r.term[i].change.change, 0);
		assert_false(r.term[i].change.finding);
	}
	near(r.other_terms.change, 0);
	/* rows */
	assert_int_equal(r.n_rows, 2);
	assert_int_equal(r.n_row_findings, 2);
	assert_string_equal(r.row[0].name[0], "web");
	assert_string_equal(r.row[0].name[1], "f");
	assert_null(r.row[1].name[1]);
	near(r.row[0].a, 30);
	near(r.row[0].b, 40);
	near(r.row[0].change.change, 10);
	assert_int_equal(r.row[0].valid, 40 * 100);
	assert_int_equal(r.row[0].cause, slower->cause);
	assert_int_equal(r.row[0].kind, COMPARE_COST);
	assert_int_equal(r.row[0].moved, -1);
	near(r.row[1].change.change, -0.8);
	assert_int_equal(r.row[1].valid, 40 * 200);
	assert_int_equal(r.row[1].cause, more->cause);
	assert_int_equal(r.row[1].kind, COMPARE_OFTEN);
	near(r.other_rows.change, 0);
	/* one of a hundred is slower than the bucket of 300 reaches */
	assert_true(r.has_quantile && !r.quantile_wide);
	near(r.quantile[COMPARE_A], ibs_lat_le(ibs_lat_bucket(300)));
	near(r.quantile[COMPARE_B], ibs_lat_le(ibs_lat_bucket(300)));
	near(r.quantile_change.change, 0);
	/* the sum, terms of two causes that have ops, two rows, the percentile, its mix and its factor */
	assert_int_equal(r.tests, 1 + 4 + 2 + 1 + r.n_factors);
	assert_true(r.detectable > 0 && r.detectable < 0.05);
	near(compare_needed(&r, 2 * r.detectable), 20 * 357 / 4.);
	assert_true(r.longer > 0 && r.longer < 0.1);
	compare_result_free(&r);
	compare_free(c);
	compare_free(NULL);
}

/* What one row lost, another won that is called nearly the same: neither is a finding. */
static void test_moved(void **state)
{
	static const struct {
		const char *before[2], *after[2];
		bool moved;
	} cases[] = {
		{ { "web", "old" }, { "web", "new" }, true }, /* within a container */
		{ { "web", "f" }, { "web2", "f" }, true },    /* the container has another name */
		{ { "web", "f" }, { "web2", "g" }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct compare *c = compare_new(false, 50);
		struct compare_result r;
		struct err err;

		for (int s = 0; s < 2; s++)
			for (unsigned int second = 0; second < 20; second++) {
				const double slow = 300 + (second % 2 ? 1 : -1);
				const struct compare_amount a = { 100, 100, 1000, 1000,
								  1000 * slow },
							    b = { 50, 50, 500, 500,
								  500 * (slow + 200 * s) };
				const char *const same[] = { "db", "same" };

				compare_at(c, s, 5 + second * COMPARE_SECOND);
				compare_add(c,
					    compare_row(c, s ? cases[i].after : cases[i].before, 2),
					    compare_cause(c, "dram"), &a);
				compare_add(c, compare_row(c, same, 2), compare_cause(c, "dram"),
					    &b);
			}
		assert_int_equal(compare_finish(c, &r, &err), 0);
		assert_int_equal(r.n_rows, 3);
		assert_int_equal(r.n_row_findings, cases[i].moved ? 1 : 3);
		for (size_t k = 0; k < 3; k++) {
			const bool other = !strcmp(r.row[k].name[0], "db");
			const double size = fabs(r.row[k].change.change);

			assert_int_equal(r.row[k].change.finding, other || !cases[i].moved);
			assert_int_equal(r.row[k].moved >= 0, !other && cases[i].moved);
			near(size, other ? 200. / 3 : 200);
		}
		compare_result_free(&r);
		compare_free(c);
	}
}

/* Too little to compare. */
static void test_lacking(void **state)
{
	struct compare_amount some = {
		.samples = 10, .valid = 10, .base = 0, .ops = 10, .cycles = 10
	};
	struct compare_result r;
	struct err err;

	(void)state;
	for (int base = 0; base < 2; base++)
		for (unsigned int moments = 7; moments < 11; moments++) {
			struct compare *c = compare_new(false, 10);
			const char *want;

			some.base = 10. * base;
			for (int s = 0; s < 2; s++)
				compare_width(c, s, COMPARE_SECOND);
			for (int s = 0; s < 2; s++)
				for (unsigned int i = 0; i < 10; i++) {
					compare_at(c, s,
						   5 + (i < moments ? i : moments - 1) *
								   COMPARE_SECOND);
					compare_add(c, compare_row(c, (const char *[]){ "x" }, 1),
						    compare_cause(c, "l2"), &some);
				}
			want = moments < 8 ? "A has samples of 7 moments: at least 8 are needed"
			       : !base	   ? "A has no ops to divide its cycles by"
					   : NULL;
			assert_int_equal(compare_finish(c, &r, &err), want ? -ENODATA : 0);
			if (want)
				assert_ptr_equal(strstr(err.text, want), err.text);
			compare_result_free(&r);
			compare_free(c);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	    cmocka_unit_test(test_moved),
		cmocka_unit_test(test_lacking),	    cmocka_unit_test(test_edges),
		cmocka_unit_test(test_limits),	    cmocka_unit_test(test_spread),
		cmocka_unit_test(test_wide),	    cmocka_unit_test(test_factors),
		cmocka_unit_test(test_most_causes), cmocka_unit_test(test_percentile_gone),
		cmocka_unit_test(test_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
