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
	/* whatever pid is, the rest decides */
	parse("(pid == 1 && cpu == 3 || cpu == 3) && uid == 4", &f);
	assert_int_equal(f.prog.n, 2);
	filter_free(&f);
}

/* The number of tests is returned, also if the list does not fit. */
static void test_build(void **state)
{
	struct filter_node nodes[2 * IBS_FILTER_TERMS + 1];
	struct filter_root root = { .outcome = IBS_OUTCOME_FILTERED_EXPR };
	struct ibs_filter prog = {};
	unsigned int n = 0;

	(void)state;
	nodes[n++] = (struct filter_node){ .kind = FILTER_NODE_TEST, .field = IBS_FILTER_PID };
	assert_int_equal(filter_build(nodes, &root, 1, &prog), 1);
	assert_int_equal(prog.n, 1);
	for (unsigned int i = 1; i <= IBS_FILTER_TERMS; i++) {
		nodes[n++] = (struct filter_node){ .kind = FILTER_NODE_TEST,
						   .field = IBS_FILTER_PID,
						   .value = i };
		nodes[n] = (struct filter_node){ .a = root.node, .b = n - 1 };
		root.node = n++;
		prog = (struct ibs_filter){};
		assert_int_equal(filter_build(nodes, &root, 1, &prog), i + 1);
		assert_int_equal(prog.n, i < IBS_FILTER_TERMS ? i + 1 : 0);
	}
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

/* The whole message about an expression of one event. */
static void refuses(bool fetch, const char *text, int code, const char *want)
{
	const struct filter_part part = { .text = text,
					  .outcome = IBS_OUTCOME_FILTERED_EXPR,
					  .fetch = fetch };
	struct err e = {};
	struct filter f;

	assert_int_equal(filter_compile(&part, 1, &f, &e), code);
	assert_string_equal(e.text, want);
	/* nothing is left to be freed */
	assert_null(f.text);
	assert_int_equal(f.n_parts, 0);
}

static void accepts_fetch(const char *text, const char *want)
{
	const struct filter_part part = { .text = text,
					  .outcome = IBS_OUTCOME_FILTERED_EXPR,
					  .fetch = true };
	struct err e = {};
	struct filter f;

	if (filter_compile(&part, 1, &f, &e))
		fail_msg("'%s': %s", text, e.text);
	assert_string_equal(f.text, want);
	filter_free(&f);
}

/* ibs_fetch has its own terms, and those of tasks. */
static void test_fetch(void **state)
{
	(void)state;
	accepts_fetch("lat > 5", "fetch_lat > 5");
	accepts_fetch("FETCH == L3_miss && itlb != walk-4k", "fetch == l3-miss && itlb != walk-4k");
	accepts_fetch("code_pgsz == 2M, tlb_refill_lat > 1k",
		      "page_size == 2m && itlb_refill_lat > 1000");
	accepts_fetch("oc_miss, !ic_miss", "oc_miss == 1 && ic_miss != 1");
	accepts_fetch(
		"pid == 1, tid == 2, uid == 3, gid == 4, cpu == 5, cgroup == /a",
		"pid == 1 && tid == 2 && uid == 3 && gid == 4 && cpu == 5 && cgroup == \"/a\"");
	refuses(true, "", -EINVAL,
		"column 1: expected a term such as fetch_lat, but the filter ends here");
	refuses(false, "", -EINVAL,
		"column 1: expected a term such as dc_miss_lat, but the filter ends here");
	refuses(true, "dc_miss_lat > 3", -EINVAL,
		"column 1: 'dc_miss_lat' is a term of ibs_op, but the event is ibs_fetch; "
		"`ibscope help filter` lists the terms of each");
	refuses(true, "op == load", -EINVAL,
		"column 1: 'op' is a term of ibs_op, but the event is ibs_fetch; "
		"`ibscope help filter` lists the terms of each");
	refuses(true, "phys_addr > 0 && mem_op == load", -EINVAL,
		"column 18: 'mem_op' is a term of ibs_op, but the event is ibs_fetch; "
		"`ibscope help filter` lists the terms of each");
	refuses(false, "fetch_lat > 3", -EINVAL,
		"column 1: 'fetch_lat' is a term of ibs_fetch, but the event is ibs_op; "
		"`ibscope help filter` lists the terms of each");
	refuses(true, "pid == 1 && fetch < l2", -EINVAL,
		"column 19: fetch can only be compared with == and !=");
	refuses(true, "itlb & l2", -EINVAL, "column 6: itlb can only be compared with == and !=");
	refuses(true, "fetch_la == 1", -EINVAL,
		"column 1: unknown term 'fetch_la'; similar terms are fetch_lat");
	/* up to the first flag */
	refuses(true, "qqqqqq == 1", -EINVAL,
		"column 1: unknown term 'qqqqqq'; terms are pid, tid, uid, gid, cpu, cgroup, "
		"fetch_lat, itlb_refill_lat, fetch, itlb, page_size, ip and more");
	refuses(false, "qqqqqq == 1", -EINVAL,
		"column 1: unknown term 'qqqqqq'; terms are dc_miss_lat, ins_lat, tlb_refill_lat, "
		"tag_to_ret, comp_to_ret, mem_op, mem_lvl, mem_remote, mem_hops, mem_snoop, "
		"mem_lock, mem_dtlb, page_size, ip and more");
}

/* Similar terms are the one with the nearest spelling, and those that contain three letters or more. */
static void test_similar(void **state)
{
	(void)state;
	refuses(false, "tlb == 3", -EINVAL,
		"column 1: unknown term 'tlb'; similar terms are tlb_refill_lat, mem_dtlb, "
		"l1tlb_miss, l2tlb_miss");
	refuses(false, "MIS", -EINVAL,
		"column 1: unknown term 'MIS'; similar terms are dc_miss_lat, dc_miss, l2_miss, "
		"l1tlb_miss, l2tlb_miss, misaligned, brn_misp");
	refuses(false, "dc-miss-", -EINVAL,
		"column 1: unknown term 'dc-miss-'; similar terms are dc_miss_lat");
	refuses(false, "ld == 3", -EINVAL,
		"column 1: unknown term 'ld'; terms are dc_miss_lat, ins_lat, tlb_refill_lat, "
		"tag_to_ret, comp_to_ret, mem_op, mem_lvl, mem_remote, mem_hops, mem_snoop, "
		"mem_lock, mem_dtlb, page_size, ip and more");
}

/* perf's terms that IBS lacks have a reason each. */
static void test_lacking(void **state)
{
	static const struct {
		const char *name, *why;
	} rows[] = {
		{ "weight3", "the kernel does not fill it for IBS; comp_to_ret is the time from "
			     "completion to retirement" },
		{ "p-stage-cyc", "the kernel does not fill it for IBS; comp_to_ret is the time "
				 "from completion to retirement" },
		{ "Retire_Lat", "the kernel does not fill it for IBS; comp_to_ret is the time "
				"from completion to retirement" },
		{ "code_pgsz", "ibs_op does not report the page size of code, ibs_fetch does; "
			       "page_size is that of data" },
		{ "period", "all samples of an event have the same; set it with -c" },
		{ "mem_blk", "IBS does not report what blocked an access" },
		{ "txn", "AMD has no transactions" },
		{ "time", "a sample gets its time only after it is filtered" },
		{ "id", "a filter applies to one event" },
	};
	char text[64], want[300];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "pid == 1 && %s > 3", rows[i].name);
		snprintf(want, sizeof(want), "column 13: '%s' cannot be tested: %s", rows[i].name,
			 rows[i].why);
		refuses(false, text, -EINVAL, want);
	}
}

static void test_bad_values(void **state)
{
	(void)state;
	/* names of what is absent */
	refuses(false, "data_src == unknown", -EINVAL,
		"column 13: 'unknown' means that there is no source, and an absent field never "
		"matches");
	refuses(false, "data_src == NONE", -EINVAL,
		"column 13: 'NONE' means that there is no source, and an absent field never "
		"matches");
	refuses(true, "fetch == unknown", -EINVAL,
		"column 10: 'unknown' means that there is no fetch, and an absent field never "
		"matches");
	refuses(true, "itlb == none", -EINVAL,
		"column 9: invalid value 'none': itlb is one of l1, l2, walk-4k, walk-16k, "
		"walk-2m, walk-1g, walk");
	refuses(false, "op == unknown", -EINVAL,
		"column 7: invalid value 'unknown': op is one of load, store, locked, prefetch, "
		"branch, other");
	refuses(false, "mem_lvl == unknown", -EINVAL,
		"column 12: invalid value 'unknown': mem_lvl is one of l1, l2, l3, any_cache, ram, "
		"pmem, cxl, io, unc, lfb, mab");
	refuses(false, "pid == unknown", -EINVAL,
		"column 8: invalid value 'unknown': pid is a number");
	/* names only where there is no order, else also numbers */
	refuses(false, "op == 1", -EINVAL,
		"column 7: invalid value '1': op is one of load, store, locked, prefetch, branch, "
		"other");
	refuses(false, "pid == a", -EINVAL, "column 8: invalid value 'a': pid is a number");
	refuses(false, "pid == _", -EINVAL, "column 8: invalid value '_': pid is a number");
	check_text("mem_lvl == 0", "mem_lvl == 0");
	check_text("mem_lvl == 15", "mem_lvl == 15");
	check_text("pid == 9", "pid == 9");
	refuses(false, "mem_lvl == 16", -ERANGE, "column 12: mem_lvl must be at most 15");
	refuses(false, "mem_lvl ==", -EINVAL,
		"column 11: expected a number or a constant, but the filter ends here");
	refuses(false, "pid == ,", -EINVAL, "column 8: expected a number before ','");
	/* at most 20 characters of what follows */
	refuses(false, "pid == 1 0123456789012345678901", -EINVAL,
		"column 10: expected &&, || or ',' before '01234567890123456789'");
	refuses(false, "(pid == 1 0", -EINVAL,
		"column 11: expected &&, || or the closing ) before '0'");
}

/* A word has up to 63 characters. */
static void test_words(void **state)
{
	char text[80], want[200];

	(void)state;
	memset(text, 'q', sizeof(text));
	text[63] = 0;
	snprintf(want, sizeof(want), "column 1: unknown term '%s'; terms are dc_miss_lat, ", text);
	{
		struct err e = {};
		struct filter f;

		assert_int_equal(filter_parse(text, &f, &e), -EINVAL);
		assert_memory_equal(e.text, want, strlen(want));
	}
	text[63] = 'q';
	text[64] = 0;
	refuses(false, text, -EINVAL,
		"column 1: expected a term such as dc_miss_lat before 'qqqqqqqqqqqqqqqqqqqq'");
	check_text("\tpid\n==\t1\n&&\n swpf\t", "pid == 1 && swpf == 1");
}

/* Where names end, and what is in quotes. */
static void test_names(void **state)
{
	static const char ends[] = " \t\n,&|()!\"'";
	struct filter f;
	char text[32];

	(void)state;
	check_text("cgroup == /a&&pid == 1", "cgroup == \"/a\" && pid == 1");
	check_text("(cgroup == /a)||pid == 1", "cgroup == \"/a\" || pid == 1");
	check_text("cgroup == ' ,&|()!\"'", "cgroup == ' ,&|()!\"'");
	for (size_t i = 0; ends[i]; i++) {
		struct err e = {};

		snprintf(text, sizeof(text), "cgroup == /a%c/b", ends[i]);
		assert_int_equal(filter_parse(text, &f, &e), -EINVAL);
	}
	refuses(false, "cgroup == ''", -EINVAL, "column 12: expected a path or a name");
	refuses(false, "cgroup == '/a\x7f'", -EINVAL, "column 14: control character in a name");
	check_text("cgroup == '/a b'", "cgroup == \"/a b\"");
	check_text("cgroup == '\x80'", "cgroup == \"\x80\"");
	refuses(false, "container = a", -EINVAL, "column 11: expected ==, != or =~ before '= a'");
	/* the same text as a path, a pattern and a container are three */
	assert_int_equal(filter_parse("cgroup == a || cgroup =~ a || container == a || "
				      "container =~ a || container != a",
				      &f, NULL),
			 0);
	assert_int_equal(f.n_cgroups, 4);
	assert_int_equal(f.cgroups[0].kind, FILTER_CGROUP_PATH);
	assert_int_equal(f.cgroups[1].kind, FILTER_CGROUP_GLOB);
	assert_int_equal(f.cgroups[2].kind, FILTER_CONTAINER);
	assert_int_equal(f.cgroups[3].kind, FILTER_CONTAINER_GLOB);
	filter_free(&f);
}

static void test_part_limit(void **state)
{
	struct filter_part parts[FILTER_PARTS + 1];
	struct err e = {};
	struct filter f;

	(void)state;
	for (int i = 0; i <= FILTER_PARTS; i++)
		parts[i] = (struct filter_part){ .option = "--option",
						 .text = "swpf",
						 .outcome = IBS_OUTCOME_FILTERED_EXPR };
	assert_int_equal(filter_compile(parts, FILTER_PARTS + 1, &f, &e), -E2BIG);
	assert_string_equal(e.text, "17 filters; the maximum is 16");
	assert_int_equal(filter_compile(parts, FILTER_PARTS, &f, &e), 0);
	assert_int_equal(f.n_parts, FILTER_PARTS);
	assert_int_equal(f.prog.n, 1);
	filter_free(&f);
	assert_int_equal(filter_compile(parts, 0, &f, &e), 0);
	assert_null(f.text);
	assert_int_equal(f.prog.n, 0);
	parts[1].text = "swpf &&";
	assert_int_equal(filter_compile(parts, 2, &f, &e), -EINVAL);
	assert_string_equal(e.text, "--option: column 8: expected a term such as dc_miss_lat, but "
				    "the filter ends here");
}

static void explains(bool fetch, const char *text, const char *want)
{
	const struct filter_part part = { .text = text,
					  .outcome = IBS_OUTCOME_FILTERED_EXPR,
					  .fetch = fetch };
	struct filter f;
	char *said = NULL;
	size_t size;
	FILE *out = open_memstream(&said, &size);

	assert_int_equal(filter_compile(&part, 1, &f, NULL), 0);
	filter_explain(out, &f, 300);
	fclose(out);
	assert_string_equal(said, want);
	free(said);
	filter_free(&f);
}

static void test_explain_more(void **state)
{
	(void)state;
	explains(true, "fetch_comp",
		 "filter: fetch_comp == 1\n"
		 "in the kernel, 1 test of 24:\n"
		 "  1. fetch_comp == 1 ? keep : drop (filter)\n"
		 "     reads CTL[50]\n");
	explains(false, "!(mem_dtlb & l2_miss) || container =~ a* || cgroup != '\"' || ip == 16",
		 "filter: !(mem_dtlb & l2_miss) || container =~ \"a*\" || cgroup != '\"' || "
		 "ip == 0x10\n"
		 "in the kernel, 4 tests of 24:\n"
		 "  1. !(mem_dtlb & l2_miss) ? keep : test 2\n"
		 "     reads DATA3[2,3]; false unless memory access, address valid\n"
		 "  2. container =~ \"a*\" ? keep : test 3\n"
		 "     reads current cgroup\n"
		 "  3. cgroup != '\"' ? keep : test 4\n"
		 "     reads current cgroup\n"
		 "  4. ip == 0x10 ? keep : drop (filter)\n"
		 "     reads RIP; false unless address of the op known\n");
}

static void test_terms(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	static const char *const lines[] = {
		"\ncgroup: a path, or with =~ a pattern; current cgroup; always\n",
		"\nop: load, store, locked, prefetch, branch, other; DATA3[0,1,15,21], DATA[37]; "
		"always\n",
		"\nip (rip): 0 .. 0xffffffffffffffff; RIP; address of the op known\n",
		"\nmem_hops: hops0, hops1; DATA3[0,1,7,14,16,20,21], DATA2[0..2,4,6,7]; from "
		"another cache or another node\n",
		"\nmicrocode (op_microcode): 0 .. 0x1; DATA[40]; always\n"
		"\nTerms of -e ibs_fetch//, which also has pid, tid, uid, gid, cpu and cgroup:\n"
		"fetch_lat (lat): 0 .. 0xffff; CTL[32..47]; fetch completed, status valid\n",
		"\nfetch_cnt: 0 .. 0xffff; CTL[16..31]; always\n",
	};
	static const char first[] = "dc_miss_lat (weight,weight1): 0 .. 0xffff; DATA3[32..47]; "
				    "load that missed L1; no prefetch, not uncached\nins_lat";

	(void)state;
	filter_print_terms(out);
	fclose(out);
	assert_memory_equal(text, first, strlen(first));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text, lines[i]))
			fail_msg("'%s' is not in '%s'", lines[i], text);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),	       cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_every_name),     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_limits),	       cmocka_unit_test(test_merging),
		cmocka_unit_test(test_build),	       cmocka_unit_test(test_absent),
		cmocka_unit_test(test_random_filters), cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_explain),	       cmocka_unit_test(test_empty_filter),
		cmocka_unit_test(test_fetch),	       cmocka_unit_test(test_similar),
		cmocka_unit_test(test_lacking),	       cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_words),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_part_limit),     cmocka_unit_test(test_explain_more),
		cmocka_unit_test(test_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
