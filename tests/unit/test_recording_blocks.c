// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks of a recording, read from a part of a file, from a file that shrinks or has holes, and with reads that fail or come short. */
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

#include "memory_in_use.h"
#include "recording/recording_blocks.h"

#define HEAD	sizeof(struct recording_file_head)
#define BLOCK	sizeof(struct recording_block)
#define FILE_ID 77
#define N	5 /* blocks */

static struct recording_blocks b;
static struct err err;
static unsigned char bytes[1 << 19];

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

static size_t put_file_head(unsigned char *out)
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

static void seal(unsigned char *at, struct recording_block *h)
{
	h->data_crc = recording_crc(at + BLOCK, h->bytes);
	h->head_crc = recording_crc(h, offsetof(struct recording_block, head_crc));
	memcpy(at, h, sizeof(*h));
}

/* A block of 100 * (1 + @seq) bytes, all @seq. */
static size_t put_block(unsigned char *out, unsigned int seq)
{
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .file = FILE_ID,
				     .seq = seq,
				     .type = RECORDING_EVENTS,
				     .bytes = 100 * (1 + seq) };

	h.raw_bytes = h.bytes;
	memset(out + BLOCK, seq, h.bytes);
	seal(out, &h);
	return BLOCK + h.bytes;
}

static size_t at_of(unsigned int seq)
{
	return HEAD + seq * BLOCK + 50 * seq * (seq + 1);
}

/* @bytes become a recording of N blocks. Return: its size. */
static size_t fill(unsigned char *out)
{
	size_t n = put_file_head(out);

	for (unsigned int seq = 0; seq < N; seq++)
		n += put_block(out + n, seq);
	assert_int_equal(n, at_of(N));
	return n;
}

static int file_of(const void *data, size_t n, off_t at)
{
	const int fd = memfd_create("blocks", 0);

	assert_int_equal(pwrite(fd, data, n, at), n);
	return fd;
}

static void open_blocks(int fd, __u64 offset, __u64 n)
{
	if (recording_blocks_open(fd, offset, n, &b, &err))
		fail_msg("%s", err.text);
}

static void close_blocks(int fd)
{
	recording_blocks_close(&b);
	close(fd);
}

/* The next block is intact, and has this number. */
static void next_is(unsigned int seq)
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
static void next_is_damaged(unsigned int seq)
{
	const unsigned char *data;
	struct recording_block h;
	__u64 offset;

	assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
	assert_int_equal(h.seq, seq);
	assert_int_equal(recording_blocks_take(&b, &data, &err), 0);
}

static void at_end(void)
{
	struct recording_block h;
	__u64 offset;

	for (int again = 0; again < 2; again++)
		assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 0);
}

static void is_damaged(__u64 blocks, __u64 lost, __u64 offset, const char *reason)
{
	assert_int_equal(b.damage.blocks, blocks);
	assert_int_equal(b.damage.bytes, lost);
	assert_int_equal(b.damage.offset, offset);
	assert_string_equal(b.damage.reason, reason);
}

/* A recording within a file ends where it is said to end, or where the file does. */
static void test_part_of_file(void **state)
{
	const size_t n = fill(bytes);
	int fd = file_of(bytes, n, 1000);

	(void)state;
	/* what follows looks like a block of it */
	put_block(bytes + n, N);
	assert_int_equal(pwrite(fd, bytes + n, at_of(N + 1) - n, 1000 + n), at_of(N + 1) - n);
	for (unsigned int blocks = N; blocks <= N + 1; blocks++) {
		open_blocks(fd, 1000, blocks == N ? n : 0);
		for (int again = 0; again < 2; again++) {
			for (unsigned int seq = 0; seq < blocks; seq++)
				next_is(seq);
			at_end();
			is_damaged(0, 0, 0, "");
			recording_blocks_rewind(&b);
		}
		recording_blocks_close(&b);
	}
	open_blocks(fd, 1000, n + 1000000);
	assert_int_equal(b.size, at_of(N + 1));
	recording_blocks_close(&b);
	/* cut in a block, of which the rest is still there */
	open_blocks(fd, 1000, n - 1);
	for (unsigned int seq = 0; seq < N - 1; seq++)
		next_is(seq);
	next_is_damaged(N - 1);
	at_end();
	is_damaged(1, n - 1 - at_of(N - 1), at_of(N - 1), "the file ends inside the block");
	recording_blocks_close(&b);
	for (__u64 offset = 1000 + at_of(N + 1); offset < 20000; offset += 5000) {
		assert_int_equal(recording_blocks_open(fd, offset, 0, &b, &err), -EINVAL);
		assert_string_equal(err.text, "it ends at offset 0, inside the head of the file");
		recording_blocks_close(&b);
	}
	close(fd);
	assert_int_equal(recording_blocks_open(-1, 0, 0, &b, &err), -EBADF);
	assert_string_equal(err.text, "fstat: Bad file descriptor");
	recording_blocks_close(&b);
}

/* Short and interrupted reads change nothing. */
static void test_slow_reads(void **state)
{
	static const size_t parts[] = { 1, 7, 100000 };
	const size_t n = fill(bytes);
	int fd = file_of(bytes, n, 5);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		part = parts[i];
		open_blocks(fd, 5, 0);
		for (unsigned int seq = 0; seq < N; seq++)
			next_is(seq);
		at_end();
		is_damaged(0, 0, 0, "");
		recording_blocks_close(&b);
	}
	/* the file became shorter since it was opened */
	open_blocks(fd, 5, 0);
	next_is(0);
	assert_int_equal(ftruncate(fd, 5 + n - 10), 0);
	for (unsigned int seq = 1; seq < N - 1; seq++)
		next_is(seq);
	next_is_damaged(N - 1);
	at_end();
	is_damaged(1, n - at_of(N - 1), at_of(N - 1), "the file ends inside the block");
	part = 0;
	close_blocks(fd);
}

static void cannot_read(int ret, __u64 at)
{
	char text[80];

	snprintf(text, sizeof(text), "cannot read at offset %llu: Input/output error",
		 (unsigned long long)at);
	assert_int_equal(ret, -EIO);
	assert_string_equal(err.text, text);
}

/* An error of the disk is not damage: it is told, with its place. */
static void test_failing_reads(void **state)
{
	const size_t n = fill(bytes);
	const unsigned char *data;
	struct recording_block h;
	__u64 offset;
	int fd;

	(void)state;
	fd = file_of(bytes, n, 5);
	broken = 5;
	cannot_read(recording_blocks_open(fd, 5, 0, &b, &err), 0);
	recording_blocks_close(&b);
	broken = 5 + at_of(1);
	open_blocks(fd, 5, 0);
	next_is(0);
	assert_false(recording_blocks_next(&b, &h, &offset));
	cannot_read(recording_blocks_peek(&b, &h, &offset, &err), at_of(1));
	recording_blocks_close(&b);
	broken = 5 + at_of(1) + BLOCK;
	open_blocks(fd, 5, 0);
	next_is(0);
	assert_true(recording_blocks_next(&b, &h, &offset));
	assert_int_equal(h.seq, 1);
	assert_int_equal(offset, at_of(1));
	assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
	cannot_read(recording_blocks_take(&b, &data, &err), at_of(1));
	recording_blocks_close(&b);
	close(fd);
	/* and while the next block is searched */
	bytes[at_of(1)] ^= 1;
	fd = file_of(bytes, n, 5);
	broken = 5 + at_of(2);
	open_blocks(fd, 5, 0);
	next_is(0);
	cannot_read(recording_blocks_peek(&b, &h, &offset, &err), at_of(1) + 1);
	broken = -1;
	close_blocks(fd);
}

/* A damaged head of the file costs no block; it is the first damage. */
static void test_file_head(void **state)
{
	const size_t n = fill(bytes);
	int fd;

	(void)state;
	bytes[HEAD - 1] ^= 1;
	bytes[n - 1] ^= 1;
	fd = file_of(bytes, n, 0);
	open_blocks(fd, 0, 0);
	for (unsigned int again = 0; again < 2; again++) {
		for (unsigned int seq = 0; seq < N - 1; seq++)
			next_is(seq);
		next_is_damaged(N - 1);
		at_end();
		is_damaged(1, HEAD + n - at_of(N - 1), 0, "the head of the file is damaged");
		recording_blocks_rewind(&b);
	}
	close_blocks(fd);
}

/* @seq after @n bytes of something else, read again and again by nobody. */
static void check_search(unsigned int seq, size_t n)
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

/* Wherever a block begins behind bytes that are none, and whatever these look like. */
static void test_search(void **state)
{
	const size_t window = sizeof(b.window);
	const __u32 magic = RECORDING_BLOCK_MAGIC;

	(void)state;
	for (size_t other = window - 50; other < window + 10; other++) {
		size_t n = put_file_head(bytes), k = 1;
		int fd;

		n += put_block(bytes + n, 0);
		for (; k < 4; k++) {
			const size_t length = other + k / 3 * window;

			memset(bytes + n, 0x55, length);
			for (size_t i = 7; k == 2 && i < length; i += 100)
				memcpy(bytes + n + i, &magic, 4);
			n += length;
			n += put_block(bytes + n, k);
		}
		fd = file_of(bytes, n, 9);
		open_blocks(fd, 9, 0);
		next_is(0);
		for (k = 1; k < 4; k++)
			check_search(k, other + k / 3 * window);
		at_end();
		is_damaged(0, 2 * other + other + window, at_of(1),
			   "here should be the head of a block");
		close_blocks(fd);
	}
}

/* A block without data is found even if nothing follows it, and not if a byte of it is missing. */
static void test_last_block(void **state)
{
	struct recording_block h = {
		.magic = RECORDING_BLOCK_MAGIC, .file = FILE_ID, .seq = N, .type = 99
	};
	const size_t n = fill(bytes) + 10;

	(void)state;
	memset(bytes + n - 10, 0, 10);
	seal(bytes + n, &h);
	for (int missing = 0; missing < 2; missing++) {
		int fd = file_of(bytes, n + BLOCK - missing, 0);

		open_blocks(fd, 0, 0);
		for (unsigned int seq = 0; seq < N; seq++)
			next_is(seq);
		if (!missing)
			check_search(N, 10);
		at_end();
		is_damaged(0, missing ? 10 + BLOCK - 1 : 10, at_of(N),
			   "here should be the head of a block");
		close_blocks(fd);
	}
}

/* Holes, which may be larger than anything that can be read, cost next to nothing. */
static void test_holes(void **state)
{
	const __u64 hole = 1ULL << 40;
	const size_t n = fill(bytes), first = at_of(1);
	const int fd = file_of(bytes, first, 5);

	(void)state;
	assert_int_equal(pwrite(fd, bytes + first, n - first, 5 + hole), n - first);
	assert_int_equal(ftruncate(fd, 5 + 2 * hole), 0);
	open_blocks(fd, 5, 0);
	next_is(0);
	check_search(1, hole - first);
	for (unsigned int seq = 2; seq < N; seq++)
		check_search(seq, 0);
	reads = 0;
	at_end();
	assert_true(reads <= 5);
	is_damaged(0, 2 * hole - n, first, "here should be the head of a block");
	close_blocks(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_of_file),  cmocka_unit_test(test_slow_reads),
		cmocka_unit_test(test_failing_reads), cmocka_unit_test(test_file_head),
		cmocka_unit_test(test_search),	      cmocka_unit_test(test_last_block),
		cmocka_unit_test(test_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
