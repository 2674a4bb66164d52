// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The statistics of comparisons, with values worked out by hand or from tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/compare_private.h"

#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

static void test_student(void **unused)
{
	(void)unused;
	/* closed forms: of 1, 2, 3 and 4 degrees of freedom */
	assert_near(compare_student(1, 1), .5, 1e-12);
	assert_near(compare_student(1, 2), 1 - 1 / sqrt(3), 1e-12);
	assert_near(compare_student(sqrt(3), 3), .5 - 1 / M_PI, 1e-12);
	assert_near(compare_student(2, 4), 1 - 1.25 / sqrt(2), 1e-12);
	/* both sides */
	assert_near(compare_student(-2, 4), 1 - 1.25 / sqrt(2), 1e-12);
	assert_near(compare_student(0, 7), 1, 1e-12);
	/* a table of 5 % and 1 % */
	assert_near(compare_student(2.571, 5), .05, 1e-4);
	assert_near(compare_student(4.032, 5), .01, 1e-4);
	assert_near(compare_student(2.228, 10), .05, 1e-4);
	assert_near(compare_student(3.169, 10), .01, 1e-4);
	assert_near(compare_student(2.045, 29), .05, 1e-4);
	assert_near(compare_student_of(.05, 1), 12.706, 1e-3);
	assert_near(compare_student_of(.05, 5), 2.571, 1e-3);
	assert_near(compare_student_of(.05, 10), 2.228, 1e-3);
	assert_near(compare_student_of(.01, 10), 3.169, 1e-3);
	assert_near(compare_student_of(.001, 1), 636.62, 1e-2);
}

static void test_moments(void **unused)
{
	const double values[] = { 2, 4, 4, 4, 5, 5, 7, 9 }; /* mean 5, squares of differences 32 */
	struct compare_moments m = {};

	(void)unused;
	for (int i = 0; i < 8; i++)
		compare_moment(&m, values[i]);
	assert_int_equal(m.n, 8);
	assert_near(m.mean, 5, 1e-12);
	assert_near(m.square, 32, 1e-12);
}

/* Both terms are the change of y = cycles / base, in the form of compare.h. */
static void test_terms(void **unused)
{
	/* A: 2 ops per base, of 10 cycles; B: 4 of 20 */
	const struct compare_cell both[] = { { 10, 100 }, { 24, 480 } };
	const struct compare_cell no_a[] = { { 0, 0 }, { 24, 480 } },
				  no_b[] = { { 10, 100 }, { 0, 0 } };
	const struct compare_cell none[] = { { 0, 0 }, { 0, 0 } };
	const double base[] = { 5, 6 }, no_base[] = { 0, 6 };
	double term[2];

	(void)unused;
	compare_terms(both, base, term);
	assert_near(term[COMPARE_OFTEN], 30, 1e-12);
	assert_near(term[COMPARE_COST], 30, 1e-12);
	/* a cause that one side lacks has the latency of the other one */
	compare_terms(no_a, base, term);
	assert_near(term[COMPARE_OFTEN], 80, 1e-12);
	assert_near(term[COMPARE_COST], 0, 1e-12);
	compare_terms(no_b, base, term);
	assert_near(term[COMPARE_OFTEN], -20, 1e-12);
	assert_near(term[COMPARE_COST], 0, 1e-12);
	compare_terms(none, base, term);
	assert_near(term[COMPARE_OFTEN], 0, 1e-12);
	assert_near(term[COMPARE_COST], 0, 1e-12);
	compare_terms(both, no_base, term);
	assert_near(term[COMPARE_OFTEN], 4 * 15, 1e-12);
	assert_near(term[COMPARE_COST], 10 * 2, 1e-12);
}

/* Benjamini and Hochberg: of n tests, the k smallest if the k-th is at most k/n of 2 %. */
static void test_discover(void **unused)
{
	struct compare_change x[4] = {
		{ .p = .5, .finding = true }, { .p = .0125 }, { .p = .0079 }, { .p = .003 }
	};
	struct compare_change *of[4] = { &x[0], &x[1], &x[2], &x[3] };

	(void)unused;
	compare_discover(of, 4, 5); /* limits .004, .008, .012 and .016 */
	assert_false(x[0].finding);
	assert_false(x[1].finding);
	assert_true(x[2].finding);
	assert_true(x[3].finding);
	/* .0125 is within the limit of the fourth with another small one: all before it are findings, too */
	x[0].p = .0155;
	x[2].p = .0081;
	compare_discover(of, 4, 5);
	for (int i = 0; i < 4; i++)
		assert_true(x[i].finding);
	x[3].p = .02 / 5;
	compare_discover(&of[0], 1, 5); /* the smallest is the first now */
	assert_true(of[0] == &x[3]);
	assert_true(x[3].finding);
	x[3].p = .0041;
	compare_discover(&of[0], 1, 5);
	assert_false(x[3].finding);
	compare_discover(of, 0, 5);
}

/* --- blocks --- */

static struct compare *blocks_of(unsigned int a, unsigned int b)
{
	struct compare *c = compare_new(false, 10);

	c->side[COMPARE_A].n = a;
	c->side[COMPARE_B].n = b;
	return c;
}

static unsigned int freedom(unsigned int a, unsigned int b, enum compare_drawn drawn)
{
	struct compare *c = blocks_of(a, b);
	const unsigned int n = compare_freedom(c, drawn);

	compare_free(c);
	return n;
}

/* Runs of at most four blocks, at least twelve of them; overlapping ones count 1.5 times. */
static void test_freedom(void **unused)
{
	struct compare *c = blocks_of(48, 48);

	(void)unused;
	assert_int_equal(freedom(30, 20, COMPARE_SINGLY), 19);
	assert_int_equal(freedom(20, 30, COMPARE_SINGLY), 19);
	assert_int_equal(freedom(1, 30, COMPARE_SINGLY), 1);
	assert_int_equal(freedom(2, 2, COMPARE_SINGLY), 1);
	assert_int_equal(freedom(3, 3, COMPARE_SINGLY), 2);
	assert_int_equal(freedom(23, 30, COMPARE_IN_RUNS),
			 21); /* 30: 15 runs of two, and half as many */
	assert_int_equal(freedom(11, 11, COMPARE_IN_RUNS), 10);
	assert_int_equal(freedom(24, 24, COMPARE_IN_RUNS), 17); /* twelve of two */
	assert_int_equal(freedom(36, 36, COMPARE_IN_RUNS), 17); /* twelve of three */
	assert_int_equal(freedom(48, 48, COMPARE_IN_RUNS), 17); /* twelve of four */
	assert_int_equal(freedom(128, 128, COMPARE_IN_RUNS), 47);
	/* samples that are independent */
	c->side[COMPARE_A].spread = c->side[COMPARE_B].spread = true;
	assert_int_equal(compare_freedom(c, COMPARE_IN_RUNS), 47);
	compare_free(c);
}

/* Each draw has as many blocks as the data: single blocks, or runs of neighbours, where the first block follows the last. */
static void test_draw(void **unused)
{
	struct compare *c = blocks_of(48, 13);
	unsigned int most = 0, sum[COMPARE_SIDES], runs = 0;
	struct compare_draw d;
	__u64 state = 1;

	(void)unused;
	compare_draw_all(c, &d);
	for (unsigned int i = 0; i < COMPARE_BLOCKS; i++) {
		assert_int_equal(d.times[COMPARE_A][i], i < 48);
		assert_int_equal(d.times[COMPARE_B][i], i < 13);
	}
	for (int turn = 0; turn < 200; turn++) {
		memset(&d, 0xff, sizeof(d));
		compare_draw(c, turn % 2 ? COMPARE_IN_RUNS : COMPARE_SINGLY, &state, &d);
		sum[COMPARE_A] = sum[COMPARE_B] = 0;
		for (unsigned int i = 0; i < COMPARE_BLOCKS; i++) {
			assert_true(i < 48 || !d.times[COMPARE_A][i]);
			assert_true(i < 13 || !d.times[COMPARE_B][i]);
			sum[COMPARE_A] += d.times[COMPARE_A][i];
			sum[COMPARE_B] += d.times[COMPARE_B][i];
			most = d.times[COMPARE_A][i] > most ? d.times[COMPARE_A][i] : most;
		}
		assert_int_equal(sum[COMPARE_A], 48);
		assert_int_equal(sum[COMPARE_B], 13);
		/* a block alone is in no run */
		for (unsigned int i = 0; turn % 2 && i < 48; i++)
			if (d.times[COMPARE_A][i])
				assert_true(d.times[COMPARE_A][(i + 1) % 48] ||
					    d.times[COMPARE_A][(i + 47) % 48]);
		/* runs begin where a block is drawn more often than the one before */
		for (unsigned int i = 0; turn % 2 == 0 && i < 48; i++)
			runs += d.times[COMPARE_A][i] && !d.times[COMPARE_A][(i + 1) % 48] &&
				!d.times[COMPARE_A][(i + 47) % 48];
	}
	assert_true(most > 2); /* again and again */
	assert_true(runs > 100);
	compare_free(c);
}

/* n blocks vary by n/(n - 1) more than draws of them. */
static void test_interval(void **unused)
{
	struct compare *c = blocks_of(11, 16);
	const struct compare_moments m = { .n = 3, .square = 20 }, one = { .n = 1, .square = 20 },
				     same = { .n = 3 };
	const double error = sqrt(20 / 2 * 1.1);
	struct compare_change x = { .change = 3.169 * error };

	(void)unused;
	compare_interval(c, COMPARE_SINGLY, &m, &x);
	assert_near(x.p, .01, 1e-4);
	assert_near(x.low, (3.169 - 2.228) * error, 2e-3);
	assert_near(x.high, (3.169 + 2.228) * error, 2e-3);
	c->side[COMPARE_A].n = c->side[COMPARE_B].n =
		48; /* in runs of four, 17 degrees of freedom */
	x.change = 0;
	compare_interval(c, COMPARE_IN_RUNS, &m, &x);
	assert_near(x.p, 1, 1e-12);
	assert_near(x.high, 2.110 * sqrt(10 * 48. / 44), 2e-3);
	assert_near(x.low, -x.high, 1e-12);
	/* what does not vary is certain */
	compare_interval(c, COMPARE_SINGLY, &same, &x);
	assert_true(x.p == 1 && x.low == 0 && x.high == 0);
	x.change = -2;
	compare_interval(c, COMPARE_SINGLY, &one, &x);
	assert_true(x.p == 0 && x.low == -2 && x.high == -2);
	compare_free(c);
}

/* --- sums --- */

static void add(struct compare *c, enum compare_side side, __u64 ns, const char *row,
		const char *cause, double base, double ops, double cycles)
{
	const struct compare_amount a = {
		.samples = 1, .valid = ops > 0, .base = base, .ops = ops, .cycles = cycles
	};

	compare_at(c, side, ns);
	compare_add(c, compare_row(c, &row, 1), compare_cause(c, cause), &a);
}

static void test_sums(void **unused)
{
	struct compare *c = compare_new(false, 10);
	struct compare_draw d = { { { 2, 0, 3 }, { 1, 1 } } };
	struct compare_sums *sums = malloc(sizeof(*sums));
	struct compare_cell cell;

	(void)unused;
	assert_non_null(sums);
	compare_width(c, COMPARE_A, 100);
	compare_width(c, COMPARE_B, 100);
	add(c, COMPARE_A, 1000, "x", "l2", 1, 2, 10);
	add(c, COMPARE_A, 1099, "y", "l3", 1, 1, 40);
	add(c, COMPARE_A, 1100, "x", "l2", 10, 5, 100);
	add(c, COMPARE_A, 1200, "x", "l2", 100, 7, 1000);
	add(c, COMPARE_A, 1299, "x", "l2", 100, 0, 0);
	add(c, COMPARE_B, 500, "y", "dram", 3, 4, 5);
	add(c, COMPARE_B, 400, "y", "dram", 3, 4, 5); /* counts as the first time */
	add(c, COMPARE_B, 600, "x", "l2", 4, 6, 7);
	assert_int_equal(c->side[COMPARE_A].n, 3);
	assert_int_equal(c->side[COMPARE_B].n, 2);
	assert_int_equal(c->side[COMPARE_A].samples, 5);
	assert_int_equal(c->side[COMPARE_A].valid, 4);
	compare_sum(c, &d, sums);
	assert_true(sums->base[COMPARE_A] == 2 * 2 + 3 * 200);
	assert_true(sums->base[COMPARE_B] == 10);
	/* causes are numbered as they come: l2, l3, dram */
	assert_true(sums->cause[COMPARE_A][0].ops == 2 * 2 + 3 * 7);
	assert_true(sums->cause[COMPARE_A][0].cycles == 2 * 10 + 3 * 1000);
	assert_true(sums->cause[COMPARE_A][1].cycles == 2 * 40);
	assert_true(sums->cause[COMPARE_A][2].ops == 0);
	assert_true(sums->cause[COMPARE_B][0].ops == 6);
	assert_true(sums->cause[COMPARE_B][1].ops == 0);
	assert_true(sums->cause[COMPARE_B][2].ops == 8);
	assert_true(sums->cause[COMPARE_B][2].cycles == 10);
	assert_true(compare_line_sum(c, &d, 0, COMPARE_A) == 2 * 10 + 3 * 1000);
	assert_true(compare_line_sum(c, &d, 1, COMPARE_A) == 2 * 40);
	assert_true(compare_line_sum(c, &d, 1, COMPARE_B) == 10);
	cell = compare_cell_of(c, 0, 0, COMPARE_A);
	assert_true(cell.ops == 14 && cell.cycles == 1110);
	cell = compare_cell_of(c, 0, 1, COMPARE_A);
	assert_true(cell.ops == 0 && cell.cycles == 0);
	cell = compare_cell_of(c, 1, 2, COMPARE_B);
	assert_true(cell.ops == 8 && cell.cycles == 10);
	free(sums);
	compare_free(c);
}

/* Twice 128 blocks become half as many of twice the time, and nothing is lost. */
static void test_halving(void **unused)
{
	struct compare *c = compare_new(false, 10);
	const struct compare_stream *s = &c->side[COMPARE_A];

	(void)unused;
	compare_width(c, COMPARE_A, 100);
	for (unsigned int i = 0; i < 128; i++)
		add(c, COMPARE_A, 1000 + 100 * i, "x", "l2", i, 1, 2 * i);
	assert_int_equal(s->n, 128);
	assert_int_equal(s->width, 100);
	add(c, COMPARE_A, 1000 + 12800, "x", "l2", 1000, 1, 1);
	assert_int_equal(s->n, 65);
	assert_int_equal(s->width, 200);
	for (unsigned int i = 0; i < 64; i++) {
		assert_true(s->base[i] == 4 * i + 1);
		assert_true(s->part[0][i].ops == 2);
		assert_true(s->part[0][i].cycles == 8 * i + 2);
		assert_true(c->line[0].cycles[COMPARE_A][i] == 8 * i + 2);
	}
	assert_true(s->base[64] == 1000 && s->part[0][64].cycles == 1);
	for (unsigned int i = 65; i < 128; i++) {
		assert_true(s->base[i] == 0 && s->part[0][i].ops == 0);
		assert_true(c->line[0].cycles[COMPARE_A][i] == 0);
	}
	/* much later: 16384 / 128 is 128, so the width is doubled until it is 256 or more */
	add(c, COMPARE_A, 1000 + 16384 * 3, "x", "l2", 7, 1, 1);
	assert_int_equal(s->width, 400);
	assert_int_equal(s->n, 123);
	assert_true(s->base[122] == 7);
	assert_true(s->base[32] == 1000);
	compare_free(c);
}

/* --- gone --- */

/* 30 blocks of each side; those of A are near 10 cycles per base, those of B near @early until @cut, then near @late. */
static struct compare *changing(double early, unsigned int cut, double late)
{
	struct compare *c = compare_new(false, 10);

	compare_width(c, COMPARE_A, 100);
	compare_width(c, COMPARE_B, 100);
	for (unsigned int i = 0; i < 30; i++) {
		const double noise = i % 2 ? .2 : -.2;

		add(c, COMPARE_A, 1000 + 100 * i, "x", "l2", 2, 1, 2 * (10 + noise));
		add(c, COMPARE_B, 1000 + 100 * i, "x", "l2", 2, 1,
		    2 * ((i < cut ? early : late) + noise));
	}
	return c;
}

static bool gone(double early, unsigned int cut, double late, bool found, bool all_gone)
{
	struct compare *c = changing(early, cut, late);
	const bool is = compare_is_gone(c, (struct compare_part_of){ -1, -1 }, found, all_gone);

	assert_int_equal(compare_late(c), 20);
	assert_int_equal(compare_is_gone(c, (struct compare_part_of){ 0, -1 }, found, all_gone),
			 is);
	assert_int_equal(compare_is_gone(c, (struct compare_part_of){ -1, 0 }, found, all_gone),
			 is);
	c->side[COMPARE_A].spread = true;
	assert_false(compare_is_gone(c, (struct compare_part_of){ -1, -1 }, found, all_gone));
	c->side[COMPARE_A].spread = false;
	c->side[COMPARE_B].spread = true;
	assert_false(compare_is_gone(c, (struct compare_part_of){ -1, -1 }, found, all_gone));
	compare_free(c);
	return is;
}

/* A difference of the first two thirds of B of which less than a quarter is left. */
static void test_gone(void **unused)
{
	(void)unused;
	assert_true(gone(20, 20, 10, true, false));
	assert_true(gone(20, 20, 10, false, false));
	assert_true(gone(5, 20, 10, false, false));
	assert_true(gone(20, 20, 12.4, true, false));
	assert_false(gone(20, 20, 12.6, true, false));
	assert_true(gone(20, 20, 7.6, true, false));
	assert_false(gone(20, 20, 7.4, true, false));
	assert_false(gone(20, 30, 10, true, false)); /* it stays */
	assert_false(gone(10, 20, 20, true, false)); /* it came */
	/* nothing was there, as far as the first two thirds tell */
	assert_false(gone(10.05, 20, 10, false, false));
	assert_false(gone(10, 20, 10, true, false));
	/* half of it is left; where all was gone, it is there at the end only if it is more than noise */
	assert_false(gone(10.2, 20, 10.1, true, false));
	assert_true(gone(10.2, 20, 10.1, true, true));
	assert_false(gone(20, 20, 15, true, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student),	 cmocka_unit_test(test_moments),
		cmocka_unit_test(test_terms),	 cmocka_unit_test(test_discover),
		cmocka_unit_test(test_freedom),	 cmocka_unit_test(test_draw),
		cmocka_unit_test(test_interval), cmocka_unit_test(test_sums),
		cmocka_unit_test(test_halving),	 cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
