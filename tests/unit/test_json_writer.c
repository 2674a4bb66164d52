// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_writer.h"

/* Compare what @write writes, which a reader must accept. */
static void check(void (*write)(struct json_writer *), struct json_writer w, const char *want)
{
	char *text;
	size_t size;
	json_t *j;

	w.f = open_memstream(&text, &size);
	write(&w);
	fclose(w.f);
	assert_string_equal(text, want);
	j = json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
	assert_non_null(j);
	json_decref(j);
	free(text);
}

static void write_nested(struct json_writer *w)
{
	json_begin_object(w, NULL);
	json_put_u64(w, "a", 1);
	json_begin_array(w, "empty");
	json_end(w);
	json_begin_object(w, "none");
	json_end(w);
	json_begin_array(w, "rows");
	json_line_break(w);
	json_put_raw(w, NULL, "-7");
	for (int i = 0; i < 2; i++) {
		json_begin_array(w, NULL);
		json_put_u64(w, NULL, i);
		json_put_null(w, NULL);
		json_end(w);
	}
	json_begin_object(w, NULL);
	json_put_bool(w, "yes", true);
	json_put_bool(w, "no", false);
	json_finish(w);
}

static void test_nested(void **state)
{
	const struct json_writer flat = {}, wide = { .indent = 2 };

	(void)state;
	check(write_nested, flat,
	      "{\"a\":1,\"empty\":[],\"none\":{},\"rows\":[\n-7,[0,null],[1,null],"
	      "{\"yes\":true,\"no\":false}]}\n");
	check(write_nested, wide,
	      "{\n  \"a\": 1,\n  \"empty\": [],\n  \"none\": {},\n  \"rows\": [\n-7,\n"
	      "    [\n      0,\n      null\n    ],\n    [\n      1,\n      null\n    ],\n"
	      "    {\n      \"yes\": true,\n      \"no\": false\n    }\n  ]\n}\n");
}

static void write_numbers(struct json_writer *w)
{
	json_begin_object(w, NULL);
	json_put_u64(w, "most", UINT64_MAX);
	json_put_u64(w, "zero", 0);
	json_put_i64(w, "least", INT64_MIN);
	json_put_i64(w, "cpu", -1);
	json_put_i64(w, "one", 1);
	json_put_hex(w, "hex", 0xffffffff81000000);
	json_put_hex(w, "hex0", 0);
	json_put_known(w, "known", true, 7);
	json_put_known(w, "unknown", false, 7);
	json_put_double(w, "third", 1 / 3.0);
	json_put_double(w, "two", 2);
	json_put_double(w, "less", -1);
	json_put_double(w, "big", 1e20);
	json_put_double(w, "nan", NAN);
	json_put_double(w, "inf", -INFINITY);
	json_put_number(w, "whole", 2);
	json_put_number(w, "half", 0.5);
	json_put_number(w, "below", -2);
	json_put_number(w, "huge", 9e15);
	json_put_number(w, "nothing", NAN);
	json_finish(w);
}

static void test_numbers(void **state)
{
	const struct json_writer exact = {}, few = { .precision = 3 };

	(void)state;
	check(write_numbers, exact,
	      "{\"most\":18446744073709551615,\"zero\":0,\"least\":-9223372036854775808,\"cpu\":-1,"
	      "\"one\":1,\"hex\":\"0xffffffff81000000\","
	      "\"hex0\":\"0x0\",\"known\":7,\"unknown\":null,\"third\":0.33333333333333331,"
	      "\"two\":2.0,\"less\":-1.0,\"big\":1e+20,\"nan\":null,\"inf\":null,\"whole\":2,"
	      "\"half\":0.5,\"below\":-2.0,\"huge\":9000000000000000.0,\"nothing\":null}\n");
	check(write_numbers, few,
	      "{\"most\":18446744073709551615,\"zero\":0,\"least\":-9223372036854775808,\"cpu\":-1,"
	      "\"one\":1,\"hex\":\"0xffffffff81000000\","
	      "\"hex0\":\"0x0\",\"known\":7,\"unknown\":null,\"third\":0.333,\"two\":2.0,"
	      "\"less\":-1.0,\"big\":1e+20,\"nan\":null,\"inf\":null,\"whole\":2,\"half\":0.5,"
	      "\"below\":-2.0,\"huge\":9e+15,\"nothing\":null}\n");
}

static void write_texts(struct json_writer *w)
{
	json_begin_array(w, NULL);
	json_put_text(w, NULL, "a\"b\\c/\n\x7f");
	json_put_text(w, NULL, "\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xae");
	json_put_text(w, NULL, "\xff\xc3");
	json_put_text(w, NULL, "");
	json_put_text(w, NULL, NULL);
	json_put_text_if_any(w, NULL, "");
	json_put_text_if_any(w, NULL, NULL);
	json_put_text_if_any(w, NULL, "x");
	json_end(w);
}

static void test_texts(void **state)
{
	(void)state;
	check(write_texts, (struct json_writer){},
	      "[\"a\\\"b\\\\c/\\u000a\\u007f\",\"\xc3\xa9 \xf0\x9f\x98\x80 \\u202e\",\"?\?\",\"\","
	      "null,null,null,\"x\"]");
}

/* A writer may write one document after another: lines of a stream. */
static void test_lines(void **state)
{
	char *text;
	size_t size;
	struct json_writer w = { .f = open_memstream(&text, &size) };

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_begin_object(&w, NULL);
		json_put_u64(&w, "line", i);
		json_finish(&w);
	}
	fclose(w.f);
	assert_string_equal(text, "{\"line\":0}\n{\"line\":1}\n");
	free(text);
}

static void test_error_of_stream(void **state)
{
	struct json_writer w = { .f = fopen("/dev/full", "w") };

	(void)state;
	assert_non_null(w.f);
	setvbuf(w.f, NULL, _IONBF, 0);
	json_begin_array(&w, NULL);
	json_finish(&w);
	assert_true(ferror(w.f));
	fclose(w.f);
}

static void nest(struct json_writer *w, int begins, int ends)
{
	for (int i = 0; i < begins; i++)
		json_begin_array(w, NULL);
	for (int i = 0; i < ends; i++)
		json_end(w);
}

static bool aborts(int begins, int ends)
{
	struct json_writer w = { .f = fopen("/dev/null", "w") };
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		nest(&w, begins, ends);
		_exit(0);
	}
	fclose(w.f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_depth(void **state)
{
	(void)state;
	assert_false(aborts(JSON_DEPTH_MAX, JSON_DEPTH_MAX));
	assert_true(aborts(JSON_DEPTH_MAX + 1, 0));
	assert_true(aborts(1, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_texts),		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_error_of_stream), cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
