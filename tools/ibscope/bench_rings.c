// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ring buffers: what taking records out costs, and how many a second one reader keeps up with. */
#include "bench_reader.h"

#include "clock.h"
#include "recording.h"
#include "twin.h"

#include <ibscope/sim.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BURST_NS   1000000 /* the twin makes records in bursts of about that distance */
#define FIRST_RATE 20000
#define LAST_RATE  20480000
#define CATCH_UP   8 /* bursts at once, after the twin or another process had the CPU for longer */
#define IN_TIME	   0.9	/* of the rate: below it the twin is slower than that */
#define TRIES	   3	/* another process may keep the reader waiting in one */
#define BATCH	   4096 /* records that fit */
#define ROUNDS_MAX 101

static int open_twin(const struct bench *b, enum sampler_output output, struct sampler **out,
		     struct err *err)
{
	static __u64 regs[IBS_TWIN_SAMPLES][IBS_OP_REG_FIXED];
	const struct sampler_opts opts = { .source = SAMPLER_TWIN,
					   .output = output,
					   .ibs = b->ibs };
	int ret = sampler_open(&opts, out, err);

	if (ret)
		return ret;
	for (int i = 0; i < IBS_TWIN_SAMPLES; i++)
		ibs_sim_op(1, 0, i, b->ibs.caps, regs[i]);
	ret = twin_load(*out, (const __u64(*)[IBS_OP_REG_FIXED])regs, IBS_TWIN_SAMPLES, err);
	if (ret)
		sampler_close(*out);
	return ret;
}

/* --- a record through the reader's hands --- */

/* How a recording is written, and the name of its row. */
static const struct way {
	const char *name, *what;
	enum sampler_output output;
	bool compress;
} ways[] = {
	{ "rings.take", "CPU time of the reader for a record, recording written", SAMPLER_RECORDS },
	{ "rings.take-z", "the same with -z, samples that repeat", SAMPLER_RECORDS,
	  .compress = true },
	{ "rings.take-raw", "the same with --raw", SAMPLER_RECORDS_RAW },
};

static int take_rounds(struct sampler *s, struct recording *r, double *ns, unsigned int rounds,
		       struct err *err)
{
	__u64 loop_ns;

	for (unsigned int i = 0; i < rounds; i++) {
		__u64 before = rings_taken(sampler_rings(s)), start;
		int ret = bench_check_stop(err);

		ret = ret ?: twin_loop(s, IBS_TWIN_REGS, IBS_TWIN_SAMPLES, BATCH, &loop_ns, err);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ret = ret ?: rings_drain(sampler_rings(s), UINT64_MAX, bench_to_recording, r, err);
		ret = ret ?: recording_flush(r, NULL, err);
		if (ret)
			return ret;
		ns[i] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) /
			(rings_taken(sampler_rings(s)) - before);
	}
	return 0;
}

/* What follows from the cost, if that is a time: the rate that a reader with a CPU of its own keeps
 * up with, and for how long it may be kept from that CPU before a ring is full. */
static void more_of_time(const struct bench *b, struct sampler *s, struct bench_row *row)
{
	const double slots = sampler_memory_used(s)->ring_slots;

	if (b->instructions)
		return;
	bench_more(row, "records_per_cpu_s", 1e9 / row->value);
	bench_more(row, "ring_s_at_10000", slots / 10000);
	bench_more(row, "ring_s_at_100000", slots / 100000);
}

static int take(struct bench *b, const struct way *way, int fd, struct err *err)
{
	struct bench_row row = { .from = BENCH_FROM_TWIN,
				 .unit = b->unit,
				 .rounds = bench_of(b, 15, ROUNDS_MAX) };
	struct recording *r = NULL;
	struct sampler *s;
	double ns[ROUNDS_MAX];
	int ret = open_twin(b, way->output, &s, err);

	if (ret)
		return ret;
	snprintf(row.name, sizeof(row.name), "%s", way->name);
	snprintf(row.what, sizeof(row.what), "%s", way->what);
	ret = bench_recording(b, fd, way->compress, &r, err);
	ret = ret ?: take_rounds(s, r, ns, row.rounds, err);
	if (!ret) {
		row.value = loop_median(ns, row.rounds, &row.spread);
		bench_more(&row, "bytes_per_record",
			   (double)recording_bytes(r) / rings_taken(sampler_rings(s)));
		more_of_time(b, s, &row);
		bench_add(b, &row);
	}
	recording_close(r);
	sampler_close(s);
	return ret;
}

/* --- how many a second --- */

struct rate_run {
	__u64 made, lost;
	double seconds;
	bool late; /* the twin could not make as many */
	struct bench_read read;
};

static double made_rate(const struct rate_run *run)
{
	return run->made / run->seconds;
}

/* Those that are due are made in bursts. */
static int make_records(struct sampler *s, double rate, double seconds, double *took,
			struct err *err)
{
	const struct timespec pause = { .tv_nsec = BURST_NS };
	const __u64 most = CATCH_UP * BURST_NS * (rate / 1e9);
	__u64 start = clock_ns(CLOCK_MONOTONIC), now = start, made = 0, ns;
	int ret = 0;

	for (; !ret && now < start + seconds * 1e9; now = clock_ns(CLOCK_MONOTONIC)) {
		__u64 due = (now - start) * (rate / 1e9) - made;
		__u64 n = due < most ? due : most;

		if (n)
			ret = twin_loop(s, IBS_TWIN_REGS, IBS_TWIN_SAMPLES, n, &ns, err);
		made += n;
		if (n == due)
			nanosleep(&pause, NULL);
		ret = ret ?: bench_check_stop(err);
	}
	*took = (now - start) / 1e9;
	return ret;
}

static int at_rate(const struct bench *b, double rate, double seconds, int fd, struct rate_run *out,
		   struct err *err)
{
	struct bench_reader *reader;
	struct ledger ledger = {};
	struct pmu_state pmu;
	struct sampler *s;
	struct err later;
	int end, ret;

	memset(out, 0, sizeof(*out));
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		return err_set(err, -errno, "cannot begin the file anew: %s", strerror(errno));
	ret = open_twin(b, SAMPLER_RECORDS, &s, err);
	if (ret)
		return ret;
	ret = bench_reader_start(b, s, fd, &reader, err);
	if (!ret) {
		ret = make_records(s, rate, seconds, &out->seconds, err);
		end = bench_reader_end(reader, &out->read, ret ? &later : err);
		ret = ret ?: end;
	}
	ret = ret ?: sampler_ledger(s, &ledger, &pmu, err);
	sampler_close(s);
	out->made = ledger.seen;
	out->lost = ledger.outcome[IBS_OUTCOME_LOST_RING_FULL];
	out->late = !ret && made_rate(out) < IN_TIME * rate;
	return ret;
}

/* Of several runs the first without loss and in time, else the last. */
static int best_at_rate(const struct bench *b, double rate, int fd, struct rate_run *out,
			struct err *err)
{
	const double seconds = bench_of(b, 0.2, 1);
	int ret, i = 0;

	do
		ret = at_rate(b, rate, seconds, fd, out, err);
	while (!ret && (out->lost || out->late) && ++i < TRIES);
	return ret;
}

/* The fastest without loss; *@last is the first with loss, or that the twin was too slow for. */
static int find_best(const struct bench *b, int fd, struct rate_run *best, struct rate_run *last,
		     struct err *err)
{
	int ret;

	for (double rate = FIRST_RATE; rate <= LAST_RATE; rate *= 2) {
		ret = best_at_rate(b, rate, fd, last, err);
		if (ret)
			return ret;
		if (!last->lost && (!best->made || made_rate(last) > made_rate(best)))
			*best = *last;
		if (last->lost || last->late)
			break;
	}
	if (!best->read.records)
		return err_set(err, -ENOSPC,
			       "%llu of %llu records were lost at %d a second already", last->lost,
			       last->made, FIRST_RATE);
	return 0;
}

static int rates(struct bench *b, int fd, struct err *err)
{
	struct bench_row row = { .name = "rings.rate",
				 .what = "one CPU forwards, one reader records, none is lost",
				 .from = BENCH_FROM_TWIN,
				 .unit = "records/s" };
	struct rate_run best = {}, last = {};
	int ret = find_best(b, fd, &best, &last, err);

	if (ret)
		return ret;
	if (!last.lost)
		snprintf(row.what, sizeof(row.what), "%s",
			 "one CPU forwards, one reader records; more were not made");
	row.value = best.read.records / best.seconds;
	bench_more(&row, "reader_cpu_percent", best.read.cpu_ns / best.seconds / 1e7);
	bench_more(&row, "reader", best.read.cpu_ns / best.read.records);
	bench_more(&row, "bytes_per_record", (double)best.read.bytes / best.read.records);
	if (last.lost)
		bench_more(&row, "lost_at", made_rate(&last));
	bench_add(b, &row);
	return 0;
}

int bench_rings(struct bench *b, struct err *err)
{
	int ret = 0, fd = bench_tmpfile(err);

	if (fd < 0)
		return fd;
	for (size_t i = 0; !ret && i < sizeof(ways) / sizeof(ways[0]); i++)
		ret = take(b, &ways[i], fd, err);
	if (!ret && b->cpu == b->reader_cpu)
		bench_missing(b, "rings.rate", "records a second without loss", BENCH_FROM_TWIN,
			      "forwarding and reading at once needs two CPUs");
	else if (!ret)
		ret = rates(b, fd, err);
	close(fd);
	return ret;
}
