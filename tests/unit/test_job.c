// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recordings of an MPI job: which are left out, and what is said of their jobs, clocks, ranks and deaths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "input/job.h"
#include "logged.h"

#define S 1000000000ull

static struct trace_job *job;

static int begin(void **unused)
{
	(void)unused;
	job = trace_job_new();
	log_begin();
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	log_end();
	trace_job_free(job);
	trace_job_free(NULL);
	return 0;
}

/* A recording of ranks @from to before @to, of a job of @ranks; it began @s seconds after 1000 s. */
static struct trace_info made(const char *id, unsigned int ranks, double s)
{
	struct trace_info info = { .job_ranks = ranks,
				   .realtime_ns = 1000 * S + (__u64)(s * 1e9),
				   .monotonic_ns = 7 * S };

	snprintf(info.job, sizeof(info.job), "%s", id);
	snprintf(info.host, sizeof(info.host), "host-%.0f", s);
	return info;
}

static bool add_dead(const char *name, struct trace_info info, __u32 from, __u32 to, bool ended,
		     int status)
{
	struct tasks *t = tasks_new();
	bool in;

	for (__u32 r = from; r < to; r++) {
		const struct trace_event ev = { .kind = TRACE_RANK,
						.time = 1,
						.rank = { 100 + r, r, ended, status } };

		tasks_add(t, &ev);
	}
	in = trace_job_add(job, name, &info, t);
	tasks_free(t);
	return in;
}

static bool add(const char *name, struct trace_info info, __u32 from, __u32 to)
{
	return add_dead(name, info, from, to, false, 0);
}

static void test_complete(void **unused)
{
	(void)unused;
	assert_true(add("a", made("1", 8, 0), 0, 4));
	assert_int_equal(trace_job_ranks(job), 4);
	assert_true(add("b", made("1", 8, 9), 4, 8));
	assert_int_equal(trace_job_ranks(job), 8);
	assert_true(trace_job_complete(job));
	said_is("");
}

static void test_missing(void **unused)
{
	(void)unused;
	assert_true(add("a", made("1", 20, 0), 12, 14));
	assert_true(add("b", made("1", 20, 1), 3, 4));
	assert_true(add("c", made("1", 20, 2), 5, 6));
	assert_false(trace_job_complete(job));
	said_is("16 of 20 ranks of the job are missing from the recordings: 0-2,4,6-11,14-19\n");
}

/* The first and the last ones; a rank beyond the job says nothing. */
static void test_ends(void **unused)
{
	(void)unused;
	assert_true(add("a", made("1", 3, 0), 1, 2));
	assert_true(add("b", made("1", 3, 1), 7, 8));
	assert_false(trace_job_complete(job));
	said_is("2 of 3 ranks of the job are missing from the recordings: 0,2\n");
}

/* Ten gaps are in the message; a job may have 4 billion ranks. */
static void test_many_gaps(void **unused)
{
	(void)unused;
	for (__u32 i = 0; i < 9; i++)
		add("a", made("1", 4000000000u, 0.001 * i), 2 * i + 1, 2 * i + 2);
	assert_false(trace_job_complete(job));
	said_is(": 0,2,4,6,8,10,12,14,16,18-3999999999\n");
	add("a", made("1", 4000000000u, 1), 19, 20);
	assert_false(trace_job_complete(job));
	said_is("3999999990 of 4000000000 ranks of the job are missing from the recordings: "
		"0,2,4,6,8,10,12,14,16,18,..\n");
}

/* Without ranks, nothing is missing. */
static void test_no_job(void **unused)
{
	(void)unused;
	assert_true(trace_job_complete(job));
	assert_true(add("a", made("", 0, 0), 0, 0));
	assert_true(add("b", made("", 0, 100), 0, 0));
	assert_true(trace_job_complete(job));
	assert_int_equal(trace_job_ranks(job), 0);
	said_is("");
}

static void test_other_job(void **unused)
{
	(void)unused;
	add("a", made("1", 4, 0), 0, 1);
	add("b", made("2", 4, 0.001), 1, 2);
	said_is("b belongs to MPI job '2' with 4 ranks, a to '1' with 4: they are added up "
		"anyway\n");
	add("c", made("3", 4, 0.002), 2, 3); /* once is enough */
	said_is("");
}

static void test_other_size(void **unused)
{
	(void)unused;
	add("a", made("1", 4, 0), 0, 1);
	add("b", made("1", 5, 0.001), 1, 2);
	said_is("b belongs to MPI job '1' with 5 ranks, a to '1' with 4");
}

/* Starts that are more than ten seconds apart, in either order. */
static void test_clocks(void **unused)
{
	struct trace_info unknown = made("1", 4, 0);

	(void)unused;
	add("a", made("1", 4, 20), 0, 1);
	add("b", made("1", 4, 30), 1, 2);
	add("c", made("1", 4, 10), 2, 3);
	unknown.realtime_ns = 0;
	add("d", unknown, 4, 5);
	said_is("");
	add("e", made("1", 4, 9), 5, 6);
	said_is("recordings of one job start 11 s apart, a of host host-20 and e of host host-9: "
		"the clocks of their hosts differ, or "
		"ranks started late; times are not adjusted\n");
	add("f", made("1", 4, 60), 6, 7);
	said_is("");
}

static void test_late(void **unused)
{
	(void)unused;
	add("a", made("1", 4, 0), 0, 1);
	add("b", made("1", 4, 12), 1, 2);
	said_is("start 12 s apart, a of host host-0 and b of host host-12: ");
}

/* The same recording, or a rank that is there already. */
static void test_duplicates(void **unused)
{
	struct trace_info unknown = made("1", 4, 0), other = made("1", 4, 0);

	(void)unused;
	assert_true(add("a", made("1", 4, 0), 0, 2));
	assert_false(add("b", made("1", 4, 0), 2, 4));
	said_is("b is the same recording as a: left out\n");
	assert_false(add("c", made("1", 4, 1), 1, 3));
	said_is("c: rank 1 is already in a: left out\n");
	assert_int_equal(trace_job_ranks(job), 2);
	/* the rank of another job, another host at the same time, another time of the host, and an unknown one */
	assert_true(add("d", made("2", 4, 2), 0, 1));
	strcpy(other.host, "other");
	assert_true(add("e", other, 2, 3));
	other = made("1", 4, 0);
	other.realtime_ns++;
	assert_true(add("f", other, 3, 4));
	other = made("1", 4, 0);
	other.monotonic_ns++;
	assert_true(add("g", other, 4, 5));
	unknown.monotonic_ns = 0;
	assert_true(add("h", unknown, 5, 6));
	assert_true(add("i", unknown, 6, 7));
	logged();
	assert_false(trace_job_complete(job)); /* two were left out */
	said_is("");
}

static void test_deaths(void **unused)
{
	(void)unused;
	add_dead("a", made("1", 4, 0), 0, 1, true, 0);
	add_dead("b", made("1", 4, 1), 1, 2, false, 9);
	said_is("");
	add_dead("c", made("1", 4, 2), 2, 3, true, 9);
	said_is("c: rank 2 of host host-2 was killed by signal 9\n");
	add_dead("d", made("1", 4, 3), 3, 4, true, 3 << 8);
	said_is("d: rank 3 of host host-3 failed with exit status 3\n");
	assert_true(trace_job_complete(job));
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_complete), T(test_missing),    T(test_ends),	  T(test_many_gaps),
		T(test_no_job),	  T(test_other_job),  T(test_other_size), T(test_clocks),
		T(test_late),	  T(test_duplicates), T(test_deaths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
