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
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want);
}

static const struct rank_member *next(struct rank_meeting *m)
{
	struct pollfd p = { .fd = rank_meeting_fd(m), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
	return rank_meeting_ended(m);
}

static bool is_zombie(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return true;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	fclose(f);
	return state == 'Z';
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

/* As rank_meeting.c sends it. */
struct hello {
	unsigned int magic, rank, pid;
	char regions[RANK_REGIONS_MAX];
};

#define MAGIC	0x32534249
#define ALARM_S 60 /* ends a child that nobody answers */

/* A socket for the address that rank_meeting_open() binds. */
static int socket_of(const struct mpi_rank *r, struct sockaddr_un *a, socklen_t *len)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*len = offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "ibscope-ranks/%u/%s", geteuid(),
			r->job);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* Connect as no rank does: with this message, as another user, or without a message. */
static pid_t stranger(const struct mpi_rank *own, struct hello h, size_t n, bool other_user)
{
	const pid_t pid = fork();
	struct sockaddr_un a;
	socklen_t len;
	char c;
	int fd;

	if (pid)
		return pid;
	alarm(ALARM_S);
	fd = socket_of(own, &a, &len);
	if (other_user && setuid(65534))
		_exit(98);
	while (connect(fd, (void *)&a, len))
		poll(NULL, 0, 1);
	if (n)
		send(fd, &h, n, MSG_NOSIGNAL);
	else
		shutdown(fd, SHUT_WR);
	/* closed without a message */
	_exit(recv(fd, &c, 1, 0) > 0);
}

/* Who is not a rank of the job is refused, and does not count. */
static void test_strangers(void **unused)
{
	const struct mpi_rank own = rank(0, 2);
	const struct hello good = { .magic = MAGIC, .rank = 1, .pid = 1001 };
	struct hello bad = good;
	struct err err = { "" };
	struct rank_meeting *m;
	size_t said_n, n;
	pid_t pid[5];
	int n_pid = 0;
	char *said;
	FILE *f = open_memstream(&said, &said_n);

	(void)unused;
	bad.magic++;
	pid[n_pid++] = stranger(&own, bad, sizeof(bad), false);
	pid[n_pid++] = stranger(&own, good, sizeof(good) - 1, false);
	pid[n_pid++] = stranger(&own, good, 0, false);
	if (!geteuid())
		pid[n_pid++] = stranger(&own, good, sizeof(good), true);
	/* the rank joins when all of them are gone */
	pid[n_pid] = fork();
	if (!pid[n_pid]) {
		for (int i = 0; i < n_pid; i++)
			while (!kill(pid[i], 0) && !is_zombie(pid[i]))
				poll(NULL, 0, 1);
		rank_wait(rank_join(&own, 1001, "", &err));
		_exit(0);
	}
	log_to(f);
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	log_to(NULL);
	fclose(f);
	rank_meeting_members(m, &n);
	assert_int_equal(n, 1);
	rank_meeting_close(m);
	for (int i = 0; i <= n_pid; i++)
		exits(pid[i], 0);
	n = 0;
	for (const char *s = said; (s = strstr(s, "refused a connection from a process that is not "
						  "a rank of this job\n"));
	     s++)
		n++;
	assert_int_equal(n, n_pid);
	/* all ranks are there */
	assert_null(strstr(said, "did not connect"));
	free(said);
}

/* A process of another user has taken the name: nothing is announced to it. */
static void test_other_user(void **unused)
{
	const struct mpi_rank own = rank(1, 2);
	struct err err = { "" };
	struct sockaddr_un a;
	socklen_t len;
	int fd, up[2];
	pid_t pid;
	char c;

	(void)unused;
	if (geteuid()) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		alarm(ALARM_S);
		fd = socket_of(&own, &a, &len);
		if (setuid(65534) || bind(fd, (void *)&a, len) || listen(fd, 1))
			_exit(98);
		close(up[1]);
		fd = accept(fd, NULL, NULL);
		_exit(recv(fd, &c, 1, 0) != 0);
	}
	close(up[1]);
	assert_int_equal(read(up[0], &c, 1), 0);
	close(up[0]);
	assert_int_equal(rank_join(&own, 1, "", &err), -EPERM);
	assert_string_equal(err.text,
			    "the collecting process on this node belongs to another user");
	exits(pid, 0);
}

/* The launcher is the process at the other end of the socket that it left to us. */
static void test_launcher_socket(void **unused)
{
	struct mpi_rank own = rank(0, 1);
	struct rank_meeting *m;
	struct err err = { "" };
	char want[100];
	int sv[2];

	(void)unused;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	own.job[0] = 0;
	own.launcher_fd = sv[0];
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	assert_int_equal(rank_meeting_open(&own, &m, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "@ibscope-ranks/%u/launcher-%d ", geteuid(), getpid());
	assert_non_null(strstr(err.text, want));
	rank_meeting_close(m);
	close(sv[0]);
	close(sv[1]);
}

/* A rank whose command failed stays until sampling has ended, the others leave at once. */
static void test_leave(void **unused)
{
	int sv[2], status = 0;
	pid_t pid;

	(void)unused;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	rank_leave(sv[0], 0);
	assert_int_equal(recv(sv[1], &status, sizeof(status), 0), sizeof(status));
	assert_int_equal(status, 0);
	assert_int_equal(recv(sv[1], &status, sizeof(status), 0), 0);
	close(sv[1]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	pid = fork();
	if (!pid) {
		close(sv[1]);
		rank_leave(sv[0], 9);
		_exit(fcntl(sv[0], F_GETFD) != -1);
	}
	close(sv[0]);
	assert_int_equal(recv(sv[1], &status, sizeof(status), 0), sizeof(status));
	assert_int_equal(status, 9);
	/* it waits for the end of sampling */
	assert_int_equal(recv(sv[1], &status, sizeof(status), MSG_DONTWAIT), -1);
	assert_int_equal(send(sv[1], "", 1, MSG_NOSIGNAL), 1);
	exits(pid, 0);
	close(sv[1]);
}

/* The name of a directory that fills its place is complete. */
static void test_regions(void **unused)
{
	const struct mpi_rank own = rank(0, 2), other = rank(1, 2);
	const struct rank_member *all;
	char regions[RANK_REGIONS_MAX];
	struct rank_meeting *m;
	struct err err = { "" };
	pid_t pid;
	size_t n;

	(void)unused;
	memset(regions, 'r', sizeof(regions));
	regions[sizeof(regions) - 1] = 0;
	pid = fork();
	if (!pid)
		_exit(!rank_wait(rank_join(&other, 1, regions, &err)));
	assert_int_equal(rank_meeting_open(&own, &m, &err), 0);
	all = rank_meeting_members(m, &n);
	assert_int_equal(n, 1);
	assert_string_equal(all[0].regions, regions);
	rank_meeting_close(m);
	exits(pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three),	      cmocka_unit_test(test_gone),
		cmocka_unit_test(test_ends),	      cmocka_unit_test(test_alone),
		cmocka_unit_test(test_too_late),      cmocka_unit_test(test_launcher),
		cmocka_unit_test(test_without_stdin), cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_other_user),    cmocka_unit_test(test_launcher_socket),
		cmocka_unit_test(test_leave),	      cmocka_unit_test(test_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
