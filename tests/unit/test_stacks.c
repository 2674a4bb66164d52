// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whose stack a page is, by what accessed it through the stack pointer and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbols/stack_pages.h"

#define TGID  100
#define START 0x10000
#define END   0x20000
#define PAGE  0x12000ull

struct access {
	__u32 tid;
	__u64 addr, time;
};

static __u32 whose(const struct stack_pages *p, __u64 addr, __u64 time)
{
	return stack_pages_find(p, TGID, addr, time, START, END);
}

/* In both orders of the accesses: @want[i] at time i. */
static void check(const struct access *a, size_t n, const __u32 *want, size_t times)
{
	for (int back = 0; back < 2; back++) {
		struct stack_pages p = { 0 };

		for (size_t i = 0; i < n; i++) {
			const struct access *x = &a[back ? n - 1 - i : i];

			stack_pages_add(&p, TGID, x->tid, x->addr, x->time);
		}
		for (size_t t = 0; t < times; t++)
			assert_int_equal(whose(&p, PAGE + 4095, t), want[t]);
		stack_pages_free(&p);
	}
}

/* From the first access to the last one, in the same page. */
static void test_one(void **state)
{
	const struct access a[] = { { 101, PAGE, 2 }, { 101, PAGE + 8, 5 }, { 101, PAGE + 8, 3 } };

	(void)state;
	check(a, 3, (const __u32[]){ 0, 0, 101, 101, 101, 101, 0 }, 7);
	check(a, 1, (const __u32[]){ 0, 0, 101, 0 }, 4);
	check(NULL, 0, (const __u32[]){ 0, 0 }, 2);
}

/* One after the other, and at a time. */
static void test_two(void **state)
{
	const struct access a[] = {
		{ 101, PAGE, 1 }, { 101, PAGE, 3 }, { 102, PAGE, 3 }, { 102, PAGE, 5 }
	};

	(void)state;
	check(a, 4, (const __u32[]){ 0, 101, 101, 0, 102, 102, 0 }, 7);
}

static void test_which_thread(void **state)
{
	/* the second address is in the next mapping */
	const struct access two[] = { { 101, PAGE, 1 }, { 101, END, 1 }, { 102, PAGE + 1, 2 } };
	const struct access below[] = { { 101, PAGE, 1 }, { 101, START - 1, 1 } };
	const struct access edges[] = { { 101, PAGE, 1 }, { 101, START, 1 }, { 101, END - 1, 1 } };

	(void)state;
	check(two, 3, (const __u32[]){ 0, 0, 102 }, 3);
	check(below, 2, (const __u32[]){ 0, 0, 0 }, 3);
	check(edges, 3, (const __u32[]){ 0, 101, 0 }, 3);
}

/* Without times all accesses were at 0. Other pages and processes have their own. */
static void test_where(void **state)
{
	struct stack_pages p = { 0 };

	(void)state;
	stack_pages_add(&p, TGID, 101, PAGE, 0);
	assert_int_equal(whose(&p, PAGE, 0), 101);
	assert_int_equal(whose(&p, PAGE - 1, 0), 0);
	assert_int_equal(whose(&p, PAGE + 4096, 0), 0);
	assert_int_equal(stack_pages_find(&p, TGID + 1, PAGE, 0, START, END), 0);
	stack_pages_add(&p, ~0u, 1, ~0ull, ~0ull);
	assert_int_equal(stack_pages_find(&p, ~0u, ~0ull, ~0ull, 0, ~0ull), 0);
	stack_pages_free(&p);
}

/* However many threads use a page, its answers cost little, and no order of them changes these. */
static void test_many(void **state)
{
	struct access a[STACK_PAGE_THREADS + 1];
	__u32 want[STACK_PAGE_THREADS + 2] = { 0 };

	(void)state;
	for (unsigned int i = 0; i <= STACK_PAGE_THREADS; i++)
		a[i] = (struct access){ 101 + i, PAGE, i + 1 };
	check(a, STACK_PAGE_THREADS + 1, want, STACK_PAGE_THREADS + 2);
	for (unsigned int i = 0; i < STACK_PAGE_THREADS; i++)
		want[i + 1] = 101 + i;
	check(a, STACK_PAGE_THREADS, want, STACK_PAGE_THREADS + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),	     cmocka_unit_test(test_two),
		cmocka_unit_test(test_which_thread), cmocka_unit_test(test_where),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
