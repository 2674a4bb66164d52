// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a busy loop loses, by a clock of this test: each look takes a while, and interruptions take as long as was said. So
 * costs are known exactly, whatever else runs. tests/system/test_sample_cost.c has the real clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "one_at_a_time.h"
#include "perf/perf.h"
#include "perf/sample_cost.h"

#define LOOK_NS 100
#define EVERY	50 /* looks from one interruption to the next */

static struct err err;

/* --- the clock --- */

static struct {
	uint64_t now, looks;
	unsigned int on;  /* subject that is on, + 1; 0: none */
	uint64_t cost[4]; /* of an interruption while that one is on */
	unsigned int
		away_of; /* of so many interruptions one takes half a millisecond more; 0: none */
	unsigned int
		switches_of; /* of so many looks one finds that another process has run; 0: none */
	uint64_t interruptions[4], switched;
	void (*interrupt)(void);
} sim;

int clock_gettime(clockid_t clock, struct timespec *out)
{
	(void)clock;
	sim.now += LOOK_NS;
	if (++sim.looks % EVERY == 0 && sim.cost[sim.on]) {
		sim.now += sim.cost[sim.on];
		if (sim.away_of && ++sim.interruptions[sim.on] % sim.away_of == 0)
			sim.now += 500000;
		else if (!sim.away_of)
			sim.interruptions[sim.on]++;
		if (sim.on && sim.interrupt)
			sim.interrupt();
	}
	*out = (struct timespec){ sim.now / 1000000000, sim.now % 1000000000 };
	return 0;
}

int getrusage(int who, struct rusage *out)
{
	(void)who;
	memset(out, 0, sizeof(*out));
	if (sim.switches_of && ++sim.switched % sim.switches_of == 0)
		out->ru_nivcsw = sim.switched;
	else
		out->ru_nvcsw = sim.switches_of ? sim.switched / sim.switches_of : 0;
	return 0;
}

/* Events are subject 0. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	long arg;

	va_start(ap, request);
	arg = va_arg(ap, long);
	va_end(ap);
	if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE)
		sim.on = request == PERF_EVENT_IOC_ENABLE;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* --- subjects --- */

static char order[4096];      /* "+0", "-0": switched on, off */
static int fail_on, fail_off; /* number of the call that fails; 0: none */

static int set(void *arg, bool on, struct err *e)
{
	const unsigned int n = (unsigned int)(uintptr_t)arg;

	if (strlen(order) < sizeof(order) - 3)
		snprintf(order + strlen(order), 3, "%c%u", on ? '+' : '-', n);
	sim.on = on ? n + 1 : 0;
	if (on && fail_on && !--fail_on)
		return err_set(e, -EIO, "cannot switch it on");
	if (!on && fail_off && !--fail_off)
		return err_set(e, -EPIPE, "cannot switch it off");
	return 0;
}

static double samples(void *arg)
{
	return (double)sim.interruptions[(uintptr_t)arg + 1];
}

static const struct loop_subject counted[] = { { set, samples, (void *)0 },
					       { set, samples, (void *)1 } };

static unsigned int my_cpu(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			return cpu;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&sim, 0, sizeof(sim));
	sim.now = 1000000000;
	*order = 0;
	fail_on = fail_off = 0;
	err.text[0] = 0;
	return 0;
}

static int measure(const struct loop_subject *subjects, size_t n, double seconds,
		   struct loop_loss *out)
{
	const struct loop_opts opts = { .cpu = my_cpu(), .seconds = seconds };

	memset(out, 0xff, n * sizeof(*out));
	return loop_loss_measure(subjects, n, &opts, out, &err);
}

static void is_about(double have, double want, double off)
{
	if (!(fabs(have - want) <= off * want))
		fail_msg("%g instead of %g", have, want);
}

/* --- */

/* Each interruption takes 2 us, in 50 looks of 100 ns: of 7 us. */
static void test_cost(void **state)
{
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 2000;
	assert_int_equal(measure(counted, 1, 0.2, &l), 0);
	is_about(l.ns, 2000, 0.01);
	is_about(l.share, 2.0 / 7, 0.01);
	assert_true(l.ns_spread >= 0 && l.ns_spread < 20);
	assert_true(l.share_spread >= 0 && l.share_spread < 0.01);
	/* slices of 10 ms, of which every other one is on */
	assert_in_range(l.rounds, 9, 11);
	assert_int_equal(l.sampled_rounds, l.rounds);
	is_about(l.on_s, 0.1, 0.15);
	is_about(l.sampled_ns, l.on_s * 1e9, 0.02);
	is_about(l.samples, l.sampled_ns / 7000, 0.01);
}

/* What is lost in any case is not the subject's. */
static void test_others(void **state)
{
	struct loop_loss l;

	(void)state;
	sim.cost[0] = 3000; /* in 8 us */
	sim.cost[1] = 5000; /* in 10 us */
	assert_int_equal(measure(counted, 1, 0.2, &l), 0);
	is_about(l.share, 5.0 / 10 - 3.0 / 8, 0.02);
	is_about(l.ns, (5.0 / 10 - 3.0 / 8) * 10000, 0.02);
	/* a subject that costs less than nothing */
	begin(NULL);
	sim.cost[0] = 5000;
	sim.cost[1] = 3000;
	assert_int_equal(measure(counted, 1, 0.2, &l), 0);
	is_about(-l.share, 5.0 / 10 - 3.0 / 8, 0.02);
}

/* An interruption that is hardly longer than a look is none. */
static void test_short(void **state)
{
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 150; /* as long as usual, half of that, and 100 ns */
	assert_int_equal(measure(counted, 1, 0.2, &l), 0);
	assert_true(l.share == 0);
	assert_true(l.ns == 0);
	begin(NULL);
	sim.cost[1] = 151;
	assert_int_equal(measure(counted, 1, 0.2, &l), 0);
	is_about(l.ns, 151, 0.01);
}

/* Alternately forwards and backwards, and without any in between. */
static void test_two(void **state)
{
	struct loop_loss l[2];

	(void)state;
	sim.cost[1] = 1000;
	sim.cost[2] = 4000;
	assert_int_equal(measure(counted, 2, 0.2, l), 0);
	is_about(l[0].ns, 1000, 0.01);
	is_about(l[1].ns, 4000, 0.01);
	is_about(l[0].share, 1.0 / 6, 0.01);
	is_about(l[1].share, 4.0 / 9, 0.01);
	assert_in_range(l[0].rounds, 6, 8);
	assert_int_equal(l[1].rounds, l[0].rounds);
	assert_memory_equal(order, "+0-0+1-1+1-1+0-0+0-0+1-1", 24);
	assert_int_equal(strlen(order), 8 * l[0].rounds);
	is_about(l[0].samples, l[0].sampled_ns / 6000, 0.01);
	is_about(l[1].samples, l[1].sampled_ns / 9000, 0.01);
}

/* How many samples there were may be unknown; what cannot be switched is always on. */
static void test_unknown(void **state)
{
	const struct loop_subject uncounted = { .set = set }, nothing = {};
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 2000;
	assert_int_equal(measure(&uncounted, 1, 0.2, &l), 0);
	is_about(l.share, 2.0 / 7, 0.01);
	assert_int_equal(l.sampled_rounds, 0);
	assert_int_equal(l.samples, 0);
	assert_true(l.ns == 0 && l.sampled_ns == 0);
	begin(NULL);
	assert_int_equal(measure(&nothing, 1, 0.2, &l), 0);
	assert_true(l.share == 0);
	assert_string_equal(order, "");
}

/* A subject that samples in few rounds has no cost. */
static double few(void *arg)
{
	(void)arg;
	return strlen(order) <= 4 * 4 ? (double)sim.looks : 0;
}

static void test_few_rounds(void **state)
{
	const struct loop_subject subject = { set, few, NULL };
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 2000;
	assert_int_equal(measure(&subject, 1, 0.2, &l), 0);
	assert_int_equal(l.sampled_rounds, 0);
	assert_true(l.rounds >= LOOP_ROUNDS_MIN);
	is_about(l.share, 2.0 / 7, 0.01);
}

/* Time in which another process or the hypervisor had the CPU is left out, with what was sampled then. */
static void test_disturbed(void **state)
{
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 2000;
	sim.away_of = 1000;
	assert_int_equal(measure(counted, 1, 0.4, &l), 0);
	is_about(l.ns, 2000, 0.01);
	is_about(l.share, 2.0 / 7, 0.01);
	assert_true(l.sampled_ns < l.on_s * 0.97e9);
	begin(NULL);
	sim.cost[1] = 2000;
	sim.switches_of = 7;
	assert_int_equal(measure(counted, 1, 0.4, &l), 0);
	is_about(l.ns, 2000, 0.01);
	assert_true(l.sampled_ns < l.on_s * 0.9e9);
	assert_true(l.sampled_ns > l.on_s * 0.5e9);
}

/* Too disturbed: for at most four times as long as was asked for. */
static void test_too_disturbed(void **state)
{
	struct loop_loss l;
	const uint64_t began = sim.now;
	char want[256];

	(void)state;
	sim.cost[1] = 2000;
	sim.switches_of = 1;
	assert_int_equal(measure(counted, 1, 0.1, &l), -EAGAIN);
	snprintf(want, sizeof(want),
		 "cpu %u: only 0 of 5 required rounds of the busy loop: other processes use the "
		 "CPU; "
		 "measure longer, or on another CPU",
		 my_cpu());
	assert_string_equal(err.text, want);
	is_about((double)(sim.now - began), 0.4e9, 0.1);
	/* time alone does: five rounds take longer than was asked for */
	begin(NULL);
	sim.cost[1] = 2000;
	assert_int_equal(measure(counted, 1, 0.03, &l), 0);
	assert_int_equal(l.rounds, LOOP_ROUNDS_MIN);
}

static void test_slices(void **state)
{
	const struct loop_opts opts = { .cpu = my_cpu(), .seconds = 0.2, .slice_s = 0.002 };
	struct loop_loss l;

	(void)state;
	sim.cost[1] = 2000;
	assert_int_equal(loop_loss_measure(counted, 1, &opts, &l, &err), 0);
	assert_in_range(l.rounds, 40, 50);
	is_about(l.ns, 2000, 0.01);
}

/* What cannot be switched ends the measurement; it is switched off in any case. */
static void test_failures(void **state)
{
	volatile sig_atomic_t stop = 0;
	struct loop_opts opts = { .cpu = my_cpu(), .seconds = 0.2, .stop = &stop };
	cpu_set_t before, after;
	struct loop_loss l;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	fail_on = 2;
	assert_int_equal(measure(counted, 1, 0.2, &l), -EIO);
	assert_string_equal(err.text, "cannot switch it on");
	assert_string_equal(order, "+0-0+0-0");
	begin(NULL);
	fail_off = 3;
	assert_int_equal(measure(counted, 1, 0.2, &l), -EPIPE);
	assert_string_equal(err.text, "cannot switch it off");
	assert_string_equal(order, "+0-0+0-0+0-0");
	begin(NULL);
	fail_on = fail_off = 1;
	assert_int_equal(measure(counted, 1, 0.2, &l), -EIO);
	assert_string_equal(err.text, "cannot switch it on");
	/* it may be stopped */
	begin(NULL);
	assert_int_equal(loop_loss_measure(counted, 1, &opts, &l, &err), 0);
	begin(NULL);
	stop = 1;
	assert_int_equal(loop_loss_measure(counted, 1, &opts, &l, &err), -EINTR);
	assert_string_equal(order, "");
	/* a CPU that is not there */
	opts.cpu = 8000;
	assert_int_equal(loop_loss_measure(counted, 1, &opts, &l, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot run on cpu 8000: "));
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

/* --- events --- */

static char program[512];
static volatile int calls;

__attribute__((noinline)) static void hit(void)
{
	calls++;
}

#define PERIOD 4

/* A uprobe on hit(), which an interruption calls PERIOD times. Return: false if there are none here. */
static bool probe(struct perf_event_attr *attr)
{
	unsigned long from, to, offset, at = (unsigned long)hit;
	char type[32], line[1024];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	FILE *maps = fopen("/proc/self/maps", "re");
	int fd;

	*attr = (struct perf_event_attr){ .size = sizeof(*attr), .sample_period = PERIOD };
	attr->config1 = (uintptr_t)program;
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) == 3 && from <= at &&
		    at < to)
			attr->config2 = at - from + offset;
	if (maps)
		fclose(maps);
	if (n < 0 || num_read_line("", "/sys/bus/event_source/devices/uprobe/type", type,
				   sizeof(type), &err))
		return false;
	attr->type = atoi(type);
	fd = perf_open(attr, my_cpu());
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void hit_often(void)
{
	for (int i = 0; i < PERIOD; i++)
		hit();
}

#define NEEDS_PROBE(attr)                                                  \
	do {                                                               \
		if (!probe(attr)) {                                        \
			print_message("skipped: no uprobe events here\n"); \
			skip();                                            \
		}                                                          \
	} while (0)

static int files(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd; /* the lowest one that is free */
}

/* Of an event: the samples that its count and period make, and what it counts in a ns. */
static void test_event(void **state)
{
	const int lowest = files();
	struct perf_event_attr attr;
	struct sample_cost c;

	(void)state;
	NEEDS_PROBE(&attr);
	sim.cost[1] = 2000;
	sim.interrupt = hit_often;
	memset(&c, 0xff, sizeof(c));
	assert_int_equal(sample_cost_measure(&attr, -1, my_cpu(), 0.2, &c, &err), 0);
	is_about(c.ns, 2000, 0.01);
	assert_true(c.spread_ns >= 0 && c.spread_ns < 20);
	is_about((double)c.samples, 0.1e9 / 7000, 0.2);
	is_about(c.per_ns, PERIOD / 5000.0, 0.02); /* of what is not lost */
	assert_int_equal(files(), lowest);
	/* nothing is lost */
	sim.cost[1] = 1;
	assert_int_equal(sample_cost_measure(&attr, -1, my_cpu(), 0.2, &c, &err), -EAGAIN);
	assert_non_null(
		strstr(err.text, "the cost of a sample, 0 ns, is below the noise of 0 ns; "));
	/* nothing is sampled */
	sim.interrupt = NULL;
	assert_int_equal(sample_cost_measure(&attr, -1, my_cpu(), 0.2, &c, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "fewer than 5 rounds of the busy loop had samples; "));
	assert_true(c.per_ns == 0);
	assert_int_equal(files(), lowest);
}

static void test_event_refused(void **state)
{
	const int lowest = files();
	struct perf_event_attr attr;
	struct sample_event *ev = NULL;
	struct sample_cost c = { .ns = 7 };

	(void)state;
	NEEDS_PROBE(&attr);
	assert_true(sample_cost_measure(&attr, -1, 100000, 0.2, &c, &err) < 0);
	assert_non_null(strstr(err.text, "cpu 100000: "));
	assert_non_null(strstr(err.text, "the event"));
	assert_true(sample_cost_measure(&attr, STDERR_FILENO, my_cpu(), 0.2, &c, &err) < 0);
	assert_non_null(strstr(err.text, "cannot attach the BPF program: "));
	assert_true(c.ns == 7);
	assert_int_equal(files(), lowest);
	/* events of all kinds are opened disabled, and for this CPU alone */
	attr.inherit = 1;
	assert_int_equal(sample_event_open(&attr, -1, my_cpu(), &ev, &err), 0);
	hit_often();
	assert_true(sample_event_subject(ev).samples(ev) == 0);
	assert_int_equal(sample_event_subject(ev).set(ev, true, &err), 0);
	hit();
	hit_often();
	assert_int_equal(sample_event_subject(ev).set(ev, false, &err), 0);
	hit();
	assert_true(sample_event_subject(ev).samples(ev) <= 1.25);
	sample_event_close(ev);
	sample_event_close(NULL);
	assert_int_equal(files(), lowest);
}

/* An implausible cost is an error: here interruptions are longer than a sample can be. */
static void test_floor(void **state)
{
	const struct perf_event_attr like = { .size = sizeof(like), .type = PERF_TYPE_SOFTWARE };
	const int lowest = files();
	struct perf_event_attr attr;
	struct sample_cost c = {};
	int ret;

	(void)state;
	NEEDS_PROBE(&attr);
	sim.cost[1] = 399000;
	ret = sample_cost_floor(&like, my_cpu(), 2, &c, &err);
	if (ret == -EAGAIN)
		print_message("disturbed: %s\n", err.text);
	else
		assert_int_equal(ret, -ERANGE);
	if (ret == -ERANGE)
		assert_non_null(strstr(err.text, "implausible result of "));
	assert_int_equal(files(), lowest);
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cost),	 T(test_others),     T(test_short),	T(test_two),
		T(test_unknown), T(test_few_rounds), T(test_disturbed), T(test_too_disturbed),
		T(test_slices),	 T(test_failures),   T(test_event),	T(test_event_refused),
		T(test_floor),
	};

	if (!one_at_a_time())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
