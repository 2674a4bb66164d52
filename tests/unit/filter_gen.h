/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random filters: a tree, the many ways to write it, and what it says of a sample, worked out from
 * the tree and from op_fields.h, without anything of src/core/filter/filter.c, ibscope/predicate.h or
 * ibscope/filter_fields.h but numbers.
 */
#ifndef FILTER_GEN_H
#define FILTER_GEN_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibscope/op_fields.h>
#include <ibscope/sim.h>

#include "filter/filter.h"
#include "filter/filter_private.h"

#define GEN_NODES 64

struct gen_rng {
	__u64 seed, n;
};

static inline __u32 gen_below(struct gen_rng *r, __u32 below)
{
	return (ibs_sim_mix(r->seed * 0x100000001b3ULL + r->n++) >> 33) % below;
}

struct gen_node {
	char kind; /* '&' '|' '!' 't' */
	int a, b;
	int field, cmp;
	__u64 value;
	const char *word; /* name of the value, or NULL */
};

struct gen {
	struct gen_node node[GEN_NODES];
	int n, tests;
};

/* Besides cgroups, whose texts matter only to the caller. */
static const char *const gen_cgroups[] = { "/a", "/a/b", "/x-1.slice", "/\\x2d q" };

static inline int gen_test(struct gen *g, struct gen_rng *r)
{
	struct gen_node *t = &g->node[g->n];
	const struct filter_field *fl;
	const struct filter_const *c;
	int n = 0;

	t->kind = 't';
	t->field = gen_below(r, IBS_FILTER_FIELD_N);
	t->cmp = gen_below(r, 7);
	t->word = NULL;
	fl = &filter_fields[t->field];
	c = filter_consts[fl->values];
	while (c && c[n].name)
		n++;
	if (fl->values == FILTER_CGROUP) {
		t->cmp = gen_below(r, 2);
		t->value = gen_below(r, 4);
	} else if (n && (filter_names_only(fl->values) || gen_below(r, 3))) {
		const struct filter_const *pick = &c[gen_below(r, n)];

		t->word = pick->name;
		t->value = pick->value;
		if (filter_names_only(fl->values))
			t->cmp &= 1;
	} else {
		__u64 v = ibs_sim_mix(r->seed + r->n++);

		t->value = fl->max == ~0ULL ? v >> gen_below(r, 64) : v % (fl->max + 1);
		if (fl->max > 1 && gen_below(r, 2))
			t->value = (v >> 32) % (fl->max < 600 ? fl->max + 1 : 600);
		if (t->cmp == IBS_FILTER_ANY && !t->value)
			t->value = 1;
	}
	g->tests++;
	return g->n++;
}

static inline int gen_tree(struct gen *g, struct gen_rng *r, int depth)
{
	struct gen_node n = {};
	__u32 pick = gen_below(r, 8);

	if (depth == 0 || g->tests > 16 || g->n > GEN_NODES - 20 || pick < 3)
		return gen_test(g, r);
	n.kind = pick < 5 ? '&' : (pick < 7 ? '|' : '!');
	n.a = gen_tree(g, r, depth - 1);
	if (n.kind != '!')
		n.b = gen_tree(g, r, depth - 1);
	g->node[g->n] = n;
	return g->n++;
}

/* --- to text --- */

static inline void gen_blank(FILE *f, struct gen_rng *r)
{
	static const char *const blanks[] = { "", " ", "", " ", "  ", "\t" };

	fputs(blanks[gen_below(r, 6)], f);
}

static inline void gen_word(FILE *f, struct gen_rng *r, const char *word)
{
	bool shout = !gen_below(r, 4), dash = !gen_below(r, 3);

	for (; *word; word++) {
		char c = *word;

		if (dash && (c == '-' || c == '_'))
			c = gen_below(r, 2) ? '-' : '_';
		fputc(shout && c >= 'a' && c <= 'z' ? c - 32 : c, f);
	}
}

static inline void gen_print_test(FILE *f, struct gen_rng *r, const struct gen_node *t)
{
	static const char *const cmps[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	const struct filter_field *fl = &filter_fields[t->field];
	const char *name = fl->name;

	if (fl->others[0] && gen_below(r, 2)) {
		char others[64], *at = others, *word;

		snprintf(others, sizeof(others), "%s", fl->others);
		while ((word = strsep(&at, ",")))
			if (!at || gen_below(r, 2))
				break;
		gen_word(f, r, word);
	} else {
		gen_word(f, r, name);
	}
	if (fl->values == FILTER_FLAG && t->cmp == IBS_FILTER_EQ && t->value == 1 &&
	    gen_below(r, 2)) {
		fputc(' ', f);
		return;
	}
	gen_blank(f, r);
	fputs(cmps[t->cmp], f);
	gen_blank(f, r);
	if (fl->values == FILTER_CGROUP)
		fprintf(f, "\"%s\"", gen_cgroups[t->value]);
	else if (t->word)
		gen_word(f, r, t->word);
	else
		fprintf(f, gen_below(r, 2) ? "%" PRIu64 : "0x%" PRIx64, (uint64_t)t->value);
}

/* Binding: ',' 0, '||' 1, '&&' 2, '!' 3. */
static inline void gen_print(FILE *f, struct gen_rng *r, const struct gen *g, int at, int outer)
{
	const struct gen_node *n = &g->node[at];
	const char *op = n->kind == '|' ? "||" : "&&";
	int bind = n->kind == '|' ? 1 : 2;
	bool paren;

	if (n->kind == '&' && gen_below(r, 2)) {
		op = ",";
		bind = 0;
	}
	if (n->kind == 't' || n->kind == '!')
		bind = 3;
	/* a test behind "!" is written with parentheses, as in "!(a == b)", or as "!a == b" */
	paren = bind < outer || !gen_below(r, 8);
	gen_blank(f, r);
	if (paren)
		fputc('(', f);
	if (n->kind == 't') {
		gen_print_test(f, r, n);
	} else if (n->kind == '!') {
		fputc('!', f);
		gen_print(f, r, g, n->a, 3);
	} else {
		gen_print(f, r, g, n->a, bind);
		fputs(op, f);
		gen_print(f, r, g, n->b, bind + 1);
	}
	if (paren)
		fputc(')', f);
	gen_blank(f, r);
}

/* To be freed. */
static inline char *gen_text(const struct gen *g, struct gen_rng *r, int root)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	gen_print(f, r, g, root, 0);
	fclose(f);
	return text;
}

/* --- what it says --- */

struct gen_sample {
	struct ibs_op_sample op;
	__u64 pid_tgid, uid_gid;
	__u32 cpu;
	bool in_cgroup[4];
};

static inline bool gen_raw(const struct gen_sample *s, enum ibs_op_field f, __u64 *v)
{
	return ibs_op_field(&s->op, f, v);
}

static inline bool gen_page_size(const struct gen_sample *s, __u64 *v)
{
	__u64 code, m2, g1;

	if (gen_raw(s, IBS_OP_FIELD_DC_PAGE_SIZE, &code)) {
		*v = (__u64[]){ 4096, 2 << 20, 1 << 30, 0 }[code];
		return *v;
	}
	if (gen_raw(s, IBS_OP_FIELD_DC_L1TLB_MISS, &code) && !code) {
		if (!gen_raw(s, IBS_OP_FIELD_DC_L1TLB_HIT_2M, &m2) ||
		    !gen_raw(s, IBS_OP_FIELD_DC_L1TLB_HIT_1G, &g1))
			return false;
	} else if (!gen_raw(s, IBS_OP_FIELD_DC_L2TLB_MISS, &code) || code ||
		   !gen_raw(s, IBS_OP_FIELD_DC_L2TLB_HIT_2M, &m2) ||
		   !gen_raw(s, IBS_OP_FIELD_DC_L2_TLB_HIT_1G, &g1)) {
		return false;
	}
	*v = g1 ? 1 << 30 : (m2 ? 2 << 20 : 4096);
	return !(m2 && g1);
}

/* perf's words for a source: level, hops, remote; from the kernel's table. */
static const struct {
	int lvl, hops, remote;
} gen_srcs[IBS_SRC_N] = {
	[IBS_SRC_L1] = { 1, 0, 0 },	     [IBS_SRC_L2] = { 2, 0, 0 },
	[IBS_SRC_L3] = { 3, 0, 0 },	     [IBS_SRC_LOCAL_CACHE] = { 11, 1, 0 },
	[IBS_SRC_NEAR_CACHE] = { 11, 1, 1 }, [IBS_SRC_REMOTE_CACHE] = { 11, 2, 1 },
	[IBS_SRC_DRAM] = { 13, 0, 0 },	     [IBS_SRC_REMOTE_DRAM] = { 13, 2, 1 },
	[IBS_SRC_PMEM] = { 14, 0, 0 },	     [IBS_SRC_REMOTE_PMEM] = { 14, 2, 1 },
	[IBS_SRC_CXL] = { 9, 0, 0 },	     [IBS_SRC_REMOTE_CXL] = { 9, 2, 1 },
	[IBS_SRC_IO] = { 10, 0, 0 },	     [IBS_SRC_UNCACHED] = { 8, 0, 0 },
	[IBS_SRC_MAB] = { 12, 0, 0 },
};

static inline bool gen_field(const struct gen_sample *s, int field, __u64 *v)
{
	__u32 src = ibs_op_src(s->op.cpu, s->op.reg);
	__u64 a, b;

	switch (field) {
#define GEN_RAW(F, OP)       \
	case IBS_FILTER_##F: \
		return gen_raw(s, IBS_OP_FIELD_##OP, v);
		GEN_RAW(DC_MISS_LAT, DC_MISS_LAT)
		GEN_RAW(TLB_REFILL_LAT, TLB_REFILL_LAT)
		GEN_RAW(TAG_TO_RET, TAG_TO_RET_CTR)
		GEN_RAW(COMP_TO_RET, COMP_TO_RET_CTR)
		GEN_RAW(IP, RIP)
		GEN_RAW(ADDR, DC_LIN_AD)
		GEN_RAW(PHYS_ADDR, DC_PHYS_AD)
		GEN_RAW(RMT_NODE, RMT_NODE)
		GEN_RAW(RMT_SOCKET, RMT_SOCKET)
		GEN_RAW(CACHE_HIT_ST, CACHE_HIT_ST)
		GEN_RAW(STRM_ST, STRM_ST)
		GEN_RAW(LD_OP, LD_OP)
		GEN_RAW(ST_OP, ST_OP)
		GEN_RAW(DC_MISS, DC_MISS)
		GEN_RAW(L2_MISS, L2_MISS)
		GEN_RAW(L1TLB_MISS, DC_L1TLB_MISS)
		GEN_RAW(L2TLB_MISS, DC_L2TLB_MISS)
		GEN_RAW(MISALIGNED, DC_MIS_ACC)
		GEN_RAW(WC, DC_WC_MEM_ACC)
		GEN_RAW(UNCACHED, DC_UC_MEM_ACC)
		GEN_RAW(LOCKED, DC_LOCKED_OP)
		GEN_RAW(NO_MAB, DC_MISS_NO_MAB_ALLOC)
		GEN_RAW(SWPF, SW_PF)
		GEN_RAW(OPEN_REQS, OP_DC_MISS_OPEN_MEM_REQS)
		GEN_RAW(BRN_RET, OP_BRN_RET)
		GEN_RAW(BRN_TAKEN, OP_BRN_TAKEN)
		GEN_RAW(BRN_MISP, OP_BRN_MISP)
		GEN_RAW(BRN_RETURN, OP_RETURN)
		GEN_RAW(BRN_FUSE, OP_BRN_FUSE)
		GEN_RAW(MICROCODE, OP_MICROCODE)
#undef GEN_RAW
	case IBS_FILTER_INS_LAT:
		return gen_raw(s, IBS_OP_FIELD_DC_MISS_LAT, &a) &&
		       gen_raw(s, IBS_OP_FIELD_TAG_TO_RET_CTR, v);
	case IBS_FILTER_MEM_OP:
		gen_raw(s, IBS_OP_FIELD_LD_OP, &a);
		gen_raw(s, IBS_OP_FIELD_ST_OP, &b);
		*v = a ? 2 : (b ? 4 : 1);
		return true;
	case IBS_FILTER_MEM_LVL:
		*v = gen_srcs[src].lvl;
		return *v;
	case IBS_FILTER_MEM_REMOTE:
		*v = gen_srcs[src].remote;
		return gen_srcs[src].lvl;
	case IBS_FILTER_MEM_HOPS:
		*v = gen_srcs[src].hops;
		return *v;
	case IBS_FILTER_MEM_SNOOP:
		*v = 16;
		return gen_raw(s, IBS_OP_FIELD_CACHE_HIT_ST, &a) && !a;
	case IBS_FILTER_MEM_LOCK:
		if (!gen_raw(s, IBS_OP_FIELD_DC_LOCKED_OP, &a))
			return false;
		*v = 1 + a;
		return true;
	case IBS_FILTER_MEM_DTLB:
		if (!gen_raw(s, IBS_OP_FIELD_DC_L1TLB_MISS, &a))
			return false;
		*v = 8 | 2;
		if (a && gen_raw(s, IBS_OP_FIELD_DC_L2TLB_MISS, &b))
			*v = b ? 16 | 4 : 16 | 2;
		return true;
	case IBS_FILTER_PAGE_SIZE:
		return gen_page_size(s, v);
	case IBS_FILTER_KERNEL:
	case IBS_FILTER_USER:
		if (!gen_raw(s, IBS_OP_FIELD_RIP, &a))
			return false;
		*v = (field == IBS_FILTER_KERNEL) == ((__s64)a < 0);
		return true;
	case IBS_FILTER_PID:
		*v = s->pid_tgid >> 32;
		return true;
	case IBS_FILTER_TID:
		*v = s->pid_tgid & 0xffffffff;
		return true;
	case IBS_FILTER_UID:
		*v = s->uid_gid & 0xffffffff;
		return true;
	case IBS_FILTER_GID:
		*v = s->uid_gid >> 32;
		return true;
	case IBS_FILTER_CPU:
		*v = s->cpu;
		return true;
	case IBS_FILTER_OP:
		*v = ibs_op_kind(s->op.reg[IBS_OP_DATA], s->op.reg[IBS_OP_DATA3]);
		return true;
	case IBS_FILTER_DATA_SRC:
		*v = src;
		return src != IBS_SRC_UNKNOWN && src != IBS_SRC_NONE;
	case IBS_FILTER_DATA_SRC_RAW:
		if (!gen_raw(s, IBS_OP_FIELD_DATA_SRC_LO, v))
			return false;
		if (gen_raw(s, IBS_OP_FIELD_DATA_SRC_HI, &a))
			*v |= a << 3;
		return true;
	case IBS_FILTER_MEM_WIDTH:
		if (!gen_raw(s, IBS_OP_FIELD_OP_MEM_WIDTH, &a))
			return false;
		*v = 1ULL << (a - 1);
		return true;
	default:
		abort();
	}
}

/* An absent field makes its comparison false, with a "!" before it too. */
static inline bool gen_eval(const struct gen *g, int at, const struct gen_sample *s, bool negate)
{
	const struct gen_node *n = &g->node[at];
	__u64 v;
	bool is;

	if (n->kind == '!')
		return gen_eval(g, n->a, s, !negate);
	if (n->kind != 't') {
		bool a = gen_eval(g, n->a, s, negate), b = gen_eval(g, n->b, s, negate);

		return (n->kind == '&') != negate ? a && b : a || b;
	}
	if (n->field == IBS_FILTER_CGROUP)
		return s->in_cgroup[n->value] == (n->cmp == IBS_FILTER_EQ) ? !negate : negate;
	if (!gen_field(s, n->field, &v))
		return false;
	switch (n->cmp) {
	case IBS_FILTER_EQ:
		is = v == n->value;
		break;
	case IBS_FILTER_NE:
		is = v != n->value;
		break;
	case IBS_FILTER_LT:
		is = v < n->value;
		break;
	case IBS_FILTER_LE:
		is = v <= n->value;
		break;
	case IBS_FILTER_GT:
		is = v > n->value;
		break;
	case IBS_FILTER_GE:
		is = v >= n->value;
		break;
	default:
		is = v & n->value;
	}
	return is != negate;
}

/* --- samples --- */

static inline void gen_sample(struct gen_rng *r, __u32 caps, __u32 quirks, struct gen_sample *s)
{
	memset(s, 0, sizeof(*s));
	s->op.cpu.caps = caps;
	s->op.cpu.quirks = quirks;
	s->op.present = (1 << IBS_OP_REG_FIXED) - 1;
	ibs_sim_op(r->seed, 0, r->n++, caps, s->op.reg);
	if (gen_below(r, 2)) {
		for (int i = 0; i < IBS_OP_REG_FIXED; i++)
			s->op.reg[i] = ibs_sim_mix(r->seed + r->n++);
		if (gen_below(r, 2)) /* most loads are neither uncached nor prefetches */
			s->op.reg[IBS_OP_DATA3] &= ~(IBS_OP_DATA3_UC_MEM_ACC | IBS_OP_DATA3_SW_PF);
	} else {
		s->op.reg[IBS_OP_DATA3] |= (__u64)gen_below(r, 64) << 26 | gen_below(r, 16) << 22;
	}
	if (!gen_below(r, 4))
		s->op.reg[IBS_DC_PHYSADDR] = 0;
	s->pid_tgid = (__u64)gen_below(r, 600) << 32 | gen_below(r, 600);
	s->uid_gid = (__u64)gen_below(r, 600) << 32 | gen_below(r, 600);
	s->cpu = gen_below(r, 600);
	for (int i = 0; i < 4; i++)
		s->in_cgroup[i] = gen_below(r, 2);
}

/* The same for the evaluator; @f says which predicate has which bit. */
static inline void gen_to_filter(const struct gen_sample *s, const struct filter *f,
				 struct ibs_filter_sample *out)
{
	*out = (struct ibs_filter_sample){
		.regs = s->op.reg,
		.ibs = &s->op.cpu,
		.pid_tgid = s->pid_tgid,
		.uid_gid = s->uid_gid,
		.cpu = s->cpu,
	};
	out->src = ibs_filter_src(out);
	for (unsigned int k = 0; k < f->n_cgroups; k++)
		for (int i = 0; i < 4; i++)
			if (!strcmp(f->cgroups[k].text, gen_cgroups[i]) && s->in_cgroup[i])
				out->cgroups |= 1 << k;
}

#endif
