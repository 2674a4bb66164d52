// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Descendants of processes and threads, from a /proc made here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "sampler/descendants.h"
#include "tree.h"

static __u32 found[64];
static size_t n_found;
static int stop_at; /* the call that returns -EINTR; 0: none */

static int note(void *arg, __u32 pid)
{
	assert_ptr_equal(arg, found);
	assert_true(n_found < 64);
	found[n_found++] = pid;
	return n_found == (size_t)stop_at ? -EINTR : 0;
}

static void process(__u32 pid, __u32 parent)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	snprintf(text, sizeof(text), "%u (a) S 1 (b) S %u 1 2 3\n", pid, parent);
	put_file(path, text);
}

static void thread(__u32 pid, __u32 tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/", pid, tid);
	put_dir(path);
}

static bool was_found(__u32 pid)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i] == pid)
			return true;
	return false;
}

static int begin(void **state)
{
	n_found = 0;
	stop_at = 0;
	return new_root(state);
}

/* 10 has 11 and 12, 11 has 5, which has 30; 20 is another's. */
static void make_processes(void)
{
	process(1, 0);
	process(10, 1);
	process(11, 10);
	process(12, 10);
	process(5, 11); /* a number that was used before */
	process(30, 5);
	process(20, 1);
	put_file("/proc/uptime", "1 1\n");
	put_dir("/proc/40/"); /* gone meanwhile */
	put_file("/proc/41/stat", "41 (a S 10\n");
	put_file("/proc/42/stat", "42 (a) S x\n");
}

static void test_processes(void **state)
{
	static const __u32 pids[] = { 10, 99 }, two[] = { 11, 10 }, leaf[] = { 30 };
	struct err err = { "" };

	(void)state;
	make_processes();
	assert_int_equal(descendants(root, pids, 2, note, found, &err), 0);
	assert_int_equal(n_found, 4);
	assert_true(was_found(11) && was_found(12) && was_found(5) && was_found(30));
	/* those that were given are left out, also if they descend from others */
	n_found = 0;
	assert_int_equal(descendants(root, two, 2, note, found, &err), 0);
	assert_int_equal(n_found, 3);
	assert_false(was_found(11) || was_found(10));
	n_found = 0;
	assert_int_equal(descendants(root, leaf, 1, note, found, &err), 0);
	assert_int_equal(descendants(root, NULL, 0, note, found, &err), 0);
	assert_int_equal(n_found, 0);
}

static void test_refused(void **state)
{
	static const __u32 pids[] = { 10 };
	struct err err = { "" };

	(void)state;
	make_processes();
	stop_at = 2;
	assert_int_equal(descendants(root, pids, 1, note, found, &err), -EINTR);
	assert_int_equal(n_found, 2);
}

static void test_no_proc(void **state)
{
	static const __u32 pids[] = { 10 };
	struct err err = { "" };
	char want[128];

	(void)state;
	assert_int_equal(descendants(root, pids, 1, note, found, &err), -ENOENT);
	snprintf(want, sizeof(want), "cannot read %s/proc: No such file or directory", root);
	assert_string_equal(err.text, want);
	assert_int_equal(n_found, 0);
}

/* All threads of the processes that a thread has made, and of their descendants; none of its own process. */
static void test_threads(void **state)
{
	static const __u32 tids[] = { 10, 15, 77 };
	struct err err = { "" };

	(void)state;
	make_processes();
	thread(10, 10);
	thread(10, 15);
	put_file("/proc/10/task/10/children", "11 ");
	thread(11, 11);
	thread(11, 13);
	thread(12, 12);
	thread(5, 5);
	thread(5, 6);
	thread(30, 30);
	/* 15 is a thread of process 10, whose files have its own number, too */
	put_file("/proc/15/task/15/children", "12 \n");
	assert_int_equal(descendant_threads(root, tids, 1, note, found, &err), 0);
	assert_int_equal(n_found, 5);
	assert_true(was_found(11) && was_found(13) && was_found(5) && was_found(6) &&
		    was_found(30));
	n_found = 0;
	assert_int_equal(descendant_threads(root, tids, 3, note, found, &err), 0);
	assert_int_equal(n_found, 6);
	assert_true(was_found(12));
	n_found = 0;
	assert_int_equal(descendant_threads(root, tids + 2, 1, note, found, &err), 0);
	assert_int_equal(n_found, 0);
	/* it stops when the callback refuses a thread, of a child or of a further descendant */
	for (stop_at = 1; stop_at <= 5; stop_at++) {
		n_found = 0;
		assert_int_equal(descendant_threads(root, tids, 1, note, found, &err), -EINTR);
		assert_int_equal(n_found, stop_at);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_processes),
		T(test_refused),
		T(test_no_proc),
		T(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
