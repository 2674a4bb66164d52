// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the return address is at each instruction of functions that are written here, and never run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbols/frame_state.h"

/* clang-format off */

/* Of each function, the labels 0 and up are instructions, and `end` is behind the last one. */
#define AT(name, n) "\n.globl state_" #name "_" #n "\nstate_" #name "_" #n ": "
__asm__(
	".section .text.state,\"ax\",@progbits\n"
	/* a frame, from its beginning to its end */
	AT(framed, 0) "push %rbp"
	AT(framed, 1) "mov %rsp, %rbp"
	AT(framed, 2) "push %rbx"
	AT(framed, 3) "sub $24, %rsp"
	AT(framed, 4) "call state_framed_0"
	AT(framed, 5) "lea -8(%rbp), %rsp"
	AT(framed, 6) "pop %rbx"
	AT(framed, 7) "pop %rbp"
	AT(framed, 8) "ret"
	AT(framed, end) "\n"
	/* none, with %rbp for something else */
	AT(bare, 0) "sub $40, %rsp"
	AT(bare, 1) "lea 16(%rsp), %rsp"
	AT(bare, 2) "add $24, %rsp"
	AT(bare, 3) "mov %rdi, %rbp"
	AT(bare, 4) "and $-16, %rsp"
	AT(bare, 5) "sub $8, %rsp"
	AT(bare, 6) "leave"
	AT(bare, 7) "ret"
	AT(bare, end) "\n"
	/* the frame is set by its distance; by a wrong one it is none */
	AT(lea, 0) "push %rbp"
	AT(lea, 1) "sub $32, %rsp"
	AT(lea, 2) "lea 32(%rsp), %rbp"
	AT(lea, 3) "leave"
	AT(lea, 4) "push %rbp"
	AT(lea, 5) "lea 8(%rsp), %rbp"
	AT(lea, 6) "lea (%rsp), %rbp"
	AT(lea, 7) "mov %rbp, %rsp"
	AT(lea, 8) "ret"
	AT(lea, end) "\n"
	/* a stack that is aligned first: how far is not known, but the frame is */
	AT(aligned, 0) "and $-16, %rsp"
	AT(aligned, 1) "push %rbp"
	AT(aligned, 2) "mov %rsp, %rbp"
	AT(aligned, 3) "sub $16, %rsp"
	AT(aligned, 4) "mov %rbp, %rsp"
	AT(aligned, 5) "mov %rax, %rsp"
	AT(aligned, 6) "leave"
	AT(aligned, 7) "pop %rsp"
	AT(aligned, 8) "nop"
	AT(aligned, 9) "ret"
	AT(aligned, end) "\n"
	/* numbers that are not told: no multiple of a word, or too large */
	AT(odd, 0) "sub $4, %rsp"
	AT(odd, 1) "add $4, %rsp"
	AT(odd, 2) "sub $488, %rsp"
	AT(odd, 3) "pushq 8(%rbp)"
	AT(odd, 4) "popq 8(%rax)"
	AT(odd, 5) "sub $0x10000, %rsp"
	AT(odd, 6) "add $0x10000, %rsp"
	AT(odd, 7) "mov %rsp, %rbp"
	AT(odd, 8) "ret"
	AT(odd, end) "\n"
	/* paths, and addresses of a table */
	AT(jumps, 0) "push %rbx"
	AT(jumps, 1) "jz state_jumps_4"
	AT(jumps, 2) "pop %rbx"
	AT(jumps, 3) "ret"
	AT(jumps, 4) "jmp *%rax"
	AT(jumps, 5) "nop"
	AT(jumps, 6) "jmp state_jumps_8"
	AT(jumps, 7) "pop %rbx"
	AT(jumps, 8) "ret"
	AT(jumps, end) "\n"
	/* nothing leads to the second instruction, and the last one is invalid */
	AT(unreached, 0) "jmp state_unreached_2"
	AT(unreached, 1) "nop"
	AT(unreached, 2) "push %rbx"
	AT(unreached, 3) ".byte 6"
	AT(unreached, 4) "nop"
	AT(unreached, end) "\n"
	".text\n");

/* clang-format on */

#define LABELS(name)                                                                  \
	extern const char state_##name##_0[], state_##name##_1[], state_##name##_2[], \
		state_##name##_3[], state_##name##_4[], state_##name##_end[]
LABELS(framed);
LABELS(bare);
LABELS(lea);
LABELS(aligned);
LABELS(odd);
LABELS(jumps);
LABELS(unreached);

static struct frame_codes codes;
static struct disasm *disasm;

static int begin(void **state)
{
	(void)state;
	disasm = disasm_new(false);
	return !disasm;
}

static int end(void **state)
{
	(void)state;
	frame_codes_free(&codes);
	codes = (struct frame_codes){ 0 };
	disasm_free(disasm);
	return 0;
}

/* One of these for each instruction, in the order of addresses. */
struct want {
	int depth;
	bool framed, foreign, unknown;
};

static void check(const char *from, const char *until, const struct want *want, size_t n)
{
	const __u64 start = (uintptr_t)from;
	const struct frame_code *f;
	__u64 at = start;

	assert_null(frame_codes_find(&codes, NULL, start));
	f = frame_codes_add(&codes, NULL, start, until - from, (const unsigned char *)from, disasm);
	assert_ptr_equal(frame_codes_find(&codes, NULL, start), f);
	assert_null(frame_codes_find(&codes, (const void *)&codes, start));
	assert_null(frame_codes_find(&codes, NULL, start + 1));
	for (size_t i = 0; i < n; i++) {
		const struct frame_state st = frame_state_at(f, at);
		struct insn in;

		if (st.known == want[i].unknown || st.depth != want[i].depth ||
		    st.framed != want[i].framed || st.foreign != want[i].foreign)
			fail_msg("instruction %zu: depth %d%s%s%s", i, st.depth,
				 st.framed ? ", framed" : "", st.foreign ? ", foreign" : "",
				 st.known ? "" : ", unknown");
		if (!disasm_decode(disasm, (const unsigned char *)from + (at - start),
				   start + (until - from) - at, at, &in))
			in.len = 1;
		for (unsigned int k = 1; k < in.len; k++)
			assert_false(frame_state_at(f, at + k).known);
		if (!want[i].unknown)
			assert_int_equal(frame_state_next(f, at),
					 i + 1 < n && !want[i + 1].unknown ? at + in.len : 0);
		at += in.len;
	}
	assert_int_equal(at - start, until - from);
	assert_false(frame_state_at(f, at).known);
	assert_false(frame_state_at(f, start - 1).known);
}

#define CHECK(name, ...)                                                                  \
	check(state_##name##_0, state_##name##_end, (const struct want[]){ __VA_ARGS__ }, \
	      sizeof((const struct want[]){ __VA_ARGS__ }) / sizeof(struct want))

static void test_framed(void **state)
{
	(void)state;
	CHECK(framed, { 0 }, { 8 }, { 8, true }, { 16, true }, { 40, true }, { 40, true },
	      { 16, true }, { 8, true }, { 0 });
}

static void test_bare(void **state)
{
	(void)state;
	CHECK(bare, { 0 }, { 40 }, { 24 }, { 0 }, { 0, false, true }, { -1, false, true },
	      { -1, false, true }, { -1 });
}

static void test_lea(void **state)
{
	(void)state;
	CHECK(lea, { 0 }, { 8 }, { 40 }, { 40, true }, { 0 }, { 8 }, { 8, false, true },
	      { 8, true }, { 8, true });
}

static void test_aligned(void **state)
{
	(void)state;
	CHECK(aligned, { 0 }, { -1 }, { -1 }, { -1, true }, { -1, true }, { 8, true }, { -1, true },
	      { 0 }, { -1 }, { -1 });
}

static void test_odd(void **state)
{
	(void)state;
	CHECK(odd, { 0 }, { -1 }, { 0 }, { 488 }, { -1 }, { 488 }, { -1 }, { -1 },
	      { -1, false, true });
}

static void test_jumps(void **state)
{
	(void)state;
	/* a table leads to all that nothing else does */
	CHECK(jumps, { 0 }, { 8 }, { 8 }, { 0 }, { 8 }, { 8 }, { 8 }, { 8 }, { 8 });
}

static void test_unreached(void **state)
{
	(void)state;
	CHECK(unreached, { 0 }, { -1, .unknown = true }, { 0 }, { -1, .unknown = true },
	      { -1, .unknown = true });
}

/* Code that is not known has no states, and does not count. */
static void test_not_followed(void **state)
{
	const struct frame_code *f;

	(void)state;
	f = frame_codes_add(&codes, NULL, 100, 50, NULL, disasm);
	assert_ptr_equal(frame_codes_find(&codes, NULL, 100), f);
	assert_false(frame_state_at(f, 100).known);
	assert_int_equal(frame_state_at(f, 100).depth, -1);
	assert_int_equal(frame_state_next(f, 100), 0);
	f = frame_codes_add(&codes, NULL, 200, 1, (const unsigned char *)"\x90", NULL);
	assert_false(frame_state_at(f, 200).known);
	assert_int_equal(codes.bytes, 0);
	f = frame_codes_add(&codes, NULL, 300, 1, (const unsigned char *)"\x90", disasm);
	assert_true(frame_state_at(f, 300).known);
	assert_int_equal(codes.bytes, 1);
	assert_non_null(frame_codes_find(&codes, NULL, 100));
	/* what was spent is spent */
	frame_codes_free(&codes);
	assert_int_equal(codes.bytes, 1);
	assert_null(frame_codes_find(&codes, NULL, 100));
}

static void test_limits(void **state)
{
	(void)state;
	assert_false(frame_codes_affords(&codes, 0));
	assert_true(frame_codes_affords(&codes, FRAME_CODE_MAX));
	assert_false(frame_codes_affords(&codes, FRAME_CODE_MAX + 1));
	assert_false(codes.full);
	codes.bytes = FRAME_CODE_TOTAL - 10;
	assert_true(frame_codes_affords(&codes, 10));
	assert_false(codes.full);
	assert_false(frame_codes_affords(&codes, 11));
	assert_true(codes.full);
	assert_true(frame_codes_affords(&codes, 1));
	assert_true(codes.full);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_framed),	   T(test_bare),	 T(test_lea),
		T(test_aligned),   T(test_odd),		 T(test_jumps),
		T(test_unreached), T(test_not_followed), T(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
