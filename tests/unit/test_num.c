// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers and CPU lists, mostly wrong ones. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpulist.h"
#include "base/err.h"
#include "base/num.h"

static const struct num_arg any = { .name = "-c", .unit = "ops", .max = UINT64_MAX };

static void test_good_numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = {
		{ "0", 0 },
		{ "007", 7 }, /* not octal */
		{ "1000000", 1000000 },
		{ "0x90", 0x90 },
		{ "0XfF", 255 },
		{ "100k", 100000 },
		{ "2M", 2000000 },
		{ "3G", 3000000000 },
		{ "18446744073709551615", UINT64_MAX },
		{ "0xffffffffffffffff", UINT64_MAX },
		{ "0x0000000000000000000001", 1 },
	};
	struct err e;
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = 42;
		assert_int_equal(num_parse(&any, rows[i].text, &v, &e), 0);
		assert_true(v == rows[i].value);
	}
}

static void test_bad_numbers(void **state)
{
	static const char *const rows[] = {
		"",	 " ",	" 1",  "1 ",  "-1",  "+1",  "1.5",  "1e6",
		"0x",	 "0xg", "x10", "K",   "1KK", "1KB", "1T",   "0x1K",
		"1,000", "\n",	"1\n", "ten", "0b1", "--",  "\xff", "18446744073709551616K1",
	};
	uint64_t v = 42;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e.text[0] = 0;
		assert_int_equal(num_parse(&any, rows[i], &v, &e), -EINVAL);
		assert_true(v == 42);
		assert_non_null(strstr(e.text, "-c: "));
		assert_non_null(strstr(e.text, "ops"));
	}
}

static void test_range(void **state)
{
	static const struct num_arg arg = {
		.name = "ldlat", .unit = "cycles", .min = 128, .max = 2048
	};
	static const char *const out[] = {
		"127",
		"2049",
		"0",
		"18446744073709551616",
		"0x10000000000000000",
		"99999999999G",
		"99999999999999999999999999999999999999999999999999999999999999999999",
	};
	uint64_t v = 42;
	struct err e;
	size_t i;

	(void)state;
	assert_int_equal(num_parse(&arg, "128", &v, &e), 0);
	assert_int_equal(num_parse(&arg, "2048", &v, &e), 0);
	for (i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		assert_int_equal(num_parse(&arg, out[i], &v, &e), -ERANGE);
		assert_true(v == 2048);
		assert_non_null(strstr(e.text, "128 to 2048 cycles"));
	}
	assert_int_equal(num_parse(&arg, "1", &v, NULL), -ERANGE);
}

static void test_mode(void **state)
{
	static const char *const bad[] = {
		"",   "8",     "+644", " 644",	    "644 ",
		"-1", "01000", "0x1",  "rw-r--r--", "7777777777777777777777777"
	};
	struct err e;
	mode_t m = 1;

	(void)state;
	assert_int_equal(num_parse_mode("-m", "0640", &m, NULL), 0);
	assert_int_equal(m, 0640);
	assert_int_equal(num_parse_mode("-m", "777", &m, NULL), 0);
	assert_int_equal(m, 0777);
	assert_int_equal(num_parse_mode("-m", "0", &m, NULL), 0);
	assert_int_equal(m, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(num_parse_mode("-m", bad[i], &m, &e), -EINVAL);
		assert_non_null(strstr(e.text, "-m: "));
	}
	assert_int_equal(m, 0);
}

static void test_percent(void **state)
{
	static const struct {
		const char *text;
		int err;
		double ratio;
	} rows[] = {
		{ "0.5%", 0, 0.005 }, { "50%", 0, 0.5 },   { "0.001%", 0, 0.00001 },
		{ ".5%", 0, 0.005 },  { "0.5", -EINVAL },  { "", -EINVAL },
		{ "%", -EINVAL },     { ".%", -EINVAL },   { "1.2.3%", -EINVAL },
		{ "-1%", -EINVAL },   { "nan%", -EINVAL }, { "0x1%", -EINVAL },
		{ "1e1%", -EINVAL },  { "1 %", -EINVAL },  { "1%%", -EINVAL },
		{ "50.1%", -ERANGE }, { "0%", -ERANGE },   { "99999999999999999999%", -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double v = 42;
		struct err e;

		assert_int_equal(num_parse_percent("-x", rows[i].text, 0.001, 50, &v, &e),
				 rows[i].err);
		assert_true(
			v == (rows[i].err ? 42 : rows[i].ratio) ||
			(!rows[i].err && v > 0.999 * rows[i].ratio && v < 1.001 * rows[i].ratio));
		if (rows[i].err)
			assert_non_null(strstr(e.text, "-x: "));
	}
}

static void test_duration(void **state)
{
	static const struct {
		const char *text;
		int err;
		double seconds;
	} rows[] = {
		{ "300", 0, 300 },
		{ "5m", 0, 300 },
		{ "1h", 0, 3600 },
		{ "1d", 0, 86400 },
		{ "1.5s", 0, 1.5 },
		{ ".5", 0, 0.5 },
		{ "250ms", 0, 0.25 },
		{ "10000us", 0, 0.01 },
		{ "10000000ns", 0, 0.01 },
		{ "0.01", 0, 0.01 },
		{ "10ms", 0, 0.01 },
		{ "24h", 0, 86400 },
		{ "9ms", -ERANGE, 0 },
		{ "25h", -ERANGE, 0 },
		{ "0", -ERANGE, 0 },
		{ "99999999999999999999d", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "m", -EINVAL, 0 },
		{ "5 m", -EINVAL, 0 },
		{ "5M", -EINVAL, 0 },
		{ "5min", -EINVAL, 0 },
		{ "-5", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1.2.3", -EINVAL, 0 },
		{ ".", -EINVAL, 0 },
		{ "1h30m", -EINVAL, 0 },
		{ "1111111111111111111111111111111111111111111111", -EINVAL, 0 },
	};
	const struct duration_arg arg = { .name = "-d", .min_s = 0.01, .max_s = 86400 };
	const struct duration_arg ns = { .name = "-n", .bare_s = 1e-9, .max_s = 1 };
	struct err e;
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = 42;
		assert_int_equal(num_parse_duration(&arg, rows[i].text, &v, &e), rows[i].err);
		assert_true(rows[i].err
				    ? v == 42
				    : v > 0.999 * rows[i].seconds && v < 1.001 * rows[i].seconds);
		if (rows[i].err) {
			assert_non_null(strstr(e.text, "-d: "));
			assert_non_null(strstr(e.text, "from 10ms to 1d"));
		}
	}
	assert_int_equal(num_parse_duration(&ns, "1500", &v, &e), 0);
	assert_true(v > 1499e-9 && v < 1501e-9);
}

static void test_duration_text(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} rows[] = { { 300, "5m" },	{ 1.5, "1.5s" },  { 0.01, "10ms" },    { 86400, "1d" },
		     { 90, "90s" },	{ 5400, "90m" },  { 2.5e-6, "2.5us" }, { 1e-6, "1us" },
		     { 864000, "10d" }, { 0.25, "250ms" } };
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		num_format_duration(rows[i].seconds, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t bytes;
	} rows[] = {
		{ "64", 0, 64 << 20 },
		{ "64M", 0, 64 << 20 },
		{ "64MiB", 0, 64 << 20 },
		{ "65536K", 0, 64 << 20 },
		{ "1g", 0, 1 << 30 },
		{ "1GiB", 0, 1 << 30 },
		{ "1048576KiB", 0, 1 << 30 },
		{ "1k", -ERANGE, 0 },
		{ "0", -ERANGE, 0 },
		{ "1025G", -ERANGE, 0 },
		{ "99999999999999999999", -ERANGE, 0 },
		{ "99999999999999G", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "M", -EINVAL, 0 },
		{ "1MB", -EINVAL, 0 },
		{ "1.5G", -EINVAL, 0 },
		{ "-1M", -EINVAL, 0 },
		{ "1 M", -EINVAL, 0 },
		{ "1T", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1Mi", -EINVAL, 0 },
	};
	const struct size_arg arg = {
		.name = "-m", .bare = 1 << 20, .min = 1 << 20, .max = 1ULL << 40
	};
	const struct size_arg bytes = { .name = "-b", .min = 100, .max = 1ULL << 60 };
	struct err e;
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = 42;
		assert_int_equal(num_parse_size(&arg, rows[i].text, &v, &e), rows[i].err);
		assert_true(v == (rows[i].err ? 42 : rows[i].bytes));
		if (rows[i].err) {
			assert_non_null(strstr(e.text, "-m: "));
			assert_non_null(strstr(e.text, "from 1M to 1024G"));
		}
	}
	assert_int_equal(num_parse_size(&bytes, "4097", &v, &e), 0);
	assert_true(v == 4097);
	assert_int_equal(num_parse_size(&bytes, "99", &v, &e), -ERANGE);
	assert_non_null(strstr(e.text, "from 100 bytes to"));
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_files(void **state)
{
	static const struct {
		const char *text;
		int err;
		int64_t value;
	} rows[] = {
		{ "4\n", 0, 4 },
		{ "-1\n", 0, -1 },
		{ "100000", 0, 100000 },
		{ "9223372036854775807\n", 0, INT64_MAX },
		{ "", -EINVAL, 0 },
		{ "\n", -EINVAL, 0 },
		{ "-\n", -EINVAL, 0 },
		{ "--1\n", -EINVAL, 0 },
		{ "4 5\n", -EINVAL, 0 },
		{ "4K\n", -EINVAL, 0 },
		{ "0x4\n", -EINVAL, 0 },
		{ "9223372036854775808\n", -EINVAL, 0 },
		{ "1111111111111111111111111111111111111111111111111111111111111111111111",
		  -EMSGSIZE, 0 },
	};
	char dir[] = "/tmp/ibscope-num-XXXXXX", path[64];
	struct err e;
	int64_t v;
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/v", dir);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(path, rows[i].text);
		v = 0;
		assert_int_equal(num_read(dir, "/v", &v, &e), rows[i].err);
		assert_true(v == rows[i].value);
		if (rows[i].err)
			assert_non_null(strstr(e.text, path));
	}
	unlink(path);
	assert_int_equal(num_read(dir, "/v", &v, &e), -ENOENT);
	assert_int_equal(num_read(dir, "", &v, &e), -EISDIR);
	rmdir(dir);
}

static void test_good_lists(void **state)
{
	static const struct {
		const char *text, *canonical;
		unsigned int count;
	} rows[] = {
		{ "0", "0", 1 },       { "0-3,8", "0-3,8", 5 },	   { "8,0-3\n", "0-3,8", 5 },
		{ "1,0,2", "0-2", 3 }, { "5-5", "5", 1 },	   { "0-8191", "0-8191", 8192 },
		{ "8191", "8191", 1 }, { "63,64,65", "63-65", 3 }, { "0-1,1-2,2", "0-2", 3 },
	};
	struct cpulist l, again;
	char text[64];
	struct err e;
	int cpu, n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(cpulist_parse("-C", rows[i].text, &l, &e), 0);
		assert_int_equal(cpulist_count(&l), rows[i].count);
		assert_int_equal(cpulist_print(&l, text, sizeof(text)), strlen(rows[i].canonical));
		assert_string_equal(text, rows[i].canonical);
		assert_int_equal(cpulist_parse("-C", text, &again, &e), 0);
		assert_memory_equal(&l, &again, sizeof(l));
		n = 0;
		cpulist_for_each (cpu, &l) {
			assert_true(cpulist_has(&l, cpu));
			n++;
		}
		assert_int_equal(n, rows[i].count);
	}
	assert_false(cpulist_has(&l, CPULIST_MAX));
	assert_int_equal(cpulist_next(&l, CPULIST_MAX), -1);
}

static void test_bad_lists(void **state)
{
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{ "", -EINVAL },	   { "\n", -EINVAL },
		{ ",", -EINVAL },	   { "0,", -EINVAL },
		{ ",0", -EINVAL },	   { "0-", -EINVAL },
		{ "-1", -EINVAL },	   { "3-1", -EINVAL },
		{ "0--1", -EINVAL },	   { "a", -EINVAL },
		{ "0 1", -EINVAL },	   { "0\n1", -EINVAL },
		{ "0x1", -EINVAL },	   { "0-1-2", -EINVAL },
		{ "all", -EINVAL },	   { "0:3", -EINVAL },
		{ "8192", -ERANGE },	   { "0-8192", -ERANGE },
		{ "4294967296", -ERANGE }, { "0-99999999999999999999999999", -ERANGE },
	};
	struct cpulist l = { { 7 } };
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e.text[0] = 0;
		assert_int_equal(cpulist_parse("-C", rows[i].text, &l, &e), rows[i].err);
		assert_true(l.bits[0] == 7);
		assert_non_null(strstr(e.text, "-C: "));
	}
}

static void test_list_print_cut(void **state)
{
	struct cpulist l = { { 0 } };
	char text[8];
	int cpu;

	(void)state;
	for (cpu = 0; cpu < 8192; cpu += 2)
		cpulist_add(&l, cpu);
	cpulist_add(&l, 1u << 31);
	assert_int_equal(cpulist_count(&l), 4096);
	assert_true(cpulist_print(&l, text, sizeof(text)) > sizeof(text));
	assert_string_equal(text, "0,2,4,6");
	assert_true(cpulist_print(&l, NULL, 0) > 10000);
}

static void test_list_outside(void **state)
{
	struct cpulist a, b;

	(void)state;
	assert_int_equal(cpulist_parse("a", "0-3", &a, NULL), 0);
	assert_int_equal(cpulist_parse("b", "0,2-9", &b, NULL), 0);
	assert_int_equal(cpulist_outside(&a, &b), 1);
	assert_int_equal(cpulist_outside(&a, &a), -1);
	assert_int_equal(cpulist_read("", "online", &a, NULL), 0);
	assert_int_equal(cpulist_read("", "possible", &b, NULL), 0);
	assert_int_equal(cpulist_outside(&a, &b), -1);
	assert_int_equal(cpulist_read("/nonexistent", "online", &a, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_numbers),   cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_range),	       cmocka_unit_test(test_percent),
		cmocka_unit_test(test_mode),	       cmocka_unit_test(test_files),
		cmocka_unit_test(test_good_lists),     cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_list_print_cut), cmocka_unit_test(test_list_outside),
		cmocka_unit_test(test_duration),       cmocka_unit_test(test_duration_text),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
