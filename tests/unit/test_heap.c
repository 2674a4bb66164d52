// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which allocation has an address at a time: sequences written by hand, and random ones beside a simple model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "heap/heap_blocks.h"

#define P     100 /* processes */
#define CHILD 200

static const __u64 stack[] = { 0x401000, 0x402000 };

static void alloc(struct heap *h, __u64 time, __u32 tgid, __u64 addr, __u64 size, bool mapped)
{
	heap_add(h, &(struct heap_block){ .time = time,
					  .addr = addr,
					  .size = size,
					  .weight = size,
					  .stack = stack,
					  .n_stack = 2,
					  .tgid = tgid,
					  .tid = tgid,
					  .mapped = mapped });
}

/* @from: time of the allocation that must be there; 0: none */
static void expect(const struct heap *h, __u32 tgid, __u64 addr, __u64 time, __u64 from)
{
	struct heap_block b;
	const bool found = heap_find(h, tgid, addr, time, &b);

	if (found != !!from || (found && b.time != from))
		fail_msg("%#llx of %u at %llu: allocated at %llu, not %llu", addr, tgid, time,
			 found ? b.time : 0, from);
	if (found)
		assert_true(addr - b.addr < b.size);
}

/* An address is given again and again, and events are not in the order of time. */
static void test_reuse(void **state)
{
	struct heap *h = heap_new(0);
	struct heap_block b;

	(void)state;
	alloc(h, 30, P, 0x5000, 100, false);
	heap_add_free(h, 20, P, 0x5000, 0);
	alloc(h, 10, P, 0x5000, 200, false);
	heap_add_free(h, 40, P, 0x5000, 0);
	alloc(h, 15, P, 0x6000, 64, false);
	expect(h, P, 0x5000, 9, 0);
	expect(h, P, 0x5000, 10, 10);
	expect(h, P, 0x50c7, 19, 10);
	expect(h, P, 0x50c8, 19, 0);
	expect(h, P, 0x5000, 25, 0);
	expect(h, P, 0x5063, 30, 30);
	expect(h, P, 0x5064, 30, 0);
	expect(h, P, 0x5000, 40, 0);
	expect(h, P, 0x5000, 0, 0);
	expect(h, P, 0x603f, 0, 15);
	expect(h, CHILD, 0x6000, 0, 0);
	assert_true(heap_find(h, P, 0x6010, 0, &b));
	assert_int_equal(b.n_stack, 2);
	assert_memory_equal(b.stack, stack, sizeof(stack));
	assert_true(b.weight == 64 && b.tid == P && !b.mapped);
	assert_int_equal(heap_counts(h).unmatched, 0);
	heap_free(h);
}

/* realloc: in place, and to another address. */
static void test_resized(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	alloc(h, 10, P, 0x5000, 100, false);
	heap_add_free(h, 20, P, 0x5000, 0);
	alloc(h, 20, P, 0x5000, 300, false);
	heap_add_free(h, 30, P, 0x5000, 0);
	alloc(h, 30, P, 0x9000, 5000, false);
	expect(h, P, 0x5010, 19, 10);
	expect(h, P, 0x5010, 20, 20);
	expect(h, P, 0x5100, 20, 20);
	expect(h, P, 0x5100, 30, 0);
	expect(h, P, 0x9fff, 30, 30);
	heap_free(h);
}

static void test_fork(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	alloc(h, 10, P, 0x5000, 100, false);
	alloc(h, 11, P, 0x6000, 100, false);
	heap_add_fork(h, 20, CHILD, P);
	heap_add_free(h, 30, P, 0x5000, 0); /* the child has its own copy */
	alloc(h, 31, P, 0x7000, 100, false);
	heap_add_free(h, 40, CHILD, 0x6000, 0);
	alloc(h, 50, CHILD, 0x6000, 32, false);
	heap_add_free(h, 60, CHILD, 0x6000, 0);
	heap_add_fork(h, 70, 300, CHILD);
	heap_add_exec(h, 80, CHILD);
	expect(h, CHILD, 0x5000, 19, 0);
	expect(h, CHILD, 0x5000, 35, 10);
	expect(h, P, 0x5000, 35, 0);
	expect(h, CHILD, 0x7000, 35, 0);
	expect(h, CHILD, 0x6000, 45, 0);
	expect(h, P, 0x6000, 45, 11);
	expect(h, CHILD, 0x6000, 55, 50);
	expect(h, CHILD, 0x6040, 55, 0);
	expect(h, CHILD, 0x6000, 65, 0);
	expect(h, CHILD, 0x5000, 85, 0);
	expect(h, 300, 0x5000, 85, 10);
	expect(h, 300, 0x6000, 85, 0);
	heap_free(h);
}

/* Queries in the order of time, up to a fork that inherits, and one of an earlier time after that. */
static void test_order(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	heap_add_free(h, 5, P, 0x5000, 0);
	alloc(h, 10, P, 0x5000, 100, false);
	heap_add_free(h, 20, P, 0x5000, 0);
	alloc(h, 20, P, 0x5000, 200, false);
	heap_add_fork(h, 30, CHILD, P);
	heap_add_free(h, 40, P, 0x5000, 0);
	expect(h, P, 0x5000, 10, 10);
	expect(h, P, 0x5000, 19, 10);
	expect(h, P, 0x5000, 20, 20);
	expect(h, CHILD, 0x5000, 29, 0);
	expect(h, CHILD, 0x5000, 45, 20);
	expect(h, P, 0x5000, 45, 0);
	expect(h, P, 0x5000, 15, 10);
	assert_int_equal(heap_counts(h).unmatched, 1);
	heap_free(h);
}

/* The number of a process is used again; its fork may have been lost. A process from before has nothing inherited. */
static void test_exit(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	alloc(h, 10, P, 0x5000, 100, false);
	heap_add_exit(h, 20, P);
	alloc(h, 30, P, 0x6000, 100, false);
	heap_add_fork(h, 0, CHILD, P);
	heap_add_fork(h, 40, P, 1);
	expect(h, P, 0x5000, 15, 10);
	expect(h, P, 0x5000, 35, 0);
	expect(h, P, 0x6000, 35, 30);
	expect(h, P, 0x6000, 45, 0);
	expect(h, CHILD, 0x5000, 15, 0);
	heap_free(h);
}

/* Parts are unmapped, and others mapped anew; an allocator gives memory of what it has mapped. */
static void test_unmap(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	alloc(h, 10, P, 0x100000, 0x10000, true);
	heap_add_free(h, 20, P, 0x104000, 0x2000);
	alloc(h, 30, P, 0x108000, 0x1000, true);
	alloc(h, 40, P, 0x10a000, 64, false);
	heap_add_free(h, 50, P, 0x10a000, 0);
	heap_add_free(h, 60, P, 0x000000, 0x200000);
	expect(h, P, 0x104000, 19, 10);
	expect(h, P, 0x103fff, 20, 10);
	expect(h, P, 0x104000, 20, 0);
	expect(h, P, 0x105fff, 20, 0);
	expect(h, P, 0x106000, 20, 10);
	expect(h, P, 0x108000, 30, 30);
	expect(h, P, 0x109000, 30, 10);
	expect(h, P, 0x10a000, 40, 40);
	expect(h, P, 0x10a040, 40, 10);
	expect(h, P, 0x10a000, 50, 10);
	expect(h, P, 0x10a000, 60, 0);
	heap_free(h);
}

static void test_damage(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	heap_add_free(h, 10, P, 0x5000, 0);
	heap_add_free(h, 11, P, 0x5000, 0x1000);
	alloc(h, 20, P, 0x5000, 0x100, false);
	alloc(h, 30, P, 0x5080, 0x100, false); /* the free of the one before was missed */
	alloc(h, 40, P, 0x9000, 0, false);
	alloc(h, 50, P, ~0ull - 10, 100, false);
	alloc(h, 60, P, 0x1000, ~0ull, true);
	heap_add_free(h, 70, P, 0x5001, 0); /* not its first byte */
	expect(h, P, 0x5000, 29, 20);
	expect(h, P, 0x5000, 30, 0);
	expect(h, P, 0x5080, 30, 30);
	expect(h, P, 0x9000, 40, 0);
	expect(h, P, ~0ull - 5, 50, 50);
	expect(h, P, 0x77777777, 60, 60);
	assert_int_equal(heap_counts(h).unmatched, 3);
	assert_int_equal(heap_counts(h).missed, 3);
	heap_free(h);
}

/* After the first event that was left out nothing is known. */
static void test_limit(void **state)
{
	struct heap *h = heap_new(1000);

	(void)state;
	for (unsigned int i = 0; i < 3000; i++)
		alloc(h, 10 + i, P, 0x10000 + 256 * i, 256, false);
	expect(h, P, 0x10000, 10, 10);
	expect(h, P, 0x10000, 1009, 10);
	expect(h, P, 0x10000, 1010, 0);
	expect(h, P, 0x10000, 0, 0);
	assert_int_equal(heap_counts(h).left_out, 2000);
	heap_free(h);
}

/* --- a model: what each byte of a small memory has, after each event --- */

#define BYTES	  300
#define PROCESSES 4
#define EVENTS	  300
#define ROUNDS	  60
#define QUERIES	  4000

struct cell {
	__u64 from; /* time of the allocation; 0: none */
	int start, end;
	bool inherited;
};

struct model {
	struct cell cell[PROCESSES][2][BYTES];
};

static void wipe(struct cell *c, int start, int end, bool whole)
{
	for (int i = start; i < end; i++) {
		const struct cell was = c[i];

		c[i].from = 0;
		if (!was.from || was.inherited)
			continue;
		for (int k = was.start; k < was.end; k++) {
			if (c[k].from != was.from || c[k].start != was.start || c[k].inherited)
				continue;
			if (whole)
				c[k].from = 0;
			else if (k < i)
				c[k].end = i;
			else
				c[k].start = i + 1;
		}
	}
}

static void model_alloc(struct model *m, int p, int start, int end, bool mapped, __u64 time)
{
	wipe(m->cell[p][0], start, end, true);
	if (mapped)
		wipe(m->cell[p][1], start, end, false);
	for (int i = start; i < end; i++)
		m->cell[p][mapped][i] = (struct cell){ time, start, end, false };
}

static void model_free(struct model *m, int p, int start, int size)
{
	const struct cell c = m->cell[p][0][start];

	for (int layer = 0; size && layer < 2; layer++)
		wipe(m->cell[p][layer], start, start + size, false);
	if (!size && c.from && c.start == start)
		wipe(m->cell[p][0], c.start, c.end, false);
}

static void model_fork(struct model *m, int child, int parent)
{
	memcpy(m->cell[child], m->cell[parent], sizeof(m->cell[child]));
	for (int layer = 0; layer < 2; layer++)
		for (int i = 0; i < BYTES; i++)
			m->cell[child][layer][i].inherited = true;
}

static void step(struct heap *h, struct model *m, __u64 time, bool forks, unsigned int *seed)
{
	const int p = rand_r(seed) % PROCESSES, kind = rand_r(seed) % (forks ? 40 : 36);
	const int size = rand_r(seed) % 3 ? rand_r(seed) % 20 + 1 : rand_r(seed) % 100 + 1;
	int start = rand_r(seed) % (BYTES - size), other = rand_r(seed) % PROCESSES;

	if (kind < 18) {
		model_alloc(m, p, start, start + size, kind < 4, time);
		alloc(h, time, P + p, start, size, kind < 4);
	} else if (kind < 36) {
		/* mostly of something that is there */
		while (kind < 32 && start && m->cell[p][0][start].start != start)
			start--;
		model_free(m, p, start, kind < 32 ? 0 : size);
		heap_add_free(h, time, P + p, start, kind < 32 ? 0 : size);
	} else if (kind < 39 && other != p) {
		model_fork(m, p, other);
		heap_add_fork(h, time, P + p, P + other);
	} else if (kind == 39) {
		memset(m->cell[p], 0, sizeof(m->cell[p]));
		heap_add_exec(h, time, P + p);
	}
}

static void test_random(void **state)
{
	struct model *after = calloc(EVENTS + 1, sizeof(*after));
	unsigned int seed = 1, found = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const bool forks = round % 2, in_order = round / 2 % 2;
		struct heap *h = heap_new(0);

		memset(after, 0, sizeof(*after));
		for (int p = 0; p < PROCESSES; p++) /* so that each begins at once */
			heap_add_fork(h, 1, P + p, 0);
		for (int i = 0; i < EVENTS; i++) {
			after[i + 1] = after[i];
			step(h, &after[i + 1], 10 * (i + 1), forks, &seed);
		}
		for (int q = 0; q < QUERIES; q++) {
			const int any = rand_r(&seed) % (EVENTS + 1), p = rand_r(&seed) % PROCESSES;
			const int t = in_order ? q * EVENTS / QUERIES : any;
			const int addr = rand_r(&seed) % BYTES;
			const struct cell *c = &after[t].cell[p][0][addr];

			c = c->from ? c : &after[t].cell[p][1][addr];
			expect(h, P + p, addr, 10 * t + 5, c->from);
			found += c->from != 0;
		}
		heap_free(h);
	}
	assert_in_range(found, ROUNDS * QUERIES / 10, ROUNDS * QUERIES * 9 / 10);
	free(after);
}

/* Chains of forks are followed up to a limit. */
static void test_deep(void **state)
{
	struct heap *h = heap_new(0);

	(void)state;
	alloc(h, 10, P, 0x5000, 100, false);
	for (unsigned int i = 0; i < 1000; i++)
		heap_add_fork(h, 20 + i, P + i + 1, P + i);
	expect(h, P + 64, 0x5000, 0, 10);
	expect(h, P + 65, 0x5000, 0, 0);
	heap_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reuse),  cmocka_unit_test(test_resized),
		cmocka_unit_test(test_fork),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_exit),   cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_damage), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_random), cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
