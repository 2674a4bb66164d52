// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What samples of the event cost: the program where the kernel runs it, and the whole of a sample. */
#include "bench.h"

#include "sample_cost.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SITU_RATE    4000 /* samples a second */
#define SITU_ROUNDS  31
#define SUBJECTS_MAX 16

static const double rates[] = { 4000, 16000, 1000 }; /* the first of them in a short run */
#define RATES (sizeof(rates) / sizeof(rates[0]))

/* --- run time as the kernel takes it --- */

static int situ_rounds(const struct bench *b, struct sampler *s, double *ns, unsigned int rounds,
		       struct err *err)
{
	const double seconds = b->instructions ? 0.02 : bench_of(b, 0.04, 0.1);
	__u64 time[2], runs[2];

	for (unsigned int r = 0; r < rounds; r++) {
		int ret = bench_check_stop(err) ?: sampler_start(s, err);

		if (ret)
			return ret;
		ret = sampler_run_time(s, &time[0], &runs[0]);
		loop_for(seconds);
		sampler_stop(s);
		ret = ret ?: sampler_run_time(s, &time[1], &runs[1]);
		if (ret)
			return err_set(err, ret, "cannot ask for the program's run time: %s",
				       strerror(-ret));
		if (runs[1] == runs[0])
			return err_set(err, -ENODATA, "there was no sample in %.0f ms",
				       seconds * 1000);
		ns[r] = (double)(time[1] - time[0]) / (runs[1] - runs[0]);
	}
	return 0;
}

static int situ(struct bench *b, const struct bench_case *c, __u64 period, struct err *err)
{
	struct bench_row row = { .from = BENCH_FROM_EVENT, .unit = b->unit };
	const struct bench_row *empty = bench_find(b, "situ.empty");
	double ns[SITU_ROUNDS];
	struct sampler *s;
	__u64 time, runs;
	int ret = bench_case_open(b, c, period, &s, err);

	if (ret)
		return ret;
	row.rounds = bench_of(b, 7, SITU_ROUNDS);
	ret = situ_rounds(b, s, ns, row.rounds, err);
	if (!ret && !sampler_run_time(s, &time, &runs))
		bench_more(&row, "runs", runs);
	ret = ret ?: bench_case_check(c, s, err);
	sampler_close(s);
	if (ret)
		return ret;
	snprintf(row.name, sizeof(row.name), "situ.%s", c->name);
	snprintf(row.what, sizeof(row.what), "%s; run time by bpf_stats%s", c->what,
		 b->source == SAMPLER_IBS || c->outcome == IBS_OUTCOME_N
			 ? ""
			 : ", making the registers included");
	row.value = loop_median(ns, row.rounds, &row.spread);
	if (empty)
		bench_more(&row, "above_empty", row.value - empty->value);
	bench_add(b, &row);
	return 0;
}

int bench_situ(struct bench *b, struct err *err)
{
	__u64 period;
	int fd, ret = bench_period(b, SITU_RATE, &period, err);

	if (ret)
		return ret;
	fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (fd < 0)
		return err_set(err, -errno,
			       "the kernel takes no run times for us: %s; that needs CAP_SYS_ADMIN",
			       strerror(errno));
	for (size_t i = 0; ret != -EINTR && i < bench_n_cases; i++) {
		const struct bench_case *c = &bench_cases[i];
		char name[64];

		if (!(c->in & BENCH_IN_SITU))
			continue;
		ret = situ(b, c, period, err);
		snprintf(name, sizeof(name), "situ.%s", c->name);
		if (ret && ret != -EINTR)
			bench_missing(b, name, c->what, BENCH_FROM_EVENT, "%s", err->text);
	}
	close(fd);
	return ret == -EINTR ? ret : 0;
}

/* --- the whole of a sample --- */

struct whole {
	const struct bench_case *cases[SUBJECTS_MAX];
	struct sampler *samplers[SUBJECTS_MAX];
	struct sample_event *events[SUBJECTS_MAX];
	struct loop_subject subjects[SUBJECTS_MAX];
	struct loop_loss loss[SUBJECTS_MAX];
	size_t n;
};

static void close_whole(struct whole *w)
{
	for (size_t i = 0; i < w->n; i++) {
		sample_event_close(w->events[i]);
		sampler_close(w->samplers[i]);
	}
}

/* An event of our own for each, as that of a sampler cannot be switched so fast and counted. */
static int open_whole(const struct bench *b, __u64 period, struct whole *w, struct err *err)
{
	struct perf_event_attr attr = b->attr;
	int ret = 0;

	attr.sample_period = period;
	memset(w, 0, sizeof(*w));
	for (size_t i = 0; !ret && i < bench_n_cases; i++) {
		const struct bench_case *c = &bench_cases[i];
		size_t n = w->n;

		if (!(c->in & BENCH_IN_SAMPLE))
			continue;
		w->cases[n] = c;
		w->n++;
		ret = bench_check_stop(err);
		if (!ret && c->prog != SAMPLER_PROG_NONE)
			ret = bench_case_open(b, c, period, &w->samplers[n], err);
		ret = ret
			      ?: sample_event_open(&attr,
						   w->samplers[n] ? sampler_prog_fd(w->samplers[n])
								  : -1,
						   b->cpu, &w->events[n], err);
		if (!ret)
			w->subjects[n] = sample_event_subject(w->events[n]);
	}
	if (ret)
		close_whole(w);
	return ret;
}

/* The first subject is the program that does nothing. */
static void report_whole(struct bench *b, const struct whole *w, double rate)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct bench_case *c = w->cases[i];
		const struct loop_loss *loss = &w->loss[i];
		struct bench_row row = { .from = BENCH_FROM_EVENT, .unit = b->unit };
		struct err err = { "" };

		snprintf(row.name, sizeof(row.name), "sample.%.0f.%s", rate, c->name);
		snprintf(row.what, sizeof(row.what), "%s", c->what);
		if (w->samplers[i] && bench_case_check(c, w->samplers[i], &err)) {
			bench_missing(b, row.name, row.what, row.from, "%s", err.text);
			continue;
		}
		row.value = loss->ns;
		row.spread = loss->ns_spread;
		row.rounds = loss->sampled_rounds;
		if (i) {
			bench_more(&row, "above_empty", loss->ns_beyond);
			bench_more(&row, "above_empty_spread", loss->ns_beyond_spread);
		}
		bench_more(&row, "loss_percent", 100 * loss->share);
		bench_more(&row, "samples", loss->samples);
		bench_add(b, &row);
	}
}

int bench_sample(struct bench *b, struct err *err)
{
	struct loop_opts opts = { .cpu = b->cpu, .stop = &bench_stop };
	size_t n = b->quick || b->instructions ? 2 : RATES;
	int ret = 0;

	opts.seconds = b->instructions ? bench_of(b, 0.8, 2) : bench_of(b, 2, 20);
	for (size_t i = 0; ret != -EINTR && i < n; i++) {
		char name[64], what[64];
		struct whole w = {};
		__u64 period;

		ret = bench_period(b, rates[i], &period, err);
		ret = ret ?: open_whole(b, period, &w, err);
		if (!ret) {
			quiet_settle();
			ret = loop_loss_measure(w.subjects, w.n, &opts, w.loss, err);
			if (!ret)
				report_whole(b, &w, rates[i]);
			close_whole(&w);
		}
		snprintf(name, sizeof(name), "sample.%.0f", rates[i]);
		snprintf(what, sizeof(what), "at %.0f samples a second", rates[i]);
		if (ret && ret != -EINTR)
			bench_missing(b, name, what, BENCH_FROM_EVENT, "%s", err->text);
	}
	return ret == -EINTR ? ret : 0;
}
