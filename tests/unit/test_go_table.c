// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of functions of Go, in the three versions that there are, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "naming/go_table.h"

#define CODE 0x401000ull

enum {
	FUNCTIONS = 3,
	HEADER = 72,
	NAMES = HEADER,
	ARRAY = 120,
	SAID = 44,
	VALUES = 340,
	SIZE = 360
};

static const char names[] = "\0main.main\0main.(*T).push\0main.sum[...]";
static const int starts[FUNCTIONS + 1] = { 0, 0x10, 0x40, 0x100 };
static const int name_at[FUNCTIONS] = { 1, 11, 26 };
/* a depth of 0 for 4 bytes, 0x88 for 0x20, 0 for 12; and 8 for 0xc0 */
static const unsigned char depths[] = { 0, 2, 4, 0x90, 2, 0x20, 0x8f, 2, 12, 0, 18, 0xc0, 1, 0 };
static const int depths_at[FUNCTIONS] = { 0, 1, 10 };

static void put(unsigned char *to, unsigned long long v, size_t bytes)
{
	memcpy(to, &v, bytes);
}

/* What the linker of Go writes. @relative: from 1.18 on */
static void make_table(unsigned char *t, unsigned int magic, bool relative)
{
	const size_t bytes = relative ? 4 : 8, more = (2 * FUNCTIONS + 1) * bytes;
	int word = 1;

	memset(t, 0, SIZE);
	put(t, magic, 4);
	t[6] = 1;
	t[7] = 8;
	put(t + 8, FUNCTIONS, 8);
	put(t + 8 + 8 * word++, 1, 8); /* files */
	if (relative)
		put(t + 8 + 8 * word++, CODE, 8);
	put(t + 8 + 8 * word, NAMES, 8);
	put(t + 8 + 8 * (word + 3), VALUES, 8);
	put(t + 8 + 8 * (word + 4), ARRAY, 8);
	memcpy(t + NAMES, names, sizeof(names));
	memcpy(t + VALUES, depths, sizeof(depths));
	for (int i = 0; i <= FUNCTIONS; i++) {
		unsigned long long start = starts[i] + (relative ? 0 : CODE);
		size_t at = more + (bytes + SAID) * i;

		put(t + ARRAY + 2 * bytes * i, start, bytes);
		if (i == FUNCTIONS)
			break;
		put(t + ARRAY + 2 * bytes * i + bytes, at, bytes);
		put(t + ARRAY + at, start, bytes);
		put(t + ARRAY + at + bytes, name_at[i], 4);
		put(t + ARRAY + at + bytes + 12, depths_at[i], 4);
		/* of main.sum; that of the version before has the first line of the function there */
		t[ARRAY + at + bytes + (magic == 0xfffffff1 ? 37 : 33)] = i == 2 ? 1 : 2;
	}
}

static const struct {
	unsigned int magic;
	bool relative;
} versions[] = { { 0xfffffffa, false }, { 0xfffffff0, true }, { 0xfffffff1, true } };

static void test_versions(void **state)
{
	unsigned char t[SIZE];
	struct go_function f;
	struct go_table go;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		make_table(t, versions[v].magic, versions[v].relative);
		assert_true(go_table_open(t, SIZE, &go));
		assert_int_equal(go.n, FUNCTIONS);
		assert_int_equal(go.has_text, versions[v].relative);
		assert_int_equal(go.text, versions[v].relative ? CODE : 0);
		for (int i = 0; i < FUNCTIONS; i++) {
			assert_true(go_table_function(&go, i, &f));
			assert_int_equal(f.start, CODE + starts[i]);
			assert_int_equal(f.size, starts[i + 1] - starts[i]);
			assert_string_equal(f.name, names + name_at[i]);
		}
		assert_false(go_table_function(&go, FUNCTIONS, &f));
	}
	put(t, 0xfffffffb, 4); /* Go 1.2 */
	assert_false(go_table_open(t, SIZE, &go));
}

static void test_frames(void **state)
{
	static const struct {
		__u64 at;
		int depth; /* -1: not known */
	} want[] = {
		{ 0, -1 },	{ 0xf, -1 },	{ 0x10, 0 },   { 0x13, 0 },
		{ 0x14, 0x88 }, { 0x33, 0x88 }, { 0x34, 0 },   { 0x3f, 0 },
		{ 0x40, 8 },	{ 0xff, 8 },	{ 0x100, -1 }, { ~0ull - CODE, -1 },
	};
	unsigned char t[SIZE];
	struct go_frame f;
	struct go_table go;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		make_table(t, versions[v].magic, versions[v].relative);
		assert_true(go_table_open(t, SIZE, &go));
		for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
			assert_int_equal(go_table_frame(&go, CODE + want[i].at, &f),
					 want[i].depth >= 0);
			if (want[i].depth < 0)
				continue;
			assert_int_equal(f.depth, want[i].depth);
			assert_int_equal(f.outermost, want[i].at >= 0x40);
			assert_int_equal(f.switches, want[i].at < 0x40);
		}
		assert_false(go_table_frame(&go, CODE - 1, &f));
		assert_false(go_table_frame(&go, 0, &f));
	}
	/* a list that does not end with the function */
	t[VALUES + 8] = 11;
	assert_true(go_table_frame(&go, CODE + 0x3e, &f));
	assert_false(go_table_frame(&go, CODE + 0x3f, &f));
	/* more than four gigabytes, and no end at all */
	memset(t + VALUES, 0xff, SIZE - VALUES);
	assert_false(go_table_frame(&go, CODE + 0x20, &f));
	/* no bytes of code: never done */
	for (int i = 0; i < SIZE - VALUES; i++)
		t[VALUES + i] = i % 2 * 2;
	assert_false(go_table_frame(&go, CODE + 0x20, &f));
}

/* Return: functions that have a name. All of what is read is in the bytes, as the sanitizer sees. */
static int read_all(const unsigned char *bytes, size_t n)
{
	unsigned char *t = malloc(n ? n : 1);
	struct go_function f;
	struct go_frame frame;
	struct go_table go;
	int named = 0;

	assert_non_null(t);
	memcpy(t, bytes, n);
	if (go_table_open(t, n, &go)) {
		assert_true(go.n < n);
		for (__u64 i = 0; i <= go.n; i++) {
			if (!go_table_function(&go, i, &f))
				continue;
			named++;
			for (__u64 k = 0; k < 3; k++)
				if (go_table_frame(&go, f.start + k * f.size / 2, &frame))
					assert_true(frame.depth <= INT32_MAX);
			assert_true(f.size && *f.name && strlen(f.name) < n);
		}
		assert_false(go_table_function(&go, ~0ull, &f));
	}
	free(t);
	return named;
}

static void test_cut(void **state)
{
	unsigned char t[SIZE];

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		make_table(t, versions[v].magic, versions[v].relative);
		assert_int_equal(read_all(t, SIZE), FUNCTIONS);
		for (size_t n = 0; n < SIZE; n++)
			read_all(t, n);
		assert_int_equal(read_all(t, ARRAY), 0);
	}
}

static void test_damaged(void **state)
{
	static const unsigned long long odd[] = {
		0,	    1,		0x7f,	    SIZE - 1, SIZE,
		0x7fffffff, 0xffffffff, 1ull << 63, ~0ull,    ~0ull - ARRAY,
	};
	unsigned char t[SIZE];
	unsigned int seed = 1;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		for (size_t at = 8; at + 8 <= SIZE; at += 4)
			for (size_t k = 0; k < 2 * ARRAY_SIZE(odd); k++) {
				make_table(t, versions[v].magic, versions[v].relative);
				put(t + at, odd[k / 2], k % 2 ? 4 : 8);
				read_all(t, SIZE);
			}
		for (int i = 0; i < 20000; i++) {
			make_table(t, versions[v].magic, versions[v].relative);
			for (int k = 1 + rand_r(&seed) % 4; k; k--)
				t[8 + rand_r(&seed) % (SIZE - 8)] = rand_r(&seed);
			read_all(t, SIZE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
