// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables of lines that are shared in known ways, as text, CSV and JSON. Functions are named by files that do not exist. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/err.h"
#include "where/lines_print.h"

#define PID	7
#define HEAP	0x600000ull
#define PHYS	0x10000ull
#define CODE(k) (0x100000ull + (k)*0x10000)
#define CAPS	0xbffu /* Zen 4 */
#define CACHE	2      /* data of another complex */
#define DRAM	3

static const struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
static const struct trace_info info = {
	.host = "another machine", .source = "ibs", .format = "test", .pmu = &pmu, .n_pmus = 1
};
static const struct trace_end whole = { .whole = true };
static const struct screen wide = { .width = 160 }, narrow = { .width = 100 },
			   small = { .width = 70 };
static struct tasks *tasks;
static struct symbols *symbols;
static struct line_set *set;
static struct lines_print view;
static char *printed;
static __u64 n_samples;
static const struct lines *made; /* of the set; NULL: not yet */

static void map(__u64 start, __u64 bytes, bool exec, const char *path)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };

	ev.mmap = (struct trace_mmap){
		.tgid = PID, .tid = PID, .start = start, .len = bytes, .exec = exec, .path = path
	};
	tasks_add(tasks, &ev);
}

static void name_thread(__u32 tid, const char *name)
{
	struct trace_event ev = { .kind = TRACE_COMM, .time = 1 };

	ev.comm.tgid = PID;
	ev.comm.tid = tid;
	ev.comm.name = name;
	tasks_add(tasks, &ev);
}

/* @n accesses of 8 bytes by a thread, which has a CPU of its own; @source 0: a store. */
static void add(unsigned int n, __u32 thread, unsigned int line, unsigned int offset,
		unsigned int function, unsigned int source, unsigned int latency)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct trace_sample *s = &ev.sample;

	s->has_task = s->has_cpu = s->has_ip = true;
	s->tgid = PID;
	s->tid = PID + thread;
	s->cpu = 8 * thread;
	s->ip = CODE(function) + 16;
	s->op.cpu.caps = CAPS;
	s->op.present = ~0u;
	s->op.reg[IBS_OP_DATA2] = source;
	s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID | 4ull << 22 |
				  (source ? IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
						    IBS_OP_DATA3_L2_MISS | (__u64)latency << 32
					  : IBS_OP_DATA3_ST_OP);
	s->op.reg[IBS_DC_LINADDR] = HEAP + 64 * line + offset;
	s->op.reg[IBS_DC_PHYSADDR] = PHYS + 64 * line + offset;
	for (; n; n--) {
		ev.time = 1000 + n_samples++;
		lines_add(set, &ev);
	}
}

static int begin(void **state)
{
	static struct report_head head;
	const struct symbols_opts opts = { .info = &info };
	char path[32];

	(void)state;
	head = (struct report_head){ .file = "x.ibs", .info = &info, .end = &whole };
	tasks = tasks_new();
	tasks_keep_heap(tasks);
	map(HEAP, 0x100000, false, "[heap]");
	for (char k = 0; k < 4; k++) {
		snprintf(path, sizeof(path), "/nowhere/%c", 'a' + k);
		map(CODE(k), 0x1000, true, path);
	}
	name_thread(PID + 1, "one");
	name_thread(PID + 2, "two");
	n_samples = 0;
	set = lines_new(&(struct lines_opts){ .info = &info, .metric = IBS_METRIC_DC_MISS_LAT });
	if (symbols_new(&opts, &symbols, NULL))
		return -1;
	view = (struct lines_print){ .head = &head,
				     .tasks = tasks,
				     .symbols = symbols,
				     .screen = &wide,
				     .metric = IBS_METRIC_DC_MISS_LAT,
				     .view = { .of = &lines_columns, .sort = TABLE_CYCLES } };
	return 0;
}

static int end(void **state)
{
	(void)state;
	lines_free(set);
	made = NULL;
	symbols_free(symbols);
	tasks_free(tasks);
	free(printed);
	printed = NULL;
	return 0;
}

/* One line of each kind: shared falsely, and truly, read only, and private. */
static void add_all(void)
{
	add(100, 1, 0, 0, 0, 0, 0);
	add(60, 2, 0, 8, 1, CACHE, 400);
	add(40, 1, 1, 16, 0, CACHE, 300);
	add(30, 1, 1, 16, 0, 0, 0);
	add(20, 2, 1, 16, 1, 0, 0);
	add(50, 1, 2, 0, 0, DRAM, 200);
	add(50, 2, 2, 32, 0, DRAM, 200);
	add(10, 1, 3, 0, 2, DRAM, 100);
}

static const struct lines *finish(void)
{
	made = made ?: lines_finish(set);
	return made;
}

static const char *print(enum table_format format, const struct screen *screen)
{
	struct err err = { "" };
	size_t n;
	FILE *f;

	view.view.format = format;
	view.screen = screen;
	free(printed);
	f = open_memstream(&printed, &n);
	if (lines_print(f, &view, finish(), &err))
		fail_msg("%s", err.text);
	fclose(f);
	return printed;
}

static void has(const char *what)
{
	if (!strstr(printed, what))
		fail_msg("'%s' is not in '%.3000s'", what, printed);
}

static void has_not(const char *what)
{
	if (strstr(printed, what))
		fail_msg("'%s' is in '%s'", what, printed);
}

/*
 * Miss cycles are samples x latency x 1000: 24, 20, 12 and 1 million, of which the first and the third are of lines that
 * another cache had modified.
 */
static void test_text(void **state)
{
	(void)state;
	add_all();
	assert_string_equal(
		print(FORMAT_TEXT, &wide),
		"1 falsely shared line: [heap], bytes 0 and 8, 66.7% of HITM.\n"
		"1 truly shared line: [heap], byte 16, 33.3% of HITM.\n"
		"1 line of one thread or CPU is not listed (--all).\n"
		"x.ibs: 0 samples; lost: not recorded\n"
		"processor unknown, host another machine; ibs_op/cnt_ctl=1/, period 1,000\n"
		"\n"
		"PHYS LINE  VERDICT    SLOTS     FUNCTIONS                     VARIABLE  COMM     "
		"MISS CYCLES    HITM   SHARE  STORES  LOADS  HITM NEAR  THREADS  CPUS  MEAN\n"
		"0x10000    false      wr......  [/nowhere/a] -> [/nowhere/b]  [heap]    one;two   "
		"    24.0 M  100.0%   42.1%     100     60         60        2     2   400\n"
		"0x10080    read-only  r...r...  [/nowhere/a]                  [heap]    one;two   "
		"    20.0 M      0%   35.1%       0    100          0        2     2   200\n"
		"0x10040    true       ..W.....  [/nowhere/a]                  [heap]    one;two   "
		"    12.0 M  100.0%   21.1%      50     40         40        2     2   300\n"
		"other (1)                                                                         "
		"   ~1.00 M      0%   ~1.8%       0     10          0        -     -   100\n"
		"total                                                                             "
		"    57.0 M   63.2%  100.0%     150    210        100        -     -   271\n"
		"\n"
		"95% intervals of cycles: +-26% (first row) to +-32%\n"
		"\n"
		"data      360 samples = 0 variable + 360 heap\n"
		"\n"
		"symbols   360 samples = 0 named + 360 no_symbol\n"
		"\n"
		"slots     of 8 bytes: W written and used by several, w written, r read, . unused\n"
		"\n"
		"0x10000: move offset 0 (written by [/nowhere/a]) and offset 8 (read by "
		"[/nowhere/b]) to lines of their own, 64 bytes apart\n"
		"0x10040: write offset 16 less often (written by [/nowhere/a] (+1)): batch the "
		"updates or keep one copy per CPU\n");
	print(FORMAT_TEXT, &narrow);
	has("\nPHYS LINE  VERDICT    SLOTS     FUNCTIONS                     VARIABLE  MISS CYCLES "
	    "   HITM   SHARE\n");
	has("\n0x10040: write offset 16 less often (written by [/nowhere/a] (+1)): batch the "
	    "updates or keep one\n"
	    "  copy per CPU\n");
	print(FORMAT_TEXT, &small);
	has("\nPHYS LINE  VERDICT    FUNCTIONS            MISS CYCLES    HITM   SHARE\n");
	has_not("slots ");
	/* with those of one thread */
	view.all = true;
	print(FORMAT_TEXT, &wide);
	has("\n0x100c0    private    r.......  [/nowhere/c] ");
	has_not("not listed");
	has_not("other (");
}

/* The order, and how many rows there are. */
static void test_sorted(void **state)
{
	const char *text;

	(void)state;
	add_all();
	view.view.sort = TABLE_SAMPLES;
	text = print(FORMAT_TEXT, &wide);
	assert_true(strstr(text, "\n0x10000") < strstr(text, "\n0x10080"));
	assert_true(strstr(text, "\n0x10080") < strstr(text, "\n0x10040"));
	view.view.sort = TABLE_STORES;
	text = print(FORMAT_TEXT, &wide);
	assert_true(strstr(text, "\n0x10000") < strstr(text, "\n0x10040"));
	assert_true(strstr(text, "\n0x10040") < strstr(text, "\n0x10080"));
	view.view.top = 1;
	print(FORMAT_TEXT, &wide);
	has("\n0x10000 ");
	has_not("\n0x10040 ");
	has("\nother (3) ");
	view.view.top = 0;
	view.view.n_columns = 2;
	view.view.columns[0] = TABLE_LOADS;
	view.view.columns[1] = TABLE_TRANSFERS;
	print(FORMAT_TEXT, &wide);
	has(" COMM     LOADS  TRANSFERS\n");
	print(FORMAT_CSV, &wide);
	has(",variables_mangled,loads,transfers,source\n");
	has("\n0x10040,physical,,true sharing,0,..W.....,\"[/nowhere/a];[/nowhere/b]\",");
}

/* Lines that are alike are in the order of their addresses. */
static void test_alike(void **state)
{
	const char *text;

	(void)state;
	for (unsigned int line = 5; line > 2; line--)
		for (__u32 thread = 1; thread < 3; thread++)
			add(30, thread, line, 0, 0, DRAM, 200);
	text = print(FORMAT_TEXT, &wide);
	assert_true(strstr(text, "\n0x100c0") < strstr(text, "\n0x10100"));
	assert_true(strstr(text, "\n0x10100") < strstr(text, "\n0x10140"));
}

/* Nothing is shared: no table, unless it is asked for. */
static void test_private(void **state)
{
	(void)state;
	add(10, 1, 3, 0, 2, DRAM, 100);
	add(1, 1, 3, 0, 2, 0, 0);
	assert_string_equal(
		print(FORMAT_TEXT, &wide),
		"No shared line in 11 samples.\n"
		"1 line of one thread or CPU is not listed (--all).\n"
		"x.ibs: 0 samples; lost: not recorded\n"
		"processor unknown, host another machine; ibs_op/cnt_ctl=1/, period 1,000\n");
}

static void test_empty(void **state)
{
	(void)state;
	print(FORMAT_TEXT, &wide);
	has("\n\nno samples\n");
	has_not("shared");
}

/* Lines of a handful of samples are told of only if nothing else is, and they cost enough. */
static void test_few(void **state)
{
	(void)state;
	add(2, 1, 0, 0, 0, 0, 0);
	add(2, 2, 0, 8, 1, CACHE, 400);
	print(FORMAT_TEXT, &wide);
	has("1 falsely shared line: [heap], bytes 0 and 8, 100.0% of HITM.\n");
	has("\n0x10000: move offset 0 ");
	lines_free(set);
	set = lines_new(&(struct lines_opts){ .info = &info, .metric = IBS_METRIC_DC_MISS_LAT });
	made = NULL;
	add(2, 1, 0, 0, 0, 0, 0);
	add(2, 2, 0, 8, 1, CACHE, 400);
	add(1000, 1, 3, 0, 2, DRAM, 400);
	print(FORMAT_TEXT, &wide);
	has("No falsely or truly shared line in 1,004 samples, but for 1 with fewer than 20.\n");
	has_not(": move ");
}

/* Which of several is the dearest, by what it costs. */
static void test_several(void **state)
{
	struct lines_hottest h;

	(void)state;
	for (unsigned int line = 0; line < 2; line++) {
		add(100, 1, line, 0, 0, 0, 0);
		add(60, 2, line, 8 * (line + 1), 1, CACHE, 400 + 400 * line);
	}
	print(FORMAT_TEXT, &wide);
	has("2 falsely shared lines, 100.0% of HITM; first: [heap], bytes 0 and 16.\n");
	assert_true(lines_hottest(&view, finish(), .5, &h));
	assert_string_equal(h.line, "0x10040");
	assert_int_equal(h.verdict, LINE_VERDICT_FALSE);
	assert_false(h.likely);
	assert_string_equal(h.name, "[heap], bytes 0 and 16");
	assert_null(h.function); /* a file is none */
	assert_true(h.of_hitm);
	assert_true(fabs(h.share - 48. / 72) < 1e-9 && fabs(h.cycles_share - 48. / 72) < 1e-9);
	lines_hottest_free(&h);
	assert_false(lines_hottest(&view, finish(), .7, &h));
	assert_string_equal(line_verdict_how(LINE_VERDICT_FALSE), "falsely");
	assert_string_equal(line_verdict_how(LINE_VERDICT_MIXED), "falsely");
	assert_string_equal(line_verdict_how(LINE_VERDICT_TRUE), "truly");
	assert_string_equal(line_verdict_how(LINE_VERDICT_SHARED), "");
}

static void test_csv(void **state)
{
	(void)state;
	add_all();
	print(FORMAT_CSV, &wide);
	assert_ptr_equal(
		strstr(printed,
		       "line,address,pid,verdict,likely,slots,writers,readers,variables,"
		       "containers,comms,writers_mangled,readers_mangled,variables_mangled,"
		       "miss_cycles,low,high,share,"),
		printed);
	has("\n0x10000,physical,,false "
	    "sharing,0,wr......,[/nowhere/a],[/nowhere/b],[heap],,\"one;two\","
	    "[/nowhere/a],[/nowhere/b],[heap],24000000,");
	has(",160,1,0,60,0,,0,0,60,100,400.0,2,2,ibs\n0x10080,physical,,read-only,0,r...r...,,[/"
	    "nowhere/a],");
	has("\n0x100c0,physical,,private,0,r.......,,[/nowhere/c],[heap],,one,,[/nowhere/"
	    "c],[heap],1000000,");
	has(",10,0,0,0,0,,0,0,10,0,100.0,1,1,ibs\n");
	has_not("[rest]");
	view.view.top = 1;
	print(FORMAT_CSV, &wide);
	has("\n[rest],,,,,,,,,,,,,,33000000,");
}

/* @want: JSON, with ' for " */
static void same(json_t *o, const char *key, const char *want)
{
	char text[1024];
	json_t *wanted;

	snprintf(text, sizeof(text), "%s", want);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	wanted = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(wanted);
	if (!json_equal(json_object_get(o, key), wanted))
		fail_msg("%s: not %s in %s", key, want, printed);
	json_decref(wanted);
}

static void test_json(void **state)
{
	json_t *o, *l, *slots;

	(void)state;
	add_all();
	o = json_loads(print(FORMAT_JSON, &wide), 0, NULL);
	assert_non_null(o);
	same(o, "addresses", "{'physical':360,'virtual':0,'none':0,'moved_pages':0}");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "data"), "heap")),
			 360);
	assert_int_equal(json_array_size(json_object_get(o, "lines")), 4);
	l = json_array_get(json_object_get(o, "lines"), 0);
	same(l, "line", "'0x10000'");
	same(l, "address", "'physical'");
	same(l, "pid", "null");
	same(l, "moved", "false");
	same(l, "verdict", "'false sharing'");
	same(l, "likely", "false");
	same(l, "advice",
	     "'move offset 0 (written by [/nowhere/a]) and offset 8 (read by [/nowhere/b]) "
	     "to lines of their own, 64 bytes apart'");
	slots = json_object_get(l, "slots");
	assert_int_equal(json_array_size(slots), 8);
	same(json_array_get(slots, 1), "offset", "8");
	same(json_array_get(slots, 1), "loads", "60");
	same(json_array_get(slots, 1), "stores", "0");
	same(json_array_get(slots, 1), "hitm", "60");
	same(json_array_get(slots, 1), "shared", "false");
	same(json_array_get(slots, 1), "variables",
	     "[{'name':'[heap]','mangled':null,'samples':60}]");
	same(json_array_get(slots, 1), "writers", "[]");
	same(json_array_get(slots, 1), "readers",
	     "[{'name':'[/nowhere/b]','mangled':null,'inlined_into':null,'samples':60}]");
	same(l, "writers",
	     "[{'name':'[/nowhere/a]','mangled':null,'inlined_into':null,'samples':100}]");
	same(l, "variables", "[{'name':'[heap]','mangled':null,'samples':160}]");
	same(l, "containers", "[]");
	same(l, "comms", "[{'name':'one','samples':100},{'name':'two','samples':60}]");
	same(l, "miss_cycles", "24000000");
	same(l, "samples", "160");
	same(l, "hitm", "1");
	same(l, "hitm_near", "60");
	same(l, "hitm_socket", "null");
	same(l, "mean", "400");
	same(l, "threads", "2");
	l = json_object_get(o, "total");
	same(l, "miss_cycles", "57000000");
	same(l, "samples", "360");
	same(l, "loads", "210");
	same(l, "stores", "150");
	same(l, "threads", "null");
	/* 57 M, and twice the root of the sum of squares, 4.2 M */
	assert_in_range(json_number_value(json_object_get(l, "low")), 48500000, 49500000);
	assert_in_range(json_number_value(json_object_get(l, "high")), 65000000, 66500000);
	same(json_object_get(o, "rest"), "lines", "0");
	json_decref(o);
}

/* One line by any of its addresses, physical or virtual. */
static void test_one(void **state)
{
	struct err err = { "" };

	(void)state;
	add_all();
	view.has_line = view.is_address = true;
	view.line = PHYS + 8;
	assert_string_equal(
		print(FORMAT_TEXT, &wide),
		"x.ibs: 0 samples; lost: not recorded\n"
		"processor unknown, host another machine; ibs_op/cnt_ctl=1/, period 1,000\n"
		"\n"
		"line      0x10000, physical\n"
		"virtual   0x600000 of process 7\n"
		"verdict   false sharing\n"
		"advice    move offset 0 (written by [/nowhere/a]) and offset 8 (read by "
		"[/nowhere/b]) to lines of their own, 64 bytes apart\n"
		"\n"
		"offset    0       8       16      24      32      40      48      56\n"
		"bytes     wwwwwwwwrrrrrrrr................................................\n"
		"\n"
		"OFFSET  WIDTH  ACCESS  VARIABLE  FUNCTION      COMM  CONTAINER  MISS CYCLES    "
		"HITM   SHARE  STORES  LOADS  HITM NEAR  THREADS  CPUS  MEAN\n"
		"0       8      store   [heap]    [/nowhere/a]  one   [unknown]            0       "
		"-      0%     100      0          0        1     1     -\n"
		"8       8      load    [heap]    [/nowhere/b]  two   [unknown]       24.0 M  "
		"100.0%  100.0%       0     60         60        1     1   400\n"
		"total                                                                24.0 M  "
		"100.0%  100.0%     100     60         60        -     -   400\n"
		"\n"
		"95% intervals of cycles: +-26%\n"
		"\n"
		"data      160 samples = 0 variable + 160 heap\n"
		"\n"
		"symbols   160 samples = 0 named + 160 no_symbol\n");
	print(FORMAT_CSV, &wide);
	has("\n8,8,load,[heap],[/nowhere/b],two,,,,,,24000000,");
	view.line = HEAP + 64 + 16;
	print(FORMAT_TEXT, &wide);
	has("\nline      0x10040, physical\n");
	has("\nbytes     ................wwwwwwww........................................\n");
	view.line = 0x900000;
	assert_int_equal(lines_print(stdout, &view, finish(), &err), -ENOENT);
}

/* An access of @width bytes by process @pid, of a line that is physical if @phys. */
static void add_access(__u32 pid, __u64 virt, __u64 phys, unsigned int width, __u64 data3)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1000 + n_samples++ };
	struct trace_sample *s = &ev.sample;

	s->has_task = s->has_cpu = s->has_ip = true;
	s->tgid = s->tid = pid;
	s->ip = CODE(0) + 16;
	s->op.cpu.caps = CAPS;
	s->op.present = ~0u;
	s->op.reg[IBS_OP_DATA3] = data3 | (virt ? IBS_OP_DATA3_LIN_VALID : 0) |
				  (phys ? IBS_OP_DATA3_PHY_VALID : 0) | (__u64)width << 22;
	s->op.reg[IBS_DC_LINADDR] = virt;
	s->op.reg[IBS_DC_PHYSADDR] = phys;
	lines_add(set, &ev);
}

#define LD IBS_OP_DATA3_LD_OP
#define ST IBS_OP_DATA3_ST_OP

/* Bytes, kinds of access, and the virtual addresses of one line. */
static void test_bytes(void **state)
{
	static const __u64 virtual[] = { 0x5000, 0x6000, 0x7000, 0x8000, 0x9000 };

	(void)state;
	for (int i = 0; i < 3; i++)
		add_access(20 + i, virtual[i], PHYS, 1, LD);
	add_access(20, virtual[0] + 4, PHYS + 4, 3, LD | ST);
	add_access(20, virtual[0] + 16, PHYS + 16, 2, LD | IBS_OP_DATA3_SW_PF);
	add_access(20, virtual[0] + 60, PHYS + 60, 4, ST); /* beyond the end of the line */
	add_access(20, 0xffff888000000000 + 24, PHYS + 24, 0, LD);
	view.has_line = view.is_address = view.all = true;
	view.line = PHYS;
	print(FORMAT_TEXT, &wide);
	has("line      0x10000, physical\n"
	    "virtual   0x5000 of process 20, 0x6000 of process 21, 0x7000 of process 22, "
	    "0xffff888000000000 of the kernel ...\n"
	    "verdict   ");
	has("\noffset    0       8       16      24      32      40      48      56\n"
	    "bytes     r...wwww................r...................................wwww\n\n");
	has("\n0       1          load        ");
	has("\n4       4          load+store  ");
	has("\n16      2          prefetch    ");
	has("\n24      [unknown]  load        ");
	has("\n60      8          store       ");
}

/* By a name that one line has. */
static void test_variable(void **state)
{
	struct err err = { "" };
	json_t *o;

	(void)state;
	map(0x700000, 0x1000, false, "/dev/shm/x");
	add_all();
	add_access(PID, 0x700008, 0x20008, 1, LD);
	view.has_line = true;
	view.variable = "[/dev/shm/x]";
	o = json_loads(print(FORMAT_JSON, &wide), 0, NULL);
	assert_non_null(o);
	same(json_object_get(o, "line"), "line", "'0x20000'");
	assert_int_equal(json_array_size(json_object_get(o, "accesses")), 1);
	json_decref(o);
	view.variable = "[heap]";
	assert_int_equal(lines_print(stdout, &view, finish(), &err), -ENOENT);
	assert_non_null(strstr(err.text, "--line: '[heap]' is in 4 lines: 0x10"));
	assert_non_null(strstr(err.text, "; give an address"));
	assert_null(strstr(err.text, ", ..."));
	view.variable = "heap.hits";
	assert_int_equal(lines_print(stdout, &view, finish(), &err), -ENOENT);
	assert_string_equal(err.text,
			    "--line: no sample is in a line with a variable or field 'heap.hits'; "
			    "`ibscope c2c --all` lists variables and addresses");
	view.is_address = true;
	view.variable = NULL;
	view.line = 0x900000;
	assert_int_equal(lines_print(stdout, &view, finish(), &err), -ENOENT);
	assert_string_equal(err.text, "--line: no sample is in the line of 0x900000");
}

/* More lines than an error names. */
static void test_many(void **state)
{
	struct err err = { "" };

	(void)state;
	for (unsigned int i = 0; i < 6; i++)
		add(1, 1, i, 0, 0, DRAM, 100);
	view.has_line = true;
	view.variable = "[heap]";
	assert_int_equal(lines_print(stdout, &view, finish(), &err), -ENOENT);
	assert_non_null(strstr(err.text, "is in 6 lines: "));
	assert_non_null(strstr(err.text, ", ...; give an address"));
}

/* Print lines as if they were of the tables of the kernel. Return: what lines_print() returned */
static int print_hot(enum table_format format, struct lines *hot, struct err *err)
{
	size_t n;
	FILE *f;
	int ret;

	view.view.format = format;
	free(printed);
	f = open_memstream(&printed, &n);
	ret = lines_print(f, &view, hot, err);
	fclose(f);
	return ret;
}

/* What fed the tables, and how much of it is in them; a line has samples and threads by slot. */
static void test_hot(void **state)
{
	static const struct {
		__u64 feed;
		const char *text;
	} feeds[] = {
		{ IBS_LINE_FEED_STORES, "stores of" },
		{ IBS_LINE_FEED_SHARING, "stores and cache hits of" },
		{ IBS_LINE_FEED_SHARING | IBS_SRC_MEMORY,
		  "stores, cache hits and memory loads of" },
		{ IBS_SRC_MEMORY | (__u32)IBS_LINE_FEED_WALKS, "memory loads and page walks of" },
	};
	struct err err = { "" };
	struct lines hot;
	char want[256];
	json_t *o;

	(void)state;
	add_all();
	hot = *finish();
	hot.hot = (struct lines_hot){
		.tables = 2, .fed = 1200, .kept = 1100, .lack = 7, .replaced = 3, .cpus = 2
	};
	for (int i = 0; i < 4; i++) {
		hot.hot.feed = feeds[i].feed;
		assert_int_equal(print_hot(FORMAT_TEXT, &hot, &err), 0);
		snprintf(want, sizeof(want),
			 "\nlines     by physical address; 1,100 of 1,200 %s 2 CPUs are in them, a "
			 "line lacks at most 7\n",
			 feeds[i].text);
		has(want);
	}
	hot.hot.feed = IBS_LINE_FEED_SHARING;
	print_hot(FORMAT_JSON, &hot, &err);
	o = json_loads(printed, 0, NULL);
	same(o, "hot",
	     "{'feed':['stores','caches'],'fed':1200,'kept':1100,'lack':7,'replaced':3,'cpus':2}");
	json_decref(o);
	view.has_line = view.is_address = true;
	view.line = PHYS;
	assert_int_equal(print_hot(FORMAT_TEXT, &hot, &err), 0);
	has("\noffset    0       8       16      24      32      40      48      56\n"
	    "slots     wwwwwwwwrrrrrrrr................................................\n"
	    "loads     0       60      0       0       0       0       0       0\n"
	    "stores    100     0       0       0       0       0       0       0\n"
	    "hitm      0       60      0       0       0       0       0       0\n"
	    "readers   0       1       0       0       0       0       0       0\n"
	    "writers   1       0       0       0       0       0       0       0\n"
	    "\nsamples and threads are known by slot; functions and latencies only by line\n\n");
	has_not("\nbytes ");
	hot.cpu.quirks |= IBS_QUIRK_NO_CACHE_HIT_ST;
	print_hot(FORMAT_TEXT, &hot, &err);
	has_not("\nhitm ");
	/* what is not among them may have been recorded */
	view.line = 0x900000;
	assert_int_equal(print_hot(FORMAT_JSON, &hot, &err), -ENOENT);
	assert_string_equal(err.text,
			    "--line: the line of 0x900000 is not among the 4 hottest lines, "
			    "the only ones with details; record it with `ibscope record`");
	o = json_loads(printed, 0, NULL);
	same(o, "line", "null");
	same(o, "accesses", "[]");
	json_decref(o);
	hot.n = 0;
	assert_int_equal(print_hot(FORMAT_TEXT, &hot, &err), -ENOENT);
	assert_non_null(strstr(err.text, "--line: no line was accessed often enough to be kept; "));
}

/* What is said of addresses that are missing, and of pages that moved. */
static void test_head(void **state)
{
	struct err err = { "" };
	struct lines other;

	(void)state;
	add_all();
	other = *finish();
	other.only_virtual = 1200;
	other.no_address = 1;
	other.moved = 1;
	print_hot(FORMAT_TEXT, &other, &err);
	has("\nlines     by physical address; 1,200 samples have only a virtual one; 1 sample has "
	    "no "
	    "address; 1 page moved\n");
	other.no_address = other.moved = 2;
	print_hot(FORMAT_TEXT, &other, &err);
	has("; 2 samples have no address; 2 pages moved\n");
	other.physical = 0;
	print_hot(FORMAT_TEXT, &other, &err);
	has("\nlines     by VIRTUAL address: no physical one is recorded, so sharing between "
	    "processes does not show; 2 samples");
}

/* The block that a line is in, and where in it the line begins. */
static void test_block(void **state)
{
	static const __u64 stack[] = { CODE(2) + 16 };
	struct trace_event ev = { .kind = TRACE_ALLOC, .time = 2 };

	(void)state;
	ev.alloc = (struct trace_alloc){ .tgid = PID,
					 .tid = 12,
					 .addr = HEAP + 0x110,
					 .size = 4160,
					 .weight = 4160,
					 .stack = stack,
					 .n_stack = 1 };
	tasks_add(tasks, &ev);
	add(1, 1, 4, 0x38, 0, DRAM, 100);
	add(1, 1, 4, 0x18, 0, DRAM, 100);
	add(1, 1, 5, 8, 0, DRAM, 100);
	add(1, 1, 200, 8, 0, DRAM, 100); /* of no block */
	view.has_line = view.is_address = view.all = true;
	view.line = HEAP + 0x138;
	print(FORMAT_TEXT, &wide);
	has("\nin        4,160 bytes from [/nowhere/c] + 0x0, allocated by thread 12\nverdict");
	view.line = HEAP + 0x148;
	print(FORMAT_TEXT, &wide);
	has("\nin        4,160 bytes from [/nowhere/c] + 0x30, allocated by thread 12\nverdict");
	view.line = HEAP + 200 * 64;
	print(FORMAT_TEXT, &wide);
	has_not("\nin ");
}

/* What samples of one access add up to, and which samples are of no line. */
static void test_accesses(void **state)
{
	static const struct {
		__u64 time, latency;
	} samples[] = { { 2000, 400 }, { 1500, 500 }, { 2500, 300 } };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct trace_sample *s = &ev.sample;
	const struct line_access *a;
	unsigned int n_physical = 0, n_with_task = 0;
	const struct lines *l;

	(void)state;
	s->has_task = s->has_cpu = s->has_ip = true;
	s->tgid = PID;
	s->tid = 9;
	s->cpu = 3;
	s->ip = CODE(1);
	s->cgroup_id = 5;
	s->op.cpu.caps = CAPS;
	s->op.present = ~0u;
	s->op.reg[IBS_OP_DATA2] = DRAM;
	s->op.reg[IBS_DC_LINADDR] = HEAP;
	s->op.reg[IBS_DC_PHYSADDR] = PHYS;
	for (int i = 0; i < 3; i++) {
		ev.time = samples[i].time;
		s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
					  IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_LIN_VALID |
					  IBS_OP_DATA3_PHY_VALID | samples[i].latency << 32;
		lines_add(set, &ev);
	}
	/* nothing is known of who it is of */
	s->has_task = s->has_cpu = s->has_ip = false;
	s->cgroup_id = 0;
	lines_add(set, &ev);
	/* of an address that is virtual alone, or of none */
	s->op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_PHY_VALID;
	lines_add(set, &ev);
	lines_add(set, &ev);
	s->op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_LIN_VALID;
	lines_add(set, &ev);
	/* not an access, a record without a register, a fetch */
	s->op.present &= ~(1u << IBS_OP_DATA2);
	lines_add(set, &ev);
	s->op.present = ~0u;
	s->op.reg[IBS_OP_DATA3] = 0;
	lines_add(set, &ev);
	ev.kind = TRACE_SAMPLE_FETCH;
	lines_add(set, &ev);
	l = finish();
	assert_int_equal(l->physical, 4);
	assert_int_equal(l->only_virtual, 2);
	assert_int_equal(l->no_address, 1);
	assert_int_equal(l->other, 2);
	assert_true(l->has_period);
	for (size_t i = 0; i < l->n; i++) {
		if (!l->line[i].physical)
			continue;
		n_physical++;
		assert_int_equal(l->line[i].n_access, 2);
		for (size_t k = 0; k < 2; k++) {
			a = &l->line[i].access[k];
			assert_int_equal(a->addr, HEAP);
			assert_int_equal(a->phys, PHYS);
			assert_int_equal(a->kind, LINE_LOAD);
			if (!a->has) {
				assert_int_equal(a->samples, 1);
				assert_true(!a->ip && !a->tgid && !a->tid && !a->cpu);
				continue;
			}
			n_with_task++;
			assert_int_equal(a->has, LINE_HAS_TASK | LINE_HAS_CPU | LINE_HAS_IP);
			assert_int_equal(a->ip, CODE(1));
			assert_int_equal(a->tgid, PID);
			assert_int_equal(a->tid, 9);
			assert_int_equal(a->cpu, 3);
			assert_int_equal(a->cgroup_id, 5);
			assert_int_equal(a->samples, 3);
			assert_int_equal(a->valid, 3);
			assert_int_equal(a->sum, 1200);
			assert_int_equal(a->cycles, 1200000);
			assert_int_equal(a->first, 1500);
			assert_int_equal(a->last, 2500);
			assert_true(a->largest == 500000);
			assert_true(fabs(a->squares - (16e10 + 25e10 + 9e10)) < 1e6);
		}
	}
	assert_int_equal(n_physical, 1);
	assert_int_equal(n_with_task, 1);
}

/* The top lines that others show: names of most samples, and how many more there are. */
static void test_top(void **state)
{
	json_t *a, *l;
	size_t n;
	FILE *f;

	(void)state;
	add_all();
	for (int judged = 0; judged < 2; judged++) {
		struct json_writer w;

		free(printed);
		f = open_memstream(&printed, &n);
		w = (struct json_writer){ .f = f };
		json_begin_array(&w, NULL);
		assert_int_equal(lines_put_top(&w, &view, finish(), judged, NULL, NULL), judged);
		json_finish(&w);
		fclose(f);
		a = json_loads(printed, 0, NULL);
		assert_non_null(a);
		assert_int_equal(json_array_size(a), 4 - judged);
		l = json_array_get(a, 2);
		same(l, "line", "'0x10040'");
		same(l, "verdict", judged ? "'true'" : "null");
		same(l, "slots", "'..W.....'");
		same(l, "writer", "'[/nowhere/a]'");
		same(l, "other_writers", "1");
		same(l, "reader", "'[/nowhere/a]'");
		same(l, "other_readers", "0");
		same(l, "variable", "'[heap]'");
		same(l, "threads", "2");
		same(l, "samples", "90");
		same(l, "loads", "40");
		same(l, "stores", "50");
		same(l, "hitm", "1");
		same(l, "cycles", "12000000");
		json_decref(a);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_text),     T(test_sorted), T(test_alike),
					    T(test_private),  T(test_empty),  T(test_few),
					    T(test_several),  T(test_csv),    T(test_json),
					    T(test_one),      T(test_bytes),  T(test_variable),
					    T(test_many),     T(test_hot),    T(test_block),
					    T(test_accesses), T(test_head),   T(test_top) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
