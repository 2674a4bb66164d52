// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a record has of the stack, of samples of a process whose registers and stack are known: call chains, the words
 * at the top, and copies. In user space, in the kernel, and with code of 32 bits.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bind_to.h"
#include "child_process.h"
#include "clock_attr.h"
#include "lacking.h"
#include "sampler/rings.h"
#include "sampler/sampler.h"

#define PERIOD	   200000
#define PAGE	   4096UL
#define COPY_BYTES 1024U
#define LONGEST_S  20
#define MOST	   512 /* records of a test */

/* --- the process --- */

/* Shared with the process, which reads its registers from here again and again. */
struct wanted {
	__u64 sp, fp;
	__u64 loops; /* set by the process */
};

static struct wanted *wanted;

static __u64 *frames;	/* of functions that called each other; the stack pointer is elsewhere */
static char *stack_end; /* what follows cannot be read */

#define CALLER	0x1111000ULL
#define CALLER2 0x2222000ULL

void spin_loop(const struct wanted *w);
void count_loop(const struct wanted *w);
void call_loop(const struct wanted *w);
extern const char spin_end[], call_end[];

asm(".pushsection .text\n"
    "spin_loop:\n"
    "	mov (%rdi), %rsp\n"
    "	mov 8(%rdi), %rbp\n"
    "	cmpb $0, 16(%rdi)\n"
    "	jne spin_loop\n"
    "	movb $1, 16(%rdi)\n"
    "	jmp spin_loop\n"
    "spin_end:\n"
    "count_loop:\n"
    "	mov 8(%rdi), %rbp\n"
    "	incq 8(%rbp)\n"
    "	cmpb $0, 16(%rdi)\n"
    "	jne count_loop\n"
    "	movb $1, 16(%rdi)\n"
    "	jmp count_loop\n"
    "call_loop:\n"
    "	mov (%rdi), %rsp\n"
    "	mov 8(%rdi), %rbp\n"
    "	mov $39, %eax\n" /* getpid() */
    "	syscall\n"
    "	movb $1, 16(%rdi)\n"
    "	jmp call_loop\n"
    "call_end:\n"
    ".popsection");

#define CS_32	0x23
#define DATA_32 0x2b

static char *low; /* code of 32 bits, then its stack */

/* Never returns: the code jumps to itself. */
static void run_32(const struct wanted *w)
{
	((struct wanted *)w)->loops = 1;
	/* code of 32 bits needs a data segment */
	asm volatile("mov %4, %%ds\n"
		     "mov %0, %%rsp\n"
		     "push %1\n"
		     "push %2\n"
		     "lretq\n" ::"r"(low + PAGE + 2048),
		     "r"((__u64)CS_32), "r"(low), "S"(low), "r"(DATA_32));
}

static pid_t start(void (*loop)(const struct wanted *))
{
	const double late = now_s() + LONGEST_S;
	pid_t pid;

	wanted->loops = 0;
	pid = fork();
	assert_true(pid >= 0);
	while (pid) {
		if (__atomic_load_n(&wanted->loops, __ATOMIC_ACQUIRE))
			return pid;
		assert_true(now_s() < late);
		usleep(500);
	}
	child_begins();
	bind_to(0);
	/* the programs read only pages that are there */
	for (const char *page = (char *)wanted; page < stack_end; page += PAGE)
		(void)*(const volatile char *)page;
	loop(wanted);
	_exit(1);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Two functions called the code that runs, each with a frame pointer. */
static void make_memory(void)
{
	char *area =
		mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(area != MAP_FAILED);
	stack_end = area + 4 * PAGE;
	assert_int_equal(mprotect(stack_end, PAGE, PROT_NONE), 0);
	wanted = (void *)area;
	frames = (void *)(area + PAGE);
	frames[0] = (__u64)&frames[2];
	frames[1] = CALLER;
	frames[2] = 0;
	frames[3] = CALLER2;
	wanted->sp = (__u64)stack_end - PAGE;
	wanted->fp = (__u64)frames;
	low = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	assert_true(low != MAP_FAILED);
	memcpy(low, "\x8a\x06\xeb\xfc", 4); /* mov (%esi), %al; jmp back */
	for (__u64 *word = (void *)(low + PAGE); word < (__u64 *)(low + 2 * PAGE); word++)
		*word = 0x12345678;
}

/* --- its records --- */

static const struct sampler_opts with_stacks = {
	.source = SAMPLER_SIM,
	.event = "sim",
	.attr = CLOCK_ATTR(PERIOD),
	.cpus = &(const unsigned int){ 0 },
	.n_cpus = 1,
	.ibs.caps = 0xbff,
	.sim_ops = SAMPLER_SIM_TASKS,
	.output = SAMPLER_RECORDS,
	.stacks = true,
};

static struct record {
	struct ibs_record_raw raw;
	struct ibs_record rec; /* of a raw record, its first members and `ip` */
	struct ibs_record_extra extra;
	struct ibs_user_copy copy;
	char stack[COPY_BYTES];
} got[MOST];

static size_t n_got;
static __u64 since;   /* records of earlier are left out */
static __u64 only_sp; /* 0: any stack pointer of a copy */

static int collect(const struct record_batch *b, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	assert_non_null(b->extra);
	for (size_t i = 0; i < b->n && n_got < MOST; i++) {
		struct record *r = &got[n_got];
		const char *copy = b->copies ? b->copies + i * b->copy_stride : NULL;

		memset(r, 0, sizeof(*r));
		if (b->raw) {
			r->raw = b->raw[i];
			memcpy(&r->rec, &b->raw[i], offsetof(struct ibs_record, ip));
			r->rec.ip = r->raw.regs[r->raw.fetch ? (int)IBS_FETCH_LINADDR
							     : (int)IBS_OP_RIP];
		} else {
			r->rec = b->records[i];
		}
		r->extra = b->extra[i];
		if (copy) {
			memcpy(&r->copy, copy, sizeof(r->copy));
			memcpy(r->stack, copy + sizeof(r->copy), sizeof(r->stack));
		}
		if (r->rec.time >= since && (!only_sp || r->copy.regs[IBS_USER_RSP] == only_sp))
			n_got++;
	}
	return 0;
}

static struct sampler *open_for(pid_t pid, const struct sampler_opts *opts)
{
	struct sampler_opts own = *opts;
	__u32 tgid = pid;
	struct sampler *s = NULL;
	struct err err = {};

	own.sel.processes = (struct selected_pids){ .pids = &tgid, .n = 1 };
	if (sampler_open(&own, &s, &err) || sampler_start(s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* Wait for so many records that are made from now on. */
static void await(struct sampler *s, size_t n)
{
	const double late = now_s() + LONGEST_S;
	struct err err = {};

	n_got = 0;
	since = clock_ns(CLOCK_MONOTONIC);
	while (n_got < n) {
		if (now_s() > late)
			fail_msg("%zu records of %zu", n_got, n);
		usleep(1000);
		if (rings_drain(sampler_rings(s), UINT64_MAX, collect, NULL, &err))
			fail_msg("%s", err.text);
	}
}

static void check_chain(struct sampler *s, __s32 id, const __u64 *want, int n)
{
	__u64 addresses[IBS_STACK_MAX];

	assert_true(id >= 0);
	assert_int_equal(sampler_stack(s, id, addresses), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(addresses[i], want[i]);
}

static bool in_kernel(const struct record *r)
{
	return r->rec.ip >> 63;
}

/* One of the two chains begins at the op, or behind it. */
static void check_chains(struct sampler *s, const struct record *r)
{
	__u64 addresses[IBS_STACK_MAX];

	assert_int_equal(r->extra.kernel, -1);
	assert_int_equal(r->extra.zero, 0);
	assert_int_equal(r->extra.slab, 0);
	if (r->extra.callers >= 0) {
		assert_int_equal(r->extra.user, -1);
		assert_false(in_kernel(r));
		check_chain(s, r->extra.callers, (const __u64[]){ CALLER, CALLER2 }, 2);
		return;
	}
	assert_int_equal(r->extra.callers, -1);
	assert_true(r->extra.user >= 0);
	assert_int_equal(sampler_stack(s, r->extra.user, addresses), 3);
	check_chain(s, r->extra.user, (const __u64[]){ addresses[0], CALLER, CALLER2 }, 3);
}

/* --- chains and the top --- */

static void put_top(const __u64 words[IBS_STACK_TOP])
{
	memcpy((void *)wanted->sp, words, IBS_STACK_TOP * sizeof(*words));
}

/* Addresses of code are kept; those of the stack, small numbers, and what is not of user space are not. */
static void check_tops(struct sampler *s, bool in_calls, bool known)
{
	const __u64 sp = wanted->sp, span = 64ULL << 20, pages = 64ULL << 10;
	const __u64 rows[][2][IBS_STACK_TOP] = {
		{ { CALLER, 5, sp + 100, 1ULL << 63 }, { CALLER, 0, 0, 0 } },
		{ { sp + span - 1, sp + span, pages - 1, pages }, { 0, sp + span, 0, pages } },
		{ { sp, sp - 1, (1ULL << 47) - 1, 1ULL << 47 },
		  { 0, sp - 1, (1ULL << 47) - 1, 0 } },
		{ { 0, ~0ULL, CALLER, CALLER2 }, { 0, 0, CALLER, CALLER2 } },
	};
	static const __u64 none[IBS_STACK_TOP];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const double late = now_s() + LONGEST_S;
		size_t of_kernel = 0;

		put_top(rows[i][0]);
		do {
			assert_true(now_s() < late); /* no sample in the kernel */
			await(s, 10);
			for (size_t n = 0; n < n_got; n++) {
				const __u64 *want =
					known || !in_kernel(&got[n]) ? rows[i][1] : none;

				of_kernel += in_kernel(&got[n]);
				assert_memory_equal(got[n].extra.top, want, sizeof(rows[i][1]));
			}
		} while (in_calls && !of_kernel);
	}
}

static void test_user(void **state)
{
	const pid_t pid = start(spin_loop);
	struct sampler *s = open_for(pid, &with_stacks);
	size_t callers = 0;

	(void)state;
	check_tops(s, false, true);
	await(s, 60);
	for (size_t i = 0; i < n_got; i++) {
		const struct record *r = &got[i];

		assert_true(in_kernel(r) ||
			    (r->rec.ip >= (__u64)spin_loop && r->rec.ip < (__u64)spin_end));
		check_chains(s, r);
		callers += r->extra.callers >= 0;
	}
	assert_in_range(callers, 1, n_got - 1);
	sampler_close(s);
	stop(pid);
}

static void test_kernel(void **state)
{
	const pid_t pid = start(call_loop);

	(void)state;
	for (int lacks = 0; lacks < 2; lacks++) {
		struct sampler *s;

		lacking.task_pt_regs = lacks;
		s = open_for(pid, &with_stacks);
		check_tops(s, true, !lacks);
		for (size_t i = 0; i < n_got; i++)
			check_chains(s, &got[i]);
		sampler_close(s);
	}
	lacking.task_pt_regs = false;
	stop(pid);
}

/*
 * Every sample has another chain: the address of the caller counts up. Each is kept, though some have a hash that
 * belongs to the same place as that of another one.
 */
static void test_many_chains(void **state)
{
	const pid_t pid = start(count_loop);
	struct sampler *s = open_for(pid, &with_stacks);
	__u64 before = CALLER;
	size_t more = 0, lost = 0;
	double checked = 0, made;
	struct snapshot snap;
	struct err err = {};

	(void)state;
	for (int round = 0; round < 3; round++) {
		await(s, 300);
		checked += n_got;
		for (size_t i = 0; i < n_got; i++) {
			const struct ibs_record_extra *e = &got[i].extra;
			const __s32 id = e->user == -1 ? e->callers : e->user;
			__u64 addresses[IBS_STACK_MAX], *last;
			int n;

			/* three of the same place */
			if (id == -EEXIST) {
				lost++;
				continue;
			}
			assert_in_range(id, 0, SAMPLER_STACKS - 1);
			more += id >= IBS_STACKS;
			n = sampler_stack(s, id, addresses);
			assert_int_equal(n, e->user == -1 ? 2 : 3);
			last = &addresses[n - 1];
			assert_int_equal(*last, CALLER2);
			assert_true(last[-1] >= before);
			before = last[-1];
		}
	}
	/* 25 are to be expected of 900 chains; each that is made while this test does not run takes a place, too */
	assert_int_equal(sampler_snapshot(s, &snap, &err), 0);
	made = snap.ledger.seen;
	snapshot_free(&snap);
	assert_true(more >= 5 && more <= 20 + 2 * checked * made / IBS_STACKS);
	assert_true(lost <= 8 + checked * made * made / ((double)IBS_STACKS * IBS_MORE_STACKS));
	sampler_close(s);
	stop(pid);
	frames[1] = CALLER;
}

/* The op of a fetch is where the interrupt was. */
static void test_fetch(void **state)
{
	const pid_t pid = start(spin_loop);
	struct sampler_opts opts = with_stacks;

	(void)state;
	opts.metric = IBS_METRIC_FETCH_LAT;
	for (int raw = 0; raw < 2; raw++) {
		struct sampler *s;

		opts.output = raw ? SAMPLER_RECORDS_RAW : SAMPLER_RECORDS;
		s = open_for(pid, &opts);
		put_top((const __u64[]){ CALLER2, 1, CALLER, 2 });
		await(s, 10);
		for (size_t i = 0; i < n_got; i++) {
			const __u64 ip = got[i].rec.ip;

			check_chains(s, &got[i]);
			if (in_kernel(&got[i]))
				continue;
			assert_true(ip >= (__u64)spin_loop && ip < (__u64)spin_end);
			assert_true(got[i].extra.callers >= 0);
			if (!raw)
				assert_int_equal(got[i].rec.phys & (PAGE - 1), ip & (PAGE - 1));
			assert_memory_equal(got[i].extra.top,
					    ((const __u64[]){ CALLER2, 0, CALLER, 0 }),
					    sizeof(got[i].extra.top));
			if (raw)
				assert_int_equal(got[i].raw.fetch, 1);
		}
		sampler_close(s);
	}
	stop(pid);
}

/* Neither frames nor the top of the stack can be read. */
static void test_unreadable(void **state)
{
	const struct wanted before = *wanted;
	struct sampler *s;
	pid_t pid;

	(void)state;
	wanted->sp = wanted->fp = (__u64)stack_end;
	pid = start(spin_loop);
	s = open_for(pid, &with_stacks);
	await(s, 40);
	for (size_t i = 0; i < n_got; i++) {
		const struct ibs_record_extra *e = &got[i].extra;
		__u64 addresses[IBS_STACK_MAX];

		assert_true(e->callers < 0);
		if (e->user >= 0)
			assert_int_equal(sampler_stack(s, e->user, addresses), 1);
		for (int w = 0; w < IBS_STACK_TOP; w++)
			assert_int_equal(e->top[w], 0);
	}
	sampler_close(s);
	stop(pid);
	*wanted = before;
}

/* Words of a stack of 32 bits are not looked at, nor does the simulation read such code. */
static void test_32_bits(void **state)
{
	const pid_t pid = start(run_32), other = start(spin_loop);
	struct sampler_opts opts = with_stacks;

	(void)state;
	for (int copies = 0; copies < 2; copies++) {
		struct sampler *s;

		opts.copy_bytes = copies ? COPY_BYTES : 0;
		s = open_for(pid, &opts);
		await(s, 40);
		for (size_t i = 0; i < n_got; i++) {
			const struct record *r = &got[i];

			if (in_kernel(r))
				continue;
			assert_true(r->rec.ip == (__u64)low || r->rec.ip == (__u64)low + 2);
			assert_int_equal(r->rec.addr | r->rec.phys | r->rec.data3, 0);
			assert_int_equal(ibs_record_data(&r->rec) & IBS_OP_DATA_BRN_RET, 0);
			for (int w = 0; w < IBS_STACK_TOP; w++)
				assert_int_equal(r->extra.top[w], 0);
			assert_int_equal(r->copy.flags | r->copy.bytes, 0);
		}
		sampler_close(s);
	}
	stop(pid);
	stop(other);
}

/* --- copies --- */

/* A stack with so many bytes up to its end, of which a copy has room for COPY_BYTES. */
static const struct {
	__s32 left; /* below 0: it begins behind the end */
	__u32 bytes, flags;
} copied[] = {
	{ 700, 700, IBS_COPY_REGS },
	{ COPY_BYTES, COPY_BYTES, IBS_COPY_REGS | IBS_COPY_CUT },
	{ 2000, COPY_BYTES, IBS_COPY_REGS | IBS_COPY_CUT },
	{ 512, 512, IBS_COPY_REGS },
	{ 8, 8, IBS_COPY_REGS },
	{ COPY_BYTES - 8, COPY_BYTES - 8, IBS_COPY_REGS },
	{ 0, 0, IBS_COPY_REGS },
	{ -8, 0, IBS_COPY_REGS },
};

static void check_copy(const struct record *r, __s32 left, __u32 bytes, __u32 flags,
		       const void *begin, const void *end)
{
	const __u64 *regs = r->copy.regs;

	assert_int_equal(r->copy.flags, flags);
	assert_int_equal(r->copy.bytes, bytes);
	assert_memory_equal(r->stack, stack_end - left, bytes);
	assert_int_equal(regs[4], wanted->fp);	   /* rbp */
	assert_int_equal(regs[14], (__u64)wanted); /* rdi */
	assert_in_range(regs[IBS_USER_RIP], (__u64)begin, (__u64)end - 1);
	assert_int_equal(regs[IBS_USER_CS], 0x33);
	assert_int_equal(r->extra.kernel, -1);
	assert_int_equal(r->extra.user, -1);
	assert_int_equal(r->extra.callers, -1);
	for (int w = 0; w < IBS_STACK_TOP; w++)
		assert_int_equal(r->extra.top[w], 0);
}

static void check_copies(struct sampler *s, bool in_calls, const void *begin, const void *end)
{
	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++) {
		const double late = now_s() + LONGEST_S;
		size_t of_kernel = 0;

		only_sp = wanted->sp = (__u64)stack_end - copied[i].left;
		do {
			assert_true(now_s() < late); /* no sample in the kernel */
			await(s, 5);
			for (size_t n = 0; n < n_got; n++) {
				check_copy(&got[n], copied[i].left, copied[i].bytes,
					   copied[i].flags, begin, end);
				of_kernel += in_kernel(&got[n]);
			}
		} while (in_calls && !of_kernel);
	}
	only_sp = 0;
}

static void copies_of(void (*loop)(const struct wanted *), const void *end,
		      enum sampler_output output)
{
	const struct wanted before = *wanted;
	const pid_t pid = start(loop);
	struct sampler_opts opts = with_stacks;

	for (char *p = stack_end - 2048; p < stack_end; p++)
		*p = (p - stack_end) * 7;
	opts.output = output;
	opts.copy_bytes = COPY_BYTES;
	opts.ring_bytes = SAMPLER_RING_MIN;
	for (int lacks = 0; lacks < 2; lacks++) {
		struct sampler *s;

		lacking.task_pt_regs = lacks;
		s = open_for(pid, &opts);
		check_copies(s, loop == call_loop, (void *)loop, end);
		sampler_close(s);
	}
	lacking.task_pt_regs = false;
	stop(pid);
	*wanted = before;
}

static void test_copies(void **state)
{
	(void)state;
	copies_of(spin_loop, spin_end, SAMPLER_RECORDS);
}

static void test_copies_in_kernel(void **state)
{
	(void)state;
	copies_of(call_loop, call_end, SAMPLER_RECORDS);
}

static void test_copies_raw(void **state)
{
	(void)state;
	copies_of(spin_loop, spin_end, SAMPLER_RECORDS_RAW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_many_chains),
		cmocka_unit_test(test_32_bits),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_raw),
		cmocka_unit_test(test_copies_in_kernel),
	};
	struct sampler *s = NULL;
	struct err err = {};
	const int ret = sampler_open(&with_stacks, &s, &err);

	sampler_close(s);
	if (ret) {
		printf("skipped: %s\n", err.text);
		return ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT ? 77 : 1;
	}
	make_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
