// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two intervals of strata with the same slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "counts/snapshot.h"

#define BUCKET 20
#define GROUPS 2
#define SERIES 2

/* What slice @k of an interval has, where @base differs between intervals and between series. */
static float part_of(unsigned int base, unsigned int k)
{
	return (float)(base + 1000 * k);
}

static struct series_strata *slices_of(unsigned int base, unsigned int n)
{
	struct series_strata *x = xcalloc(1, sizeof(*x));

	x->timed = xcalloc(n, sizeof(*x->timed));
	x->timed_room = x->n_timed = n;
	for (unsigned int k = 0; k < n; k++) {
		x->cycles.part[k] = part_of(base, k);
		x->ops.part[k] = part_of(base + 500, k);
		x->timed[n - 1 - k] = (struct strata_timed){
			.slice = k, .bucket = BUCKET, .ops = part_of(base, k), .square = 1
		};
	}
	return x;
}

/* An interval with @n slices of both strata by turns. In each group, a series without strata is between two others. */
static void make(struct snapshot *s, unsigned int base, unsigned int n)
{
	*s = (struct snapshot){ .n_groups = GROUPS };
	s->strata = xcalloc(1, sizeof(*s->strata));
	s->strata->design.n = n;
	for (unsigned int k = 0; k < n; k++)
		s->strata->design.slice[k] =
			(struct strata_slice){ k % 2, base + k, base + 10 + k, 1, base + 20 };
	for (int of = 0; of < STRATUM_N; of++) {
		s->strata->ledger[of] =
			(struct ledger){ .seen = base + of, .dropped = of, .dropped_known = true };
		s->strata->period[of] = 16 * base + of;
		s->strata->event[of] = base > 50 ? of ? "b-miss" : "b-full"
				       : of	 ? "a-miss"
						 : "a-full";
	}
	s->groups = xcalloc(GROUPS, sizeof(*s->groups));
	for (unsigned int g = 0; g < GROUPS; g++) {
		s->groups[g] = (struct group){ .n_series = 1 + SERIES };
		s->groups[g].series = xcalloc(1 + SERIES, sizeof(*s->groups[g].series));
		for (unsigned int i = 0; i < SERIES; i++) {
			struct series *one = &s->groups[g].series[2 * i];

			one->op = i;
			one->strata = slices_of(base + 100 * g + 10 * i, n);
			one->strata->design = &s->strata->design;
		}
	}
}

static const struct series_strata *strata_of(const struct snapshot *s, unsigned int g,
					     unsigned int i)
{
	return s->groups[g].series[2 * i].strata;
}

/* @x has the slices from @from on as they were made with @base, and nothing in others. */
static void check_slices(const struct series_strata *x, unsigned int base, unsigned int from,
			 unsigned int n)
{
	for (unsigned int k = 0; k < STRATA_SLICES; k++) {
		const bool own = k >= from && k < from + n;

		assert_true(x->cycles.part[k] == (own ? part_of(base, k - from) : 0));
		assert_true(x->ops.part[k] == (own ? part_of(base + 500, k - from) : 0));
	}
	assert_int_equal(x->n_timed, n);
	for (unsigned int k = 0; k < n; k++) {
		const struct strata_timed *one = &x->timed[n - 1 - k]; /* as they were made */

		assert_int_equal(one->slice, from + k);
		assert_int_equal(one->bucket, BUCKET);
		assert_true(one->ops == part_of(base, k) && one->square == 1);
	}
}

/* As check_slices(), after slices 0 and 2 became one, and 1 and 3. */
static void check_merged(const struct series_strata *x, unsigned int base, unsigned int from)
{
	for (unsigned int k = 0; k < STRATA_SLICES; k++) {
		const bool own = k >= from && k < from + 2;
		const unsigned int i = k - from;

		assert_true(x->cycles.part[k] ==
			    (own ? part_of(base, i) + part_of(base, i + 2) : 0));
		assert_true(x->ops.part[k] ==
			    (own ? part_of(base + 500, i) + part_of(base + 500, i + 2) : 0));
	}
	/* pairs of slice and latency that became the same are one */
	assert_int_equal(x->n_timed, 2);
	assert_int_equal(x->n_sorted, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(x->timed[i].slice, from + i);
		assert_true(x->timed[i].ops == part_of(base, i) + part_of(base, i + 2));
		assert_true(x->timed[i].square == 2);
	}
}

static void check_design(const struct strata_design *d, unsigned int n_a, unsigned int n_b)
{
	assert_int_equal(d->n, n_a + n_b);
	for (unsigned int k = 0; k < d->n; k++) {
		const struct strata_slice *s = &d->slice[k];
		const unsigned int base = k < n_a ? 3 : 60, i = k < n_a ? k : k - n_a;

		assert_int_equal(s->of, i % 2);
		assert_true(s->ops == base + i && s->tags == base + 10 + i && s->seconds == 1);
		assert_int_equal(s->period, base + 20);
	}
}

/* Slices of the second follow those of the first, also if there is room for no more. */
static void test_fits(void **state)
{
	static const struct {
		unsigned int a, b, most;
	} rows[] = { { 4, 2, 6 }, { 4, 124, STRATA_SLICES }, { 2, 40, 100 } };

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		struct snapshot a, b;

		make(&a, 3, rows[r].a);
		make(&b, 60, rows[r].b);
		snapshot_share_design(&a, &b, rows[r].most);
		check_design(&a.strata->design, rows[r].a, rows[r].b);
		for (unsigned int g = 0; g < GROUPS; g++) {
			assert_null(a.groups[g].series[1].strata);
			assert_null(b.groups[g].series[1].strata);
			for (unsigned int i = 0; i < SERIES; i++) {
				const unsigned int base = 100 * g + 10 * i;

				assert_ptr_equal(strata_of(&a, g, i)->design, &a.strata->design);
				assert_ptr_equal(strata_of(&b, g, i)->design, &a.strata->design);
				check_slices(strata_of(&a, g, i), 3 + base, 0, rows[r].a);
				check_slices(strata_of(&b, g, i), 60 + base, rows[r].a, rows[r].b);
			}
		}
		snapshot_free(&a);
		snapshot_free(&b);
	}
}

/* The report is that of both: sums of ledgers, and what was last. */
static void test_report(void **state)
{
	static const char *const events[] = { "b-full", "b-miss" };
	struct snapshot a, b;

	(void)state;
	make(&a, 3, 4);
	make(&b, 60, 2);
	snapshot_share_design(&a, &b, STRATA_SLICES);
	for (int of = 0; of < STRATUM_N; of++) {
		assert_int_equal(a.strata->ledger[of].seen, 63 + 2 * of);
		assert_int_equal(a.strata->ledger[of].dropped, 2 * of);
		assert_int_equal(a.strata->period[of], 960 + of);
		assert_string_equal(a.strata->event[of], events[of]);
	}
	snapshot_free(&a);
	snapshot_free(&b);
}

/* Without room for all, the one that has more slices gets fewer. */
static void test_merged(void **state)
{
	static const struct {
		unsigned int a, b, most, n, whose;
	} rows[] = { { 4, 2, 5, 4, 0 }, { 2, 4, 5, 4, 1 }, { 4, 4, 7, 6, 0 }, { 4, 4, 4, 4, 2 } };

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const unsigned int whose = rows[r].whose;
		struct snapshot a, b;

		make(&a, 3, rows[r].a);
		make(&b, 60, rows[r].b);
		snapshot_share_design(&a, &b, rows[r].most);
		assert_int_equal(a.strata->design.n, rows[r].n);
		for (unsigned int g = 0; g < GROUPS; g++) {
			for (unsigned int i = 0; i < SERIES; i++) {
				const unsigned int base = 100 * g + 10 * i;

				if (whose == 1)
					check_slices(strata_of(&a, g, i), 3 + base, 0, rows[r].a);
				else
					check_merged(strata_of(&a, g, i), 3 + base, 0);
				if (whose)
					check_merged(strata_of(&b, g, i), 60 + base, rows[r].n - 2);
				else
					check_slices(strata_of(&b, g, i), 60 + base,
						     rows[r].n - rows[r].b, rows[r].b);
			}
		}
		snapshot_free(&a);
		snapshot_free(&b);
	}
}

/* A series may have samples and no latency. */
static void test_no_latencies(void **state)
{
	struct snapshot a, b;

	(void)state;
	make(&a, 3, 4);
	make(&b, 60, 2);
	for (unsigned int g = 0; g < GROUPS; g++) {
		struct series_strata *x = a.groups[g].series[0].strata;

		free(x->timed);
		x->timed = NULL;
		x->n_timed = x->timed_room = 0;
	}
	snapshot_share_design(&a, &b, 4);
	for (unsigned int g = 0; g < GROUPS; g++) {
		assert_int_equal(strata_of(&a, g, 0)->n_timed, 0);
		assert_int_equal(strata_of(&a, g, 0)->n_sorted, 0);
		assert_int_equal(strata_of(&a, g, 1)->n_timed, 2);
	}
	snapshot_free(&a);
	snapshot_free(&b);
}

/* That is what it is for: a sum of series of both has the slices of both. */
static void test_added_up(void **state)
{
	struct series sum = {};
	struct snapshot a, b;

	(void)state;
	make(&a, 3, 4);
	make(&b, 60, 4);
	snapshot_share_design(&a, &b, 8);
	series_add(&sum, &a.groups[0].series[0]);
	series_add(&sum, &b.groups[0].series[0]);
	assert_ptr_equal(sum.strata->design, &a.strata->design);
	assert_int_equal(sum.strata->n_timed, 8);
	for (unsigned int k = 0; k < 8; k++)
		assert_true(sum.strata->cycles.part[k] == part_of(k < 4 ? 3 : 60, k % 4));
	series_free(&sum);
	snapshot_free(&a);
	snapshot_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fits),	 cmocka_unit_test(test_report),
		cmocka_unit_test(test_merged),	 cmocka_unit_test(test_no_latencies),
		cmocka_unit_test(test_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
