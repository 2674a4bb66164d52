// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rings that keep the last records: what a copy of them has is what went in last, in order, and the
 * number of those overwritten is exact, also while a program writes on.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/libbpf.h>

#include <ibscope/sim.h>

#include "bind_to.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"

#define ZEN4_CAPS 0xbffU
#define N	  IBS_TWIN_SAMPLES

typedef __u64 regs_t[IBS_OP_REG_FIXED];

static regs_t regs[N];

static struct sampler_opts keeping(void)
{
	return (struct sampler_opts){ .source = SAMPLER_TWIN,
				      .output = SAMPLER_RECORDS,
				      .ibs.caps = ZEN4_CAPS,
				      .history_bytes = libbpf_num_possible_cpus() * (64ULL << 10) };
}

static struct sampler *open_keeping(void)
{
	const struct sampler_opts opts = keeping();
	struct sampler *s = NULL;
	struct err err = {};

	if (sampler_open(&opts, &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s->memory.ring_slots, 1024);
	return s;
}

/* Sample i has i as the address of its instruction. */
static void number_regs(void)
{
	for (size_t i = 0; i < N; i++) {
		ibs_sim_op(7, 0, i, ZEN4_CAPS, regs[i]);
		regs[i][IBS_OP_RIP] = i;
	}
}

static void run(struct sampler *s, size_t n)
{
	struct err err = {};

	for (size_t done = 0, chunk; done < n; done += chunk) {
		chunk = n - done < N ? n - done : N;
		if (twin_run_regs(s, regs, chunk, NULL, &err))
			fail_msg("%s", err.text);
	}
}

/* Records of one CPU, one after the other. */
struct got {
	size_t n;
	__u64 next, last_time;
};

static int check(const struct record_batch *b, void *arg, struct err *err)
{
	struct got *g = arg;

	for (size_t i = 0; i < b->n; i++) {
		const struct ibs_record *r = &b->records[i];

		if (g->n++)
			assert_int_equal(r->ip, g->next);
		assert_int_equal(r->addr, regs[r->ip][IBS_DC_LINADDR]);
		assert_int_equal(r->phys, regs[r->ip][IBS_DC_PHYSADDR]);
		assert_int_equal(r->data3, regs[r->ip][IBS_OP_DATA3]);
		assert_true(r->time >= g->last_time);
		g->next = (r->ip + 1) % N;
		g->last_time = r->time;
	}
	(void)err;
	return 0;
}

static void count_process(__u32 tgid, void *n)
{
	assert_int_equal(tgid, getpid());
	++*(unsigned int *)n;
}

/* Copy the rings and drain the copy. */
static struct got copy(struct sampler *s, const __u32 *since, struct rings_kept *kept)
{
	struct rings *c = rings_copy(sampler_rings(s), since, kept);
	unsigned int processes = 0;
	struct got g = {};
	struct err err = {};

	rings_each_process(c, count_process, &processes);
	assert_int_equal(processes, kept->kept > 0);
	assert_int_equal(rings_drain(c, UINT64_MAX, check, &g, &err), 0);
	assert_int_equal(g.n, kept->kept);
	rings_close(c);
	return g;
}

static __u32 *mark(struct sampler *s)
{
	__u32 *m = calloc(rings_n(sampler_rings(s)), sizeof(*m));

	assert_non_null(m);
	rings_mark(sampler_rings(s), m);
	return m;
}

static void test_keeps_the_last(void **state)
{
	struct sampler *s = open_keeping();
	__u32 *start = mark(s), *later;
	struct rings_kept kept;
	struct got g;

	(void)state;
	bind_to(0);
	copy(s, start, &kept);
	assert_int_equal(kept.kept + kept.overwritten, 0);
	run(s, 1000);
	g = copy(s, start, &kept);
	assert_int_equal(kept.kept, 1000);
	assert_int_equal(kept.overwritten, 0);
	assert_int_equal(g.next, 1000);
	/* a full ring has one record less than slots: the next one to be replaced may be incomplete */
	run(s, 2 * N + 5);
	g = copy(s, start, &kept);
	assert_int_equal(kept.kept, 1023);
	assert_int_equal(kept.overwritten, 1000 + 2 * N + 5 - 1023);
	assert_int_equal(g.next, 5);
	later = mark(s);
	run(s, 17);
	g = copy(s, later, &kept);
	assert_int_equal(kept.kept, 17);
	assert_int_equal(kept.overwritten, 0);
	assert_int_equal(g.next, 17);
	free(start);
	free(later);
	sampler_close(s);
}

/* The count of records wraps after 2^32. */
static void test_count_wraps(void **state)
{
	struct sampler *s = open_keeping();
	struct ibs_ring *ring = &s->state->cpu[0].ring;
	struct rings_kept kept;
	__u32 *start;
	struct got g;

	(void)state;
	bind_to(0);
	ring->written = -100;
	ring->next = ring->written & (ring->slots - 1);
	start = mark(s);
	run(s, N + 300);
	g = copy(s, start, &kept);
	assert_int_equal(kept.kept, 1023);
	assert_int_equal(kept.overwritten, N + 300 - 1023);
	assert_int_equal(g.next, 300);
	free(start);
	sampler_close(s);
}

struct writer {
	struct sampler *s;
	bool done;
	int ret;
	struct err err;
};

static void *write_on(void *arg)
{
	struct writer *w = arg;
	__u64 ns;

	bind_to(1);
	for (int i = 0; i < 40 && !w->ret; i++)
		w->ret = twin_loop(w->s, IBS_TWIN_REGS, N, 100 * N, &ns, &w->err);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Copies are complete records in order while a program overwrites them, and none is counted twice. */
static void test_while_written(void **state)
{
	struct sampler *s = open_keeping();
	struct writer w = { .s = s };
	__u32 *start = mark(s);
	struct rings_kept kept;
	pthread_t thread;
	__u64 before = 0;
	int copies = 0;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		free(start);
		sampler_close(s);
		skip();
	}
	bind_to(0);
	assert_int_equal(twin_load(s, regs, N, &w.err), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	while (!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE)) {
		copy(s, start, &kept);
		assert_true(kept.kept + kept.overwritten >= before);
		before = kept.kept + kept.overwritten;
		copies++;
	}
	pthread_join(thread, NULL);
	assert_int_equal(w.ret, 0);
	assert_true(copies > 10);
	copy(s, start, &kept);
	assert_int_equal(kept.kept, 1023);
	assert_int_equal(kept.overwritten, 40 * 100 * N - 1023);
	assert_int_equal(s->state->cpu[1].ring.forwarded, 40 * 100 * N);
	free(start);
	sampler_close(s);
}

/* Nobody is woken, however full the rings are. */
static void test_wakes_nobody(void **state)
{
	struct sampler *s = open_keeping();
	struct pollfd fd = { .fd = rings_fd(sampler_rings(s)), .events = POLLIN };

	(void)state;
	bind_to(0);
	run(s, 3 * N);
	assert_int_equal(poll(&fd, 1, 0), 0);
	sampler_close(s);
}

static void test_memory(void **state)
{
	struct sampler_opts opts = keeping();
	__u64 cpus = libbpf_num_possible_cpus();
	struct sampler_memory m;
	struct err err = {};

	(void)state;
	/* a power of two of records, within the given memory and some pages for wakeups */
	opts.history_bytes = cpus * (100U << 10);
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), 0);
	assert_int_equal(m.ring_slots, 1024);
	assert_int_equal(m.rings, rings_bytes(cpus, 1024, sizeof(struct ibs_record)));
	/* within a limit that the user gave */
	opts.history_bytes = cpus * (16ULL << 20);
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), 0);
	opts.max_memory_bytes = cpus * (8ULL << 20);
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), -ENOSPC);
	opts.max_memory_bytes = 0;
	opts.history_bytes = cpus * (16U << 10) - 1;
	assert_int_equal(sampler_memory(&opts, 1, &m, &err), -EINVAL);
	assert_non_null(strstr(err.text, "each needs 16 KiB"));
}

static bool can_run(void)
{
	const struct sampler_opts opts = keeping();
	struct sampler *s = NULL;
	struct err err = {};
	int ret = sampler_open(&opts, &s, &err);

	sampler_close(s);
	if (ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_the_last), cmocka_unit_test(test_count_wraps),
		cmocka_unit_test(test_while_written),  cmocka_unit_test(test_wakes_nobody),
		cmocka_unit_test(test_memory),
	};

	if (!can_run())
		return 77;
	number_regs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
