// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that are recordings, hold several, or are something else; standard input that can be read only once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "made_recording.h"
#include "tree.h"

static struct err err;
static struct trace *t;

static int set_up(void **state)
{
	new_root(state);
	return chdir(root);
}

static int clean_up(void **state)
{
	return chdir("/") || remove_root(state);
}

static void record(const char *name, unsigned int n)
{
	const struct trace_info info = made_info();

	made_samples = 0;
	made_begin(name, &info);
	while (n--)
		made_add((struct ibs_record){ .tgid = 7, .tid = 7, .ip = 0x1000 }, NULL);
	assert_int_equal(made_end(), 0);
}

/* Samples of the open recording, which is closed; the same again after a rewind. */
static unsigned int count(void)
{
	unsigned int n[2] = { 0 };
	struct trace_event ev;

	for (int again = 0; again < 2; again++) {
		int ret;

		while ((ret = trace_next(t, &ev, &err)) > 0)
			n[again] += ev.kind == TRACE_SAMPLE_OP;
		assert_int_equal(ret, 0);
		assert_true(trace_end(t)->whole);
		assert_int_equal(trace_rewind(t, &err), 0);
	}
	assert_int_equal(n[0], n[1]);
	trace_close(t);
	return n[0];
}

static void opens(const char *path, unsigned int samples)
{
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(count(), samples);
}

static void fails(const char *path, int code, const char *why)
{
	assert_int_equal(trace_open(path, &t, &err), code);
	if (!strstr(err.text, why))
		fail_msg("'%s' rather than '%s'", err.text, why);
}

static void test_files(void **state)
{
	(void)state;
	record("a", 3);
	opens("a", 3);
	fails("gone", -ENOENT, "cannot open gone: No such file or directory");
	put_file("/empty", "");
	fails("empty", -EINVAL,
	      "empty: it is empty; it must be a recording of `ibscope record` or");
	put_file("/text", "some text that is longer than a head");
	fails("text", -EINVAL, "text: unknown format; it must be a recording");
	put_file("/z", "\x28\xb5\x2f\xfd more");
	fails("z", -EINVAL,
	      "z is compressed with zstd; unpack it, or pipe it: zstd -dc z | ibscope report -i -");
	put_file("/gz", "\x1f\x8b\x08\x01");
	fails("gz", -EINVAL, "gz is compressed with gzip; unpack it, or pipe it: gzip -dc gz |");
	put_file("/xz", "\xfd\x37zX");
	fails("xz", -EINVAL, "xz is compressed with xz; unpack it, or pipe it: xz -dc xz |");
	put_file("/short", "\x1f\x8b\x08");
	fails("short", -EINVAL, "short: unknown format");
	put_file("/other", "\xfd\x37zY");
	fails("other", -EINVAL, "other: unknown format");
}

static void merge(const char *into, const char *const *files, size_t n)
{
	const int fd = open(into, O_CREAT | O_TRUNC | O_RDWR, 0600);
	struct trace_part *parts = NULL;
	size_t n_parts = 0;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(trace_parts_add(files[i], &parts, &n_parts, &err), 0);
	assert_int_equal(n_parts, n);
	assert_int_equal(trace_parts_write(fd, parts, n_parts, &err), 0);
	trace_parts_free(parts, n_parts);
	close(fd);
}

static void test_merged(void **state)
{
	static const char *const files[] = { "a", "b" };
	struct trace_part *parts = NULL;
	size_t n = 0;

	(void)state;
	record("a", 3);
	record("b", 5);
	merge("two", files, 2);
	fails("two", -EINVAL,
	      "two holds 2 recordings, which `ibscope report` adds up; other commands read one of "
	      "them: two#1 to two#2");
	opens("two#1", 3);
	opens("two#2", 5);
	fails("two#3", -ENOENT, "two#3: two holds 2 recordings");
	fails("two#0", -ENOENT, "cannot open two#0");
	fails("two#", -ENOENT, "cannot open two#");
	fails("two#1x", -ENOENT, "cannot open two#1x");
	assert_int_equal(trace_parts_add("two", &parts, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(trace_part_open(&parts[1], &t, &err), 0);
	assert_int_equal(count(), 5);
	trace_parts_free(parts, n);
	merge("one", files, 1);
	opens("one", 3);
	opens("one#1", 3);
	fails("one#2", -ENOENT, "one#2: one holds 1 recording");
	assert_null(strstr(err.text, "recordings"));
	/* a recording alone has one, and a file may be called so */
	opens("a#1", 3);
	record("a#1", 7);
	opens("a#1", 7);
}

/* @piped: else standard input is the file itself */
static void from_stdin(const char *file, bool piped, unsigned int samples)
{
	const int saved = dup(STDIN_FILENO), fd = open(file, O_RDONLY | O_CLOEXEC);
	static char data[32768]; /* less than a pipe has room for */
	int ends[2];
	ssize_t n;

	if (piped) {
		n = read(fd, data, sizeof(data));
		assert_in_range(n, 1, sizeof(data) - 1);
		assert_int_equal(pipe(ends), 0);
		assert_int_equal(write(ends[1], data, n), n);
		close(ends[1]);
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
	} else {
		dup2(fd, STDIN_FILENO);
	}
	opens("-", samples);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(fd);
}

static void test_stdin(void **state)
{
	(void)state;
	record("a", 3);
	from_stdin("a", false, 3);
	setenv("TMPDIR", root, 1);
	from_stdin("a", true, 3);
	setenv("TMPDIR", "/nowhere", 1); /* in memory */
	from_stdin("a", true, 3);
	setenv("TMPDIR", "", 1);
	from_stdin("a", true, 3);
	unsetenv("TMPDIR");
}

static void test_expansion(void **state)
{
	const __u64 free = TRACE_EXPANSION_FREE;

	(void)state;
	assert_int_equal(trace_check_expansion(0, free, &err), 0);
	assert_int_equal(trace_check_expansion(0, free + 99, &err), 0);
	assert_int_equal(trace_check_expansion(0, free + 100, &err), -EBADMSG);
	assert_int_equal(trace_check_expansion(5, free + 599, &err), 0);
	assert_int_equal(trace_check_expansion(5, free + 600, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "it expands to more than 100 times its size"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_files), T(test_merged), T(test_stdin),
					    cmocka_unit_test(test_expansion) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
