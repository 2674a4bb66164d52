// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Merged files: what is written is read again, and what is damaged is refused. */
#include <errno.h>
#include <fcntl.h>
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

#include <zlib.h>

#include "base/err.h"
#include "trace/parts.h"
#include "trace/trace.h"
#include "tree.h"

#define HEAD 28 /* bytes of the head of a merged file */

static struct err err;
static char path[4][128];

static int begin(void **state)
{
	static const char *const names[] = { "a", "b", "out", "again" };
	const int ret = new_root(state);

	for (size_t i = 0; i < 4; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", root, names[i]);
	put_file("/a", "the first one");
	put_file("/b", "second");
	err.text[0] = 0;
	return ret;
}

/* The files that are open. */
static unsigned int descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int write_parts(const char *to, const struct trace_part *parts, size_t n)
{
	int fd = open(to, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600), ret;

	assert_true(fd >= 0);
	ret = trace_parts_write(fd, parts, n, &err);
	close(fd);
	return ret;
}

static void write_two(void)
{
	const struct trace_part parts[] = { { path[0], path[0], 0, 0 },
					    { path[1], "x/y/b", 0, 0 } };

	assert_int_equal(write_parts(path[2], parts, 2), 0);
}

static void contents(const struct trace_part *p, const char *want)
{
	char text[64] = "";
	FILE *f = fopen(p->file, "r");

	assert_non_null(f);
	assert_int_equal(fseek(f, p->offset, SEEK_SET), 0);
	assert_int_equal(p->bytes, strlen(want));
	assert_int_equal(fread(text, 1, p->bytes, f), p->bytes);
	fclose(f);
	assert_string_equal(text, want);
}

static int merged(const char *file, size_t *n)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), ret;

	err.text[0] = 0;
	ret = trace_merged(fd, n, &err);
	close(fd);
	return ret;
}

static void test_two(void **state)
{
	struct trace_part *parts = NULL;
	const unsigned int open_before = descriptors();
	size_t n = 0;

	(void)state;
	write_two();
	assert_int_equal(merged(path[2], &n), 1);
	assert_int_equal(n, 2);
	n = 0;
	/* what is no merged file is itself a recording, whole, as is what cannot be opened */
	assert_int_equal(trace_parts_add(path[0], &parts, &n, &err), 0);
	assert_int_equal(trace_parts_add(path[2], &parts, &n, &err), 0);
	assert_int_equal(trace_parts_add("/nowhere/x", &parts, &n, &err), 0);
	assert_int_equal(trace_parts_add("-", &parts, &n, &err), 0);
	assert_int_equal(n, 5);
	assert_string_equal(parts[0].file, path[0]);
	assert_string_equal(parts[0].name, path[0]);
	assert_int_equal(parts[0].offset, 0);
	assert_int_equal(parts[0].bytes, 0);
	assert_string_equal(parts[1].name, "a"); /* without its directory */
	assert_string_equal(parts[1].file, path[2]);
	contents(&parts[1], "the first one");
	assert_string_equal(parts[2].name, "b");
	contents(&parts[2], "second");
	assert_string_equal(parts[3].file, "/nowhere/x");
	assert_string_equal(parts[4].file, "-");
	assert_string_equal(parts[4].name, "standard input");
	trace_parts_free(parts, n);
	assert_int_equal(descriptors(), open_before);
}

/* With standard input closed, a file that is opened has the number 0. */
static void test_closed_input(void **state)
{
	const struct trace_part part = { path[0], path[0], 0, 0 };
	struct trace_part *parts = NULL;
	int input = dup(0), ret;
	struct trace *t;
	size_t n = 0;

	(void)state;
	write_two();
	close(0);
	ret = trace_parts_add(path[2], &parts, &n, &err);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(trace_part_open(&part, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "unknown format"));
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_true(input < 0 || dup2(input, 0) == 0);
	close(input);
	assert_int_equal(ret, 0);
	assert_int_equal(n, 2);
	trace_parts_free(parts, n);
}

/* Recordings of a merged file can be merged again, and parts of files. */
static void test_again(void **state)
{
	struct trace_part *parts = NULL, *again = NULL;
	size_t n = 0, m = 0;

	(void)state;
	write_two();
	assert_int_equal(trace_parts_add(path[2], &parts, &n, &err), 0);
	assert_int_equal(write_parts(path[3], parts, n), 0);
	assert_int_equal(trace_parts_add(path[3], &again, &m, &err), 0);
	assert_int_equal(m, 2);
	contents(&again[0], "the first one");
	contents(&again[1], "second");
	trace_parts_free(again, m);
	/* from an offset to the end, and no more than there is */
	again = NULL;
	m = 0;
	parts[0].bytes = 0;
	parts[0].offset = (__u64)parts[1].offset - 3;
	parts[1].bytes = 1000;
	assert_int_equal(write_parts(path[3], parts, n), 0);
	assert_int_equal(trace_parts_add(path[3], &again, &m, &err), 0);
	contents(&again[0], "onesecond");
	contents(&again[1], "second");
	trace_parts_free(again, m);
	trace_parts_free(parts, n);
}

/* More than is copied at once. */
static void test_large(void **state)
{
	const struct trace_part part = { path[0], path[0], 0, 0 };
	struct trace_part *parts = NULL;
	char a[4] = "", *text = malloc((2 << 20) + 4);
	size_t n = 0;
	int fd;

	(void)state;
	memset(text, 'x', (2 << 20) + 3);
	strcpy(text + (2 << 20), "end");
	put_file("/a", text);
	free(text);
	assert_int_equal(write_parts(path[2], &part, 1), 0);
	assert_int_equal(trace_parts_add(path[2], &parts, &n, &err), 0);
	assert_int_equal(parts[0].bytes, (2 << 20) + 3);
	fd = open(path[2], O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, a, 4, parts[0].offset + (2 << 20)), 3);
	assert_memory_equal(a, "end", 3);
	close(fd);
	trace_parts_free(parts, n);
}

static void test_cannot_write(void **state)
{
	const struct trace_part gone = { "/nowhere/x", "x", 0, 0 },
				part = { path[0], path[0], 0, 0 };
	const unsigned int open_before = descriptors();
	struct trace_part *many = calloc(16385, sizeof(*many));
	int fd = open(path[0], O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(write_parts(path[2], &gone, 1), -ENOENT);
	assert_string_equal(err.text, "cannot open /nowhere/x: No such file or directory");
	assert_int_equal(trace_parts_write(fd, &part, 1, &err), -EBADF);
	assert_string_equal(err.text, "cannot write: Bad file descriptor");
	close(fd);
	for (int i = 0; i < 16385; i++)
		many[i] = part;
	assert_int_equal(write_parts(path[2], many, 16385), -E2BIG);
	assert_string_equal(err.text, "too many recordings: 16385, at most 16384");
	free(many);
	assert_int_equal(descriptors(), open_before);
}

/* --- damage --- */

/* A merged file with this index, and a correct head but for what @change does to it. */
static void make(const char *index, void (*change)(unsigned char *head))
{
	unsigned char head[HEAD] = "IBSMERG\n\4\3\2\1\1\0\0";
	const __u32 bytes = strlen(index), crc = crc32_z(0, (const void *)index, bytes);
	__u32 head_crc;
	FILE *f = fopen(path[2], "w");

	memcpy(head + 16, &bytes, 4);
	memcpy(head + 20, &crc, 4);
	if (change)
		change(head);
	head_crc = crc32_z(0, head, 24);
	memcpy(head + 24, &head_crc, 4);
	fwrite(head, 1, HEAD, f);
	fputs(index, f);
	fputs("recordings", f);
	fclose(f);
}

static void refused(const char *why)
{
	struct trace_part *parts = NULL;
	char text[512];
	size_t n = 0;

	assert_int_equal(merged(path[2], &n), -EINVAL);
	assert_string_equal(err.text, why);
	assert_int_equal(trace_parts_add(path[2], &parts, &n, &err), -EINVAL);
	snprintf(text, sizeof(text), "%s: %s", path[2], why);
	assert_string_equal(err.text, text);
	assert_int_equal(n, 0);
	assert_null(parts);
}

#define ONE(name, offset, bytes) "{\"name\":" name ",\"offset\":" #offset ",\"bytes\":" #bytes "}"
#define INDEX(list)		 "{\"recordings\":[" list "]}"

static void test_index(void **state)
{
	static const char *const bad[] = {
		INDEX(ONE("1", 0, 1)),
		INDEX(ONE("\"a\"", -1, 1)),
		INDEX(ONE("\"a\"", 0, 0)),
		INDEX(ONE("\"a\"", 0, -1)),
		INDEX("{}"),
		INDEX("1"),
		INDEX(ONE("\"a\"", 9223372036854775800, 100)),
		INDEX(ONE("\"a\"", 9223372036854775800, 7)), /* the head is before it */
	};
	size_t n = 9;

	(void)state;
	make(INDEX(""), NULL);
	assert_int_equal(merged(path[2], &n), 1);
	assert_int_equal(n, 0);
	make(INDEX(ONE("\"a\"", 0, 2) "," ONE("\"a\"", 2, 1)), NULL);
	assert_int_equal(merged(path[2], &n), 1);
	assert_int_equal(n, 2);
	make(INDEX(ONE("\"a\"", 0, 2) "," ONE("\"a\"", 1, 1)), NULL);
	refused("recordings 1 and 2 of the merged file overlap");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make(bad[i], NULL);
		refused("recording 1 in the index of the merged file is invalid");
	}
	make("{", NULL);
	refused("the index of the merged file is damaged");
	make("{}", NULL);
	refused("the index of the merged file is damaged");
	make("{\"recordings\":{}}", NULL);
	refused("the index of the merged file is damaged");
}

static void other_order(unsigned char *head)
{
	head[8] = 1;
}

static void other_version(unsigned char *head)
{
	head[12] = 2;
	head[14] = 5;
}

static void other_minor(unsigned char *head)
{
	head[14] = 5;
}

static void other_index(unsigned char *head)
{
	head[20] ^= 1;
}

static void longer_index(unsigned char *head)
{
	head[17] = 1;
}

static void large_index(unsigned char *head)
{
	memcpy(head + 16, &(__u32){ (4 << 20) + 1 }, 4);
}

static void other_magic(unsigned char *head)
{
	head[0] = 'x';
}

static void test_head(void **state)
{
	static const char index[] = INDEX(ONE("\"a\"", 0, 2));
	struct trace_part *parts = NULL;
	size_t n = 0;
	FILE *f;

	(void)state;
	make(index, other_order);
	refused("it has version 1.0 of the format of merged files, and this program reads version "
		"1: use the ibscope that wrote it");
	make(index, other_version);
	refused("it has version 2.5 of the format of merged files, and this program reads version "
		"1: use the ibscope that wrote it");
	make(index, other_minor);
	assert_int_equal(merged(path[2], &n), 1);
	make(index, other_index);
	refused("the index of the merged file is damaged");
	make(index, longer_index);
	refused("the index of the merged file is damaged");
	make(index, large_index);
	refused("the index of the merged file has 4194305 bytes, at most 4194304");
	make(index, other_magic);
	assert_int_equal(merged(path[2], &n), 0);
	make(index, NULL);
	f = fopen(path[2], "r+");
	fseek(f, 12, SEEK_SET);
	fputc(7, f);
	fclose(f);
	refused("the head of the merged file is damaged");
	make(index, NULL);
	assert_int_equal(truncate(path[2], HEAD - 1), 0);
	assert_int_equal(merged(path[2], &n), 0);
	n = 0;
	assert_int_equal(trace_parts_add(path[2], &parts, &n, &err), 0);
	assert_int_equal(n, 1); /* a short file is for others to read */
	trace_parts_free(parts, n);
}

/* As many as the largest machines need, and no more. */
static void test_many(void **state)
{
	size_t n = 0;

	(void)state;
	for (int most = 16384; most <= 16385; most++) {
		size_t size;
		char *text;
		FILE *f = open_memstream(&text, &size);

		fputs("{\"recordings\":[", f);
		for (int i = 0; i < most; i++)
			fprintf(f, "%s" ONE("\"\"", % d, 1), i ? "," : "", i);
		fputs("]}", f);
		fclose(f);
		make(text, NULL);
		free(text);
		if (most == 16384)
			assert_int_equal(merged(path[2], &n), 1);
	}
	assert_int_equal(n, 16384);
	refused("the index of the merged file has 16385 recordings, at most 16384");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_two),	      T(test_closed_input), T(test_again), T(test_large),
		T(test_cannot_write), T(test_index),	    T(test_head),  T(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
