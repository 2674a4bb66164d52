// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The map, the numbers of strings, growing arrays and the heap, each against a plain model; when
 * a task is due again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/exit_status.h"
#include "base/heap.h"
#include "base/intern.h"
#include "base/key_map.h"
#include "base/text.h"
#include "base/u64_map.h"

#include <sys/wait.h>
#include <unistd.h>

static __u64 state = 1;

static unsigned int draw(unsigned int below)
{
	state = u64_hash(state + 0x9e3779b97f4a7c15ull);
	return state % below;
}

#define KEYS   300
#define VALUES 8

/* Keys are few, and so removed and added again; KEYS * VALUES bits are the model. */
static void test_map(void **unused)
{
	static bool there[KEYS][VALUES];
	struct u64_map m = {};
	size_t n = 0;

	(void)unused;
	assert_int_equal(u64_map_get(&m, 0), U64_MAP_NONE);
	u64_map_remove(&m, 0, 0);
	for (int turn = 0; turn < 200000; turn++) {
		unsigned int k = draw(KEYS), v = draw(VALUES), seen = 0, want = 0;
		/* some of them share a home */
		__u64 key = k % 3 ? k : (__u64)k << 40;
		__u32 value;

		if (!there[k][v] && draw(2)) {
			assert_int_equal(u64_map_add(&m, key, v), 0);
			there[k][v] = true;
			n++;
		} else {
			u64_map_remove(&m, key, v);
			n -= there[k][v];
			there[k][v] = false;
		}
		assert_int_equal(m.n, n);
		k = draw(KEYS);
		key = k % 3 ? k : (__u64)k << 40;
		u64_map_for_each(value, &m, key)
		{
			assert_in_range(value, 0, VALUES - 1);
			assert_false(seen & 1u << value);
			seen |= 1u << value;
		}
		for (v = 0; v < VALUES; v++)
			want |= (unsigned int)there[k][v] << v;
		assert_int_equal(seen, want);
		assert_int_equal(u64_map_get(&m, key) == U64_MAP_NONE, !want);
	}
	u64_map_free(&m);
}

static void test_map_put(void **unused)
{
	struct u64_map m = {};

	(void)unused;
	for (__u32 i = 0; i < 1000; i++)
		assert_int_equal(u64_map_put(&m, i * 8, i), 0);
	for (__u32 i = 0; i < 1000; i++)
		assert_int_equal(u64_map_put(&m, i * 8, i + 1), 0);
	assert_int_equal(m.n, 1000);
	for (__u32 i = 0; i < 1000; i++)
		assert_int_equal(u64_map_get(&m, i * 8), i + 1);
	assert_int_equal(u64_map_get(&m, 1), U64_MAP_NONE);
	u64_map_free(&m);
}

static void test_intern(void **unused)
{
	struct intern in = {};
	char text[32];

	(void)unused;
	for (int turn = 0; turn < 2; turn++) {
		for (__u32 i = 0; i < 5000; i++) {
			snprintf(text, sizeof(text), "%x", i);
			assert_int_equal(intern_get(&in, text), i);
		}
	}
	assert_string_equal(intern_text(&in, 4095), "fff");
	assert_int_equal(intern_get(&in, ""), 5000);
	assert_int_equal(intern_get(&in, ""), 5000);
	intern_free(&in);
	assert_int_equal(intern_get(&in, "again"), 0);
	intern_free(&in);
}

static void test_key_map(void **unused)
{
	struct ibs_group_key key = { .comm = "a" };
	struct key_map m = {};

	(void)unused;
	assert_int_equal(key_map_find_id(&m, 7), -1);
	for (__u64 id = 0; id < 3000; id++)
		assert_int_equal(key_map_add_id(&m, id), id);
	for (__u64 id = 0; id < 3000; id++)
		assert_int_equal(key_map_find_id(&m, id), id);
	assert_int_equal(key_map_find(&m, &key), -1);
	key_map_free(&m);
}

static void test_array(void **unused)
{
	uint16_t *v = NULL, *before;
	size_t room = 0;

	(void)unused;
	assert_int_equal(array_reserve(v, room, 0), 0);
	assert_null(v);
	for (size_t n = 0; n < 10000; n++) {
		assert_int_equal(array_reserve(v, room, n + 1), 0);
		assert_true(room > n);
		v[n] = n;
	}
	for (size_t n = 0; n < 10000; n++)
		assert_int_equal(v[n], n);
	before = v;
	assert_int_equal(array_reserve(v, room, room), 0);
	assert_ptr_equal(v, before);
	/* a program that asks for more than there is exits with status 1 */
	for (size_t n = SIZE_MAX; n > SIZE_MAX / 8; n /= 3) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			array_reserve(v, room, n);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 1);
	}
	free(v);
}

static void test_array_zero(void **unused)
{
	uint64_t *v = NULL;
	size_t room = 0, old = 0;

	(void)unused;
	for (size_t n = 1; n < 5000; n = 3 * n + 1) {
		assert_int_equal(array_reserve_zero(v, room, n), 0);
		for (size_t i = 0; i < room; i++)
			assert_int_equal(v[i], i < old ? 77 : 0);
		for (; old < room; old++)
			v[old] = 77;
	}
	free(v);
}

static void test_heap(void **unused)
{
	struct heap h = {};
	__u64 last = 0, tie = 0;

	(void)unused;
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + draw(50);

		for (size_t i = 0; i < n; i++)
			heap_push(&h, (struct heap_item){ draw(20), i, &h });
		/* some move on, as a stream with more to come does */
		for (int i = 0; i < 20; i++) {
			struct heap_item first = h.item[0];

			first.key += draw(5);
			heap_replace_first(&h, first);
		}
		for (last = tie = 0; h.n; heap_pop(&h), n--) {
			assert_true(h.item[0].key > last ||
				    (h.item[0].key == last && h.item[0].tie >= tie));
			last = h.item[0].key;
			tie = h.item[0].tie;
			assert_ptr_equal(h.item[0].item, &h);
		}
		assert_int_equal(n, 0);
	}
	heap_free(&h);
}

static void test_count(void **unused)
{
	static const struct {
		unsigned long long n;
		const char *text;
	} cases[] = { { 0, "0" },
		      { 9, "9" },
		      { 999, "999" },
		      { 1000, "1,000" },
		      { 123456, "123,456" },
		      { 1234567, "1,234,567" },
		      { UINT64_MAX, "18,446,744,073,709,551,615" } };

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(TEXT_COUNT(cases[i].n), cases[i].text);
}

static void test_words(void **unused)
{
	static const char *const words[][2] = {
		{ "shop/db-0", "shop/db-0" }, { "", "''" },
		{ "a b", "'a b'" },	      { "$(x)", "'$(x)'" },
		{ "it's", "'it'\\''s'" },     { "~x", "'~x'" },
		{ "a\\b", "'a\\b'" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *text;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		text_put_word(f, words[i][0]);
		fclose(f);
		assert_string_equal(text, words[i][1]);
		free(text);
	}
	assert_string_equal(text_plural(0), "s");
	assert_string_equal(text_plural(1), "");
	assert_string_equal(text_plural(2), "s");
}

/* What was written is there after each flush; it can be thrown away. */
/* Runs that end up to two periods late, at random, leave the next one half a period. */
static void test_due_again(void **unused)
{
	double due = 0, last = -1, now = 0;

	(void)unused;
	assert_float_equal(due_again_s(10, 2, 10.5), 12, 0);
	assert_float_equal(due_again_s(10, 2, 11), 12, 0);
	assert_float_equal(due_again_s(10, 2, 11.9), 12.9, 0);
	assert_float_equal(due_again_s(10, 2, 17), 18, 0);
	for (int i = 0; i < 10000; i++) {
		now = (due > now ? due : now) + draw(200) / 100.;
		assert_true(due - last >= 0.5);
		last = now;
		due = due_again_s(due, 1, now);
	}
}

static void test_text_stream(void **unused)
{
	char *text = NULL;
	size_t n = 7;
	FILE *f = xmemopen(&text, &n);

	(void)unused;
	assert_string_equal(text, "");
	fputs("ab", f);
	assert_int_equal(ftell(f), 2);
	fflush(f);
	assert_string_equal(text, "ab");
	for (int i = 0; i < 10000; i++)
		fprintf(f, "%09d", i);
	assert_int_equal(ftell(f), 90002);
	xmemclose(f);
	assert_int_equal(n, 90002);
	assert_int_equal(strlen(text), n);
	assert_string_equal(text + n - 18, "000009998000009999");
	free(text);
	f = xmemopen(&text, &n);
	fputs("before", f);
	rewind(f);
	assert_int_equal(ftell(f), 0);
	fputs("x", f);
	xmemclose(f);
	assert_string_equal(text, "x");
	assert_int_equal(n, 1);
	free(text);
}

/* What a child says when memory runs out. Return: its exit status. */
static int out_of_memory_in_child(void (*say)(const void *arg), char *said, size_t size)
{
	int fd[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fd[1], STDERR_FILENO);
		out_of_memory_message = say;
		out_of_memory_arg = "what it was for\n";
		out_of_memory();
	}
	close(fd[1]);
	n = read(fd[0], said, size - 1);
	assert_true(n >= 0);
	said[n] = 0;
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void say_what(const void *arg)
{
	fputs(arg, stderr);
}

/* The process ends, and says why. */
static void test_out_of_memory(void **unused)
{
	char said[256];

	(void)unused;
	assert_int_equal(out_of_memory_in_child(NULL, said, sizeof(said)), EXIT_FAILED);
	assert_string_equal(said, "ibscope: error: out of memory\n");
	assert_int_equal(out_of_memory_in_child(say_what, said, sizeof(said)), EXIT_FAILED);
	assert_string_equal(said, "what it was for\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),	  cmocka_unit_test(test_map_put),
		cmocka_unit_test(test_intern),	  cmocka_unit_test(test_key_map),
		cmocka_unit_test(test_array),	  cmocka_unit_test(test_array_zero),
		cmocka_unit_test(test_heap),	  cmocka_unit_test(test_words),
		cmocka_unit_test(test_count),	  cmocka_unit_test(test_text_stream),
		cmocka_unit_test(test_due_again), cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
