// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts that change while they are read; which are known; layouts against all registers; what is printed of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "counts/counts.h"

#include <ibscope/fetch.h>
#include <ibscope/op.h>
#include <ibscope/pin_layout.h>

#define ZEN3 0x3ffU
#define ZEN4 0xbffU
#define N    4000000 /* registers drawn */

#define CAPS   ZEN4
#define SHARDS 1
#define SLOTS  2

#include "random_word.h"
#include "slots.h"

/* --- counts in motion: one op of no memory in slot 1, and what the other side does meanwhile --- */

enum happens { NOTHING, IS_COUNTED, IS_FOLDED, DIES };

struct other_side {
	enum happens happens;
	int at, asked; /* happens when it is asked for that time */
};

static int refresh(void *arg)
{
	struct other_side *o = arg;

	if (++o->asked < o->at)
		return 0;
	if (o->happens == IS_COUNTED)
		state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = state->cpu[0].seen;
	if (o->happens == IS_FOLDED)
		state->control.fold = 2;
	return o->happens == DIES ? -EIO : 0;
}

static __u64 *samples_word(void)
{
	return series + layout.words +
	       (layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_OTHER, IBS_SRC_NONE)] & IBS_LAYOUT_WORD) +
	       IBS_PAIR_SAMPLES;
}

static int read_counts(struct other_side *o, struct ledger *l, struct err *err)
{
	const struct counts c = { .owners = owners,
				  .series = series,
				  .state = state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = SHARDS,
				  .max_slots = SLOTS,
				  .period = 1000,
				  .refresh = refresh,
				  .arg = o,
				  .layout = &layout };
	struct snapshot s = {};
	const int ret = counts_read(&c, &s, err);

	*l = s.ledger;
	snapshot_free(&s);
	return ret;
}

static void begin(__u64 seen, __u64 aggregated, __u64 samples)
{
	state->control.fold = 0;
	state->cpu[0].seen = seen;
	state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = aggregated;
	*samples_word() = samples;
}

/* A sample in progress is waited for; if it never ends, somebody died or there is a bug. */
static void test_sample_in_progress(void **unused)
{
	struct other_side ends = { IS_COUNTED, 3 }, dies = { DIES, 3 };
	struct ledger l;
	struct err err;

	(void)unused;
	begin(6, 5, 6);
	assert_int_equal(read_counts(&ends, &l, &err), 0);
	assert_true(ends.asked >= 3);
	assert_int_equal(l.seen, 6);
	assert_int_equal(ledger_residual(&l), 0);
	begin(5, 6, 6);
	assert_int_equal(read_counts(&dies, &l, &err), -EUCLEAN);
	assert_int_equal(dies.asked, 3);
}

static void test_fold_in_progress(void **unused)
{
	struct other_side ends = { IS_FOLDED, 2 }, dies = { DIES, 2 };
	struct ledger l;
	struct err err;

	(void)unused;
	begin(6, 6, 6);
	state->control.fold = 1;
	assert_int_equal(read_counts(&ends, &l, &err), 0);
	assert_true(ends.asked >= 2);
	state->control.fold = 3;
	assert_int_equal(read_counts(&dies, &l, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "died while folding"));
}

/* One sample too many in the series, or too few, is a bug, and none is. */
static void test_series_and_ledger(void **unused)
{
	struct other_side none = {};
	struct ledger l;
	struct err err;

	(void)unused;
	for (int d = -1; d <= 1; d++) {
		begin(6, 6, 6 + d);
		assert_int_equal(read_counts(&none, &l, &err), d ? -EUCLEAN : 0);
		if (d)
			assert_non_null(strstr(err.text, "and 6 counted"));
	}
}

/* --- layouts --- */

struct pairs {
	bool can[IBS_LAYOUT_ENTRIES], hist[IBS_LAYOUT_ENTRIES];
};

/* Few bits are set, or many: both kinds of register are needed to reach all pairs. */
static __u64 random_register(int n)
{
	const __u64 word = random_word() & (n & 4 ? random_word() : ~0ULL);

	return n & 8 ? word | random_word() : word;
}

static void draw_ops(struct pairs *p, enum ibs_metric metric, __u32 caps)
{
	for (int n = 0; n < N; n++) {
		const struct ibs_cpu cpu = { .caps = caps, .quirks = n & 1 ? ~0U : 0 };
		const __u64 data = random_word(), data3 = random_register(n >> 1);
		const __u64 regs[] = { [IBS_OP_DATA2] = random_word(), [IBS_OP_DATA3] = data3 };
		const unsigned int i =
			IBS_LAYOUT_IDX(ibs_op_kind(data, data3), ibs_op_src(cpu, regs));

		p->can[i] = true;
		p->hist[i] |= ibs_op_metric_valid(metric, caps, data3);
	}
}

static void draw_fetches(struct pairs *p, enum ibs_metric metric, __u32 caps)
{
	const __u32 quirks = caps & IBS_CAPS_ZEN4 ? IBS_QUIRK_FETCH_NEEDS_PHY
						  : IBS_QUIRK_FETCH_1238 | IBS_QUIRK_FETCH_1347;

	for (int n = 0; n < N / 10; n++) {
		const struct ibs_cpu cpu = { .caps = caps, .quirks = n & 1 ? quirks : 0 };
		const __u64 ctl = random_register(n >> 1);
		const unsigned int i =
			IBS_LAYOUT_IDX(ibs_fetch_itlb(cpu, ctl), ibs_fetch_class(cpu, ctl));

		p->can[i] = true;
		p->hist[i] |= ibs_fetch_metric_valid(metric, cpu, ctl);
	}
}

/* A pair has words if registers can have it, and a histogram if its latency can be valid; no other has. */
static void test_layout(void **unused)
{
	static const __u32 caps[] = { ZEN3, ZEN4 };

	(void)unused;
	for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
		for (int m = 0; m < IBS_METRIC_N; m++) {
			struct pairs p = {};
			struct layout l;

			layout_init(&l, m, caps[k]);
			(ibs_metric_of_fetch(m) ? draw_fetches : draw_ops)(&p, m, caps[k]);
			for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
				assert_int_equal(layout_has(&l, i), p.can[i]);
				assert_int_equal(layout_has(&l, i) && l.entry[i] & IBS_LAYOUT_HIST,
						 p.hist[i]);
			}
		}
	}
}

/* --- ledgers --- */

static void check_line(const struct ledger *l, const char *event, bool json, const char *want)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	ledger_print_line(f, event, l, json);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static void test_ledger_line(void **unused)
{
	struct ledger l = { .seen = 1200 };

	(void)unused;
	l.outcome[IBS_OUTCOME_AGGREGATED] = 1000;
	l.outcome[IBS_OUTCOME_FILTERED_PID] = 150;
	l.outcome[IBS_OUTCOME_FILTERED_LAT] = 50;
	check_line(&l, NULL, false,
		   "seen 1,200 = aggregated 1,000 + filtered 200 (pid 150, latency 50) + lost 0; "
		   "unseen unknown\n");
	check_line(&l, NULL, true,
		   "{\"seen\":1200,\"aggregated\":1000,\"forwarded\":0,\"filtered\":{\"pid\":150,"
		   "\"latency\":50},"
		   "\"lost\":{},\"unseen\":null,\"dropped_by_hardware\":null,\"tagged_"
		   "undelivered\":null}\n");
	l.outcome[IBS_OUTCOME_FORWARDED] = 7;
	l.outcome[IBS_OUTCOME_LOST_NO_RAW] = 3;
	l.seen += 10;
	l.pmu_exact = l.dropped_known = l.undelivered_known = true;
	l.unseen = 4;
	check_line(&l, "ibs_op", false,
		   "ibs_op: seen 1,210 = aggregated 1,000 + forwarded 7 + filtered 200 (pid 150, "
		   "latency 50) + "
		   "lost 3 (no_raw 3); unseen 4\n");
	l.dropped = 5;
	l.undelivered = 6;
	check_line(&l, "ibs_op", true,
		   "{\"seen\":1210,\"aggregated\":1000,\"forwarded\":7,\"filtered\":{\"pid\":150,"
		   "\"latency\":50},"
		   "\"lost\":{\"no_raw\":3},\"unseen\":4,\"dropped_by_hardware\":5,\"tagged_"
		   "undelivered\":6,"
		   "\"event\":\"ibs_op\"}\n");
	check_line(&l, NULL, false,
		   "seen 1,210 = aggregated 1,000 + forwarded 7 + filtered 200 (pid 150, latency "
		   "50) + "
		   "lost 3 (no_raw 3); unseen 4; dropped by hardware 5; tagged, but not delivered "
		   "6\n");
}

/* As a member of an object, which other members can follow. */
static void test_ledger_member(void **unused)
{
	const struct ledger l = { .seen = 5, .outcome = { [IBS_OUTCOME_AGGREGATED] = 5 } };
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct json_writer w = { .f = f };

	(void)unused;
	assert_non_null(f);
	json_begin_object(&w, NULL);
	ledger_put(&w, &l);
	json_put_u64(&w, "next", 1);
	json_finish(&w);
	fclose(f);
	assert_string_equal(
		text, "{\"ledger\":{\"seen\":5,\"aggregated\":5,\"forwarded\":0,\"filtered\":{},"
		      "\"lost\":{},\"unseen\":null,\"dropped_by_hardware\":null,\"tagged_"
		      "undelivered\":null},\"next\":1}\n");
	free(text);
}

/* --- latencies of a series, as counted and with ops for samples --- */

static void test_latencies(void **unused)
{
	__u64 buckets[IBS_LAT_BUCKETS] = { [3] = 150, [10] = 50 };
	struct series s[] = { { .samples = 250,
				.valid = 200,
				.ops = 750,
				.sum = 1400,
				.cycles = 9000,
				.buckets = buckets },
			      { .samples = 5, .ops = 10 } };
	struct group g = { .series = s, .n_series = 2 };
	char *text, want[100];
	long low, high;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct json_writer w = { .f = f };

	(void)unused;
	assert_non_null(f);
	json_begin_object(&w, NULL);
	series_put_buckets(&w, &s[0]);
	json_finish(&w);
	fclose(f);
	snprintf(want, sizeof(want), "{\"buckets\":[[%u,150],[%u,50]]}\n", ibs_lat_le(3),
		 ibs_lat_le(10));
	assert_string_equal(text, want);
	free(text);
	assert_int_equal(series_percentile(&s[0], 0.75), ibs_lat_le(3));
	assert_int_equal(series_percentile(&s[0], 0.76), ibs_lat_le(10));
	assert_int_equal(series_percentile(&s[0], 0.999), -1); /* of 200 */
	/* 200 samples: the 138th to the 163rd bound the 150th */
	assert_true(series_percentile_interval(&s[0], 0.75, &low, &high));
	assert_true(low == ibs_lat_le(2) + 1 && high == ibs_lat_le(10));
	assert_true(series_percentile_interval(&s[0], 0.5, &low, &high));
	assert_true(low == 3 && high == 3);
	assert_false(series_percentile_interval(&s[0], 0.99, &low, &high));
	assert_false(series_percentile_interval(&s[1], 0.5, &low, &high));
	assert_true(series_mean(&s[0]) == 7 && series_counted(&s[0]) == 250);
	group_weigh_series(&g);
	assert_null(s[0].strata); /* all samples represent the same number of ops */
	g.weighted = true;
	group_weigh_series(&g);
	assert_true(series_in_bucket(&s[0], 3) == 450 && series_in_bucket(&s[0], 10) == 150);
	assert_true(series_in_bucket(&s[0], 4) == 0 && series_in_bucket(&s[1], 3) == 0);
	assert_true(series_percentile_interval(&s[0], 0.75, &low, &high));
	assert_true(low == 3 && high == ibs_lat_le(10));
	assert_int_equal(series_percentile(&s[0], 0.75), ibs_lat_le(3));
	assert_int_equal(series_percentile(&s[0], 0.76), ibs_lat_le(10));
	assert_true(series_mean(&s[0]) == 15 && series_counted(&s[0]) == 750);
	group_weigh_series(&g); /* once */
	assert_true(series_in_bucket(&s[0], 3) == 450);
	free(s[0].strata);
	free(s[1].strata);
}

/* Of what is pinned, two layouts are known, and of other files none. */
static void test_schema(void **state)
{
	static const struct {
		__u32 magic, schema;
		bool known;
	} rows[] = {
		{ IBS_PIN_MAGIC, IBS_PIN_SCHEMA, true },
		{ IBS_PIN_MAGIC, IBS_PIN_SCHEMA_BEFORE, true },
		{ IBS_PIN_MAGIC, IBS_PIN_SCHEMA + 1, false },
		{ IBS_PIN_MAGIC, IBS_PIN_SCHEMA_BEFORE - 1, false },
		{ IBS_PIN_MAGIC + 1, IBS_PIN_SCHEMA, false },
		{ 0, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct ibs_meta m = { .magic = rows[i].magic, .schema = rows[i].schema };

		assert_int_equal(ibs_pin_schema_known(&m), rows[i].known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample_in_progress), cmocka_unit_test(test_fold_in_progress),
		cmocka_unit_test(test_series_and_ledger),  cmocka_unit_test(test_layout),
		cmocka_unit_test(test_ledger_line),	   cmocka_unit_test(test_ledger_member),
		cmocka_unit_test(test_latencies),	   cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
