// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks that another thread decodes: only those that are intact and expected are taken from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zstd.h>

#include "base/parallel.h"
#include "memory_in_use.h"
#include "recording/recording_ahead.h"

#define N  RECORDING_WRITTEN
#define AT 1000 /* where the block's data begins in the file */

static struct recording_columns written;
static unsigned char plain[RECORDING_BLOCK_MAX], packed[RECORDING_BLOCK_MAX];
static struct recording_columns *columns; /* of the reader */

static void seal(struct recording_block *h, const unsigned char *data)
{
	h->data_crc = recording_crc(data, h->bytes);
}

/* A file with one block of samples. */
static int make(bool compress, struct recording_block *h)
{
	const unsigned char *data = compress ? packed : plain;
	int fd = memfd_create("ahead", 0);

	written.n = N;
	written.present = 1U << RECORDING_COLUMN_TIME | 1U << RECORDING_COLUMN_REG4;
	for (unsigned int i = 0; i < N; i++) {
		written.v[RECORDING_COLUMN_TIME][i] = 1000 + 7 * i;
		written.v[RECORDING_COLUMN_REG4][i] = i % 5 * 0x123456789;
	}
	*h = (struct recording_block){ .type = RECORDING_SAMPLES, .entries = N };
	h->bytes = h->raw_bytes = recording_columns_encode(&written, plain);
	if (compress) {
		h->flags = RECORDING_ZSTD;
		h->bytes = ZSTD_compress(packed, sizeof(packed), plain, h->raw_bytes, 1);
		assert_false(ZSTD_isError(h->bytes));
	}
	seal(h, data);
	assert_int_equal(pwrite(fd, data, h->bytes, AT), h->bytes);
	return fd;
}

static bool take(struct recording_ahead *a, const struct recording_block *h)
{
	recording_ahead_begin(a, AT, h);
	return recording_ahead_take(a, AT, h, &columns);
}

static void check_columns(void)
{
	assert_int_equal(columns->n, N);
	assert_int_equal(columns->present, written.present);
	assert_memory_equal(columns->v[RECORDING_COLUMN_TIME], written.v[RECORDING_COLUMN_TIME],
			    N * sizeof(__u64));
	assert_memory_equal(columns->v[RECORDING_COLUMN_REG4], written.v[RECORDING_COLUMN_REG4],
			    N * sizeof(__u64));
}

/* Once, and only the block that was begun last. */
static void test_take(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct recording_block h, other;
		int fd = make(compress, &h);
		struct recording_ahead *a = recording_ahead_new(fd);

		assert_false(recording_ahead_take(a, 0, &(struct recording_block){}, &columns));
		for (int again = 0; again < 3; again++) {
			memset(columns, 0, sizeof(*columns));
			assert_true(take(a, &h));
			check_columns();
			assert_false(recording_ahead_take(a, AT, &h, &columns));
			check_columns();
		}
		recording_ahead_begin(a, AT, &h);
		assert_false(recording_ahead_take(a, AT + 1, &h, &columns));
		recording_ahead_begin(a, AT, &h);
		other = h;
		other.seq++;
		assert_false(recording_ahead_take(a, AT, &other, &columns));
		recording_ahead_begin(a, AT + 1, &h);
		recording_ahead_begin(a, AT, &h);
		assert_true(recording_ahead_take(a, AT, &h, &columns));
		recording_ahead_free(a);
		close(fd);
	}
}

/* The reader finds out by itself what is wrong. */
static void test_damage(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct recording_block h, bad;
		int fd = make(compress, &h);
		struct recording_ahead *a = recording_ahead_new(fd);
		struct recording_columns *before = columns;

		bad = h, bad.data_crc++;
		assert_false(take(a, &bad));
		bad = h, bad.flags |= 0x80;
		assert_false(take(a, &bad));
		bad = h, bad.raw_bytes += 8;
		assert_false(take(a, &bad));
		bad = h, bad.entries--;
		assert_false(take(a, &bad));
		bad = h, bad.bytes--;
		seal(&bad, compress ? packed : plain);
		assert_false(take(a, &bad));
		assert_int_equal(ftruncate(fd, AT + h.bytes - 1), 0);
		assert_false(take(a, &h));
		assert_ptr_equal(columns, before);
		assert_int_equal(pwrite(fd, compress ? packed : plain, h.bytes, AT), h.bytes);
		assert_true(take(a, &h));
		check_columns();
		recording_ahead_free(a);
		close(fd);
	}
}

static void test_one_cpu(void **state)
{
	(void)state;
	parallel_threads = 1;
	assert_null(recording_ahead_new(0));
	recording_ahead_free(NULL);
	parallel_threads = 2;
}

static void test_memory(void **state)
{
	struct recording_block h;
	int fd = make(true, &h);
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 301; i++) {
		struct recording_ahead *a = recording_ahead_new(fd);

		assert_true(take(a, &h));
		recording_ahead_free(a);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	parallel_threads = 2; /* also on a machine with one CPU */
	columns = calloc(1, sizeof(*columns));
	return !columns;
}

static int teardown(void **state)
{
	(void)state;
	free(columns);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
