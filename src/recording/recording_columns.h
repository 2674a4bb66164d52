/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples as columns of bytes, which is what compresses: fields lie together, times and addresses
 * as the small differences that they are.
 *
 * Rows of fields, compressed, would be simpler. But of samples of 104 bytes columns need 20 without any
 * compressor, and 11 with zstd; rows with zstd need 17, at its CPU cost.
 */
#ifndef IBSCOPE_RECORDING_COLUMNS_H
#define IBSCOPE_RECORDING_COLUMNS_H

#include "recording_format.h"

struct recording_columns {
	__u32 present;	/* bit of each enum recording_column that is there */
	unsigned int n; /* samples */
	__u64 v[RECORDING_COLUMN_N][RECORDING_BATCH];
};

/*
 * The most that recording_columns_encode() writes of RECORDING_WRITTEN values that are no wider than the table says; a
 * distance has one bit more, and each column may have its bits of RECORDING_SPARSE.
 */
#define RECORDING_COLUMN_BITS(NAME, id, transform, other, bytes) \
	+8 * ((bytes) + (RECORDING_##transform == RECORDING_DISTANCE)) + 1
#define RECORDING_COLUMNS_MAX                                              \
	((RECORDING_COLUMN_N + 1) * sizeof(struct recording_column_head) + \
	 RECORDING_WRITTEN / 8 * (0 RECORDING_COLUMN_TABLE(RECORDING_COLUMN_BITS)))
_Static_assert(RECORDING_COLUMNS_MAX <= RECORDING_BLOCK_MAX, "a batch of samples must fit a block");

/**
 * recording_columns_encode() - the data of a block
 * @out: RECORDING_BLOCK_MAX bytes
 *
 * Return: bytes written.
 */
size_t recording_columns_encode(const struct recording_columns *c, unsigned char *out);

/**
 * recording_columns_decode() - the samples of a block
 * @n: of them, as its head says
 *
 * Return: NULL, or what is wrong with the data; then *c is undefined.
 */
const char *recording_columns_decode(struct recording_columns *c, unsigned int n,
				     const unsigned char *in, size_t bytes);

#endif
