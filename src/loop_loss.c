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

double loop_median(double *v, unsigned int n, double *spread)
{
	qsort(v, n, sizeof(*v), by_value);
	/* of a normal distribution: 1.253 sigma / sqrt(n), and the quartiles are 1.349 sigma apart */
	if (spread)
		*spread = 0.929 * (v[(3 * n - 1) / 4] - v[n / 4]) / sqrt(n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct work {
	struct chunk chunks[CHUNKS_MAX];
	double share[ROUNDS_MAX], ns[ROUNDS_MAX];
	unsigned int rounds, with_samples;
};

static void settle(double seconds)
{
	double until = now_s() + seconds;

	while (now_s() < until)
		turn(1000);
}

/* Off then on, or on then off, so that what drifts cancels out. */
static int run_round(const struct loop_subject *subject, const struct loop_opts *opts,
		     unsigned long turns, bool on_first, struct work *w, struct loop_loss *out,
		     struct err *err)
{
	struct slice slice[2];
	double base, start;

	for (int i = 0; i < 2; i++) {
		bool on = on_first ^ i;
		int ret = subject->set(subject->arg, on, err);

		if (ret)
			return ret;
		start = now_s();
		settle(opts->settle_s);
		run_slice(subject, turns, opts->slice_s ?: SLICE_S, w->chunks, &slice[on]);
		if (on)
			out->on_s += now_s() - start;
	}
	if (!slice[0].chunks || !slice[1].chunks)
		return 0;
	base = slice[0].ns / slice[0].chunks * slice[1].chunks;
	w->share[w->rounds++] = 1 - base / slice[1].ns;
	if (slice[1].samples > 0)
		w->ns[w->with_samples++] = (slice[1].ns - base) / slice[1].samples;
	out->samples += slice[1].samples;
	return 0;
}

static int too_disturbed(const struct loop_opts *opts, unsigned int rounds, const char *of,
			 struct err *err)
{
	return err_set(err, -EAGAIN,
		       "cpu %u: only %u rounds of the busy loop%s, %d are needed: other processes "
		       "have the CPU; try longer, or another CPU",
		       opts->cpu, rounds, of, ROUNDS_MIN);
}

static int measure(const struct loop_subject *subject, const struct loop_opts *opts, struct work *w,
		   struct loop_loss *out, struct err *err)
{
	double end = now_s() + opts->seconds, latest = now_s() + opts->seconds * PATIENCE;
	unsigned long turns = calibrate();
	struct err ignored;
	int ret = 0;

	for (unsigned int i = 0; !ret && w->rounds < ROUNDS_MAX; i++) {
		if (now_s() >= (w->rounds < ROUNDS_MIN ? latest : end))
			break;
		ret = run_round(subject, opts, turns, i % 2, w, out, err);
	}
	subject->set(subject->arg, false, ret ? &ignored : err);
	if (ret)
		return ret;
	if (w->rounds < ROUNDS_MIN)
		return too_disturbed(opts, w->rounds, "", err);
	if (subject->samples && w->with_samples < ROUNDS_MIN)
		return too_disturbed(opts, w->with_samples, " had samples", err);
	out->rounds = w->rounds;
	out->share = loop_median(w->share, w->rounds, &out->share_spread);
	if (w->with_samples)
		out->ns = loop_median(w->ns, w->with_samples, &out->ns_spread);
	return 0;
}

int loop_loss_measure(const struct loop_subject *subject, const struct loop_opts *opts,
		      struct loop_loss *out, struct err *err)
{
	size_t bytes = CPU_ALLOC_SIZE(CPULIST_MAX);
	cpu_set_t *before = CPU_ALLOC(CPULIST_MAX), *one = CPU_ALLOC(CPULIST_MAX);
	struct work *w = calloc(1, sizeof(*w));
	int ret = 0;

	memset(out, 0, sizeof(*out));
	if (!before || !one || !w)
		ret = err_set(err, -ENOMEM, "out of memory");
	if (!ret && sched_getaffinity(0, bytes, before))
		ret = err_set(err, -errno, "cannot tell the CPUs we may use: %s", strerror(errno));
	if (!ret) {
		CPU_ZERO_S(bytes, one);
		CPU_SET_S(opts->cpu, bytes, one);
		if (sched_setaffinity(0, bytes, one))
			ret = err_set(err, -errno,
				      "cannot run on cpu %u: %s; it must be online, and in our "
				      "cpuset",
				      opts->cpu, strerror(errno));
	}
	if (!ret) {
		ret = measure(subject, opts, w, out, err);
		sched_setaffinity(0, bytes, before);
	}
	free(w);
	CPU_FREE(one);
	CPU_FREE(before);
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
