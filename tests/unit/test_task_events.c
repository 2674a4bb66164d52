// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What /proc tells of processes when a recording begins, and the names that samples are printed with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "capture/live_names.h"
#include "trace/tasks.h"
#include "tree.h"

#define TIME 12345

/* All events as text. */
static char said[16384];

static int say(const struct trace_event *ev, void *arg, struct err *err)
{
	char *end = said + strlen(said);
	size_t left = sizeof(said) - (end - said);

	(void)arg;
	(void)err;
	assert_int_equal(ev->time, TIME);
	if (ev->kind == TRACE_COMM)
		snprintf(end, left, "comm %u %u %s\n", ev->comm.tgid, ev->comm.tid, ev->comm.name);
	else
		snprintf(end, left, "%s %u %llx %llx %llx %s %u\n",
			 ev->mmap.kernel ? "kernel"
			 : ev->mmap.exec ? "map"
					 : "data",
			 ev->mmap.tgid, (unsigned long long)ev->mmap.start,
			 (unsigned long long)ev->mmap.len, (unsigned long long)ev->mmap.pgoff,
			 ev->mmap.path, ev->mmap.build_id_len);
	return 0;
}

static void now_with(const struct task_choice *choice, bool data)
{
	struct err err = { "" };

	said[0] = 0;
	if (task_events_now(root, choice, data, TIME, say, NULL, &err))
		fail_msg("%s", err.text);
}

static void now(const struct task_choice *choice)
{
	now_with(choice, true);
}

static void test_processes(void **state)
{
	const struct task_choice all = {};

	(void)state;
	put_file("/proc/7/task/7/comm", "leader\n");
	put_file("/proc/7/task/8/comm", "two\nlines\n");
	put_file("/proc/7/maps",
		 "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a file\n"
		 "00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/a file\n"
		 "00652000-00653000 r--p 00052000 08:02 173521      /usr/bin/a file\n"
		 "00090000-00091000 r--p 00000000 08:02 173522      /etc/constants\n"
		 "00660000-00670000 rw-p 00000000 00:00 0           [heap]\n"
		 "00700000-00800000 ---p 00000000 00:00 0 \n"
		 "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
		 "no map\n"
		 "5000-4000 r-xp 0 00:00 0 /backwards\n"
		 "7ffc0000000-7ffc0002000 r-xp 00000000 00:00 0             [vdso]");
	put_file("/proc/9/task/9/comm", "");
	put_file("/proc/self/task/1/comm", "no\n");
	put_file("/proc/99999999/task/1/comm", "no\n");
	now(&all);
	assert_non_null(strstr(said, "comm 7 7 leader\n"));
	assert_non_null(strstr(said, "comm 7 8 two\nlines\n"));
	assert_non_null(strstr(said, "map 7 400000 52000 1000 /usr/bin/a file 0\n"));
	assert_non_null(strstr(said, "map 7 7f0000000000 1000 0 //anon 0\n"));
	assert_non_null(strstr(said, "map 7 7ffc0000000 2000 0 [vdso] 0\n"));
	/* constants of a program are found from its code */
	assert_null(strstr(said, "652000"));
	assert_non_null(strstr(said, "data 7 90000 1000 0 /etc/constants 0\n"));
	assert_null(strstr(said, "comm 1 "));
	assert_null(strstr(said, "no map"));
	assert_null(strstr(said, "99999999"));
	assert_null(strstr(said, "backwards"));
	assert_non_null(strstr(said, "data 7 651000 1000 51000 /usr/bin/a file 0\n"));
	assert_non_null(strstr(said, "data 7 660000 10000 0 [heap] 0\n"));
	assert_null(strstr(said, "700000"));
	assert_null(strstr(said, "comm 9"));
	now_with(&all, false);
	assert_non_null(strstr(said, "map 7 400000 "));
	assert_null(strstr(said, "data "));
}

static void test_choice(void **state)
{
	const __u32 pids[] = { 8, IBS_PID_MAX - 1 };
	struct task_choice some;

	(void)state;
	put_file("/proc/7/task/7/comm", "seven\n");
	put_file("/proc/8/task/8/comm", "eight\n");
	assert_int_equal(task_choice_init(&some, pids, 2, false), 0);
	now(&some);
	assert_string_equal(said, "comm 8 8 eight\n");
	assert_true(task_choice_has(&some, IBS_PID_MAX - 1));
	assert_false(task_choice_has(&some, 9));
	assert_false(task_choice_has(&some, IBS_PID_MAX));
	task_choice_add(&some, 9);
	task_choice_add(&some, IBS_PID_MAX);
	assert_true(task_choice_has(&some, 9));
	assert_false(task_choice_has(&some, IBS_PID_MAX));
	task_choice_free(&some);
	assert_true(task_choice_has(&some, 1));
}

/* A note file: header, "GNU", and an id of 20 bytes; behind another note. */
static void put_notes(const char *path, unsigned char size)
{
	const unsigned char notes[] = { 4,    0,   0,	0, 4, 0, 0, 0, 6,   0,	 0,   0,
					'X',  'e', 'n', 0, 1, 2, 3, 4, 4,   0,	 0,   0,
					size, 0,   0,	0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	char full[256];
	FILE *f;

	put_dir(path);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fwrite(notes, sizeof(notes), 1, f);
	fwrite("abcdefghijklmnopqrst", 20, 1, f);
	fclose(f);
}

static void test_kernel(void **state)
{
	const struct task_choice all = {};

	(void)state;
	put_file("/proc/kallsyms",
		 "0000000000000000 A fixed\nffffffff81000000 T _stext\n"
		 "ffffffff81000000 T _text\nnonsense\nffffffff82000000 T _etext\n");
	put_file("/proc/modules", "one 8192 0 - Live 0xffffffffc0000000\n"
				  "two 4096 1 one, Live 0xffffffffc0010000 (OE)\n"
				  "hidden 4096 0 - Live 0x0000000000000000\nbroken\n");
	put_notes("/sys/kernel/notes", 20);
	put_notes("/sys/module/two/notes/.note.gnu.build-id", 21);
	now(&all);
	assert_string_equal(said, "kernel 0 ffffffff81000000 1000000 0 [kernel.kallsyms] 20\n"
				  "kernel 0 ffffffffc0000000 2000 0 [one] 0\n"
				  "kernel 0 ffffffffc0010000 1000 0 [two] 0\n");
	/* addresses that are hidden are none */
	put_file("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n");
	put_file("/proc/modules", "");
	now(&all);
	assert_string_equal(said, "");
}

/* The place of the kernel's text is read once, and belongs to the real root alone. */
static void test_kernel_remembered(void **state)
{
	const __u32 nobody = 0;
	struct task_choice none;
	struct err err = { "" };
	char before[sizeof(said)];

	(void)state;
	task_choice_init(&none, &nobody, 1, false);
	said[0] = 0;
	assert_int_equal(task_events_now("", &none, false, TIME, say, NULL, &err), 0);
	strcpy(before, said);
	task_events_remember_kernel();
	said[0] = 0;
	assert_int_equal(task_events_now("", &none, false, TIME, say, NULL, &err), 0);
	assert_string_equal(said, before);
	put_file("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	now(&none);
	assert_string_equal(said, "kernel 0 ffffffff81000000 1000000 0 [kernel.kallsyms] 0\n");
	task_choice_free(&none);
}

static int stop(const struct trace_event *ev, void *arg, struct err *err)
{
	(void)ev;
	++*(int *)arg;
	return err_set(err, -ENOSPC, "full");
}

static void test_errors(void **state)
{
	const struct task_choice all = {};
	struct err err = { "" };
	int calls = 0;

	(void)state;
	assert_int_equal(task_events_now("/nonexistent", &all, true, 0, say, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/proc"));
	put_file("/proc/7/task/7/comm", "a\n");
	put_file("/proc/8/task/8/comm", "b\n");
	assert_int_equal(task_events_now(root, &all, true, 0, stop, &calls, &err), -ENOSPC);
	assert_int_equal(calls, 1);
}

static void test_live_names(void **state)
{
	struct trace_event comm = { .kind = TRACE_COMM,
				    .comm = { 1, 1, false, "a name too long" } };
	struct trace_event fork = { .kind = TRACE_FORK, .fork = { 2, 2, 1, 1 } };
	struct live_names *n;

	(void)state;
	n = live_names_new();
	assert_null(live_names_comm(n, 1));
	live_names_add(n, &comm);
	assert_string_equal(live_names_comm(n, 1), "a name too long");
	live_names_add(n, &fork);
	assert_string_equal(live_names_comm(n, 2), "a name too long");
	comm.comm.name = "b";
	live_names_add(n, &comm);
	assert_string_equal(live_names_comm(n, 1), "b");
	assert_string_equal(live_names_comm(n, 2), "a name too long");
	comm.comm.tid = fork.fork.tid = UINT32_MAX;
	live_names_add(n, &comm);
	live_names_add(n, &fork);
	assert_null(live_names_comm(n, UINT32_MAX));
	for (__u64 id = 0; id < 1000; id++) {
		struct trace_event cg = { .kind = TRACE_CGROUP };
		char path[32];

		snprintf(path, sizeof(path), "/c%llu", (unsigned long long)id);
		path[id % 2 ? strlen(path) : 0] = 0;
		cg.cgroup.id = id << 32;
		cg.cgroup.path = path;
		live_names_add(n, &cg);
	}
	assert_string_equal(live_names_cgroup(n, 999ULL << 32), "/c999");
	assert_string_equal(live_names_cgroup(n, 1ULL << 32), "/c1");
	assert_null(live_names_cgroup(n, 2ULL << 32));
	assert_true(live_names_has_cgroup(n, 2ULL << 32));
	assert_false(live_names_has_cgroup(n, 0));
	assert_false(live_names_has_cgroup(n, 1000ULL << 32));
	live_names_forget_cgroups(n);
	assert_false(live_names_has_cgroup(n, 2ULL << 32));
	assert_string_equal(live_names_comm(n, 1), "b");
	live_names_free(n);
	live_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_choice, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_kernel, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_kernel_remembered, new_root, remove_root),
		cmocka_unit_test_setup_teardown(test_errors, new_root, remove_root),
		cmocka_unit_test(test_live_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
