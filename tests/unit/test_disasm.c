// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Instructions by their bytes, as the manual of the architecture encodes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "disasm/disasm.h"

#define AT 0x401000ull

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, NONE = INSN_NO_REG };

static const struct row {
	const char *bytes;
	unsigned int len;
	const char *text; /* NULL: any */
	enum insn_flow flow;
	unsigned int target; /* 0: none */
	unsigned int n_mem;
	struct insn_mem mem;
	unsigned int writes;
	int from, to; /* of a move; without: NONE */
} rows[] = {
	{ "\x48\x8b\x44\xd6\x10",
	  5,
	  "movq 0x10(%rsi, %rdx, 8), %rax",
	  INSN_NEXT,
	  0,
	  1,
	  { RSI, RDX, 8, INSN_READ, 8, 0, 16 },
	  1 << RAX,
	  NONE,
	  RAX },
	{ "\x89\x55\xfc",
	  3,
	  "movl %edx, -4(%rbp)",
	  INSN_NEXT,
	  0,
	  1,
	  { RBP, NONE, 1, INSN_WRITE, 4, 0, -4 },
	  0,
	  NONE,
	  NONE },
	{ "\xf0\x41\xff\x00",
	  4,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { R8, NONE, 1, INSN_READ | INSN_WRITE, 4, 0, 0 },
	  0,
	  NONE,
	  NONE },
	{ "\x0f\xb6\x05\x10\x00\x00\x00",
	  7,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { INSN_RIP, NONE, 1, INSN_READ, 1, 0, 16 },
	  1 << RAX,
	  NONE,
	  RAX },
	{ "\x65\x48\x8b\x04\x25\x28\x00\x00\x00",
	  9,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { NONE, NONE, 1, INSN_READ, 8, 'g', 40 },
	  1 << RAX,
	  NONE,
	  RAX },
	{ "\x48\x89\xfb", 3, "movq %rdi, %rbx", INSN_NEXT, 0, 0, { 0 }, 1 << RBX, RDI, RBX },
	{ "\x89\xfb", 2, "movl %edi, %ebx", INSN_NEXT, 0, 0, { 0 }, 1 << RBX, NONE, RBX },
	{ "\x48\x8d\x04\xf7", 4, NULL, INSN_NEXT, 0, 0, { 0 }, 1 << RAX, NONE, RAX },
	{ "\x66\x0f\x1f\x44\x00\x00", 6, NULL, INSN_NEXT, 0, 0, { 0 }, 0, NONE, NONE },
	{ "\x0f\x18\x0f", 3, NULL, INSN_NEXT, 0, 1, { RDI, NONE, 1, 0, 1, 0, 0 }, 0, NONE, NONE },
	{ "\xc5\xf9\x6f\x07",
	  4,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { RDI, NONE, 1, INSN_READ, 16, 0, 0 },
	  0,
	  NONE,
	  NONE },
	{ "\xf3\x48\xa5",
	  3,
	  NULL,
	  INSN_NEXT,
	  0,
	  2,
	  { RDI, NONE, 1, INSN_WRITE, 8, 0, 0 },
	  1 << RSI | 1 << RDI | 1 << RCX,
	  NONE,
	  NONE },
	{ "\xe8\xfb\x0f\x00\x00",
	  5,
	  "callq 0x402000",
	  INSN_CALL,
	  0x402000,
	  0,
	  { 0 },
	  1 << RSP,
	  NONE,
	  NONE },
	{ "\xff\x10",
	  2,
	  NULL,
	  INSN_CALL,
	  0,
	  1,
	  { RAX, NONE, 1, INSN_READ, 8, 0, 0 },
	  1 << RSP,
	  NONE,
	  NONE },
	{ "\xeb\xfe", 2, "jmp 0x401000", INSN_JUMP, 0x401000, 0, { 0 }, 0, NONE, NONE },
	{ "\x75\x0e", 2, "jne 0x401010", INSN_BRANCH, 0x401010, 0, { 0 }, 0, NONE, NONE },
	{ "\xc3", 1, NULL, INSN_RETURN, 0, 0, { 0 }, 1 << RSP, NONE, NONE },
	{ "\xc5\xf9\xe7\x07",
	  4,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { RDI, NONE, 1, INSN_WRITE, 16, 0, 0 },
	  0,
	  NONE,
	  NONE },
	{ "\xf6\x07\x01",
	  3,
	  NULL,
	  INSN_NEXT,
	  0,
	  1,
	  { RDI, NONE, 1, INSN_READ, 1, 0, 0 },
	  0,
	  NONE,
	  NONE },
	{ "\x62\xf2\xf6\x41\x26\xc9",
	  6,
	  "(vector) 62 f2 f6 41 26 c9",
	  INSN_NEXT,
	  0,
	  0,
	  { 0 },
	  0,
	  NONE,
	  NONE },
	{ "\x62\xf2\x7d\x48\x78\x1c\x0f", 7, NULL, INSN_NEXT, 0, 0, { 0 }, 0, NONE, NONE },
	{ "\x90", 1, "nop", INSN_NEXT, 0, 0, { 0 }, 0, NONE, NONE },
};

static void check_mem(const struct insn_mem *m, const struct insn_mem *want)
{
	assert_int_equal(m->base, want->base);
	assert_int_equal(m->index, want->index);
	assert_int_equal(m->scale, want->scale);
	assert_int_equal(m->access, want->access);
	assert_int_equal(m->size, want->size);
	assert_int_equal(m->segment, want->segment);
	assert_int_equal(m->displacement, want->displacement);
}

static void test_rows(void **state)
{
	unsigned char bytes[INSN_BYTES_MAX];
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	assert_non_null(d);
	for (const struct row *r = rows; r < rows + ARRAY_SIZE(rows); r++) {
		memset(bytes, 0x90, sizeof(bytes));
		memcpy(bytes, r->bytes, r->len);
		assert_true(disasm_decode(d, bytes, sizeof(bytes), AT, &in));
		print_message("%s\n", in.text);
		assert_int_equal(in.len, r->len);
		if (r->text)
			assert_string_equal(in.text, r->text);
		assert_int_equal(in.flow, r->flow);
		assert_int_equal(in.has_target, r->target != 0);
		assert_int_equal(in.target, r->target);
		assert_int_equal(in.n_mem, r->n_mem);
		if (r->n_mem)
			check_mem(&in.mem[0], &r->mem);
		assert_int_equal(in.writes, r->writes);
		assert_int_equal(in.effect == INSN_MOVE, r->from != NONE);
		assert_int_equal(in.from, r->from);
		assert_int_equal(in.to, r->to);
		/* A part of it is no instruction, or a shorter one. */
		assert_false(disasm_decode(d, bytes, r->len - 1, AT, &in) && in.len >= r->len);
	}
	disasm_free(d);
}

static void test_syntax(void **state)
{
	struct disasm *d = disasm_new(true);
	struct insn in;

	(void)state;
	assert_true(disasm_decode(d, (const unsigned char *)"\x89\x55\xfc", 3, AT, &in));
	assert_string_equal(in.text, "mov dword ptr [rbp - 4], edx");
	assert_int_equal(in.mem[0].access, INSN_WRITE);
	assert_true(disasm_decode(d, (const unsigned char *)"\x48\x89\xfb", 3, AT, &in));
	assert_int_equal(in.effect, INSN_MOVE);
	assert_int_equal(in.from, RDI);
	assert_int_equal(in.to, RBX);
	disasm_free(d);
}

/* Which accesses of an instruction can only go by the stack pointer. */
static void test_stack(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int len, access;
	} stack_rows[] = {
		{ "\x50", 1, INSN_WRITE },		   /* push %rax */
		{ "\x68\x01\x00\x00\x00", 5, INSN_WRITE }, /* push $1 */
		{ "\xff\x30", 2, INSN_WRITE },		   /* push (%rax), which reads (%rax) */
		{ "\xff\x74\x24\x08", 4, INSN_READ | INSN_WRITE }, /* push 8(%rsp) */
		{ "\x9c", 1, INSN_WRITE },			   /* pushf */
		{ "\x5b", 1, INSN_READ },			   /* pop %rbx */
		{ "\x8f\x00", 2, INSN_READ },		   /* pop (%rax), which writes (%rax) */
		{ "\x9d", 1, INSN_READ },		   /* popf */
		{ "\xc9", 1, INSN_READ },		   /* leave */
		{ "\xc3", 1, INSN_READ },		   /* ret */
		{ "\xc2\x08\x00", 3, INSN_READ },	   /* ret $8 */
		{ "\xe8\x00\x00\x00\x00", 5, INSN_WRITE }, /* call */
		{ "\xff\xd0", 2, INSN_WRITE },		   /* call *%rax */
		{ "\xff\x10", 2, INSN_WRITE },		   /* call *(%rax), which reads (%rax) */
		{ "\xff\x20", 2, 0 },			   /* jmp *(%rax) */
		{ "\xff\x24\x24", 3, INSN_READ },	   /* jmp *(%rsp) */
		{ "\x48\x8b\x44\x24\x08", 5, INSN_READ },  /* mov 8(%rsp), %rax */
		{ "\x48\x89\x04\x24", 4, INSN_WRITE },	   /* mov %rax, (%rsp) */
		{ "\x48\x01\x04\x24", 4, INSN_READ | INSN_WRITE }, /* add %rax, (%rsp) */
		{ "\x48\x8b\x04\xc4", 4, INSN_READ },		   /* mov (%rsp, %rax, 8), %rax */
		{ "\x48\x8d\x44\x24\x08", 5, 0 },		   /* lea 8(%rsp), %rax */
		{ "\x0f\x18\x0c\x24", 4, 0 },			   /* prefetcht0 (%rsp) */
		{ "\x64\x48\x8b\x04\x24", 5, 0 },		   /* mov %fs:(%rsp), %rax */
		{ "\x48\x8b\x45\x08", 4, 0 },			   /* mov 8(%rbp), %rax */
		{ "\x4c\x8b\x04\x24", 4, INSN_READ },		   /* mov (%rsp), %r8 */
		{ "\x49\x8b\x04\x24", 4, 0 },			   /* mov (%r12), %rax */
		{ "\x48\xa5", 2, 0 },				   /* movsq */
		{ "\x48\x89\xe0", 3, 0 },			   /* mov %rsp, %rax */
	};
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stack_rows); i++) {
		assert_true(disasm_decode(d, (const unsigned char *)stack_rows[i].bytes,
					  stack_rows[i].len, AT, &in));
		print_message("%s\n", in.text);
		assert_int_equal(in.len, stack_rows[i].len);
		assert_int_equal(insn_stack_access(&in), stack_rows[i].access);
	}
	in = (struct insn){ .stack = INSN_READ | INSN_WRITE,
			    .n_mem = 1,
			    .mem = { { RAX, NONE, 1, INSN_WRITE, 8, 0, 0 } } };
	assert_int_equal(insn_stack_access(&in), INSN_READ);
	disasm_free(d);
}

/* AVX-512 and AVX-VNNI, which the library may not know: length by prefix, ModRM, SIB, displacement and immediate. */
static void test_vector_lengths(void **state)
{
#define EVEX "\x62\xf2\x7d\x48\x50" /* vpdpbusd, zmm0 */
	static const struct {
		const char *bytes;
		unsigned int len;
	} rows[] = {
		{ EVEX "\xc1", 6 },			       /* zmm1 */
		{ EVEX "\x01", 6 },			       /* (%rcx) */
		{ EVEX "\x05\x01\x02\x03\x04", 10 },	       /* 0x4030201(%rip) */
		{ EVEX "\x41\x08", 7 },			       /* 8 (%rcx), in units of 64 bytes */
		{ EVEX "\x81\x01\x02\x03\x04", 10 },	       /* 0x4030201(%rcx) */
		{ EVEX "\x04\x24", 7 },			       /* (%rsp) */
		{ EVEX "\x04\x25\x01\x02\x03\x04", 11 },       /* 0x4030201 */
		{ EVEX "\x44\x24\x08", 8 },		       /* 8 (%rsp) */
		{ EVEX "\x84\x24\x01\x02\x03\x04", 11 },       /* 0x4030201(%rsp) */
		{ "\x62\xf3\xfd\x48\x70\xc1\x05", 7 },	       /* vpshldw $5 */
		{ "\x62\xf3\xfd\x48\x70\x44\x24\x08\x05", 9 }, /* the same of 8 (%rsp) */
		{ "\xc4\xe2\x71\x50\xc2", 5 },		       /* vpdpbusd of AVX-VNNI */
		{ "\xc4\xe2\x71\x50\x42\x08", 6 },
	};
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const unsigned char *bytes = (const unsigned char *)rows[i].bytes;

		assert_true(disasm_decode(d, bytes, rows[i].len, AT, &in));
		print_message("%s\n", in.text);
		assert_int_equal(in.len, rows[i].len);
		for (unsigned int n = 0; n < rows[i].len; n++) {
			assert_false(disasm_decode(d, bytes, n, AT, &in));
			assert_true(!in.len && !in.text[0] && !in.from && !in.to);
		}
	}
	disasm_free(d);
}

static void test_no_instruction(void **state)
{
	static const char *const none[] = { "\x06", "\xff\xff", "\xf0", "\x48", "\x62" };
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		assert_false(
			disasm_decode(d, (const unsigned char *)none[i], strlen(none[i]), AT, &in));
		assert_int_equal(in.len, 0);
	}
	assert_false(disasm_decode(d, NULL, 0, AT, &in));
	disasm_free(d);
}

/* Whatever the bytes are, decoding stays within them. */
static void test_any_bytes(void **state)
{
	unsigned char bytes[INSN_BYTES_MAX];
	struct disasm *d = disasm_new(false);
	__u64 x = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct insn in;
		size_t n;

		for (size_t k = 0; k < sizeof(bytes); k++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			bytes[k] = x >> 56;
		}
		n = x >> 40 & 15;
		if (!disasm_decode(d, bytes, n, AT, &in))
			continue;
		assert_in_range(in.len, 1, n);
		assert_in_range(in.n_mem, 0, INSN_MEM_MAX);
		assert_true(in.text[0]);
	}
	disasm_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	  cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_stack),	  cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_vector_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
