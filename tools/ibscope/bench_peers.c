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

#define RATE	  4000 /* samples a second */
#define PEERS_MAX 12

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
	struct sampler *sampler;
	struct sample_event *event;
	struct bench_reader *reader;
	int file; /* 0: none */
	struct bench_perf *perf;
	struct loop_subject subject;
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
	if (!reader)
		return 0;
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
	return ret;
}

static int end_perf(struct bench *b, struct peer *p, struct bench_perf_read *out, struct err *err)
{
	(void)b;
	return bench_perf_end(p->perf, out, err);
}

#define PERF_FILE "peer.perf-record-file"

static const struct peer_kind kinds[] = {
	{ "peer.event", "event alone, no program", open_ours, end_ours, .case_name = "event" },
	{ "peer.empty", "program that does nothing", open_ours, end_ours, .case_name = "empty" },
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

static void report_peer(struct bench *b, struct peer *p, const struct loop_loss *loss,
			unsigned int rounds)
{
	struct bench_row row = { .from = BENCH_FROM_EVENT, .unit = b->unit, .rounds = rounds };
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
	if (p->kind->perf.filter) /* what it rejects is not in the file: as many as the event had */
		made = RATE * loss->on_s;
	if (made < 1) {
		bench_missing(b, row.name, row.what, row.from, "it has no sample");
		return;
	}
	per_sample = loss->on_s * 1e9 / made;
	loop = loss->share * per_sample;
	reader = read.cpu_ns / made;
	row.value = loop + reader;
	row.spread = loss->share_spread * per_sample;
	if (!(row.value > row.spread)) {
		bench_missing(b, row.name, row.what, row.from,
			      "too disturbed to tell: %.0f +- %.0f %s a sample in %u rounds",
			      row.value, row.spread, b->unit, rounds);
		return;
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

static int script_ns(const struct bench *b, const char *file, double *ns, struct err *err)
{
	char *argv[] = { "perf", "script", "-i", (char *)file, NULL };
	struct bench_child child = {};
	int status, ret = bench_child_start(b, argv, -1, &child, err);

	if (ret)
		return ret;
	status = bench_child_end(&child, 0, ns);
	if (status) {
		char said[256];

		bench_child_said(&child, said, sizeof(said));
		ret = bench_check_stop(err)
			      ?: err_set(err, -EIO, "perf script failed%s%s", *said ? ": " : "",
					 said);
	}
	close(child.said);
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

static void report_peers(struct bench *b, struct peer *peers, const struct loop_loss *loss,
			 size_t n, __u64 period)
{
	struct err err = { "" };

	for (size_t i = 0; i < n; i++)
		report_peer(b, &peers[i], &loss[i], loss[i].rounds);
	for (size_t i = 0; i < n; i++) {
		const struct bench_row *row = bench_find(b, PERF_FILE);

		if (strcmp(peers[i].kind->name, PERF_FILE))
			continue;
		if (!row)
			err_set(&err, 0, "there is no file of perf record");
		if (!row || script(b, peers[i].perf, loss[i].on_s * RATE, period, &err))
			bench_missing(b, "peer.perf-script", "perf script of that file",
				      BENCH_FROM_EVENT, "%s", err.text);
	}
}

int bench_peers(struct bench *b, struct err *err)
{
	struct loop_opts opts = { .cpu = b->cpu, .stop = &bench_stop };
	struct loop_subject subjects[PEERS_MAX];
	struct loop_loss loss[PEERS_MAX];
	struct peer peers[PEERS_MAX] = {};
	size_t n = 0;
	__u64 period;
	int ret = bench_period(b, RATE, &period, err);

	for (size_t i = 0; !ret && i < KINDS; i++) {
		struct peer *p = &peers[n];
		struct err why = { "" };
		int opened = bench_check_stop(err);

		if (opened) {
			ret = opened;
			break;
		}
		p->kind = &kinds[i];
		opened = kinds[i].open(b, p, period, &why);
		if (!opened) {
			subjects[n++] = p->subject;
			continue;
		}
		close_peer(p);
		bench_missing(b, kinds[i].name, kinds[i].what, BENCH_FROM_EVENT, "%s", why.text);
		if (!strcmp(kinds[i].name, PERF_FILE))
			bench_missing(b, "peer.perf-script", "perf script of that file",
				      BENCH_FROM_EVENT, "there is no file of perf record");
	}
	/* long enough for what a switch costs perf to be little */
	opts.slice_s = b->instructions ? 0.05 : 0.1;
	opts.seconds = b->instructions ? 5 * opts.slice_s * (n + 1) : bench_of(b, 8, 40);
	if (!ret) {
		bench_settle();
		ret = loop_loss_measure(subjects, n, &opts, loss, err);
	}
	if (!ret)
		report_peers(b, peers, loss, n, period);
	for (size_t i = 0; i < n; i++)
		close_peer(&peers[i]);
	return ret;
}

/* --- in terms of each other --- */

static const struct ratio {
	const char *name, *what;
	const char *over[2], *under; /* names of rows; the sum of the first two */
	bool beyond_empty;	     /* what NMI and driver cost alone is left out */
} ratios[] = {
	{ "ratio.rejected",
	  "rejected, of the event without a program: below 1 is cheaper",
	  { "peer.rejected" },
	  "peer.event",
	  false },
	{ "ratio.perf-record",
	  "perf record to a file, in terms of ibscope record to a file",
	  { PERF_FILE },
	  "peer.record",
	  true },
	{ "ratio.perf-record-script",
	  "perf record, then perf script, in terms of an aggregated sample",
	  { PERF_FILE, "peer.perf-script" },
	  "peer.aggregated",
	  true },
	{ "ratio.perf-filter",
	  "perf record --filter, in terms of a rejected sample",
	  { "peer.perf-record-filter" },
	  "peer.rejected",
	  false },
};

static int ratio(struct bench *b, const struct ratio *r, struct err *err)
{
	const struct bench_row *empty = bench_find(b, "peer.empty"), *under, *over[2] = {};
	struct bench_row row = { .from = BENCH_FROM_EVENT, .unit = "times" };
	double floor = 0, floor_spread = 0, top = 0, top_spread = 0, bottom;

	under = bench_find(b, r->under);
	if (r->beyond_empty && !empty)
		return err_set(err, -ENODATA, "peer.empty has no figure");
	if (!under)
		return err_set(err, -ENODATA, "%s has no figure", r->under);
	if (r->beyond_empty) {
		floor = empty->value;
		floor_spread = empty->spread;
	}
	for (int i = 0; i < 2 && r->over[i]; i++) {
		over[i] = bench_find(b, r->over[i]);
		if (!over[i])
			return err_set(err, -ENODATA, "%s has no figure", r->over[i]);
		top += over[i]->value;
		top_spread = hypot(top_spread, over[i]->spread);
	}
	top -= floor;
	top_spread = hypot(top_spread, floor_spread);
	bottom = under->value - floor;
	/* a difference that noise can make is no measure */
	if (!(bottom > 2 * hypot(under->spread, floor_spread)))
		return err_set(err, -ENODATA,
			       "%s is not far enough above the noise: %.0f +- %.0f %s", r->under,
			       bottom, hypot(under->spread, floor_spread), b->unit);
	snprintf(row.name, sizeof(row.name), "%s", r->name);
	snprintf(row.what, sizeof(row.what), "%s%s", r->what,
		 r->beyond_empty ? ", beyond an empty program" : "");
	row.value = top / bottom;
	row.rounds = under->rounds;
	row.spread =
		row.value * hypot(top_spread / top, hypot(under->spread, floor_spread) / bottom);
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
