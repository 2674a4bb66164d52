/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples as columns of bytes, which compress well: equal fields are adjacent, times and addresses are stored
 * as small differences.
 *
 * Compressed rows would be simpler. But columns need 20 bytes for a sample of 104 bytes without a compressor,
 * and 11 with zstd; rows need 17 with zstd, at its CPU cost.
 */
#ifndef IBSCOPE_RECORDING_COLUMNS_H
#define IBSCOPE_RECORDING_COLUMNS_H

#include "recording_format.h"
#include "trace/trace.h"

struct recording_columns {
	__u32 present;	/* bit of each enum recording_column that is there */
	unsigned int n; /* samples */
	__u64 v[RECORDING_COLUMN_N][RECORDING_BATCH];
};

/*
 * Maximum output of recording_columns_encode() for RECORDING_WRITTEN values as wide as in the table; a distance has
 * one bit more, and each column may have a bitmap for RECORDING_SPARSE.
 */
#define RECORDING_COLUMN_BITS(NAME, id, transform, other, bytes) \
	+8 * ((bytes) + (RECORDING_##transform == RECORDING_DISTANCE)) + 1
#define RECORDING_COLUMNS_MAX                                              \
	((RECORDING_COLUMN_N + 1) * sizeof(struct recording_column_head) + \
	 RECORDING_WRITTEN / 8 * (0 RECORDING_COLUMN_TABLE(RECORDING_COLUMN_BITS)))
_Static_assert(RECORDING_COLUMNS_MAX <= RECORDING_BLOCK_MAX, "a batch of samples must fit a block");

/**
 * recording_columns_encode() - write the data of a block
 * @out: RECORDING_BLOCK_MAX bytes
 *
 * Return: bytes written.
 */
size_t recording_columns_encode(const struct recording_columns *c, unsigned char *out);

/**
 * recording_columns_decode() - read the samples of a block
 * @n: number of samples, from the head of the block
 *
 * Return: NULL, or the reason why the data is invalid; then *c is undefined.
 */
const char *recording_columns_decode(struct recording_columns *c, unsigned int n,
				     const unsigned char *in, size_t bytes);

/* Whether each sample's stratum is an event of the recording, of ibs_op or not (@op). The column is present. */
bool recording_columns_strata_ok(const struct recording_columns *c, const struct trace_info *info,
				 bool op);

#endif
