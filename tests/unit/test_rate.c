// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which periods are too short, and what to use instead. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "perf/sample_cost.h"
#include "session/session.h"

#define SECOND 1000000000ull

static char text[512];

/* Two CPUs for a second. */
static struct snapshot second(__u64 seen, __u64 unseen)
{
	return (struct snapshot){
		.ledger = { .seen = seen,
			    .pmu_samples = seen + unseen,
			    .unseen = unseen,
			    .pmu_exact = true,
			    .undelivered_known = true },
		.pmu = { .cpus = 2, .enabled_ns = 2 * SECOND, .running_ns = 2 * SECOND },
	};
}

static bool warns_of(const struct snapshot *s, __u64 period)
{
	memset(text, 0, sizeof(text));
	return sampling_rate_warning(s, period, false, text, sizeof(text));
}

static bool warns(__u64 seen, __u64 unseen, __u64 period, __u64 throttled)
{
	struct snapshot s = second(seen, unseen);

	s.pmu.enabled_ns = 3 * SECOND; /* beside another user */
	s.pmu.throttled = throttled;
	return warns_of(&s, period);
}

static void test_cost(void **state)
{
	struct snapshot s = second(0, 0);

	(void)state;
	/* 34,483 a second on a CPU are a tenth of its time */
	assert_false(warns(68900, 0, 100000, 0));
	assert_true(warns(69000, 0, 100000, 0));
	assert_true(warns(200000, 0, 20000, 0));
	assert_non_null(
		strstr(text, "100,000 samples a second on each CPU cost about 29% of its time"));
	assert_non_null(strstr(text, "a period of at least 58,000 (-c)"));
	/* with -F there is no period */
	assert_true(warns(200000, 0, 0, 0));
	assert_non_null(strstr(text, "at most 34,482 Hz (-F)"));
	assert_false(warns(0, 0, 0, 0));
	/* before the first tick */
	s.pmu.running_ns = s.pmu.enabled_ns = 0;
	assert_false(warns_of(&s, 100000));
}

static void test_delivery(void **state)
{
	(void)state;
	assert_true(warns(750, 250, 10000, 0));
	assert_non_null(strstr(text, "25% of the samples were never delivered"));
	assert_non_null(strstr(text, "period of 10,000 is too short; use at least 100,000 (-c)"));
	assert_false(warns(950, 50, 10000, 0));
	/* something else is the cause */
	assert_false(warns(750, 250, 1000000, 0));
	assert_false(warns(750, 250, 10000, 1));
}

/* Samples that raised no interrupt are known by their tags alone. */
static void test_tags(void **state)
{
	struct snapshot s = second(26, 0);

	(void)state;
	s.ledger.undelivered = 9974;
	assert_true(warns_of(&s, 1008));
	assert_string_equal(text,
			    "99.74% of the samples were never delivered: the period of 1,008 is "
			    "too short; use at least 100,000 (-c)");
	/* those that the driver dropped are among them */
	s.ledger.unseen = 9000;
	assert_true(warns_of(&s, 1008));
	assert_non_null(strstr(text, "99.74%"));
	s.ledger.unseen = 0;
	assert_false(warns_of(&s, 20000));
	assert_true(warns_of(&s, 19984));
	/* tags of another user */
	s.pmu.enabled_ns += SECOND;
	assert_false(warns_of(&s, 1008));
	/* when sampling starts and stops, and on an idle machine */
	s = second(0, 0);
	s.ledger.undelivered = 99;
	assert_false(warns_of(&s, 1008));
	s = second(1000, 0);
	s.ledger.undelivered = 115;
	assert_false(warns_of(&s, 1008));
	s.ledger.undelivered = 116;
	assert_true(warns_of(&s, 1008));
}

static void test_unknown(void **state)
{
	struct snapshot s = second(1000, 0);

	(void)state;
	s.ledger.undelivered_known = false;
	assert_true(warns_of(&s, 1008));
	assert_string_equal(text, "with a period of 1,008, processors may lose most samples, and "
				  "the loss cannot be measured here: "
				  "use at least 100,000 (-c)");
	assert_false(warns_of(&s, 20000));
	assert_false(warns_of(&s, 0));
	/* what is known comes first */
	s.ledger.unseen = 1000;
	assert_true(warns_of(&s, 1008));
	assert_non_null(strstr(text, "50% of the samples"));
	/* what a filter drops is not lost, but what it lets through costs as much */
	assert_false(sampling_rate_warning(&s, 1008, true, text, sizeof(text)));
	s = second(200000, 0);
	assert_true(sampling_rate_warning(&s, 1008, true, text, sizeof(text)));
}

/* Before sampling: what a sample costs, and how many a busy CPU takes. */
static void test_refused(void **state)
{
	const struct sample_cost cheap = { .ns = 500, .per_ns = 2 },
				 dear = { .ns = 2900, .per_ns = 2 },
				 slow = { .ns = 500, .per_ns = 0.5 };
	const struct sample_cost idle = { .ns = 100 };
	struct err err = { "" };

	(void)state;
	/* a quarter: the ops between two samples take three times the cost of one */
	assert_int_equal(sampling_rate_check(&cheap, 3008, 0, &err), 0);
	assert_int_equal(sampling_rate_check(&cheap, 2992, 0, &err), -ERANGE);
	assert_int_equal(sampling_rate_check(&dear, 17408, 0, &err), 0);
	assert_int_equal(sampling_rate_check(&dear, 1008, 0, &err), -ERANGE);
	assert_string_equal(
		err.text,
		"-c: with a period of 1,008, samples take 85% of a busy CPU's time, at 2900 ns "
		"each, as measured on this machine, and processors lose samples that come so fast: "
		"use -c 17408 or more, or add --any-period to sample nevertheless");
	/* a slow CPU, which takes few of them */
	assert_int_equal(sampling_rate_check(&slow, 496, 0, &err), -ERANGE);
	assert_non_null(strstr(err.text, "at 500 ns each, as measured on this machine"));
	assert_non_null(strstr(err.text, "use -c 752 or more"));
	assert_int_equal(sampling_rate_check(&slow, 752, 0, &err), 0);
	/* what cannot be measured is as published */
	assert_int_equal(sampling_rate_check(NULL, 19984, 0, &err), -ERANGE);
	assert_non_null(strstr(err.text, "at 2900 ns each, as published"));
	assert_non_null(strstr(err.text, "use -c 26112 or more"));
	assert_int_equal(sampling_rate_check(NULL, 26112, 0, &err), 0);
	assert_int_equal(sampling_rate_check(&idle, 26112, 0, &err), 0);
	assert_int_equal(sampling_rate_check(&idle, 19984, 0, &err), -ERANGE);
}

static void test_refused_frequency(void **state)
{
	const struct sample_cost cheap = { .ns = 500, .per_ns = 2 };
	struct err err = { "" };

	(void)state;
	assert_int_equal(sampling_rate_check(NULL, 0, 86206, &err), 0);
	assert_int_equal(sampling_rate_check(NULL, 0, 86207, &err), -ERANGE);
	assert_non_null(strstr(err.text, "-F: 86,207 samples a second take 25% of a CPU's time"));
	assert_non_null(strstr(err.text, "use -F 86206 or less, or add --any-period"));
	assert_int_equal(sampling_rate_check(&cheap, 0, 500000, &err), 0);
	assert_int_equal(sampling_rate_check(&cheap, 0, 500001, &err), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),	cmocka_unit_test(test_delivery),
		cmocka_unit_test(test_tags),	cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_refused_frequency)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
