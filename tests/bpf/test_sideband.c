// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Process events of this process and its children: which come, in which order, and how many are lost. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/open_files.h"
#include "base/clock.h"
#include "base/cpulist.h"
#include "base/std.h"
#include "bind_to.h"
#include "capture/sideband.h"

#define CPUS	2
#define RING	(64 << 10)
#define EVENT	56 /* bytes of one that renames */
#define QUARTER (RING / 4 / EVENT + 1)
#define MANY	(2 * RING / EVENT)

static unsigned int cpus[CPUS];
static unsigned int n_cpus;
static struct task_choice choice;
static struct sideband *sb;
static struct trace_event ev;
static struct err err;
static __u32 self;

static void open_with(struct sideband_opts o)
{
	o.cpus = cpus;
	o.n_cpus = n_cpus;
	o.choice = &choice;
	if (sideband_open(&o, &sb, &err))
		fail_msg("%s", err.text);
}

/* On the CPUs that are watched. */
static int run_there(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned int i = 0; i < n_cpus; i++)
		CPU_SET(cpus[i], &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static int set_up(void **state)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;

	(void)state;
	/* if it may: while this one waits for a CPU, others fill the buffers */
	sched_setscheduler(0, SCHED_FIFO, &first);
	self = getpid();
	n_cpus = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && n_cpus < CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n_cpus++] = cpu;
	return run_there() || task_choice_init(&choice, &self, 1, false);
}

static int tear_down(void **state)
{
	(void)state;
	sideband_close(sb);
	sb = NULL;
	task_choice_free(&choice);
	return run_there();
}

static void rename_to(const char *name)
{
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
}

static void next_renames(const char *name)
{
	assert_true(sideband_next(sb, &ev));
	assert_int_equal(ev.kind, TRACE_COMM);
	assert_int_equal(ev.comm.tgid, self);
	assert_int_equal(ev.comm.tid, self);
	assert_false(ev.comm.exec);
	assert_string_equal(ev.comm.name, name);
}

/* --- which events --- */

static void test_renamed(void **state)
{
	__u64 before, after;

	(void)state;
	rename_to("too early");
	open_with((struct sideband_opts){});
	before = clock_ns(CLOCK_MONOTONIC);
	rename_to("first");
	rename_to("second");
	after = clock_ns(CLOCK_MONOTONIC);
	/* they are read by sideband_refresh() */
	assert_int_equal(sideband_peek(sb), UINT64_MAX);
	assert_false(sideband_next(sb, &ev));
	sideband_refresh(sb);
	assert_true(sideband_peek(sb) <= after);
	rename_to("too late");
	next_renames("first");
	assert_in_range(ev.time, before, after);
	before = ev.time;
	next_renames("second");
	assert_in_range(ev.time, before, after);
	assert_false(sideband_next(sb, &ev));
	assert_int_equal(sideband_peek(sb), UINT64_MAX);
	sideband_refresh(sb);
	next_renames("too late");
	assert_false(sideband_next(sb, &ev));
	sideband_refresh(sb);
	assert_false(sideband_next(sb, &ev));
}

/* What another process does is not returned, but its time is seen. */
static void test_peek(void **state)
{
	const __u64 before = clock_ns(CLOCK_MONOTONIC);

	(void)state;
	task_choice_free(&choice);
	assert_int_equal(task_choice_init(&choice, (const __u32[]){ 1 }, 1, false), 0);
	open_with((struct sideband_opts){});
	rename_to("unwanted");
	sideband_refresh(sb);
	assert_in_range(sideband_peek(sb), before, clock_ns(CLOCK_MONOTONIC));
	while (sideband_next(sb, &ev))
		if (ev.kind == TRACE_COMM)
			assert_int_not_equal(ev.comm.tgid, self);
	assert_int_equal(sideband_peek(sb), UINT64_MAX);
	assert_int_equal(sideband_peek(NULL), UINT64_MAX);
	assert_int_equal(sideband_untold(NULL), 0);
	sideband_close(NULL);
}

/* In the order of time, whatever the CPU. */
static void test_order(void **state)
{
	(void)state;
	if (n_cpus < 2) {
		print_message("skipped: it needs two CPUs\n");
		skip();
	}
	open_with((struct sideband_opts){});
	for (int i = 0; i < 8; i++) {
		bind_to(cpus[i / 2 % 2]);
		rename_to((char[]){ 'a' + i, 0 });
	}
	sideband_refresh(sb);
	for (int i = 0; i < 8; i++)
		next_renames((char[]){ 'a' + i, 0 });
	assert_false(sideband_next(sb, &ev));
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* A thread of this process begins and exits. */
static void test_thread(void **state)
{
	pthread_t thread;
	__u32 tid;

	(void)state;
	open_with((struct sideband_opts){});
	assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
	pthread_join(thread, NULL);
	sideband_refresh(sb);
	assert_true(sideband_next(sb, &ev));
	assert_int_equal(ev.kind, TRACE_FORK);
	assert_int_equal(ev.fork.tgid, self);
	assert_int_equal(ev.fork.parent_tgid, self);
	assert_int_equal(ev.fork.parent_tid, self);
	tid = ev.fork.tid;
	assert_int_not_equal(tid, self);
	/* the exit may come late: a thread can be joined before */
	while (sideband_next(sb, &ev)) {
		assert_int_equal(ev.kind, TRACE_EXIT);
		assert_int_equal(ev.fork.tid, tid);
	}
}

static pid_t run_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NAME, "child");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_children(void **state)
{
	pid_t pid;

	(void)state;
	open_with((struct sideband_opts){});
	run_child();
	sideband_refresh(sb);
	assert_false(sideband_next(sb, &ev));
	choice.follow = true;
	pid = run_child();
	sideband_refresh(sb);
	assert_true(sideband_next(sb, &ev));
	assert_int_equal(ev.kind, TRACE_FORK);
	assert_int_equal(ev.fork.tgid, pid);
	assert_int_equal(ev.fork.parent_tgid, self);
	assert_true(sideband_next(sb, &ev));
	assert_int_equal(ev.kind, TRACE_COMM);
	assert_int_equal(ev.comm.tgid, pid);
	assert_string_equal(ev.comm.name, "child");
	assert_true(sideband_next(sb, &ev));
	assert_int_equal(ev.kind, TRACE_EXIT);
	assert_int_equal(ev.fork.tgid, pid);
	assert_false(sideband_next(sb, &ev));
	assert_true(task_choice_has(&choice, pid));
}

/* A child of another process does not count as ours. */
static void test_other_parent(void **state)
{
	(void)state;
	task_choice_free(&choice);
	assert_int_equal(task_choice_init(&choice, (const __u32[]){ 1 }, 1, true), 0);
	open_with((struct sideband_opts){});
	assert_false(task_choice_has(&choice, run_child()));
	sideband_refresh(sb);
	while (sideband_next(sb, &ev))
		assert_int_not_equal(ev.kind == TRACE_FORK ? ev.fork.parent_tgid : 1, self);
}

/* Return: how many mappings of our file came, each with these properties. */
static unsigned int mappings(bool exec)
{
	unsigned int n = 0;

	sideband_refresh(sb);
	while (sideband_next(sb, &ev)) {
		if (ev.kind != TRACE_MMAP || !strstr(ev.mmap.path, "sideband-test"))
			continue;
		assert_int_equal(ev.mmap.tgid, self);
		assert_int_equal(ev.mmap.exec, exec);
		assert_int_equal(ev.mmap.len, 4096);
		assert_int_equal(ev.mmap.pgoff, 4096);
		n++;
	}
	return n;
}

static void map(int fd, int prot)
{
	void *at = mmap(NULL, 4096, prot, MAP_PRIVATE, fd, 4096);

	assert_ptr_not_equal(at, MAP_FAILED);
	munmap(at, 4096);
}

/* Code, and other memory only if it is asked for. */
static void test_maps(void **state)
{
	int fd = memfd_create("sideband-test", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	open_with((struct sideband_opts){});
	map(fd, PROT_READ | PROT_EXEC);
	assert_int_equal(mappings(true), 1);
	map(fd, PROT_READ);
	assert_int_equal(mappings(true), 0);
	sideband_close(sb);
	open_with((struct sideband_opts){ .data = true });
	map(fd, PROT_READ);
	assert_int_equal(mappings(false), 1);
	map(fd, PROT_READ | PROT_EXEC);
	assert_int_equal(mappings(true), 1);
	close(fd);
}

/* --- full buffers --- */

static void rename_often(unsigned int n)
{
	while (n--)
		rename_to("fifteen letters"); /* its event has EVENT bytes */
}

/* How many events of ours that rename are left. */
static unsigned int renamings(void)
{
	unsigned int n = 0;

	while (sideband_next(sb, &ev))
		n += ev.kind == TRACE_COMM;
	return n;
}

/* The descriptor wakes a reader when a buffer is a quarter full. */
static void test_wakes(void **state)
{
	struct pollfd p = { .events = POLLIN };

	(void)state;
	bind_to(cpus[0]);
	open_with((struct sideband_opts){});
	p.fd = sideband_fd(sb);
	assert_true(p.fd > STDERR_FILENO);
	rename_often(QUARTER + 1);
	assert_int_equal(poll(&p, 1, 10000), 1);
	sideband_refresh(sb);
	assert_true(renamings() + sideband_lost(sb) >= QUARTER + 1);
}

/* What is read makes room for more events than fit at once. */
static void test_room(void **state)
{
	unsigned int got = 0;

	(void)state;
	bind_to(cpus[0]);
	open_with((struct sideband_opts){});
	for (unsigned int part = 0; part < 8; part++) {
		rename_often(MANY / 8);
		sideband_refresh(sb);
		got += renamings();
	}
	/* other processes may have filled the buffer for a while */
	assert_true(got > RING / EVENT);
	assert_true(got + sideband_lost(sb) >= MANY / 8 * 8);
}

/* Events that find no room are counted: by the next event that does, or by sideband_untold(). */
static void test_lost(void **state)
{
	unsigned int got = 0, lost = 0;

	(void)state;
	bind_to(cpus[0]);
	open_with((struct sideband_opts){});
	rename_often(MANY);
	sideband_refresh(sb);
	while (sideband_next(sb, &ev)) {
		assert_int_equal(ev.kind, TRACE_COMM);
		got++;
	}
	assert_in_range(got, 1, RING / EVENT);
	rename_to("behind");
	sideband_refresh(sb);
	while (sideband_next(sb, &ev) && ev.kind == TRACE_LOST)
		lost += ev.lost.n;
	assert_int_equal(ev.kind, TRACE_COMM);
	assert_string_equal(ev.comm.name, "behind");
	/* events of other processes can be lost as well */
	assert_true(got + lost >= MANY);
	assert_int_equal(sideband_lost(sb), lost);
	assert_int_equal(sideband_untold(sb), 0);
}

static void test_untold(void **state)
{
	unsigned int got, lost;

	(void)state;
	bind_to(cpus[0]);
	open_with((struct sideband_opts){});
	rename_often(MANY);
	sideband_refresh(sb);
	got = renamings();
	lost = sideband_lost(sb);
	if (!lost) {
		print_message("skipped: this kernel counts lost records only with the next one "
			      "(before 6.0)\n");
		skip();
	}
	assert_true(got + lost >= MANY);
	assert_int_equal(sideband_untold(sb), lost);
	assert_int_equal(sideband_untold(sb), 0);
}

/* --- errors --- */

static void test_no_cpu(void **state)
{
	const unsigned int none[] = { cpus[0], 1 << 20 };
	const struct sideband_opts o = { .cpus = none, .n_cpus = 2, .choice = &choice };
	struct sideband *unopened = NULL;
	const int files = open_files();

	(void)state;
	assert_int_equal(sideband_open(&o, &unopened, &err), -EINVAL);
	assert_null(unopened);
	assert_string_equal(err.text,
			    "cpu 1048576: cannot watch processes: Invalid argument; it needs "
			    "CAP_PERFMON, or kernel.perf_event_paranoid <= 0");
	assert_int_equal(open_files(), files);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static bool can_watch(void)
{
	const unsigned int cpu = (unsigned int)sched_getcpu();
	const struct sideband_opts o = { .cpus = &cpu, .n_cpus = 1, .choice = &choice };
	const int ret = sideband_open(&o, &sb, &err);

	sideband_close(sb);
	sb = NULL;
	if (ret == -EACCES || ret == -EPERM || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_renamed),  T(test_peek),		T(test_order),	T(test_thread),
		T(test_children), T(test_other_parent), T(test_maps),	T(test_wakes),
		T(test_room),	  T(test_lost),		T(test_untold), T(test_no_cpu),
	};

	return can_watch() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
