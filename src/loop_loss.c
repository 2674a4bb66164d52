// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loop_loss.h"

#include "clock.h"
#include "cpulist.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SLICE_S	   0.01
#define CHUNK_NS   500000 /* what is thrown away when another process comes between */
#define CHUNKS_MAX 4096
#define ROUNDS_MAX 4096
#define ROUNDS_MIN 5
#define PATIENCE   4
/* A chunk that takes so much longer than the others had something else in it, such as a hypervisor. */
#define OUTLIER 1.5

/* One dependent add a turn: the same time each, whatever the cache or the alignment. */
static void turn(unsigned long n)
{
	unsigned long x = 0;

	for (unsigned long i = 0; i < n; i++)
		__asm__ volatile("add %1, %0\n\tror $7, %0" : "+r"(x) : "r"(i));
}

static unsigned long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw + u.ru_nvcsw;
}

/* Turns that take about a chunk. */
static unsigned long calibrate(void)
{
	unsigned long n = 1024;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 20;) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), t;

		turn(n);
		t = clock_ns(CLOCK_MONOTONIC) - start;
		if (t < CHUNK_NS / 4 && n < 1UL << 40) {
			n *= 2;
			continue;
		}
		best = t < best ? t : best;
		i++;
	}
	n = n * ((double)CHUNK_NS / (best ?: 1));
	return n ?: 1;
}

struct slice {
	double ns; /* of all chunks that count */
	unsigned int chunks;
	double samples; /* in them */
};

struct chunk {
	double ns, samples;
};

static int by_ns(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void run_slice(const struct loop_subject *subject, unsigned long turns, double seconds,
		      struct chunk *chunks, struct slice *out)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + seconds * 1e9;
	unsigned int n = 0;
	double most;

	memset(out, 0, sizeof(*out));
	do {
		unsigned long before = switches();
		double samples = subject->samples ? subject->samples(subject->arg) : 0;
		uint64_t start = clock_ns(CLOCK_MONOTONIC), t;

		turn(turns);
		t = clock_ns(CLOCK_MONOTONIC) - start;
		if (subject->samples)
			samples = subject->samples(subject->arg) - samples;
		if (switches() == before)
			chunks[n++] = (struct chunk){ t, samples };
	} while (clock_ns(CLOCK_MONOTONIC) < end && n < CHUNKS_MAX);
	if (!n)
		return;
	qsort(chunks, n, sizeof(*chunks), by_ns);
	most = chunks[n / 2].ns * OUTLIER;
	for (unsigned int i = 0; i < n && chunks[i].ns <= most; i++) {
		out->ns += chunks[i].ns;
		out->samples += chunks[i].samples;
		out->chunks++;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double loop_median(double *v, size_t n, double *spread)
{
	qsort(v, n, sizeof(*v), by_value);
	/* of a normal distribution: 1.253 sigma / sqrt(n), and the quartiles are 1.349 sigma apart */
	if (spread)
		*spread = 0.929 * (v[(3 * n - 1) / 4] - v[n / 4]) / sqrt(n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void loop_for(double seconds)
{
	double until = now_s() + seconds;

	while (now_s() < until)
		turn(1000);
}

struct rounds {
	double share[ROUNDS_MAX], ns[ROUNDS_MAX];
};

struct work {
	const struct loop_subject *subjects;
	size_t n;
	const struct loop_opts *opts;
	struct loop_loss *out;
	unsigned long turns; /* of a chunk */
	struct chunk chunks[CHUNKS_MAX];
	struct rounds *rounds; /* n of them */
	struct slice *slices;  /* n, and behind them the one without a subject */
};

static int run_slot(struct work *w, size_t i, struct err *err)
{
	static const struct loop_subject nothing;
	const struct loop_subject *subject = i < w->n ? &w->subjects[i] : &nothing;
	struct err ignored;
	double start;
	int ret;

	if (w->opts->stop && *w->opts->stop)
		return err_set(err, -EINTR, "interrupted");
	ret = subject->set ? subject->set(subject->arg, true, err) : 0;

	if (!ret) {
		start = now_s();
		loop_for(w->opts->settle_s);
		run_slice(subject, w->turns, w->opts->slice_s ?: SLICE_S, w->chunks, &w->slices[i]);
		if (i < w->n)
			w->out[i].on_s += now_s() - start;
	}
	if (subject->set) {
		int off = subject->set(subject->arg, false, ret ? &ignored : err);

		ret = ret ?: off;
	}
	return ret;
}

static void compare(struct work *w, size_t i)
{
	const struct slice *off = &w->slices[w->n], *on = &w->slices[i];
	struct loop_loss *out = &w->out[i];
	double base;

	if (!off->chunks || !on->chunks || out->rounds >= ROUNDS_MAX)
		return;
	base = off->ns / off->chunks * on->chunks;
	w->rounds[i].share[out->rounds++] = 1 - base / on->ns;
	if (on->samples > 0)
		w->rounds[i].ns[out->sampled_rounds++] = (on->ns - base) / on->samples;
	out->samples += on->samples;
}

/* One way, then the other, so that what drifts cancels out. */
static int run_round(struct work *w, bool backwards, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i <= w->n; i++)
		ret = run_slot(w, backwards ? w->n - i : i, err);
	for (size_t i = 0; !ret && i < w->n; i++)
		compare(w, i);
	return ret;
}

static unsigned int rounds_so_far(const struct work *w)
{
	unsigned int least = ROUNDS_MAX;

	for (size_t i = 0; i < w->n; i++)
		if (w->out[i].rounds < least)
			least = w->out[i].rounds;
	return least;
}

static int measure(struct work *w, struct err *err)
{
	const struct loop_opts *opts = w->opts;
	double end = now_s() + opts->seconds, latest = now_s() + opts->seconds * PATIENCE;
	unsigned int rounds;
	int ret = 0;

	w->turns = calibrate();
	for (unsigned int i = 0; !ret; i++) {
		rounds = rounds_so_far(w);
		if (rounds >= ROUNDS_MAX || now_s() >= (rounds < LOOP_ROUNDS_MIN ? latest : end))
			break;
		ret = run_round(w, i % 2, err);
	}
	if (ret)
		return ret;
	if (rounds < LOOP_ROUNDS_MIN)
		return err_set(err, -EAGAIN,
			       "cpu %u: only %u rounds of the busy loop, %d are needed: other "
			       "processes have the CPU; try longer, or another CPU",
			       opts->cpu, rounds, LOOP_ROUNDS_MIN);
	for (size_t i = 0; i < w->n; i++) {
		struct loop_loss *out = &w->out[i];

		out->share = loop_median(w->rounds[i].share, out->rounds, &out->share_spread);
		if (out->sampled_rounds < LOOP_ROUNDS_MIN)
			out->sampled_rounds = 0;
		else
			out->ns =
				loop_median(w->rounds[i].ns, out->sampled_rounds, &out->ns_spread);
	}
	return 0;
}

/* On @w->opts->cpu alone. */
static int measure_there(struct work *w, struct err *err)
{
	size_t bytes = CPU_ALLOC_SIZE(CPULIST_MAX);
	cpu_set_t *before = CPU_ALLOC(CPULIST_MAX), *one = CPU_ALLOC(CPULIST_MAX);
	unsigned int cpu = w->opts->cpu;
	int ret = 0;

	if (!before || !one) {
		ret = err_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (sched_getaffinity(0, bytes, before)) {
		ret = err_set(err, -errno, "cannot tell the CPUs we may use: %s", strerror(errno));
		goto out;
	}
	CPU_ZERO_S(bytes, one);
	CPU_SET_S(cpu, bytes, one);
	if (sched_setaffinity(0, bytes, one)) {
		ret = err_set(err, -errno,
			      "cannot run on cpu %u: %s; it must be online, and in our cpuset", cpu,
			      strerror(errno));
		goto out;
	}
	ret = measure(w, err);
	sched_setaffinity(0, bytes, before);
out:
	CPU_FREE(one);
	CPU_FREE(before);
	return ret;
}

int loop_loss_measure(const struct loop_subject *subjects, size_t n, const struct loop_opts *opts,
		      struct loop_loss *out, struct err *err)
{
	struct work *w = calloc(1, sizeof(*w));
	int ret;

	memset(out, 0, n * sizeof(*out));
	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	w->subjects = subjects;
	w->n = n;
	w->opts = opts;
	w->out = out;
	w->rounds = calloc(n, sizeof(*w->rounds));
	w->slices = calloc(n + 1, sizeof(*w->slices));
	if (w->rounds && w->slices)
		ret = measure_there(w, err);
	else
		ret = err_set(err, -ENOMEM, "out of memory");
	free(w->slices);
	free(w->rounds);
	free(w);
	return ret;
}

#define TELL_TURNS 20000
#define TELL_INSNS (8 * TELL_TURNS) /* of the bodies alone */

/* Eight instructions that wait for each other, and eight that do not. */
static uint64_t tell(bool slow)
{
	unsigned long x = 3;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < TELL_TURNS; i++) {
		if (slow)
			__asm__ volatile(".rept 8\n\timul %0, %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 8\n\tnop\n\t.endr");
	}
	return clock_ns(CLOCK_MONOTONIC) - start;
}

bool loop_counts_instructions(void)
{
	uint64_t best[2] = { UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 10; i++) {
		uint64_t t = tell(i % 2);

		best[i % 2] = t < best[i % 2] ? t : best[i % 2];
	}
	return fabs((double)best[0] / best[1] - 1) < 0.1 && best[0] >= TELL_INSNS &&
	       best[0] < 2 * TELL_INSNS;
}
