// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks of a recording, read from a part of a file, from a file that shrinks, and with reads that fail or come short. */
#include "memory_in_use.h"
#include "recording_blocks_made.h"

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
	/* cut in a block, of which the rest is still there; or right before its data */
	for (int data = 0; data < 2; data++) {
		const size_t end = data ? at_of(N - 1) + BLOCK : n - 1;

		open_blocks(fd, 1000, end);
		for (unsigned int seq = 0; seq < N - 1; seq++)
			next_is(seq);
		next_is_damaged(N - 1);
		at_end();
		is_damaged(1, end - at_of(N - 1), at_of(N - 1), "the file ends inside the block");
		recording_blocks_close(&b);
	}
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
	recording_blocks_close(&b);
	/* there is nothing to search in */
	open_blocks(fd, 5, 0);
	next_is(0);
	assert_int_equal(ftruncate(fd, 5 + at_of(1)), 0);
	reads = 0;
	at_end();
	assert_true(reads <= 3);
	is_damaged(0, n - 10 - at_of(1), at_of(1), "the file ends inside the head of a block");
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

/* If the disk fails, the file is not damaged: the message says where reading failed. */
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

/* The head of the next block is known only if it is intact. */
static void test_next(void **state)
{
	const size_t n = fill(bytes);
	struct recording_block h;
	__u64 offset;
	int fd;

	(void)state;
	bytes[at_of(3)] ^= 1;
	fd = file_of(bytes, n, 0);
	open_blocks(fd, 0, 0);
	for (unsigned int seq = 0; seq < 3; seq++) {
		assert_true(recording_blocks_next(&b, &h, &offset));
		assert_int_equal(h.seq, seq);
		assert_int_equal(offset, at_of(seq));
		next_is(seq);
	}
	assert_false(recording_blocks_next(&b, &h, &offset));
	check_search(4, at_of(4) - at_of(3));
	h.seq = 5; /* what was there before says nothing */
	h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
	assert_false(recording_blocks_next(&b, &h, &offset));
	close_blocks(fd);
}

/* Blocks with as much as this, when they are read, are read until they expand to too much. */
static void check_expansion(enum recording_block_type type, __u32 entries, size_t length,
			    size_t raw, size_t expands)
{
	static unsigned char zeros[RECORDING_BLOCK_MAX], packed[2000];
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .file = FILE_ID,
				     .type = type,
				     .entries = entries,
				     .bytes = length,
				     .raw_bytes = raw };
	size_t n = put_file_head(bytes), k = 0;
	__u64 offset, all, most;
	int fd, ret;

	memset(packed, 0, sizeof(packed));
	if (!length) {
		h.flags = RECORDING_ZSTD;
		h.bytes = ZSTD_compress(packed, sizeof(packed), zeros, raw, 1);
	}
	for (; h.seq < 200; h.seq++, n += BLOCK + h.bytes) {
		memcpy(bytes + n + BLOCK, packed, h.bytes);
		seal(bytes + n, &h);
	}
	fd = file_of(bytes, n, 0);
	open_blocks(fd, 0, 0);
	do {
		const unsigned char *data;

		assert_int_equal(recording_blocks_peek(&b, &h, &offset, &err), 1);
		ret = k % 2 ? recording_blocks_take(&b, &data, &err) - 1
			    : recording_blocks_pass(&b, &err);
		all = ++k * expands;
		most = k * (BLOCK + h.bytes);
		assert_int_equal(ret<0, all> TRACE_EXPANSION_FREE &&
				 (all - TRACE_EXPANSION_FREE) / TRACE_EXPANSION > most);
	} while (!ret);
	assert_non_null(strstr(err.text, "expands to more than"));
	close_blocks(fd);
}

static void test_expansion(void **state)
{
	const size_t record = sizeof(struct ibs_record), mib = RECORDING_BLOCK_MAX;

	(void)state;
	check_expansion(RECORDING_SAMPLES, 5000, 1000, 1000, 1000 + 5000 * record);
	check_expansion(RECORDING_SAMPLES, RECORDING_BATCH, 1000, 1000,
			1000 + RECORDING_BATCH * record);
	check_expansion(RECORDING_FETCHES, 1U << 31, 1000, 1000, 1000 + RECORDING_BATCH * record);
	check_expansion(RECORDING_EVENTS, 1000000, 0, mib, mib);
	check_expansion(RECORDING_STACKS, 1000000, 0, mib, mib);
	check_expansion(RECORDING_COPIES, 1000000, 0, mib, mib);
	check_expansion(RECORDING_META, 1000000, 0, 100000, 900000);
	check_expansion(99, 1000000, 0, 100000, 900000);
}

/* What is said of the end of a file, and what is counted. */
static void test_describe_end(void **state)
{
	struct recording_blocks of = { .size = 1000 };
	struct trace_end e = { .missing = "before" };

	(void)state;
	recording_blocks_describe_end(&of, true, false, &e);
	assert_true(e.whole);
	assert_string_equal(e.missing, "");
	recording_blocks_describe_end(&of, false, true, &e);
	assert_false(e.whole);
	assert_string_equal(e.missing,
			    "the file ends at offset 1000 without the mark of an orderly end: the "
			    "writer was stopped, or the file was cut");
	of.damage = (struct recording_damage){ 3, 40, 0, 500, "some reason" };
	recording_blocks_describe_end(&of, true, false, &e);
	assert_false(e.whole);
	assert_int_equal(e.skipped_blocks, 3);
	assert_int_equal(e.skipped_bytes, 40);
	assert_string_equal(e.missing, "40 bytes unreadable, from offset 500 on: some reason");
	of.damage.samples = 1;
	recording_blocks_describe_end(&of, true, true, &e);
	assert_string_equal(e.missing,
			    "the writer could not write everything; 40 bytes unreadable (with "
			    "samples), from offset 500 on: some reason");
	of.damage = (struct recording_damage){ .blocks = 1 };
	strcpy(e.missing, "before");
	recording_blocks_describe_end(&of, true, false, &e);
	assert_string_equal(e.missing, "");
}

static void test_memory(void **state)
{
	const int fd = file_of(bytes, fill(bytes), 0);
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 301; i++) {
		open_blocks(fd, 0, 0);
		next_is(0);
		recording_blocks_close(&b);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_of_file),  cmocka_unit_test(test_slow_reads),
		cmocka_unit_test(test_failing_reads), cmocka_unit_test(test_next),
		cmocka_unit_test(test_expansion),     cmocka_unit_test(test_describe_end),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
