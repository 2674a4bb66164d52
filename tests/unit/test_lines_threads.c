// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work is done once by any number of threads, and lines do not depend on that number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ibscope/sim.h>

#include "base/array.h"
#include "base/parallel.h"
#include "where/lines.h"

#define SAMPLES 60011 /* no multiple of what is looked up at once */
#define LINES	20000
#define THREADS 7
#define PART	10

static const unsigned int counts[] = { 1, 2, 5 };

struct work {
	unsigned char done[1000];
};

static void count(void *ctx, size_t from, size_t to)
{
	struct work *w = ctx;

	assert_true(from < to && to - from <= PART);
	for (size_t i = from; i < to; i++)
		w->done[i]++;
}

static void test_all_is_done_once(void **state)
{
	(void)state;
	for (size_t k = 0; k < 3; k++)
		for (size_t n = 0; n < sizeof(((struct work *)0)->done); n += 37) {
			struct work w = { { 0 } };

			parallel_threads = counts[k];
			assert_int_equal(parallel_count(), counts[k]);
			parallel_for(n, PART, count, &w);
			for (size_t i = 0; i < sizeof(w.done); i++)
				assert_int_equal(w.done[i], i < n);
		}
	parallel_threads = 0;
	assert_in_range(parallel_count(), 1, PARALLEL_MAX);
}

/* Some without a physical address, some without any; pages move. */
static void add(struct line_set *s, const struct trace_info *info, __u64 i)
{
	const __u64 r = ibs_sim_mix(i), line = r % LINES * (r >> 60 ? 1 : 0), user = r >> 20;
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1 + i };
	struct trace_sample *t = &ev.sample;
	__u64 *reg = t->op.reg;

	t->has_cpu = t->has_time = true;
	t->has_task = user % 16;
	t->cpu = user % THREADS;
	t->tgid = 1 + line % 3;
	t->tid = 1 + user % THREADS;
	t->has_ip = true;
	t->ip = 0x1000 + r % 5;
	t->op.cpu = (struct ibs_cpu){ .caps = info->cpu.caps };
	t->op.present = ~0u;
	reg[IBS_OP_DATA3] = (r >> 30 & 31 ? IBS_OP_DATA3_PHY_VALID : 0) |
			    (r >> 40 & 15 ? IBS_OP_DATA3_LIN_VALID : 0) |
			    (r >> 50 & 1 ? IBS_OP_DATA3_LD_OP : IBS_OP_DATA3_ST_OP);
	reg[IBS_DC_LINADDR] = 0x7000000 + 64 * line + (r >> 8 & 56);
	reg[IBS_DC_PHYSADDR] = 64 * line + (r >> 8 & 56) + (i > SAMPLES / 2 ? 1 << 30 : 0);
	lines_add(s, &ev);
}

static struct line_set *read_with(unsigned int threads, const struct trace_info *info)
{
	struct line_set *s = lines_new(&(struct lines_opts){ info, IBS_METRIC_DC_MISS_LAT });

	parallel_threads = threads;
	for (__u64 i = 0; i < SAMPLES; i++)
		add(s, info, i);
	return s;
}

static void assert_same(const struct lines *a, const struct lines *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(&a->total, &b->total, sizeof(a->total));
	for (size_t i = 0; i < a->n; i++) {
		struct line x = a->line[i], y = b->line[i];

		assert_int_equal(x.n_access, y.n_access);
		assert_memory_equal(x.access, y.access, x.n_access * sizeof(*x.access));
		x.access = y.access = NULL;
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

static void test_lines_are_the_same(void **state)
{
	struct trace_info info = { 0 };
	const struct lines *first = NULL;
	struct line_set *s[3];
	__u64 samples = 0;

	(void)state;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	for (size_t k = 0; k < 3; k++) {
		const struct lines *lines;

		s[k] = read_with(counts[k], &info);
		lines = lines_finish(s[k]);
		first = first ?: lines;
		assert_same(first, lines);
	}
	for (size_t i = 0; i < first->n; i++)
		samples += first->line[i].samples;
	assert_int_equal(samples, SAMPLES);
	assert_true(first->moved > 0 && first->only_virtual && first->no_address);
	for (size_t k = 0; k < 3; k++)
		lines_free(s[k]);
	parallel_threads = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_is_done_once),
					    cmocka_unit_test(test_lines_are_the_same) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
