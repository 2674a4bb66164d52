// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

static char *shown(void (*put)(FILE *, const char *), const char *text)
{
	char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	put(f, text);
	fclose(f);
	return buf;
}

static void put_text(FILE *f, const char *text)
{
	utf8_put(f, text);
}

static void check(void (*put)(FILE *, const char *), const char *text, const char *want)
{
	char *is = shown(put, text);

	assert_string_equal(is, want);
	free(is);
}

static void test_text(void **state)
{
	(void)state;
	check(put_text, "", "");
	check(put_text, "plain a\\b", "plain a\\b");
	check(put_text, "s\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
	      "s\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	check(put_text, "\033[31m\n\x7f", "\\x1b[31m\\x0a\\x7f");
	check(put_text, "\xc2\x9b", "\\xc2\\x9b"); /* CSI of C1 */
	check(put_text,
	      "a\xe2\x80\xae"
	      "b",
	      "a\\xe2\\x80\\xaeb"); /* right to left */
	check(put_text, "\xe2\x81\xa7\xe2\x80\xa8", "\\xe2\\x81\\xa7\\xe2\\x80\\xa8");
}

/* Not UTF-8: cut off, overlong, surrogates, beyond the last, stray. */
static void test_broken(void **state)
{
	static const char *const bad[] = {
		"\xc3",		"\xe2\x82",	    "\xf0\x9f\x98",	"\xc0\xaf", "\xe0\x80\xaf",
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80",	    "\xff"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *is = shown(put_text, bad[i]);

		assert_int_equal(utf8_len(bad[i]), 0);
		for (const char *s = is; *s; s++)
			assert_in_range(*s, ' ', '~');
		assert_int_equal(strlen(is), 4 * strlen(bad[i]));
		free(is);
	}
}

static void test_escape(void **state)
{
	char buf[32], again[32];

	(void)state;
	assert_int_equal(utf8_escape(buf, sizeof(buf), "a\nb\xc2\x9b\u00e9"), 16);
	assert_string_equal(buf, "a\\x0ab\\xc2\\x9b\u00e9");
	assert_int_equal(utf8_escape(again, sizeof(again), buf), 16);
	assert_string_equal(again, buf);
	/* cut after a whole character */
	assert_int_equal(utf8_escape(buf, 5, "ab\n"), 2);
	assert_int_equal(utf8_escape(buf, 7, "ab\n"), 6);
	assert_int_equal(utf8_escape(buf, 3, "a\u00e9"), 1);
	assert_int_equal(utf8_escape(buf, 4, "a\u00e9"), 3);
	assert_int_equal(utf8_escape(buf, 1, "a"), 0);
	assert_string_equal(buf, "");
}

/* What an error and a log line say of a name stays on its line. */
static void test_errors(void **state)
{
	char seen[256] = "";
	struct err e = { "" };
	FILE *f = tmpfile();

	(void)state;
	err_set(&e, -1, "'%s': unknown", "x\nibscope: error: forged\033[2J");
	err_prefix(&e, "%s", "\a");
	assert_string_equal(e.text, "\\x07: 'x\\x0aibscope: error: forged\\x1b[2J': unknown");
	log_copy_to(f);
	log_warn("cgroup %s", "a\nb\xc2\x9b");
	log_copy_to(NULL);
	rewind(f);
	assert_non_null(fgets(seen, sizeof(seen), f));
	assert_string_equal(seen, "warning: cgroup a\\x0ab\\xc2\\x9b\n");
	assert_null(fgets(seen, sizeof(seen), f));
	fclose(f);
}

static void test_csv(void **state)
{
	(void)state;
	check(utf8_put_csv, "", "\"\"");
	check(utf8_put_csv, "a b", "a b");
	check(utf8_put_csv, " a", "\" a\"");
	check(utf8_put_csv, "a,b", "\"a,b\"");
	check(utf8_put_csv, "\"", "\"\"\"\"");
	check(utf8_put_csv, "a\"b\n\xc3\xa9,\"", "\"a\"\"b\\x0a\xc3\xa9,\"\"\"");
	check(utf8_put_csv, "\r\n", "\\x0d\\x0a");
	check(utf8_put_csv, "a;b", "\"a;b\"");
	check(utf8_put_csv, "=1+1", "\"'=1+1\"");
	check(utf8_put_csv, "  =1+1", "\"'  =1+1\"");
	check(utf8_put_csv, "@SUM(A1)", "\"'@SUM(A1)\"");
	check(utf8_put_csv, "+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\"");
	check(utf8_put_csv, "-bash", "\"'-bash\"");
	check(utf8_put_csv, "-", "\"'-\"");
	check(utf8_put_csv, "-5", "-5");
	check(utf8_put_csv, "+1.25", "+1.25");
	check(utf8_put_csv, "-1e5", "\"'-1e5\"");
	check(utf8_put_csv, "\t=1", "\\x09=1");
	check(utf8_put_csv, "\r=1", "\\x0d=1");
	check(utf8_put_csv, "\uff1d1", "\"'\uff1d1\"");
	check(utf8_put_csv, "a=1", "a=1");
}

static void test_json(void **state)
{
	(void)state;
	check(utf8_put_json, "", "\"\"");
	check(utf8_put_json, "a\"b\\c", "\"a\\\"b\\\\c\"");
	check(utf8_put_json, "\n\x7f", "\"\\u000a\\u007f\"");
	check(utf8_put_json, "\xc2\x9b\u202e", "\"\\u009b\\u202e\"");
	check(utf8_put_json, "\U000e0041", "\"\\udb40\\udc41\"");
	check(utf8_put_json, "\xc3\xa9\xff", "\"\xc3\xa9?\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),   cmocka_unit_test(test_broken),
		cmocka_unit_test(test_csv),    cmocka_unit_test(test_escape),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
