// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loops.h"

#include "base/clock.h"
#include "base/cpulist.h"
#include "base/std.h"
#include "event/event.h"
#include "loop_code.h"
#include "loops_place.h"
#include "own_samples.h"

#include <ibscope/fetch_fields.h>
#include <ibscope/op_fields.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <x86intrin.h>

#define FETCH_EVENT "ibs_fetch/rand_en=1/"
/*
 * Samples a second that loops are sampled with, if that gives a period within the bounds. Below the lower one, delivery
 * suffers (TPDS'23: 75 % of ops seen at 10,000); multiples of 16 that share no factor with the loops.
 */
#define RATE	   60000
#define PERIOD_MIN (16 * 631)
#define PERIOD_MAX (16 * 62501)
#define CHUNK_S	   0.01 /* between two looks at the buffer, which holds many more samples */
#define PATIENCE_S 8	/* of a loop */
#define STEPS	   4096 /* of a chain, to time it */

struct run {
	struct loops *l;
	struct cpu_info info;
	struct loops_place place;
	double clocks_per_tick;
	double l1_ticks; /* of a step of a chain in the L1 */
	struct loops_memory main, pages;
};

/* What the samples of one loop have. */
struct tally {
	const struct run *run;
	const struct loop_code *code;
	unsigned long long all, at, kind, tlb_known, tlb_miss, src[IBS_SRC_N];
	unsigned long long lat[IBS_SRC_N], lat_n[IBS_SRC_N];
	__u64 want_data, want_data3; /* bits that samples at an access have */
};

static void add_sample(void *ctx, const void *raw, size_t bytes)
{
	struct tally *t = ctx;
	struct ibs_op_sample s;
	__u64 d3;
	__u32 src;

	if (ibs_op_parse_raw(raw, bytes, t->run->info.quirks, &s))
		return;
	t->all++;
	if ((s.reg[IBS_OP_DATA] & IBS_OP_DATA_RIP_INVALID) ||
	    !loop_code_has(t->code, s.reg[IBS_OP_RIP]))
		return;
	t->at++;
	d3 = s.reg[IBS_OP_DATA3];
	if ((s.reg[IBS_OP_DATA] & t->want_data) != t->want_data ||
	    (d3 & t->want_data3) != t->want_data3)
		return;
	t->kind++;
	src = ibs_op_src(s.cpu, s.reg);
	t->src[src]++;
	if (ibs_op_dc_miss_lat_valid(d3) && !(d3 & IBS_OP_DATA3_NO_MAB)) {
		t->lat[src] += ibs_op_metric(IBS_METRIC_DC_MISS_LAT, s.reg, d3);
		t->lat_n[src]++;
	}
	if (ibs_op_tlb_valid(s.cpu.caps, d3)) {
		t->tlb_known++;
		t->tlb_miss += !!(d3 & IBS_OP_DATA3_L1TLB_MISS);
	}
}

static uint64_t choose_period(double ops_per_s)
{
	const double period = ops_per_s / RATE;

	/* an odd multiple of 16 */
	return (uint64_t)(fmin(fmax(period, PERIOD_MIN), PERIOD_MAX) / 32) * 32 + 16;
}

/* A loop, and how it is sampled. */
struct job {
	const struct loop_code *code;
	void *at;		     /* where it is, and goes on */
	size_t ops;		     /* a round, roughly */
	unsigned long long want;     /* samples at an access */
	unsigned long long accesses; /* done while sampled */
	uint64_t period;
};

static double rounds_per_s(struct job *j)
{
	size_t rounds = 64;
	double start, took;

	do {
		rounds *= 4;
		start = now_s();
		j->at = j->code->run(j->at, rounds);
		took = now_s() - start;
	} while (took < 1e-4);
	return rounds / took;
}

static int sample_job(struct run *r, struct job *j, struct tally *t, struct err *err)
{
	const double end = now_s() + PATIENCE_S;
	struct own_samples *own;
	const double rate = rounds_per_s(j);
	const size_t rounds = rate * CHUNK_S + 1;
	int ret;

	t->run = r;
	t->code = j->code;
	j->period = choose_period(rate * j->ops);
	ret = own_samples_open(&r->info, EVENT_DEFAULT, j->period, r->place.cpu, &own, err);
	while (!ret && t->at < j->want && now_s() < end) {
		ret = own_samples_start(own, err);
		if (ret)
			break;
		j->at = j->code->run(j->at, rounds);
		j->accesses += rounds * j->code->accesses;
		if (!own_samples_stop(own, add_sample, t))
			ret = err_set(err, -EBUSY,
				      "the kernel dropped samples: throttled, or busy");
	}
	own_samples_close(own);
	return ret;
}

static double share(unsigned long long part, unsigned long long of)
{
	return of ? (double)part / of : 0;
}

/* --- counts --- */

static void count(struct run *r, enum loop_figure figure, struct job j, __u64 data, __u64 data3)
{
	struct tally t = { .want_data = data, .want_data3 = data3 };
	struct err e;

	if (sample_job(r, &j, &t, &e))
		loops_unknown(r->l, figure, "%s", e.text);
	else
		loops_set(r->l, figure, j.accesses, (double)t.kind * j.period, t.kind);
}

static void run_counts(struct run *r)
{
	count(r, LOOPS_BRANCHES, (struct job){ .code = &loop_branches, .ops = 18, .want = 1500 },
	      IBS_OP_DATA_BRN_RET | IBS_OP_DATA_BRN_TAKEN, 0);
	count(r, LOOPS_STORES,
	      (struct job){ .code = &loop_stores, .at = r->main.at, .ops = 17, .want = 250 }, 0,
	      IBS_OP_DATA3_ST_OP);
	loop_circle(r->main.at, 16, LOOP_LINE);
	count(r, LOOPS_LOADS,
	      (struct job){ .code = &loop_chase, .at = r->main.at, .ops = 25, .want = 250 }, 0,
	      IBS_OP_DATA3_LD_OP);
}

/* --- caches --- */

/* Core clocks of one tick of the TSC, of a chain of instructions of one clock. */
static double read_clocks_per_tick(void)
{
	const size_t n = 1 << 16;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t start = __rdtsc(), took;

		loop_clocks(n);
		took = __rdtsc() - start;
		best = took < best ? took : best;
	}
	return (double)n / best;
}

static double step_ticks(struct job *j)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t start = __rdtsc(), took;

		j->at = loop_chase.run(j->at, STEPS / LOOP_UNROLLED);
		took = __rdtsc() - start;
		best = took < best ? took : best;
	}
	return (double)best / STEPS;
}

static const unsigned int sources_of_l3 = 1U << IBS_SRC_L3 | 1U << IBS_SRC_LOCAL_CACHE;
static const unsigned int sources_of_dram = 1U << IBS_SRC_DRAM | 1U << IBS_SRC_REMOTE_DRAM;

static unsigned long long sum(const unsigned long long *of, unsigned int sources)
{
	unsigned long long n = 0;

	for (unsigned int i = 0; i < IBS_SRC_N; i++)
		n += sources & 1U << i ? of[i] : 0;
	return n;
}

/* A latency beside what a step of the chain takes longer than one in the L1. */
static void set_latency(struct run *r, enum loop_figure figure, double ticks, const struct tally *t,
			unsigned int sources)
{
	const unsigned long long n = sum(t->lat_n, sources);
	const double clocks = (ticks - r->l1_ticks) * r->clocks_per_tick;

	if (!r->main.huge)
		loops_unknown(r->l, figure,
			      "without pages of 2 MiB a step also waits for page walks");
	else if (clocks < 1)
		loops_unknown(r->l, figure, "a step of the chain takes no time");
	else
		loops_set(r->l, figure, clocks, share(sum(t->lat, sources), n), n);
}

/* Follow a chain through @bytes of memory; @t has what its samples have. */
static int chase(struct run *r, const struct loops_memory *m, size_t bytes, size_t warm_rounds,
		 unsigned long long want, double *ticks, struct tally *t, struct err *err)
{
	struct job j = { .code = &loop_chase, .at = m->at, .ops = 25, .want = want };

	loop_circle(m->at, bytes / LOOP_LINE, LOOP_LINE);
	for (size_t i = 0; i < warm_rounds; i++)
		j.at = loop_chase.run(j.at, bytes / LOOP_LINE / LOOP_UNROLLED);
	*ticks = step_ticks(&j);
	*t = (struct tally){ .want_data3 = IBS_OP_DATA3_LD_OP };
	return sample_job(r, &j, t, err);
}

static void run_level(struct run *r, enum loop_figure source, int latency, size_t bytes, bool warm,
		      unsigned int sources)
{
	struct tally t;
	struct err e;
	double ticks;

	if (!bytes || bytes > r->main.bytes) {
		loops_unknown(r->l, source, "the sizes of the caches are unknown");
		if (latency >= 0)
			loops_unknown(r->l, latency, "the sizes of the caches are unknown");
		return;
	}
	if (chase(r, &r->main, bytes, warm ? 2 : 0, 60, &ticks, &t, &e)) {
		loops_unknown(r->l, source, "%s", e.text);
		if (latency >= 0)
			loops_unknown(r->l, latency, "%s", e.text);
		return;
	}
	loops_set(r->l, source, 1, share(sum(t.src, sources), t.kind), t.kind);
	if (latency < 0)
		r->l1_ticks = ticks;
	else
		set_latency(r, latency, ticks, &t, sources);
	if (source == LOOPS_DRAM)
		loops_set(r->l, LOOPS_LOCAL, 1,
			  share(t.src[IBS_SRC_DRAM], sum(t.src, sources_of_dram)),
			  sum(t.src, sources_of_dram));
}

static void run_levels(struct run *r)
{
	const struct loops_place *p = &r->place;

	run_level(r, LOOPS_L1, -1, p->l1 / 2, true, 1U << IBS_SRC_L1);
	run_level(r, LOOPS_L2, LOOPS_LAT_L2, p->l2 / 2, true, 1U << IBS_SRC_L2);
	run_level(r, LOOPS_L3, LOOPS_LAT_L3, p->l3 / 4, true, sources_of_l3);
	run_level(r, LOOPS_DRAM, LOOPS_LAT_DRAM, 3 * p->l3, false, sources_of_dram);
}

/* --- nodes and pages --- */

static void run_remote(struct run *r)
{
	struct loops_memory m;
	struct tally t;
	struct err e;
	double ticks;

	if (r->place.other_node < 0 || !r->place.l3) {
		loops_unknown(r->l, LOOPS_REMOTE, "no other node has memory");
		return;
	}
	if (loops_memory_get(3 * r->place.l3, true, r->place.other_node, &m, &e) ||
	    chase(r, &m, m.bytes, 0, 100, &ticks, &t, &e))
		loops_unknown(r->l, LOOPS_REMOTE, "%s", e.text);
	else
		loops_set(r->l, LOOPS_REMOTE, 1,
			  share(t.src[IBS_SRC_REMOTE_DRAM], sum(t.src, sources_of_dram)),
			  sum(t.src, sources_of_dram));
	loops_memory_free(&m);
}

#define PAGES	    1024
#define PAGE_STRIDE (4096 + LOOP_LINE) /* not always the same set of a cache */

static void run_pages(struct run *r, enum loop_figure figure, const struct loops_memory *m,
		      bool huge)
{
	struct job j = { .code = &loop_chase, .at = m->at, .ops = 25, .want = 60 };
	struct tally t = { .want_data3 = IBS_OP_DATA3_LD_OP };
	struct err e;

	if (!m->at || m->bytes < (size_t)PAGES * PAGE_STRIDE) {
		loops_unknown(r->l, figure, "no memory");
		return;
	}
	if (m->huge != huge) {
		loops_unknown(r->l, figure, "the kernel gave no pages of this size");
		return;
	}
	loop_circle(m->at, PAGES, PAGE_STRIDE);
	j.at = loop_chase.run(j.at, PAGES);
	if (sample_job(r, &j, &t, &e))
		loops_unknown(r->l, figure, "%s", e.text);
	else
		loops_set(r->l, figure, !huge, share(t.tlb_miss, t.tlb_known), t.tlb_known);
}

/* --- two cores --- */

struct opponent {
	char *at;
	unsigned int cpu;
	atomic_bool over, failed;
};

static void *oppose(void *arg)
{
	struct opponent *o = arg;
	struct err e;

	o->failed = cpulist_bind(o->cpu, &e);
	while (!o->over && !o->failed)
		loop_sharing.run(o->at, 100);
	return NULL;
}

static void run_sharing(struct run *r)
{
	const unsigned int caches =
		sources_of_l3 | 1U << IBS_SRC_NEAR_CACHE | 1U << IBS_SRC_REMOTE_CACHE;
	struct job j = { .code = &loop_sharing, .at = r->main.at, .ops = 8, .want = 60 };
	struct tally t = { .want_data3 = IBS_OP_DATA3_LD_OP };
	struct opponent o = { .at = r->main.at + 8, .cpu = r->place.other_cpu };
	unsigned long long missed;
	pthread_t thread;
	struct err e;

	if (r->place.other_cpu < 0 || pthread_create(&thread, NULL, oppose, &o)) {
		loops_unknown(r->l, LOOPS_SHARING, "there is no other core to share with");
		return;
	}
	if (sample_job(r, &j, &t, &e)) {
		loops_unknown(r->l, LOOPS_SHARING, "%s", e.text);
	} else {
		missed = t.kind - t.src[IBS_SRC_L1] - t.src[IBS_SRC_MAB];
		loops_set(r->l, LOOPS_SHARING, 1, share(sum(t.src, caches), missed), missed);
	}
	o.over = true;
	pthread_join(thread, NULL);
	if (o.failed)
		loops_unknown(r->l, LOOPS_SHARING, "the other core could not be had");
}

/* --- fetches --- */

struct fetches {
	const struct run *run;
	uint64_t begin, end;
	unsigned long long n, missed;
};

static void add_fetch(void *ctx, const void *raw, size_t bytes)
{
	struct fetches *f = ctx;
	struct ibs_fetch_sample s;

	if (ibs_fetch_parse_raw(raw, bytes, f->run->info.quirks, &s) ||
	    s.reg[IBS_FETCH_LINADDR] < f->begin || s.reg[IBS_FETCH_LINADDR] >= f->end ||
	    !(s.reg[IBS_FETCH_CTL] & IBS_FETCH_CTL_COMP))
		return;
	f->n++;
	f->missed += !!(s.reg[IBS_FETCH_CTL] & IBS_FETCH_CTL_IC_MISS);
}

static int sample_fetches(struct run *r, void *code, size_t lines, struct fetches *f,
			  struct err *err)
{
	const struct loop_code jumps = { .run = (void *(*)(void *, size_t))code };
	const double end = now_s() + PATIENCE_S;
	struct job j = { .code = &jumps };
	const double rate = rounds_per_s(&j);
	const size_t rounds = rate * CHUNK_S + 1;
	struct own_samples *own;
	int ret = own_samples_open(&r->info, FETCH_EVENT, choose_period(rate * lines), r->place.cpu,
				   &own, err);

	*f = (struct fetches){ r, (uintptr_t)code, (uintptr_t)code + lines * LOOP_LINE, 0, 0 };
	while (!ret && f->n < 80 && now_s() < end) {
		ret = own_samples_start(own, err);
		if (ret)
			break;
		jumps.run(NULL, rounds);
		if (!own_samples_stop(own, add_fetch, f))
			ret = err_set(err, -EBUSY,
				      "the kernel dropped samples: throttled, or busy");
	}
	own_samples_close(own);
	return ret;
}

static void run_code(struct run *r, enum loop_figure figure, size_t lines, double expected)
{
	void *code = loop_jumps_make(lines);
	struct fetches f;
	struct err e;

	if (!code)
		loops_unknown(r->l, figure, "memory cannot be made code: %s", strerror(errno));
	else if (sample_fetches(r, code, lines, &f, &e))
		loops_unknown(r->l, figure, "%s", e.text);
	else
		loops_set(r->l, figure, expected, share(f.missed, f.n), f.n);
	loop_jumps_free(code, lines);
}

static int run_all(struct run *r, struct err *err)
{
	struct err ignored;
	int ret;

	loops_place_read(r->place.cpu, &r->place);
	ret = loops_memory_get(3 * r->place.l3 ?: 8 << 20, true, r->place.node, &r->main, err);
	if (ret)
		return ret;
	if (loops_memory_get(2 * PAGES * PAGE_STRIDE, false, -1, &r->pages, &ignored))
		r->pages.at = NULL;
	r->clocks_per_tick = read_clocks_per_tick();
	run_counts(r);
	run_levels(r);
	run_remote(r);
	run_pages(r, LOOPS_PAGES_4K, &r->pages, false);
	run_pages(r, LOOPS_PAGES_2M, &r->main, true);
	run_sharing(r);
	run_code(r, LOOPS_CODE_L1, 8, 0);
	run_code(r, LOOPS_CODE_L2, 4096, 1);
	loops_memory_free(&r->main);
	loops_memory_free(&r->pages);
	return 0;
}

int loops_run(struct loops *l, struct err *err)
{
	struct run r = { .l = l, .place.cpu = sched_getcpu() };
	struct own_samples *own;
	cpu_set_t before;
	int ret;

	cpu_info_read(&r.info);
	/* whether it can be sampled at all */
	ret = own_samples_open(&r.info, EVENT_DEFAULT, PERIOD_MAX, r.place.cpu, &own, err);
	own_samples_close(own);
	if (!ret && sched_getaffinity(0, sizeof(before), &before))
		ret = err_set(err, -errno, "cannot read the CPU affinity: %s", strerror(errno));
	ret = ret ?: cpulist_bind(r.place.cpu, err);
	if (ret)
		return ret;
	ret = run_all(&r, err);
	sched_setaffinity(0, sizeof(before), &before);
	return ret;
}
