// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lists of generated code: what is in them, and what is no such list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "naming/code_map.h"

static char why[128];

static struct code_map *read_of(const char *text, size_t n)
{
	const int fd = memfd_create("map", MFD_CLOEXEC);
	struct code_map *m;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n); /* and the position is at the end */
	m = code_map_read(fd, why, sizeof(why));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), n);
	close(fd);
	return m;
}

static struct code_map *map_of(const char *text)
{
	struct code_map *m = read_of(text, strlen(text));

	assert_non_null(m);
	assert_string_equal(why, "");
	return m;
}

static void has(const struct code_map *m, __u64 addr, const char *name)
{
	assert_string_equal(code_map_find(m, addr) ?: "(none)", name ?: "(none)");
}

static void test_lines(void **state)
{
	struct code_map *m = map_of("1000 10 one\n0x1010 0x20 two words\n"
				    "ffffffff8100aBcD 1 high\n7f00 fF far\n");

	(void)state;
	has(m, 0, NULL);
	has(m, 0xfff, NULL);
	has(m, 0x1000, "one");
	has(m, 0x100f, "one");
	has(m, 0x1010, "two words");
	has(m, 0x102f, "two words");
	has(m, 0x1030, NULL);
	has(m, 0x7f00, "far");
	has(m, 0x7ffe, "far");
	has(m, 0x7fff, NULL);
	has(m, 0xffffffff8100abcd, "high");
	has(m, 0xffffffff8100abce, NULL);
	has(m, ~0ull, NULL);
	code_map_free(m);
}

/* Code over other code has the later name. */
static void test_over(void **state)
{
	struct code_map *m = map_of("1000 100 old\n1040 10 new\n"
				    "2040 10 inner\n2000 100 outer\n"
				    "3000 10 first\n3000 20 second\n"
				    "4000 20 long\n4000 10 short\n"
				    "5000 20 left\n5010 20 right\n5018 4 middle\n");

	(void)state;
	has(m, 0x103f, "old");
	has(m, 0x1040, "new");
	has(m, 0x104f, "new");
	has(m, 0x1050, "old");
	has(m, 0x10ff, "old");
	has(m, 0x1100, NULL);
	has(m, 0x2000, "outer");
	has(m, 0x2040, "outer");
	has(m, 0x20ff, "outer");
	has(m, 0x3000, "second");
	has(m, 0x301f, "second");
	has(m, 0x400f, "short");
	has(m, 0x4010, "long");
	has(m, 0x4020, NULL);
	has(m, 0x500f, "left");
	has(m, 0x5010, "right");
	has(m, 0x5018, "middle");
	has(m, 0x501b, "middle");
	has(m, 0x501c, "right");
	has(m, 0x502f, "right");
	has(m, 0x5030, NULL);
	code_map_free(m);
}

/* Lines that are not like that are skipped, and so is a last one that is not complete. */
static void test_skipped(void **state)
{
	struct code_map *m = map_of("comment\n\n1000\n1100 10\n1200 10 \n1300 0 nothing\n"
				    "1400  10 blanks\n 1500 10 blank\n0x 10 prefix\n"
				    "12345678901234567 10 digits\n1600 g number\n"
				    "ffffffffffffffff 2 beyond\n1700\t10 tab\n"
				    "9000 10 good\n9100 10 last");

	(void)state;
	has(m, 0, NULL);
	for (__u64 at = 0x1000; at < 0x1800; at += 4)
		has(m, at, NULL);
	has(m, 0x2345678901234567, NULL);
	has(m, 0xffffffffffffffff, NULL);
	has(m, 0x9000, "good");
	has(m, 0x9100, NULL);
	code_map_free(m);
}

static void refused(const char *text, size_t n, const char *reason)
{
	assert_null(read_of(text, n));
	assert_string_equal(why, reason);
}

static void test_refused(void **state)
{
	const size_t lines = CODE_MAP_ENTRIES + 1, most = CODE_MAP_BYTES + 1;
	char *text = malloc(most);
	struct code_map *m = map_of("");

	(void)state;
	has(m, 0, NULL);
	code_map_free(m);
	code_map_free(NULL);
	refused("text\n", 5, "no line is like 'START SIZE NAME', in hexadecimal");
	refused("1 1 a", 5, "no line is like 'START SIZE NAME', in hexadecimal");
	assert_non_null(text);
	memset(text, 'x', most);
	refused(text, most, "larger than 64 MiB");
	refused(text, most - 1, "no line is like 'START SIZE NAME', in hexadecimal");
	for (size_t i = 0; i < lines; i++)
		memcpy(text + 6 * i, "1 1 a\n", 6);
	refused(text, 6 * lines, "it has more than 1000000 lines");
	free(text);
	assert_null(code_map_read(-1, why, sizeof(why)));
	assert_string_equal(why, "Bad file descriptor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
