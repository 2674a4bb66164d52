// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The directory of the flight recorder: its files by time, which of them are removed, and which stay. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "flight/flight_dir.h"
#include "tree.h"

#define S 1000000000ull
#define A "flight-20260101T000000.000Z.data"
#define B "flight-20260101T000001.500Z.data"
#define C "flight-20260102T000000.000Z.data"
/* of A, in seconds since 1970 */
#define NEW_YEAR 1767225600ull

static void put(const char *name, unsigned int bytes)
{
	char path[200];

	snprintf(path, sizeof(path), "/%s", name);
	put_file(path, "");
	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(truncate(path, bytes), 0);
}

static bool is_there(const char *name)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return !lstat(path, &st);
}

static const char *find(uint64_t from_ns, uint64_t to_ns)
{
	static char path[PATH_MAX];

	if (!flight_dir_find(root, from_ns, to_ns, path))
		return "";
	assert_int_equal(strncmp(path, root, strlen(root)), 0);
	return path + strlen(root) + 1;
}

/* The first one of a span, whose ends belong to it. */
static void test_find(void **unused)
{
	(void)unused;
	assert_string_equal(find(0, ~0ull >> 1), "");
	put(B, 1);
	put(A, 1);
	put(C, 1);
	put("flight-20260101T000000.500Z.data.tmp", 1);
	put("flight-20260101T00000a.500Z.data", 1);
	assert_string_equal(find(0, NEW_YEAR * S), A);
	assert_string_equal(find(NEW_YEAR * S, NEW_YEAR * S), A);
	assert_string_equal(find(0, NEW_YEAR * S - 1), "");
	assert_string_equal(find(NEW_YEAR * S + 1000000, NEW_YEAR * S + 1499999999), "");
	assert_string_equal(find(NEW_YEAR * S + 1000000, NEW_YEAR * S + 1500000000), B);
	assert_string_equal(find(0, (NEW_YEAR + 86400) * S), A);
	assert_string_equal(find((NEW_YEAR + 86400) * S, (NEW_YEAR + 86400) * S), C);
	assert_string_equal(find((NEW_YEAR + 86401) * S, (NEW_YEAR + 90000) * S), "");
}

/* The oldest go first; the newest stays, whatever its size, and so does what others put there. */
static void test_prune(void **unused)
{
	char path[200];

	(void)unused;
	put(A, 10);
	put(B, 10);
	put(C, 10);
	put("other.data", 1000);
	flight_dir_prune(root, 3, 30);
	assert_true(is_there(A) && is_there(B) && is_there(C));
	flight_dir_prune(root, 3, 29);
	assert_true(!is_there(A) && is_there(B) && is_there(C));
	put(A, 10);
	flight_dir_prune(root, 2, 1000);
	assert_true(!is_there(A) && is_there(B) && is_there(C));
	flight_dir_prune(root, 0, 0);
	assert_true(!is_there(B) && is_there(C));
	/* what is no file does not count, and stays */
	snprintf(path, sizeof(path), "%s/%s", root, B);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	put_dir("/" A "/");
	flight_dir_prune(root, 1, 10);
	assert_true(is_there(A) && is_there(B) && is_there(C) && is_there("other.data"));
	/* one that is too large with the newest */
	unlink(path);
	put(B, 41);
	flight_dir_prune(root, 9, 50);
	assert_true(!is_there(B) && is_there(C));
	flight_dir_prune("/nowhere/at/all", 1, 1);
	/* an empty file is one */
	put(B, 0);
	put(C, 0);
	flight_dir_prune(root, 1, 10);
	assert_true(!is_there(B) && is_there(C));
	put(B, 0);
	put(C, 10);
	flight_dir_prune(root, 1, 10);
	assert_true(!is_there(B) && is_there(C));
}

/* No recording outlives a newer one, even if it is small enough for the room that the newer one leaves. */
static void test_prune_is_by_age(void **unused)
{
	(void)unused;
	put(A, 1);
	put(B, 41);
	put(C, 10);
	flight_dir_prune(root, 9, 50);
	assert_true(!is_there(A) && !is_there(B) && is_there(C));
	/* what is no recording stays, also when it is older than one that goes */
	put_dir("/" A "/");
	put(B, 41);
	flight_dir_prune(root, 9, 50);
	assert_true(is_there(A) && !is_there(B) && is_there(C));
}

static void test_check(void **unused)
{
	char dir[200], want[300];
	struct err err = { "" };
	struct stat st;

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/new", root);
	assert_int_equal(flight_dir_check(dir, &err), 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(flight_dir_check(dir, &err), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
	snprintf(dir, sizeof(dir), "%s/none/new", root);
	assert_int_equal(flight_dir_check(dir, &err), -ENOENT);
	snprintf(want, sizeof(want), "--flight-dir: cannot create %s: No such file or directory",
		 dir);
	assert_string_equal(err.text, want);
	put("file", 1);
	snprintf(dir, sizeof(dir), "%s/file", root);
	assert_true(flight_dir_check(dir, &err) < 0);
}

/* A file has the time when it began. */
static void test_begin(void **unused)
{
	struct flight_file f;
	struct err err = { "" };
	char dir[200], found[PATH_MAX];
	const uint64_t before = clock_ns(CLOCK_REALTIME);

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/none/new", root);
	assert_int_equal(flight_dir_begin(dir, &f, &err), -ENOENT);
	snprintf(dir, sizeof(dir), "%s/new", root);
	assert_int_equal(flight_dir_begin(dir, &f, &err), 0);
	assert_true(f.time_ns >= before && f.time_ns <= clock_ns(CLOCK_REALTIME));
	assert_false(flight_dir_find(dir, 0, ~0ull >> 1, found)); /* until it is complete */
	assert_int_equal(output_file_end(&f.out, 0, &err), 0);
	assert_true(flight_dir_find(dir, f.time_ns, f.time_ns, found));
	assert_string_equal(found, f.path);
	assert_false(flight_dir_find(dir, f.time_ns + 1000000, ~0ull >> 1, found));
}

#define R(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = { R(test_find), R(test_prune), R(test_prune_is_by_age),
					    R(test_check), R(test_begin) };

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
