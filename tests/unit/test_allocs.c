// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Parts of libibscope-alloc.so, and what reads the files that it writes. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <dirent.h>

#include <cmocka.h>

#include "../../tools/allocs/cfi.h"
#include "../../tools/allocs/live.h"
#include "../../tools/allocs/ring.h"
#include "../../tools/allocs/sampling.h"
#include "base/clock.h"
#include "capture/allocs.h"

static char dir[] = "/tmp/ibscope-test.XXXXXX";

/* --- sampling */

/* The weights of sampled allocations add up to all bytes, for small sizes, large ones, and a mix. */
static void test_sampling(void **state)
{
	static const unsigned int sizes[][2] = {
		{ 16, 16 }, { 4000, 4000 }, { 100000, 100000 }, { 1, 60000 }
	};
	const uint64_t mean = 50000;

	(void)state;
	for (size_t s = 0; s < 4; s++) {
		uint64_t random = 88172645463325252 + s;
		int64_t left = sampling_distance(&random, mean);
		double sum = 0, estimate = 0, variance = 0;

		for (unsigned int i = 0; i < 1000000; i++) {
			const unsigned int size =
				sizes[s][0] +
				sampling_random(&random) % (sizes[s][1] - sizes[s][0] + 1);
			const double p = -expm1(-(double)size / mean);

			sum += size;
			if (!sampling_pass(&left, size))
				continue;
			sampling_next(&left, &random, mean);
			estimate += size / p;
			variance += size / p * (size / p) * (1 - p);
		}
		assert_true(variance > 0);
		assert_true(fabs(estimate - sum) < 4 * sqrt(variance));
		assert_true(sqrt(variance) < 0.06 * sum);
	}
}

static void test_distances(void **state)
{
	uint64_t random = 1;
	double sum = 0, squares = 0;
	const int n = 200000;

	(void)state;
	for (int i = 0; i < n; i++) {
		const double d = sampling_distance(&random, 1000);

		assert_true(d >= 1);
		sum += d;
		squares += d * d;
	}
	/* of an exponential distribution, rounded up */
	assert_true(fabs(sum / n - 1000.5) < 10);
	assert_true(fabs(sqrt(squares / n - sum / n * (sum / n)) - 1000) < 20);
	assert_true(fabs(sampling_log(0x1p-53) - log(0x1p-53)) < 1e-9 && sampling_log(1) == 0);
}

/* --- live addresses */

/* free() of most addresses looks at few bytes, and at the same ones for those that are near each other. */
static void test_live_is_near(void **state)
{
	const uintptr_t at = 0x7f0000001010;
	unsigned int n = 0;

	(void)state;
	assert_true(live_add((void *)at));
	for (uintptr_t p = at - 4096; p < at + 4096; p += 16)
		n += live_may_have((void *)p);
	assert_in_range(n, 1, 4); /* a block of 48 bytes and more is apart from those around it */
	assert_true(live_may_have((void *)at));
	assert_in_range((char *)live_piece((void *)(at + 1023)) - (char *)live_piece((void *)at), 0,
			64);
	assert_true(live_remove((void *)at));
	assert_false(live_may_have((void *)at));
	/* more blocks that share a count than 16 bits have */
	for (uintptr_t i = 1; i <= 1u << 16; i++)
		assert_true(live_add((void *)(i << 30)));
	assert_true(live_may_have((void *)(1ul << 30)));
	for (uintptr_t i = 1; i <= 1u << 16; i++)
		assert_true(live_remove((void *)(i << 30)));
}

static void test_live(void **state)
{
	enum { N = 300000 };
	unsigned int room = 0;

	(void)state;
	assert_false(live_may_have((void *)0x1000));
	assert_false(live_remove((void *)0x1000));
	for (uintptr_t i = 1; i <= N; i++)
		room += live_add((void *)(i * 4096));
	assert_true(room > N * 0.999);
	for (uintptr_t i = 1; i <= N; i++) {
		room -= live_remove((void *)(i * 4096));
		assert_false(live_remove((void *)(i * 4096)));
	}
	assert_int_equal(room, 0);
	for (uintptr_t i = 1; i <= N; i++)
		assert_false(live_may_have((void *)(i * 4096)));
	assert_false(live_remove(NULL));
}

/* --- stacks */

/* Does the rule of our caller lead to @want, its frame address? */
__attribute__((noinline)) static void check_rule(const void *want)
{
	const uintptr_t *own = __builtin_frame_address(0);
	const union cfi_rule rule = cfi_find(own[1]);
	const uintptr_t sp = (uintptr_t)(own + 2), bp = own[0];
	const uintptr_t from = rule.frame == CFI_FRAME_SP ? sp : bp;

	assert_true(rule.frame == CFI_FRAME_SP || rule.frame == CFI_FRAME_BP);
	assert_true(from + rule.frame_offset == (uintptr_t)want);
}

__attribute__((noinline)) static void use(volatile void *p)
{
	*(volatile char *)p = 1;
}

__attribute__((noinline)) static void plain(void)
{
	volatile char array[40];

	check_rule(__builtin_dwarf_cfa());
	use(array);
}

__attribute__((noinline)) static void variable(size_t n)
{
	volatile char *array = __builtin_alloca(n);

	use(array);
	check_rule(__builtin_dwarf_cfa());
	use(array);
}

static void test_rules(void **state)
{
	(void)state;
	plain();
	for (size_t n = 1; n < 100; n += 7)
		variable(n);
	assert_int_equal(cfi_find(0).word, 0);
	assert_int_equal(cfi_find((uintptr_t)dir).word, 0); /* not code */
}

/* --- rings */

static void put(uint64_t addr, enum ibscope_alloc_kind kind, uint64_t size, unsigned int n)
{
	struct ibscope_alloc_event e = { .time_ns = clock_ns(CLOCK_MONOTONIC),
					 .addr = addr,
					 .size = size,
					 .tid = gettid(),
					 .kind = kind,
					 .n_stack = n };
	uint64_t addresses[IBSCOPE_ALLOC_STACK];

	for (unsigned int i = 0; i < n; i++)
		addresses[i] = addr + i;
	ring_put(&e, addresses);
}

static void expect(struct allocs *a, uint64_t addr, enum ibscope_alloc_kind kind, uint64_t size,
		   unsigned int n)
{
	struct trace_event ev;

	assert_true(allocs_peek(a) != UINT64_MAX);
	allocs_next(a, &ev);
	if (kind >= IBSCOPE_ALLOC_FREED) {
		assert_int_equal(ev.kind, TRACE_FREE);
		assert_true(ev.free.addr == addr && ev.free.size == size);
		assert_true(ev.free.tgid == (__u32)getpid() && ev.free.tid == (__u32)gettid());
		return;
	}
	assert_int_equal(ev.kind, TRACE_ALLOC);
	assert_true(ev.alloc.addr == addr && ev.alloc.size == size);
	assert_int_equal(ev.alloc.mapped, kind == IBSCOPE_ALLOC_MAPPED);
	assert_int_equal(ev.alloc.n_stack, n);
	for (unsigned int i = 0; i < n; i++)
		assert_true(ev.alloc.stack[i] == addr + i);
	if (kind == IBSCOPE_ALLOC_SAMPLED)
		assert_int_equal(ev.alloc.weight,
				 llround(size / -expm1(-(double)size / (4096 * 128))));
	else
		assert_true(ev.alloc.weight == size);
}

static struct allocs *begin(void)
{
	struct allocs *a = allocs_new();

	ring_init(dir, 4096, false);
	ring_forked();
	allocs_add(a, dir);
	return a;
}

static unsigned int files(void)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	for (struct dirent *e; (e = readdir(d));)
		n += *e->d_name != '.';
	closedir(d);
	return n;
}

/* From a small ring to the large one, and some times around it, all events arrive in order. */
static void test_ring(void **state)
{
	struct allocs *a = begin();
	uint64_t put_n = 0, got_n = 0;

	(void)state;
	while (put_n < 60000) {
		for (int i = 0; i < 300; i++, put_n++)
			put(put_n << 8, 1 + put_n % 5, put_n % 5 == 3 ? 0 : put_n * 3 % 100000,
			    put_n % 20);
		allocs_refresh(a, true);
		for (; got_n < put_n; got_n++)
			expect(a, got_n << 8, 1 + got_n % 5,
			       got_n % 5 == 3 ? 0 : got_n * 3 % 100000, got_n % 20);
		assert_true(allocs_peek(a) == UINT64_MAX);
	}
	assert_int_equal(allocs_counts(a).events, put_n);
	assert_int_equal(allocs_counts(a).lost, 0);
	assert_int_equal(allocs_counts(a).programs, 1);
	assert_int_equal(files(), 0);
	allocs_free(a);
}

/* Nobody reads: later events are lost and counted, and those that found room are there. */
static void test_full(void **state)
{
	struct allocs *a = begin();
	uint64_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < 40000; i++)
		put(i, IBSCOPE_ALLOC_CERTAIN, 5000, 20);
	allocs_refresh(a, true);
	for (; allocs_peek(a) != UINT64_MAX; n++)
		expect(a, n, IBSCOPE_ALLOC_CERTAIN, 5000, 20);
	assert_true(n > 20000);
	assert_int_equal(allocs_counts(a).events + allocs_counts(a).lost, 40000);
	/* there is room again */
	put(7, IBSCOPE_ALLOC_FREED, 0, 0);
	allocs_refresh(a, true);
	expect(a, 7, IBSCOPE_ALLOC_FREED, 0, 0);
	allocs_free(a);
}

static int open_file(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/alloc.%d.0", dir, getpid());
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

/* A library that was loaded before an upgrade and the program after it must agree; the values are those of another program. */
static void test_checksum(void **state)
{
	static const uint64_t stack[] = { 0x401000, 0x7f00deadbeef, 0xffffffff81000000 };
	const struct ibscope_alloc_event none = { 0 }, e = { .time_ns = 1234567890123,
							     .addr = 0x7f0012345678,
							     .size = 4096,
							     .tid = 70001,
							     .kind = IBSCOPE_ALLOC_SAMPLED,
							     .n_stack = ARRAY_SIZE(stack) };

	(void)state;
	assert_true(ibscope_alloc_check(&none, stack, 0) == 0x7e154af958d5f407);
	assert_true(ibscope_alloc_check(&e, stack, 65536) == 0x2319c6d5942c32b);
}

static void overwrite(int fd, off_t at, uint64_t value)
{
	assert_int_equal(pwrite(fd, &value, sizeof(value), at), sizeof(value));
}

/* A writer that was killed in the middle of an event, and a program that writes what it likes. */
static void test_damage(void **state)
{
	const size_t bytes = sizeof(struct ibscope_alloc_event);
	struct allocs *a = begin();
	int fd;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		put(i, IBSCOPE_ALLOC_FREED, 0, 0);
	fd = open_file();
	overwrite(fd, IBSCOPE_ALLOC_HEAD + 2 * bytes, 0); /* not complete */
	allocs_refresh(a, false);
	expect(a, 0, IBSCOPE_ALLOC_FREED, 0, 0);
	expect(a, 1, IBSCOPE_ALLOC_FREED, 0, 0);
	assert_true(allocs_peek(a) == UINT64_MAX);
	allocs_refresh(a, true);
	expect(a, 3, IBSCOPE_ALLOC_FREED, 0, 0);
	expect(a, 4, IBSCOPE_ALLOC_FREED, 0, 0);
	assert_int_equal(allocs_counts(a).lost, 1);
	put(5, 77, 0, 0); /* an unknown kind, and a time long ago */
	put(6, IBSCOPE_ALLOC_FREED, 0, 0);
	allocs_refresh(a, false);
	expect(a, 6, IBSCOPE_ALLOC_FREED, 0, 0);
	assert_int_equal(allocs_counts(a).lost, 2);
	overwrite(fd, offsetof(struct ibscope_alloc_file, written), -1ull);
	allocs_refresh(a, false);
	assert_int_equal(allocs_counts(a).lost, 3);
	assert_int_equal(ftruncate(fd, 100), 0);
	allocs_refresh(a, false);
	assert_int_equal(ftruncate(fd, IBSCOPE_ALLOC_HEAD + IBSCOPE_ALLOC_SMALL), 0);
	allocs_refresh(a, true);
	assert_true(allocs_peek(a) == UINT64_MAX);
	allocs_free(a);
	close(fd);
}

static void *write_much(void *arg)
{
	for (uint64_t i = 0; i < 3000; i++)
		put((uintptr_t)arg + i, IBSCOPE_ALLOC_CERTAIN, 5000, i % 30);
	return NULL;
}

/* Each event of each thread is there once, in its thread's order, or was lost while the large ring was made. */
static void test_threads(void **state)
{
	struct allocs *a = begin();
	uint64_t next[4] = {}, n = 0;
	struct trace_event ev;
	pthread_t t[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, write_much, (void *)(i << 32));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	put(0, IBSCOPE_ALLOC_FREED, 0,
	    0); /* and with it the number of those that were lost before a ring was open */
	allocs_refresh(a, true);
	for (; allocs_peek(a) != UINT64_MAX; n++) {
		allocs_next(a, &ev);
		if (ev.kind == TRACE_FREE)
			continue;
		assert_true(ev.alloc.addr >> 32 < 4);
		assert_true((__u32)ev.alloc.addr >= next[ev.alloc.addr >> 32]);
		next[ev.alloc.addr >> 32] = (__u32)ev.alloc.addr + 1;
		assert_int_equal(ev.alloc.n_stack, (__u32)ev.alloc.addr % 30);
	}
	assert_int_equal(n + allocs_counts(a).lost, 4 * 3000 + 1);
	allocs_free(a);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* --- programs whose allocations cannot be noted */

#define STATIC_PROGRAM "/sbin/ldconfig"

/* A process that is about to run a program, as another user if @uid is not 0. */
static pid_t stopped_at(const char *program, uid_t uid)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || (uid && setuid(uid)))
			_exit(1);
		execl(program, program, "--version", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status) ? pid : 0;
}

static void end_stopped(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Each process is counted once, by what is in the way. */
static void test_obstacles(void **state)
{
	struct allocs *a = allocs_new();
	const int fd = open(STATIC_PROGRAM, O_RDONLY);
	pid_t first = stopped_at("/bin/true", 0), other, pid[2];

	(void)state;
	if (!first || geteuid()) {
		print_message("no process may be traced, or run as another user\n");
		allocs_free(a);
		skip();
	}
	allocs_note_exec(a, first);
	assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_USER], 0);
	assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_LOADER], 0);
	end_stopped(first);
	/* it has exited already */
	allocs_note_exec(a, first);
	assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_NONE], 0);
	other = stopped_at("/bin/true", 65534);
	assert_true(other > 0);
	for (int i = 0; i < 2; i++)
		allocs_note_exec(a, other);
	assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_USER], 1);
	if (fd >= 0 && !obstacle_has_loader(fd)) {
		for (int i = 0; i < 2; i++) {
			pid[i] = stopped_at(STATIC_PROGRAM, 0);
			assert_true(pid[i] > 0);
			allocs_note_exec(a, pid[i]);
		}
		allocs_note_exec(a, pid[0]);
		assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_LOADER], 2);
		for (int i = 0; i < 2; i++)
			end_stopped(pid[i]);
	} else {
		print_message(STATIC_PROGRAM " is not linked statically\n");
	}
	assert_int_equal(allocs_counts(a).obstacle[OBSTACLE_USER], 1);
	end_stopped(other);
	if (fd >= 0)
		close(fd);
	allocs_note_exec(NULL, 1);
	allocs_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_obstacles),    cmocka_unit_test(test_sampling),
		cmocka_unit_test(test_distances),    cmocka_unit_test(test_live),
		cmocka_unit_test(test_live_is_near), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_ring),	     cmocka_unit_test(test_full),
		cmocka_unit_test(test_damage),	     cmocka_unit_test(test_threads),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
