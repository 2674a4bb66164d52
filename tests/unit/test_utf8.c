// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

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
	assert_int_equal(utf8_put(f, text), utf8_count(text));
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
	assert_int_equal(utf8_count("s\xc3\xa9\n"), 6);
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
}

static void test_json(void **state)
{
	(void)state;
	check(utf8_put_json, "", "\"\"");
	check(utf8_put_json, "a\"b\\c", "\"a\\\"b\\\\c\"");
	check(utf8_put_json, "\n\x7f", "\"\\u000a\\u007f\"");
	check(utf8_put_json, "\xc3\xa9\xff", "\"\xc3\xa9?\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
