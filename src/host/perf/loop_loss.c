// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample_cost.h"

#include "base/clock.h"
#include "base/cpulist.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SLICE_S	   0.01
#define CHUNK_NS   500000 /* discarded if another process ran in between */
#define ROUNDS_MAX 4096
#define LONGER_MAX 4 /* maximum multiple of the requested time */
/* An iteration was interrupted if it took 1.5 times as long as usual plus this. */
#define INTERRUPTED_NS 100
/* Longer than any sample: the hypervisor or another process had the CPU. */
#define AWAY_NS 400000
#define USUAL_N 20001

/* lost_ns: time of interrupted iterations beyond their usual time. */
struct chunk {
	uint64_t ns, lost_ns;
	bool away;
};

static void run_chunk(uint64_t usual, struct chunk *out)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), last = start, now, lost = 0, longest = 0;
	uint64_t limit = usual + usual / 2 + INTERRUPTED_NS;

	do {
		uint64_t took;

		now = clock_ns(CLOCK_MONOTONIC);
		took = now - last;
		last = now;
		if (took <= limit)
			continue;
		lost += took - usual;
		longest = took > longest ? took : longest;
	} while (now - start < CHUNK_NS);
	*out = (struct chunk){ now - start, lost, longest > AWAY_NS };
}

static unsigned long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw + u.ru_nvcsw;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The usual time of an iteration in ns. */
static uint64_t calibrate(void)
{
	static _Thread_local double took[USUAL_N];
	uint64_t last = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < USUAL_N; i++) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		took[i] = now - last;
		last = now;
	}
	qsort(took, USUAL_N, sizeof(took[0]), by_value);
	return fmax(took[USUAL_N / 2], 1);
}

struct slice {
	double ns, lost_ns, samples; /* of undisturbed chunks */
};

static void run_slice(const struct loop_subject *subject, uint64_t usual, double seconds,
		      struct slice *out)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + seconds * 1e9;

	memset(out, 0, sizeof(*out));
	do {
		unsigned long before = switches();
		double samples = subject->samples ? subject->samples(subject->arg) : 0;
		struct chunk c;

		run_chunk(usual, &c);
		if (subject->samples)
			samples = subject->samples(subject->arg) - samples;
		if (c.away || switches() != before)
			continue;
		out->ns += c.ns;
		out->lost_ns += c.lost_ns;
		out->samples += samples;
	} while (clock_ns(CLOCK_MONOTONIC) < end);
}

double loop_median(double *v, size_t n, double *spread)
{
	qsort(v, n, sizeof(*v), by_value);
	/* of a normal distribution: 1.253 sigma / sqrt(n), and the quartiles are 1.349 sigma apart */
	if (spread)
		*spread = 0.929 * (v[(3 * n - 1) / 4] - v[n / 4]) / sqrt(n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* NAN: too disturbed, or no sample. */
struct rounds {
	double share[ROUNDS_MAX], ns[ROUNDS_MAX];
};

struct work {
	const struct loop_subject *subjects;
	size_t n;
	const struct loop_opts *opts;
	struct loop_loss *out;
	uint64_t usual;	       /* ns of an iteration */
	struct rounds *rounds; /* n of them */
	unsigned int n_rounds;
	double sorted[ROUNDS_MAX];
	struct slice *slices; /* n, then the one without a subject */
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
		run_slice(subject, w->usual, w->opts->slice_s ?: SLICE_S, &w->slices[i]);
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
	double *share = &w->rounds[i].share[w->n_rounds], *ns = &w->rounds[i].ns[w->n_rounds];
	struct loop_loss *out = &w->out[i];

	*share = *ns = NAN;
	if (!off->ns || !on->ns)
		return;
	*share = on->lost_ns / on->ns - off->lost_ns / off->ns;
	out->rounds++;
	if (on->samples <= 0)
		return;
	*ns = *share * on->ns / on->samples;
	out->sampled_rounds++;
	out->samples += on->samples;
	out->sampled_ns += on->ns;
}

/* Alternate directions, so that drift cancels out. */
static int run_round(struct work *w, bool backwards, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i <= w->n; i++)
		ret = run_slot(w, backwards ? w->n - i : i, err);
	for (size_t i = 0; !ret && i < w->n; i++)
		compare(w, i);
	w->n_rounds++;
	return ret;
}

/* Median of @v, without NANs. */
static double median_of(struct work *w, const double *v, double *spread)
{
	size_t n = 0;

	for (unsigned int i = 0; i < w->n_rounds; i++)
		if (!isnan(v[i]))
			w->sorted[n++] = v[i];
	*spread = 0;
	return n ? loop_median(w->sorted, n, spread) : 0;
}

static void summarise(struct work *w, size_t i)
{
	struct loop_loss *out = &w->out[i];

	out->share = median_of(w, w->rounds[i].share, &out->share_spread);
	if (out->sampled_rounds < LOOP_ROUNDS_MIN)
		out->sampled_rounds = 0;
	else
		out->ns = median_of(w, w->rounds[i].ns, &out->ns_spread);
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
	double end = now_s() + opts->seconds, latest = now_s() + opts->seconds * LONGER_MAX;
	unsigned int rounds;
	int ret = 0;

	w->usual = calibrate();
	for (unsigned int i = 0; !ret; i++) {
		rounds = rounds_so_far(w);
		if (w->n_rounds >= ROUNDS_MAX ||
		    now_s() >= (rounds < LOOP_ROUNDS_MIN ? latest : end))
			break;
		ret = run_round(w, i % 2, err);
	}
	if (ret)
		return ret;
	if (rounds < LOOP_ROUNDS_MIN)
		return err_set(err, -EAGAIN,
			       "cpu %u: only %u of %d required rounds of the busy loop: other "
			       "processes use the CPU; measure longer, or on another CPU",
			       opts->cpu, rounds, LOOP_ROUNDS_MIN);
	for (size_t i = 0; i < w->n; i++)
		summarise(w, i);
	return 0;
}

/* Measure while bound to @w->opts->cpu. */
static int measure_on_cpu(struct work *w, struct err *err)
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
		ret = err_set(err, -errno, "cannot read the CPU affinity: %s", strerror(errno));
		goto out;
	}
	CPU_ZERO_S(bytes, one);
	CPU_SET_S(cpu, bytes, one);
	if (sched_setaffinity(0, bytes, one)) {
		ret = err_set(err, -errno,
			      "cannot run on cpu %u: %s; it must be online and in our cpuset", cpu,
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
	struct work *w = xcalloc(1, sizeof(*w));
	int ret;

	memset(out, 0, n * sizeof(*out));
	w->subjects = subjects;
	w->n = n;
	w->opts = opts;
	w->out = out;
	w->rounds = xcalloc(n, sizeof(*w->rounds));
	w->slices = xcalloc(n + 1, sizeof(*w->slices));
	ret = measure_on_cpu(w, err);
	free(w->slices);
	free(w->rounds);
	free(w);
	return ret;
}
