/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The blocks of a recording that are whole, in their order, out of whatever bytes the file has.
 * What is between them is stepped over and counted.
 */
#ifndef IBSCOPE_RECORDING_BLOCKS_H
#define IBSCOPE_RECORDING_BLOCKS_H

#include "base/err.h"
#include "recording_format.h"

struct recording_blocks;

struct recording_damage {
	__u64 blocks;	 /* known to have been there, and not readable */
	__u64 bytes;	 /* of the file that are part of no readable block */
	__u64 samples;	 /* in blocks whose head was readable */
	__u64 offset;	 /* of the first damage */
	char reason[96]; /* "" if there is none */
};

/**
 * recording_blocks_open() - go to the first block
 * @fd: seekable; stays the caller's
 *
 * Return: 0, or a negative errno with @err: -EINVAL for a version that this program cannot read.
 */
int recording_blocks_open(int fd, struct recording_blocks **out, struct err *err);

/**
 * recording_blocks_peek() - the head of the next block
 *
 * Its data may turn out to be damaged.
 *
 * Return: 1 and *head; 0 at the end of the file; or a negative errno with @err: cannot read.
 */
int recording_blocks_peek(struct recording_blocks *b, struct recording_block *head, __u64 *offset,
			  struct err *err);

/**
 * recording_blocks_take() - the data of the block that was peeked at, and go on behind it
 * @data: raw_bytes of it, until the next call
 *
 * Return: 1 and *data; 0 if it is damaged; or a negative errno with @err: cannot read.
 */
int recording_blocks_take(struct recording_blocks *b, const unsigned char **data, struct err *err);

/* The block taken last was of no use after all: count it as damaged. */
void recording_blocks_reject(struct recording_blocks *b, const char *reason);

void recording_blocks_rewind(struct recording_blocks *b);

/* Complete once recording_blocks_peek() returned 0. */
const struct recording_damage *recording_blocks_damage(const struct recording_blocks *b);

__u64 recording_blocks_offset(const struct recording_blocks *b);
__u64 recording_blocks_size(const struct recording_blocks *b);
void recording_blocks_close(struct recording_blocks *b); /* accepts NULL */

#endif
