// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Types of data and code of this program, by its own debug information. The functions below never run: they have
 * instructions with labels, and each test says what one of these accesses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "self_types.h"

struct pos {
	int x, y;
};

struct row {
	unsigned long key;
	struct pos at;
};

union num {
	int i;
	double d;
};

enum color { RED, GREEN };

struct shape {
	long id;			/* 0 */
	struct pos pos;			/* 8 */
	struct row rows[3];		/* 16 */
	union num num;			/* 64 */
	unsigned int low : 3, mid : 13; /* 72, in two bytes */
	short tail;			/* 74, and four bytes of padding */
	struct shape *next;		/* 80 */
};

typedef struct {
	int a;
} unnamed_t;
typedef struct pos pos_t;

extern struct shape types_shape;
extern pos_t types_pos;
extern int types_table[5];
extern struct pos types_places[2][3];
extern const char *types_word;
extern void *types_void;
extern int **types_twice;
extern int (*types_call)(int);
extern enum color types_color;
extern unnamed_t types_unnamed;
extern union num types_num;
extern volatile const long types_long;

struct shape types_shape = { .id = 1 };
pos_t types_pos;
int types_table[5];
struct pos types_places[2][3];
const char *types_word;
void *types_void;
int **types_twice;
int (*types_call)(int);
enum color types_color;
unnamed_t types_unnamed;
union num types_num;
volatile const long types_long = 3;

/* --- code --- */

/* Labels of instructions. */
#define LABEL(name) "\n.globl types_at_" #name "\ntypes_at_" #name ": "
extern const char types_at_member[], types_at_chain[], types_at_element[], types_at_global[],
	types_at_stack[], types_at_untyped[], types_at_number[], types_at_outside[],
	types_at_thread[], types_at_strange[], types_at_nop[], types_at_push[], types_at_copy[],
	types_at_lea[], types_at_add[], types_at_load[], types_at_join[], types_at_differ[],
	types_at_kept[], types_at_lost[], types_at_returned[], types_at_indexed[],
	types_at_jumped[], types_at_scalar[], types_at_inner[], types_at_first[], types_at_byte[],
	types_at_overwritten[], types_at_loop[], types_at_stride[], types_at_uneven[];

#define CODE __attribute__((noinline, used, no_sanitize("address", "undefined")))

CODE long types_code_members(struct shape *s);
CODE long types_code_members(struct shape *s)
{
	long v;
	int n;

	__asm__ volatile(LABEL(member) "mov %1, %0" : "=r"(v) : "m"(s->rows[1].key));
	__asm__ volatile(LABEL(outside) "mov 96(%1), %0" : "=r"(v) : "D"(s));
	__asm__ volatile(LABEL(byte) "movb 72(%1), %b0" : "=r"(v) : "D"(s));
	__asm__ volatile(LABEL(chain) "mov %1, %0" : "=r"(n) : "m"(s->next->next->pos.y));
	return v + n;
}

CODE long types_code_element(struct shape *s, long i);
CODE long types_code_element(struct shape *s, long i)
{
	long v;

	__asm__ volatile(LABEL(element) "mov 16(%1,%2), %0" : "=r"(v) : "D"(s), "S"(i));
	return v;
}

CODE int types_code_global(void);
CODE int types_code_global(void)
{
	int v;

	__asm__ volatile(LABEL(global) "mov %1, %0" : "=r"(v) : "m"(types_shape.pos.x));
	return v;
}

CODE int types_code_scalar(short *numbers);
CODE int types_code_scalar(short *numbers)
{
	short v;

	__asm__ volatile(LABEL(scalar) "movw 6(%1), %0" : "=r"(v) : "D"(numbers));
	return v;
}

CODE void types_escape(void *p);
CODE void types_escape(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

CODE int types_code_stack(int a);
CODE int types_code_stack(int a)
{
	struct pos p = { a, a };
	int v;

	types_escape(&p);
	__asm__ volatile(LABEL(stack) "mov %1, %0" : "=r"(v) : "m"(p.y));
	types_escape(&p);
	return v;
}

CODE int types_code_untyped(void *p, unsigned long n);
CODE int types_code_untyped(void *p, unsigned long n)
{
	int v;

	__asm__ volatile(LABEL(untyped) "movl (%1), %0" LABEL(number) "movl (%2), %0"
			 : "=r"(v)
			 : "D"(p), "S"(n));
	return v;
}

CODE void types_code_other(void);
CODE void types_code_other(void)
{
	__asm__ volatile(
		LABEL(thread) "mov %%fs:0, %%rcx" LABEL(strange) "mov (%%r11), %%ecx" LABEL(
			nop) "nop" LABEL(push) "push %%rcx; pop %%rcx"
		:
		:
		: "rcx");
}

/* clang-format off */

/* Values that instructions move from the variable to another register. */
CODE void types_code_moves(struct shape *s);
CODE void types_code_moves(struct shape *s)
{
	__asm__ volatile("mov %0, %%rcx"
			 LABEL(copy) "movl 8(%%rcx), %%edx\n"
			 "lea 16(%%rcx), %%r8"
			 LABEL(lea) "mov (%%r8), %%rdx\n"
			 "add $80, %%rcx"
			 LABEL(add) "mov (%%rcx), %%rdx"
			 LABEL(load) "movl 12(%%rdx), %%edx\n"
			 "mov 80(%0), %%rcx\n"
			 "xor %%ecx, %%ecx"
			 LABEL(overwritten) "movl 12(%%rcx), %%edx\n"
			 "mov %0, %%r9\n"
			 "add %%r10, %%r9"
			 LABEL(indexed) "mov 16(%%r9), %%rdx"
			 LABEL(first) "movl (%%r9), %%edx"
			 : : "D"(s) : "rcx", "rdx", "r8", "r9");
}

/* Where paths join, all must agree. */
CODE void types_code_paths(struct shape *s, struct row *r);
CODE void types_code_paths(struct shape *s, struct row *r)
{
	__asm__ volatile("mov %0, %%rcx\n"
			 "test %%rdx, %%rdx\n"
			 "jz 1f\n"
			 "mov 80(%0), %%rcx\n"
			 "1:"
			 LABEL(join) "movl 8(%%rcx), %%eax\n"
			 "mov %0, %%r8\n"
			 "test %%rdx, %%rdx\n"
			 "jz 2f\n"
			 "mov %1, %%r8\n"
			 "2:"
			 LABEL(differ) "movl 8(%%r8), %%eax\n"
			 /* what is before an unconditional jump does not reach the code behind it */
			 "mov %0, %%r9\n"
			 "test %%rdx, %%rdx\n"
			 "jz 3f\n"
			 "mov %1, %%r9\n"
			 "jmp 4f\n"
			 "3:"
			 LABEL(jumped) "movl 8(%%r9), %%eax\n"
			 "4:\n"
			 /* a list */
			 "mov %0, %%r10\n"
			 "5:"
			 LABEL(loop) "movl 12(%%r10), %%eax\n"
			 "mov 80(%%r10), %%r10\n"
			 "test %%r10, %%r10\n"
			 "jnz 5b\n"
			 /* an array */
			 "mov %0, %%r11\n"
			 "6:"
			 LABEL(stride) "movl 12(%%r11), %%eax\n"
			 "add $88, %%r11\n"
			 "test %%rdx, %%rdx\n"
			 "jnz 6b\n"
			 /* no array of that type */
			 "mov %0, %%r11\n"
			 "7:"
			 LABEL(uneven) "movl 12(%%r11), %%eax\n"
			 "add $80, %%r11\n"
			 "test %%rdx, %%rdx\n"
			 "jnz 7b\n"
			 : : "D"(s), "S"(r) : "rax", "rcx", "r8", "r9", "r10", "r11");
}

/* A call keeps some registers only. */
CODE void types_code_call(struct shape *s);
CODE void types_code_call(struct shape *s)
{
	__asm__ volatile("mov %0, %%rbx\n"
			 "mov %0, %%r9\n"
			 "call types_escape"
			 LABEL(kept) "mov 80(%%rbx), %%rdx"
			 LABEL(lost) "mov 80(%%r9), %%rdx"
			 : : "D"(s) : "rbx", "rdx", "r9");
}

/* clang-format on */

CODE struct shape *types_make(void);
CODE struct shape *types_make(void)
{
	return types_shape.next;
}

CODE int types_code_returned(void);
CODE int types_code_returned(void)
{
	short v;

	__asm__ volatile(LABEL(returned) "movw %1, %0" : "=r"(v) : "m"(types_make()->tail));
	return v;
}

#define INLINED static inline __attribute__((always_inline, no_sanitize("address", "undefined")))

INLINED void innermost(void)
{
	__asm__ volatile(LABEL(inner) "nop; nop");
}
enum { CALL_LINE = __LINE__ + 3 }; /* of that in around() */
INLINED void around(void)
{
	innermost();
}

CODE void types_code_inlined(void);
CODE void types_code_inlined(void)
{
	__asm__ volatile("nop");
	around();
	__asm__ volatile("nop");
}

/* --- queries --- */

/* @bytes at an offset of types_shape */
static void data(__u64 at, unsigned int bytes, const char *field, __u64 begin, __u64 size)
{
	types_of_data(t, linked(&types_shape) + at, bytes, &got);
	found(TYPE_VARIABLE, "struct shape", field, at, begin, size);
}

static void test_fields(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct shape), 88);
	for (int twice = 0; twice < 2; twice++) { /* also from the cache */
		data(0, 8, "id", 0, 8);
		data(7, 1, "id", 0, 8);
		data(8, 4, "pos.x", 8, 4);
		data(12, 4, "pos.y", 12, 4);
		/* those of the first element */
		data(16, 8, "rows[].key", 16, 8);
		data(32, 8, "rows[].key", 16, 8);
		data(60, 4, "rows[].at.y", 28, 4);
		data(74, 2, "tail", 74, 2);
		data(80, 8, "next", 80, 8);
		data(87, 1, "next", 80, 8);
	}
}

/* Of several fields, the size of the access tells which; else all are named. */
static void test_ambiguous(void **state)
{
	(void)state;
	data(64, 4, "num.i", 64, 4);
	data(64, 8, "num.d", 64, 8);
	data(64, 2, "num.i|d", 64, 4);
	data(64, 0, "num.i|d", 64, 4);
	data(68, 4, "num.d", 64, 8);
	data(72, 1, "low", 72, 1);
	data(72, 2, "mid", 72, 2);
	data(72, 4, "low|mid", 72, 1);
	data(73, 1, "mid", 72, 2);
	data(76, 4, "[padding]", 76, 4);
	data(79, 1, "[padding]", 79, 1);
}

static void is_type(const volatile void *at, const char *type, const char *field, __u64 offset,
		    __u64 size)
{
	types_of_data(t, linked(at), 0, &got);
	found(TYPE_VARIABLE, type, field, offset, field ? offset : 0, size);
}

static void test_names(void **state)
{
	(void)state;
	is_type(&types_pos.y, "struct pos", "y", 4, 4);
	is_type(&types_table[4], "int", NULL, 0, 0);
	is_type(&types_places[1][2].y, "struct pos", "y", 4, 4);
	is_type(&types_word, "char*", NULL, 0, 0);
	is_type(&types_void, "void*", NULL, 0, 0);
	is_type(&types_twice, "int**", NULL, 0, 0);
	is_type(&types_call, "function*", NULL, 0, 0);
	is_type(&types_color, "enum color", NULL, 0, 0);
	is_type(&types_unnamed, "unnamed_t", "a", 0, 4);
	types_of_data(t, linked(&types_num), 8, &got);
	found(TYPE_VARIABLE, "union num", "d", 0, 0, 8);
	types_of_data(t, linked((const char *)&types_long + 5), 1, &got);
	found(TYPE_VARIABLE, "long int", NULL, 5, 0, 0);
	types_of_data(t, 16, 8, &got);
	assert_int_equal(got.kind, TYPE_NO_VARIABLE);
	assert_null(got.type);
	assert_null(got.field);
}

static void test_layout(void **state)
{
	char text[1024] = "";

	(void)state;
	assert_false(types_layout(t, "struct shape", list, text));
	data(0, 8, "id", 0, 8);
	assert_false(types_layout(t, "struct pos", list, text));
	assert_false(types_layout(t, "id", list, text));
	assert_true(types_layout(t, "struct shape", list, text));
	assert_string_equal(text, "id 0 8\n"
				  "pos.x 8 4\n"
				  "pos.y 12 4\n"
				  "rows[].key 16 8\n"
				  "rows[].at.x 24 4\n"
				  "rows[].at.y 28 4\n"
				  "num.i 64 4\n"
				  "num.d 64 8\n"
				  "low 72 1\n"
				  "mid 72 2\n"
				  "tail 74 2\n"
				  "next 80 8\n");
}

static void code(const char *at, enum type_kind kind, const char *type, const char *field,
		 __u64 offset, __u64 begin, __u64 size)
{
	for (int twice = 0; twice < 2; twice++) {
		types_of_code(t, linked(at), &got);
		found(kind, type, field, offset, begin, size);
	}
}

static void test_variables(void **state)
{
	(void)state;
	code(types_at_member, TYPE_POINTER, "struct shape", "rows[].key", 32, 16, 8);
	code(types_at_chain, TYPE_POINTER, "struct shape", "pos.y", 12, 12, 4);
	code(types_at_byte, TYPE_POINTER, "struct shape", "low", 72, 72, 1);
	code(types_at_element, TYPE_POINTER, "struct shape", "rows[].key", 16, 16, 8);
	code(types_at_global, TYPE_VARIABLE, "struct shape", "pos.x", 8, 8, 4);
	code(types_at_stack, TYPE_STACK, "struct pos", "y", 4, 4, 4);
	code(types_at_returned, TYPE_POINTER, "struct shape", "tail", 74, 74, 2);
	/* a pointer to a number may be to an array */
	code(types_at_scalar, TYPE_POINTER, "short int", NULL, 0, 0, 0);
}

static void test_not_found(void **state)
{
	(void)state;
	none(types_at_outside, TYPE_OUTSIDE);
	none(types_at_untyped, TYPE_UNTYPED);
	none(types_at_number, TYPE_UNTYPED);
	none(types_at_thread, TYPE_NO_VARIABLE);
	none(types_at_strange, TYPE_REGISTER);
	none(types_at_nop, TYPE_NO_CODE);
	none(types_at_push, TYPE_STACK_SLOT);
	none(types_at_member + 1, TYPE_NO_CODE); /* inside an instruction */
	types_of_code(t, 1, &got);
	assert_int_equal(got.kind, TYPE_NO_FUNCTION);
}

static void test_moves(void **state)
{
	(void)state;
	code(types_at_copy, TYPE_POINTER, "struct shape", "pos.x", 8, 8, 4);
	code(types_at_lea, TYPE_POINTER, "struct shape", "rows[].key", 16, 16, 8);
	code(types_at_add, TYPE_POINTER, "struct shape", "next", 80, 80, 8);
	code(types_at_load, TYPE_POINTER, "struct shape", "pos.y", 12, 12, 4);
	none(types_at_overwritten, TYPE_REGISTER);
	/* an unknown number was added: that of an element */
	code(types_at_indexed, TYPE_POINTER, "struct shape", "rows[].key", 16, 16, 8);
	code(types_at_first, TYPE_POINTER, "struct shape", "id", 0, 0, 8);
}

static void test_paths(void **state)
{
	(void)state;
	code(types_at_join, TYPE_POINTER, "struct shape", "pos.x", 8, 8, 4);
	none(types_at_differ, TYPE_REGISTER);
	code(types_at_jumped, TYPE_POINTER, "struct shape", "pos.x", 8, 8, 4);
	code(types_at_loop, TYPE_POINTER, "struct shape", "pos.y", 12, 12, 4);
	code(types_at_stride, TYPE_POINTER, "struct shape", "pos.y", 12, 12, 4);
	none(types_at_uneven, TYPE_REGISTER);
	code(types_at_kept, TYPE_POINTER, "struct shape", "next", 80, 80, 8);
	none(types_at_lost, TYPE_REGISTER);
}

static void test_inlined(void **state)
{
	const __u64 at = linked(types_at_inner);
	struct types_inlined inner, outer, other;
	struct addr_span span = ADDR_SPAN_ALL;

	(void)state;
	assert_true(types_inlined(t, at, 0, &inner));
	assert_string_equal(inner.name, "innermost");
	assert_non_null(strstr(inner.file, "test_data_types.c"));
	assert_int_equal(inner.line, CALL_LINE);
	assert_true(types_inlined(t, at, 1, &outer));
	assert_string_equal(outer.name, "around");
	assert_true(outer.line > inner.line);
	assert_true(inner.id != outer.id);
	assert_int_equal(inner.into, outer.id);
	assert_int_equal(outer.into, 0);
	assert_false(types_inlined(t, at, 2, &other));
	assert_false(types_inlined(t, linked(types_at_nop), 0, &other));
	assert_false(types_inlined(t, 1, 0, &other));
	/* the same at all addresses of the inlining, and not beside it */
	assert_true(types_inlined(t, at + 1, 0, &other));
	assert_int_equal(other.id, inner.id);
	types_inlined_span(t, at, &span);
	assert_int_equal(span.from, at);
	assert_int_equal(span.until, at + 2);
	assert_false(types_is_exhausted(t));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fields), T(test_ambiguous), T(test_names),
		T(test_layout), T(test_variables), T(test_not_found),
		T(test_moves),	T(test_paths),	   T(test_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
