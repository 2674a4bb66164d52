// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter.h"
#include "filter_private.h"
#include "base/screen.h"
#include "base/text.h"

#include <inttypes.h>

/* Short names for the table. */
enum needs {
	R1 = IBS_FILTER_NEEDS_REG(IBS_OP_DATA),
	R2 = IBS_FILTER_NEEDS_REG(IBS_OP_DATA2),
	R3 = IBS_FILTER_NEEDS_REG(IBS_OP_DATA3),
	R_IP = IBS_FILTER_NEEDS_REG(IBS_OP_RIP),
	R_ADDR = IBS_FILTER_NEEDS_REG(IBS_DC_LINADDR),
	R_PHYS = IBS_FILTER_NEEDS_REG(IBS_DC_PHYSADDR),
	TASK = IBS_FILTER_NEEDS_TASK,
	UID = IBS_FILTER_NEEDS_UID,
	CPU = IBS_FILTER_NEEDS_CPU,
	CGROUP = IBS_FILTER_NEEDS_CGROUP,
	SRC = IBS_FILTER_NEEDS_SRC,
};

const struct filter_field filter_fields[IBS_FETCH_FILTER_END] = {
#define FILTER_ROW(NAME, name, others, values, max, needs, when, value, where) \
	{ name, others, where, FILTER_##values, IBS_FILTER_WHEN_##when, needs, max },
	IBS_FILTER_FIELD_TABLE(FILTER_ROW)
#undef FILTER_ROW
#define FILTER_ROW(NAME, name, others, values, max, needs, when, value, where) \
	{ name, others, where, FILTER_##values, IBS_FETCH_WHEN_##when, needs, max },
		IBS_FETCH_FILTER_TABLE(FILTER_ROW)
#undef FILTER_ROW
};

static const char *const whens[] = {
	[IBS_FILTER_WHEN_PAGE] = "address translated, and page size known",
	[IBS_FILTER_WHEN_SRC] = "memory access whose source is known",
	[IBS_FILTER_WHEN_LVL] = "memory access whose source is known, not peer",
	[IBS_FILTER_WHEN_HOPS] = "from another cache or another node",
#define FILTER_WHEN(NAME, fn, words) [IBS_FILTER_WHEN_##NAME] = words,
	IBS_FILTER_WHEN_TABLE(FILTER_WHEN)
#undef FILTER_WHEN
#define FILTER_WHEN(NAME, condition, words) [IBS_FETCH_WHEN_##NAME] = words,
		IBS_FETCH_WHEN_TABLE(FILTER_WHEN)
#undef FILTER_WHEN
};

/* The first name of a value is the one to print. */
static const struct filter_const mem_op[] = {
	{ "na", IBS_PERF_OP_NA },
	{ "load", IBS_PERF_OP_LOAD },
	{ "store", IBS_PERF_OP_STORE },
	{},
};

static const struct filter_const mem_lvl[] = {
	{ "l1", IBS_PERF_LVL_L1 },   { "l2", IBS_PERF_LVL_L2 },
	{ "l3", IBS_PERF_LVL_L3 },   { "any_cache", IBS_PERF_LVL_ANY_CACHE },
	{ "ram", IBS_PERF_LVL_RAM }, { "pmem", IBS_PERF_LVL_PMEM },
	{ "cxl", IBS_PERF_LVL_CXL }, { "io", IBS_PERF_LVL_IO },
	{ "unc", IBS_PERF_LVL_UNC }, { "lfb", IBS_PERF_LVL_LFB },
	{ "mab", IBS_PERF_LVL_LFB }, {},
};

static const struct filter_const mem_remote[] = { { "remote", IBS_PERF_REMOTE }, {} };

static const struct filter_const mem_hops[] = {
	{ "hops0", IBS_PERF_HOPS_0 },
	{ "hops1", IBS_PERF_HOPS_1 },
	{},
};

static const struct filter_const mem_snoop[] = { { "hitm", IBS_PERF_SNOOP_HITM }, {} };

static const struct filter_const mem_lock[] = {
	{ "na", IBS_PERF_LOCK_NA },
	{ "locked", IBS_PERF_LOCKED },
	{},
};

static const struct filter_const mem_dtlb[] = {
	{ "l1_hit", IBS_PERF_TLB_L1 | IBS_PERF_TLB_HIT },
	{ "l2_hit", IBS_PERF_TLB_L2 | IBS_PERF_TLB_HIT },
	{ "l2_miss", IBS_PERF_TLB_L2 | IBS_PERF_TLB_MISS },
	{ "any_hit", IBS_PERF_TLB_HIT },
	{ "any_miss", IBS_PERF_TLB_MISS },
	{},
};

static const struct filter_const page_size[] = {
	{ "4k", 1 << 12 },
	{ "2m", 1 << 21 },
	{ "1g", 1 << 30 },
	{},
};

static const struct filter_const op[] = {
#define FILTER_OP_ROW(NAME, name, meaning) { name, IBS_OP_KIND_##NAME },
	IBS_OP_KIND_TABLE(FILTER_OP_ROW)
#undef FILTER_OP_ROW
		{},
};

/* All except "unknown" and "none", which mean that there is no source. */
static const struct filter_const data_src[] = {
#define FILTER_SRC_ROW(NAME, name, meaning) { name, IBS_SRC_##NAME },
	IBS_SRC_TABLE(FILTER_SRC_ROW)
#undef FILTER_SRC_ROW
		{},
};
_Static_assert(IBS_SRC_UNKNOWN == 0 && IBS_SRC_NONE == 1, "filter_consts skips the first two");

static const struct filter_const fetch[] = {
#define FILTER_FETCH_ROW(NAME, name, meaning) { name, IBS_FETCH_CLASS_##NAME },
	IBS_FETCH_CLASS_TABLE(FILTER_FETCH_ROW)
#undef FILTER_FETCH_ROW
		{},
};

static const struct filter_const itlb[] = {
#define FILTER_ITLB_ROW(NAME, name, meaning) { name, IBS_FETCH_ITLB_##NAME },
	IBS_FETCH_ITLB_TABLE(FILTER_ITLB_ROW)
#undef FILTER_ITLB_ROW
		{},
};
_Static_assert(!IBS_FETCH_CLASS_UNKNOWN && !IBS_FETCH_ITLB_UNKNOWN,
	       "filter_consts skips the first");

const struct filter_const *const filter_consts[FILTER_VALUES_N] = {
	[FILTER_MEM_OP] = mem_op,
	[FILTER_MEM_LVL] = mem_lvl,
	[FILTER_MEM_REMOTE] = mem_remote,
	[FILTER_MEM_HOPS] = mem_hops,
	[FILTER_MEM_SNOOP] = mem_snoop,
	[FILTER_MEM_LOCK] = mem_lock,
	[FILTER_MEM_DTLB] = mem_dtlb,
	[FILTER_PAGE_SIZE] = page_size,
	[FILTER_OP] = op,
	[FILTER_DATA_SRC] = data_src + 2,
	[FILTER_FETCH] = fetch + 1,
	[FILTER_ITLB] = itlb + 1,
};

static const char *const cmps[] = {
	[IBS_FILTER_EQ] = "==", [IBS_FILTER_NE] = "!=",	 [IBS_FILTER_LT] = "<",
	[IBS_FILTER_LE] = "<=", [IBS_FILTER_GT] = ">",	 [IBS_FILTER_GE] = ">=",
	[IBS_FILTER_ANY] = "&", [IBS_FILTER_NONE] = "&",
};

static const char *const reasons[] = {
#define FILTER_REASON(NAME, kind, reason, meaning) reason,
	IBS_OUTCOME_TABLE(FILTER_REASON)
#undef FILTER_REASON
};

static void print_value(FILE *out, const struct filter_field *fl, __u64 value)
{
	const struct filter_const *c = filter_consts[fl->values];

	for (; c && c->name; c++) {
		if (c->value == value) {
			fputs(c->name, out);
			return;
		}
	}
	fprintf(out, fl->values == FILTER_HEX ? "%#" PRIx64 : "%" PRIu64, (uint64_t)value);
}

/* @value is one bit. */
static void print_cgroup(FILE *out, const struct filter *f, __u64 value, bool none)
{
	const struct filter_cgroup *c = &f->cgroups[__builtin_ctzll(value)];
	bool glob = c->kind == FILTER_CGROUP_GLOB || c->kind == FILTER_CONTAINER_GLOB;
	const char *name = c->kind == FILTER_CGROUP_PATH || c->kind == FILTER_CGROUP_GLOB
				   ? "cgroup"
				   : "container";
	char quote = strchr(c->text, '"') ? '\'' : '"';

	fprintf(out, glob && none ? "!(%s %s %c%s%c)" : "%s %s %c%s%c", name,
		glob ? "=~" : (none ? "!=" : "=="), quote, c->text, quote);
}

static void print_test(FILE *out, const struct filter *f, unsigned int field, unsigned int cmp,
		       __u64 value)
{
	const struct filter_field *fl = &filter_fields[field];
	bool none = cmp == IBS_FILTER_NONE;

	if (fl->values == FILTER_CGROUP) {
		print_cgroup(out, f, value, none);
		return;
	}
	fprintf(out, none ? "!(%s %s " : "%s %s ", fl->name, cmps[cmp]);
	print_value(out, fl, value);
	if (none)
		fputc(')', out);
}

static void print_node(FILE *out, const struct filter *f, const struct filter_node *nodes,
		       unsigned int at, bool in_and)
{
	const struct filter_node *n = &nodes[at];
	bool paren = n->kind == FILTER_NODE_OR && in_and;

	if (n->kind == FILTER_NODE_TEST) {
		print_test(out, f, n->field, n->cmp, n->value);
		return;
	}
	if (paren)
		fputc('(', out);
	print_node(out, f, nodes, n->a, n->kind == FILTER_NODE_AND);
	fputs(n->kind == FILTER_NODE_AND ? " && " : " || ", out);
	print_node(out, f, nodes, n->b, n->kind == FILTER_NODE_AND);
	if (paren)
		fputc(')', out);
}

char *filter_text(const struct filter *f, const struct filter_node *nodes, unsigned int root)
{
	char *text = NULL;
	size_t size;
	FILE *out = xmemopen(&text, &size);

	print_node(out, f, nodes, root, false);
	xmemclose(out);
	return text;
}

static void print_target(FILE *out, unsigned int to)
{
	if (to == IBS_FILTER_ACCEPT)
		fputs("keep", out);
	else if (to >= IBS_FILTER_END)
		fprintf(out, "drop (%s)", reasons[to - IBS_FILTER_END]);
	else
		fprintf(out, "test %u", to + 1);
}

#define READS 5 /* where these texts begin */

static void print_reads(FILE *out, const struct filter_field *fl, unsigned int width)
{
	const bool always = fl->when == IBS_FILTER_WHEN_ALWAYS || fl->when == IBS_FETCH_WHEN_ALWAYS;
	char *text = xasprintf("reads %s%s%s", fl->where, always ? "" : "; false unless ",
			       always ? "" : whens[fl->when]);

	fprintf(out, "%*s", READS, "");
	screen_wrap(out, text, READS, width);
	free(text);
}

void filter_explain(FILE *out, const struct filter *f, unsigned int width)
{
	for (unsigned int i = 0; i < f->n_parts; i++)
		fprintf(out, "%s: %s\n", reasons[f->parts[i].outcome], f->parts[i].text);
	fprintf(out, "in the kernel, %u test%s of %d:\n", f->prog.n, text_plural(f->prog.n),
		IBS_FILTER_TERMS);
	for (__u32 i = 0; i < f->prog.n; i++) {
		const struct ibs_filter_term *t = &f->prog.terms[i];
		const struct filter_field *fl = &filter_fields[t->field];

		fprintf(out, "  %u. ", i + 1);
		print_test(out, f, t->field, t->cmp, t->value);
		fputs(" ? ", out);
		print_target(out, t->on_true);
		fputs(" : ", out);
		print_target(out, t->on_false);
		fputc('\n', out);
		print_reads(out, fl, width);
	}
}

static void print_values(FILE *out, const struct filter_field *fl)
{
	const struct filter_const *c = filter_consts[fl->values];

	if (fl->values == FILTER_CGROUP) {
		fputs("a path, or with =~ a pattern", out);
		return;
	}
	if (!c) {
		fprintf(out, "0 .. %#" PRIx64, (uint64_t)fl->max);
		return;
	}
	for (const char *sep = ""; c->name; c++, sep = ", ")
		fprintf(out, "%s%s", sep, c->name);
}

void filter_print_terms(FILE *out)
{
	for (int i = 0; i < IBS_FETCH_FILTER_END; i++) {
		const struct filter_field *fl = &filter_fields[i];

		if (i == IBS_FETCH_FILTER_FIRST + 1)
			fputs("\nTerms of -e ibs_fetch//, which also has pid, tid, uid, gid, cpu "
			      "and cgroup:\n",
			      out);
		fprintf(out, "%s", fl->name);
		if (fl->others[0])
			fprintf(out, " (%s)", fl->others);
		fputs(": ", out);
		print_values(out, fl);
		fprintf(out, "; %s; %s\n", fl->where, whens[fl->when]);
	}
}
