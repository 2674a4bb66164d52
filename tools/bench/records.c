// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What records cost where they are written and where they are read, in CPU time, which another load
 * on the machine does not change much. Two figures follow from it: the rate that a reader with a CPU
 * of its own sustains, which is one by the cost, and how long it may be kept from that CPU before a
 * ring is full, which is the ring's records by the rate of its CPU.
 *
 * Then what is seen of that here: the twin makes records on one CPU, in bursts of a millisecond; the
 * reader is on another and does as `record` does: it sleeps as long as the rings tell it to, and
 * writes a recording, to /dev/null. Something is lost when the reader pauses for longer than the
 * ring lasts; why it does, the machine knows.
 *
 *   bench-records [SECONDS a rate]
 */
#include "err.h"
#include "recording.h"
#include "sampler.h"
#include "twin.h"

#include <ibscope/sim.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CAPS	 0xbffU
#define MIX	 1024 /* samples, a power of two */
#define BURST_NS 1000000
#define LATE_NS	 4000000 /* what was not made in that time, as nobody ran us, is not made later */

struct reader {
	struct rings *rings;
	struct recording *recording; /* NULL: records are only taken out */
	_Atomic bool stop;
	__u64 cpu_ns, pause_ns; /* the longest */
	unsigned long passes;
};

static __u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void die(const struct err *err)
{
	log_error("%s", err->text);
	exit(1);
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int take(const struct record_batch *b, void *arg, struct err *err)
{
	struct reader *r = arg;

	if (!r->recording)
		return 0;
	if (b->raw)
		return recording_samples_raw(r->recording, b->raw, NULL, b->n, err);
	return recording_samples(r->recording, b->records, NULL, b->n, err);
}

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct err err = { "" };
	__u64 before = clock_ns(CLOCK_MONOTONIC), now;
	bool last;

	bind_to(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	setpriority(PRIO_PROCESS, 0, -10); /* of this thread */
	do {
		struct pollfd p = { .fd = rings_fd(r->rings), .events = POLLIN };

		poll(&p, 1, rings_delay_ms(r->rings));
		last = r->stop;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - before > r->pause_ns)
			r->pause_ns = now - before;
		before = now;
		if (rings_drain(r->rings, last ? UINT64_MAX : now, take, r, &err) ||
		    (r->recording && recording_flush(r->recording, NULL, &err)))
			die(&err);
		r->passes++;
	} while (!last);
	r->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static struct sampler *open_sampler(enum sampler_output output)
{
	const struct sampler_opts opts = { .source = SAMPLER_TWIN,
					   .output = output,
					   .ibs.caps = CAPS };
	__u64 regs[MIX][IBS_OP_REG_FIXED];
	struct err err = { "" };
	struct sampler *s;

	for (int i = 0; i < MIX; i++)
		ibs_sim_op(1, 0, i, CAPS, regs[i]);
	if (sampler_open(&opts, &s, &err) ||
	    twin_load(s, (const __u64(*)[IBS_OP_REG_FIXED])regs, MIX, &err))
		die(&err);
	return s;
}

static struct recording *open_recording(void)
{
	static struct trace_pmu pmu = { .name = "bench", .op = true };
	static struct trace_info info = {
		.format = "ibscope 1", .source = "sim", .simulated = true, .pmu = &pmu, .n_pmus = 1
	};
	struct recording_opts opts = { .info = &info };
	struct recording *r;
	struct err err = { "" };

	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	opts.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (recording_create(&opts, &r, &err))
		die(&err);
	return r;
}

static void loop(struct sampler *s, enum ibs_twin_mode mode, __u32 repeat, __u64 *ns)
{
	struct err err = { "" };

	if (twin_loop(s, mode, MIX, repeat, ns, &err))
		die(&err);
}

static __u64 outcome(struct sampler *s, enum ibs_outcome o)
{
	struct err err = { "" };
	struct snapshot snap;
	__u64 n;

	if (sampler_snapshot(s, &snap, &err))
		die(&err);
	n = snap.ledger.outcome[o];
	snapshot_free(&snap);
	return n;
}

#define ROUNDS 50
#define FILL   4 /* times MIX samples: less than the smallest ring */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* To take out what the rings hold, and to have it in a file. Return: ns of CPU time a record. */
static double read_once(struct reader *r)
{
	__u64 start = clock_ns(CLOCK_THREAD_CPUTIME_ID), taken = rings_taken(r->rings);
	struct err err = { "" };

	if (rings_drain(r->rings, UINT64_MAX, take, r, &err) ||
	    (r->recording && recording_flush(r->recording, NULL, &err)))
		die(&err);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) /
	       (rings_taken(r->rings) - taken);
}

/* What a sample costs in the kernel, without the loop; with records also what reading them does. */
static void costs(const char *name, enum sampler_output output)
{
	static double in_kernel[ROUNDS], out[ROUNDS], filed[ROUNDS];
	struct sampler *s = open_sampler(output);
	struct recording *recording = open_recording();
	struct reader r = { .rings = sampler_rings(s) };
	__u32 slots = sampler_memory_used(s)->ring_slots;
	__u64 ns, floor;

	for (int i = 0; i < ROUNDS; i++) {
		loop(s, IBS_TWIN_FLOOR, FILL * MIX, &floor);
		loop(s, IBS_TWIN_REGS, FILL * MIX, &ns);
		in_kernel[i] = ((double)ns - floor) / (FILL * MIX);
		if (!r.rings)
			continue;
		r.recording = NULL;
		out[i] = read_once(&r);
		loop(s, IBS_TWIN_REGS, FILL * MIX, &ns);
		r.recording = recording;
		filed[i] = read_once(&r);
	}
	printf("%-12s %6.1f ns a sample in the kernel", name, median(in_kernel, ROUNDS));
	if (r.rings) {
		double each = median(filed, ROUNDS);

		printf(", %.1f to take it out, %.1f with writing it: a reader with a CPU of its "
		       "own "
		       "sustains %.1f million/s; %u records in a ring last %.0f ms at 10,000/s and "
		       "CPU, %.0f at 100,000/s",
		       median(out, ROUNDS), each, 1e3 / each, slots, slots / 10.0, slots / 100.0);
	}
	putchar('\n');
	recording_close(recording);
	sampler_close(s);
}

/* Bursts at a rate, for a time. Return: records lost. */
static __u64 at_rate(__u64 rate, double seconds)
{
	struct sampler *s = open_sampler(SAMPLER_RECORDS);
	struct reader r = { .rings = sampler_rings(s), .recording = open_recording() };
	__u64 start, made = 0, skipped = 0, lost, ns;
	pthread_t reader;

	pthread_create(&reader, NULL, read_all, &r);
	start = clock_ns(CLOCK_MONOTONIC);
	for (__u64 now = start; now < start + seconds * 1e9; now = clock_ns(CLOCK_MONOTONIC)) {
		__u64 due = (now - start) * (rate / 1e9), most = LATE_NS * (rate / 1e9);
		struct timespec t = { .tv_nsec = BURST_NS };

		due -= skipped;
		if (due - made > most) {
			skipped += due - made - most;
			due = made + most;
		}
		if (due > made)
			loop(s, IBS_TWIN_REGS, due - made, &ns);
		made = due;
		nanosleep(&t, NULL);
	}
	r.stop = true;
	pthread_join(reader, NULL);
	lost = outcome(s, IBS_OUTCOME_LOST_RING_FULL);
	printf("%9llu/s  lost %llu of %llu, reader %.0f ns a record, %.1f%% of a CPU, %lu passes, "
	       "longest pause %.1f ms of the %.1f that the ring lasts\n",
	       rate, lost, made, (double)r.cpu_ns / rings_taken(r.rings), r.cpu_ns / seconds / 1e7,
	       r.passes, r.pause_ns / 1e6, sampler_memory_used(s)->ring_slots * 1e3 / rate);
	recording_close(r.recording);
	sampler_close(s);
	return lost;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;

	bind_to(0);
	costs("aggregated", SAMPLER_SERIES);
	costs("packed", SAMPLER_RECORDS);
	costs("raw", SAMPLER_RECORDS_RAW);
	for (__u64 rate = 10000; rate <= 20000000; rate *= 2)
		if (at_rate(rate, seconds))
			break;
	return 0;
}
