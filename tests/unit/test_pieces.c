// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pieces of memory and chains of numbers, against plain lists that are searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/pieces.h"

static __u64 state = 1;

static __u64 draw(__u64 below)
{
	state = u64_hash(state + 0x9e3779b97f4a7c15ull);
	return state % below;
}

/* --- chains --- */

static void test_chain(void **unused)
{
	struct chains c = {};
	__u32 v;

	(void)unused;
	assert_int_equal(chains_last(&c, 5), CHAIN_NONE);
	assert_false(chains_at(&c, 5, 100, &v));
	assert_int_equal(v, CHAIN_NONE);
	chains_add(&c, 5, 10, 1);
	chains_add(&c, 6, 11, 2);
	chains_add(&c, 5, 20, 3);
	chains_add(&c, 5, 20, 4); /* of equal times the last one counts */
	assert_int_equal(chains_last(&c, 5), 4);
	assert_int_equal(chains_last(&c, 6), 2);
	assert_true(chains_at(&c, 5, 9, &v));
	assert_int_equal(v, CHAIN_NONE);
	assert_true(chains_at(&c, 5, 10, &v));
	assert_int_equal(v, 1);
	assert_true(chains_at(&c, 5, 19, &v));
	assert_int_equal(v, 1);
	assert_true(chains_at(&c, 5, 20, &v));
	assert_int_equal(v, 4);
	assert_true(chains_at(&c, 6, ~0ull, &v));
	assert_int_equal(v, 2);
	chains_free(&c);
	assert_int_equal(chains_last(&c, 5), CHAIN_NONE);
	chains_free(&c);
}

#define LINKS 3000

/* Each time is found in the whole chain, in any order and in that of time. */
static void test_long_chain(void **unused)
{
	static __u64 time[LINKS];
	struct chains c = {};
	__u64 now = 5;

	(void)unused;
	for (__u32 i = 0; i < LINKS; i++) {
		chains_add(&c, 1, now, i);
		time[i] = now;
		now += draw(3);
		chains_add(&c, 2, now, LINKS);
	}
	for (unsigned int turn = 0; turn < 4 * LINKS; turn++) {
		const __u64 t = turn < 2 * LINKS ? turn * (now + 10) / (2 * LINKS) : draw(now + 10);
		__u32 want = CHAIN_NONE, v;

		for (__u32 i = 0; i < LINKS && time[i] <= t; i++)
			want = i;
		assert_true(chains_at(&c, 1, t, &v));
		assert_int_equal(v, want);
	}
	/* what is further back is reached in steps that are more than single ones: depth and links of the last one */
	assert_true(c.links[c.chains[0].last].depth == LINKS - 1);
	for (size_t i = 0, steps = 0; i < c.n; i++) {
		__u32 at = i;

		for (steps = 0; c.links[at].further != at; steps++)
			at = c.links[at].further;
		assert_true(steps <= 24); /* twice the logarithm */
	}
	chains_free(&c);
}

/* --- pieces --- */

static void test_live(void **unused)
{
	struct pieces p = {};
	const __u32 a = pieces_space(&p), b = pieces_space(&p);
	__u32 first, second;

	(void)unused;
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(pieces_below(&p, a, ~0ull), PIECE_NONE);
	pieces_begin(&p, a, 100, 200, 10, 7);
	pieces_begin(&p, a, 300, 301, 10, 8);
	pieces_begin(&p, b, 150, 160, 10, 9);
	first = pieces_find(&p, a, 100, 10);
	assert_int_equal(p.piece[first].value, 7);
	assert_int_equal(p.piece[first].from, 10);
	assert_true(p.piece[first].to == PIECE_LIVE);
	assert_int_equal(pieces_find(&p, a, 199, 10), first);
	assert_int_equal(pieces_find(&p, a, 99, 10), PIECE_NONE);
	assert_int_equal(pieces_find(&p, a, 200, 10), PIECE_NONE);
	second = pieces_find(&p, a, 300, 10);
	assert_int_equal(p.piece[second].value, 8);
	assert_int_equal(pieces_find(&p, a, 301, 10), PIECE_NONE);
	assert_int_equal(p.piece[pieces_find(&p, b, 155, 10)].value, 9);
	assert_int_equal(pieces_below(&p, a, 100), PIECE_NONE);
	assert_int_equal(pieces_below(&p, a, 101), first);
	assert_int_equal(pieces_below(&p, a, 300), first);
	assert_int_equal(pieces_below(&p, a, 301), second);
	/* without history, what has ended is forgotten and used again */
	pieces_end(&p, first, 20);
	assert_int_equal(pieces_find(&p, a, 100, 20), PIECE_NONE);
	pieces_end(&p, second, 20);
	pieces_begin(&p, a, 500, 600, 20, 10);
	pieces_begin(&p, a, 600, 700, 20, 11);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.piece[pieces_find(&p, a, 599, 20)].value, 10);
	assert_int_equal(p.piece[pieces_find(&p, a, 600, 20)].value, 11);
	pieces_free(&p);
	assert_int_equal(p.n, 0);
}

static void test_history(void **unused)
{
	struct pieces p = { .history = true };
	const __u32 a = pieces_space(&p), b = pieces_space(&p);
	__u32 first, second;

	(void)unused;
	pieces_begin(&p, a, 0x1000, 0x1040, 10, 7); /* 64 bytes, a block of the first level */
	first = pieces_find(&p, a, 0x1000, 10);
	assert_int_equal(p.piece[first].value, 7);
	pieces_end(&p, first, 20);
	pieces_begin(&p, a, 0x1030, 0x1071, 20, 8); /* in two blocks of 256 bytes, at most */
	second = pieces_find(&p, a, 0x1070, 20);
	assert_int_equal(p.piece[second].value, 8);
	assert_int_equal(pieces_find(&p, a, 0x1030, 9), PIECE_NONE);
	assert_int_equal(pieces_find(&p, a, 0x1030, 10), first);
	assert_int_equal(pieces_find(&p, a, 0x103f, 19), first);
	assert_int_equal(pieces_find(&p, a, 0x1030, 20), second);
	assert_int_equal(pieces_find(&p, a, 0x102f, 20), PIECE_NONE);
	assert_int_equal(pieces_find(&p, a, 0x102f, 19), first);
	assert_int_equal(pieces_find(&p, a, 0x1040, 19), PIECE_NONE);
	assert_int_equal(pieces_find(&p, a, 0x1071, 20), PIECE_NONE);
	assert_int_equal(pieces_find(&p, b, 0x1030, 15), PIECE_NONE);
	pieces_free(&p);
}

#define SPACES	3
#define PLACES	64
#define ENTRIES 4000

struct model {
	__u64 start, end, from, to;
	__u32 space, value;
};

/* The model's piece at an address and a time. */
static __u32 model_find(const struct model *m, size_t n, __u32 space, __u64 addr, __u64 time)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].space == space && addr >= m[i].start && addr < m[i].end &&
		    time >= m[i].from && time < m[i].to)
			return m[i].value;
	return 0;
}

static __u32 value_of(struct pieces *p, __u32 space, __u64 addr, __u64 time)
{
	const __u32 i = pieces_find(p, space, addr, time);

	return i == PIECE_NONE ? 0 : p->piece[i].value;
}

/* End what is live where a new piece is to be; in the model and in the pieces. */
static void clear(struct pieces *p, struct model *m, size_t n, const struct model *in, __u64 now)
{
	for (__u32 i; (i = pieces_below(p, in->space, in->end)) && p->piece[i].end > in->start;) {
		for (size_t k = 0; k < n; k++)
			if (m[k].value == p->piece[i].value) {
				assert_true(m[k].to == PIECE_LIVE);
				m[k].to = now;
			}
		pieces_end(p, i, now);
	}
	for (size_t k = 0; k < n; k++)
		assert_false(m[k].space == in->space && m[k].to == PIECE_LIVE &&
			     m[k].start < in->end && m[k].end > in->start);
}

/* Sizes of all levels, from a byte on. */
static void run_model(bool history)
{
	static struct model m[ENTRIES];
	struct pieces p = { .history = history };
	size_t n = 0;
	__u64 now = 1;

	for (__u32 s = 0; s < SPACES; s++)
		assert_int_equal(pieces_space(&p), s);
	while (n < ENTRIES) {
		const __u64 size = 1 + draw(1ull << draw(20));
		struct model in = { .space = draw(SPACES), .value = n + 1, .to = PIECE_LIVE };

		now += draw(3);
		in.start = 0x10000 + draw(PLACES) * 1000 + draw(16) * 16;
		in.end = in.start + size;
		in.from = now;
		clear(&p, m, n, &in, now);
		pieces_begin(&p, in.space, in.start, in.end, now, in.value);
		m[n++] = in;
		for (int i = 0; i < 4; i++) {
			const __u64 addr = i ? 0x10000 + draw(PLACES * 1000) : in.end - draw(2);
			const __u64 time = history && i > 1 ? draw(now + 1) : now;
			const __u32 space = i ? draw(SPACES) : in.space;

			assert_int_equal(value_of(&p, space, addr, time),
					 model_find(m, n, space, addr, time));
		}
	}
	if (!history)
		assert_true(p.n < ENTRIES / 4);
	pieces_free(&p);
}

static void test_model(void **unused)
{
	(void)unused;
	run_model(false);
	run_model(true);
}

/* The tree stays flat when addresses come in order. */
static void test_depth(void **unused)
{
	struct pieces p = {};
	const __u32 a = pieces_space(&p);
	unsigned int deepest = 0;

	(void)unused;
	for (__u64 i = 0; i < 4096; i++)
		pieces_begin(&p, a, 16 * i, 16 * i + 16, i, i + 1);
	for (__u64 i = 0; i < 4096; i++) {
		unsigned int depth = 0;

		for (__u32 at = p.spaces[a].root; p.piece[at].start != 16 * i; depth++) {
			at = 16 * i < p.piece[at].start ? p.piece[at].left : p.piece[at].right;
			assert_true(at != PIECE_NONE);
		}
		deepest = depth > deepest ? depth : deepest;
	}
	assert_true(deepest < 64);
	for (__u64 i = 0; i < 4096; i += 2)
		pieces_end(&p, pieces_find(&p, a, 16 * i, 4096), 4096);
	for (__u64 i = 0; i < 4096; i++)
		assert_int_equal(value_of(&p, a, 16 * i + 15, 4096), i % 2 ? i + 1 : 0);
	pieces_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain), cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_live),  cmocka_unit_test(test_history),
		cmocka_unit_test(test_model), cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
