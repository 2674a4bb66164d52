// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who reads and writes the fields of a type, and which bytes of its cache lines: of made objects of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "btf_file.h"
#include "tree.h"

#include "report/report_print.h"

#define KERNEL 0xffffffff81000000ull
#define SLAB   0xffff888000010000ull /* a page of objects */
#define ITEM   0x1000		     /* ids of slab caches */
#define LARGE  0x2000
#define MERGED 0x3000

enum { ALPHA = 1, BETA, FAULT, GAMMA, HANDLE }; /* functions, 256 bytes each */

static const struct trace_info info = { .host = "another machine" };
static struct tasks *tasks;
static struct symbols *symbols;
static struct report *r;

/*
 * struct item { u64 key; int count;  0, 8
 *               u64 next;            16
 *               u64 far;             64
 *               u64 tail; };         136, and 16 bytes of padding
 * struct large { u64 first, across, last; };  0, 4092 and 4992, of 5000
 */
static void put_types(const char *path)
{
	struct btf *b = btf__new_empty();
	const int i32 = btf__add_int(b, "int", 4, BTF_INT_SIGNED),
		  u64 = btf__add_int(b, "u64", 8, 0);

	btf__add_struct(b, "item", 160);
	btf__add_field(b, "key", u64, 0, 0);
	btf__add_field(b, "count", i32, 8 * 8, 0);
	btf__add_field(b, "next", u64, 16 * 8, 0);
	btf__add_field(b, "far", u64, 64 * 8, 0);
	btf__add_field(b, "tail", u64, 136 * 8, 0);
	btf__add_struct(b, "large", 5000);
	btf__add_field(b, "first", u64, 0, 0);
	btf__add_field(b, "across", u64, 4092 * 8, 0);
	assert_int_equal(btf__add_field(b, "last", u64, 4992 * 8, 0), 0);
	btf_put(b, path);
}

static void put_cache(__u64 id, __u32 object_size, __u32 size, __u32 pad, const char *name)
{
	struct trace_event ev = { .kind = TRACE_SLAB };

	ev.slab = (struct ibs_slab){ .id = id,
				     .object_size = object_size,
				     .size = size,
				     .pad = pad,
				     .order = 1,
				     .min_order = 1,
				     .merged = id == MERGED };
	strcpy(ev.slab.name, name);
	tasks_add(tasks, &ev);
}

static int set_up(void **state)
{
	struct trace_event map = { .kind = TRACE_MMAP,
				   .mmap = { .kernel = true,
					     .exec = true,
					     .start = KERNEL,
					     .len = 0x10000,
					     .path = "[kernel.kallsyms]" } };
	static char btf[128], list[128];
	const struct symbols_opts opts = { .info = &info, .btf = btf, .kallsyms = list };

	new_root(state);
	snprintf(btf, sizeof(btf), "%s/btf", root);
	snprintf(list, sizeof(list), "%s/list", root);
	put_types(btf);
	put_file("/list", "ffffffff81000000 T _text\n"
			  "ffffffff81000100 T alpha\n"
			  "ffffffff81000200 T beta\n"
			  "ffffffff81000300 T fault\n"
			  "ffffffff81000400 T gamma\n"
			  "ffffffff81000500 T handle\n"
			  "ffffffff81000600 T last\n");
	tasks = tasks_new();
	tasks_add(tasks, &map);
	put_cache(ITEM, 160, 176, 16, "item");
	put_cache(LARGE, 5000, 8192, 0, "large");
	put_cache(MERGED, 32, 32, 0, "other");
	return symbols_new(&opts, &symbols, NULL);
}

static int clean_up(void **state)
{
	report_free(r);
	r = NULL;
	symbols_free(symbols);
	tasks_free(tasks);
	return remove_root(state);
}

static void begin(const char *type)
{
	struct report_opts opts = { .n_by = REPORT_LAYOUT_KEYS,
				    .type = type,
				    .info = &info,
				    .tasks = tasks,
				    .symbols = symbols };

	memcpy(opts.by, report_layout_keys, sizeof(report_layout_keys));
	report_free(r);
	assert_int_equal(report_new(&opts, &r, NULL), 0);
}

/* @n accesses of a cache by a function, 0: by an unknown one, @at bytes into the page */
static void access_slab(__u64 cache, int function, __u64 at, bool store, unsigned int n)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct trace_sample *s = &ev.sample;

	s->has_ip = function;
	s->ip = KERNEL + 0x100 * function + 4;
	s->kernel = true;
	s->slab = cache | IBS_SLAB_ORDER;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_DATA3] =
		IBS_OP_DATA3_LIN_VALID | (store ? IBS_OP_DATA3_ST_OP : IBS_OP_DATA3_LD_OP);
	s->op.reg[IBS_DC_LINADDR] = SLAB + at;
	while (n--)
		assert_int_equal(report_add(r, &ev), 0);
}

static const char *print(void)
{
	static char text[16384];
	FILE *f;

	*text = 0;
	f = fmemopen(text, sizeof(text), "w");
	report_layout_print(f, r);
	fclose(f);
	return text;
}

#define BEGIN 16 /* of the first item of the page */
#define FIELD "\nfield                    readers; writers\n"
#define REST  "................................................" /* 48 bytes */

/* Most accesses first, of equal ones by name; a byte that both reads and writes reach is a written one. */
static void test_fields(void **state)
{
	(void)state;
	begin("struct item");
	access_slab(ITEM, FAULT, BEGIN, false, 2);
	access_slab(ITEM, HANDLE, BEGIN + 4, false, 3);
	access_slab(ITEM, GAMMA, BEGIN, false, 1);
	access_slab(ITEM, BETA, BEGIN, false, 1);
	access_slab(ITEM, ALPHA, BEGIN, false, 1);
	access_slab(ITEM, ALPHA, BEGIN + 8, false, 1);
	access_slab(ITEM, BETA, BEGIN + 8, false, 4);
	access_slab(ITEM, FAULT, BEGIN + 8, true, 2);
	access_slab(ITEM, 0, BEGIN + 64, false, 1);
	access_slab(ITEM, HANDLE, BEGIN + 136, true, 1);
	access_slab(ITEM, HANDLE, BEGIN + 150, true, 1);
	access_slab(MERGED, HANDLE, BEGIN, true, 1); /* another type */
	assert_string_equal(print(), FIELD
			    "key                      handle 3, fault 2, alpha 1, 2 more; none\n"
			    "count                    beta 4, alpha 1; fault 2\n"
			    "far                      [unknown] 1; none\n"
			    "tail                     none; handle 1\n"
			    "[padding]                none; handle 1\n"
			    "\nobjects begin 16 bytes into a cache line\n"
			    "0         rrrrrrrrwwww...." REST "\n"
			    "64        rrrrrrrr........" REST "\n"
			    "128       ........wwwwwwww\n");
	/* the next object begins 192 bytes into the page */
	access_slab(ITEM, HANDLE, BEGIN + 176, false, 1);
	access_slab(ITEM, HANDLE, BEGIN + 176 + 16, true, 1);
	assert_non_null(strstr(print(), "next                     none; handle 1\n"));
	assert_non_null(strstr(print(), "\nobjects begin at 2 different offsets in cache lines\n"
					"0         rrrrrrrrwwww....wwwwwwww"));
}

/* Of a cache whose type is not known, neither fields are nor where objects begin. */
static void test_unknown(void **state)
{
	(void)state;
	begin("[slab other]");
	assert_string_equal(print(), "");
	access_slab(MERGED, ALPHA, 8, false, 2);
	access_slab(MERGED, BETA, 8, true, 1);
	assert_string_equal(print(), FIELD "[unknown]                alpha 2; none\n"
					   "[unknown]                none; beta 1\n");
}

/* Of a large object the first 4096 bytes are shown. */
static void test_large(void **state)
{
	const char *text;

	(void)state;
	begin("struct large");
	access_slab(LARGE, ALPHA, 4092, true, 1);
	text = print();
	assert_non_null(strstr(text, FIELD "across                   none; alpha 1\n"
					   "\nobjects begin 0 bytes into a cache line\n"
					   "0         ................" REST "\n"
					   "64        ................" REST "\n"));
	assert_non_null(strstr(text, "4032      ............" REST "wwww\nand 904 bytes more\n"));
	access_slab(LARGE, ALPHA, 4992, true, 1);
	assert_non_null(strstr(print(), "across                   none; alpha 1\n"
					"last                     none; alpha 1\n"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_fields), T(test_unknown), T(test_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
