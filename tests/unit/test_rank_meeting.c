// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ranks of a job on one node, as processes of this test: they join, wait, and leave, or do not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "task/rank_meeting.h"

static bool hurry; /* each look at the clock takes two seconds */

int clock_gettime(clockid_t clock, struct timespec *out)
{
	static time_t ahead;
	const int ret = (int)syscall(SYS_clock_gettime, clock, out);

	out->tv_sec += hurry ? ahead += 2 : 0;
	return ret;
}

static struct mpi_rank rank(unsigned int number, unsigned int locals)
{
	struct mpi_rank r = { .rank = number, .locals = locals, .launcher_fd = -1 };

	snprintf(r.job, sizeof(r.job), "test-%d", getpid());
	return r;
}

/* A process that joins as a rank, and leaves with a status; -1: without one */
static pid_t member(struct mpi_rank own, int status, unsigned int exits)
{
	const pid_t pid = fork();
	struct err err;
	int fd;

	if (pid)
		return pid;
	fd = rank_join(&own, 1000 + (int)own.rank, own.rank == 1 ? "/regions" : "", &err);
	if (fd < 0 || !rank_wait(fd))
		_exit(99);
	if (status >= 0)
		rank_leave(fd, status);
	_exit((int)exits);
}

static void exits(pid_t pid, int want)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), want);
}

static const struct rank_member *next(struct rank_meeting *m)
{
	struct pollfd p = { .fd = rank_meeting_fd(m), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
	return rank_meeting_ended(m);
}

static void test_three(void **unused)
{
	const struct mpi_rank own = rank(0, 3);
	const pid_t first = member(rank(1, 3), 0, 11), second = member(rank(2, 3), 7 << 8, 12);
	const struct rank_member *all, *one;
	struct rank_meeting *m;
	bool seen[3] = {};
	struct err err;
	size_t n;

	(void)unused;
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	all = rank_meeting_members(m, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_in_range(all[i].rank, 1, 2);
		assert_int_equal(all[i].pid, 1000 + all[i].rank);
		assert_string_equal(all[i].regions, all[i].rank == 1 ? "/regions" : "");
	}
	assert_null(rank_meeting_ended(m));
	assert_false(rank_meeting_over(m));
	rank_meeting_start(m);
	for (int i = 0; i < 2; i++) {
		one = next(m);
		assert_non_null(one);
		assert_true(one->ended && one->has_status);
		assert_int_equal(one->status, one->rank == 1 ? 0 : 7 << 8);
		seen[one->rank] = true;
		assert_int_equal(rank_meeting_over(m), i);
	}
	assert_true(seen[1] && seen[2]);
	assert_null(rank_meeting_ended(m));
	exits(first, 11);
	rank_meeting_close(m);
	exits(second, 12);
}

/* One that is gone has no status. */
static void test_gone(void **unused)
{
	const struct mpi_rank own = rank(0, 2);
	const pid_t pid = member(rank(1, 2), -1, 13);
	const struct rank_member *one;
	struct rank_meeting *m;
	struct err err;

	(void)unused;
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	rank_meeting_start(m);
	one = next(m);
	assert_non_null(one);
	assert_true(one->ended);
	assert_false(one->has_status);
	assert_true(rank_meeting_over(m));
	rank_meeting_close(m);
	exits(pid, 13);
}

/* A meeting that ends lets the commands start, and one whose first rank is gone does not. */
static void test_ends(void **unused)
{
	const struct mpi_rank own = rank(0, 2);
	struct rank_meeting *m;
	struct err err;
	pid_t pid = member(rank(1, 2), -1, 14);

	(void)unused;
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	rank_meeting_close(m);
	exits(pid, 14);
	rank_meeting_close(NULL);
	assert_true(rank_meeting_over(NULL));
	assert_int_equal(rank_meeting_fd(NULL), -1);
	pid = fork();
	if (!pid) {
		rank_meeting_open(&own, &m, &err);
		_exit(0);
	}
	exits(member(rank(1, 2), -1, 15), 99);
	exits(pid, 0);
}

/* A rank alone does not wait; there is one meeting of a job. */
static void test_alone(void **unused)
{
	const struct mpi_rank own = rank(0, 1);
	struct rank_meeting *m, *other = NULL;
	struct err err = { "" };
	char want[200];
	size_t n = 7;

	(void)unused;
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	rank_meeting_members(m, &n);
	assert_int_equal(n, 0);
	assert_true(rank_meeting_over(m));
	assert_int_equal(rank_meeting_open(&own, &other, &err), -EADDRINUSE);
	assert_null(other);
	snprintf(want, sizeof(want),
		 "cannot listen at @ibscope-ranks/%u/%s for the other ranks of this node: another "
		 "rank already collects for this job",
		 geteuid(), own.job);
	assert_string_equal(err.text, want);
	rank_meeting_close(m);
}

static void test_too_late(void **unused)
{
	struct mpi_rank own = rank(0, 3);
	char *said;
	size_t said_n, n;
	FILE *f = open_memstream(&said, &said_n);
	struct rank_meeting *m;
	struct err err = { "" };

	(void)unused;
	hurry = true;
	log_to(f);
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	log_to(NULL);
	fclose(f);
	rank_meeting_members(m, &n);
	assert_int_equal(n, 0);
	assert_non_null(strstr(
		said,
		"2 of 3 ranks of this node did not connect within 10 s: they are not sampled\n"));
	free(said);
	rank_meeting_close(m);
	assert_int_equal(rank_join(&own, 1, "", &err), -ETIMEDOUT);
	assert_string_equal(err.text, "the first rank of this node is not collecting: start all "
				      "ranks with `ibscope record --per-rank`");
	hurry = false;
}

/* Without a job's name, ranks of one launcher meet: here that of this process. */
static void test_launcher(void **unused)
{
	struct mpi_rank own = rank(0, 1);
	struct rank_meeting *m;
	struct err err = { "" };
	char want[100];

	(void)unused;
	own.job[0] = 0;
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	assert_int_equal(rank_meeting_open(&own, &m, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "@ibscope-ranks/%u/launcher-%d ", geteuid(), getppid());
	assert_non_null(strstr(err.text, want));
	rank_meeting_close(m);
}

/* The lowest number of a file is as good as others, where stdin is closed. */
static void test_without_stdin(void **unused)
{
	const struct mpi_rank own = rank(0, 1);
	const int in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	struct rank_meeting *m = NULL;
	struct err err = { "" };
	int ret;

	(void)unused;
	close(0);
	ret = rank_meeting_open(&own, &m, &err);
	rank_meeting_close(m);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_string_equal(err.text, "");
	assert_int_equal(ret, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three),	      cmocka_unit_test(test_gone),
		cmocka_unit_test(test_ends),	      cmocka_unit_test(test_alone),
		cmocka_unit_test(test_too_late),      cmocka_unit_test(test_launcher),
		cmocka_unit_test(test_without_stdin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
