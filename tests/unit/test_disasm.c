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
			unsigned char *part = malloc(n); /* nothing behind it may be read */

			memcpy(part, bytes, n);
			assert_false(disasm_decode(d, part, n, AT, &in));
			assert_true(!in.len && !in.text[0] && !in.from && !in.to);
			free(part);
		}
	}
	disasm_free(d);
}

/* Which opcodes have an immediate: all of map 3, few of map 1. Maps that no vector instruction has are invalid. */
static void test_vector_maps(void **state)
{
	static const unsigned char opcodes[] = { 0x58, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74,
						 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7 };
	static const char immediate[] = "00111100101110"; /* of map 1 */
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (unsigned int map = 0; map < 8; map++)
		for (size_t i = 0; i < sizeof(opcodes); i++) {
			const unsigned char bytes[] = { 0x62, 0xf0 | map, 0x7c, 0x08, opcodes[i],
							0xc1, 1,	  2,	3,    4 };
			const bool has = map == 3 || (map == 1 && immediate[i] == '1');

			if (!map || map == 4 || map == 7) {
				assert_false(disasm_decode(d, bytes, sizeof(bytes), AT, &in));
				continue;
			}
			assert_true(disasm_decode(d, bytes, sizeof(bytes), AT, &in));
			assert_int_equal(in.len, has ? 7 : 6);
		}
	/* VEX, of two bytes and of three */
	for (size_t i = 1; i < sizeof(opcodes); i++) {
		const unsigned char two[] = { 0xc5, 0xfa, opcodes[i], 0xc1, 1, 2, 3 },
				    three[] = { 0xc4, 0xe1, 0x7a, opcodes[i], 0xc1, 1, 2, 3 };
		const bool has = immediate[i] == '1';

		assert_true(disasm_decode(d, two, sizeof(two), AT, &in));
		assert_int_equal(in.len, has ? 5 : 4);
		assert_true(disasm_decode(d, three, sizeof(three), AT, &in));
		assert_int_equal(in.len, has ? 6 : 5);
	}
	disasm_free(d);
}

/* What becomes of the register that an instruction writes, in both syntaxes. */
static void test_effects(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int len;
		enum insn_effect effect;
		int to, from;
		__s64 value;
	} effects[] = {
		{ "\x48\xc7\xc0\xff\xff\xff\xff", 7, INSN_SET, RAX, NONE, -1 }, /* mov $-1, %rax */
		{ "\xb8\x05\x00\x00\x00", 5, INSN_SET, RAX, NONE, 5 },		/* mov $5, %eax */
		{ "\x48\xb9\x01\x00\x00\x00\x02\x00\x00\x00", 10, INSN_SET, RCX, NONE,
		  0x200000001 },				       /* movabs */
		{ "\x48\x8b\x43\x08", 4, INSN_LOAD, RAX, NONE, 0 },    /* mov 8(%rbx), %rax */
		{ "\x8b\x43\x08", 3, INSN_OTHER, RAX, NONE, 0 },       /* mov 8(%rbx), %eax */
		{ "\x48\x89\xd8", 3, INSN_MOVE, RAX, RBX, 0 },	       /* mov %rbx, %rax */
		{ "\x89\xd8", 2, INSN_OTHER, RAX, NONE, 0 },	       /* mov %ebx, %eax */
		{ "\x48\x8d\x43\x08", 4, INSN_ADDRESS, RAX, NONE, 0 }, /* lea 8(%rbx), %rax */
		{ "\x8d\x43\x08", 3, INSN_OTHER, RAX, NONE, 0 },       /* lea 8(%rbx), %eax */
		{ "\x48\x01\xd8", 3, INSN_ADD, RAX, RBX, 0 },	       /* add %rbx, %rax */
		{ "\x48\x83\xc0\x10", 4, INSN_ADD, RAX, NONE, 16 },    /* add $16, %rax */
		{ "\x83\xc0\x10", 3, INSN_OTHER, RAX, NONE, 16 },      /* add $16, %eax */
		{ "\x48\x03\x43\x08", 4, INSN_ADD, RAX, NONE, 0 },     /* add 8(%rbx), %rax */
		{ "\x48\x83\xe8\x10", 4, INSN_ADD, RAX, NONE, -16 },   /* sub $16, %rax */
		{ "\x48\x29\xd8", 3, INSN_OTHER, RAX, NONE, 0 },       /* sub %rbx, %rax */
		{ "\x48\x21\xd8", 3, INSN_OTHER, RAX, NONE, 0 },       /* and %rbx, %rax */
		{ "\x48\x87\xd8", 3, INSN_OTHER, NONE, NONE, 0 },      /* xchg: two registers */
		{ "\x48\x89\x03", 3, INSN_OTHER, NONE, NONE, 0 },      /* mov %rax, (%rbx) */
		{ "\x48\xff\xc0", 3, INSN_OTHER, RAX, NONE, 0 },       /* inc %rax */
		{ "\x48\x39\xd8", 3, INSN_OTHER, NONE, NONE, 0 },      /* cmp %rbx, %rax */
	};

	(void)state;
	for (int intel = 0; intel < 2; intel++) {
		struct disasm *d = disasm_new(intel);
		struct insn in;

		for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
			assert_true(disasm_decode(d, (const unsigned char *)effects[i].bytes,
						  effects[i].len, AT, &in));
			print_message("%s\n", in.text);
			assert_int_equal(in.len, effects[i].len);
			assert_int_equal(in.effect, effects[i].effect);
			assert_int_equal(in.to, effects[i].to);
			assert_int_equal(in.from, effects[i].from);
			if (in.effect == INSN_SET || in.effect == INSN_ADD)
				assert_int_equal(in.value, effects[i].value);
			if (in.effect == INSN_ADDRESS) {
				assert_int_equal(in.n_mem, 0);
				check_mem(&in.mem[0],
					  &(struct insn_mem){ RBX, NONE, 1, 0, 8, 0, 8 });
			}
		}
		disasm_free(d);
	}
}

/* How memory is accessed where the library says something else. */
static void test_accesses(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int len, access, size;
	} accesses[] = {
		{ "\x0f\xc3\x07", 3, INSN_WRITE, 4 },		  /* movnti %eax, (%rdi) */
		{ "\x0f\x2b\x07", 3, INSN_WRITE, 16 },		  /* movntps */
		{ "\x66\x0f\x2b\x07", 4, INSN_WRITE, 16 },	  /* movntpd */
		{ "\x66\x0f\xe7\x07", 4, INSN_WRITE, 16 },	  /* movntdq */
		{ "\x0f\xe7\x07", 3, INSN_WRITE, 8 },		  /* movntq */
		{ "\xc5\xf8\x2b\x07", 4, INSN_WRITE, 16 },	  /* vmovntps */
		{ "\xc5\xf9\x2b\x07", 4, INSN_WRITE, 16 },	  /* vmovntpd */
		{ "\xc5\xf9\xe7\x07", 4, INSN_WRITE, 16 },	  /* vmovntdq */
		{ "\x48\x85\x07", 3, INSN_READ, 8 },		  /* test %rax, (%rdi) */
		{ "\x48\x01\x07", 3, INSN_READ | INSN_WRITE, 8 }, /* add %rax, (%rdi) */
		{ "\x0f\x18\x07", 3, 0, 1 },			  /* prefetchnta */
		{ "\x0f\x18\x0f", 3, 0, 1 },			  /* prefetcht0 */
		{ "\x0f\x18\x17", 3, 0, 1 },			  /* prefetcht1 */
		{ "\x0f\x18\x1f", 3, 0, 1 },			  /* prefetcht2 */
		{ "\x0f\x0d\x0f", 3, 0, 1 },			  /* prefetchw */
	};
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
		assert_true(disasm_decode(d, (const unsigned char *)accesses[i].bytes,
					  accesses[i].len, AT, &in));
		print_message("%s\n", in.text);
		assert_int_equal(in.n_mem, 1);
		assert_int_equal(in.mem[0].base, RDI);
		assert_int_equal(in.mem[0].access, accesses[i].access);
		assert_int_equal(in.mem[0].size, accesses[i].size);
	}
	disasm_free(d);
}

/* Parts of registers are the whole ones; segments; far jumps and returns. */
static void test_registers(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int len, writes;
		enum insn_flow flow;
	} registers[] = {
		{ "\xb4\x01", 2, 1 << RAX, INSN_NEXT },		/* mov $1, %ah */
		{ "\xb2\x01", 2, 1 << RDX, INSN_NEXT },		/* mov $1, %dl */
		{ "\x66\xb9\x01\x00", 4, 1 << RCX, INSN_NEXT }, /* mov $1, %cx */
		{ "\x40\xb6\x01", 3, 1 << RSI, INSN_NEXT },	/* mov $1, %sil */
		{ "\x41\xb7\x01", 3, 1 << 15, INSN_NEXT },	/* mov $1, %r15b */
		{ "\x49\xff\xc4", 3, 1 << 12, INSN_NEXT },	/* inc %r12 */
		{ "\x0f\xa2", 2, 1 << RAX | 1 << RBX | 1 << RCX | 1 << RDX, INSN_NEXT }, /* cpuid */
		{ "\x58", 1, 1 << RAX | 1 << RSP, INSN_NEXT }, /* pop %rax */
		{ "\x48\xcf", 2, 1 << RSP, INSN_RETURN },      /* iretq */
		{ "\xff\x2f", 2, 0, INSN_JUMP },	       /* ljmp *(%rdi) */
		{ "\xff\xe0", 2, 0, INSN_JUMP },	       /* jmp *%rax */
		{ "\xe3\x00", 2, 0, INSN_BRANCH },	       /* jrcxz */
	};
	struct disasm *d = disasm_new(false);
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		assert_true(disasm_decode(d, (const unsigned char *)registers[i].bytes,
					  registers[i].len, AT, &in));
		print_message("%s\n", in.text);
		assert_int_equal(in.flow, registers[i].flow);
		assert_int_equal(in.has_target, in.flow == INSN_BRANCH);
		if (in.flow != INSN_RETURN)
			assert_int_equal(in.writes, registers[i].writes);
	}
	assert_true(disasm_decode(d, (const unsigned char *)"\x64\x8b\x07", 3, AT, &in));
	assert_int_equal(in.mem[0].segment, 'f');
	assert_true(disasm_decode(d, (const unsigned char *)"\x3e\x8b\x07", 3, AT, &in));
	assert_int_equal(in.mem[0].segment, 0);
	disasm_free(d);
	disasm_free(NULL);
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
		cmocka_unit_test(test_rows),	    cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_stack),	    cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_any_bytes),   cmocka_unit_test(test_vector_lengths),
		cmocka_unit_test(test_vector_maps), cmocka_unit_test(test_effects),
		cmocka_unit_test(test_accesses),    cmocka_unit_test(test_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
