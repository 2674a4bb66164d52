// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The governor on a machine that is made up here, in steps of 10 ms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/governor.h"
#include "status/reading.h"

#define CPUS	 8
#define STEP_S	 0.01
#define MAX	 0x7fffff0
#define FLOOR	 1000016
#define BUDGET	 0.005
#define BUSY_OPS 5e9 /* of a CPU, a second */

struct machine {
	struct governor *g;
	struct governor_config config;
	struct governor_decision last;
	struct governor_input in;
	__u64 seen[CPUS];
	double phase[CPUS]; /* ops since the last sample */
	double rate[CPUS];  /* ops a second */
	double noise;	    /* of the rates: share, uniform, in each step and of all CPUs at once */
	double own;	    /* share of one CPU that the collector takes */
	double other;	    /* the same for what others ask of it */
	double hidden;	    /* interrupts a sample that no program sees */
	double nmi_ns, bpf_ns; /* as they are; the governor is told the same */
	double throttle; /* samples a second and CPU at which the kernel stops a CPU; 0: never */
	bool timed;	 /* bpf_stats: a second of each ten */
	bool random;	 /* samples come as drops of rain do */
	unsigned int seed;

	double t, next_look, next_window, own_ns, other_ns;
	bool sampling;
	__u64 period;
	double ops, weight; /* that there were, and that samples stand for, while sampling */
	double over_s;	    /* more than 110 % of the budget was spent, by tenths of seconds */
	double tenth_s, tenth_cost;
	double cost_s, cpu_s; /* spent, and of all CPUs, in all */
	double min_period;
	unsigned int changes, stops, starts, ends, trims;
	double last_change;
};

static double draw(struct machine *m)
{
	return 2.0 * rand_r(&m->seed) / RAND_MAX - 1;
}

/* Poisson's distribution; many steps of a small mean. */
static double drops(struct machine *m, double mean)
{
	double n = -1;

	for (double p = 1; p > exp(-mean); n++)
		p *= (draw(m) + 1) / 2;
	return n;
}

static void make(struct machine *m, double budget, __u64 floor)
{
	memset(m, 0, sizeof(*m));
	m->config = (struct governor_config){
		.budget = budget, .floor = floor, .max = MAX, .bpf_max_ns = 2500, .n_cpus = CPUS
	};
	m->g = governor_new(&m->config);
	assert_non_null(m->g);
	m->in.cpus = CPUS;
	m->in.max_rate = 100000;
	m->nmi_ns = 1500;
	m->bpf_ns = 500;
	m->sampling = true;
	m->period = floor;
	m->min_period = floor;
	m->seed = 1;
}

static void all_cpus(struct machine *m, double ops)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		m->rate[cpu] = ops;
}

static void look(struct machine *m)
{
	struct governor_decision d;

	m->in.time_ns = m->t * 1e9;
	m->in.seen = m->seen;
	m->in.cpu_ns = m->own_ns;
	m->in.other_ns = m->other_ns;
	m->in.nmi_ns = m->nmi_ns;
	m->in.bpf_ns = m->bpf_ns;
	governor_step(m->g, &m->in, &d);
	assert_true(d.period >= m->config.floor && d.period <= m->config.max);
	assert_true(d.period == m->config.floor || d.period % GOVERNOR_ROUND == 0);
	assert_true(d.changed == (d.period != m->period));
	assert_true(d.next_s >= GOVERNOR_STEP_S && d.next_s <= 1);
	if (d.changed) {
		/* slow to return */
		if (d.period < m->period) {
			assert_true(d.period == m->config.floor || d.period >= m->period / 2);
			assert_true(m->t - m->last_change > 4.9);
			assert_int_equal(d.why, GOVERNOR_REASON_CALM);
		}
		m->period = d.period;
		/* the kernel begins a period anew */
		memset(m->phase, 0, sizeof(m->phase));
		m->changes++;
		m->last_change = m->t;
	}
	if (d.stop)
		m->sampling = false;
	if (d.start)
		m->sampling = true;
	assert_int_equal(m->sampling, d.state != GOVERNOR_STATE_STOPPED);
	m->stops += d.stop;
	m->starts += d.start;
	m->ends += d.end;
	m->trims += d.trim;
	m->next_look = m->t + d.next_s;
	m->last = d;
}

static void step_cpu(struct machine *m, int cpu, double wobble, double *samples)
{
	double ops = m->rate[cpu] * STEP_S * wobble, most = m->throttle * STEP_S, n;

	if (!m->sampling)
		return;
	n = floor((m->phase[cpu] + ops) / m->period);
	m->phase[cpu] += ops - n * m->period;
	if (m->random)
		n = drops(m, ops / m->period);
	if (m->throttle && n > most) {
		/* a CPU that is stopped does not count */
		ops -= (n - most) * m->period;
		n = floor(most);
		m->in.throttled++;
	}
	m->ops += ops;
	m->seen[cpu] += n;
	m->weight += n * m->period;
	*samples += n;
}

static void run(struct machine *m, double seconds)
{
	for (double end = m->t + seconds; m->t < end; m->t += STEP_S) {
		double samples = 0, wobble = 1 + m->noise * draw(m), cost;

		if (m->t >= m->next_look)
			look(m);
		for (int cpu = 0; cpu < CPUS; cpu++)
			step_cpu(m, cpu, wobble, &samples);
		m->own_ns += m->own * STEP_S * 1e9;
		m->other_ns += m->other * STEP_S * 1e9;
		cost = samples * (m->nmi_ns * (1 + m->hidden) + m->bpf_ns) / 1e9 + m->own * STEP_S;
		m->in.unseen_ops_s = samples * m->hidden * m->period / STEP_S;
		m->cost_s += cost;
		m->cpu_s += STEP_S * CPUS;
		m->tenth_s += STEP_S;
		m->tenth_cost += cost;
		if (m->tenth_s >= 0.1 - STEP_S / 2) {
			if (m->tenth_cost / (m->tenth_s * CPUS) > 1.1 * m->config.budget)
				m->over_s += m->tenth_s;
			m->tenth_s = m->tenth_cost = 0;
		}
		if (m->timed && m->t >= m->next_window) {
			m->in.windows++;
			m->in.window_runs = samples / STEP_S;
			m->in.window_ns = m->bpf_ns;
			m->next_window = m->t + 10;
		}
	}
}

/* Ten seconds in which it settles, and then some in which it has. */
static void settles(struct machine *m)
{
	double over = m->over_s, cost, cpu;

	run(m, 10);
	assert_true(m->over_s - over <= 1);
	over = m->over_s;
	cost = m->cost_s;
	cpu = m->cpu_s;
	run(m, 20);
	assert_true(m->over_s == over);
	assert_true((m->cost_s - cost) / (m->cpu_s - cpu) <= m->config.budget);
}

static void unbiased(const struct machine *m)
{
	assert_true(fabs(m->weight / m->ops - 1) < 0.02);
}

static void test_idle(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	run(&m, 100);
	assert_int_equal(m.changes, 0);
	assert_int_equal(m.last.state, GOVERNOR_STATE_AT_RATE);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_NONE);
	assert_true(m.last.next_s == GOVERNOR_IDLE_STEP_S);
	all_cpus(&m, 0.4 * BUSY_OPS); /* 2000 samples a second: 0.4 % */
	run(&m, 100);
	assert_int_equal(m.changes, 0);
	assert_true(fabs(m.last.overhead - 0.004) < 0.0002);
	assert_true(m.last.next_s == GOVERNOR_STEP_S);
	governor_free(m.g);
}

/* Up and down a hundredfold, at any place between two looks. */
static void test_jumps(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		struct machine m;

		make(&m, BUDGET, 100000);
		m.noise = i % 4 * 0.1;
		m.seed = i + 1;
		all_cpus(&m, 0.02 * BUSY_OPS);
		run(&m, 3 + i * 0.04);
		for (int jump = 0; jump < 3; jump++) {
			all_cpus(&m, 2 * BUSY_OPS);
			settles(&m);
			assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
			assert_true(m.period > 20 * 100000);
			all_cpus(&m, 0.02 * BUSY_OPS);
			settles(&m);
			run(&m, 120 + i * 0.03);
			assert_int_equal(m.period, 100000);
			assert_int_equal(m.last.state, GOVERNOR_STATE_AT_RATE);
		}
		unbiased(&m);
		assert_int_equal(m.stops, 0);
		assert_true(m.changes < 60);
		/* each jump is spent again before it returns */
		assert_true(m.cost_s / m.cpu_s < BUDGET);
		assert_true(fabs(m.last.cost_ns / 1e9 / m.cost_s - 1) < 0.02);
		governor_free(m.g);
	}
}

/* As jumps, but so often that returning would not be worth it. */
static void test_flapping(void **state)
{
	static const double periods[] = { 0.3, 1, 3, 7, 13, 31 };

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		struct machine m;

		make(&m, BUDGET, 100000);
		for (int n = 0; n * periods[i] < 1200; n++) {
			all_cpus(&m, n % 2 ? 2 * BUSY_OPS : 0.02 * BUSY_OPS);
			run(&m, periods[i]);
		}
		assert_true(m.changes / 20.0 <= 5);
		assert_true(m.cost_s / m.cpu_s <= BUDGET);
		unbiased(&m);
		governor_free(m.g);
	}
}

/*
 * An outsider who sees each decision, and at the worst moment makes CPUs busy, empties their caches, asks for
 * work, or rests: cpu 0 is a victim with a steady load.
 */
static void attack(struct machine *m, int how)
{
	const double lull = 0.02 * BUSY_OPS, storm = 2 * BUSY_OPS;
	bool high = how == 0   ? m->period == m->config.floor
		    : how == 1 ? m->t - m->last_change < 4.8  /* rests until it looks calm */
		    : how == 2 ? m->next_look > m->t + STEP_S /* between looks */
			       : draw(m) > 0.9;

	all_cpus(m, high ? storm : lull);
	m->rate[0] = 0.4 * BUSY_OPS;
	/* what a sample costs between two looks is not known to anybody */
	m->bpf_ns = high && how != 2 ? 9 * m->config.bpf_max_ns : 500;
	m->other = high;
}

static void test_hostile_neighbour(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct machine m;
		double seen, ended;

		make(&m, BUDGET, FLOOR);
		m.timed = true;
		m.random = how % 2;
		m.seed = how + 1;
		while (m.t < 1800) {
			attack(&m, how);
			run(&m, STEP_S);
		}
		seen = m.seen[0];
		assert_int_equal(m.stops, 0);
		assert_true(m.cost_s / m.cpu_s < BUDGET);
		/* of the victim at least what the longest period leaves, and all of it when he is gone */
		assert_true(seen > 0.9 * 1800 * 0.4 * BUSY_OPS / MAX);
		unbiased(&m);
		all_cpus(&m, 0.02 * BUSY_OPS);
		m.rate[0] = 0.4 * BUSY_OPS;
		m.bpf_ns = 500;
		m.other = 0;
		for (ended = m.t; m.period > FLOOR && m.t < ended + 600;)
			run(&m, 1);
		print_message(
			"neighbour %d: %.0f samples, cost %.2f of the budget, back after %.0f s\n",
			how, seen, m.cost_s / m.cpu_s / BUDGET, m.t - ended);
		assert_true(m.t < ended + 600);
		governor_free(m.g);
	}
}

static void test_steady_noise(void **state)
{
	static const double loads[] = { 0.05, 0.3, 0.5, 0.7, 1, 2 };
	static const double noises[] = { 0, 0.2, 0.5, 1 };
	static const double budgets[] = { 0.0005, 0.001, 0.005, 0.02 };

	(void)state;
	for (size_t l = 0; l < 6; l++)
		for (size_t n = 0; n < 4; n++)
			for (size_t b = 0; b < 4; b++) {
				struct machine m;
				unsigned int before;

				make(&m, budgets[b], FLOOR);
				m.noise = noises[n];
				all_cpus(&m, loads[l] * BUSY_OPS);
				run(&m, 60);
				before = m.changes;
				run(&m, 600);
				assert_true(m.changes - before <= 10); /* one a minute */
				assert_true(m.last.overhead < 1.1 * budgets[b]);
				assert_int_equal(m.stops, 0);
				unbiased(&m);
				governor_free(m.g);
			}
}

/* Few samples, by chance now more, now less. */
static void test_small_numbers(void **state)
{
	static const double loads[] = { 0.1, 0.5, 1, 3 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct machine m;
		double cost;

		make(&m, BUDGET / 20, 100000);
		m.nmi_ns = 19500; /* 25 samples a look */
		m.random = true;
		all_cpus(&m, loads[i] * 0.002 * BUSY_OPS);
		run(&m, 300);
		m.changes = 0;
		cost = m.cost_s;
		run(&m, 1200);
		assert_true(m.changes <= 20);
		assert_true(m.cost_s - cost < 1200 * CPUS * BUDGET / 20);
		governor_free(m.g);
	}
}

/* A little too much, which no look can tell from chance. */
static void test_slow_rise(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET / 20, 100000);
	m.nmi_ns = 19500;
	for (int cpu = 0; cpu < CPUS; cpu++)
		m.phase[cpu] = 100000.0 * cpu / CPUS;
	for (int i = 0; i < 1000 && !m.changes; i++) {
		all_cpus(&m, 100000 * 12.5 * i / 800);
		run(&m, 0.5);
	}
	assert_int_equal(m.changes, 1);
	assert_true(m.rate[0] < 1.08 * 12.5 * 100000);
	assert_true(m.rate[0] > 12.5 * 100000);
	governor_free(m.g);
}

/* Bursts far above a small budget, of which most is spent between them: it holds in the long run. */
static void test_bursts(void **state)
{
	(void)state;
	for (int pause = 40; pause <= 120; pause += 20) {
		struct machine m;

		make(&m, BUDGET / 10, 10 * FLOOR);
		all_cpus(&m, 0.35 * BUSY_OPS);
		run(&m, 20);
		for (int i = 0; i < 6; i++) {
			all_cpus(&m, 200 * BUSY_OPS);
			run(&m, 0.5);
			all_cpus(&m, 0.35 * BUSY_OPS);
			run(&m, pause);
		}
		run(&m, 120);
		assert_true(m.cost_s / m.cpu_s <= BUDGET / 10);
		governor_free(m.g);
	}
}

/* It is not more careful than it needs to be. */
static void test_uses_the_budget(void **state)
{
	struct machine m;
	double cost;

	(void)state;
	make(&m, BUDGET, 1008);
	m.noise = 0.1;
	all_cpus(&m, BUSY_OPS);
	run(&m, 120);
	cost = m.cost_s;
	run(&m, 100);
	assert_true((m.cost_s - cost) / (100 * CPUS) > 0.6 * BUDGET);
	governor_free(m.g);
}

static void test_own_cost(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	m.own = 0.5 * BUDGET * CPUS;
	all_cpus(&m, 0.4 * BUSY_OPS); /* 80 % of the budget without it */
	run(&m, 300);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
	assert_true(m.last.overhead < BUDGET && fabs(m.last.own - 0.5 * BUDGET) < 0.1 * BUDGET);
	assert_true(m.period > 2 * FLOOR);
	assert_int_equal(m.stops, 0);
	/* whatever the collector takes, the other half of the budget is for samples */
	m.own = 20 * BUDGET * CPUS;
	run(&m, 300);
	assert_int_equal(m.stops, 0);
	assert_true(m.period < 8 * FLOOR);
	governor_free(m.g);
}

/* Work that others cause, by the thousand cgroups or requests, is reported but changes nothing. */
static void test_work_of_others(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	all_cpus(&m, 0.4 * BUSY_OPS);
	run(&m, 60);
	m.other = 20 * BUDGET * CPUS;
	run(&m, 300);
	assert_int_equal(m.changes, 0);
	assert_int_equal(m.stops, 0);
	assert_int_equal(m.last.state, GOVERNOR_STATE_AT_RATE);
	assert_true(m.last.overhead > 19 * BUDGET && m.last.own > 19 * BUDGET);
	assert_true(m.last.cost_ns > 290e9 * 20 * BUDGET * CPUS);
	governor_free(m.g);
}

/* Samples alone are too dear at the longest period: nothing but a stop helps. */
static void test_samples_stop_sampling(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	m.nmi_ns = 1e8;
	all_cpus(&m, BUSY_OPS);
	run(&m, 60);
	assert_int_equal(m.last.state, GOVERNOR_STATE_STOPPED);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
	governor_free(m.g);
}

static void test_hidden(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	m.hidden = 5;
	all_cpus(&m, 0.2 * BUSY_OPS); /* 40 % of the budget by what is seen, 190 % in all */
	settles(&m);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	governor_free(m.g);
}

/* One CPU that is far above the others: the machine's cost is small, the kernel's limit is near. */
static void test_hot_cpu(void **state)
{
	struct machine m;

	(void)state;
	make(&m, 0.1, 16016);
	m.nmi_ns = 900;
	m.bpf_ns = 100;
	m.throttle = 100000;
	m.rate[3] = BUSY_OPS / 4; /* 78000 samples a second */
	run(&m, 10);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_KERNEL_LIMIT);
	assert_true(m.rate[3] / m.period <= 50000);
	assert_true(m.in.throttled == 0);
	m.rate[3] = 4 * BUSY_OPS;
	run(&m, 10);
	assert_true(m.rate[3] / m.period <= 50000);
	/* the limit was lowered for all */
	m.in.max_rate = 3000;
	m.throttle = 3000;
	run(&m, 10);
	assert_true(m.rate[3] / m.period <= 1500);
	m.in.throttled = 0;
	m.changes = 0;
	run(&m, 300);
	assert_true(m.in.throttled == 0);
	assert_true(m.changes <= 1);
	unbiased(&m);
	governor_free(m.g);
}

static void test_throttled(void **state)
{
	struct machine m;
	__u64 before;

	(void)state;
	make(&m, BUDGET, FLOOR);
	run(&m, 1);
	/* more than the limit allows in a moment, though not in a look: doubled, and not twice */
	m.rate[0] = 0.2 * 100000 * FLOOR;
	m.nmi_ns = m.bpf_ns = 1;
	run(&m, 1);
	m.in.throttled++;
	before = m.period;
	run(&m, 1);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_THROTTLED);
	assert_true(m.period == 2 * before);
	run(&m, 60);
	assert_int_equal(m.period, FLOOR);
	/* a CPU that idles, whose tick stands still */
	m.rate[0] = 0.02 * 100000 * FLOOR;
	for (int i = 0; i < 100; i++) {
		m.in.throttled++;
		run(&m, 0.5);
	}
	assert_int_equal(m.period, FLOOR);
	governor_free(m.g);
}

/* Stopped, and tried again after a time that doubles, until it can be held. */
static void test_impossible(void **state)
{
	static const double retries[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600 };
	struct machine m;

	(void)state;
	make(&m, 0.00001, FLOOR);
	all_cpus(&m, BUSY_OPS);
	for (size_t i = 0; i < sizeof(retries) / sizeof(retries[0]); i++) {
		double stopped;

		for (int n = 0; m.sampling && n < 1000; n++)
			run(&m, STEP_S);
		assert_false(m.sampling);
		assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
		assert_true(m.last.retry_s == retries[i]);
		assert_int_equal(m.period, MAX);
		stopped = m.t;
		for (int n = 0; !m.sampling && n < 1000000; n++)
			run(&m, STEP_S);
		assert_true(fabs(m.t - stopped - retries[i]) < 2);
	}
	assert_true(m.over_s <= 30);
	all_cpus(&m, 0.0001 * BUSY_OPS);
	for (int n = 0; n < 200; n++)
		run(&m, 60);
	assert_true(m.sampling);
	assert_int_equal(m.last.state, GOVERNOR_STATE_AT_RATE);
	/* and what was is forgotten */
	all_cpus(&m, BUSY_OPS);
	for (int n = 0; m.sampling && n < 1000; n++)
		run(&m, STEP_S);
	assert_true(m.last.retry_s == 60);
	governor_free(m.g);
}

/* Above the budget at the longest period, where something else asks for a longer one still. */
static void test_impossible_and_more(void **state)
{
	(void)state;
	for (int throttled = 0; throttled < 2; throttled++) {
		struct machine m;

		make(&m, BUDGET, FLOOR);
		governor_free(m.g);
		m.config.max = 2 * FLOOR;
		m.g = governor_new(&m.config);
		assert_non_null(m.g);
		all_cpus(&m,
			 10 * BUSY_OPS); /* 25000 samples a second and CPU at the longest period */
		m.in.max_rate = throttled ? 100000 : 5000;
		for (int n = 0; m.sampling && n < 500; n++) {
			m.in.throttled += throttled;
			run(&m, STEP_S);
		}
		assert_false(m.sampling);
		assert_int_equal(m.period, 2 * FLOOR);
		assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
		governor_free(m.g);
		/* but without the budget it goes on */
		m.config.budget = 0.5;
		m.g = governor_new(&m.config);
		assert_non_null(m.g);
		m.sampling = true;
		m.period = FLOOR;
		for (int n = 0; n < 500; n++) {
			m.in.throttled += throttled;
			run(&m, STEP_S);
		}
		assert_true(m.sampling);
		assert_int_equal(m.period, 2 * FLOOR);
		governor_free(m.g);
	}
}

/* A stop for something else does not take the place of why the period is longer. */
static void test_reason_after_stop(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	m.timed = true;
	all_cpus(&m, 5 * BUSY_OPS);
	run(&m, 30);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
	m.bpf_ns = 25100;
	for (int n = 0; m.sampling && n < 10000; n++)
		run(&m, STEP_S);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BPF_SLOW);
	assert_int_equal(governor_longer(m.g), GOVERNOR_REASON_BUDGET);
	m.bpf_ns = 500;
	for (int n = 0; !m.sampling && n < 10000; n++)
		run(&m, STEP_S);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
	governor_free(m.g);
}

static void test_bpf_slow(void **state)
{
	struct machine m;

	(void)state;
	make(&m, 0.05, FLOOR);
	m.timed = true;
	all_cpus(&m, BUSY_OPS);
	m.bpf_ns = 2400;
	run(&m, 100);
	assert_int_equal(m.stops, 0);
	m.bpf_ns = 25100;
	run(&m, 25);
	assert_int_equal(m.stops, 1);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BPF_SLOW);
	run(&m, 100);
	assert_int_equal(m.starts, 1);
	assert_int_equal(m.stops, 2);
	m.bpf_ns = 500;
	run(&m, 300);
	assert_true(m.sampling);
	governor_free(m.g);
	m.config.bpf_max_ns = 0;
	m.g = governor_new(&m.config);
	m.period = m.config.floor;
	m.bpf_ns = 25100;
	run(&m, 100);
	assert_true(m.sampling);
	governor_free(m.g);
	m.config.bpf_max_ns = 2500;
	m.g = governor_new(&m.config);
	m.period = m.config.floor;
	/* one slow window, and few runs, are no reason */
	m.bpf_ns = 90000;
	run(&m, 10);
	m.bpf_ns = 500;
	run(&m, 10);
	m.bpf_ns = 90000;
	run(&m, 10);
	m.bpf_ns = 500;
	run(&m, 100);
	all_cpus(&m, FLOOR);
	m.bpf_ns = 90000;
	run(&m, 100);
	assert_int_equal(m.stops, 2);
	governor_free(m.g);
}

/* A neighbour that makes the program slow, by whatever means, makes the period longer, and ends nothing. */
static void test_bpf_slowed_by_neighbour(void **state)
{
	struct machine m;

	(void)state;
	make(&m, 0.05, FLOOR);
	m.timed = true;
	all_cpus(&m, BUSY_OPS);
	/* as seen on a busy virtual machine */
	m.bpf_ns = 3472;
	run(&m, 300);
	assert_int_equal(m.stops, 0);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BPF_SLOW);
	assert_true(m.period >= FLOOR * 3472.0 / 2500 && m.period < 1.01 * FLOOR * 3472.0 / 2500);
	/* windows in which most of the time was stolen */
	m.bpf_ns = 24000;
	run(&m, 60);
	assert_int_equal(m.stops, 0);
	assert_true(m.period >= FLOOR * 24000.0 / 2500 && m.period < 1.01 * FLOOR * 24000.0 / 2500);
	m.bpf_ns = 500;
	run(&m, 600);
	assert_int_equal(m.period, FLOOR);
	assert_int_equal(m.last.state, GOVERNOR_STATE_AT_RATE);
	assert_int_equal(m.stops, 0);
	governor_free(m.g);
}

static void test_memory(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, FLOOR);
	governor_free(m.g);
	m.config.rss_max = 1000;
	m.g = governor_new(&m.config);
	m.in.rss_bytes = 1000;
	run(&m, 100);
	assert_int_equal(m.trims, 0);
	m.in.rss_bytes = 1001;
	run(&m, 5);
	assert_int_equal(m.trims, 1);
	assert_int_equal(m.ends, 0);
	m.in.rss_bytes = 900;
	run(&m, 1);
	m.in.rss_bytes = 1001;
	run(&m, 9);
	assert_int_equal(m.trims, 2);
	assert_int_equal(m.ends, 0);
	run(&m, 5);
	assert_true(m.ends > 0);
	assert_int_equal(m.last.state, GOVERNOR_STATE_STOPPED);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_MEMORY);
	governor_free(m.g);
}

/* No budget: nothing is governed, but the fail-safe holds; also where the period varies. */
static void test_off(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct machine m;
		__u64 period = i ? FLOOR : 0;

		make(&m, 0, FLOOR);
		governor_free(m.g);
		m.config.floor = period;
		m.g = governor_new(&m.config);
		all_cpus(&m, 10 * BUSY_OPS);
		m.timed = true;
		for (int n = 0; n < 100; n++) {
			struct governor_decision d;

			m.t += 1;
			m.in.time_ns = m.t * 1e9;
			m.in.seen = m.seen;
			m.seen[0] += 1000000;
			m.in.throttled++;
			governor_step(m.g, &m.in, &d);
			assert_true(!d.changed && !d.stop && d.period == period);
			assert_int_equal(d.state, GOVERNOR_STATE_OFF);
		}
		for (int n = 0; n < 2; n++) {
			struct governor_decision d;

			m.t += 1;
			m.in.time_ns = m.t * 1e9;
			m.in.windows++;
			m.in.window_ns = 3000;
			m.in.window_runs = 1000;
			governor_step(m.g, &m.in, &d);
			assert_int_equal(d.stop, n == 1);
		}
		governor_free(m.g);
	}
}

/* Where an earlier one was. */
static void test_start(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, 100000);
	governor_free(m.g);
	m.config.start = m.period = 4000000;
	m.config.start_reason = GOVERNOR_REASON_BUDGET;
	m.g = governor_new(&m.config);
	assert_true(governor_period(m.g) == 4000000);
	all_cpus(&m, BUSY_OPS);
	run(&m, 1);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_BUDGET);
	run(&m, 30);
	assert_true(m.over_s == 0);
	all_cpus(&m, 0);
	run(&m, 60);
	assert_int_equal(m.period, 100000);
	governor_free(m.g);
	/* an earlier one that had stopped for something else */
	m.config.start_reason = GOVERNOR_REASON_MEMORY;
	m.period = 4000000;
	m.g = governor_new(&m.config);
	run(&m, 1);
	assert_int_equal(m.last.state, GOVERNOR_STATE_BACKED_OFF);
	assert_int_equal(m.last.reason, GOVERNOR_REASON_NONE);
	governor_free(m.g);
	m.config.start = MAX + 16;
	m.g = governor_new(&m.config);
	assert_true(governor_period(m.g) == 100000);
	governor_free(m.g);
}

/* Suspended, stopped, starved: clocks and counters that do not go as they should. */
static void test_gaps(void **state)
{
	struct machine m;
	unsigned int changes;

	(void)state;
	make(&m, BUDGET, 100000);
	all_cpus(&m, BUSY_OPS);
	run(&m, 10);
	changes = m.changes;
	assert_true(m.period > 100000);
	/* a day in which nothing ran is no reason to return at once */
	m.t += 86400;
	m.next_look = 0;
	run(&m, 0.3);
	assert_int_equal(m.changes, changes);
	run(&m, 4);
	assert_true(m.over_s < 1);
	/* the clock goes back, counters begin anew, or are what they were at the same time */
	m.t -= 1000;
	m.next_look = 0;
	run(&m, 0.1);
	changes = m.changes;
	memset(m.seen, 0, sizeof(m.seen));
	m.next_look = 0;
	run(&m, 0.1);
	assert_int_equal(m.changes, changes);
	m.own_ns = 0;
	m.next_look = 0;
	run(&m, 0.1);
	assert_int_equal(m.changes, changes);
	look(&m);
	look(&m);
	m.seen[0] = UINT64_MAX - 5;
	look(&m);
	assert_true(m.period <= MAX);
	run(&m, 600);
	assert_true(m.sampling);
	assert_true(m.last.overhead < BUDGET);
	governor_free(m.g);
}

static void test_hotplug(void **state)
{
	struct machine m;

	(void)state;
	make(&m, BUDGET, 100000);
	all_cpus(&m, BUSY_OPS);
	settles(&m);
	all_cpus(&m, 0);
	m.rate[0] = BUSY_OPS;
	m.in.cpus = 1;
	run(&m, 10);
	assert_true(m.last.overhead < BUDGET);
	m.in.cpus = 0;
	m.rate[0] = 0;
	run(&m, 100);
	assert_true(isfinite(m.last.overhead) && m.sampling);
	governor_free(m.g);
}

static void test_no_sense(void **state)
{
	(void)state;
	assert_null(governor_new(&(struct governor_config){ .budget = 0.1, .max = 1 }));
	assert_null(governor_new(&(struct governor_config){ .budget = 0.1, .floor = 2, .max = 1 }));
	governor_free(NULL);
	for (int s = 0; s < GOVERNOR_STATE_N; s++)
		assert_true(*governor_state_name(s));
	for (int r = 0; r < GOVERNOR_REASON_N; r++)
		assert_true(*governor_reason_name(r) && *governor_reason_help(r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_flapping),
		cmocka_unit_test(test_hostile_neighbour),
		cmocka_unit_test(test_steady_noise),
		cmocka_unit_test(test_small_numbers),
		cmocka_unit_test(test_slow_rise),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_uses_the_budget),
		cmocka_unit_test(test_own_cost),
		cmocka_unit_test(test_work_of_others),
		cmocka_unit_test(test_samples_stop_sampling),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_hot_cpu),
		cmocka_unit_test(test_throttled),
		cmocka_unit_test(test_impossible),
		cmocka_unit_test(test_bpf_slow),
		cmocka_unit_test(test_bpf_slowed_by_neighbour),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_no_sense),
		cmocka_unit_test(test_impossible_and_more),
		cmocka_unit_test(test_reason_after_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
