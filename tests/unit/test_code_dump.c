// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* jit-PID.dump: what an address had at a time, and files that are anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "naming/code_dump.h"
#include "naming/files.h"
#include "naming/naming.h"

#define CODE 0x7e0000000000ull

enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING };

/* A file in the making. */
struct bytes {
	unsigned char *v;
	size_t n, room;
};

static void append(struct bytes *b, const void *data, size_t n)
{
	array_reserve(b->v, b->room, b->n + n);
	memcpy(b->v + b->n, data, n);
	b->n += n;
}

static void begin(struct bytes *b, unsigned int pid)
{
	const unsigned int head[] = { CODE_DUMP_MAGIC, 1, 40, EM_X86_64, 0, pid };
	const unsigned long long rest[] = { 1, 0 };

	b->n = 0;
	append(b, head, sizeof(head));
	append(b, rest, sizeof(rest));
}

static void record(struct bytes *b, unsigned int kind, __u64 time, const void *data, size_t n)
{
	const unsigned int head[] = { kind, 16 + n };

	append(b, head, sizeof(head));
	append(b, &time, sizeof(time));
	append(b, data, n);
}

/* With @code bytes of code, of which the dump has as many. */
static void load(struct bytes *b, __u64 time, __u64 addr, __u64 code, __u64 index, const char *name)
{
	const __u64 v[] = { 0x100000001, addr, addr, code, index };
	struct bytes data = {};

	append(&data, v, sizeof(v));
	append(&data, name, strlen(name) + 1);
	for (__u64 i = 0; i < code && i < 100; i++)
		append(&data, "\xc3", 1);
	record(b, LOAD, time, data.v, data.n);
	free(data.v);
}

static void move(struct bytes *b, __u64 time, __u64 from, __u64 to, __u64 code, __u64 index)
{
	const __u64 v[] = { 0x100000001, to, from, to, code, index };

	record(b, MOVE, time, v, sizeof(v));
}

static struct code_dump *read_bytes(const void *data, size_t n, char why[160])
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct code_dump *d;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	*why = 0;
	d = code_dump_read(fd, why, 160);
	assert_true(d ? !*why : *why);
	close(fd);
	return d;
}

static struct code_dump *must_read(const struct bytes *b)
{
	char why[160];
	struct code_dump *d = read_bytes(b->v, b->n, why);

	if (!d)
		fail_msg("%s", why);
	return d;
}

static void assert_refused(const struct bytes *b, const char *because)
{
	char why[160];

	assert_null(read_bytes(b->v, b->n, why));
	if (!strstr(why, because))
		fail_msg("'%s' instead of '%s'", why, because);
}

static struct code_span span_at(const struct code_dump *d, __u64 addr, __u64 time)
{
	struct code_span span;

	code_dump_find(d, addr, time, &span);
	assert_true(time >= span.from && (time < span.until || span.until == ~0ull));
	return span;
}

static void assert_code(const struct code_dump *d, __u64 addr, __u64 time, const char *name)
{
	const char *found = span_at(d, addr, time).name;

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ?: "", name);
}

static void test_times(void **state)
{
	struct bytes b = {};
	struct code_dump *d;

	(void)state;
	begin(&b, 1);
	load(&b, 100, CODE, 0x100, 1, "first");
	record(&b, DEBUG_INFO, 200, "anything", 8);
	record(&b, UNWINDING, 200, "anything", 8);
	record(&b, 77, 200, "anything", 8);
	load(&b, 300, CODE + 0x80, 0x100, 2, "second\r\x1b[31m");
	/* not in the order of time, as of several threads */
	load(&b, 200, CODE + 0x1000, 0x10, 3, "third");
	move(&b, 400, CODE + 0x1000, CODE, 0x10, 3);
	move(&b, 500, CODE + 0x80, CODE + 0x5000, 0x100, 99);
	load(&b, 600, CODE, 0, 4, "no code");
	load(&b, 600, ~0ull - 8, 0x10, 5, "behind the end");
	record(&b, CLOSE, 700, "", 0);
	load(&b, 100, CODE + 0x9000, 0x10, 6, "behind the last record");
	d = must_read(&b);
	assert_code(d, CODE - 1, 1000, NULL);
	assert_code(d, CODE, 99, NULL);
	assert_code(d, CODE, 100, "first");
	assert_code(d, CODE + 0xff, 299, "first");
	assert_code(d, CODE + 0x100, 299, NULL);
	assert_code(d, CODE + 0x7f, 1000, "first");
	assert_code(d, CODE + 0x80, 300, "second\r\x1b[31m");
	assert_code(d, CODE + 0x17f, 499, "second\r\x1b[31m");
	assert_code(d, CODE + 0x80, 500, NULL);
	assert_code(d, CODE + 0x180, 499, NULL);
	assert_code(d, CODE + 0x1000, 199, NULL);
	assert_code(d, CODE + 0x1000, 399, "third");
	assert_code(d, CODE + 0x1000, 400, NULL);
	assert_code(d, CODE + 0xf, 399, "first");
	assert_code(d, CODE + 0xf, 400, "third");
	assert_code(d, CODE + 0x10, 400, "first");
	assert_code(d, CODE + 0x5000, 1000, NULL);
	assert_code(d, CODE + 0x9000, 1000, NULL);
	assert_code(d, ~0ull, ~0ull, NULL);
	assert_int_equal(span_at(d, CODE + 0x80, 350).from, 300);
	assert_int_equal(span_at(d, CODE + 0x80, 350).until, 500);
	assert_int_equal(span_at(d, CODE, 5).until, 100);
	assert_true(span_at(d, CODE - 1, 5).until == ~0ull);
	code_dump_free(d);
	begin(&b, 1);
	d = must_read(&b);
	assert_code(d, CODE, 1, NULL);
	code_dump_free(d);
	free(b.v);
}

/* The same as a search through all of it, and each answer holds as long as it says. */
static void test_random(void **state)
{
	enum { N = 300, SPAN = 400, TIMES = 200 };
	struct bytes b = {};

	(void)state;
	for (unsigned int seed = 1; seed <= 15; seed++) {
		unsigned int start[N], size[N], time[N];
		struct code_dump *d;
		char name[16];

		begin(&b, 1);
		for (int i = 0; i < N; i++) {
			start[i] = rand_r(&seed) % SPAN;
			size[i] = 1 + rand_r(&seed) % (i % 7 ? 8 : 80);
			time[i] = rand_r(&seed) % TIMES;
			sprintf(name, "f%d", i);
			load(&b, time[i], start[i], size[i], i, name);
		}
		d = must_read(&b);
		for (unsigned int at = 0; at < SPAN + 100; at++)
			for (unsigned int t = 0; t < TIMES; t += 7) {
				unsigned int until = ~0u;
				int last = -1;

				for (int i = 0; i < N; i++) {
					if (at < start[i] || at >= start[i] + size[i])
						continue;
					if (time[i] > t)
						until = time[i] < until ? time[i] : until;
					else if (last < 0 || time[i] >= time[last])
						last = i;
				}
				sprintf(name, "f%d", last);
				assert_code(d, at, t, last < 0 ? NULL : name);
				assert_true(span_at(d, at, t).until ==
					    (until == ~0u ? ~0ull : until));
			}
		code_dump_free(d);
	}
	free(b.v);
}

static void put32(struct bytes *b, size_t at, unsigned int v)
{
	memcpy(b->v + at, &v, sizeof(v));
}

static void test_headers(void **state)
{
	static const struct {
		size_t at;
		unsigned int value;
		const char *why;
	} bad[] = {
		{ 0, 0x4454694a, "not a jitdump of x86-64" }, /* of the other byte order */
		{ 4, 2, "unknown version" },
		{ 8, 39, "unknown version" },
		{ 8, 0xfffffff0, "unknown version" },
		{ 12, EM_AARCH64, "not a jitdump" },
		{ 32, 1, "its times are of the processor" },
		{ 40 + 4, 0, "a record has a length of 0" },
		{ 40 + 4, 15, "a record has a length of 15" },
	};
	struct bytes b = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		begin(&b, 1);
		load(&b, 100, CODE, 0x10, 1, "f");
		put32(&b, bad[i].at, bad[i].value);
		assert_refused(&b, bad[i].why);
	}
	b.n = 0;
	assert_refused(&b, "not a jitdump");
	free(b.v);
}

/* Cut anywhere, and with any bytes. */
static void test_damaged(void **state)
{
	struct bytes good = {}, b = {};
	unsigned int seed = 1;
	struct code_dump *d;
	char why[160];

	(void)state;
	begin(&good, 1);
	for (int i = 0; i < 20; i++) {
		load(&good, 100 + i, CODE + 8 * i, 64, i, "some name");
		move(&good, 200 + i, CODE + 8 * i, CODE + 16 * i, 64, i);
	}
	for (size_t n = 40; n < good.n; n++) {
		d = read_bytes(good.v, n, why);
		assert_non_null(d);
		assert_code(d, CODE, 150, n < 40 + 16 + 40 + 10 + 64 ? NULL : "some name");
		code_dump_free(d);
	}
	for (int i = 0; i < 20000; i++) {
		b.n = 0;
		append(&b, good.v, good.n);
		for (int k = 1 + rand_r(&seed) % 6; k; k--)
			b.v[40 + rand_r(&seed) % (b.n - 40)] = rand_r(&seed);
		d = read_bytes(b.v, b.n, why);
		for (__u64 at = 0; d && at < 500; at += 9)
			span_at(d, CODE + at, rand_r(&seed) % 300);
		code_dump_free(d);
	}
	free(good.v);
	free(b.v);
}

static void test_limits(void **state)
{
	struct bytes b = {};
	struct code_dump *d;
	char name[4200];

	(void)state;
	/* each piece of code inside of the one before, and all at different times */
	begin(&b, 1);
	for (unsigned int i = 0; i < CODE_DUMP_EVENTS / 8; i++)
		load(&b, i, CODE + i, 2ull * (CODE_DUMP_EVENTS - i), i, "f");
	d = must_read(&b);
	assert_code(d, CODE + 77, 100, "f");
	assert_int_equal(span_at(d, CODE + 77, 77).from, 77);
	code_dump_free(d);
	/* names are cut, and their bytes are limited */
	begin(&b, 1);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	load(&b, 1, CODE, 8, 1, name);
	d = must_read(&b);
	assert_int_equal(strlen(span_at(d, CODE, 1).name), 4095);
	code_dump_free(d);
	for (int i = 0; i < 10000; i++) {
		sprintf(name, "%d", i);
		name[strlen(name)] = 'a';
		load(&b, 1, CODE, 8, 1, name);
	}
	assert_refused(&b, "its names have more than 32 MiB");
	begin(&b, 1);
	for (unsigned int i = 0; i <= CODE_DUMP_EVENTS; i++)
		load(&b, 1, CODE + i, 1, i, "f");
	assert_refused(&b, "more than 1000000 pieces of code");
	begin(&b, 1);
	for (unsigned int i = 0; i <= CODE_DUMP_RECORDS; i++)
		record(&b, UNWINDING, 1, "", 0);
	assert_refused(&b, "more than 8000000 records");
	free(b.v);
}

static void put_file(const char *path, const struct bytes *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, b->v, b->n), b->n);
	close(fd);
}

/* Its own file, of the right name, kind and owner. */
static void test_files(void **state)
{
	const struct naming_root here = {};
	char path[256], dump[128], other[128];
	struct bytes b = {};
	int fd;

	(void)state;
	snprintf(dump, sizeof(dump), "/tmp/jit-%d.dump", getpid());
	snprintf(other, sizeof(other), "/tmp/jit-%d.dump", getpid() + 1);
	unlink(dump);
	unlink(other);
#define OPEN(name) file_open_code_list(&here, getpid(), true, name, path, sizeof(path))
	assert_int_equal(OPEN(dump), -ENOENT);
	assert_int_equal(mkfifo(dump, 0666), 0);
	assert_int_equal(OPEN(dump), -EINVAL);
	unlink(dump);
	begin(&b, getpid());
	put_file(other, &b);
	assert_int_equal(OPEN(other), -ENOEXEC);
	assert_int_equal(symlink(other, dump), 0);
	assert_int_equal(OPEN(dump), -EINVAL);
	unlink(dump);
	assert_int_equal(mkdir(dump, 0755), 0);
	assert_int_equal(OPEN(dump), -EINVAL);
	rmdir(dump);
	put_file(dump, &b);
	fd = OPEN(dump);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(file_open_code_list(&here, getpid(), false, dump, path, sizeof(path)),
			 -ESRCH);
	b.v[20]++; /* of another process */
	put_file(dump, &b);
	assert_int_equal(OPEN(dump), -ENOEXEC);
	b.n = 10;
	put_file(dump, &b);
	assert_int_equal(OPEN(dump), -ENOEXEC);
	assert_int_equal(truncate(dump, (2ll << 30) + 1), 0);
	assert_int_equal(OPEN(dump), -EFBIG);
	if (!geteuid()) {
		begin(&b, getpid());
		put_file(dump, &b);
		assert_int_equal(chown(dump, 12345, 12345), 0);
		assert_int_equal(OPEN(dump), -EPERM);
	}
	unlink(dump);
	unlink(other);
	free(b.v);
#undef OPEN
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* One address whose code changes all the time costs no more than any other. */
static void test_object(void **state)
{
	struct naming *n = naming_new(&(struct naming_opts){});
	struct code_map_place place = { .pid = getpid(), .alive = true };
	struct bytes b = {};
	char dump[128], why[160] = "", name[32];
	struct object *o;
	double began;

	(void)state;
	snprintf(dump, sizeof(dump), "/tmp/jit-%d.dump", getpid());
	begin(&b, getpid());
	for (int i = 0; i < 20000; i++) {
		sprintf(name, "f%d", i);
		load(&b, 10 * i, CODE, 8, i, name);
	}
	unlink(dump);
	put_file(dump, &b);
	place.dump = dump;
	o = object_open_code_map(n, &place, why, sizeof(why));
	if (!o)
		fail_msg("%s", why);
	unlink(dump);
	began = now();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			sprintf(name, "f%d", i);
			assert_string_equal(object_code_at(o, CODE + i % 8, 10 * i + 3), name);
		}
	assert_true(now() - began < 30);
	assert_null(object_code_at(o, CODE + 8, 5));
	assert_null(object_problem(o));
	object_close(o);
	naming_free(n);
	free(b.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),	cmocka_unit_test(test_random),
		cmocka_unit_test(test_headers), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_limits),	cmocka_unit_test(test_files),
		cmocka_unit_test(test_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
