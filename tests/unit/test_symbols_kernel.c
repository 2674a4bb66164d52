// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions and variables by address, in lists as of /proc/kallsyms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>

#include "symbols/symbols_kernel.h"
#include "tree.h"

#define AT(offset) (0xffffffff81000000ull + (offset))
#define MIB	   (1ull << 20)

static struct kernel_symbols *k;
static struct err err;
static char path[128];

static int open_list(const char *list, __u64 shift, bool core)
{
	kernel_symbols_close(k);
	k = NULL;
	put_file("/list", list);
	snprintf(path, sizeof(path), "%s/list", root);
	return kernel_symbols_open(path, shift, core, &k, &err);
}

static int clean_up(void **state)
{
	kernel_symbols_close(k);
	k = NULL;
	return remove_root(state);
}

static void is(__u64 addr, const char *name, const char *module)
{
	const char *of = NULL, *found = kernel_symbols_find(k, addr, &of);

	assert_string_equal(found ?: "(none)", name ?: "(none)");
	assert_string_equal(of ?: "(none)", module ?: "(none)");
}

static void variable(__u64 addr, const char *name, __u64 at, const char *module)
{
	const char *of = NULL, *found;
	__u64 offset = 0;

	found = kernel_symbols_variable(k, addr, &offset, &of);
	assert_string_equal(found ?: "(none)", name ?: "(none)");
	assert_string_equal(of ?: "(none)", module ?: "(none)");
	assert_int_equal(offset, at);
}

/* Lines in any order; those that are not symbols of code or data, or not of the kernel, say nothing. */
#define FUNCTIONS                       \
	"ffffffff81000300 W weak\n"     \
	"ffffffff81000100 T first\n"    \
	"ffffffff81000200 t second\n"   \
	"ffffffff81000200 T same\n"     \
	"ffffffff81000280 A absolute\n" \
	"0000000000001000 T low\n"      \
	"ffffffff81000290 T\n"          \
	"ffffffff810002a0 T \n"         \
	"ffffffff810002b0T joined\n"    \
	"no number at all\n"            \
	"ffffffffc0000000 t in_module\t[mod]\n"

static void test_functions(void **state)
{
	__u64 addr = 0, start, end;

	(void)state;
	assert_int_equal(open_list(FUNCTIONS, 0, false), 0);
	is(AT(0xff), NULL, NULL);
	is(AT(0x100), "first", NULL);
	is(AT(0x1ff), "first", NULL);
	is(AT(0x200), "second", NULL); /* the first of the list */
	is(AT(0x2ff), "second", NULL);
	is(AT(0x300), "weak", NULL);
	/* the last one before a gap */
	is(AT(0x300) + MIB - 1, "weak", NULL);
	is(AT(0x300) + MIB, NULL, NULL);
	is(0xffffffffc0000010, "in_module", "[mod]");
	assert_true(kernel_symbols_address(k, "weak", &addr));
	assert_int_equal(addr, AT(0x300));
	assert_false(kernel_symbols_address(k, "absolute", &addr));
	assert_false(kernel_symbols_address(k, "low", &addr));
	assert_false(kernel_symbols_bounds(k, AT(0xff), &start, &end));
	assert_true(kernel_symbols_bounds(k, AT(0x1ff), &start, &end));
	assert_int_equal(start, AT(0x100));
	assert_int_equal(end, AT(0x200));
	assert_true(kernel_symbols_bounds(k, AT(0x200), &start, &end));
	assert_int_equal(start, AT(0x200));
	assert_int_equal(end, AT(0x300));
	assert_true(kernel_symbols_bounds(k, AT(0x300) + MIB - 1, &start, &end));
	assert_int_equal(start, AT(0x300));
	assert_int_equal(end, AT(0x300) + MIB);
	assert_false(kernel_symbols_bounds(k, AT(0x300) + MIB, &start, &end));
	assert_true(kernel_symbols_bounds(k, 0xffffffffc0000010, &start, &end));
	assert_int_equal(end, 0xffffffffc0000011); /* nothing is behind it */
	/* another boot: the kernel is elsewhere, and where modules are is not known */
	assert_int_equal(open_list(FUNCTIONS, 0x1000, true), 0);
	is(AT(0x1100), "first", NULL);
	is(AT(0x300), NULL, NULL);
	is(0xffffffffc0001010, NULL, NULL);
}

/* One ends where the next symbol begins, of the same module or the kernel; the last one's end is not known. */
static void test_variables(void **state)
{
	(void)state;
	assert_int_equal(open_list("ffffffff81000100 T code\n"
				   "ffffffff82000000 D __start_data\n"
				   "ffffffff82000000 D jiffies\n"
				   "ffffffff82000010 d _edata\n"
				   "ffffffff82000020 B bss\n"
				   "ffffffff82000040 T between\n"
				   "ffffffff82000050 R read_only\n"
				   "ffffffff82000060 V last\n"
				   "ffffffffc0000000 d of_mod\t[mod]\n"
				   "ffffffffc0000010 b end_of_mod\t[mod]\n"
				   "ffffffffc0000020 d other\t[other]\n"
				   "ffffffffc0000030 t code_of_other\t[other]\n",
				   0, false),
			 0);
	variable(AT(0x1000000 - 1), NULL, 0, NULL);
	variable(AT(0x1000000), "jiffies", 0, NULL); /* the other name is a mark */
	variable(AT(0x100000f), "jiffies", 15, NULL);
	variable(AT(0x1000010), NULL, 0, NULL); /* between sections */
	variable(AT(0x1000020), "bss", 0, NULL);
	variable(AT(0x100003f), "bss", 31, NULL);
	variable(AT(0x1000040), NULL, 0, NULL); /* code */
	variable(AT(0x1000051), "read_only", 1, NULL);
	variable(AT(0x1000060), NULL, 0, NULL);
	variable(0xffffffffc0000004, "of_mod", 4, "[mod]");
	variable(0xffffffffc0000010, NULL, 0, NULL);
	variable(0xffffffffc0000024, "other", 4, "[other]"); /* up to the code of its module */
	assert_int_equal(open_list("ffffffff81000100 T code\n"
				   "ffffffff82000000 D large\n"
				   "ffffffff83000000 D next\n",
				   0, false),
			 0);
	variable(AT(0x1000000) + MIB - 1, "large", MIB - 1, NULL);
	variable(AT(0x1000000) + MIB, NULL, 0, NULL);
	variable(AT(0), NULL, 0, NULL);
}

/* Marks of the linker are not variables. */
static void test_marks(void **state)
{
	static const char *const marks[] = { "_data",	    "_sdata",	  "_edata",    "_end",
					     "__bss_start", "__bss_stop", "__start_x", "__stop_x",
					     "__begin_x",   "__end_x" };
	static const char *const others[] = { "_data1", "__bss_starts", "x__start_", "__start" };
	char list[256];

	(void)state;
	for (size_t i = 0; i < 14; i++) {
		const char *name = i < 10 ? marks[i] : others[i - 10];

		snprintf(list, sizeof(list),
			 "ffffffff81000100 T code\nffffffff82000000 D %s\n"
			 "ffffffff82000010 D next\n",
			 name);
		assert_int_equal(open_list(list, 0, false), 0);
		variable(AT(0x1000002), i < 10 ? NULL : name, i < 10 ? 0 : 2, NULL);
	}
}

static void test_bad_lists(void **state)
{
	char want[256];

	(void)state;
	assert_int_equal(open_list("ffffffff82000000 D only_data\n", 0, false), -EPERM);
	snprintf(want, sizeof(want),
		 "%s: no addresses of the kernel in it; without privilege they are hidden "
		 "(kernel.kptr_restrict)",
		 path);
	assert_string_equal(err.text, want);
	assert_int_equal(open_list("0000000000000000 T _text\n", 0, false), -EPERM);
	assert_int_equal(kernel_symbols_open("/nowhere/list", 0, false, &k, &err), -ENOENT);
	assert_string_equal(err.text, "cannot open /nowhere/list: No such file or directory");
	assert_int_equal(kernel_symbols_open("/dev/null", 0, false, &k, &err), -EINVAL);
	assert_string_equal(err.text, "cannot open /dev/null: not a regular file");
	kernel_symbols_close(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_functions), T(test_variables), T(test_marks),
					    T(test_bad_lists) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
