// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Conditions of --flight-on: how they are read, and which second makes one true. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "flight/flight_when.h"

static __u64 web_dram[IBS_LAT_BUCKETS], web_l2[IBS_LAT_BUCKETS], db_dram[IBS_LAT_BUCKETS];

#define ROW(name, source, n, latency, buckets_)               \
	{                                                     \
		.label[LABEL_CONTAINER] = (name), .series = { \
			.src = (source),                      \
			.samples = (n),                       \
			.valid = (n),                         \
			.sum = (n) * (latency),               \
			.cycles = (n) * (latency)*1000,       \
			.buckets = (buckets_)                 \
		}                                             \
	}

/* 200 samples of 1000 cycles and 50 of 20, and 40 of 500 cycles. */
static struct row row[] = {
	ROW("web", IBS_SRC_DRAM, 200, 1000, web_dram),
	ROW("web", IBS_SRC_L2, 50, 20, web_l2),
	ROW("db", IBS_SRC_DRAM, 40, 500, db_dram),
};
static struct rows rows = { 3, row };
static struct snapshot counts;

static bool is_true(const char *text)
{
	struct flight_condition c;
	struct err err;
	char value[64];

	if (flight_condition_parse(text, &c, &err))
		fail_msg("%s: %s", text, err.text);
	return flight_condition_true(&c, &(struct flight_second){ 2, &counts, &rows }, value,
				     sizeof(value));
}

static int setup(void **state)
{
	(void)state;
	web_dram[ibs_lat_bucket(1000)] = 200;
	web_l2[ibs_lat_bucket(20)] = 50;
	db_dram[ibs_lat_bucket(500)] = 40;
	return 0;
}

static void test_values(void **state)
{
	(void)state;
	/* of two seconds */
	assert_true(is_true("samples == 145"));
	assert_false(is_true("samples != 145"));
	assert_true(is_true("container == web && samples == 125"));
	assert_true(is_true("container != web && samples <= 20 && samples >= 20"));
	assert_true(is_true("container == web && src == l2 && mean == 20 && p50 < 30"));
	assert_true(is_true("src == dram && p50 >= 1000 && p50 < 1130"));
	assert_true(is_true("container == db && p90 >= 500"));
	assert_true(is_true("miss_cycles == 110500000"));
	/* 200000 + 1000 cycles in 250 samples */
	assert_true(is_true("container == 'web' && mean == 804"));
}

static void test_texts(void **state)
{
	(void)state;
	assert_true(is_true("container =~ \"w*\" && samples == 125"));
	assert_true(is_true("container =~ * && samples == 145"));
	assert_true(is_true("container == we && samples == 0"));
	assert_true(is_true("container =~ [w]eb && src =~ *ram && samples == 100"));
}

/* What is unknown makes a test false, whichever way it compares. */
static void test_unknown(void **state)
{
	static const char *const how[] = { "<", "<=", ">", ">=", "==", "!=" };
	char text[128];

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		/* 40 samples */
		snprintf(text, sizeof(text), "container == db && p99 %s 500", how[i]);
		assert_false(is_true(text));
		snprintf(text, sizeof(text), "container == none && mean %s 0", how[i]);
		assert_false(is_true(text));
		snprintf(text, sizeof(text), "samples_unseen %s 0", how[i]);
		assert_false(is_true(text));
		row[2].series.cycles = 0;
		snprintf(text, sizeof(text), "miss_cycles %s 0", how[i]);
		assert_false(is_true(text));
		row[2].series.cycles = 20000000;
	}
	assert_true(is_true("container == none && miss_cycles == 0"));
}

static void test_ledger(void **state)
{
	(void)state;
	assert_false(is_true("samples_lost > 0"));
	counts.ledger.outcome[IBS_OUTCOME_LOST_READ] = 3;
	counts.ledger.outcome[IBS_OUTCOME_LOST_LEASE] = 1;
	assert_true(is_true("samples_lost == 2"));
	counts.ledger.pmu_exact = true;
	assert_true(is_true("samples_unseen == 0 && samples_lost > 1"));
	counts.ledger.unseen = 8;
	assert_true(is_true("samples_unseen == 4"));
	memset(&counts, 0, sizeof(counts));
}

/* --- parsing --- */

static struct flight_condition parsed(const char *text)
{
	struct flight_condition c;
	struct err err;

	if (flight_condition_parse(text, &c, &err))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(c.text, text);
	return c;
}

/* @column: where it is wrong, from 1; @why: how the reason begins */
static void refused(const char *text, int column, const char *why)
{
	struct flight_condition c;
	struct err err = { "" };
	char want[300];

	snprintf(want, sizeof(want), "--flight-on: column %d: %s", column, why);
	assert_int_equal(flight_condition_parse(text, &c, &err), -EINVAL);
	err.text[strlen(want)] = 0;
	assert_string_equal(err.text, want);
}

static void test_parse(void **state)
{
	struct flight_condition c = parsed("p99>2K&&container==\"a b\"for 2m  ");

	(void)state;
	assert_int_equal(c.n_tests, 2);
	assert_false(c.test[0].of_key);
	assert_true(c.test[0].number == 2000);
	assert_true(c.test[1].of_key);
	assert_int_equal(c.test[1].what, LABEL_CONTAINER);
	assert_string_equal(c.test[1].text, "a b");
	assert_true(c.for_s == 120);
	assert_int_equal(flight_condition_labels(&c), 1 << LABEL_CONTAINER);
	/* a second, unless it says otherwise */
	c = parsed("\tp50 < 1");
	assert_true(c.for_s == 1);
	assert_int_equal(flight_condition_labels(&c), 0);
	assert_true(parsed("p50 < 1 for 1s").for_s == 1);
	assert_true(parsed("p50 < 1 for 1h").for_s == 3600);
	c = parsed("comm == 'x' && p99 > 1 && pid != 3 && src =~ d*");
	assert_int_equal(flight_condition_labels(&c),
			 1 << LABEL_COMM | 1 << LABEL_PID | 1 << LABEL_SRC);
	/* the first key, and the last one that has counters */
	assert_int_equal(parsed("cgroup == / && mean > 1").test[0].what, LABEL_CGROUP);
	assert_int_equal(parsed("itlb == x && mean > 1").test[0].what, LABEL_ITLB);
}

static void test_refused(void **state)
{
	static const char what[] = "expected a key or a value, such as container or p99",
			  of_value[] = "expected <, <=, >, >=, == or != after a value",
			  of_key[] = "expected ==, != or =~ after a key",
			  number[] = "expected a number, such as 2000, 20K or 3M",
			  end[] = "expected '&&', 'for TIME' or the end",
			  ledger[] = "samples_lost and samples_unseen are those of all groups: "
				     "use them without keys";

	(void)state;
	refused("", 1, what);
	refused(" > 3", 2, what);
	refused("p99 > 3 && ", 12, what);
	refused("p99", 4, of_value);
	refused("p99 = 3", 5, of_value);
	refused("p99 =~ 3", 7, of_value);
	refused("container", 10, of_key);
	refused("container < 3", 12, of_key);
	refused("p99 >", 6, "expected a number");
	refused("p99 >  x", 8, number);
	refused("p99 > 1x", 7, number);
	refused("container == ", 14, "expected a text");
	refused("container == \"a", 14, "this quote is not closed");
	refused("container == ''", 14, "expected a text");
	refused("p99 > 3 for", 12, "expected a time after 'for'");
	refused("p99 > 3 for  x", 14, "for: invalid duration 'x'");
	refused("p99 > 3 for 0.9s", 13, "for: 0.9s is out of range: must be from 1s to ");
	refused("p99 > 3 for 3601s", 13, "for: 3601s is out of range");
	refused("p99 > 3 x", 9, end);
	refused("p99 > 3 for 5s x", 16, end);
	refused("container == a", 15, "expected a value, such as '&& p99 > 2000'");
	refused("samples_lost > 0 && container == a", 1, ledger);
	refused("pid != 3 && samples_unseen > 0", 1, ledger);
	refused("pid != 3 && samples_unseen > 0 && p99 > 1", 1, ledger);
}

static void test_unknown_word(void **state)
{
	static const char names[] =
		"must be a key of --by, or one of samples, p50, p90, p99, mean, "
		"miss_cycles, samples_lost, samples_unseen";
	char want[300];

	(void)state;
	snprintf(want, sizeof(want), "unknown 'quux'; %s", names);
	refused("  quux > 3", 3, want);
	snprintf(want, sizeof(want), "unknown 'sampels'; did you mean 'samples'?; %s", names);
	refused("sampels > 3", 1, want);
	snprintf(want, sizeof(want), "unknown 'contaner'; did you mean 'container'?; %s", names);
	refused("contaner == a", 1, want);
	snprintf(want, sizeof(want), "unknown 'cgruop'; did you mean 'cgroup'?; %s", names);
	refused("cgruop == a", 1, want);
	snprintf(want, sizeof(want), "unknown 'itbl'; did you mean 'itlb'?; %s", names);
	refused("itbl == a", 1, want);
	/* one key at a time */
	refused("pid,tid == 3", 1, "unknown 'pid,tid';");
}

static void test_lengths(void **state)
{
	char text[FLIGHT_TEXT + 1], *at;
	struct flight_condition c;

	(void)state;
	/* a text has 63 characters at most, another word 31 */
	snprintf(text, sizeof(text), "p99 > 1 && comm == %063d", 0);
	c = parsed(text);
	assert_int_equal(strlen(c.test[1].text), 63);
	snprintf(text, sizeof(text), "p99 > 1 && comm == %064d", 0);
	refused(text, 20, "this text is too long");
	snprintf(text, sizeof(text), "p99 > %031d", 7);
	assert_true(parsed(text).test[0].number == 7);
	snprintf(text, sizeof(text), "p99 > %032d", 7);
	refused(text, 7, "this text is too long");
	/* eight tests */
	at = stpcpy(text, "p99 > 1");
	for (int i = 1; i < 8; i++)
		at = stpcpy(at, " && p99 > 1");
	assert_int_equal(parsed(text).n_tests, 8);
	stpcpy(at, " && p99 > 1");
	refused(text, 88, "too many tests");
	/* the whole: 255 characters */
	snprintf(text, sizeof(text), "p99 > 1%248s", "");
	parsed(text);
	snprintf(text, sizeof(text), "p99 > 1%249s", "");
	refused(text, 1, "the condition is too long");
}

/* --- more of a second --- */

static void test_comparisons(void **state)
{
	(void)state;
	assert_true(is_true("samples != 144 && samples != 146"));
	assert_false(is_true("samples < 145"));
	assert_false(is_true("samples > 145"));
	assert_true(is_true("samples < 146 && samples > 144"));
	assert_true(is_true("samples <= 145 && samples >= 145"));
	assert_false(is_true("samples <= 144"));
	assert_false(is_true("samples >= 146"));
	/* every test must be true */
	assert_false(is_true("samples == 1 && samples == 145"));
	assert_false(is_true("samples == 145 && samples == 1"));
}

/* The first value that a condition names is shown if it is true, with commas. */
static void test_value_text(void **state)
{
	const struct flight_second second = { 2, &counts, &rows };
	struct flight_condition c = parsed("container == web && mean > 1 && samples > 1");
	char value[64] = "before";

	(void)state;
	assert_true(flight_condition_true(&c, &second, value, sizeof(value)));
	assert_string_equal(value, "mean 804");
	c = parsed("miss_cycles > 1 && mean > 1");
	assert_true(flight_condition_true(&c, &second, value, sizeof(value)));
	assert_string_equal(value, "miss_cycles 110,500,000");
	c = parsed("samples > 1000");
	assert_false(flight_condition_true(&c, &second, value, sizeof(value)));
	assert_string_equal(value, "");
}

/* A latency of 0 cycles is known. */
static void test_zero(void **state)
{
	static __u64 buckets[IBS_LAT_BUCKETS] = { 200 };
	struct row zero = ROW("zero", IBS_SRC_DRAM, 200, 0, buckets);
	const struct rows one = { 1, &zero };
	const struct flight_condition c = parsed("p50 == 0 && p99 == 0 && mean == 0");
	char value[64];

	(void)state;
	assert_true(flight_condition_true(&c, &(struct flight_second){ 1, &counts, &one }, value,
					  sizeof(value)));
	assert_string_equal(value, "p50 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	     cmocka_unit_test(test_texts),
		cmocka_unit_test(test_unknown),	     cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_parse),	     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unknown_word), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_comparisons),  cmocka_unit_test(test_value_text),
		cmocka_unit_test(test_zero),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
