/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recordings made block by block, and how tests read them: pread() of the program is that of this file. */
#ifndef IBSCOPE_TESTS_RECORDING_BLOCKS_MADE_H
#define IBSCOPE_TESTS_RECORDING_BLOCKS_MADE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording_blocks.h"

#define HEAD	sizeof(struct recording_file_head)
#define BLOCK	sizeof(struct recording_block)
#define FILE_ID 77
#define N	5 /* blocks */

static struct recording_blocks b;
static struct err err;
static unsigned char bytes[1 << 22];

/* What reads do: fail if they touch this offset; come in such parts, and every second is interrupted. */
static off_t broken = -1;
static size_t part;
static unsigned int reads;

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	reads++;
	if (broken >= at && broken < at + (off_t)n) {
		errno = EIO;
		return -1;
	}
	if (part && reads % 2) {
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, part && part < n ? part : n, at);
}

static inline size_t put_file_head(unsigned char *out)
{
	struct recording_file_head h = { .magic = RECORDING_FILE_MAGIC,
					 .byte_order = RECORDING_BYTE_ORDER,
					 .major = RECORDING_MAJOR,
					 .block_head_bytes = BLOCK,
					 .file = FILE_ID };

	h.crc = recording_crc(&h, offsetof(struct recording_file_head, crc));
	memcpy(out, &h, sizeof(h));
	return sizeof(h);
}

static inline void seal(unsigned char *at, struct recording_block *h)
{
	h->data_crc = recording_crc(at + BLOCK, h->bytes);
	h->head_crc = recording_crc(h, offsetof(struct recording_block, head_crc));
	memcpy(at, h, sizeof(*h));
}

/* A block of @n bytes, all @seq. */
static inline size_t put_block_of(unsigned char *out, unsigned int seq, size_t n)
{
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .file = FILE_ID,
				     .seq = seq,
				     .type = RECORDING_EVENTS,
				     .bytes = n };

	h.raw_bytes = h.bytes;
	memset(out + BLOCK, seq, h.bytes);
	seal(out, &h);
	return BLOCK + h.bytes;
}

static inline size_t put_block(unsigned char *out, unsigned int seq)
{
	return put_block_of(out, seq, 100 * (1 + seq));
}

static inline size_t at_of(unsigned int seq)
{
	return HEAD + seq * BLOCK + 50 * seq * (seq + 1);
}

/* @bytes become a recording of N blocks. Return: its size. */
static inline size_t fill(unsigned char *out)
{
	size_t n = put_file_head(out);

	for (unsigned int seq = 0; seq < N; seq++)
		n += put_block(out + n, seq);
	assert_int_equal(n, at_of(N));
	return n;
}

static inline int file_of(const void *data, size_t n, off_t at)
{
	const int fd = memfd_create("blocks", 0);

	assert_int_equal(pwrite(fd, data, n, at), n);
	return fd;
}

static inline void open_blocks(int fd, __u64 offset, __u64 n)
{
	if (recording_blocks_open(fd, offset, n, &b, &err))
		fail_msg("%s", err.text);
}

static inline void close_blocks(int fd)
{
	recording_blocks_close(&b);
	close(fd);
}

/* The next block is intact, and has this number. */
static inline void next_is(unsigned int seq)
{
	const unsigned char *data;
	struct recording_block h;
	__u64 offset;

	for (int again = 0; again < 2; again++) {
		assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
		assert_int_equal(h.seq, seq);
		assert_int_equal(offset, at_of(seq));
	}
	assert_int_equal(recording_blocks_take(&b, &data, &err), 1);
	assert_int_equal(h.raw_bytes, 100 * (1 + seq));
	for (unsigned int i = 0; i < h.raw_bytes; i++)
		assert_int_equal(data[i], seq);
}

/* The next block has an intact head, and nothing else of it can be used. */
static inline void next_is_damaged(unsigned int seq)
{
	const unsigned char *data;
	struct recording_block h;
	__u64 offset;

	assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
	assert_int_equal(h.seq, seq);
	assert_int_equal(recording_blocks_take(&b, &data, &err), 0);
}

static inline void at_end(void)
{
	struct recording_block h;
	__u64 offset;

	for (int again = 0; again < 2; again++)
		assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 0);
}

static inline void is_damaged(__u64 blocks, __u64 lost, __u64 offset, const char *reason)
{
	assert_int_equal(b.damage.blocks, blocks);
	assert_int_equal(b.damage.bytes, lost);
	assert_int_equal(b.damage.offset, offset);
	assert_string_equal(b.damage.reason, reason);
}

/* @seq after @n bytes of something else, read again and again by nobody. */
static inline void check_search(unsigned int seq, size_t n)
{
	const __u64 lost = b.damage.bytes;
	const unsigned char *data;
	struct recording_block h;
	__u64 offset;

	reads = 0;
	assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
	assert_int_equal(h.seq, seq);
	assert_true(reads <= 3 + n / sizeof(b.window));
	assert_int_equal(recording_blocks_take(&b, &data, &err), 1);
	assert_int_equal(b.damage.bytes, lost + n);
}

#endif
