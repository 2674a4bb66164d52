// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A function by instruction as text, HTML and JSON, of made-up samples; lines of sources. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "annotate/annotate_print.h"
#include "annotate/annotate_private.h"
#include "annotate/annotate_source.h"
#include "json_same.h"
#include "tree.h"

#define ROWS 17

static struct annotate a;
static struct annotate_function functions[3];
static struct annotate_row rows[ROWS];
static struct annotate_sums hot, cold;
static struct annotate_caller callers[8];
static struct view_opts view;
static char source[256], other[256], program[256], *printed;

/* 165 of 200 samples and 3.3 of 4 M miss cycles are of the second instruction, all from DRAM; the others are of the 12th. */
static void set_sums(void)
{
	struct annotate_sums *total = &functions[0].total;

	*total = (struct annotate_sums){ .samples = 200,
					 .valid = 200,
					 .timed = 200,
					 .sum = 40000,
					 .cycles = 4000000,
					 .known = 4000000,
					 .dram = 3300000,
					 .memory = 200,
					 .accesses = 200,
					 .walks = 20 };
	hot = (struct annotate_sums){ .samples = 165,
				      .valid = 165,
				      .timed = 165,
				      .sum = 36300,
				      .cycles = 3300000,
				      .known = 3300000,
				      .dram = 3300000,
				      .memory = 165,
				      .accesses = 165 };
	cold = (struct annotate_sums){ .samples = 35,
				       .valid = 35,
				       .timed = 35,
				       .sum = 3700,
				       .cycles = 700000,
				       .known = 700000,
				       .memory = 35,
				       .accesses = 35,
				       .walks = 20 };
	for (int i = 0; i < 165; i++)
		estimate_add(&hot.waits, 20000);
	for (int i = 0; i < 35; i++)
		estimate_add(&cold.waits, 20000);
	total->waits = hot.waits;
	estimate_merge(&total->waits, &cold.waits);
}

static int begin(void **state)
{
	new_root(state);
	snprintf(source, sizeof(source), "%s/a.c", root);
	snprintf(other, sizeof(other), "%s/b.h", root);
	snprintf(program, sizeof(program), "%s/prog", root);
	put_file("/a.c", "int work(int *p)\n{\n\treturn *p;  \n}\n");
	put_file("/b.h", "x\r\n  one\ttwo\n");
	a = (struct annotate){ .function = functions,
			       .n_functions = 1,
			       .row = rows,
			       .n = ROWS,
			       .elsewhere = 1234,
			       .inexact = 5 };
	memset(functions, 0, sizeof(functions));
	functions[0].code = (struct symbol_code){
		.name = "work", .dso = program, .start = 0x1000, .size = 0x40
	};
	functions[0].callers = callers;
	set_sums();
	for (int i = 0; i < ROWS; i++)
		rows[i] = (struct annotate_row){ .addr = 0x1000 + 2 * i,
						 .len = 2,
						 .text = i == 1 ? "mov (%rdi), %eax" : "nop",
						 .data = { .kind = TYPE_NO_ACCESS } };
	rows[1].sums = &hot;
	rows[11].sums = &cold;
	a.types[TYPE_NO_ACCESS] = 200;
	view = (struct view_opts){};
	return 0;
}

static int end(void **state)
{
	free(printed);
	printed = NULL;
	return remove_root(state);
}

static const char *print_on(const struct screen *s, bool all)
{
	const struct annotate_print p = { .screen = s, .view = &view, .all = all };
	size_t n;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &n);
	annotate_print_function(f, &p, &a);
	fclose(f);
	return printed;
}

static const char *print(void)
{
	static const struct screen s = { .width = 100 };

	return print_on(&s, false);
}

static void has(const char *what)
{
	if (!strstr(printed, what))
		fail_msg("'%s' is not in '%s'", what, strstr(printed, "<body") ?: printed);
}

static void has_not(const char *what)
{
	if (strstr(printed, what))
		fail_msg("'%s' is in '%s'", what, printed);
}

/* Four instructions before and after those with samples, and how many are left out. */
static void test_rows(void **state)
{
	char head[512];

	(void)state;
	print();
	snprintf(head, sizeof(head),
		 "function  work of %s, 0x1000 to 0x1040, 64 bytes\n"
		 "found     200 samples of ops in it + 1,234 elsewhere + 5 without an exact "
		 "address\n"
		 "\n"
		 "SAMPLES   SHARE   MEAN    DRAM  CODE\n",
		 program);
	assert_memory_equal(printed, head, strlen(head));
	assert_string_equal(printed + strlen(head),
			    "                                    1000:  nop\n"
			    "    165   82.5%  220.0  100.0%      1002:  mov (%rdi), %eax\n"
			    "                                    1004:  nop\n"
			    "                                    1006:  nop\n"
			    "                                    1008:  nop\n"
			    "                                    100a:  nop\n"
			    "                                ... 1 instruction without samples\n"
			    "                                    100e:  nop\n"
			    "                                    1010:  nop\n"
			    "                                    1012:  nop\n"
			    "                                    1014:  nop\n"
			    "     35   17.5%  105.7      0%      1016:  nop\n"
			    "                                    1018:  nop\n"
			    "                                    101a:  nop\n"
			    "                                    101c:  nop\n"
			    "                                    101e:  nop\n"
			    "                                ... 1 instruction without samples\n"
			    "    200  100.0%  200.0   82.5%  total\n"
			    "\n95% interval of the highest share: 76.6% to 87.2%\n"
			    "\ntypes     200 samples = 0 pointer + 200 no_access\n");
	print_on(&(struct screen){ .width = 100 }, true);
	has("\n                                    100c:  nop\n");
	has("\n                                    1020:  nop\n    200  ");
	has_not("without samples");
}

/* One instruction has it all: its share is no estimate. Stores have no latency. */
static void test_notes(void **state)
{
	(void)state;
	hot = functions[0].total;
	rows[11].sums = NULL;
	functions[0].total.stores = 3;
	print();
	has_not("95% interval");
	has("\nstores have no latency (-): IBS measures that of loads only\n");
	print_on(&(struct screen){ .width = 100, .utf8 = true }, false);
	has("\nstores have no latency (–): IBS");
	/* no latency at all: nothing is hottest */
	hot.cycles = hot.valid = functions[0].total.cycles = functions[0].total.valid = 0;
	print_on(&(struct screen){ .width = 100, .color = true }, false);
	has_not("95% interval");
	has_not("\033[1m    200  100.0%      –      1002");
	has("\033[1m");
}

/* The heading, the hottest instruction and the total are bold. */
static void test_color(void **state)
{
	(void)state;
	print_on(&(struct screen){ .width = 100, .color = true }, false);
	has("\n\033[1mSAMPLES   SHARE   MEAN    DRAM  CODE\033[0m\n");
	has("\n\033[1m    165   82.5%  220.0  100.0%      1002:  mov (%rdi), %eax\033[0m\n");
	has("\n     35   17.5%  105.7      0%      1016:  nop\n");
	has("\n\033[1m    200  100.0%  200.0   82.5%  total\033[0m\n");
}

/* Columns that were chosen, those with known values; the least useful give way to the code. */
static void test_columns(void **state)
{
	static const enum table_column all[] = { TABLE_INSTRUCTION_CYCLES, TABLE_WALK, TABLE_SHARE,
						 TABLE_MISPREDICTED, TABLE_SAMPLE_SHARE };

	(void)state;
	memcpy(view.columns, all, sizeof(all));
	view.n_columns = 5;
	print();
	has("\nSAMPLES %  MISS CYCLES   SHARE   WALK  CODE\n");
	has("\n    82.5%       3.30 M   82.5%     0%      1002:  mov");
	has("\n    17.5%       0.70 M   17.5%  57.1%      1016:  nop");
	has("\n   100.0%       4.00 M  100.0%  10.0%  total\n");
	/* 40 columns are left for the code: 40 + 11 + 13 + 8 + 7 are needed for all */
	print_on(&(struct screen){ .width = 79 }, false);
	has("\nSAMPLES %  MISS CYCLES   SHARE   WALK  CODE\n");
	print_on(&(struct screen){ .width = 78 }, false);
	has("\nMISS CYCLES   SHARE   WALK  CODE\n");
	print_on(&(struct screen){ .width = 67 }, false);
	has("\nMISS CYCLES   SHARE  CODE\n");
	print_on(&(struct screen){ .width = 60 }, false);
	has("\n SHARE  CODE\n");
}

/* Long code is cut, and has no trailing blanks. */
static void test_width(void **state)
{
	char text[200];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	text[56] = ' ';
	rows[2].text = text;
	print();
	/* 100 - 32 columns, of which 11 are for the address: 57 for the text */
	text[56] = 0;
	assert_non_null(strstr(printed, text));
	text[56] = '\n';
	text[57] = 0;
	assert_non_null(strstr(printed, text));
	rows[2].text = "a\001b";
	print();
	has("    1004:  a\\x01b\n");
	rows[2].inside = true;
	print();
	has("    1004:  (inside the one before) a\\x01b\n");
}

/* Before the first instruction of each line; its text, with blanks for tabs. */
static void test_source(void **state)
{
	(void)state;
	rows[0].file = rows[1].file = rows[2].file = rows[3].file = source;
	rows[0].line = 1;
	rows[1].line = rows[2].line = 3;
	rows[3].line = 1;
	rows[4].file = other;
	rows[4].line = 1;
	rows[5].file = source;
	rows[5].line = 99; /* the file has no such line */
	rows[7].file = source;
	rows[7].line = 99; /* the same as before the gap */
	print();
	has("CODE\n                                a.c:1  int work(int *p)\n"
	    "                                    1000:  nop\n"
	    "                                a.c:3      return *p;\n"
	    "    165   82.5%  220.0  100.0%      1002:  mov (%rdi), %eax\n"
	    "                                    1004:  nop\n"
	    "                                a.c:1  int work(int *p)\n"
	    "                                    1006:  nop\n"
	    "                                b.h:1  x\n"
	    "                                    1008:  nop\n"
	    "                                a.c:99\n"
	    "                                    100a:  nop\n"
	    "                                ... 1 instruction without samples\n"
	    "                                a.c:99\n"
	    "                                    100e:  nop\n"
	    "                                    1010:  nop\n");
}

/* Where little is left for a line of source, it has one of its own. */
static void test_source_below(void **state)
{
	(void)state;
	put_file("/a.c", "0123456789012345678901234567\n\t012345678901234567890123\n");
	rows[0].file = rows[1].file = source;
	rows[0].line = 1;
	rows[1].line = 2;
	/* 32 columns of numbers; "a.c:1  " and 28 of the text */
	print_on(&(struct screen){ .width = 72 }, false);
	has("a.c:1  0123456789012345678901234567\n");
	has("a.c:2      012345678901234567890123\n");
	view.n_columns = 1;
	view.columns[0] = TABLE_SHARE; /* 8 columns */
	print_on(&(struct screen){ .width = 8 + 7 + 28 + 5 }, false);
	has("\n        a.c:1  0123456789012345678901234567\n");
	put_file("/a.c", "01234567890123456789012345678901234567890123456789012345678\n\t\t\tx\n");
	/* 40 columns of it are enough */
	print_on(&(struct screen){ .width = 8 + 7 + 40 }, false);
	has("\n        a.c:1  0123456789012345678901234567890123456789\n");
	has("\n        a.c:2              x\n");
	print_on(&(struct screen){ .width = 8 + 7 + 39 }, false);
	has("\n        a.c:1\n        0123456789012345678901234567890123456789012345\n");
}

static void test_data(void **state)
{
	char buf[100];

	(void)state;
	assert_string_equal(annotate_data(&rows[1], buf, sizeof(buf)), "");
	rows[1].data = (struct type_access){ .kind = TYPE_POINTER, .type = "int" };
	assert_string_equal(annotate_data(&rows[1], buf, sizeof(buf)), "  # int");
	rows[1].data.field = "pos.x";
	rows[1].data.type = "struct shape";
	assert_string_equal(annotate_data(&rows[1], buf, sizeof(buf)), "  # struct shape: pos.x");
	a.types[TYPE_NO_ACCESS] = 35;
	a.types[TYPE_POINTER] = 124;
	a.types[TYPE_UNTYPED] = 41;
	print();
	has("    1002:  mov (%rdi), %eax  # struct shape: pos.x\n");
	has("\ntypes     200 samples = 124 pointer + 35 no_access + 41 untyped\n"
	    "          known of 75.2 % of 165 accesses\n");
	/* 32 + 11 + 16 + 23 columns are needed for both in a line */
	print_on(&(struct screen){ .width = 82 }, false);
	has("mov (%rdi), %eax  # struct shape: pos.x\n");
	print_on(&(struct screen){ .width = 81 }, false);
	has("mov (%rdi), %eax\n"
	    "                                           # struct shape: pos.x\n");
}

/* A line says which inlined function follows, and where it ends. */
static void test_inlined(void **state)
{
	static const struct inlined outer = { .function = { "outer" },
					      .file = "/x/y.c",
					      .line = 7 },
				    inner = { .function = { "inner" }, .into = &outer };

	(void)state;
	rows[1].inlined = rows[2].inlined = &inner;
	rows[3].inlined = &outer;
	print();
	has("CODE\n                                    1000:  nop\n"
	    "                                [inner, inlined in outer, at y.c:7 in work]\n"
	    "    165   82.5%  220.0  100.0%      1002:  mov (%rdi), %eax\n"
	    "                                    1004:  nop\n"
	    "                                [outer, inlined at y.c:7 in work]\n"
	    "                                    1006:  nop\n"
	    "                                [work]\n"
	    "                                    1008:  nop\n");
}

/* --- callers --- */

static void set_callers(size_t n)
{
	static const char *const names[] = { "main", "run", "loop", "a", "b", "c", "d" };

	functions[0].n_callers = n;
	for (size_t i = 0; i < n; i++)
		callers[i] = (struct annotate_caller){ .name = names[i],
						       .samples = 10,
						       .cycles = 400000 };
}

static const char *called(void)
{
	static char buf[1024];

	annotate_callers(&a, buf, sizeof(buf));
	return buf;
}

/* Shares are those of miss cycles if enough latencies are known. A sixth caller takes no more room than "others". */
static void test_callers(void **state)
{
	(void)state;
	print();
	has_not("called by");
	set_callers(2);
	callers[0].samples = 50;
	callers[1].name = NULL;
	assert_string_equal(called(), "main 10 %, [unknown] 10 % of miss cycles");
	print();
	has("\ncalled by main 10 %, [unknown] 10 % of miss cycles\n");
	functions[0].total.valid = 100;
	assert_string_equal(called(), "main 10 %, [unknown] 10 % of miss cycles");
	functions[0].total.valid = 99;
	assert_string_equal(called(), "main 25 %, [unknown] 5 % of samples");
	functions[0].total.valid = 200;
	functions[0].total.cycles = 0;
	assert_string_equal(called(), "main 25 %, [unknown] 5 % of samples");
	set_callers(6);
	assert_string_equal(called(),
			    "main 5 %, run 5 %, loop 5 %, a 5 %, b 5 %, c 5 % of samples");
	set_callers(7);
	assert_string_equal(called(),
			    "main 5 %, run 5 %, loop 5 %, a 5 %, b 5 %, 2 others 10 % of samples");
}

static void test_attribution(void **state)
{
	char buf[256];

	(void)state;
	a.namesakes = 1000;
	a.fetches = 7;
	annotate_attribution(&a, buf, sizeof(buf));
	assert_string_equal(buf, "200 samples of ops in it + 1,000 in others of its name + 1,234 "
				 "elsewhere + 5 without an exact address + 7 of fetches");
}

/* Others of the name: another file can be chosen. */
static void test_namesakes(void **state)
{
	(void)state;
	a.n_functions = 3;
	functions[1] = functions[2] = functions[0];
	functions[1].code.start = 0x2000;
	functions[2].code.start = 0x3000;
	functions[2].code.dso = "/lib/x.so";
	functions[2].code.object = (void *)&a;
	functions[2].total.samples = 3;
	print();
	has(" at 0x2000, 200 samples\n");
	has("also      work of /lib/x.so at 0x3000, 3 samples; --object chooses\n");
}

/* --- sources --- */

static const char *line(const char *name, int n)
{
	static char buf[256], path[256];
	struct source_files s = { .program = program };
	const char *text;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	text = source_line(&s, *name == '.' ? name : path, n);
	if (text)
		snprintf(buf, sizeof(buf), "%s", text);
	source_warn(&s);
	source_free(&s);
	return text ? buf : NULL;
}

static void test_lines(void **state)
{
	struct source_files s = {};

	(void)state;
	assert_string_equal(line("a.c", 1), "int work(int *p)");
	assert_string_equal(line("a.c", 3), "    return *p;");
	assert_string_equal(line("a.c", 4), "}");
	assert_string_equal(line("a.c", 5), "");
	assert_null(line("a.c", 6));
	assert_null(line("a.c", 0));
	assert_null(line("a.c", -1));
	assert_string_equal(line("b.h", 1), "x");
	assert_string_equal(line("b.h", 2), "  one   two"); /* to a multiple of four columns */
	/* several, each read once */
	assert_string_equal(source_line(&s, source, 2), "{");
	assert_string_equal(source_line(&s, other, 1), "x");
	put_file("/a.c", "changed\n");
	assert_string_equal(source_line(&s, source, 2), "{");
	source_free(&s);
}

static void test_refused(void **state)
{
	struct source_files s = {};
	char path[256];

	(void)state;
	put_file("/text", "x\n");
	put_file("/a.txt", "x\n");
	put_file("/c", "x\n");
	put_file("/x.rs", "x\n");
	assert_null(line("text", 1));
	assert_null(line("a.txt", 1));
	assert_null(line("c", 1)); /* a name, and no suffix */
	assert_null(line("./a.c", 1));
	assert_string_equal(line("x.rs", 1), "x");
	snprintf(path, sizeof(path), "%s/dir.c", root);
	assert_int_equal(mkdir(path, 0755), 0);
	source_line(&s, path, 1);
	assert_string_equal(s.v[0].why, "not a regular file");
	source_line(&s, "/nowhere/a.c", 1);
	assert_string_equal(s.v[1].why, "No such file or directory");
	source_line(&s, "a.c", 1);
	assert_string_equal(s.v[2].why, "its directory is not known");
	source_line(&s, "/a", 1);
	assert_string_equal(s.v[3].why, "its name is not that of a source");
	snprintf(path, sizeof(path), "%s/large.c", root);
	put_file("/large.c", "x\n");
	assert_int_equal(truncate(path, (16 << 20) + 1), 0);
	assert_null(source_line(&s, path, 1));
	assert_string_equal(s.v[4].why, "larger than 16 MiB");
	source_free(&s);
	assert_int_equal(truncate(path, 16 << 20), 0);
	assert_string_equal(line("large.c", 1), "x");
}

/* One that is newer than the program may have other lines. */
static void test_changed(void **state)
{
	struct timespec at[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

	(void)state;
	put_file("/prog", "");
	assert_int_equal(utimensat(AT_FDCWD, program, at, 0), 0);
	assert_null(line("a.c", 1));
	assert_int_equal(utimensat(AT_FDCWD, source, at, 0), 0);
	assert_string_equal(line("a.c", 1), "int work(int *p)");
	at[1].tv_sec++;
	assert_int_equal(utimensat(AT_FDCWD, source, at, 0), 0);
	assert_null(line("a.c", 1));
}

/* --- HTML --- */

static const char *page(bool simulated, bool whole)
{
	static struct trace_info info;
	struct trace_end at_end = { .whole = whole };
	const struct report_head head = { .file = "x.ibs", .info = &info, .end = &at_end };
	const struct annotate_print p = { .head = &head };
	size_t n;
	FILE *f;

	info = (struct trace_info){ .simulated = simulated };
	snprintf(at_end.missing, sizeof(at_end.missing), "%s", whole ? "" : "the end");
	free(printed);
	f = open_memstream(&printed, &n);
	annotate_print_html(f, &p, &a);
	fclose(f);
	return printed;
}

static void test_html(void **state)
{
	static const struct inlined inner = { .function = { "inner" } };

	(void)state;
	rows[2].file = source;
	rows[2].line = 1; /* as the row before it */
	rows[4].inlined = rows[5].inlined = &inner;
	rows[0].file = rows[1].file = source;
	rows[0].line = 3;
	rows[1].line = 1;
	rows[2].inside = true;
	rows[1].data = (struct type_access){ .kind = TYPE_POINTER, .type = "struct <x>" };
	page(true, true);
	has("SIMULATED samples, not measurements. ");
	has_not("INCOMPLETE");
	has("<h1>work</h1>");
	has("<span>x.ibs</span><span>host unknown</span><span>processor unknown</span>");
	has("<th scope=\"col\">Address</th><th scope=\"col\">SAMPLES</th>");
	has_not("MISPRED");
	has(":3</span> <code class=\"dim\">&nbsp;&nbsp;&nbsp;&nbsp;return *p;</code>");
	has(":1</span> <code class=\"dim\">int work(int *p)</code>");
	/* steps are halves: more than a half, and up to a quarter */
	has("class=\"a8\" width=\"52.8\" height=\"10\"/></svg><span>82.5%</span>");
	has("class=\"a7\" width=\"11.2\" height=\"10\"/></svg><span>17.5%</span>");
	has("<code>mov (%rdi), %eax</code><span class=\"note\">  # struct &lt;x></span>");
	has("<code>(inside the one before) nop</code>");
	has_not("called by");
	assert_null(strstr(strstr(printed, ":1</span> <code") + 1, ":1</span> <code"));
	has("<span class=\"note\">[inner, inlined in work]</span>");
	assert_null(strstr(strstr(printed, "[inner, ") + 1, "[inner, "));
	has("<span class=\"note\">[work]</span>");
	set_callers(1);
	a.n_functions = 3;
	page(false, false);
	has_not("SIMULATED");
	has("INCOMPLETE recording: the end");
	has("<span>called by main 10 % of miss cycles</span>");
	has("<span>2 other functions of this name</span>");
}

/* A share too small for a step of its own has the lowest, none has none. */
static void test_html_bars(void **state)
{
	(void)state;
	cold.cycles = 4; /* a millionth */
	page(false, true);
	has("class=\"a1\" width=\"0.0\" height=\"10\"/></svg><span>&lt;0.1%</span>");
	cold.cycles = 0;
	page(false, true);
	has("class=\"a0\" width=\"0.0\" height=\"10\"/></svg><span>0%</span>");
	cold.cycles = 1000000;
	page(false, true);
	has("class=\"a7\" width=\"16.0\" height=\"10\"/></svg><span>25.0%</span>");
}

/* --- JSON --- */

static json_t *as_json(void)
{
	static const struct trace_info info;
	const struct trace_end at_end = { .whole = true };
	const struct report_head head = { .file = "x.ibs", .info = &info, .end = &at_end };
	const struct annotate_print p = { .head = &head };
	json_t *o;
	size_t n;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &n);
	annotate_print_json(f, &p, &a);
	fclose(f);
	o = json_loads(printed, JSON_REJECT_DUPLICATES, NULL);
	if (!o)
		fail_msg("%s", printed);
	return o;
}

static const json_t *at(const json_t *o, const char *key, size_t i)
{
	return json_array_get(json_object_get(o, key), i);
}

static void test_json(void **state)
{
	static const struct inlined outer = { .function = { "outer", "_Z5outerv" } };
	static const struct inlined inner = {
		.function = { "inner" }, .file = "c.c", .line = 12, .into = &outer
	};
	const json_t *r;
	json_t *o;

	(void)state;
	a.namesakes = 7;
	a.fetches = 9;
	functions[0].code.mangled = "_Z4workv";
	functions[1].code = (struct symbol_code){ .name = "work", .dso = "lib", .start = 0x2000 };
	functions[1].total.samples = 7;
	a.n_functions = 2;
	callers[0] = (struct annotate_caller){ "main", "_Z4mainv", 50, 3000000 };
	callers[1] = (struct annotate_caller){ .samples = 150, .cycles = 1000000 };
	functions[0].n_callers = 2;
	rows[1].file = "a.c";
	rows[1].line = 3;
	rows[1].data =
		(struct type_access){ .kind = TYPE_POINTER, .type = "struct x", .field = "y" };
	rows[2].inside = true;
	rows[2].inlined = &inner;
	o = as_json();
	same(o, "file", "'x.ibs'");
	same(o, "function", "'work'");
	same(o, "mangled", "'_Z4workv'");
	assert_string_equal(json_string_value(json_object_get(o, "object")), program);
	same(o, "start", "4096");
	same(o, "size", "64");
	same(o, "others", "[{'object':'lib','mangled':null,'start':8192,'samples':7}]");
	/* all selected samples */
	same(o, "attribution",
	     "{'function':200,'namesakes':7,'elsewhere':1234,'inexact':5,'fetches':9}");
	same(o, "callers",
	     "[{'function':'main','mangled':'_Z4mainv','samples':50,'sample_share':0.25,"
	     "'share':0.75},{'function':null,'mangled':null,'samples':150,'sample_share':0.75,"
	     "'share':0.25}]");
	assert_int_equal(json_array_size(json_object_get(o, "instructions")), ROWS);
	r = at(o, "instructions", 1);
	same(r, "address", "4098");
	same(r, "bytes", "2");
	same(r, "inside", "false");
	same(r, "text", "'mov (%rdi), %eax'");
	same(r, "file", "'a.c'");
	same(r, "line", "3");
	same(r, "type", "'struct x'");
	same(r, "field", "'y'");
	same(r, "type_found", "'pointer'");
	same(r, "inlined", "[]");
	same(r, "samples", "165");
	same(r, "share", "0.825");
	r = at(o, "instructions", 2);
	same(r, "inside", "true");
	same(r, "file", "null");
	same(r, "line", "null");
	same(r, "type", "null");
	same(r, "type_found", "'no_access'");
	same(r, "inlined",
	     "[{'function':'inner','mangled':null,'call_file':'c.c','call_line':12},"
	     "{'function':'outer','mangled':'_Z5outerv','call_file':null,'call_line':null}]");
	same(r, "samples", "0");
	same(json_object_get(o, "total"), "samples", "200");
	same(json_object_get(o, "total"), "share", "1");
	json_decref(o);
	/* without miss cycles, what share of them is each caller's is unknown */
	functions[0].total.cycles = 0;
	o = as_json();
	same(at(o, "callers", 0), "sample_share", "0.25");
	same(at(o, "callers", 0), "share", "null");
	json_decref(o);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_rows),	   T(test_notes),   T(test_color),	  T(test_columns),
		T(test_width),	   T(test_source),  T(test_source_below), T(test_data),
		T(test_inlined),   T(test_callers), T(test_attribution),  T(test_namesakes),
		T(test_lines),	   T(test_refused), T(test_changed),	  T(test_html),
		T(test_html_bars), T(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
