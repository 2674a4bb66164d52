// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers and sentences of a comparison, of made-up results; what cannot be compared; latencies over time. */
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
#include "diff/diff_private.h"

#define near(a, b) assert_true(fabs((a) - (double)(b)) < 1e-6)

static const struct screen utf8 = { .width = 200, .utf8 = true }, ascii = { .width = 200 };

static void test_numbers(void **unused)
{
	char b[DIFF_SIGNED];

	(void)unused;
	assert_string_equal(diff_number(&utf8, 0, b), "0.00");
	assert_string_equal(diff_number(&utf8, .123, b), "0.12");
	assert_string_equal(diff_number(&utf8, 1, b), "1.0");
	assert_string_equal(diff_number(&utf8, 99.94, b), "99.9");
	assert_string_equal(diff_number(&utf8, 100, b), "100");
	assert_string_equal(diff_number(&utf8, 12345.6, b), "12,346");
	assert_string_equal(diff_number(&utf8, 999999, b), "999,999");
	assert_string_equal(diff_number(&utf8, 1e6, b), "1.00 M");
	assert_string_equal(diff_number(&utf8, 2.5e9, b), "2.50 G");
	assert_string_equal(diff_number(&utf8, NAN, b), "–");
	assert_string_equal(diff_number(&ascii, NAN, b), "-");
	assert_string_equal(diff_signed(&utf8, 12, b), "+12.0");
	assert_string_equal(diff_signed(&utf8, -12, b), "−12.0");
	assert_string_equal(diff_signed(&ascii, -.005, b), "-0.01");
	assert_string_equal(diff_signed(&ascii, -.004, b), "+0.00");
	assert_string_equal(diff_minus(&utf8), "−");
	assert_string_equal(diff_minus(&ascii), "-");
}

static void test_words(void **unused)
{
	struct diff d = { .per = DIFF_PER_OPS };
	char b[100];

	(void)unused;
	near(diff_scale(&d), 1000);
	diff_what(&d, b, sizeof(b));
	assert_string_equal(b, "miss cycles per thousand ops");
	d.about[COMPARE_A].units = REPORT_CYCLES;
	diff_what(&d, b, sizeof(b));
	assert_string_equal(b, "miss cycles per thousand cycles");
	assert_string_equal(diff_unit(&d), "cycles");
	d.per = DIFF_PER_ACCESS;
	near(diff_scale(&d), 1);
	diff_what(&d, b, sizeof(b));
	assert_string_equal(b, "mean latency in cycles");
	d.per = DIFF_PER_SECOND;
	near(diff_scale(&d), 1);
	diff_what(&d, b, sizeof(b));
	assert_string_equal(b, "miss cycles per second");
	assert_string_equal(diff_word(COMPARE_OFTEN, 1), "more often");
	assert_string_equal(diff_word(COMPARE_OFTEN, -1), "less often");
	assert_string_equal(diff_word(COMPARE_COST, 1), "slower");
	assert_string_equal(diff_word(COMPARE_COST, -1), "faster");
	assert_string_equal(diff_per_name(DIFF_PER_OPS), "ops");
	assert_string_equal(diff_per_name(DIFF_PER_SECOND), "second");
}

/* --- sentences --- */

static struct diff_about about = { .file = "a.ibs" };

static const char *side(const struct diff_about *a, double seconds, __u64 samples, size_t width)
{
	static char *text;
	const struct compare_side_sum sum = { .seconds = seconds, .samples = samples };
	size_t n;
	FILE *f;

	free(text);
	f = open_memstream(&text, &n);
	diff_put_side(f, &utf8, a, 'A', &sum, width);
	fclose(f);
	return text;
}

static void test_side(void **unused)
{
	struct diff_about a = about;

	(void)unused;
	assert_string_equal(side(&a, 0, 1, 0), "A  a.ibs  1 sample\n");
	assert_string_equal(side(&a, 0, 0, 5), "A  a.ibs  0 samples\n");
	assert_string_equal(side(&a, 9.96, 12345, 8), "A  a.ibs     10.0 s, 12,345 samples\n");
	assert_string_equal(side(&a, 10, 2, 0), "A  a.ibs  10 s, 2 samples\n");
	strcpy(a.host, "h\n1");
	strcpy(a.cpu, "EPYC");
	strcpy(a.release, "6.12");
	a.selection = "--comm x";
	a.simulated = true;
	assert_string_equal(side(&a, 1, 2, 0), "A  a.ibs  '--comm x'  SIMULATED, host h\\x0a1, "
					       "EPYC, kernel 6.12, 1.0 s, 2 samples\n");
}

static struct compare_term term[3];
static struct diff diff = { .per = DIFF_PER_OPS };
static struct compare_result result;

/* From 10 to 12 miss cycles per thousand ops; two terms are findings. */
static int set_result(void **unused)
{
	(void)unused;
	diff.per = DIFF_PER_OPS;
	diff.compare = compare_new(false, 10);
	compare_cause(diff.compare, "dram");
	compare_cause(diff.compare, "l3");
	result = (struct compare_result){
		.side = { { .y = .01, .samples = 5000 }, { .y = .012, .samples = 4000 } },
		.change = { .change = .002, .low = .0015, .high = .0025, .finding = true },
		.term = term,
		.n_terms = 2,
		.n_findings = 2,
		.tests = 1234,
		.longer = 2.5,
		.detectable = .02,
	};
	term[0] = (struct compare_term){
		0, COMPARE_OFTEN, .004, .006, { .change = .0015, .finding = true }
	};
	term[1] = (struct compare_term){
		1, COMPARE_COST, 40, 36, { .change = -.0003, .finding = true }
	};
	return 0;
}

static int free_result(void **unused)
{
	(void)unused;
	compare_free(diff.compare);
	return 0;
}

static const char *answer(const struct screen *s)
{
	static char *text;
	size_t n;
	FILE *f;

	free(text);
	f = open_memstream(&text, &n);
	diff_put_answer(f, s, &diff, &result);
	fclose(f);
	return text;
}

static void test_answer(void **unused)
{
	(void)unused;
	assert_string_equal(
		answer(&utf8),
		"Miss cycles per thousand ops: 10.0 → 12.0, +20.0 % ± 5.0 %\n"
		"    +15 points  dram more often (4.0 → 6.0 of a thousand ops)\n"
		"     −3 points  l3 answered faster (mean 40.0 → 36.0 cycles)\n"
		"     +8 points  ~ everything else\n"
		"1 point is 1 % of the first value. ~: causes that are within noise one by one.\n");
	/* others that are findings are not named, as there is no room for them */
	term[2] = term[0];
	result.n_findings = 3;
	result.change.high = .0045;
	result.change.low = .0005;
	term[1].change.change = .0003;
	assert_string_equal(
		answer(&ascii),
		"Miss cycles per thousand ops: 10.0 -> 12.0, +20 % +- 20 %\n"
		"    +15 points  dram more often (4.0 -> 6.0 of a thousand ops)\n"
		"     +3 points  l3 answered more slowly (mean 40.0 -> 36.0 cycles)\n"
		"     +2 points  everything else\n"
		"1 point is 1 % of the first value. Everything else: smaller causes, and noise.\n");
	diff.per = DIFF_PER_SECOND;
	assert_non_null(strstr(answer(&utf8), "(0.00 → 0.01 per second)"));
	diff.per = DIFF_PER_ACCESS;
	assert_non_null(strstr(answer(&utf8), "(0.00 → 0.01 of all)"));
}

static void test_doubt(void **unused)
{
	(void)unused;
	result.change.gone = true;
	assert_non_null(strstr(answer(&utf8), "5.0 %, but it went away before the end of B\n"));
	result.change.gone = result.change.finding = false;
	assert_non_null(
		strstr(answer(&utf8),
		       "5.0 %: as a sum this can be noise, the causes below are findings\n"));
	result.n_findings = 0;
	result.n_row_findings = 1;
	assert_string_equal(answer(&utf8), "Miss cycles per thousand ops: 10.0 → 12.0, +20.0 % ± "
					   "5.0 %: as a sum this can be noise, "
					   "but 1 row is a finding\n");
	result.n_row_findings = 2;
	assert_non_null(strstr(answer(&utf8), "but 2 rows are findings\n"));
}

static void test_nothing(void **unused)
{
	(void)unused;
	result.change.finding = false;
	result.n_findings = 0;
	assert_true(diff_is_close(&result));
	assert_string_equal(
		answer(&utf8),
		"No finding: +20.0 % ± 5.0 % miss cycles per thousand ops. By chance alone 1 of 20 "
		"such intervals does not "
		"contain 0, and 1,234 changes were tested at once, so this one can be noise.\n");
	result.change.low = -.0005;
	assert_false(diff_is_close(&result));
	assert_string_equal(answer(&utf8), "No difference that is more than noise: +20 % ± 15 % "
					   "miss cycles per thousand ops.\n");
	result.change = (struct compare_change){ .change = -.002, .low = -.003, .high = -.001 };
	assert_true(diff_is_close(&result));
	result.change.high = 0;
	assert_false(diff_is_close(&result));
	result.change.high = -.001;
	result.n_row_findings = 1;
	assert_false(diff_is_close(&result));
	result.n_row_findings = 0;
	result.change.gone = true;
	assert_false(diff_is_close(&result));
}

static const char *power(void)
{
	static char *text;
	size_t n;
	FILE *f;

	free(text);
	f = open_memstream(&text, &n);
	diff_put_power(f, &utf8, &result);
	fclose(f);
	return text;
}

static void test_power(void **unused)
{
	(void)unused;
	/* half of the change needs four times the samples */
	assert_string_equal(power(), "(A change of 2.0 % would have been seen with these 4,000 "
				     "samples; 1 % needs about 16,000 on each side.)\n");
	result.detectable = .01;
	assert_string_equal(power(),
			    "(A change of 1.0 % would have been seen with these 4,000 samples.)\n");
	result.change.finding = false;
	result.n_findings = 0;
	assert_string_equal(power(), "(To find a change of this size, measure 2.5 times as long: "
				     "about 10,000 samples on each side, "
				     "rather than 4,000.)\n");
}

/* --- percentiles --- */

static void test_quantile(void **unused)
{
	(void)unused;
	result.n_findings = 0;
	result.has_quantile = true;
	result.quantile[COMPARE_A] = 500;
	result.quantile[COMPARE_B] = 600;
	assert_non_null(
		strstr(answer(&utf8), "\np99 of latency: 500 → 600 cycles, within noise\n"));
	result.quantile_change.gone = true;
	assert_non_null(strstr(answer(&utf8), " cycles, but that went away before the end of B\n"));
	result.quantile_change =
		(struct compare_change){ .change = 100, .low = 60, .high = 140, .finding = true };
	result.n_factors = 3;
	result.factor[0] =
		(struct compare_factor){ COMPARE_FACTOR_MIX, { .change = 20, .finding = true } };
	result.factor[1] = (struct compare_factor){ 0, { .change = 75, .finding = true } };
	result.factor[2] = (struct compare_factor){ COMPARE_FACTOR_OTHERS,
						    { .change = -10, .finding = true } };
	assert_non_null(strstr(answer(&utf8),
			       "\np99 of latency: 500 → 600 cycles, +20.0 % ± 8.0 %\n"
			       "     +4 points  another mix of causes\n"
			       "    +15 points  dram slower\n"
			       "     −2 points  others faster\n"
			       "1 point is 1 % of the first value.\n"));
	result.factor[1].change.finding = false;
	assert_null(strstr(answer(&utf8), "dram slower"));
	result.factor[0].change.finding = result.factor[2].change.finding = false;
	assert_null(strstr(answer(&utf8), "1 point is"));
}

static void test_wide_quantile(void **unused)
{
	(void)unused;
	result.has_quantile = result.quantile_wide = true;
	result.quantile[COMPARE_A] = 500;
	result.quantile[COMPARE_B] = 600;
	result.quantile_change.p = 1;
	result.quantile_low[COMPARE_A] = 256;
	result.quantile_high[COMPARE_A] = result.quantile_low[COMPARE_B] = 512;
	result.quantile_high[COMPARE_B] = 1024;
	assert_non_null(strstr(answer(&ascii), "cycles, within the width of buckets\n  in buckets: "
					       "256 to 512 -> 512 to 1,024 cycles\n"));
	result.quantile_change.p = .5;
	assert_non_null(strstr(answer(&ascii), "cycles, within noise\n  in buckets: 256"));
}

/* --- what cannot be compared --- */

static void refused(const struct diff *d, const char *want)
{
	struct err err = { "" };

	assert_int_equal(diff_check(d, &err), *want ? -EINVAL : 0);
	assert_string_equal(err.text, want);
}

static void test_check(void **unused)
{
	struct diff d = { .per = DIFF_PER_OPS }, same;
	struct diff_about *a = &d.about[COMPARE_A], *b = &d.about[COMPARE_B];

	(void)unused;
	strcpy(a->metric, "dc_miss_lat");
	strcpy(b->metric, "dc_miss_lat");
	same = d;
	refused(&d, "");
	strcpy(b->metric, "tag_to_ret");
	refused(&d, "the two cannot be compared: the metric is 'dc_miss_lat' in A and 'tag_to_ret' "
		    "in B; record both the same way");
	d = same;
	a->simulated = true;
	refused(&d, "the two cannot be compared: simulated is 'yes' in A and 'no' in B; the "
		    "simulation says nothing about a machine");
	d = same;
	b->hardware_filter = true;
	refused(&d, "the two cannot be compared: a hardware filter is 'no' in A and 'yes' in B; "
		    "record both the same way");
	d = same;
	a->units = REPORT_OPS;
	refused(&d, "");
	b->units = REPORT_OPS | REPORT_CYCLES;
	refused(&d, "the two cannot be compared: what the period counts is 'ops' in A and 'mixed' "
		    "in B; use --per access or --per second");
	b->units = REPORT_CYCLES;
	refused(&d, "the two cannot be compared: what the period counts is 'ops' in A and 'cycles' "
		    "in B; use --per access or --per second");
	d.per = DIFF_PER_ACCESS;
	refused(&d, "");
	b->units = REPORT_OPS;
	d.per = DIFF_PER_OPS;
	refused(&d, "");
}

/* Which processes were recorded may differ, what of their samples was may not. */
static void test_check_selection(void **unused)
{
	struct diff d = { .per = DIFF_PER_OPS };
	char *a = d.about[COMPARE_A].filter, *b = d.about[COMPARE_B].filter;

	(void)unused;
	strcpy(a, "--cgroup /a --src dram");
	strcpy(b, "--pid 7 --src dram");
	refused(&d, "");
	strcpy(b, "--pid 7");
	refused(&d, "the two cannot be compared: the selection of samples while recording is "
		    "'--src dram' in A and '' in B; record both the same way");
	strcpy(a, "--op load --min-lat 7");
	strcpy(b, "--min-lat 7");
	refused(&d, "the two cannot be compared: the selection of samples while recording is '--op "
		    "load --min-lat 7' in A and "
		    "'--min-lat 7' in B; record both the same way");
	/* latencies of cgroups */
	strcpy(a, "--cgroup /a:300");
	strcpy(b, "--cgroup /a:400");
	refused(&d, "the two cannot be compared: the selection of samples while recording is "
		    "'--cgroup /a:300' in A and "
		    "'--cgroup /a:400' in B; record both the same way");
	strcpy(a, "--cgroup /a:x");
	strcpy(b, "--cgroup /b:x");
	refused(&d, "");
	strcpy(a, "--cgroup /a:x:9");
	refused(&d, "the two cannot be compared: the selection of samples while recording is "
		    "'--cgroup /a:x:9' in A and '' in B; "
		    "record both the same way");
}

/* --- latencies over time --- */

static void free_heat(struct diff *d)
{
	free(d->heat[COMPARE_A]);
	free(d->heat[COMPARE_B]);
}

static double sum_of(const struct diff_parts *p, unsigned int row)
{
	double sum = 0;

	for (unsigned int i = 0; i < DIFF_HEAT_COLUMNS; i++)
		sum += p->y[i][row];
	return sum;
}

/* The first row is up to 16 cycles, each further one half an octave. */
static void test_heat_rows(void **unused)
{
	static const struct {
		unsigned int row, edge;
	} rows[] = { { 0, 16 }, { 1, 24 }, { 2, 32 },	       { 3, 48 },
		     { 4, 64 }, { 5, 96 }, { 24, IBS_LAT_MAX } };
	struct diff_parts parts;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct diff d = { .html = true, .per = DIFF_PER_OPS };
		const struct compare_amount a = { .base = 2, .valid = 1, .cycles = 10 };

		assert_int_equal(diff_heat_edge(rows[i].row), rows[i].edge);
		diff_heat_add(&d, COMPARE_A, 1000, ibs_lat_bucket(rows[i].edge), &a);
		diff_heat_parts(&d, COMPARE_A, 0, &parts);
		near(sum_of(&parts, rows[i].row) / DIFF_HEAT_COLUMNS, 5);
		free_heat(&d);
	}
}

static void test_heat_times(void **unused)
{
	static struct diff_parts parts;
	struct diff d = { .html = true, .per = DIFF_PER_OPS };
	struct compare_amount a = { .base = 10, .valid = 1, .cycles = 100 };

	(void)unused;
	diff_heat_parts(&d, COMPARE_A, 1, &parts);
	assert_false(parts.known[0]);
	/* 48 parts of 1 ms, 2^20 ns: one each, of which every second has samples */
	for (unsigned int i = 0; i < 48; i += 2) {
		a.cycles = 100 + i;
		diff_heat_add(&d, COMPARE_A, 5000 + ((__u64)i << 20), 20, &a);
	}
	a.valid = 0;
	diff_heat_add(&d, COMPARE_A, 5000 + (47ull << 20), 20, &a); /* without a latency */
	diff_heat_parts(&d, COMPARE_A, 1, &parts);
	for (unsigned int i = 0; i < 47; i++) {
		assert_int_equal(parts.known[i], i % 2 == 0);
		near(parts.y[i][1], i % 2 ? 0 : 10 + i / 10.);
	}
	assert_true(parts.known[47]);
	near(parts.y[47][1], 0);
	/* per second, all parts are as long */
	d.per = DIFF_PER_SECOND;
	diff_heat_parts(&d, COMPARE_A, 96, &parts);
	near(parts.y[4][1], 104 / 2.);
	assert_true(parts.known[1]);
	/* a time before the first one counts as that; the other side has none */
	a.valid = 1;
	a.cycles = 1000;
	diff_heat_add(&d, COMPARE_A, 1, 20, &a);
	diff_heat_parts(&d, COMPARE_A, 96, &parts);
	near(parts.y[0][1], 1100 / 2.);
	diff_heat_parts(&d, COMPARE_B, 96, &parts);
	assert_false(parts.known[0]);
	free_heat(&d);
}

/* A longer side has wider columns, and nothing is lost. */
static void test_heat_long(void **unused)
{
	static struct diff_parts parts;
	struct diff d = { .html = true, .per = DIFF_PER_SECOND }, no = { .per = DIFF_PER_SECOND };
	const struct compare_amount a = { .base = 1, .valid = 1, .cycles = 100 };

	(void)unused;
	for (unsigned int i = 0; i < 384; i++)
		diff_heat_add(&d, COMPARE_A, 1 + ((__u64)i << 20), 20, &a);
	diff_heat_parts(&d, COMPARE_A, 48, &parts);
	for (unsigned int i = 0; i < 48; i++)
		near(parts.y[i][1], 800); /* eight of 384 columns in each part of a second */
	free_heat(&d);
	diff_heat_add(&no, COMPARE_A, 1, 20, &a);
	assert_null(no.heat[COMPARE_A]);
}

/* Cycles of counts are divided among the buckets by their middles. */
static void test_heat_spread(void **unused)
{
	static struct diff_parts parts;
	struct diff d = { .html = true, .per = DIFF_PER_OPS };
	const struct compare_amount a = { .base = 10, .valid = 4, .cycles = 600 };
	__u64 buckets[IBS_LAT_BUCKETS] = {};

	(void)unused;
	/* up to 8 cycles a bucket is one latency: middles of 7.5; of 31 to 32, 31 */
	buckets[8] = 2;
	buckets[ibs_lat_bucket(32)] = 1;
	diff_heat_spread(&d, COMPARE_A, 1000, buckets, &a);
	diff_heat_parts(&d, COMPARE_A, 0, &parts);
	near(parts.y[0][0], 600 * (2 * 7.5) / (2 * 7.5 + 31) / 10);
	near(parts.y[0][2], 600 * 31 / (2 * 7.5 + 31) / 10);
	free_heat(&d);
	d.heat[COMPARE_A] = NULL;
	buckets[8] = buckets[ibs_lat_bucket(32)] = 0;
	diff_heat_spread(&d, COMPARE_A, 1000, buckets, &a);
	diff_heat_parts(&d, COMPARE_A, 0, &parts);
	assert_true(parts.known[0]);
	near(sum_of(&parts, 0), 0);
	free_heat(&d);
}

#define R(f) cmocka_unit_test_setup_teardown(f, set_result, free_result)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_side),
		R(test_answer),
		R(test_doubt),
		R(test_nothing),
		R(test_power),
		R(test_quantile),
		R(test_wide_quantile),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_selection),
		cmocka_unit_test(test_heat_rows),
		cmocka_unit_test(test_heat_times),
		cmocka_unit_test(test_heat_long),
		cmocka_unit_test(test_heat_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
