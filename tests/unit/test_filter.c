// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Filters: what they say, how they are written, and what is said of wrong ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "filter_gen.h"

static const __u32 gens[][2] = {
	{ 0x3ff, 0 },
	{ 0x3ff, IBS_QUIRK_OP_1293 | IBS_QUIRK_NO_CACHE_HIT_ST_A },
	{ 0xbff, IBS_QUIRK_NO_CACHE_HIT_ST_B },
	{ 0xbff, 0 },
	{ 0x81bff, 0 },
	{ 0x9fbff, 0 },
	{ 0x1f, 0 },
};

#define N_GENS (sizeof(gens) / sizeof(gens[0]))

static void parse(const char *text, struct filter *f)
{
	struct err e = {};

	if (filter_parse(text, f, &e))
		fail_msg("'%s': %s", text, e.text);
}

static void check_well_formed(const struct filter *f)
{
	assert_in_range(f->prog.n, 1, IBS_FILTER_TERMS);
	for (__u32 i = 0; i < f->prog.n; i++) {
		const struct ibs_filter_term *t = &f->prog.terms[i];
		__u8 to[2] = { t->on_true, t->on_false };

		assert_in_range(t->field, 0, IBS_FILTER_FIELD_N - 1);
		assert_int_equal(t->when, filter_fields[t->field].when);
		assert_in_range(t->cmp, 0, IBS_FILTER_NONE);
		assert_int_not_equal(to[0], to[1]);
		for (int k = 0; k < 2; k++)
			if (to[k] != IBS_FILTER_ACCEPT && to[k] != IBS_FILTER_REJECT)
				assert_in_range(to[k], i + 1, f->prog.n - 1);
		assert_int_equal(f->prog.needs & filter_fields[t->field].needs,
				 filter_fields[t->field].needs);
	}
}

/* --explain's first line is an expression that comes to the same. */
static void check_round_trip(const struct filter *f)
{
	char *said = NULL, *end;
	struct filter again;
	size_t size;
	FILE *out = open_memstream(&said, &size);

	assert_non_null(out);
	filter_explain(out, f, 300);
	fclose(out);
	end = strchr(said, '\n');
	assert_non_null(end);
	*end = 0;
	assert_int_equal(strncmp(said, "filter: ", 8), 0);
	parse(said + 8, &again);
	assert_string_equal(again.text, f->text);
	assert_memory_equal(&again.prog, &f->prog, sizeof(f->prog));
	assert_int_equal(again.n_cgroups, f->n_cgroups);
	assert_memory_equal(again.cgroups, f->cgroups, sizeof(f->cgroups));
	filter_free(&again);
	free(said);
}

/* The canonical text of what is accepted. */
static void check_text(const char *text, const char *want)
{
	struct filter f;

	parse(text, &f);
	assert_string_equal(f.text, want);
	check_well_formed(&f);
	check_round_trip(&f);
	filter_free(&f);
}

static void test_texts(void **state)
{
	(void)state;
	check_text("mem_lvl == ram && weight1 > 300", "mem_lvl == ram && dc_miss_lat > 300");
	check_text("ip == 0x401000", "ip == 0x401000");
	check_text(" MEM_LVLNUM==L3 ", "mem_lvl == l3");
	check_text("mem_lvl == 13", "mem_lvl == ram");
	check_text("weight2 >= 10, weight <= 0xffff", "ins_lat >= 10 && dc_miss_lat <= 65535");
	check_text("mem_dtlb & any_miss", "mem_dtlb & any_miss");
	check_text("!(mem_dtlb & any_miss)", "!(mem_dtlb & any_miss)");
	check_text("!mem_dtlb & any_miss", "!(mem_dtlb & any_miss)");
	check_text("swpf", "swpf == 1");
	check_text("!swpf", "swpf != 1");
	check_text("swpf&&locked", "swpf == 1 && locked == 1");
	check_text("data_pgsz == 2M || page_size==4096", "page_size == 2m || page_size == 4k");
	check_text("data_src == remote_dram", "data_src == remote-dram");
	check_text("op != branch", "op != branch");
	check_text("dc_miss_lat > 1k", "dc_miss_lat > 1000");
	check_text("cgroup == /a/b.slice,pid!=7", "cgroup == \"/a/b.slice\" && pid != 7");
	check_text("cgroup =~ /kubepods/**/x[ab]*", "cgroup =~ \"/kubepods/**/x[ab]*\"");
	check_text("!cgroup =~ '/a b'", "!(cgroup =~ \"/a b\")");
	check_text("container != web || container == '\"'",
		   "container != \"web\" || container == '\"'");
	check_text("container =~ web-*", "container =~ \"web-*\"");
	check_text("mem_op == load", "mem_op == load");
	check_text("((((pid == 1))))", "pid == 1");
	check_text("!!!pid == 1", "pid != 1");
}

/* '&&' before '||' before ',', which is perf's AND. */
static void test_precedence(void **state)
{
	(void)state;
	check_text("pid == 1 || tid == 2 && cpu == 3", "pid == 1 || tid == 2 && cpu == 3");
	check_text("(pid == 1 || tid == 2) && cpu == 3", "(pid == 1 || tid == 2) && cpu == 3");
	check_text("pid == 1, tid == 2 || cpu == 3, uid == 4",
		   "pid == 1 && (tid == 2 || cpu == 3) && uid == 4");
	check_text("pid == 1 || tid == 2, cpu == 3 && uid == 4",
		   "(pid == 1 || tid == 2) && cpu == 3 && uid == 4");
	check_text("!(pid == 1, tid > 2 || cpu < 3)", "pid != 1 || tid <= 2 && cpu >= 3");
	check_text("pid == 1 && (tid == 2 && cpu == 3)", "pid == 1 && tid == 2 && cpu == 3");
}

/* Every name of every term, every constant, every comparison. */
static void test_every_name(void **state)
{
	static const char *const cmps[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	char text[160], names[160], *at, *name;

	(void)state;
	for (int i = 0; i < IBS_FILTER_FIELD_N; i++) {
		const struct filter_field *fl = &filter_fields[i];
		const struct filter_const *c = filter_consts[fl->values];

		if (fl->values == FILTER_CGROUP)
			continue;
		snprintf(names, sizeof(names), "%s,%s", fl->name, fl->others);
		for (at = names; (name = strsep(&at, ","));) {
			struct filter f;

			if (!*name)
				continue;
			snprintf(text, sizeof(text), "%s == %s", name, c ? c->name : "1");
			parse(text, &f);
			assert_int_equal(f.prog.terms[0].field, i);
			filter_free(&f);
		}
		for (int k = 0; k < (filter_names_only(fl->values) ? 2 : 7); k++) {
			snprintf(text, sizeof(text), "%s %s %s", fl->name, cmps[k],
				 c ? c->name : (fl->values == FILTER_HEX ? "0x1" : "1"));
			check_text(text, text);
		}
		for (; c && c->name; c++) {
			struct filter f;

			snprintf(text, sizeof(text), "%s == %s", fl->name, c->name);
			parse(text, &f);
			assert_int_equal(f.prog.terms[0].value, c->value);
			check_round_trip(&f);
			filter_free(&f);
		}
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *error;
		int code;
	} rows[] = {
		{ "", "column 1: expected a term", -EINVAL },
		{ "  ", "column 3: expected a term", -EINVAL },
		{ "mem_lvl == ramm", "column 12: invalid value 'ramm': mem_lvl is one of l1",
		  -EINVAL },
		{ "pid == 1 && mem_lvl == 99", "column 24: mem_lvl must be at most 15", -ERANGE },
		{ "dc_mis_lat > 3",
		  "column 1: unknown term 'dc_mis_lat'; similar terms are dc_miss_lat", -EINVAL },
		{ "pid == 1 && qqqqqq == 3", "column 13: unknown term 'qqqqqq'; terms are",
		  -EINVAL },
		{ "oc_miss", "column 1: 'oc_miss' is a term of ibs_fetch, but the event is ibs_op",
		  -EINVAL },
		{ "tlb == 3", "column 1: unknown term 'tlb'; similar terms are", -EINVAL },
		{ "p_stage_cyc > 3", "column 1: 'p_stage_cyc' cannot be tested: the kernel",
		  -EINVAL },
		{ "weight3 > 3", "column 1: 'weight3' cannot be tested", -EINVAL },
		{ "code_pgsz == 4096", "column 1: 'code_pgsz' cannot be tested", -EINVAL },
		{ "period > 3", "column 1: 'period' cannot be tested: all samples", -EINVAL },
		{ "mem_blk == na", "column 1: 'mem_blk' cannot be tested", -EINVAL },
		{ "pid", "column 4: expected ==", -EINVAL },
		{ "pid = 3", "column 5: expected ==, !=, <, <=, >, >= or & before '= 3'", -EINVAL },
		{ "pid ==", "column 7: expected a number", -EINVAL },
		{ "pid == ram", "column 8: invalid value 'ram': pid is a number", -EINVAL },
		{ "pid == 12z", "column 8: pid", -EINVAL },
		{ "pid == 1 tid == 2", "column 10: expected &&, || or ',' before 'tid == 2'",
		  -EINVAL },
		{ "pid == 1)", "column 9: expected &&, || or ','", -EINVAL },
		{ "(pid == 1", "column 10: expected &&, || or the closing )", -EINVAL },
		{ "pid == 1 &&", "column 12: expected a term", -EINVAL },
		{ "pid == 1 || || tid == 1", "column 13: expected a term", -EINVAL },
		{ "pid == 1,", "column 10: expected a term", -EINVAL },
		{ "pid & 0", "column 5: '& 0' tests no bit", -EINVAL },
		{ "pid == 4294967296", "column 8: pid must be at most 4294967295", -ERANGE },
		{ "ip == 18446744073709551616", "column 7: ip", -ERANGE },
		{ "data_src == none", "column 13: 'none' means that there is no source", -EINVAL },
		{ "data_src == 3", "column 13: invalid value '3': data_src is one of l1", -EINVAL },
		{ "op < load", "column 4: op can only be compared", -EINVAL },
		{ "mem_snoop == hit", "column 14: invalid value 'hit': mem_snoop is one of hitm",
		  -EINVAL },
		{ "cgroup > /a", "column 8: expected ==, != or =~ before '> /a'", -EINVAL },
		{ "cgroup == ", "column 11: expected a path or a name", -EINVAL },
		{ "cgroup == \"/a", "column 11: missing closing \"", -EINVAL },
		{ "cgroup == \"/a\n\"", "column 14: control character", -EINVAL },
		{ "pid == 1\x01", "column 9: expected &&, || or ',' before '\\x01'", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e = {};
		struct filter f;
		int ret = filter_parse(rows[i].text, &f, &e);

		if (strncmp(e.text, rows[i].error, strlen(rows[i].error)))
			fail_msg("'%s': \"%s\", not \"%s\"", rows[i].text, e.text, rows[i].error);
		assert_int_equal(ret, rows[i].code);
	}
}

static int parse_repeated(const char *first, const char *more, int n, const char *last,
			  struct err *e)
{
	size_t size = strlen(first) + n * strlen(more) + strlen(last) + 1;
	char *text = malloc(size), *at;
	struct filter f;
	int ret;

	assert_non_null(text);
	at = stpcpy(text, first);
	while (n--)
		at = stpcpy(at, more);
	strcpy(at, last);
	ret = filter_parse(text, &f, e);
	filter_free(&f);
	free(text);
	return ret;
}

/* Different tests, with AND or OR between them. */
static int parse_many(int n, const char *op, struct err *e)
{
	char text[4096], *at = text;
	struct filter f;
	int ret;

	for (int i = 0; i < n; i++)
		at += sprintf(at, "%spid == %d", i ? op : "", i);
	ret = filter_parse(text, &f, e);
	if (!ret)
		check_round_trip(&f);
	filter_free(&f);
	return ret;
}

static void test_limits(void **state)
{
	struct err e = {};
	int n;

	(void)state;
	assert_int_equal(parse_many(IBS_FILTER_TERMS, "||", &e), 0);
	assert_int_equal(parse_many(IBS_FILTER_TERMS, ",", &e), 0);
	assert_int_equal(parse_many(IBS_FILTER_TERMS + 1, "||", &e), -E2BIG);
	assert_string_equal(e.text, "column 1: the filter needs 25 tests; "
				    "the kernel can run 24");
	/* repeated ones are merged, up to a limit of the text */
	n = FILTER_COMPARISONS;
	assert_int_equal(parse_repeated("pid==1", "||pid==1", n - 1, "", &e), 0);
	assert_int_equal(parse_repeated("pid==1", "||pid==1", n, "", &e), -E2BIG);
	assert_int_equal(parse_repeated("pid==1", "||pid==1", 100000, "", &e), -E2BIG);
	assert_int_equal(parse_repeated("", "!", FILTER_DEPTH, "swpf", &e), 0);
	assert_int_equal(parse_repeated("", "!", FILTER_DEPTH + 1, "swpf", &e), -E2BIG);
	assert_int_equal(parse_repeated("", "(", 1000000, "", &e), -E2BIG);
	assert_int_equal(parse_repeated("", "x", 1000000, "", &e), -EINVAL);
	assert_int_equal(parse_repeated("cgroup==", "x", FILTER_CGROUP_TEXT - 1, "", &e), 0);
	assert_int_equal(parse_repeated("cgroup==", "x", FILTER_CGROUP_TEXT, "", &e), -E2BIG);
	assert_int_equal(parse_repeated("cgroup==/a", ",cgroup==/a", 50, "", &e), 0);
	assert_int_equal(filter_parse("cgroup==a,cgroup==b,cgroup==c,cgroup==d,cgroup==e,"
				      "cgroup==f,cgroup==g,cgroup==h,cgroup==i",
				      &(struct filter){}, &e),
			 -E2BIG);
	assert_int_equal(strncmp(e.text, "column 81: more than 8 different", 32), 0);
}

static void test_merging(void **state)
{
	struct filter f;

	(void)state;
	parse("pid == 1 && tid == 2 || pid == 1 && cpu == 3", &f);
	assert_int_equal(f.prog.n,
			 4); /* pid twice: with another test between them it is not seen */
	filter_free(&f);
	parse("pid == 1 || pid == 1", &f);
	assert_int_equal(f.prog.n, 1);
	filter_free(&f);
	parse("pid == 1 && (pid == 1 || tid == 2)", &f);
	assert_int_equal(f.prog.n, 1);
	filter_free(&f);
}

/* A field that is absent matches neither a comparison nor its opposite. */
static void test_absent(void **state)
{
	static const char *const cmps[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	struct gen_rng r = { .seed = 7 };
	int absent[IBS_FILTER_FIELD_N] = {}, present[IBS_FILTER_FIELD_N] = {};

	(void)state;
	for (int i = 0; i < IBS_FILTER_FIELD_N; i++) {
		const struct filter_field *fl = &filter_fields[i];
		const struct filter_const *c = filter_consts[fl->values];
		int n_cmps = filter_names_only(fl->values) ? 2 : 7;
		struct filter f[2][7];

		if (fl->values == FILTER_CGROUP)
			continue;
		for (int k = 0; k < n_cmps; k++) {
			char text[100];

			for (int neg = 0; neg < 2; neg++) {
				snprintf(text, sizeof(text), "%s%s %s %s", neg ? "!" : "", fl->name,
					 cmps[k], c ? c->name : "1");
				parse(text, &f[neg][k]);
			}
		}
		for (int n = 0; n < 2000; n++) {
			const __u32 *gen = gens[n % N_GENS];
			struct ibs_filter_sample s;
			struct gen_sample gs;
			bool there;
			__u64 v;

			gen_sample(&r, gen[0], gen[1], &gs);
			there = gen_field(&gs, i, &v);
			(there ? present : absent)[i]++;
			gen_to_filter(&gs, &f[0][0], &s);
			for (int k = 0; k < n_cmps; k++)
				assert_int_equal(ibs_filter_eval(&f[0][k].prog, &s) +
							 ibs_filter_eval(&f[1][k].prog, &s),
						 there);
		}
		for (int k = 0; k < n_cmps; k++) {
			filter_free(&f[0][k]);
			filter_free(&f[1][k]);
		}
		assert_true(present[i] > 0);
		assert_true(fl->when == IBS_FILTER_WHEN_ALWAYS || absent[i] > 0);
	}
}

/* Random trees, written in random ways: what runs says what the tree says. */
static void test_random_filters(void **state)
{
	__u64 passed = 0, dropped = 0, too_long = 0;

	(void)state;
	for (int i = 0; i < 12000; i++) {
		struct gen_rng r = { .seed = i + 1 };
		struct gen g = {};
		int root = gen_tree(&g, &r, 1 + i % 5), ret;
		char *text = gen_text(&g, &r, root);
		struct err e = {};
		struct filter f;

		ret = filter_parse(text, &f, &e);
		if (ret == -E2BIG && strstr(e.text, "tests; 24")) {
			too_long++;
			free(text);
			continue;
		}
		if (ret)
			fail_msg("'%s': %s", text, e.text);
		check_well_formed(&f);
		check_round_trip(&f);
		for (int k = 0; k < 30; k++) {
			const __u32 *gen = gens[gen_below(&r, N_GENS)];
			struct ibs_filter_sample s;
			struct gen_sample gs;
			bool want;

			gen_sample(&r, gen[0], gen[1], &gs);
			gen_to_filter(&gs, &f, &s);
			want = gen_eval(&g, root, &gs, false);
			if (ibs_filter_eval(&f.prog, &s) != want)
				fail_msg("%d: '%s' is %d", i, text, want);
			want ? passed++ : dropped++;
		}
		filter_free(&f);
		free(text);
	}
	print_message("%" PRIu64 " passed, %" PRIu64 " dropped, %" PRIu64 " too long\n",
		      (uint64_t)passed, (uint64_t)dropped, (uint64_t)too_long);
	assert_true(passed > 30000 && dropped > 30000 && too_long < 1200);
}

static void mutate(struct gen_rng *r, char *text, size_t size)
{
	static const char bits[] = "()!&|,=<>~\"' \t0x_-9az/\\\n\x01\xff";
	int times = 1 + gen_below(r, 4);

	while (times--) {
		size_t n = strlen(text), at = gen_below(r, n + 1);
		char c = bits[gen_below(r, sizeof(bits) - 1)];

		switch (gen_below(r, 4)) {
		case 0: /* insert */
			if (n + 2 < size) {
				memmove(text + at + 1, text + at, n + 1 - at);
				text[at] = c;
			}
			break;
		case 1: /* delete */
			if (at < n)
				memmove(text + at, text + at + 1, n - at);
			break;
		case 2: /* replace */
			if (at < n)
				text[at] = c;
			break;
		default: /* cut */
			text[at] = 0;
		}
	}
}

/* Spoilt ones are refused with a column within the text, or mean something that round-trips. */
static void test_garbage(void **state)
{
	int good = 0, bad = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct gen_rng r = { .seed = i + 1000000 };
		char text[4096] = "";
		struct gen g = {};
		struct err e = {};
		struct filter f;
		unsigned int column;

		if (i % 4) {
			char *whole = gen_text(&g, &r, gen_tree(&g, &r, i % 4));

			snprintf(text, sizeof(text), "%s", whole);
			free(whole);
			mutate(&r, text, sizeof(text));
		} else {
			for (int k = gen_below(&r, 60); k > 0; k--)
				text[k - 1] = 1 + gen_below(&r, 255);
		}
		if (!filter_parse(text, &f, &e)) {
			check_well_formed(&f);
			check_round_trip(&f);
			filter_free(&f);
			good++;
			continue;
		}
		assert_int_equal(sscanf(e.text, "column %u: ", &column), 1);
		assert_in_range(column, 1, strlen(text) + 1);
		assert_null(strpbrk(e.text, "\n\t"));
		bad++;
	}
	print_message("%d good, %d bad\n", good, bad);
	assert_true(good > 500 && bad > 5000);
}

static void test_explain(void **state)
{
	struct filter f;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	parse("mem_lvl == ram, weight1 > 300 || swpf", &f);
	filter_explain(out, &f, 300);
	fclose(out);
	assert_string_equal(
		text,
		"filter: mem_lvl == ram && (dc_miss_lat > 300 || swpf == 1)\n"
		"in the kernel, 3 tests of 24:\n"
		"  1. mem_lvl == ram ? test 2 : drop (filter)\n"
		"     reads DATA3[0,1,7,14,16,20,21], DATA2[0..2,4,6,7]; false unless memory "
		"access whose source is known, not peer\n"
		"  2. dc_miss_lat > 300 ? keep : test 3\n"
		"     reads DATA3[32..47]; false unless load that missed L1; no prefetch, not "
		"uncached\n"
		"  3. swpf == 1 ? keep : drop (filter)\n"
		"     reads DATA3[21]; false unless memory access\n");
	free(text);
	filter_free(&f);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	filter_print_terms(out);
	fclose(out);
	for (int i = 0; i < IBS_FILTER_FIELD_N; i++)
		assert_non_null(strstr(text, filter_fields[i].name));
	free(text);
}

static void test_empty_filter(void **state)
{
	const struct ibs_filter none = {};
	struct ibs_filter_sample s = {};

	(void)state;
	assert_true(ibs_filter_eval(&none, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),	     cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_every_name),   cmocka_unit_test(test_errors),
		cmocka_unit_test(test_limits),	     cmocka_unit_test(test_merging),
		cmocka_unit_test(test_absent),	     cmocka_unit_test(test_random_filters),
		cmocka_unit_test(test_garbage),	     cmocka_unit_test(test_explain),
		cmocka_unit_test(test_empty_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
