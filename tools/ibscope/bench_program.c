// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the program costs by itself, run on request, for each end that a sample can come to. */
#include "bench.h"

#include "rlimit.h"
#include "twin.h"

#include <ibscope/sim.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TWIN_RING  (128u << 10) /* one for each CPU of the machine */
#define AT_ONCE	   512		/* records that fit */
#define CASES_MAX  32
#define ROUNDS_MAX 512
#define FILES	   32 /* that a sampler has, and one a CPU more */

/* The cases, each in a sampler of its own; the first is the loop without a sample. */
struct twins {
	const struct bench_case *cases[CASES_MAX];
	struct sampler *samplers[CASES_MAX];
	size_t n;
	double v[CASES_MAX][ROUNDS_MAX];
	unsigned int rounds;
};

static const struct bench_case floor_case = { .name = "floor", .outcome = IBS_OUTCOME_N };

static int take_none(const struct record_batch *batch, void *arg, struct err *err)
{
	(void)batch;
	(void)arg;
	(void)err;
	return 0;
}

static int drain(struct sampler *s, struct err *err)
{
	struct rings *rings = sampler_rings(s);

	return rings ? rings_drain(rings, UINT64_MAX, take_none, NULL, err) : 0;
}

/* A load from memory that took 300 cycles, as the kernel hands it over. */
static int load_raw(const struct bench *b, struct sampler *s, struct err *err)
{
	__u32 raw[(IBS_OP_RAW_MIN + 3) / 4] = { b->ibs.caps };
	struct twin_raw one = { .raw = raw, .bytes = IBS_OP_RAW_MIN };
	__u64 regs[IBS_OP_REG_FIXED];
	enum ibs_outcome out;

	ibs_sim_op(1, 0, 0, b->ibs.caps, regs);
	regs[IBS_OP_DATA2] = 3;
	regs[IBS_OP_DATA3] =
		IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 300ULL << 32;
	memcpy(raw + 1, regs, sizeof(regs));
	return twin_run_raw(s, &one, &out, err);
}

static int load(const struct bench *b, struct sampler *s, unsigned int from, size_t n,
		struct err *err)
{
	static __u64 regs[IBS_TWIN_SAMPLES][IBS_OP_REG_FIXED];

	for (size_t i = 0; i < n; i++)
		ibs_sim_op(1, 0, from + i, b->ibs.caps, regs[i]);
	return twin_load(s, (const __u64(*)[IBS_OP_REG_FIXED])regs, n, err);
}

static void close_twins(struct twins *t)
{
	for (size_t i = 0; i < t->n; i++)
		sampler_close(t->samplers[i]);
	free(t);
}

static int open_twins(const struct bench *b, struct twins **out, struct err *err)
{
	struct twins *t = calloc(1, sizeof(*t));
	int ret = 0;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	rlimit_files((FILES + sysconf(_SC_NPROCESSORS_CONF)) * CASES_MAX);
	for (size_t i = 0; !ret && i <= bench_n_cases; i++) {
		const struct bench_case *c = i ? &bench_cases[i - 1] : &floor_case;
		struct sampler_opts opts;

		if (i && !(c->in & BENCH_IN_PROGRAM))
			continue;
		bench_case_opts(b, c, &opts);
		opts.source = SAMPLER_TWIN;
		if (c->output != SAMPLER_SERIES)
			opts.ring_bytes = TWIN_RING;
		ret = bench_check_stop(err) ?: sampler_open(&opts, &t->samplers[t->n], err);
		if (ret)
			break;
		t->cases[t->n++] = c;
		ret = load(b, t->samplers[t->n - 1], 0, IBS_TWIN_SAMPLES, err);
		if (!ret && c->copy)
			ret = load_raw(b, t->samplers[t->n - 1], err);
	}
	if (ret) {
		close_twins(t);
		return ret;
	}
	*out = t;
	return 0;
}

static enum ibs_twin_mode mode_of(const struct twins *t, size_t i)
{
	if (!i)
		return IBS_TWIN_FLOOR;
	return t->cases[i]->copy ? IBS_TWIN_RAW : IBS_TWIN_REGS;
}

/* ns a sample, of about @repeat. */
static int run_hot(const struct twins *t, size_t i, __u32 repeat, double *out, struct err *err)
{
	__u32 at_once = sampler_rings(t->samplers[i]) ? AT_ONCE : repeat, done = 0;
	__u64 ns, sum = 0;
	int ret = 0;

	for (; !ret && done < repeat; done += at_once) {
		ret = twin_loop(t->samplers[i], mode_of(t, i), IBS_TWIN_SAMPLES, at_once, &ns, err);
		sum += ns;
		ret = ret ?: drain(t->samplers[i], err);
	}
	*out = (double)sum / done;
	return ret;
}

/* Median above that of the same loop without a sample; @v of @t. */
static double above_floor(struct twins *t, size_t i, double *spread)
{
	for (unsigned int r = 0; r < t->rounds; r++)
		t->v[i][r] -= t->v[0][r];
	return loop_median(t->v[i], t->rounds, spread);
}

static void name_row(struct bench_row *row, const char *kind, const struct bench_case *c,
		     const char *how)
{
	snprintf(row->name, sizeof(row->name), "%s.%s", kind, c->name);
	snprintf(row->what, sizeof(row->what), "%s%s", c->what, how);
}

static int report(struct bench *b, struct twins *t, const char *kind, const char *how,
		  const double *two_cpus, struct err *err)
{
	for (size_t i = 1; i < t->n; i++) {
		struct bench_row row = { .from = BENCH_FROM_TWIN,
					 .unit = b->unit,
					 .rounds = t->rounds };
		int ret = bench_case_check(t->cases[i], t->samplers[i], err);

		if (ret)
			return ret;
		name_row(&row, kind, t->cases[i], how);
		row.value = above_floor(t, i, &row.spread);
		if (two_cpus && two_cpus[i])
			bench_more(&row, "two_cpus", two_cpus[i]);
		bench_add(b, &row);
	}
	return 0;
}

/* --- the same program on two CPUs at once: what they share shows --- */

struct other_cpu {
	const struct twins *t;
	size_t i;
	unsigned int cpu;
	__u32 repeat;
	pthread_barrier_t *barrier;
	double ns;
	int ret;
	struct err err;
};

static void *run_other(void *arg)
{
	struct other_cpu *o = arg;

	o->ret = quiet_bind(o->cpu, &o->err);
	pthread_barrier_wait(o->barrier);
	o->ret = o->ret ?: run_hot(o->t, o->i, o->repeat, &o->ns, &o->err);
	return NULL;
}

static int run_two(const struct bench *b, const struct twins *t, size_t i, __u32 repeat,
		   double *out, struct err *err)
{
	pthread_barrier_t barrier;
	struct other_cpu o = {
		.t = t, .i = i, .cpu = b->reader_cpu, .repeat = repeat, .barrier = &barrier
	};
	pthread_t thread;
	int ret;

	pthread_barrier_init(&barrier, NULL, 2);
	ret = -pthread_create(&thread, NULL, run_other, &o);
	if (ret)
		return err_set(err, ret, "cannot make a thread: %s", strerror(-ret));
	pthread_barrier_wait(&barrier);
	ret = run_hot(t, i, repeat, out, err);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	if (!ret && o.ret) {
		*err = o.err;
		ret = o.ret;
	}
	*out = (*out + o.ns) / 2;
	return ret;
}

/* Medians; 0 within the noise, and of samplers that forward: rings have one reader. */
static int measure_two(const struct bench *b, struct twins *t, __u32 repeat, double *out,
		       struct err *err)
{
	int ret = 0;

	for (unsigned int r = 0; !ret && r < t->rounds; r++)
		for (size_t i = 0; !ret && i < t->n; i++)
			if (!sampler_rings(t->samplers[i]))
				ret = run_two(b, t, i, repeat, &t->v[i][r], err)
					      ?: bench_check_stop(err);
	for (size_t i = 1; !ret && i < t->n; i++) {
		double spread = 0, value = 0;

		if (!sampler_rings(t->samplers[i]))
			value = above_floor(t, i, &spread);
		out[i] = value > spread ? value : 0;
	}
	return ret;
}

int bench_program(struct bench *b, struct err *err)
{
	const __u32 repeat = bench_of(b, 20 * IBS_TWIN_SAMPLES, 100 * IBS_TWIN_SAMPLES);
	double two[CASES_MAX];
	bool can_two = b->reader_cpu != b->cpu;
	struct twins *t;
	int ret = open_twins(b, &t, err);

	if (ret)
		return ret;
	quiet_settle();
	t->rounds = bench_of(b, 9, 31);
	if (can_two)
		ret = measure_two(b, t, repeat, two, err);
	/* the first round warms up */
	for (unsigned int r = 0; !ret && r <= t->rounds; r++)
		for (size_t i = 0; !ret && i < t->n; i++)
			ret = run_hot(t, i, repeat, &t->v[i][r ? r - 1 : 0], err)
				      ?: bench_check_stop(err);
	ret = ret ?: report(b, t, "program", "", can_two ? two : NULL, err);
	close_twins(t);
	return ret;
}

/* --- cold caches --- */

#define WALK_MIN   (8u << 20)
#define WALK_MAX   (256u << 20)
#define WALK_QUICK (64u << 20)
#define LINE	   64

/* Twice the largest cache, as far as it is told; hypervisors tell of more than one. */
static size_t walk_bytes(const struct bench *b)
{
	const size_t max = bench_of(b, WALK_QUICK, WALK_MAX);
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t bytes = 2 * (size_t)((l2 > 0 ? l2 : 0) + (l3 > 0 ? l3 : 0));

	return bytes < WALK_MIN ? WALK_MIN : bytes > max ? max : bytes;
}

static void walk(volatile char *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE)
		buf[i]++;
}

int bench_cold(struct bench *b, struct err *err)
{
	size_t bytes = walk_bytes(b);
	volatile char *buf;
	char how[64];
	struct twins *t;
	__u64 ns;
	int ret;

	if (b->instructions)
		return err_set(err, -EOPNOTSUPP,
			       "the clock counts instructions, which are as many with cold caches");
	buf = calloc(1, bytes);
	if (!buf)
		return err_set(err, -ENOMEM, "out of memory for %zu MiB to walk through",
			       bytes >> 20);
	ret = open_twins(b, &t, err);
	if (ret) {
		free((void *)buf);
		return ret;
	}
	quiet_settle();
	t->rounds = bench_of(b, 9, 101);
	for (unsigned int r = 0; !ret && r < t->rounds; r++) {
		for (size_t i = 0; !ret && i < t->n; i++) {
			ret = load(b, t->samplers[i], r, 1, err);
			walk(buf, bytes);
			ret = ret
				      ?: twin_loop(t->samplers[i], mode_of(t, i), 1, 1, &ns, err)
				      ?: drain(t->samplers[i], err)
				      ?: bench_check_stop(err);
			t->v[i][r] = ns;
		}
	}
	snprintf(how, sizeof(how), "; %zu MiB walked through before each", bytes >> 20);
	ret = ret ?: report(b, t, "cold", how, NULL, err);
	close_twins(t);
	free((void *)buf);
	return ret;
}

/* --- instructions, where the processor counts them --- */

static int open_counter(struct err *err)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						       PERF_FORMAT_TOTAL_TIME_RUNNING,
					.exclude_user = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno,
			       "no counter of instructions: %s; virtual machines often "
			       "have none",
			       strerror(errno));
	return fd;
}

struct counter {
	__u64 n, enabled_ns, running_ns;
};

static int read_counter(int fd, struct counter *out, struct err *err)
{
	ssize_t n = read(fd, out, sizeof(*out));

	if (n == sizeof(*out))
		return 0;
	return err_set(err, n < 0 ? -errno : -EIO, "cannot read the counter of instructions: %s",
		       n < 0 ? strerror(errno) : "the kernel does not count");
}

/* Instructions a sample. */
static int run_counted(struct twins *t, size_t i, int fd, double *out, struct err *err)
{
	struct counter before, after;
	double ns;
	int ret = read_counter(fd, &before, err);

	/* one call each, so that what a call takes is the floor's too */
	ret = ret ?: run_hot(t, i, AT_ONCE, &ns, err) ?: read_counter(fd, &after, err);
	if (ret)
		return ret;
	*out = (double)(after.n - before.n) / AT_ONCE;
	if (after.running_ns - before.running_ns < after.enabled_ns - before.enabled_ns)
		return err_set(err, -EBUSY,
			       "others use the processor's counters, so that instructions are not "
			       "all counted; end `perf stat`, or the NMI watchdog (sysctl "
			       "kernel.nmi_watchdog=0)");
	return 0;
}

int bench_instructions(struct bench *b, struct err *err)
{
	const char *unit = b->unit;
	struct twins *t;
	int ret, fd;

	if (b->instructions)
		return err_set(err, -EOPNOTSUPP, "the clock counts them: see 'program'");
	fd = open_counter(err);
	if (fd < 0)
		return fd;
	ret = open_twins(b, &t, err);
	if (ret) {
		close(fd);
		return ret;
	}
	t->rounds = bench_of(b, 31, 101);
	for (unsigned int r = 0; !ret && r < t->rounds; r++)
		for (size_t i = 0; !ret && i < t->n; i++)
			ret = run_counted(t, i, fd, &t->v[i][r], err) ?: bench_check_stop(err);
	b->unit = "instructions";
	ret = ret ?: report(b, t, "instructions", "", NULL, err);
	b->unit = unit;
	close_twins(t);
	close(fd);
	return ret;
}
