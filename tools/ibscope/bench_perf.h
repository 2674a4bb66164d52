/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `perf record` as something that can be switched on and off, and what it came to. */
#ifndef IBSCOPE_BENCH_PERF_H
#define IBSCOPE_BENCH_PERF_H

#include "bench_child.h"

struct bench_perf;

struct bench_perf_opts {
	__u64 period;
	bool mem;	    /* perf mem record, which chooses the event itself */
	bool pipe;	    /* to a pipe, else to a file */
	const char *filter; /* of --filter; NULL: none */
};

struct bench_perf_read {
	__u64 samples, lost, bytes;
	/* CPU time: of perf since it was ready, without being switched; and of who reads the pipe */
	double cpu_ns;
};

/**
 * bench_perf_start() - start it, with its event disabled
 *
 * Return: 0, or a negative errno with @err saying what perf said.
 */
int bench_perf_start(const struct bench *b, const struct bench_perf_opts *opts,
		     struct bench_perf **out, struct err *err);

struct loop_subject bench_perf_subject(struct bench_perf *p);

/* End it, and read what it has written. It must not be switched on any more. */
int bench_perf_end(struct bench_perf *p, struct bench_perf_read *out, struct err *err);

/* Its file, after bench_perf_end(), by a path that other processes can open, too: /proc/PID/fd/N */
const char *bench_perf_file(const struct bench_perf *p);

void bench_perf_close(struct bench_perf *p); /* accepts NULL, and any state */

#endif
