// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bandwidth of containers from emulated resctrl directories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include <fcntl.h>

#include "open_files.h"
#include "machine/machine.h"
#include "resctrl/resctrl.h"
#include "tree.h"

#define A     "aaaaaaaaaaaa"
#define B     "bbbbbbbbbbbb"
#define REST  "0123456789abcdef0123456789abcdef0123456789abcdef0123"
#define TOP   "/sys/fs/resctrl/"
#define COUNT 10 /* readings between two looks at the tasks */

static struct resctrl *r;
static double now;

static void put(const char *text, const char *fmt, ...)
{
	char path[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	put_file(path, text);
}

static void task(unsigned int tid, const char *container)
{
	char text[256];

	snprintf(text, sizeof(text), "0::%s%s%s\n", container ? "/docker-" : "/system.slice",
		 container ?: "", container ? REST ".scope" : "");
	put(text, "/proc/%u/cgroup", tid);
}

/* @group: "" or "NAME/", "NAME/mon_groups/NAME/" */
static void group(const char *name, const char *tasks)
{
	put(tasks, TOP "%stasks", name);
	put("\n", TOP "%scpus_list", name);
}

static void counter(const char *name, int l3, const char *file, const char *text)
{
	put(text, TOP "%smon_data/mon_L3_%02d/%s", name, l3, file);
}

static void total(const char *name, int l3, double bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%.0f\n", bytes);
	counter(name, l3, "mbm_total_bytes", text);
}

static int files;

/* Two L3 with the ids 5 and 8: complexes 0 and 1. Containers A, of tasks 10 and 11, and B, of 20. */
static int set_up(void **state)
{
	char path[128];
	int ret = new_root(state);

	files = open_files();
	now = 100;
	put("0-3\n", "/sys/devices/system/cpu/possible");
	for (int cpu = 0; cpu < 4; cpu++)
		put(cpu < 2 ? "5\n" : "8\n", "/sys/devices/system/cpu/cpu%d/cache/index3/id", cpu);
	put("25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/proc/self/mountinfo");
	put_dir("/sys/fs/cgroup/");
	put_dir("/proc/self/ns/");
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	assert_return_code(symlink("pid:[4026531836]", path), 0);
	task(1, NULL);
	task(10, A);
	task(11, A);
	task(20, B);
	group("", "1\n");
	put("0-3\n", TOP "cpus_list");
	put_dir(TOP "info/L3_MON/");
	put_dir(TOP "mon_groups/");
	return ret;
}

static int clean_up(void **state)
{
	resctrl_close(r);
	r = NULL;
	assert_int_equal(open_files(), files);
	return remove_root(state);
}

static void next(bool last)
{
	resctrl_read(r, now++, last);
}

static void open_it(void)
{
	r = resctrl_open(root);
	assert_non_null(r);
	next(false);
}

static struct resctrl_figures of(const char *container, unsigned int complex)
{
	struct resctrl_figures f = {};

	resctrl_of(r, container, complex, &f);
	return f;
}

static unsigned int known(const char *container)
{
	return of(container, 0).of[RESCTRL_TOTAL].readings;
}

/* A grows by 1 GB/s on L3 5 for two seconds. Return: readings that are known at the end. */
static unsigned int two_seconds(const char *name)
{
	total(name, 5, 1e9);
	open_it();
	next(false);
	total(name, 5, 2e9);
	next(false);
	total(name, 5, 3e9);
	next(true);
	return known(A);
}

static void test_good(void **state)
{
	struct resctrl_figures f;
	char text[128];
	size_t all, owned;

	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, 7e9);
	total("a/", 8, 50);
	counter("a/", 5, "llc_occupancy", "1048576\n");
	open_it();
	next(false); /* the first rate is unknown */
	total("a/", 5, 8e9);
	next(false);
	total("a/", 5, 20.3e9);
	counter("a/", 5, "llc_occupancy", "3145728\n");
	assert_false(resctrl_of(r, A, 0, &f));
	next(true);
	assert_true(resctrl_of(r, A, 0, &f));
	assert_int_equal(f.of[RESCTRL_TOTAL].readings, 2);
	assert_float_equal(f.of[RESCTRL_TOTAL].peak, 12.3e9, 1);
	assert_float_equal(f.of[RESCTRL_TOTAL].sum, 13.3e9, 1);
	assert_int_equal(f.of[RESCTRL_LOCAL].readings, 0);
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "12.3 GB/s of memory traffic, 3.0 MiB of the L3");
	/* known zero */
	assert_true(resctrl_of(r, A, 1, &f));
	assert_int_equal(f.of[RESCTRL_TOTAL].readings, 2);
	assert_float_equal(f.of[RESCTRL_TOTAL].peak, 0, 0);
	assert_false(resctrl_of(r, B, 0, &f));
	assert_false(resctrl_of(r, A, 2, &f));
	resctrl_groups(r, &all, &owned);
	assert_int_equal(all, 2);
	assert_int_equal(owned, 1);
}

/* Text instead of a number is unknown, and so is the rate after it; a counter that falls, too. */
static void test_unavailable(void **state)
{
	static const char *const bad[] = {
		"Unavailable\n", "Unassigned\n",	   "Error\n", "", "-1\n", "1 2\n", "0x10\n",
		"1000000K\n",	 "99999999999999999999\n", "5\n"
	};

	(void)state;
	group("a/", "10\n11\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		total("a/", 5, 1e9);
		open_it();
		next(false);
		total("a/", 5, 2e9);
		next(false);
		counter("a/", 5, "mbm_total_bytes", bad[i]);
		next(false);
		total("a/", 5, 9e18);
		next(false);
		next(true);
		/* the second, and the last, in which nothing happened */
		assert_int_equal(known(A), 2);
		assert_float_equal(of(A, 0).of[RESCTRL_TOTAL].peak, 1e9, 1);
		resctrl_close(r);
	}
	counter("a/", 5, "mbm_total_bytes", "Unavailable\n");
	open_it();
	next(false);
	next(true);
	assert_int_equal(known(A), 0);
}

static void test_shared(void **state)
{
	(void)state;
	group("a/", "10\n11\n20\n");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	/* with the host */
	group("a/", "1\n10\n11\n");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	/* partly in the root */
	group("a/", "10\n");
	group("", "1\n11\n");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	/* a task that has ended is nobody's */
	group("a/", "10\n11\n12\n");
	group("", "1\n");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	/* CPUs count the tasks of the root */
	put("2\n", TOP "a/cpus_list");
	assert_int_equal(two_seconds("a/"), 0);
}

/* A control group counts the groups in it, too; the root lists their tasks. */
static void test_inside(void **state)
{
	(void)state;
	group("", "1\n10\n11\n20\n");
	group("mon_groups/a/", "10\n11\n");
	assert_int_equal(two_seconds("mon_groups/a/"), 2);
}

static void test_not_counted_twice(void **state)
{
	(void)state;
	group("a/", "10\n11\n");
	group("a/mon_groups/b/", "10\n");
	total("a/mon_groups/b/", 5, 1);
	assert_int_equal(two_seconds("a/"), 2);
	assert_float_equal(of(A, 0).of[RESCTRL_TOTAL].peak, 1e9, 1);
}

static void test_sum_of_groups(void **state)
{
	(void)state;
	group("a/", "10\n");
	group("b/", "11\n");
	total("b/", 5, 4);
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	/* one of them unknown: so is the sum */
	counter("b/", 5, "mbm_total_bytes", "Unavailable\n");
	assert_int_equal(two_seconds("a/"), 0);
}

static void test_vanished(void **state)
{
	char from[128], to[128];

	(void)state;
	group("a/", "10\n11\n");
	snprintf(from, sizeof(from), "%s" TOP "a", root);
	snprintf(to, sizeof(to), "%s/gone", root);
	total("a/", 5, 1e9);
	open_it();
	next(false);
	total("a/", 5, 2e9);
	for (int i = 2; i < COUNT; i++)
		next(false);
	assert_int_equal(known(A), 0);
	next(false);
	assert_int_equal(known(A), COUNT - 1);
	assert_return_code(rename(from, to), 0);
	group("a/", "10\n11\n");
	total("a/", 5, 9e9);
	next(false);
	next(true);
	assert_int_equal(known(A), COUNT - 1);
	assert_float_equal(of(A, 0).of[RESCTRL_TOTAL].peak, 1e9, 1);
}

/* The last reading comes soon after the one before: it would have a false peak. */
static void test_short(void **state)
{
	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, 1e9);
	open_it();
	next(false);
	total("a/", 5, 2e9);
	next(false);
	total("a/", 5, 3e9);
	resctrl_read(r, now - 0.999, true);
	assert_int_equal(known(A), 1);
	assert_float_equal(of(A, 0).of[RESCTRL_TOTAL].peak, 1e9, 1);
}

/* The tasks are another container's in the end: nobody knows since when. */
static void test_moved(void **state)
{
	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, 1e9);
	open_it();
	next(false);
	next(false);
	group("a/", "20\n");
	next(true);
	assert_int_equal(known(A), 0);
	assert_int_equal(known(B), 0);
}

static void test_hostile(void **state)
{
	static const char *const tasks[] = { "0\n", "-1\n",	    "x\n", "10 \n",
					     "10",  "4294967306\n", "\n" };
	char path[256], link[256];
	struct resctrl_figures f;

	(void)state;
	for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++) {
		group("a/", tasks[i]);
		assert_int_equal(two_seconds("a/"), 0);
		resctrl_close(r);
	}
	group("a/", "10\n11\n");
	/* names, a pipe for a file, a link for a directory */
	group(".\x1b[31m\n%s/", "20\n");
	put("1\n", TOP "a/mon_data/mon_L3_99999999999999999999/mbm_total_bytes");
	put("1\n", TOP "a/mon_data/mon_L3_-5/mbm_total_bytes");
	put("1\n", TOP "a/mon_data/mon_L3_/mbm_total_bytes");
	put("Unavailable\n", TOP "a/mon_data/mon_sub_L3_05/mbm_total_bytes");
	snprintf(path, sizeof(path), "%s" TOP "a/mon_data/mon_L3_05/mbm_local_bytes", root);
	assert_return_code(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s" TOP "a", root);
	snprintf(link, sizeof(link), "%s" TOP "link", root);
	assert_return_code(symlink(path, link), 0);
	assert_int_equal(two_seconds("a/"), 2);
	assert_false(resctrl_of(r, A, 1, &f)); /* no domain is of this complex */
	resctrl_close(r);
	/* its tasks are unknown: anybody may have some in it */
	snprintf(path, sizeof(path), "%s" TOP "pipe/tasks", root);
	put_dir(TOP "pipe/");
	assert_return_code(mkfifo(path, 0600), 0);
	assert_int_equal(two_seconds("a/"), 0);
}

static void test_huge(void **state)
{
	char name[32], *text = malloc(8 << 20);
	size_t all, owned;

	(void)state;
	group("a/", "10\n11\n");
	memset(text, '1', (8 << 20) - 1);
	text[(8 << 20) - 1] = 0;
	group("b/", text);
	free(text);
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	group("b/", "20\n");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	for (int i = 0; i < 1100; i++) {
		snprintf(name, sizeof(name), "g%d/", i);
		group(name, "");
	}
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_groups(r, &all, &owned);
	assert_in_range(all, 1, 1024);
}

/* As many as are looked at, all in the root; the others are not known. */
static void test_huge_inside(void **state)
{
	char name[32];
	size_t all, owned;

	(void)state;
	for (int i = 0; i < 1100; i++) {
		snprintf(name, sizeof(name), "mon_groups/g%d/", i);
		group(name, "");
	}
	open_it();
	resctrl_groups(r, &all, &owned);
	assert_int_equal(all, 1024);
	assert_int_equal(owned, 0);
}

/* A process without stdin gets 0 as the number of a directory. */
static void test_without_stdin(void **state)
{
	const int in = fcntl(0, F_DUPFD_CLOEXEC, 3);

	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, 1e9);
	r = resctrl_open(root);
	assert_non_null(r);
	close(0);
	next(false);
	next(false);
	total("a/", 5, 2e9);
	next(true);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_int_equal(known(A), 1);
}

/* The same where there is nothing to be read: the directory that was opened is closed. */
static void test_absent_without_stdin(void **state)
{
	const int in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	char path[128], aside[128];

	(void)state;
	snprintf(path, sizeof(path), "%s" TOP "tasks", root);
	assert_return_code(unlink(path), 0);
	close(0);
	assert_null(resctrl_open(root));
	assert_int_equal(fcntl(0, F_GETFD), -1);
	snprintf(path, sizeof(path), "%s" TOP, root);
	snprintf(aside, sizeof(aside), "%s/aside", root);
	assert_return_code(rename(path, aside), 0);
	assert_null(resctrl_open(root));
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
}

/* A file that has more than text is not believed. */
static void test_no_text(void **state)
{
	char path[256];
	FILE *f;

	(void)state;
	group("a/", "10\n11\n");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	snprintf(path, sizeof(path), "%s" TOP "a/tasks", root);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite("10\n11\n\0", 1, 7, f), 7);
	fclose(f);
	assert_int_equal(two_seconds("a/"), 0);
}

static void test_absent(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	assert_return_code(unlink(path), 0);
	assert_return_code(symlink("pid:[4026532000]", path), 0);
	assert_null(resctrl_open(root));
	unlink(path);
	assert_null(resctrl_open(root));
	assert_return_code(symlink("pid:[4026531836]", path), 0);
	r = resctrl_open(root);
	assert_non_null(r);
	resctrl_close(r);
	snprintf(path, sizeof(path), "%s" TOP "tasks", root);
	unlink(path);
	r = resctrl_open(root);
	assert_null(r);
}

/* A control group that several containers share, with groups in it; what is counted nowhere makes figures too low. */
static void test_inside_named(void **state)
{
	size_t all, owned;

	(void)state;
	task(21, B);
	group("c/", "10\n11\n20\n21\n");
	group("c/mon_groups/a/", "10\n11\n");
	group("c/mon_groups/b/", "20\n");
	total("c/mon_groups/b/", 5, 7);
	assert_int_equal(two_seconds("c/mon_groups/a/"), 2);
	assert_int_equal(known(B), 0);
	resctrl_groups(r, &all, &owned);
	assert_int_equal(all, 4);
	assert_int_equal(owned, 2);
	resctrl_close(r);
	group("c/mon_groups/b/", "20\n21\n");
	assert_int_equal(two_seconds("c/mon_groups/a/"), 2);
	assert_int_equal(known(B), 2);
	resctrl_close(r);
	/* a task of the host that no group counts is nobody's */
	group("c/", "1\n10\n11\n20\n21\n");
	assert_int_equal(two_seconds("c/mon_groups/a/"), 2);
	assert_int_equal(known(B), 2);
	resctrl_close(r);
	/* of a group without "tasks" nothing is known; its container has all its tasks elsewhere */
	put_dir(TOP "c/mon_groups/odd/");
	assert_int_equal(two_seconds("c/mon_groups/a/"), 2);
	resctrl_groups(r, &all, &owned);
	assert_int_equal(all, 4);
}

/* Figures of all readings in which the groups were the same. */
static void test_sums(void **state)
{
	struct resctrl_figures f;
	double bytes = 5e9;

	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, bytes);
	open_it();
	next(false);
	for (int i = 2; i <= 2 * COUNT; i++) {
		bytes += i <= COUNT ? i * 1e6 : 1e6;
		total("a/", 5, bytes);
		next(false);
	}
	/* 2 + .. + 10, and ten times 1 */
	f = of(A, 0);
	assert_int_equal(f.of[RESCTRL_TOTAL].readings, 19);
	assert_float_equal(f.of[RESCTRL_TOTAL].sum, 64e6, 1);
	assert_float_equal(f.of[RESCTRL_TOTAL].peak, 10e6, 1);
}

/* Rates are per second; the L3's occupancy is not a rate. Of groups of one container both are added up. */
static void test_measures(void **state)
{
	struct resctrl_figures f;

	(void)state;
	group("a/", "10\n");
	group("b/", "11\n");
	counter("a/", 5, "mbm_local_bytes", "1000\n");
	counter("b/", 5, "mbm_local_bytes", "0\n");
	counter("a/", 5, "llc_occupancy", "2097152\n");
	counter("b/", 5, "llc_occupancy", "1048576\n");
	open_it();
	next(false);
	counter("a/", 5, "mbm_local_bytes", "7000\n");
	counter("b/", 5, "mbm_local_bytes", "40\n");
	resctrl_read(r, now + 3, true); /* four seconds after the last one */
	assert_true(resctrl_of(r, A, 0, &f));
	assert_int_equal(f.of[RESCTRL_TOTAL].readings, 0);
	assert_int_equal(f.of[RESCTRL_LOCAL].readings, 1);
	assert_float_equal(f.of[RESCTRL_LOCAL].sum, 1510, 0.01);
	assert_int_equal(f.of[RESCTRL_OCCUPANCY].readings, 2);
	assert_float_equal(f.of[RESCTRL_OCCUPANCY].peak, (double)(3 << 20), 0);
	assert_float_equal(f.of[RESCTRL_OCCUPANCY].sum, (double)(6 << 20), 0);
}

/* Half a second is enough, less is not; ten terabytes per second are not believed. */
static void test_bounds(void **state)
{
	(void)state;
	group("a/", "10\n11\n");
	total("a/", 5, 0);
	open_it();
	next(false);
	total("a/", 5, 4e6);
	resctrl_read(r, now - 0.5, false);
	total("a/", 5, 8e6);
	resctrl_read(r, now - 0.0625, false);
	total("a/", 5, 8e6 + 5e12);
	resctrl_read(r, now, false);
	total("a/", 5, 8e6 + 5e12 + 9.9e12);
	resctrl_read(r, now + 1, true);
	/* the second one came too early, and the third one, which has the bytes of both, is not plausible */
	assert_int_equal(known(A), 2);
	assert_float_equal(of(A, 0).of[RESCTRL_TOTAL].sum, 8e6 + 9.9e12, 1e3);
}

static void test_figures_as_text(void **state)
{
	struct resctrl_figures f = {};
	char text[128] = "x";

	(void)state;
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "");
	f.of[RESCTRL_LOCAL].readings = 1;
	f.of[RESCTRL_LOCAL].peak = 1e9;
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "");
	f.of[RESCTRL_OCCUPANCY].readings = 1;
	f.of[RESCTRL_OCCUPANCY].peak = 1.5 * 1048576;
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "1.5 MiB of the L3");
	f.of[RESCTRL_TOTAL].readings = 1;
	f.of[RESCTRL_TOTAL].peak = 2.5e9;
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "2.5 GB/s of memory traffic, 1.5 MiB of the L3");
	f.of[RESCTRL_OCCUPANCY].readings = 0;
	resctrl_text(&f, text, sizeof(text));
	assert_string_equal(text, "2.5 GB/s of memory traffic");
}

/* Tasks that end while they are read belong to no container; one that cannot be read may belong to any. */
static void test_tasks(void **state)
{
	(void)state;
	put_dir("/proc/12/");
	put("0::/docker-" B REST ".scope (deleted)\n", "/proc/13/cgroup");
	group("a/", "10\n11\n12\n13\n");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	group("a/", "10\n11\n14\n");
	put("", "/proc/14");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	group("a/", "10\n11\n15\n");
	put("1:cpu:/docker-" A REST ".scope\n", "/proc/15/cgroup");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	/* numbers of tasks */
	task(9, A);
	task(2147483647, A);
	group("a/", "9\n10\n11\n2147483647\n");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	group("b/", "2147483648\n");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	group("b/", "01\n");
	assert_int_equal(two_seconds("a/"), 0);
	resctrl_close(r);
	group("b/", "");
	assert_int_equal(two_seconds("a/"), 2);
}

static void test_pod(void **state)
{
	static const char pod[] = "/kubepods.slice/"
				  "kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/";
	struct resctrl_figures f;
	char text[300];

	(void)state;
	snprintf(text, sizeof(text), "0::%scri-containerd-" A REST ".scope\n", pod);
	put(text, "/proc/30/cgroup");
	group("p/", "30\n");
	two_seconds("p/");
	assert_true(resctrl_of(r, "01234567-89ab-cdef-0123-456789abcdef/" A, 0, &f));
	assert_int_equal(f.of[RESCTRL_TOTAL].readings, 2);
	assert_false(resctrl_of(r, A, 0, &f));
}

/* The CPUs of a group count other tasks, too; without the file nobody knows whether it has any. */
static void test_cpus(void **state)
{
	char path[128];

	(void)state;
	group("a/", "10\n11\n");
	put("", TOP "a/cpus_list");
	assert_int_equal(two_seconds("a/"), 2);
	resctrl_close(r);
	snprintf(path, sizeof(path), "%s" TOP "a/cpus_list", root);
	assert_return_code(unlink(path), 0);
	assert_int_equal(two_seconds("a/"), 0);
}

/* Names of domains have up to ten digits. */
static void test_domains(void **state)
{
	(void)state;
	group("a/", "10\n11\n");
	put("1\n", TOP "a/mon_data/mon_L3_0000000005/llc_occupancy");
	open_it();
	next(false);
	next(true);
	assert_int_equal(of(A, 0).of[RESCTRL_OCCUPANCY].readings, 2);
	resctrl_close(r);
	group("b/", "20\n");
	put("1\n", TOP "b/mon_data/mon_L3_00000000005/llc_occupancy");
	put("1\n", TOP "b/mon_data/mon_L3_8/llc_occupancy");
	put("1\n", TOP "b/mon_data/mon_L3_9/llc_occupancy");
	put("1\n", TOP "b/mon_data/mon_L3_5x/llc_occupancy");
	put("1\n", TOP "b/mon_data/MON_L3_5/llc_occupancy");
	open_it();
	next(false);
	next(true);
	assert_int_equal(of(B, 0).of[RESCTRL_OCCUPANCY].readings, 0);
	assert_int_equal(of(B, 1).of[RESCTRL_OCCUPANCY].readings, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good),
		TEST(test_unavailable),
		TEST(test_shared),
		TEST(test_inside),
		TEST(test_not_counted_twice),
		TEST(test_sum_of_groups),
		TEST(test_vanished),
		TEST(test_moved),
		TEST(test_short),
		TEST(test_hostile),
		TEST(test_huge),
		TEST(test_huge_inside),
		TEST(test_no_text),
		TEST(test_without_stdin),
		TEST(test_absent_without_stdin),
		TEST(test_absent),
		TEST(test_inside_named),
		TEST(test_sums),
		TEST(test_measures),
		TEST(test_bounds),
		TEST(test_figures_as_text),
		TEST(test_tasks),
		TEST(test_pod),
		TEST(test_cpus),
		TEST(test_domains),
	};

	return cmocka_run_group_tests_name("resctrl", tests, NULL, NULL);
}
