/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the records of a sampler as `ibscope record` does: on the readers' CPU, into a recording. */
#ifndef IBSCOPE_BENCH_READER_H
#define IBSCOPE_BENCH_READER_H

#include "bench.h"

struct bench_reader;

/**
 * bench_reader_start() - begin to read
 * @fd: where the recording goes, as `record` writes it by default; stays the caller's
 *
 * It sleeps as long as the rings tell it to.
 */
int bench_reader_start(const struct bench *b, struct sampler *s, int fd, struct bench_reader **out,
		       struct err *err);

struct bench_read {
	__u64 records, bytes; /* of the recording */
	double cpu_ns;
};

/* Read what is left, finish the recording, and end. Accepts NULL. 0, or a negative errno with @err. */
int bench_reader_end(struct bench_reader *r, struct bench_read *out, struct err *err);

/* A recording of nothing in particular. */
struct recording;
int bench_recording(const struct bench *b, int fd, bool compress, struct recording **out,
		    struct err *err);

/* For rings_drain(): adds what is taken to @recording, a struct recording. */
int bench_to_recording(const struct record_batch *batch, void *recording, struct err *err);

#endif
