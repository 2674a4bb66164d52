// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What lies at an address of data: by the maps of a process alone, none of whose files exists; of this program; of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/utsname.h>

#include "self_map.h"
#include "symbols/symbols.h"
#include "symbols/symbols_private.h"
#include "tree.h"

#define PID  7
#define TIME 1000
#define GIB  (1ull << 30)

static struct trace_info info = { .host = "another machine", .format = "test" };
static struct tasks *tasks;
static struct symbols *symbols;
static struct data_place place;

static int begin(void **state)
{
	const struct symbols_opts opts = { .info = &info };

	(void)state;
	tasks = tasks_new();
	return symbols_new(&opts, &symbols, NULL);
}

static int end(void **state)
{
	(void)state;
	symbols_free(symbols);
	tasks_free(tasks);
	return 0;
}

static void map(__u64 start, __u64 bytes, bool exec, const char *path)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };

	ev.mmap = (struct trace_mmap){
		.tgid = PID, .tid = PID, .start = start, .len = bytes, .exec = exec, .path = path
	};
	tasks_add(tasks, &ev);
}

static void is(__u64 addr, enum data_kind kind, const char *mapping, __u64 start, __u64 until)
{
	symbols_data(symbols, tasks, PID, addr, TIME, &place);
	assert_string_equal(data_kind_name(place.kind), data_kind_name(kind));
	assert_string_equal(place.mapping, mapping);
	assert_int_equal(place.start, start);
	assert_int_equal(place.end, until);
	assert_null(place.variable);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *path;
		enum data_kind kind;
	} cases[] = {
		{ "[heap]", DATA_HEAP },
		{ "[stack]", DATA_STACK },
		{ "[stack:12]", DATA_STACK },
		{ "[anon: glibc: pthread stack: 3]", DATA_STACK },
		{ "[anon:arena]", DATA_ANONYMOUS },
		{ "//anon", DATA_ANONYMOUS },
		{ "[anon_shmem:x]", DATA_SHARED },
		{ "/dev/zero (deleted)", DATA_SHARED },
		{ "/SYSV00000000", DATA_SHARED },
		{ "/memfd:x", DATA_SHARED },
		{ "/dev/shm/x", DATA_SHARED },
		{ "/anon_hugepage", DATA_SHARED },
		{ "/bin/true", DATA_NO_SYMBOL },
		{ "/dev/null", DATA_NO_SYMBOL },
		{ "[vdso]", DATA_SPECIAL },
		{ "[vvar]", DATA_SPECIAL },
		{ "", DATA_SPECIAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(data_kind_name(data_kind_of(cases[i].path)),
				    data_kind_name(cases[i].kind));
}

static void test_label(void **state)
{
	struct data_place p = { .mapping = "/lib/libc.so" };
	char buf[32], small[8];

	(void)state;
	assert_string_equal(data_place_label(&p, buf, sizeof(buf)), "[/lib/libc.so]");
	assert_string_equal(data_place_label(&p, small, sizeof(small)), "[/lib/]");
	p.mapping = "[heap]";
	assert_string_equal(data_place_label(&p, buf, sizeof(buf)), "[heap]");
	p.variable = "counter";
	assert_string_equal(data_place_label(&p, buf, sizeof(buf)), "counter");
	assert_null(data_place_label(&(struct data_place){ 0 }, buf, sizeof(buf)));
}

static void test_maps(void **state)
{
	(void)state;
	map(0x400000, 0x1000, true, "/nowhere/prog");
	map(0x600000, 0x2000, false, "[heap]");
	map(0x7f0000000000, 0x3000, false, "//anon");
	map(0x7f0000100000, 0x1000, false, "/dev/shm/x");
	map(0x7f0000200000, 0x1000, false, "[vvar]");
	map(0x7ffd00000000, 0x1000, false, "[stack]");
	is(0x600000, DATA_HEAP, "[heap]", 0x600000, 0x602000);
	is(0x601fff, DATA_HEAP, "[heap]", 0x600000, 0x602000);
	is(0x7f0000001000, DATA_ANONYMOUS, "[anon]", 0x7f0000000000, 0x7f0000003000);
	is(0x7f0000100800, DATA_SHARED, "/dev/shm/x", 0x7f0000100000, 0x7f0000101000);
	is(0x7f0000200000, DATA_SPECIAL, "[vvar]", 0x7f0000200000, 0x7f0000201000);
	is(0x7ffd00000010, DATA_STACK, "[stack]", 0x7ffd00000000, 0x7ffd00001000);
	/* a file that cannot be read */
	is(0x400010, DATA_NO_OBJECT, "/nowhere/prog", 0x400000, 0x401000);
	assert_false(place.has_offset);
	assert_null(place.object);
	/* between them, and below the stack, where it grows to */
	is(0x500000, DATA_UNMAPPED, "[unmapped]", 0, 0);
	is(0x7ffc00000000, DATA_STACK, "[stack]", 0, 0);
	is(0x7ffbffffffff, DATA_UNMAPPED, "[unmapped]", 0, 0);
	is(0x7ffe00000000, DATA_UNMAPPED, "[unmapped]", 0, 0);
}

/* The kernel's own maps may be next to the stack. */
static void test_below_stack(void **state)
{
	(void)state;
	map(0x7ffd00000000, 0x1000, false, "[vvar]");
	is(0x7ffcfffff000, DATA_STACK, "[stack]", 0, 0);
	map(0x7ffcffff0000, 0x1000, false, "/nowhere/x");
	is(0x7ffcfffe0000, DATA_UNMAPPED, "[unmapped]", 0, 0);
}

/* Memory without a name above the program, which has the lowest files, is the heap if a gap is between them. */
static void test_small_heap(void **state)
{
	(void)state;
	map(0x400000, 0x1000, true, "/nowhere/prog");
	map(0x401000, 0x1000, false, "/nowhere/prog");
	map(0x402000, 0x1000, false, "//anon"); /* .bss */
	map(0x500000, 0x1000, false, "//anon");
	map(0x7f0000000000, 0x1000, true, "/nowhere/lib");
	map(0x7f0000001000, 0x1000, false, "//anon");
	map(0x7f0000100000, 0x1000, false, "//anon");
	is(0x500800, DATA_HEAP, "[heap]", 0x500000, 0x501000);
	is(0x402800, DATA_ANONYMOUS, "[anon]", 0x402000, 0x403000);
	is(0x7f0000001000, DATA_ANONYMOUS, "[anon]", 0x7f0000001000, 0x7f0000002000);
	is(0x7f0000100000, DATA_ANONYMOUS, "[anon]", 0x7f0000100000, 0x7f0000101000);
}

/* The kernel puts it at most a GiB behind the program. */
static void test_far_heap(void **state)
{
	(void)state;
	map(0x400000, 0x1000, true, "/nowhere/prog");
	map(0x401000 + GIB, 0x1000, false, "//anon");
	is(0x401000 + GIB, DATA_HEAP, "[heap]", 0x401000 + GIB, 0x402000 + GIB);
	map(0x401000 + GIB, 0x1000, false, "/nowhere/x");
	map(0x501000 + GIB + GIB, 0x1000, false, "//anon");
	is(0x501000 + GIB + GIB, DATA_ANONYMOUS, "[anon]", 0x501000 + GIB + GIB,
	   0x502000 + GIB + GIB);
}

/* Another file below is the program; this one is a library. */
static void test_no_heap(void **state)
{
	(void)state;
	map(0x200000, 0x1000, true, "/nowhere/prog");
	map(0x400000, 0x1000, true, "/nowhere/lib");
	map(0x500000, 0x1000, false, "//anon");
	is(0x500000, DATA_ANONYMOUS, "[anon]", 0x500000, 0x501000);
}

/* It goes on where a part with a name ends. */
static void test_grown_heap(void **state)
{
	(void)state;
	map(0x400000, 0x1000, true, "/nowhere/prog");
	map(0x500000, 0x1000, false, "[heap]");
	map(0x501000, 0x1000, false, "//anon");
	map(0x503000, 0x1000, false, "//anon");
	is(0x501000, DATA_HEAP, "[heap]", 0x501000, 0x502000);
	is(0x503000, DATA_ANONYMOUS, "[anon]", 0x503000, 0x504000);
}

/* Nothing is below address 0. */
static void test_lowest(void **state)
{
	(void)state;
	map(0, 0x1000, false, "//anon");
	is(0, DATA_ANONYMOUS, "[anon]", 0, 0x1000);
	map(0x100000, 0x1000, false, "//anon");
	is(0x100000, DATA_ANONYMOUS, "[anon]", 0x100000, 0x101000);
}

/* The stack of a thread that its accesses through the stack pointer prove. */
static void test_threads(void **state)
{
	(void)state;
	map(0x7f0000000000, 0x3000, false, "//anon");
	stack_pages_add(&symbols->stacks, PID, 12, 0x7f0000001008, TIME);
	for (int again = 0; again < 2; again++)
		is(0x7f0000001ff0, DATA_STACK, "[stack:12]", 0x7f0000000000, 0x7f0000003000);
	is(0x7f0000002000, DATA_ANONYMOUS, "[anon]", 0x7f0000000000, 0x7f0000003000);
}

/* --- this program --- */

extern char data_place_set[300], data_place_zero[1 << 16];
char data_place_set[300] = { 1 }, data_place_zero[1 << 16];

static struct trace_mmap code;

/* Names are those of files that are here, as the recording is of this machine. */
static int begin_here(void **state)
{
	const struct symbols_opts opts = { .info = &info };
	struct utsname u;

	(void)state;
	uname(&u);
	strcpy(info.host, u.nodename);
	tasks = tasks_new();
	return self_map_at((uintptr_t)begin_here, &code) ? symbols_new(&opts, &symbols, NULL) : -1;
}

static int end_here(void **state)
{
	strcpy(info.host, "another machine");
	return end(state);
}

static void variable_is(__u64 addr, const char *name, __u64 offset)
{
	symbols_data(symbols, tasks, PID, addr, TIME, &place);
	assert_string_equal(data_kind_name(place.kind), "variable");
	assert_string_equal(place.variable, name);
	assert_string_equal(place.mapping, code.path);
	assert_int_equal(place.offset, offset);
	assert_true(place.has_offset);
	assert_non_null(place.object);
	assert_null(place.mangled);
}

/* Addresses of other segments count from the map of code. */
static void test_code_alone(void **state)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1, .mmap = code };

	(void)state;
	ev.mmap.tgid = ev.mmap.tid = PID;
	tasks_add(tasks, &ev);
	variable_is((uintptr_t)data_place_set, "data_place_set", 0);
	variable_is((uintptr_t)data_place_set + 299, "data_place_set", 299);
	variable_is((uintptr_t)data_place_zero + 60000, "data_place_zero", 60000);
	assert_true(place.exec);
	assert_int_equal(place.pgoff, code.pgoff);
	assert_int_equal(place.at, (uintptr_t)data_place_zero + 60000 - code.start + code.pgoff);
	assert_int_equal(place.start, 0);
	assert_int_equal(place.end, 0);
}

/* What is behind the file in memory is in no map of it. */
static void test_bss(void **state)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1, .mmap = code };
	FILE *f = fopen("/proc/self/maps", "re");
	char line[1024], path[512] = "";
	unsigned long long start, end, pgoff;
	const __u64 zero = (uintptr_t)data_place_zero + 60000;

	(void)state;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx rw-p %llx %*s %*s %511s", &start, &end, &pgoff, path) ==
			    4 &&
		    !strcmp(path, code.path)) {
			ev.mmap.tgid = ev.mmap.tid = PID;
			ev.mmap.exec = false;
			ev.mmap.start = start;
			ev.mmap.len = end - start;
			ev.mmap.pgoff = pgoff;
		}
	fclose(f);
	assert_false(ev.mmap.exec);
	tasks_add(tasks, &ev);
	end = ev.mmap.start + ev.mmap.len;
	assert_true(zero >= end);
	map(end, 1 << 24, false, "//anon");
	variable_is(zero, "data_place_zero", 60000);
	assert_false(place.exec);
	assert_int_equal(place.pgoff, ev.mmap.pgoff);
	assert_int_equal(place.at, zero - ev.mmap.start + ev.mmap.pgoff);
	assert_int_equal(place.start, end);
	variable_is((uintptr_t)data_place_set + 8, "data_place_set", 8);
	/* behind all that the file describes */
	symbols_data(symbols, tasks, PID, end + (1 << 23), TIME, &place);
	assert_string_equal(data_kind_name(place.kind), "anonymous");
}

/* A mapped file that is not an ELF file. */
static void test_file(void **state)
{
	char path[128];

	new_root(state);
	put_file("/data", "text");
	snprintf(path, sizeof(path), "%s/data", root);
	map(0x7f0000000000, 0x2000, false, path);
	symbols_data(symbols, tasks, PID, 0x7f0000001234, TIME, &place);
	assert_string_equal(data_kind_name(place.kind), "file");
	assert_string_equal(place.mapping, path);
	assert_true(place.has_offset);
	assert_int_equal(place.offset, 0x1234);
	assert_int_equal(place.start, 0x7f0000000000);
	assert_null(place.object);
	remove_root(state);
}

/* --- the kernel --- */

static void test_kernel(void **state)
{
	char list[128];
	const struct symbols_opts opts = { .info = &info, .kallsyms = list };

	new_root(state);
	is(0xffffffff82000008, DATA_KERNEL, "[kernel]", 0, 0);
	put_file("/list", "ffffffff81000000 T _text\n"
			  "ffffffff82000000 D jiffies\n"
			  "ffffffff82000010 D next\n"
			  "ffffffffc0000000 d of_mod\t[mod]\n"
			  "ffffffffc0000010 d rest\t[mod]\n");
	snprintf(list, sizeof(list), "%s/list", root);
	symbols_free(symbols);
	assert_int_equal(symbols_new(&opts, &symbols, NULL), 0);
	symbols_data(symbols, tasks, PID, 0xffffffff82000008, TIME, &place);
	assert_string_equal(data_kind_name(place.kind), "variable");
	assert_string_equal(place.variable, "jiffies");
	assert_string_equal(place.mapping, "[kernel]");
	assert_true(place.has_offset);
	assert_int_equal(place.offset, 8);
	symbols_data(symbols, tasks, PID, 0xffffffffc0000004, TIME, &place);
	assert_string_equal(place.variable, "of_mod");
	assert_string_equal(place.mapping, "[mod]");
	assert_int_equal(place.offset, 4);
	is(0xffff888000000000, DATA_KERNEL, "[kernel]", 0, 0);
	assert_false(place.has_offset);
	remove_root(state);
}

#define T(f)	cmocka_unit_test_setup_teardown(f, begin, end)
#define HERE(f) cmocka_unit_test_setup_teardown(f, begin_here, end_here)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_label),
		T(test_maps),
		T(test_below_stack),
		T(test_small_heap),
		T(test_far_heap),
		T(test_no_heap),
		T(test_grown_heap),
		T(test_lowest),
		T(test_threads),
		HERE(test_code_alone),
		HERE(test_bss),
		HERE(test_file),
		T(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
