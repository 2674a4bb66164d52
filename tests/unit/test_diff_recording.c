// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Comparisons of recordings: what samples add to which cause and row of which side. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "diff_result.h"
#include "made_recording.h"
#include "near.h"
#include "strata_recording.h"

#define PERIOD	1000
#define N	200	      /* samples of a recording */
#define STEP	100000000ull  /* ns between two of them */
#define FIRST	5000000000ull /* time of the first */
#define ROUNDS	20	      /* intervals are not looked at */
#define MISS	(IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS)
#define OF_DRAM 3 /* code of DataSrc */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { WEB = 1, DB, JOBS }; /* threads and cgroups */

static struct trace_info info;
static struct trace_pmu pmu;
static struct sampling_opts sampling;

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static int set_up(void **state)
{
	info = made_info();
	pmu = info.pmu[0];
	info.pmu = &pmu;
	d = (struct diff){ .per = DIFF_PER_OPS,
			   .metric = IBS_METRIC_DC_MISS_LAT,
			   .by = { LABEL_COMM },
			   .n_by = 1,
			   .causes = { LABEL_SRC, LABEL_OP },
			   .n_causes = 2 };
	sampling = (struct sampling_opts){};
	sampling.event[0].metric = IBS_METRIC_DC_MISS_LAT;
	return new_root(state);
}

/* --- recordings --- */

static void put_event(const struct trace_event *ev)
{
	if (recording_event(made, ev, &err))
		fail_msg("%s", err.text);
}

static void put_names(void)
{
	static const struct trace_event events[] = {
		{ .kind = TRACE_COMM, .time = 1, .comm = { WEB, WEB, .name = "web" } },
		{ .kind = TRACE_COMM, .time = 1, .comm = { DB, DB, .name = "db" } },
		{ .kind = TRACE_COMM, .time = 1, .comm = { JOBS, JOBS, .name = "jobs" } },
		{ .kind = TRACE_CGROUP,
		  .time = 1,
		  .cgroup = { WEB, "/kubepods.slice/pod01234567-0000-4000-8000-000000000000/" ID,
			      .container = "nginx", .pod = "web-0", .ns = "shop" } },
		{ .kind = TRACE_CGROUP,
		  .time = 1,
		  .cgroup = { DB, "/docker/" ID, .container = "postgres" } },
		{ .kind = TRACE_CGROUP, .time = 1, .cgroup = { JOBS, "/c" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		put_event(&events[i]);
}

/*
 * Samples in groups of four of one thread and cgroup, which take turns: a load from the L1, two from the L2 of 20 cycles,
 * and one from DRAM of @dram cycles.
 */
static const char *make(const char *name, unsigned int dram)
{
	static const __u64 data3[] = { IBS_OP_DATA3_LD_OP, MISS | 20ull << 32, MISS | 20ull << 32,
				       MISS | IBS_OP_DATA3_L2_MISS };

	made_begin(path_of(name), &info);
	put_names();
	for (unsigned int i = 0; i < N; i++) {
		const unsigned int who = WEB + i / 4 % 3;
		const struct ibs_record r = {
			.time = FIRST + i * STEP,
			.cgroup_id = who,
			.tgid = who,
			.tid = who,
			.ip = 0x1000,
			.data3 = data3[i % 4] | (i % 4 == 3 ? (__u64)dram << 32 : 0),
			.packed = ibs_record_pack(0, i % 4 == 3 ? OF_DRAM : 0, 0),
		};

		if (recording_samples(made, &r, NULL, 1, &err))
			fail_msg("%s", err.text);
		made_samples++;
	}
	assert_int_equal(made_end(), 0);
	made_samples = 0;
	return name;
}

static int read_into(enum compare_side side, const char *name, const struct diff_split *split)
{
	struct recorded in = { .input = { .file = path_of(name), .strata = RECORDED_WEIGHTS } };
	struct sampling_opts s = sampling;
	int ret;

	if (recorded_start(&in, &s, true, false, &err))
		fail_msg("%s", err.text);
	ret = split ? diff_add_split(&d, split, &in, &err)
		    : diff_add_recording(&d, side, &in, &err);
	recorded_close(&in);
	return ret;
}

static void start(void)
{
	compare_result_free(&result);
	result = (struct compare_result){};
	compare_free(d.compare);
	d.compare = compare_new(d.per == DIFF_PER_SECOND, ROUNDS);
}

static void compare(void)
{
	if (compare_finish(d.compare, &result, &err))
		fail_msg("%s", err.text);
}

static void compare_files(void)
{
	start();
	assert_int_equal(read_into(COMPARE_A, "a", NULL), 0);
	assert_int_equal(read_into(COMPARE_B, "b", NULL), 0);
	compare();
}

static void side_is(enum compare_side side, __u64 samples, __u64 valid, double base, double y)
{
	const struct compare_side_sum *s = &result.side[side];

	assert_int_equal(s->samples, samples);
	assert_int_equal(s->valid, valid);
	near(s->base, base);
	near(s->y, y);
}

static void term_is(const char *cause, enum compare_kind kind, double a, double b)
{
	for (size_t i = 0; i < result.n_terms; i++) {
		const struct compare_term *t = &result.term[i];

		if (t->kind != kind || strcmp(compare_cause_name(d.compare, t->cause), cause) != 0)
			continue;
		near(t->a, a);
		near(t->b, b);
		return;
	}
	fail_msg("no cause %s", cause);
}

static void row_is(const char *name, double a, double b)
{
	near(row(name)->a, a);
	near(row(name)->b, b);
}

/* --- two recordings --- */

static void test_per_ops(void **state)
{
	(void)state;
	make("a", 400);
	make("b", 600);
	compare_files();
	/* of four samples of 1,000 ops: 20 + 20 + 400 cycles */
	side_is(COMPARE_A, N, 150, N * PERIOD, 110);
	side_is(COMPARE_B, N, 150, N * PERIOD, 160);
	near(result.change.change, 50);
	term_is("dram load", COMPARE_OFTEN, .25, .25);
	term_is("dram load", COMPARE_COST, 400, 600);
	term_is("l2 load", COMPARE_OFTEN, .5, .5);
	term_is("l2 load", COMPARE_COST, 20, 20);
	/* 17, 17 and 16 groups of four */
	assert_int_equal(result.n_rows, 3);
	row_is("web", 110 * 17 / 50., 160 * 17 / 50.);
	row_is("jobs", 110 * 16 / 50., 160 * 16 / 50.);
	assert_int_equal(row("db")->valid, 2 * 3 * 17);
	/* of causes without a key there is one */
	d.n_causes = 0;
	compare_files();
	side_is(COMPARE_B, N, 150, N * PERIOD, 160);
}

static void test_per_access(void **state)
{
	(void)state;
	make("a", 400);
	d.per = DIFF_PER_ACCESS;
	/* what is per access needs no period */
	pmu.period = 0;
	make("b", 600);
	compare_files();
	side_is(COMPARE_A, N, 150, 150, 440 / 3.);
	side_is(COMPARE_B, N, 150, 150, 640 / 3.);
	term_is("dram load", COMPARE_OFTEN, 1 / 3., 1 / 3.);
	d.per = DIFF_PER_OPS;
	start();
	assert_int_equal(read_into(COMPARE_A, "a", NULL), 0);
	assert_int_equal(read_into(COMPARE_B, "b", NULL), -EAGAIN);
}

static void test_per_second(void **state)
{
	const double seconds = (N - 1) * STEP / 1e9;

	(void)state;
	make("a", 400);
	make("b", 600);
	d.per = DIFF_PER_SECOND;
	compare_files();
	near(result.side[COMPARE_A].seconds, seconds);
	side_is(COMPARE_A, N, 150, seconds, 110. * N * PERIOD / seconds);
	side_is(COMPARE_B, N, 150, seconds, 160. * N * PERIOD / seconds);
}

static void test_about(void **state)
{
	const struct diff_about *a = &d.about[COMPARE_A], *b = &d.about[COMPARE_B];

	(void)state;
	strcpy(info.host, "one");
	strcpy(info.release, "6.1");
	strcpy(info.filter, "--src dram");
	make("a", 400);
	strcpy(info.host, "two");
	info.simulated = info.has_cpu = false;
	strcpy(pmu.name, "ibs_op/l3missonly=1/");
	make("b", 600);
	d.per = DIFF_PER_ACCESS;
	compare_files();
	assert_string_equal(a->host, "one");
	assert_string_equal(a->release, "6.1");
	assert_string_equal(a->source, "sim");
	assert_string_equal(a->filter, "--src dram");
	assert_string_equal(a->cpu, "Zen 4");
	assert_string_equal(a->event, "ibs_op/cnt_ctl=1/");
	assert_string_equal(a->metric, "dc_miss_lat");
	assert_true(a->simulated);
	assert_false(a->hardware_filter);
	assert_false(a->counts);
	assert_int_equal(a->units, REPORT_OPS);
	assert_string_equal(b->host, "two");
	assert_string_equal(b->cpu, "");
	assert_string_equal(b->event, "ibs_op/l3missonly=1/");
	assert_false(b->simulated);
	assert_true(b->hardware_filter);
	assert_int_equal(b->units, REPORT_CYCLES);
	/* the event of the other kind was not sampled */
	d.about[COMPARE_A] = (struct diff_about){};
	sampling.event[0].metric = IBS_METRIC_FETCH_LAT;
	assert_int_equal(read_into(COMPARE_A, "a", NULL), 0);
	assert_string_equal(a->host, "one");
	assert_string_equal(a->event, "");
}

/* A container by its whole name, or the path of a cgroup that is in none. */
static void test_containers(void **state)
{
	(void)state;
	make("a", 400);
	make("b", 600);
	d.by_container = true;
	compare_files();
	assert_int_equal(result.n_rows, 3);
	row_is("shop/web-0/nginx", 110 * 17 / 50., 160 * 17 / 50.);
	row_is("postgres", 110 * 17 / 50., 160 * 17 / 50.);
	row_is("/c", 110 * 16 / 50., 160 * 16 / 50.);
}

/* Keys that samples do not have. */
static void test_unknown(void **state)
{
	(void)state;
	make("a", 400);
	make("b", 600);
	d.causes[0] = LABEL_COMM;
	d.causes[1] = LABEL_CONTAINER;
	compare_files();
	term_is("web nginx", COMPARE_COST, 440 / 3., 640 / 3.);
	term_is("jobs unknown", COMPARE_COST, 440 / 3., 640 / 3.);
}

/* --- two parts of one recording --- */

struct counted {
	unsigned int n;
	__u64 first, last;
};

static void count(void *ctx, const struct trace_event *ev)
{
	struct counted *c = ctx;

	c->first = c->n++ ? c->first : ev->time;
	c->last = ev->time;
}

static void test_split(void **state)
{
	struct counted now = { 0 };
	struct diff_split split = { .from_ns = FIRST + 80 * STEP,
				    .until_ns = FIRST + 180 * STEP,
				    .now = count,
				    .ctx = &now };

	(void)state;
	make("a", 400);
	start();
	assert_int_equal(read_into(COMPARE_A, "a", &split), 0);
	assert_int_equal(now.n, 100);
	assert_int_equal(now.first, split.from_ns);
	assert_int_equal(now.last, split.until_ns - STEP);
	assert_string_equal(d.about[COMPARE_A].host, info.host);
	assert_string_equal(d.about[COMPARE_B].event, "ibs_op/cnt_ctl=1/");
	assert_string_equal(d.about[COMPARE_B].metric, "dc_miss_lat");
	/* too few for a result */
	assert_int_equal(compare_finish(d.compare, &result, &err), -ENODATA);
}

/* Only one container of another comparison: its samples, in both parts. */
static void test_split_of_container(void **state)
{
	const char *const name[] = { "postgres" };
	struct counted now = { 0 };
	struct diff of = d;
	struct diff_split split = { .from_ns = FIRST + N / 2 * STEP,
				    .until_ns = FIRST + N * STEP,
				    .of = &of,
				    .now = count,
				    .ctx = &now };

	(void)state;
	make("a", 400);
	of.compare = compare_new(false, ROUNDS);
	split.row = compare_row(of.compare, name, 1);
	start();
	assert_int_equal(read_into(COMPARE_A, "a", &split), 0);
	/* groups 25, 28 ... 49 */
	assert_int_equal(now.n, 4 * 9);
	compare_free(of.compare);
}

/* --- strata --- */

static void make_strata(const char *name, unsigned int slices, struct sr_truth *truth)
{
	const int fd = open(path_of(name), O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(sr_write(fd, slices, slices, STRATUM_FULL, true, truth), 0);
	close(fd);
}

/* From the beginning of the first slice to the end of the last one. */
static double seconds_of(const char *name)
{
	const struct trace_slice *slice;
	struct trace *t;
	double seconds;
	size_t n;

	if (trace_open(path_of(name), &t, &err))
		fail_msg("%s", err.text);
	slice = trace_slices(t, &n);
	seconds = (slice[n - 1].end - 1000) / 1e9;
	trace_close(t);
	return seconds;
}

/* About as many cycles per op as there were, and blocks of slices: of a window each if there are enough, else of two. */
static void test_strata(void **state)
{
	struct sr_truth truth[2];

	(void)state;
	make_strata("a", 13 * STRATA_WINDOW + 5, &truth[0]);
	make_strata("b", 40, &truth[1]);
	compare_files();
	for (int i = 0; i < 2; i++) {
		const struct compare_side_sum *side = &result.side[i];
		const double ops = truth[i].ops[SR_DRAM] + truth[i].ops[SR_OTHER],
			     cycles = truth[i].cycles[SR_DRAM] + truth[i].cycles[SR_OTHER];

		assert_int_equal(side->samples, truth[i].samples[0] + truth[i].samples[1]);
		assert_true(fabs(side->y / (cycles / ops) - 1) < .15);
		assert_true(fabs(side->base / ops - 1) < .15);
		near(side->seconds, seconds_of(i ? "b" : "a"));
	}
	assert_int_equal(result.side[COMPARE_A].blocks, 13);
	assert_int_equal(result.side[COMPARE_B].blocks, 20);
	/* all samples of strata have a weight, also per access */
	d.per = DIFF_PER_ACCESS;
	compare_files();
	assert_true(result.side[COMPARE_A].base > 100. * truth[0].samples[0]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_per_ops), T(test_per_access),	     T(test_per_second),
		T(test_about),	 T(test_containers),	     T(test_unknown),
		T(test_split),	 T(test_split_of_container), T(test_strata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
