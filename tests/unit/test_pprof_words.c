// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a profile is put together from: words that are found again, rows that are added up, and a file with gzip. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "profile/gzip_out.h"
#include "profile/pprof_words.h"

static __u64 state = 1;

static unsigned int draw(unsigned int below)
{
	state = u64_hash(state + 0x9e3779b97f4a7c15ull);
	return state % below;
}

/* Few different words, of which the first is their number, as of stacks: the index of equal ones is the same, and has them. */
static void test_words(void **unused)
{
	static __u32 known[5][4 * 4 * 4 *
			      4]; /* by length and words: one more than the index; 0: not yet */
	struct word_table t = {};
	size_t n = 0;

	(void)unused;
	for (unsigned int turn = 0; turn < 20000; turn++) {
		const unsigned int length = 1 + draw(4);
		unsigned int number = 0;
		__u64 words[5] = { length };
		__u32 at, *was;

		for (unsigned int i = 0; i < length; i++) {
			words[1 + i] = draw(4);
			number = number * 4 + (unsigned int)words[1 + i];
			words[1 + i] <<= 40;
		}
		at = draw(2) ? word_table_again(&t, words, length + 1)
			     : word_table_at(&t, words, length + 1);
		was = &known[length][number];
		assert_true(!*was || *was == at + 1);
		n += *was ? 0 : length + 1;
		*was = at + 1;
		assert_true(at + length < t.n);
		assert_memory_equal(&t.words[at], words, 8 * (length + 1));
		assert_int_equal(t.n, n);
	}
	word_table_free(&t);
}

/* Nothing behind the words is read. */
static void test_exact_words(void **unused)
{
	struct word_table t = {};

	(void)unused;
	for (size_t n = 1; n < 5; n++)
		for (int again = 0; again < 2; again++) {
			__u64 *words = calloc(n, sizeof(*words));

			assert_non_null(words);
			words[n - 1] = n;
			assert_int_equal(word_table_again(&t, words, n), n * (n - 1) / 2);
			assert_int_equal(word_table_at(&t, words, n), n * (n - 1) / 2);
			free(words);
		}
	word_table_free(&t);
}

#define KEYS 5

/* Rows of the same labels, stack and service, however many there are. */
static void add_rows(unsigned int rows)
{
	static struct pprof_row want[KEYS][KEYS][KEYS];
	struct pprof_rows r = {};
	size_t different = 0;

	memset(want, 0, sizeof(want));
	for (unsigned int i = 0; i < rows; i++) {
		const struct pprof_row row = { .labels = draw(KEYS),
					       .stack = draw(KEYS),
					       .service = draw(KEYS),
					       .dram = 1,
					       .samples = 2,
					       .latency = i,
					       .remote_latency = i + 1,
					       .cycles = i + 2,
					       .remote_cycles = i + 3,
					       .estimated = i + 4 };
		struct pprof_row *to = &want[row.labels][row.stack][row.service];

		pprof_rows_add(&r, &row);
		different += !to->samples;
		to->samples += 2;
		to->dram++;
		to->latency += i;
		to->remote_latency += i + 1;
		to->cycles += i + 2;
		to->remote_cycles += i + 3;
		to->estimated += i + 4;
	}
	pprof_rows_flush(&r);
	assert_int_equal(r.n, different);
	for (size_t i = 0; i < r.n; i++) {
		const struct pprof_row *got = &r.row[i],
				       *to = &want[got->labels][got->stack][got->service];

		assert_int_equal(got->samples, to->samples);
		assert_int_equal(got->dram, to->dram);
		assert_int_equal(got->latency, to->latency);
		assert_int_equal(got->remote_latency, to->remote_latency);
		assert_int_equal(got->cycles, to->cycles);
		assert_int_equal(got->remote_cycles, to->remote_cycles);
		assert_int_equal(got->estimated, to->estimated);
	}
	pprof_rows_free(&r);
}

static void test_rows(void **unused)
{
	(void)unused;
	add_rows(0);
	add_rows(1);
	add_rows(31);
	add_rows(32);
	add_rows(33);
	add_rows(PPROF_BATCH);
	add_rows(PPROF_BATCH + 1);
	add_rows(50000);
}

/* --- gzip --- */

static void check_file(size_t bytes, size_t at_once)
{
	char path[] = "/tmp/test_pprof-XXXXXX", *text = malloc(bytes + 1),
	     *back = malloc(bytes + 2);
	const int fd = mkstemp(path);
	struct gzip_out *o = gzip_out_new(fd);
	gzFile in;
	int n;

	assert_true(text && back && o);
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)('a' + draw(4));
	for (size_t at = 0; at < bytes; at += at_once)
		gzip_out_put(o, text + at, bytes - at < at_once ? bytes - at : at_once);
	assert_int_equal(gzip_out_close(o), 0);
	assert_true(lseek(fd, 0, SEEK_END) < (off_t)(bytes / 2 + 100)); /* two bits a letter */
	assert_int_equal(close(fd), 0);					/* it stayed open */
	in = gzopen(path, "r");
	n = gzread(in, back, (unsigned int)bytes + 1);
	assert_int_equal(n, bytes);
	assert_memory_equal(text, back, bytes);
	assert_int_equal(gzclose(in), Z_OK); /* the checksum is right */
	unlink(path);
	free(text);
	free(back);
}

static void test_gzip(void **unused)
{
	(void)unused;
	check_file(0, 1);
	check_file(1, 1);
	check_file(100000, 7);
	check_file(3000000, 1000000);
	check_file(1 << 20, 1 << 16);
}

/* What was met in one part is not written again in the next. */
static void test_look_back(void **unused)
{
	char path[] = "/tmp/test_pprof-XXXXXX", text[16384];
	const int fd = mkstemp(path);
	struct gzip_out *o = gzip_out_new(fd);

	(void)unused;
	unlink(path);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)draw(256);
	for (int i = 0; i < 48; i++) /* three parts */
		gzip_out_put(o, text, sizeof(text));
	assert_int_equal(gzip_out_close(o), 0);
	assert_in_range(lseek(fd, 0, SEEK_END), sizeof(text), 2 * sizeof(text));
	close(fd);
}

static void test_full(void **unused)
{
	const int fd = open("/dev/full", O_WRONLY);
	struct gzip_out *o;
	char *text = malloc(3000000);

	(void)unused;
	assert_true(fd >= 0 && text);
	for (size_t i = 0; i < 3000000; i++)
		text[i] = (char)draw(256);
	o = gzip_out_new(fd);
	gzip_out_put(o, text, 3000000);
	assert_int_equal(gzip_out_close(o), -ENOSPC);
	o = gzip_out_new(fd);
	gzip_out_put(o, text, 10);
	assert_int_equal(gzip_out_close(o), -ENOSPC);
	free(text);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	  cmocka_unit_test(test_exact_words),
		cmocka_unit_test(test_rows),	  cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_look_back), cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
