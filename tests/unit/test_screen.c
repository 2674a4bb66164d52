// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is known of a terminal, lines of limited width, shortened chains, commands to repeat, and text in buffers. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/screen.h"
#include "base/text.h"

/* --- what is known of it --- */

static FILE *terminal(unsigned short lines, unsigned short columns, int *other)
{
	const struct winsize ws = { .ws_row = lines, .ws_col = columns };
	FILE *f;
	int fd;

	*other = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(*other >= 0);
	assert_int_equal(grantpt(*other) | unlockpt(*other), 0);
	fd = open(ptsname(*other), O_RDWR | O_NOCTTY);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TIOCSWINSZ, &ws), 0);
	f = fdopen(fd, "w");
	assert_non_null(f);
	return f;
}

static int clear_environment(void **unused)
{
	static const char *const names[] = { "NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG" };

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenv(names[i]);
	setenv("TERM", "xterm", 1);
	return 0;
}

static void test_pipe(void **unused)
{
	FILE *f = tmpfile();
	struct screen s;

	(void)unused;
	screen_of(f, &s);
	assert_int_equal(s.width, 100);
	assert_int_equal(s.height, 0);
	assert_false(s.color);
	assert_true(s.utf8);
	setenv("COLUMNS", "", 1);
	screen_of(f, &s);
	assert_int_equal(s.width, 100);
	setenv("COLUMNS", "80", 1);
	screen_of(f, &s);
	assert_int_equal(s.width, 80);
	setenv("COLUMNS", "59", 1);
	screen_of(f, &s);
	assert_int_equal(s.width, 60);
	setenv("COLUMNS", "301", 1);
	screen_of(f, &s);
	assert_int_equal(s.width, 300);
	fclose(f);
}

static void test_terminal(void **unused)
{
	int other, unsized;
	FILE *f = terminal(50, 120, &other), *none = terminal(0, 0, &unsized);
	struct screen s;

	(void)unused;
	setenv("COLUMNS", "80", 1);
	screen_of(f, &s);
	assert_int_equal(s.width, 120);
	assert_int_equal(s.height, 50);
	assert_true(s.color);
	/* one that does not know its size */
	screen_of(none, &s);
	assert_int_equal(s.width, 80);
	assert_int_equal(s.height, 24);
	setenv("NO_COLOR", "", 1);
	screen_of(f, &s);
	assert_true(s.color);
	setenv("NO_COLOR", "1", 1);
	screen_of(f, &s);
	assert_false(s.color);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	screen_of(f, &s);
	assert_false(s.color);
	unsetenv("TERM");
	screen_of(f, &s);
	assert_false(s.color);
	fclose(f);
	fclose(none);
	close(other);
	close(unsized);
}

/* The first of LC_ALL, LC_CTYPE and LANG that is not empty. */
static void test_locale(void **unused)
{
	FILE *f = tmpfile();
	struct screen s;

	(void)unused;
	setenv("LANG", "C", 1);
	screen_of(f, &s);
	assert_false(s.utf8);
	setenv("LC_CTYPE", "de_DE.utf8", 1);
	screen_of(f, &s);
	assert_true(s.utf8);
	setenv("LC_ALL", "C", 1);
	screen_of(f, &s);
	assert_false(s.utf8);
	setenv("LC_ALL", "", 1);
	screen_of(f, &s);
	assert_true(s.utf8);
	setenv("LC_CTYPE", "C.UTF-8", 1);
	screen_of(f, &s);
	assert_true(s.utf8);
	fclose(f);
}

/* --- numbers --- */

static void test_numbers(void **unused)
{
	const struct screen ascii = { .utf8 = false }, s = { .utf8 = true };
	char b[32], small[6];

	(void)unused;
	screen_mean(&s, 3.14, b, sizeof(b));
	assert_string_equal(b, "3.1");
	screen_mean(&ascii, NAN, b, sizeof(b));
	assert_string_equal(b, "-");
	screen_ratio(&s, 1.25, b, sizeof(b));
	assert_string_equal(b, "1.25");
	screen_ratio(&s, NAN, b, sizeof(b));
	assert_string_equal(b, "–");
	screen_percent(&s, -.1, b, sizeof(b));
	assert_string_equal(b, "0%");
	screen_scaled(&s, 9994.9e3, 'M', b, sizeof(b));
	assert_string_equal(b, "9.99 M");
	screen_scaled(&s, 99.94e3, 'k', b, sizeof(b));
	assert_string_equal(b, "99.9 k");
	screen_scaled(&s, 99.96e3, 'k', b, sizeof(b));
	assert_string_equal(b, "100 k");
	screen_scaled(&s, .005e3, 'k', b, sizeof(b));
	assert_string_equal(b, "0.01 k");
	screen_scaled(&s, -.005e12, 'T', b, sizeof(b));
	assert_string_equal(b, "-0.01 T");
	screen_scaled(&s, -.004e12, 'T', b, sizeof(b));
	assert_string_equal(b, "0");
	screen_scaled(&s, NAN, 'T', b, sizeof(b));
	assert_string_equal(b, "–");
	assert_int_equal(screen_unit(1e6 - 1), 'k');
	assert_int_equal(screen_unit(1e6), 'M');
	assert_int_equal(screen_unit(1e9), 'G');
	assert_int_equal(screen_unit(1e12), 'T');
	/* what does not fit is cut */
	memset(small, 'x', sizeof(small));
	screen_count(&s, 1234567, small, 5);
	assert_true(strlen(small) < 5);
	assert_int_equal(strncmp("1,234,567", small, strlen(small)), 0);
	assert_int_equal(small[5], 'x');
}

/* --- text --- */

static void wraps(const char *text, unsigned int indent, unsigned int width, const char *want)
{
	char *out;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	screen_wrap(f, text, indent, width);
	fclose(f);
	assert_string_equal(out, want);
	free(out);
}

static void test_wrap(void **unused)
{
	(void)unused;
	wraps("", 2, 10, "\n");
	wraps("one two", 0, 7, "one two\n");
	wraps("one two", 0, 6, "one\ntwo\n");
	wraps("one two three", 2, 9, "one two\n  three\n");
	wraps("one two three", 2, 8, "one\n  two\n  three\n");
	wraps("one  two", 0, 4, "one \ntwo\n");
	/* a word that is too long has a line of its own */
	wraps("incomprehensible words", 2, 8, "incomprehensible\n  words\n");
	wraps("a incomprehensible b", 0, 6, "a\nincomprehensible\nb\n");
	wraps("a b", 5, 5, "a\n     b\n");
	wraps("a b", 5, 3, "a\n     b\n");
}

static void shortens(const char *name, unsigned int width, const char *want)
{
	const struct screen s = { .utf8 = true };
	char *out;

	screen_shorten(&s, &name, 1, width, &out);
	assert_string_equal(out, want);
	free(out);
}

static void test_chains(void **unused)
{
	const struct screen ascii = { .utf8 = false };
	const char *const two[] = { "main;apple;work;leaf", "main;grape;work;leaf" };
	const char *one = "main;run;work;leaf";
	char *out[2];

	(void)unused;
	shortens("main;run;work;leaf", 18, "main;run;work;leaf");
	shortens("main;run;work;leaf", 17, "…;run;work;leaf");
	shortens("main;run;work;leaf", 15, "…;run;work;leaf");
	shortens("main;run;work;leaf", 14, "…;work;leaf");
	shortens("main;run;work;leaf", 11, "…;work;leaf");
	shortens("main;run;work;leaf", 10, "…;leaf");
	/* a function that does not fit is cut as other names are */
	shortens("main;abcdefghijklmnop", 9, "main…mnop");
	screen_shorten(&ascii, &one, 1, 14, out);
	assert_string_equal(out[0], "~;work;leaf");
	free(out[0]);
	/* what differs stays */
	screen_shorten(&(struct screen){ .utf8 = true }, two, 2, 16, out);
	assert_string_equal(out[0], "…;apple;…;leaf");
	assert_string_equal(out[1], "…;grape;…;leaf");
	free(out[0]);
	free(out[1]);
}

static void test_inlined(void **unused)
{
	(void)unused;
	shortens("inner (inlined into outer)", 26, "inner (inlined into outer)");
	shortens("inner (inlined into outer)", 25, "inner (in outer)");
	shortens("inner (inlined into outer)", 16, "inner (in outer)");
	shortens("inner (inlined into outer)", 15, "inner (… outer)");
}

static void test_columns(void **unused)
{
	(void)unused;
	assert_int_equal(screen_columns(""), 0);
	assert_int_equal(screen_columns("abc"), 3);
	assert_int_equal(screen_columns("größe"), 5);
	assert_int_equal(screen_columns("漢字"), 4);
	/* a wide character that does not fit is left out */
	shortens("漢字漢字漢字漢字", 9, "漢字…漢字");
	shortens("漢字漢字漢字漢字", 8, "漢字…字");
}

/* --- commands to repeat --- */

static const char *next(unsigned int height, const char *a, const char *b)
{
	static char text[200];
	const struct screen s = { .height = height };
	FILE *f = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	screen_next(f, &s, "report", a, b, NULL);
	fclose(f);
	return text;
}

static void test_next(void **unused)
{
	(void)unused;
	assert_true(screen_is_repeatable("a b"));
	assert_true(screen_is_repeatable("--"));
	assert_true(screen_is_repeatable("größe"));
	assert_false(screen_is_repeatable("-"));
	assert_false(screen_is_repeatable("a\\b"));
	assert_false(screen_is_repeatable("a\nb"));
	assert_string_equal(next(24, "--comm", "a b"), "Next: ibscope report --comm 'a b'\n");
	assert_string_equal(next(24, "", "x"), "Next: ibscope report x\n");
	assert_string_equal(next(24, "x", "-"), "");
	assert_string_equal(next(24, "a\nb", "x"), "");
	assert_string_equal(next(0, "x", "y"), "");
}

static const char *called_as(const char *name)
{
	char *before = program_invocation_name, *before_short = program_invocation_short_name;
	const char *text;

	program_invocation_name = (char *)name;
	program_invocation_short_name = strrchr(name, '/') ? strrchr(name, '/') + 1 : (char *)name;
	text = next(24, "", "");
	program_invocation_name = before;
	program_invocation_short_name = before_short;
	return text;
}

/* As the program was called, if only that finds it. */
static void test_next_name(void **unused)
{
	(void)unused;
	assert_string_equal(called_as("ibscope"), "Next: ibscope report\n");
	assert_string_equal(called_as("build/ibscope"), "Next: build/ibscope report\n");
	assert_string_equal(called_as("my build/ibscope"), "Next: 'my build/ibscope' report\n");
	assert_string_equal(called_as("/usr/bin/ibscope"), "Next: ibscope report\n");
	assert_string_equal(called_as("build/other"), "Next: ibscope report\n");
	assert_string_equal(called_as("bu\nild/ibscope"), "Next: ibscope report\n");
}

/* --- buffers --- */

static void test_buffers(void **unused)
{
	char b[8] = "1234567", c[TEXT_COUNT_SIZE], stamp[TEXT_TIME_STAMP_SIZE];

	(void)unused;
	assert_int_equal(text_at(b, sizeof(b), 0, "%d", 42), 2);
	assert_string_equal(b, "42");
	assert_int_equal(text_at(b, sizeof(b), 2, "abcde"), 7);
	assert_string_equal(b, "42abcde");
	assert_int_equal(text_at(b, sizeof(b), 5, "xyz"), 8);
	assert_string_equal(b, "42abcxy");
	assert_int_equal(text_at(b, sizeof(b), 8, "123"), 11);
	assert_int_equal(text_at(b, sizeof(b), 20, "123"), 23);
	assert_string_equal(b, "42abcxy");
	strcpy(b, "ab");
	text_append(b, sizeof(b), "%s", "cd");
	assert_string_equal(b, "abcd");
	text_append(b, sizeof(b), "%s", "efghij");
	assert_string_equal(b, "abcdefg");
	assert_string_equal(text_count(c, 0), "0");
	assert_string_equal(text_count(c, 999), "999");
	assert_string_equal(text_count(c, 1000), "1,000");
	assert_string_equal(text_count(c, 1234567), "1,234,567");
	assert_string_equal(text_count(c, ~0ull), "18,446,744,073,709,551,615");
	assert_string_equal(text_last_part("a/b/c"), "c");
	assert_string_equal(text_last_part("c"), "c");
	assert_string_equal(text_last_part("c/"), "");
	assert_string_equal(text_time_stamp(stamp, 0), "19700101T000000.000Z");
	assert_string_equal(text_time_stamp(stamp, 1795835520123999999ull), "20261128T031200.123Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pipe, clear_environment),
		cmocka_unit_test_setup(test_terminal, clear_environment),
		cmocka_unit_test_setup(test_locale, clear_environment),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_next_name),
		cmocka_unit_test(test_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
