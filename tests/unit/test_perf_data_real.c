// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Recordings of perf, cut off at every byte and with bits that flipped: no crash, no hang, and what
 * went wrong is told. That they are read right is in tests/system/test_perf_data.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>

#include "perf_data_file.h"
#include "trace/trace.h"

#define DATA "tests/data/perf/"

struct outcome {
	unsigned long samples, events;
	bool opened, whole;
};

static struct outcome read_all(const void *p, size_t n)
{
	struct outcome o = { 0 };
	struct trace_event ev;
	struct err e = { 0 };
	struct trace *state;
	int fd = memory_file(p, n), ret;

	assert_true(fd >= 0);
	ret = perf_data_format.open(fd, 0, 0, &state, &e);
	if (ret) {
		assert_true(ret < 0);
		assert_true(*e.text);
		return o;
	}
	o.opened = true;
	while ((ret = perf_data_format.next(state, &ev, &e)) > 0) {
		o.events++;
		o.samples += ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH;
	}
	o.whole = trace_end(state)->whole;
	assert_int_equal(o.whole, !*trace_end(state)->missing);
	if (ret)
		assert_true(*e.text && !o.whole);
	perf_data_format.close(state);
	return o;
}

static unsigned char *must_load(const char *path, size_t *n)
{
	unsigned char *p = load_file(path, n);

	if (!p)
		fail_msg("cannot load %s", path);
	return p;
}

/* A file says how long it is; what came through a pipe ends anywhere between two records. */
static void cut_everywhere(const char *path, bool pipe)
{
	struct outcome all, o, before = { 0 };
	size_t n;
	unsigned char *p = must_load(path, &n);

	all = read_all(p, n);
	assert_true(all.whole);
	assert_true(all.samples >= 10);
	/* heads and the beginning of the records byte for byte; then lengths of every remainder by 8, as records have */
	for (size_t i = 0; i < n; i += i < 1024 || i + 64 > n ? 1 : 9) {
		o = read_all(p, i);
		assert_true(o.samples >= before.samples && o.events >= before.events);
		assert_true(o.samples <= all.samples && o.events <= all.events);
		assert_true(pipe || !o.whole);
		if (o.opened)
			before = o;
	}
	assert_int_equal(before.samples, all.samples);
	free(p);
}

static void test_cut_file(void **unused)
{
	(void)unused;
	cut_everywhere(DATA "6.12-zen4-thread.data.zst", false);
}

static void test_cut_compressed(void **unused)
{
	(void)unused;
	cut_everywhere(DATA "7.2-zen5-pipez.data.zst", true);
}

static uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* One to four bits; every second time in the head, where most of the offsets are. */
static void flip(const char *path, unsigned int times, uint64_t *seed)
{
	size_t n;
	unsigned char *p = must_load(path, &n), *copy = malloc(n);

	assert_non_null(copy);
	while (times--) {
		unsigned int bits = random_next(seed) % 4 + 1;

		memcpy(copy, p, n);
		while (bits--) {
			size_t room = times % 2 && n > 1024 ? 1024 : n;
			uint64_t r = random_next(seed);

			copy[r / 8 % room] ^= 1 << r % 8;
		}
		read_all(copy, n);
	}
	free(copy);
	free(p);
}

static void test_flipped_bits(void **unused)
{
	uint64_t seed = 0x1b5;
	glob_t files;

	(void)unused;
	assert_int_equal(glob(DATA "*.data.zst", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		flip(files.gl_pathv[i], 3000 / files.gl_pathc + 1, &seed);
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_cut_compressed),
		cmocka_unit_test(test_flipped_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
