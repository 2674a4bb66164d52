// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perf and bpftrace beside us: on the same event, in the same rounds of the same loop. What a sample
 * costs is what the loop loses and what readers on other CPUs take.
 */
#include "bench_perf.h"
#include "bench_reader.h"

#include "sample_cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE	    10000 /* samples a second */
#define SCRIPT_RUNS 3

struct peer;

struct peer_kind {
	const char *name, *what;
	int (*open)(struct bench *b, struct peer *p, __u64 period, struct err *err);
	/* Samples and what readers did. Nothing is sampled any more. */
	int (*end)(struct bench *b, struct peer *p, struct bench_perf_read *out, struct err *err);
	const char *case_name; /* of bench_cases */
	struct bench_perf_opts perf;
};

struct peer {
	const struct peer_kind *kind;
	unsigned int number;		     /* of the subjects */
	struct err why;			     /* it is not one of them, or not any more */
	const struct bench_case *bench_case; /* of ours */
	struct sampler *sampler;
	struct sample_event *event;
	struct bench_reader *reader;
	int file; /* 0: none */
	struct bench_perf *perf;
	struct loop_subject subject; /* without regard to `why` */
};

static void close_peer(struct peer *p)
{
	struct bench_read read;
	struct err ignored;

	sample_event_close(p->event);
	bench_reader_end(p->reader, &read, &ignored);
	sampler_close(p->sampler);
	bench_perf_close(p->perf);
	if (p->file > 0)
		close(p->file);
	memset(p, 0, sizeof(*p));
}

/* --- ours --- */

static int open_ours(struct bench *b, struct peer *p, __u64 period, struct err *err)
{
	struct perf_event_attr attr = b->attr;
	const struct bench_case *c = NULL;
	int ret = 0;

	attr.sample_period = period;
	for (size_t i = 0; i < bench_n_cases; i++)
		if (!strcmp(bench_cases[i].name, p->kind->case_name))
			c = &bench_cases[i];
	if (!c)
		return err_set(err, -EINVAL, "there is no case '%s'", p->kind->case_name);
	p->bench_case = c;
	if (c->prog != SAMPLER_PROG_NONE)
		ret = bench_case_open(b, c, period, &p->sampler, err);
	if (!ret && c->output != SAMPLER_SERIES) {
		p->file = bench_tmpfile(err);
		ret = p->file < 0 ? p->file
				  : bench_reader_start(b, p->sampler, p->file, &p->reader, err);
	}
	ret = ret
		      ?: sample_event_open(&attr, p->sampler ? sampler_prog_fd(p->sampler) : -1,
					   b->cpu, &p->event, err);
	if (!ret)
		p->subject = sample_event_subject(p->event);
	return ret;
}

static int end_ours(struct bench *b, struct peer *p, struct bench_perf_read *out, struct err *err)
{
	struct bench_reader *reader = p->reader;
	struct bench_read read = {};
	struct ledger ledger;
	struct pmu_state pmu;
	int ret;

	(void)b;
	out->samples = p->subject.samples(p->subject.arg);
	if (!reader) /* else what is lost is a figure of the row */
		return p->sampler ? bench_case_check(p->bench_case, p->sampler, err) : 0;
	p->reader = NULL;
	ret = bench_reader_end(reader, &read, err);
	ret = ret ?: sampler_ledger(p->sampler, &ledger, &pmu, err);
	if (ret)
		return ret;
	out->samples = read.records;
	out->lost = ledger.outcome[IBS_OUTCOME_LOST_RING_FULL];
	out->bytes = read.bytes;
	out->cpu_ns = read.cpu_ns;
	return 0;
}

/* --- perf's --- */

static int open_perf(struct bench *b, struct peer *p, __u64 period, struct err *err)
{
	struct bench_perf_opts opts = p->kind->perf;
	int ret;

	opts.period = period;
	ret = bench_perf_start(b, &opts, &p->perf, err);
	if (!ret)
		p->subject = bench_perf_subject(p->perf);
	else if (opts.filter && ret == -EIO)
		err_prefix(err,
			   "needs perf of Linux 6.3 or later that is built with BPF skeletons");
	return ret;
}

static int end_perf(struct bench *b, struct peer *p, struct bench_perf_read *out, struct err *err)
{
	(void)b;
	return bench_perf_end(p->perf, out, err);
}

#define PERF_FILE     "peer.perf-record-file"
#define BEYOND	      "above_empty"
#define BEYOND_SPREAD "above_empty_spread"

/* The first is what the others are compared with. */
static const struct peer_kind kinds[] = {
	{ "peer.empty", "program that does nothing", open_ours, end_ours, .case_name = "empty" },
	{ "peer.event", "event alone, no program", open_ours, end_ours, .case_name = "event" },
	{ "peer.rejected", "ibscope, latency too low", open_ours, end_ours,
	  .case_name = "rejected-latency" },
	{ "peer.aggregated", "ibscope hist, by cgroup", open_ours, end_ours,
	  .case_name = "aggregated" },
	{ "peer.record", "ibscope record to a file, reader included", open_ours, end_ours,
	  .case_name = "forwarded" },
	{ PERF_FILE, "perf record --raw-samples to a file, reader included", open_perf, end_perf },
	{ "peer.perf-record-pipe", "perf record --raw-samples to a pipe, readers included",
	  open_perf, end_perf, .perf.pipe = true },
	{ "peer.perf-record-filter", "perf record --filter that rejects, reader included",
	  open_perf, end_perf, .perf.filter = "ip < 4096" },
	{ "peer.perf-mem-record", "perf mem record to a file, reader included", open_perf, end_perf,
	  .perf.mem = true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* --- the comparison --- */

/*
 * @rate: samples a second that the event makes, of the first. Those of perf are not divided by the time
 * that it was on, as its answers take some of it; but by that alone where perf chooses the event.
 */
static void report_peer(struct bench *b, struct peer *p, const struct loop_loss *loss, double *rate)
{
	struct bench_row row = { .from = BENCH_FROM_EVENT,
				 .unit = b->unit,
				 .rounds = loss->rounds };
	struct bench_perf_read read = {};
	struct err err = { "" };
	double loop, reader, made, per_sample;

	snprintf(row.name, sizeof(row.name), "%s", p->kind->name);
	snprintf(row.what, sizeof(row.what), "%s", p->kind->what);
	if (p->kind->end(b, p, &read, &err)) {
		bench_missing(b, row.name, row.what, row.from, "%s", err.text);
		return;
	}
	made = read.samples + read.lost;
	if (!p->number && made >= 1)
		*rate = made / loss->on_s;
	if (p->kind->perf.filter) /* what it rejects is not in the file */
		made = *rate * loss->on_s;
	if (made < 1) {
		bench_missing(b, row.name, row.what, row.from, "it has no sample");
		return;
	}
	per_sample = p->kind->perf.mem ? loss->on_s * 1e9 / made : 1e9 / *rate;
	loop = loss->share * per_sample;
	reader = read.cpu_ns / made;
	row.value = loop + reader;
	row.spread = loss->share_spread * per_sample;
	if (p->number) {
		bench_more(&row, BEYOND, loss->share_beyond * per_sample + reader);
		bench_more(&row, BEYOND_SPREAD, loss->share_beyond_spread * per_sample);
	}
	bench_more(&row, "loop", loop);
	bench_more(&row, "reader", reader);
	bench_more(&row, "loss_percent", 100 * loss->share);
	bench_more(&row, "samples", made);
	bench_more(&row, "lost", read.lost);
	if (read.bytes && read.samples)
		bench_more(&row, "bytes_per_sample", (double)read.bytes / read.samples);
	bench_add(b, &row);
}

/* --- perf script, of the file --- */

static int run_script(const struct bench *b, const char *file, double *ns, struct err *err)
{
	char *argv[] = { "perf", "script", "-i", (char *)file, NULL };
	struct bench_child child = {};
	int ret = bench_child_start(b, argv, -1, &child, err);

	if (ret)
		return ret;
	if (bench_child_end(&child, 0, ns)) {
		char said[256];

		bench_child_said(&child, said, sizeof(said));
		ret = bench_check_stop(err)
			      ?: err_set(err, -EIO, "perf script failed%s%s", *said ? ": " : "",
					 said);
	}
	close(child.said);
	return ret;
}

static int script_ns(const struct bench *b, const char *file, double *ns, struct err *err)
{
	const int runs = b->instructions ? 1 : SCRIPT_RUNS;
	double v[SCRIPT_RUNS];
	int ret = 0;

	for (int i = 0; !ret && i < runs; i++)
		ret = run_script(b, file, &v[i], err);
	*ns = ret ? 0 : loop_median(v, runs, NULL);
	return ret;
}

/* What starts and finds symbols is in both files' time, so that it cancels out. */
static int script(struct bench *b, struct bench_perf *whole, __u64 samples, __u64 period,
		  struct err *err)
{
	struct bench_row row = { .name = "peer.perf-script",
				 .what = "perf script of that file, beyond a few samples",
				 .from = BENCH_FROM_EVENT,
				 .unit = b->unit };
	const struct bench_perf_opts opts = { .period = period };
	struct bench_perf_read few;
	struct loop_subject subject;
	struct bench_perf *p;
	double ns[2];
	int ret = bench_perf_start(b, &opts, &p, err);

	if (ret)
		return ret;
	subject = bench_perf_subject(p);
	ret = subject.set(p, true, err);
	loop_for(0.01);
	ret = ret ?: subject.set(p, false, err);
	ret = ret ?: bench_perf_end(p, &few, err);
	ret = ret ?: script_ns(b, bench_perf_file(p), &ns[0], err);
	ret = ret ?: script_ns(b, bench_perf_file(whole), &ns[1], err);
	bench_perf_close(p);
	if (!ret && (samples <= few.samples || ns[1] <= ns[0]))
		ret = err_set(err, -ENODATA, "%llu samples are too few to tell", samples);
	if (ret)
		return ret;
	row.value = (ns[1] - ns[0]) / (samples - few.samples);
	bench_more(&row, "samples", samples - few.samples);
	bench_add(b, &row);
	return 0;
}

static void report_script(struct bench *b, struct peer *p, __u64 period)
{
	static const char name[] = "peer.perf-script", what[] = "perf script of that file";
	const struct bench_row *row = bench_find(b, PERF_FILE);
	struct err err = { "" };

	if (!row)
		bench_missing(b, name, what, BENCH_FROM_EVENT, "there is no file of perf record");
	else if (script(b, p->perf, bench_get(row, "samples") - bench_get(row, "lost"), period,
			&err))
		bench_missing(b, name, what, BENCH_FROM_EVENT, "%s", err.text);
}

/* One that fails is left out from then on; with the first there would be nothing to compare with. */
static int set_peer(void *arg, bool on, struct err *err)
{
	struct peer *p = arg;
	int ret;

	if (*p->why.text)
		return 0;
	ret = p->subject.set(p->subject.arg, on, err);
	if (!ret || ret == -EINTR || !p->number)
		return ret;
	p->why = *err;
	return 0;
}

/* Those that can be had; why not is in @peers. */
static int open_peers(struct bench *b, struct peer *peers, struct loop_subject *subjects,
		      __u64 period, unsigned int *n, struct err *err)
{
	*n = 0;
	for (size_t i = 0; i < KINDS; i++) {
		struct err why = { "" };
		int ret = bench_check_stop(err);

		if (ret)
			return ret;
		peers[i].kind = &kinds[i];
		peers[i].number = *n;
		if (!kinds[i].open(b, &peers[i], period, &why)) {
			subjects[(*n)++] =
				(struct loop_subject){ .set = set_peer, .arg = &peers[i] };
			continue;
		}
		close_peer(&peers[i]);
		peers[i].why = why;
		if (!i) {
			*err = why;
			return -EIO;
		}
	}
	return 0;
}

static void report_peers(struct bench *b, struct peer *peers, const struct loop_loss *loss,
			 __u64 period)
{
	double rate = RATE;

	for (size_t i = 0; i < KINDS; i++) {
		struct peer *p = &peers[i];

		if (*p->why.text)
			bench_missing(b, kinds[i].name, kinds[i].what, BENCH_FROM_EVENT, "%s",
				      p->why.text);
		else
			report_peer(b, p, &loss[p->number], &rate);
		if (!strcmp(kinds[i].name, PERF_FILE))
			report_script(b, p, period);
	}
}

int bench_peers(struct bench *b, struct err *err)
{
	struct loop_opts opts = { .cpu = b->cpu, .stop = &bench_stop };
	struct loop_subject subjects[KINDS];
	struct loop_loss loss[KINDS];
	struct peer peers[KINDS] = {};
	unsigned int n, rounds;
	__u64 period;
	int ret = bench_period(b, RATE, &period, err);

	ret = ret ?: open_peers(b, peers, subjects, period, &n, err);
	if (!ret) {
		/* long enough for what a switch costs perf to be little */
		opts.slice_s = b->instructions ? 0.1 : 0.02;
		rounds = b->instructions ? LOOP_ROUNDS_MIN : bench_of(b, 25, 200);
		opts.seconds = rounds * opts.slice_s * (n + 1);
		quiet_settle();
		ret = loop_loss_measure(subjects, n, &opts, loss, err);
	}
	if (!ret)
		report_peers(b, peers, loss, period);
	for (size_t i = 0; i < KINDS; i++)
		close_peer(&peers[i]);
	return ret;
}

/* --- in terms of each other --- */

static const struct ratio {
	const char *name, *what;
	const char *over, *under; /* names of rows */
	const char *plus;	  /* NULL, or a row that is added to `over` */
	const char *situ;	  /* of `under`, where the loop's noise hides it; NULL: none */
	bool beyond_empty;	  /* what NMI and driver cost alone is left out */
} ratios[] = {
	{ "ratio.rejected", "rejected, in terms of the event without a program", "peer.rejected",
	  "peer.event" },
	{ "ratio.perf-record", "perf record to a file, in terms of ibscope record to a file",
	  PERF_FILE, "peer.record", .situ = "situ.forwarded", .beyond_empty = true },
	{ "ratio.perf-record-script",
	  "perf record, then perf script, in terms of an aggregated sample", PERF_FILE,
	  "peer.aggregated", "peer.perf-script", "situ.aggregated", true },
	{ "ratio.perf-filter", "perf record --filter, in terms of a rejected sample",
	  "peer.perf-record-filter", "peer.rejected" },
};

struct figure {
	double value, spread;
};

static int get_figure(const struct bench *b, const struct ratio *r, const char *name,
		      struct figure *out, struct err *err)
{
	const struct bench_row *row = bench_find(b, name);

	if (!row)
		return err_set(err, -ENODATA, "%s has no figure", name);
	*out = (struct figure){ row->value, row->spread };
	if (r->beyond_empty)
		*out = (struct figure){ bench_get(row, BEYOND), bench_get(row, BEYOND_SPREAD) };
	return 0;
}

static bool above_noise(const struct figure *f)
{
	return f->value > 3 * f->spread && f->value > 0;
}

/* By the kernel's clock, which is finer than the loop; with what readers take. */
static bool use_situ(const struct bench *b, const struct ratio *r, struct figure *under)
{
	const struct bench_row *situ = r->situ ? bench_find(b, r->situ) : NULL;
	const struct bench_row *row = bench_find(b, r->under);

	if (!situ || !row)
		return false;
	*under = (struct figure){ bench_get(situ, "above_empty") + bench_get(row, "reader"),
				  situ->spread };
	return above_noise(under);
}

static int ratio(struct bench *b, const struct ratio *r, struct err *err)
{
	struct bench_row row = { .from = BENCH_FROM_EVENT, .unit = "times" };
	const struct bench_row *plus = r->plus ? bench_find(b, r->plus) : NULL;
	struct figure over, under;
	bool situ = false;
	int ret = get_figure(b, r, r->over, &over, err);

	ret = ret ?: get_figure(b, r, r->under, &under, err);
	if (!ret && r->plus && !plus)
		ret = err_set(err, -ENODATA, "%s has no figure", r->plus);
	if (!ret && !above_noise(&under)) {
		ret = err_set(err, -ENODATA,
			      "%s is not far enough above the noise: %.0f +- %.0f %s", r->under,
			      under.value, under.spread, b->unit);
		situ = use_situ(b, r, &under);
		if (situ)
			ret = 0;
	}
	if (ret)
		return ret;
	if (plus)
		over.value += plus->value;
	if (!above_noise(&over))
		return err_set(err, -ENODATA,
			       "%s is not far enough above the noise: %.0f +- %.0f %s", r->over,
			       over.value, over.spread, b->unit);
	snprintf(row.name, sizeof(row.name), "%s", r->name);
	snprintf(row.what, sizeof(row.what), "%s%s%s", r->what,
		 r->beyond_empty ? ", beyond an empty program" : "", situ ? "; ours by situ" : "");
	row.value = over.value / under.value;
	row.rounds = bench_find(b, r->under)->rounds;
	row.spread = row.value * hypot(over.spread / over.value, under.spread / under.value);
	bench_more(&row, "over", over.value);
	bench_more(&row, "under", under.value);
	bench_add(b, &row);
	return 0;
}

int bench_ratios(struct bench *b, struct err *err)
{
	for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++)
		if (ratio(b, &ratios[i], err))
			bench_missing(b, ratios[i].name, ratios[i].what, BENCH_FROM_EVENT, "%s",
				      err->text);
	return 0;
}
