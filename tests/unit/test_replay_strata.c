// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replay of recordings with strata, of a machine of which everything is known. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "strata_recording.h"
#include "base/err.h"
#include "replay/replay.h"

static char path[64];
static const struct replay_opts opts = { .metric = IBS_METRIC_DC_MISS_LAT };

static struct replay *open_replay(struct trace **t)
{
	struct replay *r = NULL;
	struct err err = { "" };

	if (trace_open(path, t, &err) || replay_open(*t, &opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void close_replay(struct replay *r, struct trace *t)
{
	replay_close(r);
	trace_close(t);
}

static void make(unsigned int slices, enum stratum first, bool ended, struct sr_truth *truth)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(sr_write(fd, 1, slices, first, ended, truth), 0);
	close(fd);
}

/* Estimated ops, and miss cycles, of a kind. */
static void sums(const struct snapshot *snap, double *ops, double *cycles)
{
	memset(ops, 0, SR_KINDS * sizeof(*ops));
	memset(cycles, 0, SR_KINDS * sizeof(*cycles));
	for (size_t g = 0; g < snap->n_groups; g++)
		for (size_t i = 0; i < snap->groups[g].n_series; i++) {
			const struct series *s = &snap->groups[g].series[i];
			const enum sr_kind kind = s->src == IBS_SRC_DRAM ? SR_DRAM : SR_OTHER;

			ops[kind] += s->ops;
			cycles[kind] += s->cycles;
		}
}

static void is_near(const char *what, double got, double want, double part)
{
	if (fabs(got - want) > part * want)
		fail_msg("%s: %g instead of %g", what, got, want);
}

static void check(const struct snapshot *snap, const struct sr_truth *truth)
{
	double ops[SR_KINDS], cycles[SR_KINDS];

	assert_int_equal(snap->ledger.seen,
			 truth->samples[STRATUM_FULL] + truth->samples[STRATUM_MISS]);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
	assert_non_null(snap->strata);
	for (int of = 0; of < STRATUM_N; of++)
		assert_int_equal(snap->strata->ledger[of].seen, truth->samples[of]);
	assert_string_equal(snap->strata->event[STRATUM_FULL], "ibs_op/cnt_ctl=1/");
	assert_string_equal(snap->strata->event[STRATUM_MISS], "ibs_op/cnt_ctl=1,l3missonly=1/");
	assert_int_equal(snap->strata->period[STRATUM_FULL], SR_PERIOD);
	sums(snap, ops, cycles);
	is_near("ops of DRAM", ops[SR_DRAM], truth->ops[SR_DRAM], 0.1);
	is_near("other ops", ops[SR_OTHER], truth->ops[SR_OTHER], 0.05);
	is_near("cycles of DRAM", cycles[SR_DRAM], truth->cycles[SR_DRAM], 0.1);
	is_near("other cycles", cycles[SR_OTHER], truth->cycles[SR_OTHER], 0.15);
}

/* Few slices, and so many that several are read at once; either stratum first; with and without an end. */
static void test_sums(void **state)
{
	static const struct {
		unsigned int slices;
		enum stratum first;
		bool ended;
	} rows[] = {
		{ 40, STRATUM_FULL, true },  { 40, STRATUM_MISS, true },
		{ 41, STRATUM_FULL, false }, { 3 * STRATA_SLICES, STRATUM_FULL, true },
		{ 400, STRATUM_MISS, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = { "" };
		struct snapshot snap;
		struct sr_truth truth;
		struct ledger ledger;
		struct trace *t;
		struct replay *r;

		make(rows[i].slices, rows[i].first, rows[i].ended, &truth);
		r = open_replay(&t);
		assert_int_equal(replay_run(r, &err), 0);
		assert_int_equal(replay_snapshot(r, &snap, &err), 0);
		check(&snap, &truth);
		ledger = snap.ledger;
		snapshot_free(&snap);
		/* once more: only the ledger is left */
		assert_int_equal(replay_snapshot(r, &snap, &err), 0);
		assert_int_equal(snap.n_groups, 0);
		assert_memory_equal(&snap.ledger, &ledger, sizeof(ledger));
		snapshot_free(&snap);
		close_replay(r, t);
	}
}

/* In steps of any length it comes to the same. */
static void test_steps(void **state)
{
	double want[SR_KINDS], want_cycles[SR_KINDS], got[SR_KINDS], got_cycles[SR_KINDS];
	struct err err = { "" };
	struct snapshot snap;
	struct sr_truth truth;
	struct trace *t;
	struct replay *r;

	(void)state;
	make(64, STRATUM_FULL, true, &truth);
	for (__u64 step = 0; step < 2000000000; step = step ? 10 * step : 1000000) {
		__u64 at = 0, next = 0;
		int ret;

		r = open_replay(&t);
		do {
			ret = step ? replay_until(r, at += step, &next, &err) : replay_run(r, &err);
		} while (ret > 0);
		assert_int_equal(ret, 0);
		assert_int_equal(replay_snapshot(r, &snap, &err), 0);
		check(&snap, &truth);
		sums(&snap, got, got_cycles);
		if (!step) {
			memcpy(want, got, sizeof(got));
			memcpy(want_cycles, got_cycles, sizeof(got));
		}
		assert_memory_equal(got, want, sizeof(got));
		assert_memory_equal(got_cycles, want_cycles, sizeof(got));
		snapshot_free(&snap);
		close_replay(r, t);
	}
}

/* What a replay holds that ends before its recording: sanitizers look for it. */
static void test_unfinished(void **state)
{
	struct err err = { "" };
	struct sr_truth truth;
	struct trace *t;
	struct replay *r;
	__u64 next;

	(void)state;
	make(16, STRATUM_FULL, true, &truth);
	r = open_replay(&t);
	assert_int_equal(replay_until(r, 300000000, &next, &err), 1);
	assert_true(next > 300000000);
	close_replay(r, t);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/ibscope-strata.%d", getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_unfinished),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
