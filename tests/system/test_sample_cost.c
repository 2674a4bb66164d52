// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the busy loop loses: to a signal of known cost, and to the software clock. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/open_files.h"
#include "base/clock.h"
#include "perf/sample_cost.h"

#define TRIES 5 /* on a machine that does other things too */

static struct err err;

static unsigned int my_cpu(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned int cpu = CPU_SETSIZE; cpu-- > 0;)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return 0;
}

static struct perf_event_attr event(__u64 config, __u64 period)
{
	return (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(struct perf_event_attr),
					 .config = config,
					 .sample_period = period };
}

/* --- an interruption whose cost is known --- */

#define BURN_NS	     100000
#define INTERRUPT_NS 3000000

static volatile sig_atomic_t interruptions, burn_ns;
static timer_t timer;

static void burn(int sig)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + burn_ns;

	(void)sig;
	while (clock_ns(CLOCK_MONOTONIC) < until)
		;
	interruptions++;
}

static int set_timer(void *arg, bool on, struct err *e)
{
	const struct itimerspec t = { .it_value.tv_nsec = on * INTERRUPT_NS,
				      .it_interval.tv_nsec = on * INTERRUPT_NS };

	(void)arg;
	return timer_settime(timer, 0, &t, NULL) ? err_set(e, -errno, "timer") : 0;
}

static double count(void *arg)
{
	(void)arg;
	return interruptions;
}

/* Timer and signal alone take 70 us on some virtual machines: what counts is how much is added to that. */
static void test_known(void **state)
{
	const struct loop_subject subject = { .set = set_timer, .samples = count };
	const struct loop_opts opts = { .cpu = my_cpu(), .seconds = 1 };
	struct sigevent sev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct sigaction act = { .sa_handler = burn };
	struct loop_loss loss = {}, empty = {};
	double added = 0;

	(void)state;
	sev._sigev_un._tid = syscall(SYS_gettid);
	sigaction(SIGUSR1, &act, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &sev, &timer), 0);
	for (int i = 0; i < TRIES; i++) {
		burn_ns = 0;
		if (loop_loss_measure(&subject, 1, &opts, &empty, &err))
			continue;
		burn_ns = BURN_NS;
		if (loop_loss_measure(&subject, 1, &opts, &loss, &err))
			continue;
		added = loss.ns - empty.ns;
		print_message("%.0f ns in %u rounds, %.0f without\n", loss.ns, loss.rounds,
			      empty.ns);
		if (added >= 0.8 * BURN_NS && added < 1.3 * BURN_NS)
			break;
	}
	timer_delete(timer);
	assert_true(added >= 0.8 * BURN_NS && added < 1.3 * BURN_NS);
	assert_true(loss.share > 0.005 && loss.share < 0.1);
	assert_true(loss.ns_spread > 0 && loss.ns_spread < loss.ns / 4);
	assert_true(loss.samples >= 20 && loss.rounds >= 5);
	assert_true(loss.on_s > 0.1);
}

static void test_clock(void **state)
{
	const struct perf_event_attr often = event(PERF_COUNT_SW_CPU_CLOCK, 100000);
	struct sample_cost cost = {};
	int ret = -EAGAIN;

	(void)state;
	for (int i = 0; i < TRIES && ret == -EAGAIN; i++)
		ret = sample_cost_measure(&often, -1, my_cpu(), 0.5, &cost, &err);
	if (ret)
		fail_msg("%s", err.text);
	print_message("%.0f +- %.0f ns, %llu samples\n", cost.ns, cost.spread_ns, cost.samples);
	assert_true(cost.ns > 100 && cost.ns < 100000);
	assert_true(cost.spread_ns < cost.ns);
	/* of the clock, a ns is counted in a ns, and a sample takes some of it */
	assert_true(cost.per_ns > 0.8 && cost.per_ns < 3);
	assert_in_range(cost.samples, 20, 12000); /* few of them where others run, too */
}

/* An event that never is: nothing can be told, which is not the same as no cost. */
static void test_nothing(void **state)
{
	const struct perf_event_attr never = event(PERF_COUNT_SW_DUMMY, 100000);
	struct sample_cost cost = { .ns = 5 };

	(void)state;
	for (int i = 0; i < TRIES; i++) {
		assert_int_equal(sample_cost_measure(&never, -1, my_cpu(), 0.2, &cost, &err),
				 -EAGAIN);
		if (strstr(err.text, "had samples"))
			return;
	}
	fail_msg("%s", err.text);
}

static void test_refused(void **state)
{
	struct perf_event_attr a = event(PERF_COUNT_SW_CPU_CLOCK, 1000000);
	struct sample_cost cost;

	(void)state;
	assert_true(sample_cost_measure(&a, -1, CPU_SETSIZE + 5000, 0.1, &cost, &err) < 0);
	assert_true(sample_cost_measure(&a, STDERR_FILENO, my_cpu(), 0.1, &cost, &err) < 0);
	assert_non_null(strstr(err.text, "attach"));
	a.freq = 1;
	assert_int_equal(sample_cost_measure(&a, -1, my_cpu(), 0.1, &cost, &err), -EINVAL);
	a.freq = 0;
	a.sample_period = 0;
	assert_int_equal(sample_cost_measure(&a, -1, my_cpu(), 0.1, &cost, &err), -EINVAL);
}

static void test_traceless(void **state)
{
	const struct perf_event_attr a = event(PERF_COUNT_SW_CPU_CLOCK, 1000000);
	cpu_set_t before, after;
	struct sample_cost cost;
	int files = open_files();

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	sample_cost_measure(&a, -1, my_cpu(), 0.1, &cost, &err);
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(open_files(), files);
}

int main(void)
{
	const struct perf_event_attr a = event(PERF_COUNT_SW_CPU_CLOCK, 1000000);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),	  cmocka_unit_test(test_clock),
		cmocka_unit_test(test_nothing),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_traceless),
	};
	int fd = syscall(SYS_perf_event_open, &a, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		printf("no software clock to sample with: %s\n", strerror(errno));
		return 77;
	}
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
