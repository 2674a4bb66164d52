// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Filters of several parts, and the options that are parts: which of them a sample is dropped by. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "filter_gen.h"
#include "filter/filter_options.h"

static const __u32 gens[][2] = {
	{ 0x3ff, 0 },	{ 0x3ff, IBS_QUIRK_OP_1293 | IBS_QUIRK_NO_CACHE_HIT_ST_A },
	{ 0xbff, 0 },	{ 0x81bff, 0 },
	{ 0x9fbff, 0 }, { 0x1f, 0 },
};

#define N_GENS (sizeof(gens) / sizeof(gens[0]))

/* Random expressions: a sample comes to the outcome of the first that is false. */
static void test_random_parts(void **state)
{
	__u64 came[IBS_OUTCOME_N] = {};

	(void)state;
	for (int i = 0; i < 6000; i++) {
		struct gen_rng r = { .seed = i + 1 };
		static struct gen g[4];
		struct filter_part parts[4];
		int n = 1 + gen_below(&r, 4), root[4];
		struct err e = {};
		struct filter f;
		char *texts[4];

		for (int p = 0; p < n; p++) {
			memset(&g[p], 0, sizeof(g[p]));
			root[p] = gen_tree(&g[p], &r, i % 3);
			texts[p] = gen_text(&g[p], &r, root[p]);
			parts[p] = (struct filter_part){
				.text = texts[p],
				.outcome = IBS_OUTCOME_FILTERED_MODE + p,
			};
		}
		if (filter_compile(parts, n, &f, &e))
			fail_msg("%d: %s", i, e.text);
		assert_int_equal(f.n_parts, n);
		for (int k = 0; k < 30; k++) {
			const __u32 *gen = gens[gen_below(&r, N_GENS)];
			__u32 want = IBS_OUTCOME_AGGREGATED;
			struct ibs_filter_sample s;
			struct gen_sample gs;

			gen_sample(&r, gen[0], gen[1], &gs);
			gen_to_filter(&gs, &f, &s);
			for (int p = n; p-- > 0;)
				if (!gen_eval(&g[p], root[p], &gs, false))
					want = parts[p].outcome;
			if (ibs_filter_outcome(&f.prog, &s) != want)
				fail_msg("%d: '%s' is %u", i, f.text, want);
			came[want]++;
		}
		filter_free(&f);
		for (int p = 0; p < n; p++)
			free(texts[p]);
	}
	assert_true(came[IBS_OUTCOME_AGGREGATED] > 10000);
	for (int p = 0; p < 4; p++)
		assert_true(came[IBS_OUTCOME_FILTERED_MODE + p] > 1000);
}

/* What another part has asked is not asked again, but each drops for its own reason. */
static void test_shared(void **state)
{
	const struct filter_part parts[] = {
		{ .text = "kernel", .outcome = IBS_OUTCOME_FILTERED_MODE },
		{ .text = "kernel && swpf", .outcome = IBS_OUTCOME_FILTERED_EXPR },
	};
	struct filter f;

	(void)state;
	assert_int_equal(filter_compile(parts, 2, &f, NULL), 0);
	assert_int_equal(f.prog.n, 2);
	assert_int_equal(f.prog.terms[0].on_false, IBS_FILTER_TO(IBS_OUTCOME_FILTERED_MODE));
	assert_int_equal(f.prog.terms[1].on_false, IBS_FILTER_REJECT);
	assert_string_equal(f.text, "kernel == 1 && kernel == 1 && swpf == 1");
	assert_string_equal(f.parts[1].text, "kernel == 1 && swpf == 1");
	filter_free(&f);
}

struct given {
	enum filter_option option;
	const char *arg;
};

/* Options as given (two at most), and what they come to. */
static const struct row {
	struct given given[2];
	const char *text;
} rows[] = {
	{ { { FILTER_OPTION_TLB, "l1" } }, "l1tlb_miss != 1" },
	{ { { FILTER_OPTION_TLB, "L2" } }, "l2tlb_miss != 1" },
	{ { { FILTER_OPTION_TLB, "walk" } }, "l2tlb_miss == 1" },
	{ { { FILTER_OPTION_TLB, "l1" }, { FILTER_OPTION_TLB, "l2" } },
	  "l1tlb_miss != 1 || l2tlb_miss != 1" },
	{ { { FILTER_OPTION_TLB, "!l2" } }, "l1tlb_miss != 1 || l2tlb_miss == 1" },
	{ { { FILTER_OPTION_TLB, "!l1" } }, "l1tlb_miss == 1" },
	{ { { FILTER_OPTION_TLB, "!l1" }, { FILTER_OPTION_TLB, "!walk" } }, "l2tlb_miss != 1" },
	{ { { FILTER_OPTION_TLB, "walk,l2,l1,l1" } }, "l1tlb_miss <= 1" },
	{ { { FILTER_OPTION_PAGE_SIZE, "2M" } }, "page_size == 2m" },
	{ { { FILTER_OPTION_PAGE_SIZE, "!4k" } }, "page_size != 4k" },
	{ { { FILTER_OPTION_PAGE_SIZE, "4k,1g" } }, "page_size != 2m" },
	{ { { FILTER_OPTION_PAGE_SIZE, "!4k,2m" } }, "page_size == 1g" },
	{ { { FILTER_OPTION_PAGE_SIZE, "4k,2m,1g" } }, "page_size >= 4k" },
	{ { { FILTER_OPTION_RMT_NODE, "yes" } }, "rmt_node == 1" },
	{ { { FILTER_OPTION_RMT_NODE, "no" } }, "rmt_node != 1" },
	{ { { FILTER_OPTION_RMT_NODE, "!yes" } }, "rmt_node != 1" },
	{ { { FILTER_OPTION_RMT_NODE, "yes,no" } }, "rmt_node <= 1" },
	{ { { FILTER_OPTION_ADDR, "1000-2000" } }, "addr >= 0x1000 && addr < 0x2000" },
	{ { { FILTER_OPTION_ADDR, "0x1000+0X10" } }, "addr >= 0x1000 && addr < 0x1010" },
	{ { { FILTER_OPTION_ADDR, "0-7fffffffffff" } }, "addr < 0x7fffffffffff" },
	{ { { FILTER_OPTION_ADDR, "ffff800000000000+800000000000" } },
	  "addr >= 0xffff800000000000" },
	{ { { FILTER_OPTION_ADDR, "00000000000000000000abc" } }, "addr == 0xabc" },
	{ { { FILTER_OPTION_IP, "1-2,5" }, { FILTER_OPTION_IP, "7" } },
	  "ip >= 0x1 && ip < 0x2 || ip == 0x5 || ip == 0x7" },
	{ { { FILTER_OPTION_IP, "!1-2,5" }, { FILTER_OPTION_IP, "!7" } },
	  "(ip < 0x1 || ip >= 0x2) && ip != 0x5 && ip != 0x7" },
	{ { { FILTER_OPTION_EXPR, "pid == 1" }, { FILTER_OPTION_EXPR, "swpf" } }, "swpf == 1" },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct filter_options opts = {};
		struct err e = {};
		struct filter f;

		for (int k = 0; k < 2 && rows[i].given[k].arg; k++)
			if (filter_options_add(&opts, rows[i].given[k].option, rows[i].given[k].arg,
					       &e))
				fail_msg("%zu: %s", i, e.text);
		if (filter_options_compile(&opts, &f, &e))
			fail_msg("%zu: %s", i, e.text);
		assert_int_equal(f.n_parts, 1);
		assert_string_equal(f.parts[0].text, rows[i].text);
		filter_free(&f);
		filter_options_free(&opts);
	}
}

static void test_errors(void **state)
{
	static const struct {
		struct given given[2];
		const char *error;
		int code;
	} bad[] = {
		{ { { FILTER_OPTION_TLB, "" } },
		  "--tlb: column 1: '' must be one of l1, l2, walk",
		  -EINVAL },
		{ { { FILTER_OPTION_TLB, "l1,hit" } },
		  "--tlb: column 4: 'hit' must be one of",
		  -EINVAL },
		{ { { FILTER_OPTION_TLB, "!l1,,walk" } },
		  "--tlb: column 5: '' must be one of",
		  -EINVAL },
		{ { { FILTER_OPTION_TLB, "!l1,l2,walk" } },
		  "--tlb: column 1: '!l1,l2,walk' excludes",
		  -EINVAL },
		{ { { FILTER_OPTION_TLB, "!l1,l2" }, { FILTER_OPTION_TLB, "!walk" } },
		  "--tlb: column 1: '!walk' excludes everything",
		  -EINVAL },
		{ { { FILTER_OPTION_TLB, "l1" }, { FILTER_OPTION_TLB, "!l2" } },
		  "--tlb: either list what to keep or, with '!',",
		  -EINVAL },
		{ { { FILTER_OPTION_PAGE_SIZE, "4k,64k" } },
		  "--page-size: column 4: '64k' must be one of 4k, 2m, 1g",
		  -EINVAL },
		{ { { FILTER_OPTION_RMT_NODE, "maybe\n" } },
		  "--remote-node: column 1: 'maybe\\x0a' must be one of yes, no",
		  -EINVAL },
		{ { { FILTER_OPTION_ADDR, "" } },
		  "--addr: column 1: expected a hexadecimal number, but the list ends",
		  -EINVAL },
		{ { { FILTER_OPTION_ADDR, "!" } }, "--addr: column 2: expected", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "0x" } }, "--addr: column 1: expected", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "1-" } }, "--addr: column 3: expected", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "1," } }, "--addr: column 3: expected", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "1 -2" } }, "--addr: column 2: expected ','", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "1-2-3" } }, "--addr: column 4: expected ','", -EINVAL },
		{ { { FILTER_OPTION_ADDR, "9,2-2" } },
		  "--addr: column 3: the range is empty",
		  -EINVAL },
		{ { { FILTER_OPTION_ADDR, "2+0" } },
		  "--addr: column 1: the range is empty",
		  -EINVAL },
		{ { { FILTER_OPTION_IP, "10000000000000000" } },
		  "--ip: column 1: '10000000000000000' has more than 64 bits",
		  -ERANGE },
		{ { { FILTER_OPTION_IP, "2+ffffffffffffffff" } },
		  "--ip: column 1: the range exceeds 64 bits",
		  -ERANGE },
		{ { { FILTER_OPTION_IP,
		      "1-2,3-4,5-6,7-8,9-a,b-c,d-e,f-10,11-12,13-14,15-16,17-18,19" } },
		  "--ip: column 58: the list needs more than the 24 tests",
		  -E2BIG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct filter_options opts = {};
		struct err e = {};
		int ret = 0;

		for (int k = 0; k < 2 && bad[i].given[k].arg; k++) {
			assert_int_equal(ret, 0);
			ret = filter_options_add(&opts, bad[i].given[k].option, bad[i].given[k].arg,
						 &e);
		}
		if (strncmp(e.text, bad[i].error, strlen(bad[i].error)))
			fail_msg("\"%s\", not \"%s\"", e.text, bad[i].error);
		assert_int_equal(ret, bad[i].code);
		filter_options_free(&opts);
	}
}

/* Errors that only all together make. */
static void test_together(void **state)
{
	struct filter_options opts = { .min_tlb_lat = 30, .max_tlb_lat = 20 };
	struct err e = {};
	struct filter f;

	(void)state;
	assert_int_equal(filter_options_compile(&opts, &f, &e), -EINVAL);
	assert_string_equal(e.text, "--min-tlb-lat 30 is above --max-tlb-lat 20");
	opts.max_tlb_lat = 0;
	filter_options_add(&opts, FILTER_OPTION_EXPR, "swpf && pid = 3", &e);
	assert_int_equal(filter_options_compile(&opts, &f, &e), -EINVAL);
	assert_int_equal(strncmp(e.text, "--filter: column 13: expected ==", 32), 0);
	filter_options_add(&opts, FILTER_OPTION_EXPR, "swpf", &e);
	filter_options_add(&opts, FILTER_OPTION_ADDR,
			   "1-2,3-4,5-6,7-8,9-a,b-c,d-e,f-10,11-12,13-14,15-16,17", &e);
	assert_int_equal(filter_options_compile(&opts, &f, &e), -E2BIG);
	assert_string_equal(e.text, "--min/max-tlb-lat, --addr, --filter: the filter needs 25 "
				    "tests; the kernel can run 24");
	assert_int_equal(f.n_parts, 0);
	filter_options_free(&opts);
	assert_int_equal(filter_options_compile(&opts, &f, &e), 0);
	assert_int_equal(f.n_parts, 0);
	opts.user = opts.kernel = true;
	assert_int_equal(filter_options_compile(&opts, &f, &e), 0);
	assert_int_equal(f.n_parts, 0);
}

static bool flag(const struct gen_sample *s, int field, bool want)
{
	__u64 v;

	return gen_field(s, field, &v) && v == want;
}

/* Every option at once, against what the documents say of each. */
static __u32 expected(const struct gen_sample *s)
{
	__u64 v;

	if (!flag(s, IBS_FILTER_USER, 1))
		return IBS_OUTCOME_FILTERED_MODE;
	if (!flag(s, IBS_FILTER_L1TLB_MISS, 0) && !flag(s, IBS_FILTER_L2TLB_MISS, 1))
		return IBS_OUTCOME_FILTERED_TLB;
	if (!gen_field(s, IBS_FILTER_TLB_REFILL_LAT, &v) || v < 1000 || v > 60000)
		return IBS_OUTCOME_FILTERED_TLB_LAT;
	if (!gen_page_size(s, &v) || v == 4096)
		return IBS_OUTCOME_FILTERED_PAGE_SIZE;
	if (!flag(s, IBS_FILTER_RMT_NODE, 0))
		return IBS_OUTCOME_FILTERED_RMT_NODE;
	if (!gen_field(s, IBS_FILTER_ADDR, &v) || v < 1ULL << 60 || v >= 15ULL << 60)
		return IBS_OUTCOME_FILTERED_ADDR;
	if (!gen_field(s, IBS_FILTER_IP, &v) || (v >= 1ULL << 62 && v < 3ULL << 61))
		return IBS_OUTCOME_FILTERED_IP;
	return gen_field(s, IBS_FILTER_DC_MISS_LAT, &v) && v > 20000 ? IBS_OUTCOME_AGGREGATED
								     : IBS_OUTCOME_FILTERED_EXPR;
}

static void test_all_options(void **state)
{
	struct filter_options opts = { .user = true, .min_tlb_lat = 1000, .max_tlb_lat = 60000 };
	static const struct given given[] = {
		{ FILTER_OPTION_TLB, "l1,walk" },
		{ FILTER_OPTION_PAGE_SIZE, "!4k" },
		{ FILTER_OPTION_RMT_NODE, "no" },
		{ FILTER_OPTION_ADDR, "1000000000000000-f000000000000000" },
		{ FILTER_OPTION_IP, "!4000000000000000+2000000000000000" },
		{ FILTER_OPTION_EXPR, "weight1 > 20000" },
	};
	__u64 came[IBS_OUTCOME_N] = {};
	struct gen_rng r = { .seed = 3 };
	struct filter f;

	(void)state;
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		assert_int_equal(filter_options_add(&opts, given[i].option, given[i].arg, NULL), 0);
	assert_int_equal(filter_options_compile(&opts, &f, NULL), 0);
	assert_int_equal(f.n_parts, FILTER_OPTION_N);
	for (int i = 0; i < 400000; i++) {
		const __u32 *gen = gens[gen_below(&r, N_GENS)];
		struct ibs_filter_sample s;
		struct gen_sample gs;

		gen_sample(&r, gen[0], gen[1], &gs);
		/* what all want, so that the later ones are asked too */
		if (gen_below(&r, 4)) {
			gs.op.reg[IBS_OP_RIP] &= ~0ULL >> 1;
			gs.op.reg[IBS_OP_DATA3] |= 0x600fd; /* a load that missed all */
			gs.op.reg[IBS_OP_DATA3] &= 0xff9fbfcf;
			gs.op.reg[IBS_OP_DATA3] |= ibs_sim_mix(r.n++) & 0xffffffff00000030;
			gs.op.reg[IBS_OP_DATA3] |= gen_below(&r, 8) ? 0x100008 : 0;
			gs.op.reg[IBS_OP_DATA2] = 3 | gen_below(&r, 2) << 4; /* DRAM */
		}
		gen_to_filter(&gs, &f, &s);
		assert_int_equal(ibs_filter_outcome(&f.prog, &s), expected(&gs));
		came[expected(&gs)]++;
	}
	assert_true(came[IBS_OUTCOME_AGGREGATED] > 100);
	for (int o = IBS_OUTCOME_FILTERED_MODE; o <= IBS_OUTCOME_FILTERED_EXPR; o++)
		assert_true(came[o] > 100);
	filter_free(&f);
	filter_options_free(&opts);
}

/* The parts that given options come to. */
static void compiles_to(const struct filter_options *opts, const char *want)
{
	struct err e = {};
	struct filter f;

	if (filter_options_compile(opts, &f, &e))
		fail_msg("%s", e.text);
	assert_string_equal(f.text, want);
	filter_free(&f);
}

static void test_numbers(void **state)
{
	struct filter_options opts = { .min_tlb_lat = 20 };
	struct err e = {};
	struct filter f;

	(void)state;
	compiles_to(&opts, "tlb_refill_lat >= 20");
	opts.max_tlb_lat = 20;
	compiles_to(&opts, "tlb_refill_lat >= 20 && tlb_refill_lat <= 20");
	opts.min_tlb_lat = 0;
	compiles_to(&opts, "tlb_refill_lat <= 20");
	opts.min_tlb_lat = 21;
	assert_int_equal(filter_options_compile(&opts, &f, &e), -EINVAL);
	opts = (struct filter_options){ .user = true };
	compiles_to(&opts, "user == 1");
	opts = (struct filter_options){ .kernel = true };
	compiles_to(&opts, "kernel == 1");
	/* the terms of the other event have the same names */
	opts.fetch = true;
	opts.min_tlb_lat = 1;
	compiles_to(&opts, "kernel == 1 && itlb_refill_lat >= 1");
}

/* Columns count from the beginning of the argument; long words are cut. */
static void test_columns(void **state)
{
	static const struct {
		struct given given;
		const char *error;
		int code;
	} bad[] = {
		{ { FILTER_OPTION_TLB, "l1,hit" },
		  "--tlb: column 4: 'hit' must be one of l1, l2, walk",
		  -EINVAL },
		{ { FILTER_OPTION_TLB, "!l1,l" },
		  "--tlb: column 5: 'l' must be one of l1, l2, walk",
		  -EINVAL },
		{ { FILTER_OPTION_RMT_NODE, "0123456789012345678901234567890123456789" },
		  "--remote-node: column 1: '0123456789012345678901234567890123456789' must be one "
		  "of yes, no",
		  -EINVAL },
		{ { FILTER_OPTION_RMT_NODE, "01234567890123456789012345678901234567890" },
		  "--remote-node: column 1: '0123456789012345678901234567890123456789' must be one "
		  "of yes, no",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "1,," },
		  "--ip: column 3: expected a hexadecimal number before ','",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "1-2,5-" },
		  "--ip: column 7: expected a hexadecimal number, but the list ends here",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "1-2,5+x" },
		  "--ip: column 7: expected a hexadecimal number before 'x'",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "xyz0123456789012345678" },
		  "--ip: column 1: expected a hexadecimal number before 'xyz01234567890123456'",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "1 0123456789012345678901" },
		  "--ip: column 2: expected ',' before ' 0123456789012345678'; ranges are LO-HI "
		  "or LO+LENGTH, in hexadecimal",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "!1,3-3" },
		  "--ip: column 4: the range is empty: it ends before 0x3",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "3-2" },
		  "--ip: column 1: the range is empty: it ends before 0x2",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "1,2+0" },
		  "--ip: column 3: the range is empty: its length is 0",
		  -EINVAL },
		{ { FILTER_OPTION_IP, "ffff800000000000+800000000001" },
		  "--ip: column 1: the range exceeds 64 bits",
		  -ERANGE },
		{ { FILTER_OPTION_IP, "1,0x00fffffffffffffffff" },
		  "--ip: column 3: '00fffffffffffffffff' has more than 64 bits",
		  -ERANGE },
		{ { FILTER_OPTION_IP, "12345678901234567890123456789012345678901" },
		  "--ip: column 1: '1234567890123456789012345678901234567890' has more than 64 "
		  "bits",
		  -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct filter_options opts = {};
		struct err e = {};

		assert_int_equal(
			filter_options_add(&opts, bad[i].given.option, bad[i].given.arg, &e),
			bad[i].code);
		assert_string_equal(e.text, bad[i].error);
		/* what is refused changes nothing */
		assert_int_equal(filter_options_add(&opts, FILTER_OPTION_TLB, "!l1", &e), 0);
		assert_int_equal(filter_options_add(&opts, FILTER_OPTION_IP, "!1", &e), 0);
		compiles_to(&opts, "l1tlb_miss == 1 && ip != 0x1");
		filter_options_free(&opts);
	}
}

/* The kernel runs 24 tests: of 12 ranges, or of ranges at an end of the address space, which need one each. */
static void test_most_ranges(void **state)
{
	struct filter_options opts = {};
	struct err e = {};
	char text[400];
	size_t n = 0;

	(void)state;
	for (int i = 1; i <= 12; i++)
		n += snprintf(text + n, sizeof(text) - n, "%s%x+1", i > 1 ? "," : "", 16 * i);
	assert_int_equal(filter_options_add(&opts, FILTER_OPTION_ADDR, text, &e), 0);
	snprintf(text + n, sizeof(text) - n, ",f00");
	assert_int_equal(filter_options_add(&opts, FILTER_OPTION_IP, text, &e), -E2BIG);
	assert_string_equal(e.text, "--ip: column 61: the list needs more than the 24 tests that "
				    "run in the kernel, two per range");
	n = 0;
	for (int i = 1; i <= 24; i++)
		n += snprintf(text + n, sizeof(text) - n, "%s%s", i > 1 ? "," : "",
			      i == 1   ? "0-8"
			      : i == 2 ? "fffffffffffffff0+10"
				       : "a");
	assert_int_equal(filter_options_add(&opts, FILTER_OPTION_IP, text, &e), 0);
	filter_options_free(&opts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_parts), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_texts),	     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_together),     cmocka_unit_test(test_all_options),
		cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_columns),
		cmocka_unit_test(test_most_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
