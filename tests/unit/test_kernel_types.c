// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fields of kernel objects, from type information that is made here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "btf_file.h"
#include "tree.h"
#include "types/kernel_types.h"

static struct kernel_types *k;
static struct type_access got;

/*
 * struct pos  { int x, y; };
 * struct item { u64 key;                       0
 *               struct pos pos;                8
 *               struct pos row[3];             16
 *               union { int i; u64 l; } num;   40
 *               u8 low : 3; u16 mid : 13;      48, in two bytes
 *               union { u64 one, two; };       56
 *               const count_t count; };        64, an int, and four bytes of padding
 */
static void add_item(struct btf *b, int i32, int u64, int u16, int u8)
{
	const int pos = btf__add_struct(b, "pos", 8);
	int row, num, both, count;

	btf__add_field(b, "x", i32, 0, 0);
	btf__add_field(b, "y", i32, 32, 0);
	row = btf__add_array(b, i32, pos, 3);
	num = btf__add_union(b, "num", 8);
	btf__add_field(b, "i", i32, 0, 0);
	btf__add_field(b, "l", u64, 0, 0);
	both = btf__add_union(b, NULL, 8);
	btf__add_field(b, "one", u64, 0, 0);
	btf__add_field(b, "two", u64, 0, 0);
	count = btf__add_const(b, btf__add_typedef(b, "count_t", i32));
	btf__add_struct(b, "item", 72);
	btf__add_field(b, "key", u64, 0, 0);
	btf__add_field(b, "pos", pos, 8 * 8, 0);
	btf__add_field(b, "row", row, 16 * 8, 0);
	btf__add_field(b, "num", num, 40 * 8, 0);
	btf__add_field(b, "low", u8, 48 * 8, 3);
	btf__add_field(b, "mid", u16, 48 * 8 + 3, 13);
	btf__add_field(b, NULL, both, 56 * 8, 0);
	assert_int_equal(btf__add_field(b, "count", count, 64 * 8, 0), 0);
}

/*
 * struct more { where_t where;                                     0, a const struct pos
 *               u16 marks[4];                                      8
 *               union { u64 a, b, c; } any;                        16
 *               union { struct { u64 v; }; struct { u64 w; }; } either;  24
 *               struct pos *link; };                               32
 */
static void add_more(struct btf *b, int pos, int u64, int u16)
{
	const int where = btf__add_typedef(b, "where_t", btf__add_const(b, pos)),
		  marks = btf__add_array(b, u16, u16, 4), link = btf__add_ptr(b, pos);
	const int any = btf__add_union(b, NULL, 8);
	int one, two, either;

	btf__add_field(b, "a", u64, 0, 0);
	btf__add_field(b, "b", u64, 0, 0);
	btf__add_field(b, "c", u64, 0, 0);
	one = btf__add_struct(b, NULL, 8);
	btf__add_field(b, "v", u64, 0, 0);
	two = btf__add_struct(b, NULL, 8);
	btf__add_field(b, "w", u64, 0, 0);
	either = btf__add_union(b, NULL, 8);
	btf__add_field(b, NULL, one, 0, 0);
	btf__add_field(b, NULL, two, 0, 0);
	btf__add_struct(b, "more", 40);
	btf__add_field(b, "where", where, 0, 0);
	btf__add_field(b, "marks", marks, 8 * 8, 0);
	btf__add_field(b, "any", any, 16 * 8, 0);
	btf__add_field(b, "either", either, 24 * 8, 0);
	assert_int_equal(btf__add_field(b, "link", link, 32 * 8, 0), 0);
}

/* Structs with one member each. */
static void add_struct(struct btf *b, const char *name, unsigned int bytes, int u64)
{
	assert_true(btf__add_struct(b, name, bytes) > 0);
	assert_int_equal(btf__add_field(b, "first", u64, 0, 0), 0);
}

static int set_up(void **state)
{
	struct btf *b = btf__new_empty();
	struct err err = { "" };
	char path[128];
	int u64, u16, i32;

	new_root(state);
	i32 = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	u64 = btf__add_int(b, "u64", 8, 0);
	u16 = btf__add_int(b, "u16", 2, 0);
	add_item(b, i32, u64, u16, btf__add_int(b, "u8", 1, 0));
	add_more(b, btf__find_by_name_kind(b, "pos", BTF_KIND_STRUCT), u64, u16);
	add_struct(b, "twice", 8, u64);
	add_struct(b, "twice", 8, u64);
	add_struct(b, "sizes", 8, u64);
	add_struct(b, "sizes", 16, u64);
	add_struct(b, "file", 24, u64);
	add_struct(b, "task_struct", 32, u64);
	assert_true(btf__add_union(b, "one_union", 8) > 0);
	snprintf(path, sizeof(path), "%s/btf", root);
	btf_put(b, path);
	assert_int_equal(kernel_types_open(path, &k, &err), 0);
	return 0;
}

static int clean_up(void **state)
{
	kernel_types_close(k);
	return remove_root(state);
}

static void is(__u64 offset, unsigned int size, const char *field, __u64 begin, __u64 bytes)
{
	assert_true(kernel_types_field(k, "item", 72, offset, size, &got));
	assert_int_equal(got.kind, TYPE_SLAB);
	assert_string_equal(got.type, "struct item");
	assert_string_equal(got.field, field);
	assert_int_equal(got.offset, offset);
	assert_int_equal(got.field_offset, begin);
	assert_int_equal(got.field_size, bytes);
}

static void test_field(void **state)
{
	(void)state;
	is(0, 8, "key", 0, 8);
	is(7, 1, "key", 0, 8);
	is(8, 4, "pos.x", 8, 4);
	is(12, 4, "pos.y", 12, 4);
	/* that of the first element, for all */
	is(16, 4, "row[].x", 16, 4);
	is(20, 4, "row[].y", 20, 4);
	is(36, 4, "row[].y", 20, 4);
	is(64, 4, "count", 64, 4);
	is(67, 0, "count", 64, 4);
}

/* In a union, the size of the access tells; several members, or padding, have no size. */
static void test_ambiguous(void **state)
{
	(void)state;
	is(40, 4, "num.i", 40, 4);
	is(40, 8, "num.l", 40, 8);
	is(44, 0, "num.l", 40, 8);
	is(40, 0, "num.i|l", 0, 0);
	is(44, 4, "num.[padding]", 0, 0);
	is(56, 8, "one|two", 0, 0);
	is(48, 1, "low|mid", 0, 0);
	is(49, 1, "mid", 48, 2);
	is(50, 1, "[padding]", 0, 0);
	is(55, 1, "[padding]", 0, 0);
	is(68, 4, "[padding]", 0, 0);
}

static void list(const char *path, __u64 offset, __u64 size, void *arg)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s %llu %llu\n", path, offset, size);
}

static void more(__u64 offset, unsigned int size, const char *field, __u64 begin, __u64 bytes)
{
	assert_true(kernel_types_field(k, "more", 40, offset, size, &got));
	assert_string_equal(got.type, "struct more");
	assert_string_equal(got.field, field);
	assert_int_equal(got.field_offset, begin);
	assert_int_equal(got.field_size, bytes);
}

/* A struct by another name, arrays of numbers, members without a name, and pointers. */
static void test_more(void **state)
{
	char text[1024] = "";

	(void)state;
	more(0, 4, "where.x", 0, 4);
	more(4, 4, "where.y", 4, 4);
	more(8, 2, "marks[]", 8, 2);
	more(12, 2, "marks[]", 8, 2);
	more(16, 8, "any.a|b|c", 0, 0);
	more(24, 8, "either.[unnamed]|[unnamed]", 0, 0);
	more(32, 8, "link", 32, 8);
	assert_true(kernel_types_layout(k, "struct more", list, text));
	assert_string_equal(text, "where.x 0 4\n"
				  "where.y 4 4\n"
				  "marks[] 8 2\n"
				  "any.a 16 8\n"
				  "any.b 16 8\n"
				  "any.c 16 8\n"
				  "either.v 24 8\n"
				  "either.w 24 8\n"
				  "link 32 8\n");
}

/* Exactly one struct must have the name of the cache and the size of its objects. */
static void test_caches(void **state)
{
	(void)state;
	assert_false(kernel_types_field(k, "item", 80, 0, 8, &got));
	assert_false(kernel_types_field(k, "item2", 72, 0, 8, &got));
	assert_false(kernel_types_field(k, "twice", 8, 0, 8, &got));
	assert_false(kernel_types_field(k, "one_union", 8, 0, 8, &got));
	assert_true(kernel_types_field(k, "sizes", 16, 8, 8, &got));
	assert_string_equal(got.field, "[padding]");
	/* caches with another name than their struct */
	assert_true(kernel_types_field(k, "filp", 24, 0, 8, &got));
	assert_string_equal(got.type, "struct file");
	assert_string_equal(got.field, "first");
	assert_false(kernel_types_field(k, "cred_jar", 24, 0, 8, &got));
	assert_false(kernel_types_field(k, "file_lock_cache", 24, 0, 8, &got));
}

/* Objects that are longer than their struct. */
static void test_longer(void **state)
{
	(void)state;
	assert_true(kernel_types_field(k, "task_struct", 4000, 0, 8, &got));
	assert_string_equal(got.type, "struct task_struct");
	assert_string_equal(got.field, "first");
	assert_int_equal(got.field_size, 8);
	assert_true(kernel_types_field(k, "task_struct", 4000, 31, 1, &got));
	assert_string_equal(got.field, "[padding]");
	assert_true(kernel_types_field(k, "task_struct", 4000, 32, 8, &got));
	assert_int_equal(got.kind, TYPE_SLAB);
	assert_string_equal(got.field, "[behind the struct]");
	assert_int_equal(got.offset, 32);
	assert_int_equal(got.field_size, 0);
}

/* One that is longer than the objects is another struct. */
static void test_not_longer(void **state)
{
	(void)state;
	assert_false(kernel_types_field(k, "task_struct", 31, 0, 8, &got));
}

static void test_as_long(void **state)
{
	(void)state;
	assert_true(kernel_types_field(k, "task_struct", 32, 0, 8, &got));
}

static void test_layout(void **state)
{
	char text[1024] = "";

	(void)state;
	/* before an access was found */
	assert_false(kernel_types_layout(k, "struct item", list, text));
	assert_true(kernel_types_field(k, "filp", 24, 0, 8, &got));
	assert_true(kernel_types_field(k, "item", 72, 0, 8, &got));
	assert_false(kernel_types_field(k, "twice", 8, 0, 8, &got));
	assert_false(kernel_types_layout(k, "item", list, text));
	assert_false(kernel_types_layout(k, "struct twice", list, text));
	assert_true(kernel_types_layout(k, "struct item", list, text));
	assert_string_equal(text, "key 0 8\n"
				  "pos.x 8 4\n"
				  "pos.y 12 4\n"
				  "row[].x 16 4\n"
				  "row[].y 20 4\n"
				  "num.i 40 4\n"
				  "num.l 40 8\n"
				  "low 48 1\n"
				  "mid 48 2\n"
				  "one 56 8\n"
				  "two 56 8\n"
				  "count 64 4\n");
	*text = 0;
	assert_true(kernel_types_layout(k, "struct file", list, text));
	assert_string_equal(text, "first 0 8\n");
}

static void test_open(void **state)
{
	struct kernel_types *none = NULL;
	struct err err = { "" };
	char path[128];

	(void)state;
	assert_int_equal(kernel_types_open("/nowhere/btf", &none, &err), -ENOENT);
	assert_string_equal(err.text, "/nowhere/btf: cannot read type information (BTF): "
				      "No such file or directory");
	put_file("/text", "This is no type information, but a text of some length.\n");
	snprintf(path, sizeof(path), "%s/text", root);
	assert_true(kernel_types_open(path, &none, &err) < 0);
	assert_null(none);
	kernel_types_close(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_field),	 T(test_ambiguous), T(test_more),
		T(test_caches),	 T(test_longer),    T(test_not_longer),
		T(test_as_long), T(test_layout),    T(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
