// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the process that reads object files answers: the same as when a file is read here. The file is a program with
 * debug information that a compiler makes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "naming/elf_file.h"
#include "naming/elf_file_private.h"
#include "naming/naming.h"
#include "tree.h"

#define STEP 3 /* offsets that are looked at: most instructions */

static struct naming *naming;
static struct object *object;
static struct elf_file *file;
static char path[256];
static __u64 size;

static int make_program(void)
{
	char command[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/prog", root);
	snprintf(command, sizeof(command), "cc -O2 -g -x c -o %s -", path);
	f = popen(command, "w");
	fputs("struct pos { int x, y; };\n"
	      "struct item { long id; struct pos pos; struct pos more[3]; struct item *next; };\n"
	      "struct item items[3]; struct item *first = items; int counter;\n"
	      "#define IN static inline __attribute__((always_inline)) int\n"
	      "#define OUT __attribute__((noinline)) int\n"
	      "IN once(int n) { return n * 7 + 3; }\n"
	      "IN twice(int n) { return once(n) * once(n + 1); }\n"
	      "OUT sum(struct item *i) { int s = 0; for (; i; i = i->next) s += twice(i->pos.y) + "
	      "i->more[1].x; return s; }\n"
	      "OUT count(int n) { counter += n; items[1].id = n; return sum(first) + counter; }\n"
	      "int main(int n, char **v) { (void)v; return count(once(n)) + sum(items + n); }\n",
	      f);
	return pclose(f);
}

static int begin(void **state)
{
	const struct object_place place = { .path = path, .trusted = true };
	const struct elf_file_opts opts = { .trusted = true };
	struct stat st;
	char why[160] = "";

	if (new_root(state) || make_program() || stat(path, &st))
		return -1;
	size = st.st_size;
	naming = naming_new(&(struct naming_opts){ .wall_s = 1000 });
	object = object_open(naming, &place, why, sizeof(why));
	file = elf_file_open(path, NULL, 0, &opts, why, sizeof(why));
	if (!object || !file)
		print_error("%s\n", why);
	return object && file ? 0 : -1;
}

static int end(void **state)
{
	object_close(object);
	object_close(NULL);
	naming_free(naming);
	elf_file_close(file);
	return remove_root(state);
}

static void same(const char *a, const char *b)
{
	assert_string_equal(a ?: "(none)", b ?: "(none)");
}

static void test_symbols(void **state)
{
	struct object_name name;
	struct addr_span span;
	unsigned int found = 0;

	(void)state;
	for (int again = 0; again < 2; again++)
		for (__u64 at = 0; at < size; at += STEP) {
			const char *want = elf_file_symbol(file, at, &span);

			assert_int_equal(object_symbol(object, at, &name), want != NULL);
			if (!want)
				continue;
			same(name.name, want);
			assert_null(name.mangled);
			found += !strcmp(want, "sum");
		}
	assert_true(found > 20);
	assert_false(object_symbol(object, size + 1000000, &name));
	assert_false(naming_is_over(naming));
	assert_null(object_problem(object));
	assert_false(object_lacks_time(object));
}

static void test_functions(void **state)
{
	struct elf_file_function want;
	struct object_function f;
	unsigned char has[64], wants[64];
	unsigned int found = 0;
	__u64 at, want_at;

	(void)state;
	for (__u64 offset = 0; offset < size; offset += STEP) {
		const bool known = elf_file_function(file, offset, &want, &want_at);

		assert_int_equal(object_function(object, offset, &f, &at), known);
		if (!known)
			continue;
		same(f.name, want.name);
		assert_int_equal(f.start, want.start);
		assert_int_equal(f.size, want.size);
		assert_int_equal(at, want_at);
		same(object_name(object, at), elf_file_name(file, at));
		assert_int_equal(object_code(object, offset, has, 16),
				 elf_file_code(file, offset, wants, 16));
		if (strcmp(want.name, "main") != 0)
			continue;
		found++;
		same(object_name(object, want.start), "main");
		assert_int_equal(object_read(object, want.start, has, 20),
				 elf_file_read(file, want.start, wants, 20));
		assert_memory_equal(has, wants, 20);
	}
	assert_true(found > 5);
	assert_int_equal(object_is_go(object), elf_file_is_go(file));
}

/* More than a reply has room for. */
static void test_read(void **state)
{
	unsigned char *has = malloc(size), *want = malloc(size);
	struct elf_file_function f;
	size_t n;
	__u64 at;

	(void)state;
	for (at = 0; at < size; at++)
		if (elf_file_function(file, at, &f, &at))
			break;
	elf_file_address(file, 0, &at);
	n = elf_file_read(file, at, want, size);
	assert_true(n > 100);
	assert_int_equal(object_read(object, at, has, size), n);
	assert_memory_equal(has, want, n);
	assert_int_equal(object_read(object, 1ull << 40, has, 16), 0);
	free(has);
	free(want);
}

static void test_lines(void **state)
{
	struct source_place has, want;
	unsigned int found = 0;
	char text[512];

	(void)state;
	for (__u64 offset = 0; offset < size; offset += STEP) {
		const bool srcline = elf_file_srcline(file, offset, text, sizeof(text));
		__u64 at;
		bool known;

		same(object_srcline(object, offset), srcline ? text : NULL);
		if (!elf_file_address(file, offset, &at))
			continue;
		known = elf_file_line(file, at, &want);
		assert_int_equal(object_line(object, at, &has), known);
		if (!known)
			continue;
		found++;
		same(has.file, want.file);
		same(has.dir, want.dir);
		assert_int_equal(has.line, want.line);
	}
	assert_true(found > 20);
}

static void same_type(const struct type_access *has, const struct type_access *want)
{
	assert_int_equal(has->kind, want->kind);
	same(has->type, want->type);
	same(has->field, want->field);
	assert_int_equal(has->offset, want->offset);
	assert_int_equal(has->field_offset, want->field_offset);
	assert_int_equal(has->field_size, want->field_size);
}

static void add_field(const char *field, __u64 offset, __u64 bytes, void *arg)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s %llu %llu\n", field, offset, bytes);
}

static void test_types(void **state)
{
	struct type_access has, want;
	unsigned int found = 0;
	char text[512] = "";

	(void)state;
	assert_false(object_layout(object, "struct item", add_field, text));
	for (__u64 offset = 0; offset < size; offset++) {
		__u64 at;

		elf_file_type(file, offset, &want);
		object_type(object, offset, &has);
		same_type(&has, &want);
		found += TYPE_FOUND(want.kind) && want.field != NULL;
		if (!elf_file_address(file, offset, &at))
			continue;
		object_code_type(object, at, &has);
		same_type(&has, &want);
	}
	assert_true(found > 2);
	assert_true(object_layout(object, "struct item", add_field, text));
	assert_string_equal(text, "id 0 8\npos.x 8 4\npos.y 12 4\nmore[].x 16 4\nmore[].y 20 4\n"
				  "next 40 8\n");
	assert_false(object_layout(object, "struct other", add_field, text));
}

/* By a map of code, from which all distances count. */
static void test_variables(void **state)
{
	unsigned int found = 0, typed = 0;
	struct type_access has, want;
	struct object_name name;
	const char *want_name;
	__u64 at, want_at;

	(void)state;
	for (__u64 offset = 0x1000; offset < 0x6000; offset++) {
		const bool known =
			elf_file_variable(file, 0x1000, true, offset, &want_name, &want_at);

		assert_int_equal(object_variable(object, 0x1000, true, offset, &name, &at), known);
		if (!known)
			continue;
		same(name.name, want_name);
		if (want_name)
			assert_int_equal(at, want_at);
		found += want_name && !strcmp(want_name, "items");
		elf_file_variable_type(file, 0x1000, true, offset, 4, &want);
		object_variable_type(object, 0x1000, true, offset, 4, &has);
		same_type(&has, &want);
		typed += TYPE_FOUND(want.kind) && want.field && !strcmp(want.field, "more[].y");
	}
	assert_int_equal(found, 3 * 48);
	assert_true(typed >= 3 * 3); /* an access may be of part of one */
}

static void test_inlined(void **state)
{
	unsigned int deep = 0;

	(void)state;
	for (__u64 offset = 0; offset < size; offset += STEP) {
		const struct inlined *f = object_inlined(object, offset);
		struct types_inlined want;
		unsigned int level = 0;
		__u64 at;

		if (elf_file_address(file, offset, &at))
			assert_ptr_equal(object_inlined_at(object, at), f);
		for (; elf_file_inlined(file, offset, false, level, &want); level++, f = f->into) {
			assert_non_null(f);
			same(f->function.name, want.name);
			assert_int_equal(f->line, want.line);
			assert_int_equal(f->file != NULL, want.file != NULL);
		}
		assert_null(f);
		deep += level == 2;
	}
	assert_true(deep > 2);
}

static void same_rule(const struct frame_rule *has, const struct frame_rule *want)
{
	assert_int_equal(has->kind, want->kind);
	assert_int_equal(has->base, want->base);
	assert_int_equal(has->offset, want->offset);
	assert_int_equal(has->more, want->more);
}

static void test_frames(void **state)
{
	unsigned int found = 0;

	(void)state;
	for (int again = 0; again < 2; again++)
		for (__u64 offset = 0; offset < size; offset += STEP) {
			const struct frame_row *has = object_frame(object, offset);
			struct frame_row want;
			const bool known = elf_file_frame(file, offset, &want);

			assert_int_equal(has != NULL, known);
			if (!known)
				continue;
			found++;
			same_rule(&has->cfa, &want.cfa);
			for (int i = 0; i < FRAME_REGS; i++)
				same_rule(&has->reg[i], &want.reg[i]);
			assert_int_equal(has->of_signal, want.of_signal);
		}
	assert_true(found > 20);
}

/* The process has what a loader and sanitizers need of the environment, and nothing else. */
static void test_environment(void **state)
{
	const struct object_place place = { .path = path, .trusted = true };
	struct naming *n = naming_new(&(struct naming_opts){ 0 });
	char name[64], text[4096] = "", why[160];
	struct object_name symbol;
	unsigned int found = 0;
	struct object *o;
	FILE *f;

	(void)state;
	setenv("LD_LIBRARY_PATH", "/nowhere/lib", 1);
	setenv("SECRET", "x", 1);
	o = object_open(n, &place, why, sizeof(why));
	assert_non_null(o);
	object_symbol(o, 0x1000, &symbol);
	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", getpid(), getpid());
	f = fopen(name, "r");
	for (int pid; fscanf(f, "%d", &pid) == 1;) {
		FILE *e;
		size_t len;

		snprintf(name, sizeof(name), "/proc/%d/environ", pid);
		e = fopen(name, "r");
		len = e ? fread(text, 1, sizeof(text) - 1, e) : 0;
		if (e)
			fclose(e);
		found += memmem(text, len, "LD_LIBRARY_PATH=/nowhere/lib", 28) != NULL;
		assert_null(memmem(text, len, "SECRET", 6));
	}
	fclose(f);
	unsetenv("LD_LIBRARY_PATH");
	assert_int_equal(found, 1); /* of the two workers, the new one */
	object_close(o);
	naming_free(n);
}

/* The debug file that a program names is opened for the process that reads it: beside the program, or in .debug. */
static void test_debug_link(void **state)
{
	char command[1024], stripped[512], why[160];
	const struct object_place place = { .path = stripped, .trusted = true };
	struct naming *n = naming_new(&(struct naming_opts){ 0 });
	struct elf_file_function f;
	struct object_name name;
	__u64 at, offset = 0;

	(void)state;
	while (!elf_file_function(file, offset, &f, &at) || strcmp(f.name, "sum"))
		offset++;
	snprintf(stripped, sizeof(stripped), "%s/stripped", root);
	snprintf(command, sizeof(command),
		 "cd %s && objcopy --only-keep-debug prog x.debug && strip -o stripped prog && "
		 "objcopy --add-gnu-debuglink=x.debug stripped",
		 root);
	assert_int_equal(system(command), 0);
	for (int k = 0; k < 3; k++) {
		struct object *o = object_open(n, &place, why, sizeof(why));

		assert_non_null(o);
		assert_int_equal(object_symbol(o, offset, &name), k < 2);
		if (k < 2)
			assert_string_equal(name.name, "sum");
		object_close(o);
		snprintf(command, sizeof(command), "cd %s && mkdir -p .debug && mv %s %s", root,
			 k ? ".debug/x.debug" : "x.debug", k ? "elsewhere" : ".debug");
		if (k < 2)
			assert_int_equal(system(command), 0);
	}
	naming_free(n);
}

/* In an attempt without time nothing is read; later it is. */
static void test_deferred(void **state)
{
	const struct object_place place = { .path = path, .trusted = true };
	struct naming *n = naming_new(&(struct naming_opts){ 0 });
	struct object_name name;
	struct elf_file_function f;
	struct object *o;
	char why[160];
	__u64 at, offset = 0;

	(void)state;
	while (!elf_file_function(file, offset, &f, &at) || strcmp(f.name, "sum"))
		offset++;
	naming_limit_attempt(n, 0);
	o = object_open(n, &place, why, sizeof(why));
	assert_non_null(o);
	assert_true(object_deferred(o));
	assert_false(object_symbol(o, offset, &name));
	object_rest(o);
	naming_limit_attempt(n, INFINITY);
	object_attempt(o);
	assert_true(object_symbol(o, offset, &name));
	assert_string_equal(name.name, "sum");
	assert_false(object_deferred(o));
	assert_true(object_cost(o) > 0);
	object_close(o);
	naming_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),	    cmocka_unit_test(test_functions),
		cmocka_unit_test(test_read),	    cmocka_unit_test(test_lines),
		cmocka_unit_test(test_types),	    cmocka_unit_test(test_variables),
		cmocka_unit_test(test_inlined),	    cmocka_unit_test(test_frames),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_deferred),
		cmocka_unit_test(test_debug_link),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
