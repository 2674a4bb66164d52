// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The watch of cgroup directories: its events, and the CPU time that they may take: 2 %, after a second at first. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "cgroup/cgroup_private.h"
#include "tree.h"

#define MS 1000000LL
#define S  (1000 * MS)

static struct cgroup_watch w;
static int dir = -1;

static int set_up(void **state)
{
	int ret = new_root(state);

	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cgroup_watch_open(&w);
	return ret || dir < 0 ? -1 : 0;
}

static int clean_up(void **state)
{
	close(dir);
	cgroup_watch_close(&w);
	assert_int_equal(cgroup_watch_fd(&w), -1);
	return remove_root(state);
}

static bool readable(int ms)
{
	struct pollfd p = { .fd = cgroup_watch_fd(&w), .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* Use so much CPU time, at least. */
static void burn(int64_t ns)
{
	const uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void make(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/%s/", name);
	put_dir(path);
}

static void test_events(void **state)
{
	char buf[4096] __attribute__((aligned(8)));
	const struct inotify_event *ev = (const struct inotify_event *)buf;
	int wd = cgroup_watch_add(&w, dir);
	size_t n;

	(void)state;
	assert_true(wd >= 0);
	assert_false(readable(0));
	assert_int_equal(cgroup_watch_read(&w, buf, sizeof(buf)), 0);
	make("a");
	assert_true(readable(0));
	n = cgroup_watch_read(&w, buf, sizeof(buf));
	assert_int_equal(n, sizeof(*ev) + ev->len);
	assert_int_equal(ev->wd, wd);
	assert_int_equal(ev->mask, IN_CREATE | IN_ISDIR);
	assert_string_equal(ev->name, "a");
	assert_false(readable(0));
	cgroup_watch_remove(&w, wd);
	cgroup_watch_read(&w, buf, sizeof(buf));
	make("b");
	assert_false(readable(0));
	/* what is no directory is not watched */
	put_file("/file", "");
	assert_true(cgroup_watch_add(&w, -1) < 0);
}

static void test_budget(void **state)
{
	int64_t before;

	(void)state;
	assert_true(cgroup_watch_begin(&w));
	assert_int_equal(w.budget_ns, S); /* a second, and never more */
	assert_false(cgroup_watch_spent(&w));
	burn(20 * MS);
	assert_false(cgroup_watch_spent(&w));
	cgroup_watch_end(&w);
	assert_in_range(w.budget_ns, S / 2, S - 20 * MS);
	/* 2 % of the time comes back */
	before = w.budget_ns;
	w.refilled_ns -= 500 * MS;
	assert_true(cgroup_watch_begin(&w));
	assert_in_range(w.budget_ns, before + 10 * MS, before + 100 * MS);
	cgroup_watch_end(&w);
	w.refilled_ns -= 3600 * S;
	assert_true(cgroup_watch_begin(&w));
	assert_int_equal(w.budget_ns, S);
	w.budget_ns = 5 * MS;
	assert_false(cgroup_watch_spent(&w));
	burn(6 * MS);
	assert_true(cgroup_watch_spent(&w));
	cgroup_watch_end(&w);
	assert_true(w.budget_ns <= -MS);
}

/* Without budget the watch is silent until there is some again. */
static void test_paused(void **state)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);

	(void)state;
	assert_true(cgroup_watch_add(&w, dir) >= 0);
	make("a");
	assert_true(readable(0));
	assert_true(cgroup_watch_begin(&w));
	w.budget_ns = 2 * MS;
	burn(4 * MS);
	cgroup_watch_end(&w);
	assert_false(cgroup_watch_begin(&w));
	assert_false(readable(0));
	make("b");
	assert_false(readable(0));
	assert_false(cgroup_watch_begin(&w));
	/* 2 ms too much are 100 ms, and as much for a beginning */
	assert_true(readable(20000));
	assert_true(clock_ns(CLOCK_MONOTONIC) - began >= 200 * MS);
	w.refilled_ns -= 10 * S;
	assert_true(cgroup_watch_begin(&w));
	assert_true(readable(0)); /* the events that waited */
	cgroup_watch_end(&w);
	assert_true(readable(0));
}

/* The numbers of files that a process without stdin gets are as good as others. */
static void test_without_stdin(void **state)
{
	int in = fcntl(0, F_DUPFD_CLOEXEC, 3);

	(void)state;
	cgroup_watch_close(&w);
	close(0);
	cgroup_watch_open(&w);
	if (w.inotify)
		fail_msg("0 is not the lowest number");
	assert_true(cgroup_watch_fd(&w) > 0);
	assert_true(cgroup_watch_add(&w, dir) >= 0);
	make("a");
	assert_true(readable(0));
	cgroup_watch_close(&w);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
}

/* Without files there is only the budget, and one warning. */
static void test_no_files(void **state)
{
	struct rlimit limit, few;
	char *text = NULL, buf[64];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	cgroup_watch_close(&w);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	log_to(f);
	for (unsigned int more = 0; more < 3; more++) {
		int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

		close(lowest);
		few = (struct rlimit){ lowest + more, limit.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		cgroup_watch_open(&w);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(cgroup_watch_fd(&w), -1);
		assert_int_equal(w.inotify, -1);
		assert_int_equal(w.timer, -1);
		assert_int_equal(cgroup_watch_add(&w, dir), -EBADF);
		assert_int_equal(cgroup_watch_read(&w, buf, sizeof(buf)), 0);
		assert_true(cgroup_watch_begin(&w));
		w.budget_ns = -S;
		cgroup_watch_end(&w);
		assert_false(cgroup_watch_begin(&w));
		fflush(f);
		assert_non_null(strstr(text, "cannot watch directories: Too many open files; "));
		assert_non_null(strstr(text, "max_user_instances or the limit of open files"));
		rewind(f);
	}
	log_to(NULL);
	fclose(f);
	free(text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_events),	       T(test_budget),	 T(test_paused),
		T(test_without_stdin), T(test_no_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
