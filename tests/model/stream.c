// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stream.h"

#include <stdlib.h>

/* Bytes of memory whose lines are in L2, in L3 or in DRAM as a rule. */
#define IN_L2	(128ull << 10)
#define IN_L3	(1ull << 20)
#define IN_DRAM (256ull << 20)

/* Regions of memory that do not overlap. */
#define REGION(n) ((uint64_t)(n) << 32)

static uint64_t emit(struct stream *s, struct model_op op)
{
	if (s->n == STREAM_OPS)
		abort();
	s->op[s->n++] = op;
	return ++s->seq;
}

static uint64_t load(struct stream *s, unsigned int insn, uint64_t addr, uint64_t dep)
{
	return emit(s, (struct model_op){
			       .insn = insn, .kind = MODEL_LOAD, .addr = addr, .dep = { dep } });
}

static uint64_t store(struct stream *s, unsigned int insn, uint64_t addr, uint64_t dep)
{
	return emit(s, (struct model_op){
			       .insn = insn, .kind = MODEL_STORE, .addr = addr, .dep = { dep } });
}

static uint64_t alu(struct stream *s, unsigned int insn, unsigned int latency, uint64_t a,
		    uint64_t b)
{
	return emit(s,
		    (struct model_op){
			    .insn = insn, .kind = MODEL_ALU, .latency = latency, .dep = { a, b } });
}

static void branch(struct stream *s, unsigned int insn, uint64_t dep, bool mispredicted)
{
	emit(s, (struct model_op){ .insn = insn,
				   .kind = MODEL_BRANCH,
				   .latency = 1,
				   .mispredicted = mispredicted,
				   .dep = { dep } });
}

/* @n ops of which each other one needs the one before. */
static uint64_t work(struct stream *s, unsigned int insn, unsigned int n, uint64_t dep)
{
	uint64_t last = dep;

	for (unsigned int i = 0; i < n; i++)
		last = alu(s, insn, 1, i & 1 ? last : dep, 0);
	return last;
}

static uint64_t anywhere(struct stream *s, uint64_t size)
{
	return model_random(&s->random) % (size >> 6) << 6;
}

static bool chance(struct stream *s, unsigned int percent)
{
	return model_random(&s->random) % 100 < percent;
}

/* A list: the next node, two fields of the node, and one of the line behind it. */
static void chase(struct stream *s)
{
	uint64_t at = REGION(1) + (anywhere(s, IN_DRAM) & ~127ull), next, v;

	v = load(s, 0, at + 8, s->last[0]);
	v = alu(s, 4, 1, v, 0);
	v = alu(s, 4, 1, v, load(s, 1, at + 72, s->last[0]));
	next = load(s, 2, at, s->last[0]);
	v = alu(s, 5, 3, v, load(s, 3, REGION(2) + anywhere(s, IN_L2), 0));
	work(s, 6, 20, v);
	branch(s, 7, v, chance(s, 1));
	s->last[0] = next;
}

/* c[i] = a[i] + k * b[i], four to an iteration. */
static void streaming(struct stream *s)
{
	for (unsigned int i = 0; i < 4; i++, s->cursor += 8) {
		uint64_t a = load(s, i, REGION(1) + s->cursor, 0);
		uint64_t b = load(s, 4 + i, REGION(2) + s->cursor, 0);

		store(s, 8 + i, REGION(3) + s->cursor, alu(s, 12, 4, alu(s, 12, 4, b, 0), a));
	}
	branch(s, 13, alu(s, 14, 1, s->seq, 0), false);
}

/* sum += w[i] * x[index[i]]: x in DRAM, y in L3, four to an iteration. */
static void gather(struct stream *s)
{
	uint64_t sum = s->last[0];

	for (unsigned int i = 0; i < 4; i++, s->cursor += 4) {
		uint64_t index = load(s, i, REGION(1) + s->cursor, 0);
		uint64_t x = load(s, 4 + i, REGION(2) + anywhere(s, IN_DRAM), index);
		uint64_t y = load(s, 8 + i, REGION(3) + anywhere(s, IN_L3), index);

		sum = alu(s, 12, 4, sum, alu(s, 13, 4, x, y));
		work(s, 14, 6, index);
	}
	branch(s, 15, s->seq, false);
	s->last[0] = sum;
}

/* Phases: a list, independent lookups, lookups in L3 behind long arithmetic. */
static void mixed(struct stream *s)
{
	unsigned int phase = s->count / 64 % 3;
	uint64_t v = s->last[1];

	if (!phase) {
		s->last[0] = load(s, 0, REGION(1) + anywhere(s, IN_DRAM), s->last[0]);
		work(s, 10, 10, s->last[0]);
	} else if (phase == 1) {
		for (unsigned int i = 0; i < 8; i++)
			v = alu(s, 11, 1, v, load(s, 1 + i, REGION(2) + anywhere(s, IN_DRAM), 0));
		work(s, 12, 24, 0);
	} else {
		for (unsigned int i = 0; i < 4; i++)
			v = alu(s, 13, 20, v, load(s, 9, REGION(3) + anywhere(s, IN_L3), 0));
	}
	branch(s, 14, v, false);
	s->last[1] = v;
}

/* Scattered stores, with loads that hit L2 and DRAM. */
static void stores(struct stream *s)
{
	uint64_t v = load(s, 0, REGION(1) + (s->cursor += 8), 0);

	store(s, 1, REGION(2) + anywhere(s, IN_DRAM), v);
	v = load(s, 2, REGION(3) + anywhere(s, IN_L2), 0);
	store(s, 3, REGION(4) + anywhere(s, IN_L3), v);
	if (chance(s, 10))
		v = load(s, 4, REGION(5) + anywhere(s, IN_DRAM), 0);
	work(s, 5, 8, v);
	branch(s, 6, s->seq, false);
}

/* A hash table: buckets in DRAM and L3, whose keys decide branches, and then an entry. */
static void branchy(struct stream *s)
{
	uint64_t key = load(s, 0, REGION(1) + (s->cursor += 8), 0);
	uint64_t hash = alu(s, 6, 3, alu(s, 6, 3, key, 0), 0);
	uint64_t bucket =
		load(s, 1, REGION(2) + anywhere(s, chance(s, 50) ? IN_L3 : IN_DRAM), hash);

	branch(s, 7, bucket, chance(s, 15));
	if (chance(s, 40)) {
		uint64_t entry = load(s, 2, REGION(3) + anywhere(s, IN_DRAM), bucket);

		branch(s, 8, entry, chance(s, 20));
	}
	work(s, 9, 20, hash);
	branch(s, 10, load(s, 3, REGION(4) + anywhere(s, IN_L2), 0), chance(s, 2));
}

/* A join: a batch of buckets, then their entries, in loops of their own. */
static void join(struct stream *s)
{
	uint64_t bucket[16];

	for (unsigned int i = 0; i < 16; i++) {
		uint64_t key = load(s, 0, REGION(1) + (s->cursor += 8), 0);

		bucket[i] = load(s, 1, REGION(2) + anywhere(s, IN_L3), alu(s, 5, 3, key, 0));
		work(s, 6, 6, key);
	}
	for (unsigned int i = 0; i < 16; i++) {
		uint64_t entry = load(s, 2, REGION(3) + anywhere(s, IN_DRAM), bucket[i]);

		work(s, 7, 6, entry);
		if (chance(s, 10))
			entry = load(s, 3, REGION(3) + anywhere(s, IN_DRAM), entry);
		alu(s, 8, 1, entry, 0);
	}
	branch(s, 9, s->seq, chance(s, 5));
}

/* A binary tree: levels in L1, L2, L3 and DRAM, and a path that is not predicted. */
static void tree(struct stream *s)
{
	static const uint64_t sizes[8] = { 4096,  16384,     IN_L2,	   IN_L2,
					   IN_L3, IN_L3 / 2, IN_DRAM / 16, IN_DRAM };
	uint64_t node = 0;

	for (unsigned int i = 0; i < 8; i++) {
		node = load(s, i, REGION(1 + i) + anywhere(s, sizes[i]), node);
		branch(s, 8, node, chance(s, 10));
		work(s, 9, 3, node);
	}
	work(s, 10, 60, 0);
}

/* Misses of L2 and L3 whose data are needed late, and a few of DRAM that are needed at once. */
static void hidden(struct stream *s)
{
	uint64_t v = s->last[0];

	for (unsigned int i = 0; i < 6; i++) {
		uint64_t l2 = load(s, 0, REGION(1) + anywhere(s, IN_L2), 0);
		uint64_t l3 = load(s, 1, REGION(2) + anywhere(s, IN_L3), 0);

		v = alu(s, 5, 12, alu(s, 5, 12, v, l2), l3);
		work(s, 6, 8, 0);
	}
	if (chance(s, 30))
		v = alu(s, 7, 1, v, load(s, 2, REGION(3) + anywhere(s, IN_DRAM), v));
	branch(s, 8, v, false);
	s->last[0] = v;
}

const struct stream_kind stream_kinds[] = {
	{ "chase", "a linked list in DRAM", chase },
	{ "streaming", "three arrays in sequence", streaming },
	{ "gather", "indirect loads from DRAM and L3", gather },
	{ "mixed", "phases: a list, independent loads, hidden loads", mixed },
	{ "stores", "scattered stores", stores },
	{ "branchy", "a hash table that decides branches", branchy },
	{ "join", "batches of buckets and entries", join },
	{ "tree", "a search tree", tree },
	{ "hidden", "misses behind long arithmetic", hidden },
};
const unsigned int stream_kinds_n = sizeof(stream_kinds) / sizeof(stream_kinds[0]);

void stream_init(struct stream *s, const struct stream_kind *kind, uint64_t seed)
{
	*s = (struct stream){ .iteration = kind->iteration, .random = seed };
}

const struct model_op *stream_next(struct stream *s)
{
	if (s->next == s->n) {
		s->n = s->next = 0;
		s->iteration(s);
		s->count++;
	}
	return &s->op[s->next++];
}
