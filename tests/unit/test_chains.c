// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Call chains of this program: what a walk by frame pointers misses, and callers in copies of stacks. The functions in
 * assembly never run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include <ibscope/record.h>
#include <linux/perf_event.h>

#include "self_map.h"
#include "symbols/chain.h"

#define PID  7
#define TIME 1000

/* clang-format off */

#define FUNCTION(name) "\n.globl " #name "\n.type " #name ", @function\n" #name ": "
#define SIZE(name)     "\n.size " #name ", . - " #name "\n"
#define AT(name)       "\n.globl " #name "\n" #name ": "
__asm__(
	".text\n"
	/* no frame */
	FUNCTION(chain_leaf) "nop"
	"\nret"
	SIZE(chain_leaf)
	FUNCTION(chain_mid) "push %rbp"
	AT(chain_pushed) "mov %rsp, %rbp"
	AT(chain_framed) "call chain_leaf"
	AT(chain_after_leaf) "pop %rbp"
	"\nret"
	SIZE(chain_mid)
	FUNCTION(chain_outer) "push %rbp"
	"\nmov %rsp, %rbp"
	AT(chain_call) "call chain_mid"
	AT(chain_after_mid) "call *%rax"
	AT(chain_after_pointer) "pop %rbp"
	"\nret"
	SIZE(chain_outer)
	/* something else is in the frame pointer */
	FUNCTION(chain_foreign) "mov %rdi, %rbp"
	AT(chain_in_foreign) "nop"
	"\nret"
	SIZE(chain_foreign)
	"\n.text\n");

/* clang-format on */

extern const char chain_leaf[], chain_mid[], chain_pushed[], chain_framed[], chain_after_leaf[],
	chain_outer[], chain_call[], chain_after_mid[], chain_after_pointer[], chain_foreign[],
	chain_in_foreign[];

static const struct trace_info info = { .host = "another machine", .format = "test" };
static struct tasks *tasks;
static struct symbols *symbols;
static struct chain_frame frames[TRACE_STACK_MAX];

static __u64 addr(const void *at)
{
	return (uintptr_t)at;
}

static void map_self(void)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };

	assert_true(self_map_at(addr(chain_leaf), &ev.mmap));
	ev.mmap.tgid = ev.mmap.tid = PID;
	tasks_add(tasks, &ev);
}

static int begin(void **state)
{
	const struct symbols_opts opts = { .info = &info };

	(void)state;
	tasks = tasks_new();
	map_self();
	return symbols_new(&opts, &symbols, NULL);
}

static int end(void **state)
{
	(void)state;
	symbols_free(symbols);
	tasks_free(tasks);
	return 0;
}

/* The chain of an op at @ip, from a walked one and the words at the stack pointer, NULL: unknown. Both end with 0. */
static void chain(const void *ip, const __u64 *stack, const __u64 *top, const __u64 *want)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };
	unsigned int n = 0, found;

	ev.sample.has_task = ev.sample.has_ip = true;
	ev.sample.tgid = ev.sample.tid = PID;
	ev.sample.ip = addr(ip);
	ev.sample.stack = stack;
	ev.sample.top = top;
	while (stack[ev.sample.n_stack])
		ev.sample.n_stack++;
	found = chain_frames(symbols, tasks, &ev, frames);
	for (; want[n]; n++)
		if (n >= found || frames[n].addr != want[n] % ~0ull)
			fail_msg("frame %u of %u: 0x%llx, not 0x%llx", n, found,
				 n < found ? frames[n].addr : 0, want[n]);
	assert_int_equal(found, n);
}

#define NOBODY (~0ull) /* in place of address 0 */
#define CHAIN(ip, stack, top, ...) \
	chain(ip, (const __u64[]){ stack, 0 }, top, (const __u64[]){ __VA_ARGS__, 0 })
#define LIST(...) __VA_ARGS__
#define TOP(...)  ((const __u64[IBS_STACK_TOP]){ __VA_ARGS__ })

/* A function without a frame hides its caller from the walk; the return address is in the words of the stack. */
static void test_missed(void **state)
{
	const __u64 leaf = addr(chain_leaf), in_mid = addr(chain_after_leaf),
		    in_outer = addr(chain_after_mid), pointer = addr(chain_after_pointer);

	(void)state;
	CHAIN(chain_leaf, LIST(leaf, in_outer), TOP(in_mid, 1, 2, 3), leaf, in_mid - 1,
	      in_outer - 1);
	/* nobody knows */
	CHAIN(chain_leaf, LIST(leaf, in_outer), NULL, leaf, NOBODY, in_outer - 1);
	/* words that are no return addresses: the beginning of a function, and an instruction behind none that calls */
	CHAIN(chain_leaf, LIST(leaf, in_outer), TOP(addr(chain_mid), 1, 2, 3), leaf, NOBODY,
	      in_outer - 1);
	CHAIN(chain_leaf, LIST(leaf, in_outer), TOP(addr(chain_pushed), 1, 2, 3), leaf, NOBODY,
	      in_outer - 1);
	/* a call that does not say of what, and one of a function that jumped here */
	CHAIN(chain_leaf, LIST(leaf), TOP(pointer, 1, 2, 3), leaf, pointer - 1);
	CHAIN(chain_leaf, LIST(leaf), TOP(in_outer, 1, 2, 3), leaf, in_outer - 1);
}

/* The frame pointer was pushed, and is the caller's still; then it is the function's. */
static void test_prologue(void **state)
{
	const __u64 mid = addr(chain_mid), pushed = addr(chain_pushed), framed = addr(chain_framed),
		    in_outer = addr(chain_after_mid), next = addr(chain_after_pointer);

	(void)state;
	CHAIN(chain_mid, LIST(mid, next), TOP(in_outer, 1, 2, 3), mid, in_outer - 1, next - 1);
	CHAIN(chain_pushed, LIST(pushed, next), TOP(1, in_outer, 2, 3), pushed, in_outer - 1,
	      next - 1);
	CHAIN(chain_framed, LIST(framed, in_outer), TOP(1, in_outer, 2, 3), framed, in_outer - 1);
	/* the stack is as some instructions later: the walk has found the same */
	CHAIN(chain_mid, LIST(mid, in_outer), TOP(1, in_outer, 2, 3), mid, in_outer - 1);
	CHAIN(chain_mid, LIST(mid, in_outer), TOP(in_outer, 1, 2, 3), mid, in_outer - 1);
}

/* Where the frame pointer is something else, what the walk found is nothing. */
static void test_foreign(void **state)
{
	const __u64 in = addr(chain_in_foreign), other = addr(chain_after_mid);

	(void)state;
	CHAIN(chain_in_foreign, LIST(in, other, other), TOP(1, 2, 3, 4), in, NOBODY);
	CHAIN(chain_in_foreign, LIST(in, other), TOP(addr(chain_after_pointer), 2, 3, 4), in,
	      addr(chain_after_pointer) - 1, other - 1);
}

/* The walk begins where the interrupt was: in the function of the op, in one that it called, or where it returned to. */
static void test_skid(void **state)
{
	const __u64 leaf = addr(chain_leaf), in_mid = addr(chain_after_leaf),
		    framed = addr(chain_framed), in_outer = addr(chain_after_mid);

	(void)state;
	CHAIN(chain_framed, LIST(in_mid, in_outer), NULL, framed, in_outer - 1);
	CHAIN(chain_leaf, LIST(in_mid, in_outer), NULL, leaf, in_mid, in_outer - 1);
	CHAIN(chain_call, LIST(framed, in_outer), NULL, addr(chain_call));
	/* callers stay behind it */
	CHAIN(chain_call, LIST(framed, in_outer, in_mid, in_outer), NULL, addr(chain_call),
	      in_mid - 1, in_outer - 1);
	/* of an op in no function that is known, the walk says all */
	CHAIN((const void *)16, LIST(in_mid, in_outer), NULL, in_mid, in_outer - 1);
}

/* Marks tell the parts of a chain; only the first address of each is exact. */
static void test_marks(void **state)
{
	const __u64 stack[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
				PERF_CONTEXT_USER,   addr(chain_leaf),	 addr(chain_after_mid) },
		    top[IBS_STACK_TOP] = { addr(chain_after_leaf) };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };
	struct trace_sample *s = &ev.sample;

	(void)state;
	s->has_task = s->has_ip = s->kernel = true;
	s->tgid = PID;
	s->ip = stack[1];
	s->stack = stack;
	s->n_stack = 6;
	assert_int_equal(chain_walked(s, frames), 4);
	assert_true(frames[0].kernel && frames[1].kernel && !frames[2].kernel && !frames[3].kernel);
	assert_int_equal(frames[0].addr, stack[1]);
	assert_int_equal(frames[1].addr, stack[2] - 1);
	assert_int_equal(frames[2].addr, stack[4]);
	assert_int_equal(frames[3].addr, stack[5] - 1);
	s->top = top;
	assert_int_equal(chain_frames(symbols, tasks, &ev, frames), 5);
	assert_int_equal(frames[2].addr, stack[4]);
	assert_int_equal(frames[3].addr, top[0] - 1);
	assert_false(frames[3].kernel);
	assert_int_equal(frames[4].addr, stack[5] - 1);
	/* of an unknown process the chain is as it is */
	s->has_task = false;
	assert_int_equal(chain_frames(symbols, tasks, &ev, frames), 4);
	s->n_stack = 0;
	assert_int_equal(chain_frames(symbols, tasks, &ev, frames), 1);
	assert_true(frames[0].addr == s->ip && frames[0].kernel);
	s->has_ip = false;
	assert_int_equal(chain_frames(symbols, tasks, &ev, frames), 0);
}

/* As many as there is room for. */
static void test_deep(void **state)
{
	static __u64 stack[TRACE_STACK_MAX + 2];
	const __u64 top[IBS_STACK_TOP] = { addr(chain_after_leaf) };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };
	struct trace_sample *s = &ev.sample;

	(void)state;
	stack[0] = addr(chain_leaf);
	for (unsigned int i = 1; i < TRACE_STACK_MAX + 1; i++)
		stack[i] = addr(chain_after_mid);
	s->has_task = s->has_ip = true;
	s->tgid = PID;
	s->ip = stack[0];
	s->stack = stack;
	s->n_stack = TRACE_STACK_MAX + 1;
	s->top = top;
	assert_int_equal(chain_frames(symbols, tasks, &ev, frames), TRACE_STACK_MAX);
	assert_int_equal(frames[1].addr, top[0] - 1);
	assert_int_equal(frames[2].addr, stack[1] - 1);
	assert_int_equal(frames[TRACE_STACK_MAX - 1].addr, stack[1] - 1);
}

/* --- copies of stacks --- */

#define COPIED 4096
#define CODE   __attribute__((noinline, no_sanitize("address", "undefined")))

static ucontext_t context;
static unsigned char copy[COPIED] __attribute__((aligned(8)));

CODE void chain_copy_stack(void);
CODE void chain_copy_stack(void)
{
	const volatile unsigned char *sp;

	getcontext(&context);
	sp = (const void *)context.uc_mcontext.gregs[REG_RSP];
	for (unsigned int i = 0; i < COPIED; i++)
		copy[i] = sp[i];
}

CODE int chain_inner(volatile int *n);
CODE int chain_inner(volatile int *n)
{
	volatile char room[200];

	room[*n & 127] = 1;
	chain_copy_stack();
	return *n + room[0];
}

CODE int chain_around(volatile int *n);
CODE int chain_around(volatile int *n)
{
	int k = *n;

	return chain_inner(n) + k + *n;
}

static const char *name_of(__u64 at)
{
	struct symbol sym;

	symbols_find(symbols, tasks, PID, at, TIME, false, false, &sym);
	return sym.name;
}

static unsigned int unwound(const __u64 *regs, unsigned int bytes, bool cut)
{
	const struct trace_copy c = { regs, copy, bytes, cut };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };

	ev.sample.has_task = ev.sample.has_ip = true;
	ev.sample.tgid = PID;
	ev.sample.ip = regs[IBS_USER_RIP];
	ev.sample.copy = &c;
	return chain_frames(symbols, tasks, &ev, frames);
}

/* The names of the functions around; a copy that is too short has a part of them, and says so. */
static void test_unwound(void **state)
{
	static const char *const names[] = { "chain_copy_stack", "chain_inner", "chain_around",
					     "test_unwound" };
	static const int of_regs[][2] = { { 10, REG_RAX }, { 12, REG_RDX }, { 11, REG_RCX },
					  { 5, REG_RBX },  { 13, REG_RSI }, { 14, REG_RDI },
					  { 4, REG_RBP },  { 19, REG_RSP }, { 9, REG_R8 },
					  { 8, REG_R9 },   { 7, REG_R10 },  { 6, REG_R11 },
					  { 3, REG_R12 },  { 2, REG_R13 },  { 1, REG_R14 },
					  { 0, REG_R15 },  { 16, REG_RIP } };
	unsigned int n, before = 1, first;
	__u64 regs[IBS_USER_REGS] = { 0 }, all[4];
	volatile int one = 1;

	(void)state;
	chain_around(&one);
	for (size_t i = 0; i < sizeof(of_regs) / sizeof(*of_regs); i++)
		regs[of_regs[i][0]] = context.uc_mcontext.gregs[of_regs[i][1]];
	n = unwound(regs, COPIED, true);
	/* then the library that called the test, which has no map, and nobody */
	assert_int_equal(n, 6);
	for (int i = 0; i < 4; i++) {
		all[i] = frames[i].addr;
		assert_string_equal(name_of(all[i]), names[i]);
		assert_false(frames[i].kernel);
	}
	assert_int_equal(all[0], regs[IBS_USER_RIP]);
	assert_int_equal(frames[5].addr, 0);
	for (unsigned int bytes = 0; bytes < COPIED; bytes += 4) {
		first = unwound(regs, bytes, true);
		assert_in_range(first, before, 6);
		before = first < 6 ? first : 6;
		for (unsigned int i = 0; i + 1 < first && i < 4; i++)
			assert_int_equal(frames[i].addr, all[i]);
		if (first < 6)
			assert_int_equal(frames[first - 1].addr, SYMBOLS_CUT);
		/* where the stack is known to end, the callers are not */
		assert_int_equal(unwound(regs, bytes, false), first);
		assert_int_equal(frames[first - 1].addr, 0);
	}
	assert_int_equal(before, 6);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_missed), T(test_prologue), T(test_foreign),
					    T(test_skid),   T(test_marks),    T(test_deep),
					    T(test_unwound) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
