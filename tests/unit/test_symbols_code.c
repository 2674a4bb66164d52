// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions of this program and of the kernel with their code; names of all samples at once; what could not be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/utsname.h>

#include "heap/heap_blocks.h"
#include "report/report.h"
#include "self_map.h"
#include "symbols/symbols.h"
#include "symbols/symbols_private.h"
#include "tree.h"

#define PID    7
#define TIME   1000
#define KERNEL 0xffffffff81000000ull

/* clang-format off */
#define FUNCTION(name) "\n.globl " #name "\n.type " #name ", @function\n" #name ": "
#define SIZE(name)     "\n.size " #name ", . - " #name "\n"
__asm__(
	".text\n"
	FUNCTION(code_first) "mov $5, %eax"
	"\nret"
	SIZE(code_first)
	FUNCTION(_Z11code_secondv) "nop"
	"\nnop"
	"\nret"
	SIZE(_Z11code_secondv)
	FUNCTION(xmalloc_made) "nop"
	"\nret"
	SIZE(xmalloc_made)
	FUNCTION(_ZSt8made_newv) "nop"
	"\nret"
	SIZE(_ZSt8made_newv)
	FUNCTION(stack_read) "mov (%rsp), %rax"
	"\n.globl other_read\nother_read: mov (%rdi), %rax"
	"\n.globl stack_write\nstack_write: mov %rax, 8(%rsp)"
	"\nret"
	SIZE(stack_read)
	"\n.text\n");
/* clang-format on */

extern const char code_first[], _Z11code_secondv[], xmalloc_made[], _ZSt8made_newv[], stack_read[],
	other_read[], stack_write[];

static struct trace_info info;
static struct tasks *tasks;
static struct symbols *symbols;
static struct symbol_code code;
static struct trace_mmap self;
static struct err err;
static char list[128];

static __u64 addr(const char *at)
{
	return (uintptr_t)at;
}

static void map(__u32 tgid, const struct trace_mmap *what)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1, .mmap = *what };

	ev.mmap.tgid = ev.mmap.tid = tgid;
	tasks_add(tasks, &ev);
}

static int set_up(void **state)
{
	const struct symbols_opts opts = { .info = &info, .kallsyms = list };
	const struct trace_mmap kernel = { .kernel = true,
					   .exec = true,
					   .start = KERNEL,
					   .len = 0x10000,
					   .path = "[kernel.kallsyms]" };
	struct utsname u;

	new_root(state);
	put_file("/list", "ffffffff81000000 T _text\n"
			  "ffffffff81000100 T do_fault\n"
			  "ffffffff81000180 T handle\n"
			  "ffffffffc0000010 t mod_read\t[mod]\n");
	snprintf(list, sizeof(list), "%s/list", root);
	uname(&u);
	strcpy(info.host, u.nodename);
	tasks = tasks_new();
	map(0, &kernel);
	if (!self_map_at(addr(code_first), &self))
		return -1;
	map(PID, &self);
	return symbols_new(&opts, &symbols, NULL);
}

static int clean_up(void **state)
{
	symbols_free(symbols);
	tasks_free(tasks);
	return remove_root(state);
}

static bool find(__u64 at, bool kernel)
{
	memset(&code, 0, sizeof(code));
	return symbols_code(symbols, tasks, PID, at, TIME, kernel, &code);
}

static void test_program(void **state)
{
	unsigned char bytes[64];
	__u64 start;

	(void)state;
	assert_true(find(addr(_Z11code_secondv) + 1, false));
	assert_string_equal(code.name, "code_second");
	assert_string_equal(code.mangled, "_Z11code_secondv");
	assert_string_equal(code.dso, self.path);
	assert_non_null(code.object);
	assert_int_equal(code.size, 3);
	assert_int_equal(code.at, code.start + 1);
	assert_int_equal(symbols_code_read(symbols, &code, bytes, &err), 0);
	assert_memory_equal(bytes, _Z11code_secondv, 3);
	start = code.start;
	assert_string_equal(symbols_code_name(symbols, &code, start), "code_second");
	assert_true(find(addr(code_first), false));
	assert_string_equal(code.name, "code_first");
	assert_null(code.mangled);
	assert_int_equal(code.size, 6);
	assert_int_equal(code.at, code.start);
	assert_int_equal(start - code.start, _Z11code_secondv - code_first);
	assert_int_equal(symbols_code_read(symbols, &code, bytes, &err), 0);
	assert_memory_equal(bytes, "\xb8\x05\0\0\0\xc3", 6);
	/* in the same file; only where one begins */
	assert_string_equal(symbols_code_name(symbols, &code, start), "code_second");
	assert_null(symbols_code_name(symbols, &code, start + 1));
	assert_null(symbols_code_inlined(symbols, &code, code.start));
	/* more than the file has */
	code.size = 1ull << 40;
	code.start = 1ull << 40;
	assert_int_equal(symbols_code_read(symbols, &code, bytes, &err), -ENODATA);
	assert_non_null(strstr(err.text, ": the file has no code of 'code_first'"));
	/* nothing is mapped there */
	assert_false(find(self.start + self.len, false));
}

static void test_kernel(void **state)
{
	struct type_access type;
	struct source_place place;
	unsigned char bytes[256];

	(void)state;
	assert_true(find(KERNEL + 0x110, true));
	assert_string_equal(code.name, "do_fault");
	assert_string_equal(code.dso, "[kernel]");
	assert_null(code.object);
	assert_int_equal(code.start, KERNEL + 0x100);
	assert_int_equal(code.size, 0x80);
	assert_int_equal(code.at, KERNEL + 0x110);
	assert_string_equal(symbols_code_name(symbols, &code, KERNEL + 0x180), "handle");
	assert_null(symbols_code_name(symbols, &code, KERNEL + 0x181));
	assert_null(symbols_code_name(symbols, &code, 16));
	assert_false(symbols_code_line(&code, code.at, &place));
	assert_null(symbols_code_inlined(symbols, &code, code.at));
	symbols_code_type(&code, code.at, &type);
	assert_int_equal(type.kind, TYPE_KERNEL);
	/* this kernel is not the recorded one */
	assert_int_equal(symbols_code_read(symbols, &code, bytes, &err), -ENODATA);
	assert_non_null(strstr(err.text, "that is not known to be the recorded one"));
}

/* --- code that allocated --- */

static void site_is(const __u64 *stack, unsigned int n, const char *want)
{
	const struct heap_block b = { .tgid = PID, .time = TIME, .stack = stack, .n_stack = n };
	char text[REPORT_SITE];

	report_site(symbols, tasks, &b, text, sizeof(text));
	text[strcspn(text, " ")] = 0; /* a line may be known */
	assert_string_equal(text, want);
}

/* The first function that is not of an allocator, by either of its names; calls are before their return addresses. */
static void test_sites(void **state)
{
	const __u64 stack[] = { addr(xmalloc_made) + 1, addr(_ZSt8made_newv) + 2,
				addr(code_first) + 6, addr(_Z11code_secondv) + 1 };
	char text[REPORT_SITE];

	(void)state;
	site_is(stack, 4, "code_first");
	site_is(stack + 3, 1, "code_second");
	site_is(stack, 2, "xmalloc_made"); /* there is no other */
	report_site(symbols, tasks, &(struct heap_block){ .tgid = PID }, text, sizeof(text));
	assert_string_equal(text, "[no stack]");
}

/* --- stacks --- */

#define ANON 0x7f0000000000ull

/* Is the address of the stack of the thread, by one op? */
static bool proves(const struct trace_event *ev)
{
	struct data_place place;
	struct symbols *was = symbols;
	const struct symbols_opts opts = { .info = &info };
	bool is;

	assert_int_equal(symbols_new(&opts, &symbols, NULL), 0);
	for (int again = 0; again < 2; again++)
		symbols_learn_stack(symbols, tasks, ev);
	symbols_data(symbols, tasks, PID, ANON + 8, TIME, &place);
	is = place.kind == DATA_STACK;
	if (is)
		assert_string_equal(place.mapping, "[stack:12]");
	symbols_free(symbols);
	symbols = was;
	return is;
}

/* Ops that access memory by the stack pointer alone, in code of the program that is known. */
static void test_stacks(void **state)
{
	const struct trace_mmap anon = { .start = ANON, .len = 0x2000, .path = "//anon" },
				heap = { .start = 0x600000, .len = 0x1000, .path = "[heap]" };
	struct trace_event good = { .kind = TRACE_SAMPLE_OP, .time = TIME }, ev;
	struct trace_sample *s = &good.sample;

	(void)state;
	map(PID, &anon);
	map(PID, &heap);
	s->has_task = s->has_ip = true;
	s->tgid = PID;
	s->tid = 12;
	s->ip = addr(stack_read);
	s->op.cpu.caps = 0xbff;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID;
	s->op.reg[IBS_DC_LINADDR] = ANON + 8;
	assert_true(proves(&good));
	ev = good;
	ev.sample.ip = addr(other_read);
	assert_false(proves(&ev));
	ev.sample.ip = addr(stack_write); /* this op read */
	assert_false(proves(&ev));
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_LIN_VALID;
	assert_true(proves(&ev));
	ev.sample.ip = addr(stack_read);
	assert_false(proves(&ev));
	ev = good;
	ev.sample.tid = PID; /* the first thread */
	assert_false(proves(&ev));
	ev = good;
	ev.sample.kernel = true;
	assert_false(proves(&ev));
	ev = good;
	ev.sample.has_task = false;
	assert_false(proves(&ev));
	ev = good;
	ev.sample.op.reg[IBS_OP_DATA] = IBS_OP_DATA_RIP_INVALID;
	assert_false(proves(&ev));
	ev = good;
	ev.sample.op.reg[IBS_OP_DATA3] |= IBS_OP_DATA3_SW_PF;
	assert_false(proves(&ev));
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP; /* of no address */
	assert_false(proves(&ev));
	ev = good;
	ev.sample.op.reg[IBS_DC_LINADDR] = 0x600008; /* memory with a name */
	assert_false(proves(&ev));
	ev.sample.op.reg[IBS_DC_LINADDR] = ANON + 0x2000;
	assert_false(proves(&ev));
	ev = good;
	ev.sample.ip = 0x100; /* code of no map, and of memory */
	assert_false(proves(&ev));
	ev.sample.ip = ANON;
	assert_false(proves(&ev));
}

/* --- names of all samples at once --- */

static void note(__u32 tgid, __u64 ip)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };

	ev.sample.has_ip = true;
	ev.sample.tgid = tgid;
	ev.sample.ip = ip;
	ev.sample.kernel = ip >> 63;
	symbols_note(symbols, tasks, &ev);
}

static const char *name_of(__u32 tgid, __u64 ip)
{
	static struct symbol sym;

	symbols_find(symbols, tasks, tgid, ip, TIME, ip >> 63, false, &sym);
	return sym.name;
}

static void test_noted(void **state)
{
	const struct trace_mmap gone = {
		.exec = true, .start = 0x1000, .len = 0x1000, .path = "/nowhere/x"
	};
	const __u64 chain[] = { addr(code_first), addr(_Z11code_secondv) + 2 };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };
	char path[512];

	(void)state;
	map(PID, &gone);
	map(8, &self);
	ev.sample.tgid = PID;
	ev.sample.stack = chain;
	ev.sample.n_stack = 2;
	symbols_note(symbols, tasks, &ev);
	for (int i = 0; i < 3; i++)
		note(8, addr(code_first) + i);
	note(PID, 0x1010);
	note(PID, KERNEL + 0x110);
	note(9, 0x5000); /* of no map: code that it generated */
	symbols_name_noted(symbols, tasks, false);
	assert_string_equal(name_of(PID, addr(code_first)), "code_first");
	assert_string_equal(name_of(8, addr(code_first) + 2), "code_first");
	assert_string_equal(name_of(PID, addr(_Z11code_secondv) + 1), "code_second");
	assert_string_equal(name_of(PID, 0x1010), "[/nowhere/x]");
	assert_string_equal(name_of(PID, KERNEL + 0x110), "do_fault");
	assert_string_equal(name_of(9, 0x5000), "[unknown]");
	assert_int_equal(symbols_lack_time(symbols), 0);
	/* nothing is read any more */
	snprintf(path, sizeof(path), "[%s]", self.path);
	assert_string_equal(name_of(8, (uintptr_t)set_up), path);
}

/* Of files that were named, callers are found later. */
static void test_noted_chains(void **state)
{
	(void)state;
	note(PID, addr(code_first));
	symbols_name_noted(symbols, tasks, true);
	assert_string_equal(name_of(PID, addr(code_first)), "code_first");
	assert_string_equal(name_of(PID, addr(_Z11code_secondv)), "code_second");
	assert_true(find(addr(_Z11code_secondv), false));
}

/* --- what could not be used --- */

static char problems[4][512];
static size_t n_problems;

static void keep(const char *text, void *arg)
{
	assert_ptr_equal(arg, problems);
	if (n_problems < 4)
		snprintf(problems[n_problems], sizeof(problems[0]), "%s", text);
	n_problems++;
}

static size_t list_problems(void)
{
	size_t n;

	n_problems = 0;
	n = symbols_problems(symbols, keep, problems);
	assert_int_equal(n, n_problems);
	return n;
}

static void test_problems(void **state)
{
	const struct trace_mmap gone = {
		.exec = true, .start = 0x1000, .len = 0x1000, .path = "/nowhere/x"
	};
	const struct symbols_opts none = { .info = &info };
	struct trace_event slab = {
		.kind = TRACE_SLAB,
		.slab = { .id = 0x1000, .object_size = 64, .size = 64, .name = "n" }
	};
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = TIME };
	struct type_access type = { .type = "kept" };
	struct data_place place;

	(void)state;
	assert_int_equal(list_problems(), 0);
	map(PID, &gone);
	name_of(PID, 0x1010);
	assert_int_equal(list_problems(), 1);
	assert_non_null(strstr(problems[0], "/nowhere/x: "));
	/* maps of code only */
	symbols_data(symbols, tasks, PID, 0x10000000, TIME, &place);
	assert_int_equal(list_problems(), 2);
	assert_non_null(strstr(problems[0], "the recording has maps of code only"));
	/* copies of stacks that were too short, in one chain of three; views ask several times for one */
	for (int i = 0; i < 6; i++) {
		ev.time = TIME + i / 2;
		symbols_count_chain(symbols, &ev, i < 2);
	}
	assert_int_equal(list_problems(), 3);
	assert_non_null(
		strstr(problems[0],
		       "callers behind the copy of the stack ([cut]), in 33% of the call chains"));
	symbols->codes.full = true;
	assert_int_equal(list_problems(), 4);
	assert_non_null(strstr(problems[0], "the functions are too much code to read all"));
	symbols->codes.full = false;
	/* types of another kernel, and its list */
	symbols_free(symbols);
	strcpy(info.host, "another machine");
	assert_int_equal(symbols_new(&none, &symbols, NULL), 0);
	symbols_slab_type(symbols, tasks, 0x1000, 0xffff888000000000, 8, &type);
	assert_string_equal(type.type, "kept"); /* of no known cache */
	tasks_add(tasks, &slab);
	symbols_slab_type(symbols, tasks, 0x1000, 0xffff888000000000, 8, &type);
	assert_string_equal(type.type, "[slab n]");
	assert_int_equal(type.kind, TYPE_SLAB_UNKNOWN);
	assert_int_equal(list_problems(), 1);
	assert_non_null(strstr(problems[0], "types: recorded with another kernel"));
	assert_string_equal(name_of(PID, KERNEL + 0x110), "[kernel]");
	assert_int_equal(list_problems(), 2);
	assert_ptr_equal(strstr(problems[0], "the kernel: "), problems[0]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_program), T(test_kernel), T(test_sites),
					    T(test_stacks),  T(test_noted),  T(test_noted_chains),
					    T(test_problems) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
