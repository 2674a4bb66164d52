// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What one sample adds to a row: its period, what it waited for, what a fetch tells, and whose recording it is of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/report_print.h"

#define CAPS 0xbffu /* Zen 4 */

static struct trace_pmu pmu;
static struct trace_info info;
static struct trace_event ev;
static enum report_unit unit;

static int begin(void **state)
{
	(void)state;
	pmu = (struct trace_pmu){ .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
	info = (struct trace_info){ .host = "one", .pmu = &pmu, .n_pmus = 1 };
	ev = (struct trace_event){ .kind = TRACE_SAMPLE_OP, .time = 2000 };
	ev.sample.op.cpu.caps = CAPS;
	ev.sample.op.nregs = IBS_OP_REG_FIXED;
	ev.sample.op.present = (1u << IBS_OP_REG_FIXED) - 1;
	return 0;
}

static void period_is(__u64 want, enum report_unit what)
{
	unit = 0;
	assert_int_equal(report_period(&info, &ev, &unit), want);
	assert_int_equal(unit, what);
}

static void test_period(void **state)
{
	__u64 *ctl = &ev.sample.op.reg[IBS_OP_CTL];

	(void)state;
	period_is(1000, REPORT_OPS);
	strcpy(pmu.name, "ibs_op//");
	period_is(1000, REPORT_CYCLES);
	pmu.freq = true;
	period_is(0, REPORT_CYCLES);
	/* the registers say it: bits of 16 ops, bit 19 counts ops */
	info.full_registers = true;
	*ctl = 1 << 19 | 0x100;
	period_is(0x1000, REPORT_OPS);
	*ctl = 0x100;
	period_is(0x1000, REPORT_CYCLES);
	pmu.filtered = true;
	period_is(0, REPORT_CYCLES);
	pmu.filtered = pmu.freq = false;
	period_is(1000, REPORT_CYCLES); /* that of the event comes first */
	pmu.filtered = true;
	period_is(0, REPORT_CYCLES);
	pmu.filtered = false;
	pmu.period = 0;
	period_is(0x1000, REPORT_CYCLES);
	ev.sample.op.present &= ~(1u << IBS_OP_CTL);
	period_is(0, REPORT_CYCLES);
	/* an event that is not known */
	ev.sample.pmu = 1;
	strcpy(pmu.name, "ibs_op/cnt_ctl=1/");
	pmu.period = 1000;
	period_is(0, REPORT_CYCLES);
}

static void test_period_of_fetches(void **state)
{
	(void)state;
	strcpy(pmu.name, "ibs_fetch//");
	ev.kind = TRACE_SAMPLE_FETCH;
	ev.sample.fetch = (struct ibs_fetch_sample){ .cpu.caps = CAPS, .present = 7 };
	ev.sample.fetch.reg[IBS_FETCH_CTL] = 0x200;
	period_is(1000, REPORT_FETCHES);
	pmu.freq = true;
	period_is(0x2000, REPORT_FETCHES);
	pmu.filtered = true;
	period_is(0, REPORT_FETCHES);
}

/* Samples of strata have weights, and their event says of what. */
static void test_weights(void **state)
{
	struct trace_pmu both[] = { pmu, pmu };

	(void)state;
	both[0].reach = 1;
	info.pmu = both;
	info.n_pmus = 2;
	ev.sample.weight = 1234.6;
	period_is(1235, REPORT_OPS);
	strcpy(both[1].name, "ibs_op//");
	ev.sample.pmu = 1;
	period_is(1235, REPORT_CYCLES);
}

#define LOAD (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 300ull << 32)

static struct report_wait wait_of(__u64 data2, __u64 period)
{
	struct report_wait w = { 0 };

	ev.sample.op.reg[IBS_OP_DATA2] = data2;
	ev.sample.op.reg[IBS_OP_DATA3] = LOAD;
	assert_true(report_wait(IBS_METRIC_DC_MISS_LAT, &ev.sample, period, &w));
	return w;
}

static void test_wait(void **state)
{
	struct report_wait w = wait_of(3, 10);

	(void)state;
	assert_int_equal(w.lat, 300);
	assert_int_equal(w.cycles, 3000);
	assert_int_equal(w.src, IBS_SRC_DRAM);
	assert_true(w.known && !w.cached && !w.has_state && !w.hitm);
	w = wait_of(3, 0); /* without a period, the latency */
	assert_int_equal(w.cycles, 300);
	w = wait_of(2, 10);
	assert_int_equal(w.src, IBS_SRC_NEAR_CACHE);
	assert_true(w.known && w.cached && w.has_state && w.hitm);
	w = wait_of(2 | IBS_OP_DATA2_OWNED, 10);
	assert_true(w.cached && w.has_state && !w.hitm);
	ev.sample.op.cpu.quirks = IBS_QUIRK_NO_CACHE_HIT_ST;
	w = wait_of(2, 10);
	assert_true(w.cached && !w.has_state && !w.hitm);
	w = wait_of(4, 10); /* reserved */
	assert_true(!w.known && !w.cached);
	ev.sample.op.present &= ~(1u << IBS_OP_DATA2);
	w = wait_of(3, 10);
	assert_int_equal(w.src, IBS_SRC_NONE);
	assert_false(w.known);
	ev.sample.op.present &= ~(1u << IBS_OP_DATA3);
	assert_false(report_wait(IBS_METRIC_DC_MISS_LAT, &ev.sample, 10, &w));
}

static struct report_table t;
static struct report *r;

static void report(const char *by, enum ibs_metric metric)
{
	struct report_opts opts = {
		.metric = metric, .cpus = true, .threads = true, .info = &info
	};

	assert_int_equal(report_keys_parse(by, opts.by, &opts.n_by, NULL), 0);
	assert_int_equal(report_new(&opts, &r, NULL), 0);
}

static void add(void)
{
	assert_int_equal(report_add(r, &ev), 0);
}

static void finish(void)
{
	assert_int_equal(report_table(r, &(struct report_order){ .sort = TABLE_SAMPLES }, &t), 0);
}

static void end(void)
{
	report_table_free(&t);
	report_free(r);
}

/* Sources of what ops waited for; when the last one was. */
static void test_ops(void **state)
{
	static const struct {
		__u64 data2;
		unsigned int n;
	} loads[] = { { 3, 5 }, { 3 | IBS_OP_DATA2_RMT_NODE, 2 }, { 2, 3 }, { 5, 1 }, { 4, 4 } };

	(void)state;
	info.realtime_ns = 5000000;
	info.monotonic_ns = 500;
	report("op", IBS_METRIC_DC_MISS_LAT);
	ev.sample.has_time = true;
	for (size_t i = 0; i < 5; i++)
		for (unsigned int k = 0; k < loads[i].n; k++) {
			ev.sample.op.reg[IBS_OP_DATA2] = loads[i].data2;
			ev.sample.op.reg[IBS_OP_DATA3] = LOAD;
			ev.time = 2000 - i;
			add();
		}
	ev.sample.has_time = false;
	ev.time = 9999;
	add();
	finish();
	assert_int_equal(t.n, 1);
	assert_int_equal(t.total.samples, 16);
	assert_int_equal(t.total.cycles, 16 * 300000);
	assert_int_equal(t.total.known, 11 * 300000);
	assert_int_equal(t.total.dram, 7 * 300000);
	assert_int_equal(t.total.remote, 3 * 300000);
	assert_int_equal(t.total.hitm, 4 * 300000);
	assert_int_equal(t.total.cached, 4);
	assert_int_equal(t.total.stateful, 4);
	assert_int_equal(t.total.valid_ops, 16000);
	assert_int_equal(t.total.last, 5000000 + 2000 - 500);
	end();
	/* the time of day is not known */
	info.realtime_ns = 0;
	report("op", IBS_METRIC_DC_MISS_LAT);
	ev.sample.has_time = true;
	add();
	finish();
	assert_int_equal(t.total.last, 0);
	end();
}

static void fetch(__u64 ctl, __u32 caps, unsigned int n)
{
	ev.sample.fetch.cpu.caps = caps;
	ev.sample.fetch.reg[IBS_FETCH_CTL] = ctl | 50ull << 32;
	while (n--)
		add();
}

/* What missed the caches, walked page tables, or did not complete. */
static void test_fetches(void **state)
{
	const __u64 done = IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_IC_MISS,
		    missed = done | IBS_FETCH_CTL_L2_MISS | IBS_FETCH_CTL_L3_MISS;

	(void)state;
	strcpy(pmu.name, "ibs_fetch//");
	ev.kind = TRACE_SAMPLE_FETCH;
	ev.sample.fetch = (struct ibs_fetch_sample){ .present = 7 };
	report("event", IBS_METRIC_FETCH_LAT);
	fetch(done | IBS_FETCH_CTL_PHY_VALID, CAPS, 5); /* from the L2 cache */
	fetch(missed | IBS_FETCH_CTL_PHY_VALID, CAPS, 4);
	fetch(missed & ~IBS_FETCH_CTL_L3_MISS, CAPS & ~IBS_CAPS_ZEN4, 3); /* before Zen 4 */
	fetch(missed & ~IBS_FETCH_CTL_L3_MISS, CAPS, 1);		  /* from the L3 cache */
	fetch(done | IBS_FETCH_CTL_L1TLB_MISS, CAPS, 2);		  /* from the L2 TLB */
	fetch(done | IBS_FETCH_CTL_L1TLB_MISS | IBS_FETCH_CTL_L2TLB_MISS | IBS_FETCH_CTL_PHY_VALID,
	      CAPS, 1);
	fetch(IBS_FETCH_CTL_IC_MISS, CAPS, 2); /* did not complete */
	finish();
	assert_int_equal(t.total.samples, 18);
	assert_int_equal(t.total.valid, 16);
	assert_int_equal(t.total.sum, 16 * 50);
	assert_int_equal(t.total.cycles, 16 * 50000);
	assert_int_equal(t.total.known, 16 * 50000);
	assert_int_equal(t.total.dram, 7 * 50000);
	assert_int_equal(t.total.translated, 5 + 4 + 2 + 1);
	assert_int_equal(t.total.walks, 1);
	assert_int_equal(t.total.aborted, 2);
	assert_int_equal(t.total.units, REPORT_FETCHES);
	assert_string_equal(t.estimated_unit, "fetches");
	end();
	/* without the register there is no latency */
	report("event", IBS_METRIC_FETCH_LAT);
	ev.sample.fetch.present = 6;
	fetch(done, CAPS, 1);
	finish();
	assert_int_equal(t.total.valid, 0);
	end();
	/* a refill needs the other register, and a miss of the first level */
	report("event", IBS_METRIC_ITLB_REFILL_LAT);
	ev.sample.fetch.reg[IBS_FETCH_EXTD] = 70;
	ev.sample.fetch.present = 7;
	fetch(done | IBS_FETCH_CTL_L1TLB_MISS, CAPS, 1);
	ev.sample.fetch.present = 15;
	fetch(done, CAPS, 1);
	fetch(done | IBS_FETCH_CTL_L1TLB_MISS, CAPS, 1);
	finish();
	assert_int_equal(t.total.samples, 3);
	assert_int_equal(t.total.valid, 1);
	assert_int_equal(t.total.sum, 70);
	end();
}

/* CPUs and threads of another recording are other ones; texts stay. */
static void test_parts(void **state)
{
	struct trace_info other = info;

	(void)state;
	strcpy(other.host, "two");
	ev.sample.has_cpu = ev.sample.has_task = true;
	ev.sample.cpu = 3;
	ev.sample.tgid = ev.sample.tid = 9;
	report("event", IBS_METRIC_DC_MISS_LAT);
	add();
	add();
	report_part_end(r);
	report_part(r, &other, NULL, NULL);
	add();
	ev.sample.cpu = 4;
	add();
	finish();
	assert_int_equal(t.rows[0].samples, 4);
	assert_int_equal(t.rows[0].cpus, 3);
	assert_int_equal(t.rows[0].threads, 2);
	end();
	report("host", IBS_METRIC_DC_MISS_LAT);
	add();
	report_part(r, &other, NULL, NULL);
	add();
	add();
	finish();
	assert_int_equal(t.n, 2);
	assert_string_equal(t.rows[0].label[0], "two");
	assert_string_equal(t.rows[1].label[0], "one");
	end();
}

static const char *order_of(const struct report_order *order)
{
	static char names[64];

	*names = 0;
	assert_int_equal(report_table(r, order, &t), 0);
	for (size_t i = 0; i < t.n; i++)
		strcat(strcat(names, i ? " " : ""), t.rows[i].label[0] ?: "-");
	report_table_free(&t);
	return names;
}

/* By a column, by the key, and what of few samples comes last or is left out. */
static void test_order(void **state)
{
	static const struct {
		unsigned int cpu, n, lat;
	} samples[] = {
		{ 2, 25, 300 }, { 10, 19, 600 }, { 1, 30, 100 }, { 3, 40, 0 }, { 4, 30, 100 }
	};

	(void)state;
	report("cpu", IBS_METRIC_DC_MISS_LAT);
	ev.sample.has_cpu = true;
	for (size_t i = 0; i < 5; i++)
		for (unsigned int k = 0; k < samples[i].n; k++) {
			ev.sample.cpu = samples[i].cpu;
			ev.sample.op.reg[IBS_OP_DATA3] =
				samples[i].lat
					? (LOAD & ~(0xffffull << 32)) | (__u64)samples[i].lat << 32
					: IBS_OP_DATA3_LD_OP;
			add();
		}
	ev.sample.has_cpu = false;
	ev.sample.op.reg[IBS_OP_DATA3] = 0;
	add();
	assert_string_equal(order_of(&(struct report_order){ .sort = TABLE_CYCLES }),
			    "10 2 1 4 3 -");
	assert_string_equal(order_of(&(struct report_order){ .sort = TABLE_SAMPLES }),
			    "3 1 4 2 10 -");
	assert_string_equal(order_of(&(struct report_order){ .sort = TABLE_MEAN }), "10 2 1 4 3 -");
	assert_string_equal(order_of(&(struct report_order){ .by_key = true }), "1 2 3 4 10 -");
	assert_string_equal(order_of(&(struct report_order){ .sort = TABLE_CYCLES, .top = 2 }),
			    "10 2");
	assert_string_equal(
		order_of(&(struct report_order){ .sort = TABLE_CYCLES, .min_samples = 25 }),
		"2 1 4 3");
	assert_string_equal(
		order_of(&(struct report_order){ .sort = TABLE_CYCLES, .weak_last = true }),
		"2 1 4 10 3 -");
	assert_string_equal(
		order_of(&(struct report_order){ .sort = TABLE_SAMPLES, .weak_last = true }),
		"3 1 4 2 10 -");
	assert_string_equal(order_of(&(struct report_order){ .by_key = true, .weak_last = true }),
			    "1 2 3 4 10 -");
	/* rows without miss cycles are added up */
	assert_string_equal(
		order_of(&(struct report_order){ .sort = TABLE_CYCLES, .fold_few = true }),
		"10 2 1 4");
	report_free(r);
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_period), T(test_period_of_fetches), T(test_weights), T(test_wait),
		T(test_ops),	T(test_fetches),	   T(test_parts),   T(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
