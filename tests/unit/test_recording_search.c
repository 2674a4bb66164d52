// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Damage between the blocks of a recording, and holes: the next intact block is found, and what is not read is counted. */
#include "recording_blocks_made.h"

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

/* A block after the first damage, and the head of the next one where what was read for a search ends. */
static void test_after_search(void **state)
{
	(void)state;
	for (size_t before = 0; before < 2 * BLOCK; before++) {
		size_t n = put_file_head(bytes);
		int fd;

		n += put_block(bytes + n, 0);
		bytes[n++] = 0;
		n += put_block_of(bytes + n, 1, sizeof(b.window) - BLOCK - before);
		for (unsigned int seq = 2; seq < 20; seq++)
			n += put_block(bytes + n, seq);
		fd = file_of(bytes, n, 0);
		open_blocks(fd, 0, 0);
		next_is(0);
		check_search(1, 1);
		for (unsigned int seq = 2; seq < 20; seq++)
			check_search(seq, 0);
		at_end();
		close_blocks(fd);
	}
}

/* Numbers of blocks tell how many are missing; a block that was already read is not taken again. */
static void test_missing(void **state)
{
	size_t n = put_file_head(bytes), gap, again;
	int fd;

	(void)state;
	n += put_block(bytes + n, 0);
	gap = n;
	n += put_block(bytes + n, 3);
	again = n;
	n += put_block(bytes + n, 3);
	n += put_block(bytes + n, 4);
	fd = file_of(bytes, n, 0);
	open_blocks(fd, 0, 0);
	next_is(0);
	check_search(3, 0);
	is_damaged(2, 0, gap, "2 blocks before it are not there");
	check_search(4, again - gap);
	at_end();
	is_damaged(2, again - gap, gap, "2 blocks before it are not there");
	close_blocks(fd);
}

/* A block without data is found even if nothing follows it, and not if a byte of it is missing. */
static void test_last_block(void **state)
{
	struct recording_block h = {
		.magic = RECORDING_BLOCK_MAGIC, .file = FILE_ID, .seq = N, .type = 99
	};
	const size_t n = fill(bytes) + 1;

	(void)state;
	bytes[n - 1] = 0;
	seal(bytes + n, &h);
	for (int missing = 0; missing < 2; missing++) {
		int fd = file_of(bytes, n + BLOCK - missing, 0);

		open_blocks(fd, 0, 0);
		for (unsigned int seq = 0; seq < N; seq++)
			next_is(seq);
		if (!missing)
			check_search(N, 1);
		at_end();
		is_damaged(0, missing ? BLOCK : 1, at_of(N), "here should be the head of a block");
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

/* What is wrong with the first block, which has another one within it, if its head has other members. */
static void check_lie(enum recording_block_type type, __u16 flags, __u32 more, const char *reason)
{
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .file = FILE_ID,
				     .type = type,
				     .flags = flags,
				     .entries = 5 };
	const size_t at = put_file_head(bytes);
	const unsigned char *data;
	__u64 offset;
	int fd;

	h.bytes = put_block(bytes + at + BLOCK, 1);
	h.raw_bytes = h.bytes + more;
	seal(bytes + at, &h);
	fd = file_of(bytes, at + BLOCK + h.bytes + put_block(bytes + at + BLOCK + h.bytes, 1), 0);
	open_blocks(fd, 0, 0);
	assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
	assert_int_equal(recording_blocks_take(&b, &data, &err), 0);
	check_search(1, BLOCK + h.bytes);
	at_end();
	is_damaged(1, BLOCK + h.bytes, at, reason);
	assert_int_equal(b.damage.samples, type == RECORDING_SAMPLES ? 5 : 0);
	close_blocks(fd);
}

static void test_lies(void **state)
{
	(void)state;
	check_lie(RECORDING_SAMPLES, 2, 0,
		  "the block is encoded in a way that this program does not know");
	check_lie(RECORDING_SAMPLES, 0, 1, "the block has two lengths");
	check_lie(RECORDING_SAMPLES, RECORDING_ZSTD, 1, "the block cannot be decompressed");
	check_lie(RECORDING_EVENTS, 0, 1, "the block has two lengths");
}

/* Blocks among bytes of torn ones are found also after much that was intact. */
static void test_torn(void **state)
{
	enum { LARGE = 600000, TORN = 200000, HEADS = 8 };
	struct recording_block h = {
		.magic = RECORDING_BLOCK_MAGIC, .file = FILE_ID, .bytes = TORN, .raw_bytes = TORN
	};
	size_t n = put_file_head(bytes);
	int fd;

	(void)state;
	n += put_block_of(bytes + n, 0, LARGE);
	n += put_block_of(bytes + n, 1, LARGE);
	memset(bytes + n, 0, 2 * TORN);
	for (h.seq = 2; h.seq < 2 + HEADS; h.seq++, n += BLOCK) {
		seal(bytes + n, &h);
		bytes[n + TORN] ^= 1;
	}
	n += put_block(bytes + n, h.seq);
	fd = file_of(bytes, n + TORN, 0);
	open_blocks(fd, 0, 0);
	check_search(0, 0);
	check_search(1, 0);
	for (unsigned int seq = 2; seq < 2 + HEADS; seq++)
		next_is_damaged(seq);
	check_search(2 + HEADS, HEADS * BLOCK);
	close_blocks(fd);
}

/* A block that whoever reads it finds to be wrong. */
static void test_reject(void **state)
{
	const size_t n = fill(bytes);
	const int fd = file_of(bytes, n, 0);

	(void)state;
	open_blocks(fd, 0, 0);
	next_is(0);
	next_is(1);
	recording_blocks_reject(&b, "it is wrong");
	is_damaged(1, at_of(2) - at_of(1), at_of(1), "it is wrong");
	for (unsigned int seq = 2; seq < N; seq++)
		next_is(seq);
	recording_blocks_reject(&b, "it is wrong, too");
	at_end();
	is_damaged(2, at_of(2) - at_of(1) + n - at_of(N - 1), at_of(1), "it is wrong");
	close_blocks(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_head),    cmocka_unit_test(test_search),
		cmocka_unit_test(test_after_search), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_last_block),   cmocka_unit_test(test_holes),
		cmocka_unit_test(test_lies),	     cmocka_unit_test(test_torn),
		cmocka_unit_test(test_reject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
