// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `top -i`: a recording as intervals, faster than it was, back in time, by function, and its instructions. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "annotate/annotate.h"
#include "base/array.h"
#include "base/clock.h"
#include "recording/recording.h"
#include "replay/replay.h"
#include "top/source.h"
#include "top/top_private.h"
#include "trace/tasks.h"

#define SECOND 1000000000ull
#define STEP   (SECOND / 10)
#define N      45 /* samples, one every tenth of a second */

static int fd;
static struct trace *trace;
static struct top_source *source;
static struct err err;
static __u64 out_ns;
static __u64 first, realtime; /* of the first sample, and four seconds before it */

/* Two functions that samples are of. */
static __attribute__((noinline)) int hot_one(int n)
{
	for (int i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(n));
	return n;
}

static __attribute__((noinline)) int hot_two(int n)
{
	return hot_one(n) + 1;
}

static int put_event(const struct trace_event *ev, void *arg, struct err *e)
{
	return recording_event(arg, ev, e);
}

/* Loads of two processes by turns, of two functions of this program by turns of three. */
static int record(void **state)
{
	static const struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/",
					      .op = true,
					      .period = 1000 };
	struct utsname machine;
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = 1,
				   .monotonic_ns = clock_ns(CLOCK_MONOTONIC),
				   .realtime_ns = realtime,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	struct recording_opts opts = { .info = &info };
	const __u32 self = getpid();
	struct task_choice choice = {};
	struct ledger ledger = { .seen = N };
	struct recording *r;

	(void)state;
	/* names come from the files that are here if it is of this boot */
	if (uname(&machine))
		return -1;
	strcpy(info.host, machine.nodename);
	strcpy(info.release, machine.release);
	first = info.monotonic_ns + 4 * SECOND;
	ledger.outcome[IBS_OUTCOME_FORWARDED] = N;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	opts.fd = fd = memfd_create("recording", 0);
	if (fd < 0 || recording_create(&opts, &r, &err))
		return -1;
	task_choice_init(&choice, &self, 1, false);
	if (task_events_now("", &choice, false, first - 1, put_event, r, &err))
		return -1;
	task_choice_free(&choice);
	for (unsigned int i = 0; i < N; i++) {
		const struct ibs_record rec = { .time = first + i * STEP,
						.tgid = i % 2 ? self : 1,
						.tid = i % 2 ? self : 1,
						.ip = i % 3 ? (uintptr_t)hot_two
							    : (uintptr_t)hot_one,
						.data3 = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
							 IBS_OP_DATA3_L2_MISS | 300ull << 32,
						.packed = ibs_record_pack(0, 2, 0) };

		if (recording_samples(r, &rec, NULL, 1, &err))
			return -1;
	}
	if (recording_finish(r, &ledger, &err))
		return -1;
	recording_close(r);
	return 0;
}

static void open_with(const struct replay_opts *opts, double speed)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(trace_open(path, &trace, &err), 0);
	source = source_recording(trace, opts, "name", speed, false);
}

static int close_all(void **state)
{
	(void)state;
	if (source)
		source->close(source);
	source = NULL;
	trace_close(trace);
	trace = NULL;
	return 0;
}

static void begin(double speed, unsigned int labels)
{
	open_with(&(struct replay_opts){ .metric = IBS_METRIC_DC_MISS_LAT }, speed);
	if (source->open(source, labels, &err))
		fail_msg("%s", err.text);
}

/* Samples of the next interval, which is to be @seconds long; -1: the end. */
static long next(double seconds)
{
	struct snapshot out = {};
	struct frame frame = {};
	long n;
	int ret = source->read(source, seconds, &out, &frame, &err);

	if (ret == 1)
		return -1;
	if (ret)
		fail_msg("%s", err.text);
	n = out.ledger.seen;
	out_ns = out.time_ns;
	assert_int_equal(frame.by, source->info.by);
	assert_int_equal(frame.period, 1000);
	assert_int_equal(frame.metric, IBS_METRIC_DC_MISS_LAT);
	assert_true(frame.end_ns > realtime);
	snapshot_free(&out);
	return n;
}

/* --- intervals --- */

static void test_info(void **state)
{
	const struct top_source_info *i;

	(void)state;
	begin(10, 1u << LABEL_PID);
	i = &source->info;
	assert_string_equal(i->origin, "name, 10x");
	assert_string_equal(i->hist.source, "replay");
	assert_string_equal(i->hist.event, "ibs_op/cnt_ctl=1/");
	assert_true(i->hist.simulated);
	assert_int_equal(i->hist.period, 1000);
	assert_int_equal(i->by, IBS_BY_PID);
	assert_false(i->ended);
	/* where CPUs are was not recorded */
	assert_int_equal(i->by_possible & (IBS_BY_COMPLEX | IBS_BY_NODE), 0);
	assert_int_equal(i->by_possible & IBS_BY_CPU, IBS_BY_CPU);
}

/* A tenth of a second is one of the recording, from its first sample on; the last interval ends with the last sample. */
static void test_intervals(void **state)
{
	(void)state;
	begin(10, 1u << LABEL_PID);
	/* the first sample is at the very beginning */
	assert_int_equal(next(0.1), 11);
	assert_int_equal(out_ns, SECOND);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(next(0.1), 10);
		assert_int_equal(out_ns, SECOND);
		assert_false(source->info.ended);
	}
	assert_int_equal(next(0.1), 4);
	assert_int_equal(out_ns, 4 * STEP);
	assert_true(source->info.ended);
	assert_int_equal(next(0.1), -1);
}

static void test_all(void **state)
{
	(void)state;
	begin(INFINITY, 1u << LABEL_PID);
	assert_int_equal(next(1), N);
	assert_int_equal(out_ns, (N - 1) * STEP);
	assert_true(source->info.ended);
}

static void test_end_time(void **state)
{
	struct snapshot out;
	struct frame frame;

	(void)state;
	begin(1, 1u << LABEL_PID);
	if (source->read(source, 1, &out, &frame, &err))
		fail_msg("%s", err.text);
	/* one second after the first sample */
	assert_int_equal(frame.end_ns, realtime + 5 * SECOND);
	assert_true(frame.cost == HISTORY_NO_COST);
	assert_int_equal(out.n_groups, 2);
	snapshot_free(&out);
}

/* With other groups it goes on where it was, or back as far as asked for, to its first sample. */
static void test_again(void **state)
{
	(void)state;
	begin(10, 1u << LABEL_PID);
	assert_int_equal(next(0.1), 11);
	assert_int_equal(next(0.1), 10);
	assert_int_equal(source->open(source, 1u << LABEL_CPU, &err), 0);
	assert_int_equal(source->info.by, IBS_BY_CPU);
	assert_int_equal(next(0.1), 10);
	source->back_ns = 2 * SECOND;
	assert_int_equal(source->open(source, 1u << LABEL_CPU, &err), 0);
	assert_int_equal(source->back_ns, 0);
	assert_int_equal(next(0.1), 10);
	assert_int_equal(next(0.1), 10);
	assert_int_equal(next(0.1), 10);
	assert_int_equal(next(0.1), 4);
	assert_true(source->info.ended);
	source->back_ns = (N - 1) * STEP;
	assert_int_equal(source->open(source, 1u << LABEL_CPU, &err), 0);
	assert_false(source->info.ended);
	assert_int_equal(next(0.1), 11);
}

/* --- functions --- */

static struct top *top;

static void screen_of_functions(void)
{
	top = top_new(&(struct top_opts){
		.labels = 1u << LABEL_SYMBOL, .info = &source->info, .host = "h" });
}

static void add_interval(double seconds)
{
	struct snapshot out;
	struct frame frame;

	assert_int_equal(source->read(source, seconds, &out, &frame, &err), 0);
	top_add(top, &out, &frame, source->name, source);
	snapshot_free(&out);
}

static void test_functions(void **state)
{
	struct snapshot out;
	struct frame frame;
	__u64 one = 0, two = 0, other = 0;

	(void)state;
	begin(INFINITY, 1u << LABEL_SYMBOL);
	if (source->read(source, 1, &out, &frame, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < out.n_groups; i++) {
		const struct group *g = &out.groups[i];
		const char *name = source->name(source, g->symbol, LABEL_SYMBOL);
		__u64 n = 0;

		for (size_t k = 0; k < g->n_series; k++)
			n += g->series[k].samples;
		if (!strcmp(name, "hot_one"))
			one += n;
		else if (!strcmp(name, "hot_two"))
			two += n;
		else
			other += n;
	}
	/* of this process, the odd ones: those that three divides, and the others */
	assert_int_equal(one, 7);
	assert_int_equal(two, 15);
	assert_int_equal(other, 23);
	snapshot_free(&out);
}

/* What was kept of it is read again with groups of other labels. */
static void test_read_again(void **state)
{
	(void)state;
	begin(10, 1u << LABEL_SYMBOL);
	screen_of_functions();
	add_interval(0.1);
	add_interval(0.2);
	assert_int_equal(history_n(top->history), 2);
	assert_int_equal(source_read_again(source, top, &err), 0);
	assert_int_equal(history_n(top->history), 2);
	assert_int_equal(history_frame(top->history, 0)->time_ns, 2 * SECOND);
	assert_int_equal(history_frame(top->history, 1)->time_ns, SECOND);
	assert_int_equal(next(0.1), 10);
	top_free(top);
}

static void test_annotate(void **state)
{
	struct annotate *a = NULL;

	(void)state;
	begin(INFINITY, 1u << LABEL_SYMBOL);
	screen_of_functions();
	add_interval(1);
	/* the row of most samples is that of the process without functions */
	for (int i = 0; i < 3 && (!top_function(top) || *top_function(top) == '['); i++)
		top_key(top, TOP_DOWN);
	assert_non_null(top_function(top));
	assert_memory_equal(top_function(top), "hot_", 4);
	if (source->annotate(source, top, &a, &err))
		fail_msg("%s", err.text);
	assert_non_null(a);
	/* its instructions, until a key leaves them */
	assert_true(a->n > 1);
	assert_int_equal(a->n_functions, 1);
	top_annotate(top, top_function(top), a);
	assert_int_equal(top->mode, TOP_FUNCTION);
	top_key(top, TOP_ESCAPE);
	assert_int_equal(top->mode, TOP_TABLE);
	for (int i = 0; i < 3 && *top_function(top) != '['; i++)
		top_key(top, TOP_UP);
	assert_int_equal(*top_function(top), '[');
	assert_int_equal(source->annotate(source, top, &a, &err), -ENOENT);
	assert_non_null(strstr(err.text, ": no function is known of these samples"));
	top_free(top);
}

static void test_no_instructions(void **state)
{
	struct annotate *a = NULL;

	(void)state;
	open_with(&(struct replay_opts){ .metric = IBS_METRIC_FETCH_LAT }, 1);
	screen_of_functions();
	assert_int_equal(source->annotate(source, top, &a, &err), -EINVAL);
	assert_string_equal(err.text, "the cost of an instruction is known from samples of ibs_op "
				      "only");
	top_free(top);
}

/* --- places --- */

static void listed(const struct places *p, int complex, int node, const struct cpulist *only,
		   const char *want)
{
	char text[32];

	if (places_list(p, complex, node, only, text, sizeof(text)) != (*want != 0))
		fail_msg("%d %d: not '%s'", complex, node, want);
	if (*want)
		assert_string_equal(text, want);
}

/* Six CPUs in three complexes of two nodes. */
static void test_places(void **state)
{
	static const struct trace_topology t = { .n = 6,
						 .ccx = { 0, 0, 1, 1, 2, 2 },
						 .node = { 1, 1, 1, 1, 0, 0 } };
	struct cpulist only = {};
	struct places p = {};
	char text[3];

	(void)state;
	places_of_recording(&p, &t);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.complexes, 3);
	assert_int_equal(p.cpus, 6);
	assert_int_equal(p.node[0], 1);
	assert_int_equal(p.node[1], 1);
	assert_int_equal(p.node[2], 0);
	listed(&p, -1, -1, NULL, "0-5");
	listed(&p, 1, -1, NULL, "2-3");
	listed(&p, -1, 1, NULL, "0-3");
	listed(&p, -1, 0, NULL, "4-5");
	listed(&p, 0, 0, NULL, "");
	listed(&p, 3, -1, NULL, "");
	cpulist_add(&only, 1);
	cpulist_add(&only, 4);
	listed(&p, -1, -1, &only, "1,4");
	listed(&p, -1, 1, &only, "1");
	listed(&p, 1, -1, &only, "");
	assert_false(places_list(&p, 1, -1, NULL, text, sizeof(text)));
	places_free(&p);
	assert_int_equal(p.n, 0);
	/* where it was not recorded there are none */
	places_of_recording(&p, NULL);
	assert_int_equal(p.n, 0);
}

#define T(f) cmocka_unit_test_teardown(f, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_info),	    T(test_intervals), T(test_all),
		T(test_end_time),   T(test_again),     T(test_functions),
		T(test_read_again), T(test_annotate),  T(test_no_instructions),
		T(test_places),
	};

	realtime = clock_ns(CLOCK_REALTIME);
	if (hot_two(1) != 1)
		return cmocka_run_group_tests(tests, record, NULL);
	return 1;
}
