// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tables of hot lines, filled by the decision core in user space, against exact counts: which lines they
 * find, within which bounds, and what they say of sharing. It prints recall and errors by how skewed accesses are.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "replay/engine.h"
#include "where/lines.h"

#include <ibscope/sim.h>

#define CPUS	16
#define LINES	100000
#define SAMPLES 400000
#define TOP	20
#define CUT	100    /* details of a window */
#define CAPS	0xbffu /* Zen 4 */
#define PHYS	0x100000000ull

static const struct trace_pmu pmu = { .op = true, .period = 1 };
static const struct trace_info info = { .pmu = &pmu, .n_pmus = 1, .monotonic_ns = 1 };
static const struct selection everything;
static struct engine *engine[CPUS];
static struct line_set *exact;
static __u64 fed[CPUS];

struct access {
	__u64 phys; /* 0: not known */
	__u32 cpu, tid;
	__u8 kind; /* LINE_* bits */
	__u8 src;  /* DataSrc of a load that missed L2; 0: it hit L1 */
	__u16 lat;
	bool walk; /* it missed the L2 dTLB */
};

static void open_engines_fed(__u32 sets, __u32 feed)
{
	const struct lines_opts lines = { .info = &info };
	const struct engine_opts opts = { .ibs.caps = CAPS,
					  .sel = &everything,
					  .max_groups = 2,
					  .line_sets = sets,
					  .line_feed = feed };
	struct err err;

	for (int c = 0; c < CPUS; c++) {
		assert_int_equal(engine_open(&opts, &engine[c], &err), 0);
		fed[c] = 0;
	}
	exact = lines_new(&lines);
}

static void open_engines(__u32 sets)
{
	open_engines_fed(sets, IBS_LINE_FEED_SHARING);
}

static void close_engines(void)
{
	for (int c = 0; c < CPUS; c++)
		engine_close(engine[c]);
	lines_free(exact);
}

/* @all: also add it to the exact lines */
static void run(const struct access *a, bool all)
{
	const __u64 data3 = (a->kind & LINE_LOAD ? IBS_OP_DATA3_LD_OP : 0) |
			    (a->kind & LINE_STORE ? IBS_OP_DATA3_ST_OP : 0) |
			    IBS_OP_DATA3_LIN_VALID | (a->phys ? IBS_OP_DATA3_PHY_VALID : 0) |
			    (a->src ? IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS : 0) |
			    (a->walk ? IBS_OP_DATA3_L1TLB_MISS | IBS_OP_DATA3_L2TLB_MISS : 0) |
			    (a->kind & LINE_PREFETCH ? IBS_OP_DATA3_SW_PF : 0) |
			    (__u64)a->lat << 32;
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1 };
	struct trace_sample *t = &ev.sample;
	const struct task task = { .pid_tgid = 100ull << 32 | a->tid,
				   .cgroup_id = 1,
				   .cpu = a->cpu };
	__u64 *regs = t->op.reg;

	t->op.cpu.caps = CAPS;
	t->op.present = ~0u;
	regs[IBS_OP_RIP] = 0x400000 + a->tid;
	regs[IBS_OP_DATA2] = (a->src & 7) | (a->src & 0x18) << 3;
	regs[IBS_OP_DATA3] = data3;
	regs[IBS_DC_LINADDR] = 0x7f0000000000 | a->phys;
	regs[IBS_DC_PHYSADDR] = a->phys;
	t->tgid = 100;
	t->tid = a->tid;
	t->cpu = a->cpu;
	t->has_task = t->has_cpu = t->has_ip = true;
	t->ip = regs[IBS_OP_RIP];
	engine_run(engine[a->cpu], regs, 1, &task, NULL);
	fed[a->cpu] += a->kind & LINE_STORE || a->src == 1 || a->src == 2 || a->src == 5;
	if (all)
		lines_add(exact, &ev);
}

static struct hot_window *read_window(__u32 sets, size_t most)
{
	struct hot_table table[CPUS];
	const struct hot_tables t = { .table = table, .n = CPUS, .sets = sets, .period = 1 };

	for (__u32 c = 0; c < CPUS; c++)
		table[c] = (struct hot_table){ engine_lines(engine[c]), c };
	return hot_window_new(&t, most);
}

/* What the tables of all CPUs say, as of @windows that are alike. */
static struct line_set *read_tables(__u32 sets, size_t most, int windows, const struct lines **out)
{
	const struct lines_opts opts = { .info = &info };
	struct line_set *s = lines_new(&opts);
	struct hot_window *w = read_window(sets, most);

	for (int i = 0; i < windows; i++)
		lines_add_window(s, w);
	free(w);
	*out = lines_finish(s);
	return s;
}

/* What holds of each table; the greatest error of a count. */
static __u32 check_table(int cpu, __u32 sets, const __u32 *true_count)
{
	const struct ibs_lines *t = engine_lines(engine[cpu]);
	__u64 sum = 0;
	__u32 most = 0;

	for (__u32 set = 0; set < sets; set++) {
		const struct ibs_line_count *c = &t->count[set * IBS_LINE_WAYS];

		for (int w = 0; w < IBS_LINE_WAYS; w++) {
			const __u64 line = ibs_line_of(&c[w]);
			__u32 is;

			sum += c[w].count;
			if (!line || !true_count)
				continue;
			is = true_count[line - (PHYS >> IBS_LINE_SHIFT)];
			assert_in_range(is, c[w].count - c[w].error, c[w].count);
			most = c[w].error > most ? c[w].error : most;
		}
	}
	assert_int_equal(t->fed, fed[cpu]);
	assert_int_equal(sum, t->fed - t->no_address);
	/* a line that has no place had at most the least count of its set */
	for (__u32 l = 0; true_count && l < LINES; l++) {
		const __u64 line = (PHYS >> IBS_LINE_SHIFT) + l;
		const struct ibs_line_count *c =
			&t->count[ibs_line_set(line << IBS_LINE_HAND, sets)];
		__u32 least = ~0u;
		bool has = false;

		for (int w = 0; w < IBS_LINE_WAYS; w++) {
			has |= ibs_line_of(&c[w]) == line;
			least = c[w].count < least ? c[w].count : least;
		}
		if (!has)
			assert_in_range(true_count[l], 0, least);
	}
	return most;
}

static int by_samples(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

static int greatest_first(const void *pa, const void *pb)
{
	const __u32 *a = pa, *b = pb;

	return *a > *b ? -1 : *a < *b;
}

/* The bounds of windows, which may not have room for all details. */
static void check_window(__u32 sets, size_t most, const __u32 *is)
{
	struct hot_window *w = read_window(sets, most);
	static bool has[LINES];
	const struct lines *lines;
	struct line_set *s = read_tables(sets, most, 2, &lines);

	memset(has, 0, sizeof(has));
	assert_in_range(w->n, CUT / 2, most);
	assert_int_equal(w->lines, lines->n);
	for (__u64 i = 0; i < w->n; i++)
		has[w->detail[i].d.line - (PHYS >> IBS_LINE_SHIFT)] = true;
	for (__u32 l = 0; l < LINES; l++)
		if (!has[l])
			assert_in_range(is[l], 0, w->hidden);
	assert_true(lines->hot.lack >= 2 * w->lack && lines->hot.lack >= 2 * w->hidden);
	for (size_t i = 0; i < lines->n; i++) {
		const __u32 all = 2 * is[(lines->line[i].address - PHYS) / 64];

		assert_in_range(lines->line[i].samples,
				all - (all < 2 * w->lack ? all : 2 * w->lack), all);
	}
	lines_free(s);
	free(w);
}

/* Accesses of CPUS CPUs to LINES lines, the k-th of which has a share of k^-skew; a line of the recall table. */
static double recall(double skew, __u32 sets)
{
	static double until[LINES];
	static __u32 count[CPUS][LINES], all[LINES], sorted[LINES];
	const struct lines *lines;
	struct line_set *s;
	double sum = 0, worst = 0;
	__u64 replaced = 0;
	__u32 error = 0, found = 0;

	memset(count, 0, sizeof(count));
	memset(all, 0, sizeof(all));
	for (int l = 0; l < LINES; l++)
		until[l] = sum += pow(l + 1, -skew);
	open_engines(sets);
	for (__u64 n = 0; n < SAMPLES; n++) {
		const __u64 r = ibs_sim_mix(n), r2 = ibs_sim_mix(r);
		const double at = (r >> 11) * 0x1p-53 * sum;
		struct access a = { .cpu = r2 % CPUS, .tid = 1000 + r2 % CPUS, .lat = 100 };
		__u32 low = 0, high = LINES - 1;

		while (low < high) {
			const __u32 middle = (low + high) / 2;

			if (until[middle] <= at)
				low = middle + 1;
			else
				high = middle;
		}
		/* neighbours in rank are no neighbours in memory */
		low = low * 40503ull % LINES;
		a.phys = PHYS + low * 64ull + (r2 >> 8 & 56);
		a.kind = r2 >> 16 & 1 ? LINE_LOAD : LINE_STORE;
		a.src = a.kind & LINE_LOAD ? 2 : 0;
		count[a.cpu][low]++;
		all[low]++;
		run(&a, false);
	}
	for (int c = 0; c < CPUS; c++) {
		const __u32 most = check_table(c, sets, count[c]);

		error = most > error ? most : error;
		replaced += engine_lines(engine[c])->replaced;
	}
	s = read_tables(sets, SIZE_MAX, 1, &lines);
	assert_true(lines->n >= TOP);
	qsort(lines->line, lines->n, sizeof(*lines->line), by_samples);
	for (size_t i = 0; i < lines->n; i++) {
		const __u32 is = all[(lines->line[i].address - PHYS) / 64];

		assert_in_range(lines->line[i].samples,
				is - (is < lines->hot.lack ? is : lines->hot.lack), is);
	}
	check_window(sets, CUT, all);
	check_window(sets, SIZE_MAX, all);
	memcpy(sorted, all, sizeof(all));
	qsort(sorted, LINES, sizeof(*sorted), greatest_first);
	for (int i = 0; i < TOP; i++) {
		const __u32 is = all[(lines->line[i].address - PHYS) / 64];

		found += is >= sorted[TOP - 1];
		worst = fmax(worst, 1 - (double)lines->line[i].samples / is);
	}
	printf("%5.1f %6u %8u %9.2f %10.1f%% %10llu %10llu %10u\n", skew, sets,
	       (__u32)(2 * IBS_LINES_BYTES(sets) >> 10), (double)found / TOP, 100 * worst,
	       lines->hot.lack, replaced, error);
	lines_free(s);
	close_engines();
	return (double)found / TOP;
}

static void test_recall(void **state)
{
	(void)state;
	printf("%d accesses by %d CPUs to %d lines\n", SAMPLES, CPUS, LINES);
	printf("%5s %6s %8s %9s %11s %10s %10s %10s\n", "skew", "sets", "KiB/CPU", "top 20",
	       "lack most", "bound", "replaced", "error");
	recall(0.8, IBS_LINE_SETS);
	assert_true(recall(1.0, IBS_LINE_SETS) >= 0.95);
	recall(1.0, IBS_LINE_SETS / 4);
	assert_true(recall(1.2, IBS_LINE_SETS) >= 0.95);
}

/* Which samples feed: by default stores, and loads that a cache beyond L2 answered. */
static void test_feed(void **state)
{
	const struct access accesses[] = {
		{ .phys = PHYS, .kind = LINE_STORE },
		{ .phys = PHYS, .kind = LINE_LOAD | LINE_STORE },
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 1 }, /* L3 */
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 2 }, /* another complex */
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 5 }, /* another node */
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 3 }, /* memory */
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 8 }, /* memory, CXL */
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 7 }, /* I/O */
		{ .phys = PHYS, .kind = LINE_LOAD },
		{ .phys = PHYS, .kind = LINE_LOAD, .walk = true },
		{ .phys = PHYS, .kind = LINE_LOAD, .src = 3, .walk = true },
		{ .phys = PHYS, .kind = LINE_LOAD | LINE_PREFETCH, .src = 2, .walk = true },
		{ .phys = 0, .kind = LINE_STORE },
	};
	const struct {
		__u32 feed, fed;
	} feeds[] = {
		{ IBS_LINE_FEED_SHARING, 6 },
		{ IBS_LINE_FEED_SHARING | IBS_SRC_MEMORY, 9 },
		{ IBS_LINE_FEED_SHARING | IBS_LINE_FEED_WALKS, 8 },
		{ IBS_LINE_FEED_SHARING | IBS_SRC_MEMORY | IBS_LINE_FEED_WALKS, 10 },
	};

	(void)state;
	for (size_t f = 0; f < sizeof(feeds) / sizeof(*feeds); f++) {
		open_engines_fed(16, feeds[f].feed);
		for (size_t i = 0; i < sizeof(accesses) / sizeof(*accesses); i++)
			run(&accesses[i], false);
		fed[0] = feeds[f].fed;
		assert_int_equal(engine_lines(engine[0])->no_address, 1);
		check_table(0, 16, NULL);
		close_engines();
	}
}

/* Lines that are shared in each way: verdict, slots and columns are those of all samples. */
static void test_sharing(void **state)
{
	const struct lines *lines, *all;
	struct line_set *s;
	size_t same = 0;

	(void)state;
	open_engines(IBS_LINE_SETS);
	for (__u64 n = 0; n < 40000; n++) {
		const __u64 r = ibs_sim_mix(n ^ 0x5eed), line = r % 8;
		const __u32 cpu = r >> 8 & 3;
		struct access a = { .phys = PHYS + 64 * line, .cpu = cpu, .tid = 1000 + 31 * cpu };

		if (line == 0) /* false sharing: a slot each */
			a.phys += 8 * cpu;
		else if (line == 1) /* true sharing, by locked ops too */
			a.kind = r >> 16 & 1 ? LINE_LOAD | LINE_STORE : 0;
		else if (line == 2) /* private */
			a.cpu = 5, a.tid = 77;
		else if (line == 3) /* one thread that moves */
			a.tid = 4242;
		else if (line == 4) /* threads of one CPU */
			a.cpu = 7;
		else if (line == 5) /* both kinds */
			a.phys += 8 * (r >> 16 & 1 ? cpu : 0);
		else if (line == 6) /* read only */
			a.kind = LINE_LOAD;
		else /* threads that move between CPUs, a slot each */
			a.tid = 1000 + (r >> 20 & 7), a.phys += 8 * (r >> 20 & 7);
		a.kind = a.kind ?: r >> 32 & 1 ? LINE_LOAD : LINE_STORE;
		a.src = !(a.kind & LINE_LOAD) ? 0 : r >> 40 & 1 ? 2 : 1;
		a.lat = a.kind == LINE_LOAD ? 50 + (r >> 44 & 255) : 0;
		run(&a, true);
	}
	s = read_tables(IBS_LINE_SETS, SIZE_MAX, 1, &lines);
	all = lines_finish(exact);
	assert_int_equal(all->n, 8);
	assert_int_equal(lines->n, 8);
	for (size_t i = 0; i < 8; i++) {
		const struct line *e = &all->line[i];

		for (size_t k = 0; k < 8; k++) {
			const struct line *l = &lines->line[k];
			struct line_slot have[LINE_SLOTS], want[LINE_SLOTS];
			__u64 lack = e->samples - l->samples;

			if (l->address != e->address)
				continue;
			same++;
			assert_int_equal(l->verdict, e->verdict);
			assert_int_equal(l->likely, e->likely);
			/* three on each CPU before there are details */
			assert_in_range(lack, 3, 3 * 4);
			assert_in_range(lack, 0, lines->hot.lack);
			assert_in_range(e->loads - l->loads, 0, lack);
			assert_in_range(e->stores - l->stores, 0, lack);
			assert_in_range(e->cycles - l->cycles, 0, lack * 305);
			assert_in_range(e->hitm_cycles - l->hitm_cycles, 0, lack * 305);
			assert_int_equal(l->sum, l->cycles);
			assert_int_equal(l->cpus, e->cpus);
			assert_int_equal(l->threads, e->threads);
			for (int f = 0; f < LINE_FROM_N; f++)
				assert_in_range(e->from[f] - l->from[f], 0, lack);
			line_slots(l, have);
			line_slots(e, want);
			for (int slot = 0; slot < LINE_SLOTS; slot++) {
				assert_int_equal(have[slot].shared, want[slot].shared);
				assert_in_range(want[slot].loads - have[slot].loads, 0, lack);
				assert_in_range(want[slot].stores - have[slot].stores, 0, lack);
				assert_in_range(want[slot].hitm - have[slot].hitm, 0, lack);
			}
		}
	}
	assert_int_equal(same, 8);
	lines_free(s);
	close_engines();
}

/* The most samples of a line without details, of one set that is filled in by hand. */
static void test_hidden(void **state)
{
	static const struct {
		struct ibs_line_count count[IBS_LINE_WAYS];
		__u64 detail[3]; /* lines that have details */
		__u64 hidden;
	} rows[] = {
		/* all have details: one that lost its place may have had as many as the least */
		{ { { 1 << IBS_LINE_HAND | 1, 90 },
		    { 2 << IBS_LINE_HAND | 2, 40 },
		    { 3 << IBS_LINE_HAND | 3, 70 },
		    { 3 << IBS_LINE_HAND | 3, 70 } },
		  { 1, 2, 3 },
		  40 },
		/* there is a free place */
		{ { { 1 << IBS_LINE_HAND | 1, 90 }, { 2 << IBS_LINE_HAND | 2, 40 } }, { 1, 2 }, 0 },
		/* the details of the second were taken over by another line */
		{ { { 1 << IBS_LINE_HAND | 1, 90 }, { 2 << IBS_LINE_HAND | 2, 40 } },
		  { 1, 9 },
		  40 },
		/* never had any */
		{ { { 1 << IBS_LINE_HAND | 1, 90 }, { 2 << IBS_LINE_HAND, 40 } }, { 1 }, 40 },
		{ { { 1 << IBS_LINE_HAND, 90 }, { 2 << IBS_LINE_HAND | 1, 40 } }, { 2 }, 90 },
	};
	struct ibs_lines *l = calloc(1, IBS_LINES_BYTES((size_t)1));

	(void)state;
	assert_non_null(l);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct hot_table table = { l, 0 };
		const struct hot_tables t = { .table = &table, .n = 1, .sets = 1, .period = 1 };
		struct hot_window *w;

		memcpy(l->count, rows[i].count, sizeof(rows[i].count));
		for (int k = 0; k < 3; k++)
			l->detail[k].line = rows[i].detail[k];
		w = hot_window_new(&t, SIZE_MAX);
		if (w->hidden != rows[i].hidden)
			fail_msg("row %zu: %llu", i, (unsigned long long)w->hidden);
		free(w);
	}
	free(l);
}

/* In a full set, the line with the lowest count loses its entry to a new one, which has no details. */
static void test_replaced(void **state)
{
	struct ibs_line_count set[IBS_LINE_WAYS];
	const __u64 line = 1ull << IBS_LINE_HAND;
	__u64 hand = 77, replaced = 5;

	(void)state;
	for (__u32 w = 0; w < IBS_LINE_WAYS; w++)
		set[w] = (struct ibs_line_count){ .key = (w + 1) * line + 3, .count = 20 - w };
	assert_ptr_equal(ibs_line_count(set, 2 * line, &hand, &replaced), &set[1]);
	assert_int_equal(hand, 3);
	assert_int_equal(set[1].count, 20);
	assert_ptr_equal(ibs_line_count(set, 99 * line, &hand, &replaced), &set[IBS_LINE_WAYS - 1]);
	assert_int_equal(hand, 0);
	assert_int_equal(replaced, 6);
	assert_int_equal(set[IBS_LINE_WAYS - 1].key, 99 * line);
	assert_int_equal(set[IBS_LINE_WAYS - 1].error, 20 - (IBS_LINE_WAYS - 1));
	assert_int_equal(set[IBS_LINE_WAYS - 1].count, 20 - (IBS_LINE_WAYS - 1) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_feed),   cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_hidden), cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_recall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
