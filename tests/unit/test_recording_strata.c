// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recordings with strata: what is written is read, and estimates agree with a machine of which everything is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "counts/snapshot.h"
#include "report/report.h"
#include "strata_recording.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEEDS  200
#define SLICES 64

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) < 1e-9 * fabs((double)(b)))

static struct trace *open_fd(int fd)
{
	char path[64];
	struct trace *t;
	struct err err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static struct trace *make(__u64 seed, unsigned int slices, enum stratum first, bool ended,
			  struct sr_truth *truth)
{
	const int fd = memfd_create("strata", MFD_CLOEXEC);
	struct trace *t;

	assert_true(fd >= 0);
	assert_int_equal(sr_write(fd, seed, slices, first, ended, truth), 0);
	t = open_fd(fd);
	close(fd);
	return t;
}

/* --- weights */

static void by_hand(void **state)
{
	/* the miss stratum samples at two periods: of 1000 ops 50 tags, and of 4000 ops 800 */
	static const struct strata_design two = { 4,
						  {
							  { STRATUM_FULL, 1000, 10, 1, 100 },
							  { STRATUM_MISS, 1000, 50, 1, 20 },
							  { STRATUM_FULL, 2000, 20, 2, 100 },
							  { STRATUM_MISS, 4000, 800, 1, 5 },
						  } };
	/* tags of one period that are as good: 5000^2 / (1000 * 20 + 4000 * 5) */
	const double good = 5000.0 * 5000 / 40000, all = 8000;

	(void)state;
	NEAR(strata_slice_weight(&two, 0, false), all / 3000 * 100);
	NEAR(strata_slice_weight(&two, 0, true), 30 / (30 + good) * all / 3000 * 100);
	NEAR(strata_slice_weight(&two, 1, true), good / (30 + good) * all / 5000 * 20);
	NEAR(strata_slice_weight(&two, 3, true), good / (30 + good) * all / 5000 * 5);
	assert_true(strata_slice_weight(&two, 1, false) == 0);
}

static void is_read(void **state)
{
	__u64 n[STRATUM_N] = {}, n_slices = 0;
	struct trace_event ev;
	struct sr_truth truth;
	struct trace *t = make(3, SLICES, STRATUM_MISS, true, &truth);
	const struct trace_info *info = trace_info(t);
	const struct trace_slice *slice;
	size_t slices;
	struct err err;

	(void)state;
	assert_true(trace_has_strata(info));
	assert_int_equal(info->pmu[STRATUM_FULL].reach, SR_REACH);
	assert_int_equal(info->pmu[STRATUM_MISS].reach, SR_REACH);
	assert_true(trace_weights_known(t));
	slice = trace_slices(t, &slices);
	assert_int_equal(slices, SLICES);
	while (trace_next(t, &ev, &err) > 0) {
		if (ev.kind == TRACE_SLICE) {
			const struct strata_slice *s = &slice[n_slices++].counts;

			assert_int_equal(ev.slice.of, s->of);
			assert_true(ev.slice.ops == s->ops && ev.slice.tags == s->tags);
			continue;
		}
		assert_int_equal(ev.kind, TRACE_SAMPLE_OP);
		assert_true(ev.sample.pmu < STRATUM_N);
		assert_true(ev.sample.weight > 0);
		n[ev.sample.pmu]++;
	}
	assert_int_equal(n_slices, SLICES);
	for (int of = 0; of < STRATUM_N; of++) {
		assert_true(n[of] == truth.samples[of]);
		assert_true(trace_end(t)->event_ledger[of].seen == truth.samples[of]);
		assert_true(!ledger_residual(&trace_end(t)->event_ledger[of]));
	}
	assert_int_equal(trace_end(t)->n_ledgers, STRATUM_N);
	assert_true(trace_end(t)->ledger.seen == n[0] + n[1]);
	trace_close(t);
}

static void is_cut(void **state)
{
	struct trace_event ev;
	struct sr_truth truth;
	struct err err;
	double ops = 0;
	struct trace *t = make(4, SLICES, STRATUM_FULL, false, &truth);

	(void)state;
	assert_true(trace_weights_known(t));
	while (trace_next(t, &ev, &err) > 0)
		ops += ev.kind == TRACE_SAMPLE_OP ? ev.sample.weight : 0;
	assert_false(trace_end(t)->whole);
	/* samples of the other sources have weights that add up to their ops but for chance */
	assert_true(fabs(ops / (truth.ops[0] + truth.ops[1]) - 1) < 0.02);
	trace_close(t);

	t = make(4, 1, STRATUM_MISS, false, &truth);
	assert_false(trace_weights_known(t));
	while (trace_next(t, &ev, &err) > 0)
		assert_true(ev.kind != TRACE_SAMPLE_OP || ev.sample.weight == 0);
	trace_close(t);

	t = make(4, 1, STRATUM_FULL, true, &truth);
	assert_true(trace_weights_known(t));
	trace_close(t);
}

/* --- hist combines slices when they end, readers when all are known: weights are the same */

struct sums {
	double ops[IBS_SRC_N], cycles[IBS_SRC_N];
};

/* A sample in the slice that goes on, and as a reader weighs it. */
static void add_sample(const struct trace_sample *s, struct sums *reader, struct series *slice)
{
	const enum ibs_src src = ibs_op_src(s->op.cpu, s->op.reg);
	const __u64 data3 = s->op.reg[IBS_OP_DATA3];
	__u32 latency = 0;

	reader->ops[src] += s->weight;
	slice[src].src = src;
	slice[src].samples++;
	if (!ibs_op_metric_valid(IBS_METRIC_DC_MISS_LAT, SR_CAPS, data3))
		return;
	latency = ibs_op_metric(IBS_METRIC_DC_MISS_LAT, s->op.reg, data3);
	reader->cycles[src] += latency * s->weight;
	slice[src].valid++;
	slice[src].sum += latency;
	slice[src].buckets[ibs_lat_bucket(latency)]++;
}

/* As hist does at the end of a slice. */
static void end_slice(struct stratified *s, const struct trace_event *ev, struct series *slice)
{
	struct group g = { .slot = 1 };
	const struct snapshot one = {
		.time_ns = ev->slice.end - ev->slice.start,
		.pmu = { .cpus = 1, .ops = ev->slice.ops, .tagged = ev->slice.tags },
		.groups = &g,
		.n_groups = 1
	};

	g.series = slice;
	g.n_series = IBS_SRC_N;
	stratified_add(s, ev->slice.of, ev->slice.period, 1, &one);
	for (int src = 0; src < IBS_SRC_N; src++) {
		memset(slice[src].buckets, 0, IBS_LAT_BUCKETS * sizeof(*slice->buckets));
		slice[src] = (struct series){ .buckets = slice[src].buckets };
	}
}

/* The reader's weights are whole numbers. */
static void compare_sums(const struct sums *reader, const struct snapshot *hist,
			 unsigned int slices)
{
	for (size_t i = 0; i < hist->groups[0].n_series; i++) {
		const struct series *s = &hist->groups[0].series[i];
		const double ops = reader->ops[s->src], cycles = reader->cycles[s->src];
		double buckets = 0;

		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			buckets += s->strata->buckets[b];
		if (fabs(s->ops - ops) > 1e-4 * ops || fabs(s->cycles - cycles) > 1e-4 * cycles ||
		    buckets > 1.0001 * s->ops)
			fail_msg("%u slices, %s: hist has %llu ops, %llu cycles, %.0f in buckets; "
				 "a reader %.0f and %.0f",
				 slices, src_name(s->src), (unsigned long long)s->ops,
				 (unsigned long long)s->cycles, buckets, ops, cycles);
	}
}

static void agree(unsigned int slices)
{
	__u64 buckets[IBS_SRC_N][IBS_LAT_BUCKETS] = {};
	struct series slice[IBS_SRC_N] = {};
	struct stratified *s = stratified_new(SR_REACH);
	struct sums reader = {};
	struct snapshot hist;
	struct trace_event ev, last = {};
	struct sr_truth truth;
	struct err err;
	struct trace *t = make(slices, slices, STRATUM_FULL, true, &truth);

	for (int src = 0; src < IBS_SRC_N; src++)
		slice[src].buckets = buckets[src];
	while (trace_next(t, &ev, &err) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP)
			add_sample(&ev.sample, &reader, slice);
		if (ev.kind != TRACE_SLICE)
			continue;
		/* it comes with its beginning */
		if (last.kind == TRACE_SLICE)
			end_slice(s, &last, slice);
		last = ev;
	}
	end_slice(s, &last, slice);
	stratified_end(s, &hist);
	compare_sums(&reader, &hist, slices);
	snapshot_free(&hist);
	stratified_free(s);
	trace_close(t);
}

/* Less than a window, ends of windows, and so many that slices are merged. */
static void hist_agrees(void **state)
{
	static const unsigned int slices[] = { 2,
					       STRATA_WINDOW - 1,
					       STRATA_WINDOW,
					       2 * STRATA_WINDOW - 1,
					       2 * STRATA_WINDOW,
					       3 * STRATA_WINDOW + 5,
					       STRATA_SLICES + 70,
					       3 * STRATA_SLICES };

	(void)state;
	for (size_t i = 0; i < sizeof(slices) / sizeof(*slices); i++)
		agree(slices[i]);
}

/* --- estimates of a report */

struct score {
	double sum, squares; /* of relative errors */
	unsigned int covered;
};

static void add_score(struct score *s, double estimate, double truth, double low, double high)
{
	const double error = estimate / truth - 1;

	s->sum += error;
	s->squares += error * error;
	s->covered += low <= truth && truth <= high;
}

static void report_of(struct trace *t, const struct sr_truth *truth, struct score *dram,
		      struct score *other)
{
	const struct report_opts opts = { .by = { LABEL_SRC },
					  .n_by = 1,
					  .metric = IBS_METRIC_DC_MISS_LAT,
					  .info = trace_info(t) };
	const struct report_order order = { .sort = TABLE_CYCLES };
	struct report_row rest = { .has_estimated = true };
	struct report_table table;
	struct trace_event ev;
	struct report *r;
	struct err err;

	assert_int_equal(report_new(&opts, &r, &err), 0);
	while (trace_next(t, &ev, &err) > 0)
		report_add(r, &ev);
	assert_int_equal(report_table(r, &order, &table), 0);
	assert_true(table.strata);
	assert_true(table.effective > 0 && table.effective < table.total.samples);
	for (size_t i = 0; i < table.n; i++) {
		const struct report_row *row = &table.rows[i];

		if (strcmp(row->label[0], "dram") != 0) {
			rest.cycles += row->cycles;
			rest.valid += row->valid;
			estimate_merge(&rest.waits, &row->waits);
			continue;
		}
		add_score(dram, report_value(&table, row, TABLE_CYCLES), truth->cycles[SR_DRAM],
			  report_value(&table, row, TABLE_LOW),
			  report_value(&table, row, TABLE_HIGH));
		/* latencies of ops, not of samples: each has the same mean */
		assert_true(fabs(report_value(&table, row, TABLE_MEAN) /
					 (truth->cycles[SR_DRAM] / truth->ops[SR_DRAM]) -
				 1) < 0.05);
	}
	add_score(other, rest.cycles, truth->cycles[SR_OTHER],
		  report_value(&table, &rest, TABLE_LOW), report_value(&table, &rest, TABLE_HIGH));
	report_table_free(&table);
	report_free(r);
}

static void check_score(const struct score *s, const char *what)
{
	const double bias = s->sum / SEEDS, error = sqrt(s->squares / SEEDS / SEEDS);

	if (fabs(bias) > 3 * error || fabs(bias) > 0.01 || s->covered < SEEDS * 9 / 10)
		fail_msg("%s: bias %.2f %%, one in three hundred has more than %.2f %%; %u of %d "
			 "intervals have the truth",
			 what, 100 * bias, 300 * error, s->covered, SEEDS);
	print_message("%s: bias %.2f +- %.2f %%; %u of %d intervals have the truth\n", what,
		      100 * bias, 100 * error, s->covered, SEEDS);
}

static void estimates(void **state)
{
	struct score dram = {}, other = {};

	(void)state;
	for (__u64 seed = 1; seed <= SEEDS; seed++) {
		struct sr_truth truth;
		struct trace *t = make(seed, SLICES, seed % STRATUM_N, true, &truth);

		report_of(t, &truth, &dram, &other);
		trace_close(t);
	}
	check_score(&dram, "miss cycles from DRAM");
	check_score(&other, "other miss cycles");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),   cmocka_unit_test(is_read),
		cmocka_unit_test(is_cut),    cmocka_unit_test(hist_agrees),
		cmocka_unit_test(estimates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
