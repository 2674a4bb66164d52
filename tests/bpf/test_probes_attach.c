// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What USDT probes of allocations report of this process and its children, to whom that was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/open_files.h"
#include "base/clock.h"
#include "base/err.h"
#include "probes/probes.h"
#include "../system/usdt_probe.h"

SEMAPHORE(alloc);
SEMAPHORE(free);

static struct probes *p;
static struct err err;
static char program[512];

/* What an allocator does: nothing if nobody listens. */
__attribute__((noinline)) static void allocate(unsigned long addr, size_t size)
{
	if (*(volatile unsigned short *)&otel_memory_alloc_semaphore)
		PROBE(alloc, "8@%0 8@%1 8@%2", "r"(addr), "r"(size), "r"(size * 10));
}

__attribute__((noinline)) static void deallocate(unsigned long addr)
{
	if (*(volatile unsigned short *)&otel_memory_free_semaphore)
		PROBE(free, "8@%0", "r"(addr));
}

static struct ibs_alloc_probe_event got[16];
static int n_got, most;

static bool take(const struct ibs_alloc_probe_event *event, void *arg)
{
	assert_ptr_equal(arg, got);
	memcpy(&got[n_got++], event,
	       event->frees ? offsetof(struct ibs_alloc_probe_event, stack) : sizeof(*event));
	return n_got < most;
}

/* Return: how many events there are now, of at most @n. */
static int reads(int n)
{
	memset(got, 0, sizeof(got));
	n_got = 0;
	most = n;
	probes_read(p, take, got);
	return n_got;
}

static int files;

static int open_probes(void **state)
{
	(void)state;
	files = open_files();
	if (probes_open(&p, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int close_probes(void **state)
{
	(void)state;
	probes_close(p);
	p = NULL;
	assert_int_equal(open_files(), files);
	/* nobody listens any more */
	assert_int_equal(*(volatile unsigned short *)&otel_memory_alloc_semaphore, 0);
	assert_int_equal(*(volatile unsigned short *)&otel_memory_free_semaphore, 0);
	return 0;
}

static void attach(__u32 pid)
{
	if (probes_attach(p, program, pid, &err))
		fail_msg("%s", err.text);
}

/* A child that allocates at @addr. Return: its pid, when it has ended. */
static pid_t allocate_in_child(unsigned long addr)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		allocate(addr, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

static void test_events(void **state)
{
	const __u64 before = clock_ns(CLOCK_MONOTONIC);
	const unsigned long begin = (unsigned long)allocate;

	(void)state;
	assert_int_equal(probes_files(p), 0);
	allocate(0x900, 1); /* nobody listens */
	attach(0);
	assert_int_equal(probes_files(p), 1);
	allocate(0x1000, 24);
	deallocate(0x1000);
	assert_int_equal(reads(16), 2);
	assert_int_equal(got[0].addr, 0x1000);
	assert_int_equal(got[0].size, 24);
	assert_int_equal(got[0].weight, 240);
	assert_int_equal(got[0].frees, 0);
	assert_int_equal(got[0].tgid, getpid());
	assert_int_equal(got[0].tid, syscall(SYS_gettid));
	assert_in_range(got[0].time_ns, before, clock_ns(CLOCK_MONOTONIC));
	assert_in_range(got[0].n_stack, 1, IBS_ALLOC_PROBE_STACK);
	assert_in_range(got[0].stack[0], begin, begin + 1000);
	assert_int_equal(got[1].frees, 1);
	assert_int_equal(got[1].addr, 0x1000);
	assert_in_range(got[1].time_ns, got[0].time_ns, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(reads(16), 0);
	assert_int_equal(probes_lost(p), 0);
}

/* Those that the callback leaves come with the next call. */
static void test_left(void **state)
{
	(void)state;
	attach(getpid());
	for (int i = 1; i <= 4; i++)
		allocate(i, 1);
	assert_int_equal(reads(3), 3);
	assert_int_equal(got[2].addr, 3);
	assert_int_equal(reads(16), 1);
	assert_int_equal(got[0].addr, 4);
}

/* Attached once, a file reports each event once. */
static void test_once(void **state)
{
	(void)state;
	attach(0);
	attach(0);
	assert_int_equal(probes_files(p), 1);
	allocate(1, 1);
	assert_int_equal(reads(16), 1);
	/* in a process alone is something else */
	attach(getpid());
	attach(getpid());
	assert_int_equal(probes_files(p), 2);
	allocate(1, 1);
	assert_int_equal(reads(16), 2);
}

static void test_process(void **state)
{
	(void)state;
	assert_int_equal(probes_attach_process(p, getpid(), false, &err), 1);
	assert_int_equal(probes_files(p), 1);
	allocate(1, 1);
	allocate_in_child(2);
	assert_int_equal(reads(16), 1);
	assert_int_equal(got[0].addr, 1);
	/* a process that has no such file */
	assert_int_equal(probes_attach_process(p, getppid(), false, &err), 0);
	assert_int_equal(probes_files(p), 1);
}

static void test_children(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(probes_attach_process(p, getpid(), true, &err), 1);
	pid = allocate_in_child(2);
	assert_int_equal(reads(16), 1);
	assert_int_equal(got[0].addr, 2);
	assert_int_equal(got[0].tgid, pid);
}

static void test_not_attached(void **state)
{
	const __u32 nobody = 1u << 30;
	char want[128];

	(void)state;
	assert_int_equal(probes_attach(p, "/nowhere/at/all", 0, &err), -ENOENT);
	assert_string_equal(err.text, "cannot read /nowhere/at/all: No such file or directory");
	assert_true(probes_attach(p, "/bin/sh", 0, &err) < 0);
	assert_string_equal(err.text, "cannot attach to the probe otel_memory:alloc of /bin/sh: No "
				      "such file or directory");
	assert_int_equal(probes_attach_process(p, nobody, false, &err), -ENOENT);
	snprintf(want, sizeof(want),
		 "cannot look for probes in process %u: /proc/%u/root/: No such file or directory",
		 nobody, nobody);
	assert_string_equal(err.text, want);
	assert_int_equal(probes_files(p), 0);
}

/* In a child without privilege. Exit status: where it went wrong. */
static int without_privilege(void)
{
	struct probes *none = NULL;
	const __u32 parent = getppid();

	/* the other's files are root's */
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 10;
	err.text[0] = 0;
	if (probes_attach_process(p, parent, false, &err) != -EACCES ||
	    !strstr(err.text, "; run this as root, or give it CAP_SYS_PTRACE"))
		return 11;
	err.text[0] = 0;
	if (probes_open(&none, &err) >= 0 || none ||
	    !strstr(err.text, "cannot load the BPF programs for probes of allocations: Operation "
			      "not permitted"))
		return 12;
	return 0;
}

static void test_privilege(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		log_to(fopen("/dev/null", "we"));
		_exit(without_privilege());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	probes_close(NULL);
}

static bool count(const struct ibs_alloc_probe_event *event, void *arg)
{
	(void)event;
	++*(unsigned int *)arg;
	return true;
}

/* Events that find no room are counted. */
static void test_lost(void **state)
{
	enum { MANY = 12000 }; /* of more than half a KiB, in a ring of 4 MiB */
	unsigned int n = 0;

	(void)state;
	attach(getpid());
	for (int i = 0; i < MANY; i++)
		allocate(i, 1);
	probes_read(p, count, &n);
	assert_in_range(n, 1000, MANY - 1000);
	assert_int_equal(n + probes_lost(p), MANY);
}

/* A process without stdin gets 0 as the number of a file. */
static void test_without_stdin(void **state)
{
	const int in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	int ret;

	(void)state;
	close(0);
	ret = probes_attach_process(p, getpid(), false, &err);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_int_equal(ret, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_probes, close_probes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_events),	   T(test_left),     T(test_once),
		T(test_process),   T(test_children), T(test_not_attached),
		T(test_privilege), T(test_lost),     T(test_without_stdin),
	};
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0 || probes_open(&p, &err)) {
		printf("skipped: %s\n", n < 0 ? "no /proc" : err.text);
		return 77;
	}
	probes_close(p);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
