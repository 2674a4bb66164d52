/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the undamaged blocks of a recording in order, whatever bytes the file has. Bytes between them are
 * skipped and counted.
 */
#ifndef IBSCOPE_RECORDING_BLOCKS_H
#define IBSCOPE_RECORDING_BLOCKS_H

#include "base/std.h"
#include "recording_format.h"

#include "trace/trace.h"

#include <zstd.h>

struct recording_damage {
	__u64 blocks;	 /* known to be missing or unreadable */
	__u64 bytes;	 /* outside readable blocks */
	__u64 samples;	 /* in damaged blocks with a readable head */
	__u64 offset;	 /* of the first damage */
	char reason[96]; /* "" without damage */
};

struct recording_blocks {
	int fd;
	__u64 base;			/* where the recording begins in the file */
	__u64 size;			/* of the recording */
	struct recording_damage damage; /* complete once recording_blocks_peek() returned 0 */

	/* private */
	__u64 start; /* of the first block */
	__u32 file;
	bool knows_file, head_damaged;
	__u64 at;	/* expected start of the next block */
	__u64 good_end; /* of the last undamaged block */
	__u64 next_seq;
	__u64 wasted; /* bytes read because of damaged blocks */
	__u64 expanded,
		packed; /* bytes of data and samples in the blocks so far, and in the file */
	bool peeked;
	struct recording_block head;
	ZSTD_DCtx *zstd;
	__u64 window_at; /* file offset of `window` */
	size_t window_bytes;
	unsigned char window[1 << 16];
	unsigned char *stored, *raw;
	size_t stored_room, raw_room;
};

/**
 * recording_blocks_open() - go to the first block
 * @fd: seekable; stays the caller's
 * @offset: of the recording in the file, and its size in @bytes, 0: up to the end
 *
 * Return: 0, or a negative errno with @err: -EINVAL for a version that this program cannot read.
 * Call recording_blocks_close() in either case.
 */
int recording_blocks_open(int fd, __u64 offset, __u64 bytes, struct recording_blocks *b,
			  struct err *err);

/**
 * recording_blocks_peek() - read the head of the next block
 *
 * Its data may still be damaged.
 *
 * Return: 1 and *head; 0 at the end of the file; or a negative errno with @err: cannot read.
 */
int recording_blocks_peek(struct recording_blocks *b, struct recording_block *head, __u64 *offset,
			  struct err *err);

/**
 * recording_blocks_take() - read the data of the block from recording_blocks_peek(), and advance
 * @data: raw_bytes of data, valid until the next call; NULL: only check that they are undamaged
 *
 * Return: 1 and *data; 0 if it is damaged; or a negative errno with @err: cannot read.
 */
int recording_blocks_take(struct recording_blocks *b, const unsigned char **data, struct err *err);

/*
 * For who reads the data of blocks himself: the head of the block after those taken, if it is intact. Then, once
 * recording_blocks_peek() said the same: advance over that block, of which all is undamaged. Return: 0 or a negative errno.
 */
bool recording_blocks_next(struct recording_blocks *b, struct recording_block *head, __u64 *offset);
int recording_blocks_pass(struct recording_blocks *b, struct err *err);

/* Count the last block as damaged, because its contents are invalid. */
void recording_blocks_reject(struct recording_blocks *b, const char *reason);

void recording_blocks_rewind(struct recording_blocks *b);

void recording_blocks_close(struct recording_blocks *b);

/* What the reader says of the end of a file. @ended: with the mark of an orderly end; @unwritten: not all was written */
void recording_blocks_describe_end(const struct recording_blocks *b, bool ended, bool unwritten,
				   struct trace_end *e);

#endif
