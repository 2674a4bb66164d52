// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What records cost where they are written and where they are read, and how many a second one CPU can
 * forward before the reader is too late. The twin makes them, on one CPU, in bursts of a millisecond;
 * the reader is on another and does as `record` does: it sleeps as long as the rings tell it to, and
 * writes a recording, to /dev/null.
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

struct reader {
	struct rings *rings;
	struct recording *recording; /* NULL: records are only taken out */
	_Atomic bool stop;
	__u64 cpu_ns;
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

	return r->recording ? recording_samples(r->recording, b->records, NULL, b->n, err) : 0;
}

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct err err = { "" };
	bool last;

	bind_to(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	setpriority(PRIO_PROCESS, 0, -10); /* of this thread */
	do {
		struct pollfd p = { .fd = rings_fd(r->rings), .events = POLLIN };

		poll(&p, 1, rings_delay_ms(r->rings));
		last = r->stop;
		if (rings_drain(r->rings, last ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC), take, r,
				&err) ||
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
	struct recording_opts opts = { .info = &info, .compress = true };
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

/* What writing a record costs, without a reader and without the loop. */
static void writing(const char *name, enum sampler_output output)
{
	struct reader r = {};
	struct err err = { "" };
	__u64 best = UINT64_MAX, floor = UINT64_MAX, ns, drained = 0;
	struct sampler *s = open_sampler(output);

	r.rings = sampler_rings(s);
	for (int i = 0; i < 50; i++) {
		loop(s, IBS_TWIN_FLOOR, MIX, &ns);
		floor = ns < floor ? ns : floor;
		loop(s, IBS_TWIN_REGS, MIX, &ns);
		best = ns < best ? ns : best;
		if (!r.rings)
			continue;
		drained -= clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (rings_drain(r.rings, UINT64_MAX, take, &r, &err))
			die(&err);
		drained += clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	printf("%-12s %6.1f ns a sample in the kernel", name, (double)(best - floor) / MIX);
	if (r.rings)
		printf(", %.1f ns to take it out", (double)drained / MIX / 50);
	putchar('\n');
	sampler_close(s);
}

/* Bursts at a rate, for a time. Return: records lost. */
static __u64 at_rate(__u64 rate, double seconds)
{
	struct sampler *s = open_sampler(SAMPLER_RECORDS);
	struct reader r = { .rings = sampler_rings(s), .recording = open_recording() };
	__u64 start, made = 0, lost, late = 0, ns;
	pthread_t reader;

	pthread_create(&reader, NULL, read_all, &r);
	start = clock_ns(CLOCK_MONOTONIC);
	for (__u64 now = start; now < start + seconds * 1e9; now = clock_ns(CLOCK_MONOTONIC)) {
		__u64 due = (now - start) * (rate / 1e9);
		struct timespec t = { .tv_nsec = BURST_NS };

		if (due > made)
			loop(s, IBS_TWIN_REGS, due - made, &ns);
		late = due - made > late ? due - made : late;
		made = due;
		nanosleep(&t, NULL);
	}
	r.stop = true;
	pthread_join(reader, NULL);
	lost = outcome(s, IBS_OUTCOME_LOST_RING_FULL);
	printf("%9llu/s  lost %llu of %llu, reader %.0f ns a record, %.1f%% of a CPU, %lu passes, "
	       "largest burst %llu\n",
	       (unsigned long long)rate, (unsigned long long)lost, (unsigned long long)made,
	       (double)r.cpu_ns / rings_taken(r.rings), r.cpu_ns / seconds / 1e7, r.passes,
	       (unsigned long long)late);
	recording_close(r.recording);
	sampler_close(s);
	return lost;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;

	bind_to(0);
	writing("aggregated", SAMPLER_SERIES);
	writing("packed", SAMPLER_RECORDS);
	writing("raw", SAMPLER_RECORDS_RAW);
	for (__u64 rate = 10000; rate <= 20000000; rate *= 2)
		if (at_rate(rate, seconds))
			break;
	return 0;
}
