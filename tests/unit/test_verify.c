// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was sampled beside what was counted: which differences matter, and how they are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/err.h"
#include "doctor/verify.h"

static char out[8192];

static struct verify unknown(void)
{
	struct verify v = {
		.event = "ibs_op/cnt_ctl=1/", .period = 1000000, .seconds = 10, .cpus = 2
	};

	for (int i = 0; i < VERIFY_N; i++)
		verify_unknown(&v, i, i >= VERIFY_L3 ? "no L3" : "no counters");
	return v;
}

static const char *text(const struct verify *v)
{
	FILE *f = fmemopen(out, sizeof(out), "w");

	verify_print(v, f);
	fclose(f);
	return out;
}

static json_t *json(const struct verify *v)
{
	FILE *f = fmemopen(out, sizeof(out), "w");
	struct err e;
	json_t *o;

	assert_int_equal(verify_print_json(v, NULL, f, &e), 0);
	fclose(f);
	o = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	return o;
}

/* A member of a figure. */
static json_t *member(json_t *all, enum verify_figure figure, const char *name)
{
	return json_object_get(json_array_get(json_object_get(all, "figures"), figure), name);
}

static void test_unknown(void **state)
{
	struct verify v = unknown();
	const char *first;
	json_t *o;

	(void)state;
	assert_false(verify_compared(&v));
	assert_false(verify_agrees(&v));
	first = strstr(text(&v), "no counters");
	assert_non_null(first);
	assert_null(strstr(first + 1, "no counters"));
	assert_non_null(strstr(out, "no L3"));
	assert_non_null(strstr(out, "Nothing could be compared"));
	assert_null(strstr(out, " 0 "));
	o = json(&v);
	assert_true(json_is_null(member(o, VERIFY_OPS, "sampled")));
	assert_true(json_is_null(json_object_get(o, "agrees")));
	assert_string_equal(json_string_value(member(o, VERIFY_OPS, "why")), "no counters");
	json_decref(o);
}

static void test_judged(void **state)
{
	struct verify v = unknown();
	json_t *o;

	(void)state;
	/* what never retires, and the L3, are shown only */
	verify_set(&v, VERIFY_TAGGED, 10000, 20000);
	verify_set(&v, VERIFY_L3, 500, 100);
	assert_false(verify_compared(&v));
	verify_set(&v, VERIFY_RETIRED, 10000, 10049);
	assert_true(verify_agrees(&v));
	assert_non_null(strstr(text(&v), "Samples and counters agree."));
	assert_non_null(strstr(out, "never tried on hardware"));
	verify_set(&v, VERIFY_RETIRED, 10000, 10051);
	assert_false(verify_agrees(&v));
	assert_non_null(strstr(text(&v), "DISAGREE: more than 0.5 %"));
	o = json(&v);
	assert_true(json_is_false(member(o, VERIFY_RETIRED, "agrees")));
	assert_true(json_is_false(json_object_get(o, "agrees")));
	assert_true(json_is_null(member(o, VERIFY_L3, "agrees")));
	json_decref(o);
	/* more than were tagged is wrong, too */
	verify_set(&v, VERIFY_RETIRED, 10051, 10000);
	assert_false(verify_agrees(&v));
}

/* In percent of what was counted: a tenth more, and half. */
static void test_difference(void **state)
{
	struct verify v = unknown();
	json_t *o;

	(void)state;
	verify_set(&v, VERIFY_RETIRED, 11000, 10000);
	verify_set(&v, VERIFY_TAGGED, 5000, 10000);
	o = json(&v);
	assert_true(json_real_value(member(o, VERIFY_RETIRED, "difference")) > 0.0999999);
	assert_true(json_real_value(member(o, VERIFY_RETIRED, "difference")) < 0.1000001);
	assert_true(json_real_value(member(o, VERIFY_TAGGED, "difference")) == -0.5);
	assert_true(json_is_null(member(o, VERIFY_OPS, "difference")));
	json_decref(o);
	assert_non_null(strstr(text(&v), "10.0"));
	assert_non_null(strstr(out, "-50.0"));
}

/* Some samples and periods lie at the edges, on each CPU. */
static void test_edges(void **state)
{
	struct verify v = unknown();

	(void)state;
	verify_set(&v, VERIFY_RETIRED, 100, 104);
	verify_set(&v, VERIFY_OPS, 10e6, 14e6);
	assert_true(verify_agrees(&v));
	verify_set(&v, VERIFY_RETIRED, 100, 105);
	assert_false(verify_agrees(&v));
	verify_set(&v, VERIFY_RETIRED, 100, 100);
	verify_set(&v, VERIFY_OPS, 10e6, 14.1e6);
	assert_false(verify_agrees(&v));
	verify_set(&v, VERIFY_OPS, 1e9, 1.09e9);
	assert_true(verify_agrees(&v));
	/* a counter that stands still is no measurement */
	verify_set(&v, VERIFY_OPS, 1e9, 0);
	assert_true(verify_agrees(&v));
	assert_non_null(strstr(text(&v), "counted nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_judged),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
