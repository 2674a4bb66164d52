// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A report as text, CSV and JSON, of rows made by hand, and what is printed above and below it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "json_same.h"
#include "report/report_print.h"
#include "report/report_private.h"

#include <errno.h>
#include <math.h>

static struct trace_pmu pmus[2];
static struct trace_info info;
static struct trace_end end;
static struct report_head head;
static char text[16384];

static int begin(void **state)
{
	(void)state;
	pmus[0] = (struct trace_pmu){ .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 100000 };
	pmus[1] = (struct trace_pmu){ .name = "ibs_fetch//", .period = 65536 };
	info = (struct trace_info){ .format = "test",
				    .source = "ibs",
				    .host = "h1",
				    .release = "6.12",
				    .has_cpu = true,
				    .n_cpus = 2,
				    .pmu = pmus,
				    .n_pmus = 1 };
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	strcpy(info.cpu.name, "AMD EPYC 9654");
	end = (struct trace_end){ .whole = true };
	head = (struct report_head){ .file = "f.ibs",
				     .info = &info,
				     .end = &end,
				     .options = "",
				     .op_samples = 12402,
				     .selected = 12402 };
	return 0;
}

/* What is printed until it is closed is in @text. */
static FILE *begin_text(void)
{
	*text = 0;
	return fmemopen(text, sizeof(text), "w");
}

static void is(const char *want)
{
	assert_string_equal(text, want);
}

static void has(const char *what)
{
	if (!strstr(text, what))
		fail_msg("'%s' is not in\n%s", what, text);
}

static void has_not(const char *what)
{
	if (strstr(text, what))
		fail_msg("'%s' is in\n%s", what, text);
}

/* --- the lines above --- */

static void print_head(void)
{
	FILE *f = begin_text();

	report_print_head(f, &head, IBS_METRIC_DC_MISS_LAT);
	fclose(f);
}

#define MACHINE "Zen 4, 2 CPUs, host h1; ibs_op/cnt_ctl=1/, period 100,000\n"

static void test_short(void **state)
{
	(void)state;
	print_head();
	is("f.ibs: 12,402 samples; lost: not recorded\n" MACHINE);
	head.selected = 5;
	head.shown = "the slowest";
	print_head();
	is("f.ibs: 12,402 samples, 5 selected, the slowest; lost: not recorded\n" MACHINE);
	head = (struct report_head){ .file = "",
				     .info = &info,
				     .end = &end,
				     .options = "",
				     .op_samples = 1,
				     .selected = 1 };
	info.simulated = true;
	info.n_cpus = 1;
	print_head();
	is("live: 1 sample; lost: not recorded\n"
	   "SIMULATED samples: Zen 4, 1 CPU, host h1; ibs_op/cnt_ctl=1/, period 100,000\n");
	info.has_cpu = false;
	info.n_cpus = 0;
	info.n_pmus = 0;
	*info.host = 0;
	print_head();
	has("SIMULATED samples: processor unknown, host unknown\n");
}

static void test_events(void **state)
{
	(void)state;
	head.fetch_samples = 1;
	info.n_pmus = 2;
	pmus[0].freq = true;
	pmus[0].period = 4000;
	pmus[1].period = 0;
	print_head();
	has("f.ibs: 12,403 samples, 12,402 selected; lost");
	has("host h1; ibs_op/cnt_ctl=1/, 4,000 samples a second; ibs_fetch//, period unknown\n");
	pmus[1].reach = 1;
	print_head();
	has("; ibs_fetch//, period varies\n");
}

static void test_lost(void **state)
{
	(void)state;
	head.lost_records = 2;
	print_head();
	has("; lost: 2 records of unknown kind\n");
	head.lost_samples = 1005;
	print_head();
	has("; lost: 1,005 samples and 2 records of unknown kind\n");
	end.has_ledger = true;
	end.ledger.seen = 12500;
	end.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL] = 98;
	print_head();
	has("; lost: 98 of 12,500 samples seen; by notices in between 1,005 samples and 2 records "
	    "of unknown kind\n");
	head.lost_samples = 0;
	end.ledger.pmu_exact = true;
	end.ledger.unseen = 3;
	print_head();
	has("; lost: 98 of 12,500 samples seen, 3 unseen; by notices in between 2 records of ");
	head.lost_records = 0;
	info.n_pmus = 2;
	end.n_ledgers = 2;
	end.event_ledger[0].seen = 10;
	end.event_ledger[0].outcome[IBS_OUTCOME_LOST_READ] = 1;
	end.event_ledger[1].seen = 20;
	print_head();
	has("; lost: 1 of 10 samples of ibs_op seen; 0 of 20 samples of ibs_fetch seen\n");
	/* strata have names of their own */
	pmus[0].reach = pmus[1].reach = 1;
	pmus[1].op = true;
	print_head();
	has("1 of 10 samples of the full stratum seen; 0 of 20 samples of the miss stratum seen\n");
	/* one ledger is that of all */
	end.n_ledgers = 1;
	print_head();
	has("; lost: 98 of 12,500 samples seen, 3 unseen\n");
}

static void test_incomplete(void **state)
{
	struct trace_end other = { .whole = true };
	const struct report_head parts[] = {
		{ .file = "a.ibs", .info = &info, .end = &other, .options = "" },
		{ .file = "b.ibs", .info = &info, .end = &end, .options = "" }
	};

	(void)state;
	end.whole = false;
	strcpy(end.missing, "the end");
	print_head();
	has(MACHINE "file      f.ibs (test), INCOMPLETE: the end\n");
	head.part = parts;
	head.n_parts = 2;
	print_head();
	is("2 recordings: 12,402 samples; lost: not recorded\n" MACHINE
	   "file      b.ibs (test), INCOMPLETE: the end\n");
	head.n_parts = 0;
	end = (struct trace_end){ .whole = true, .skipped_blocks = 2, .skipped_bytes = 4096 };
	info.format = NULL;
	print_head();
	has(MACHINE
	    "file      f.ibs (unknown), INCOMPLETE: parts are damaged (2 blocks, 4,096 bytes "
	    "skipped)\n");
	head.file = ""; /* live */
	print_head();
	has_not("INCOMPLETE");
}

#define LATENCY                                                                           \
	"latency   dc_miss_lat, core cycles; percentiles are upper edges of buckets, at " \
	"most 1/8 too high\n"

static void test_verbose(void **state)
{
	(void)state;
	log_set_verbose(true);
	print_head();
	is("machine   AMD EPYC 9654 (Zen 4, family 0x19 model 0x11), 2 CPUs, host h1, Linux 6.12\n"
	   "event     ibs_op/cnt_ctl=1/, period 100,000\n"
	   "samples   12,402, selected 12,402\n"
	   "lost      not recorded\n"
	   "file      f.ibs (test), complete\n" LATENCY);
	strcpy(info.cpu.name, "Zen 4 part");
	strcpy(info.filter, "pid 7");
	*info.release = 0;
	info.n_pmus = 2;
	info.simulated = true;
	head.options = "--by src";
	head.fetch_samples = 1000;
	head.file = "";
	print_head();
	is("machine   Zen 4 part (family 0x19 model 0x11), 2 CPUs, host h1, Linux unknown\n"
	   "event     ibs_op/cnt_ctl=1/, period 100,000\n"
	   "event     ibs_fetch//, period 65,536\n"
	   "recorded  pid 7\n"
	   "options   --by src\n"
	   "samples   13,402 (12,402 of ops, 1,000 of fetches), selected 12,402\n"
	   "lost      not recorded\n" LATENCY "SIMULATED samples, not measurements\n");
	info.has_cpu = false;
	head.file = "f.ibs";
	end.whole = false;
	print_head();
	has("machine   processor unknown, 2 CPUs");
	has("file      f.ibs (test), INCOMPLETE: parts are damaged\n");
	has_not("complete\n");
	log_set_verbose(false);
}

/* What recordings have in common is printed once. */
static void test_verbose_parts(void **state)
{
	struct trace_info same = info, other = info;
	const struct report_head parts[] = { { .file = "a", .info = &info, .end = &end },
					     { .file = "b", .info = &same, .end = &end },
					     { .file = "c", .info = &other, .end = &end } };

	(void)state;
	strcpy(same.host, "h2");
	other.n_pmus = 0;
	other.n_cpus = 1;
	head.part = parts;
	head.n_parts = 3;
	log_set_verbose(true);
	print_head();
	log_set_verbose(false);
	is("machine   AMD EPYC 9654 (Zen 4), 2 CPUs, Linux 6.12, ibs_op/cnt_ctl=1/, period "
	   "100,000\n"
	   "machine   AMD EPYC 9654 (Zen 4), 1 CPU, Linux 6.12, no event, period 0\n"
	   "files     3 recordings of 2 hosts\n"
	   "samples   12,402, selected 12,402\n"
	   "lost      not recorded\n" LATENCY);
}

/* --- the table --- */

static const char *const labels[][2] = { { "get (inlined into find)", "7" },
					 { "a,b", NULL },
					 { "main", "8" } };
static const char *const mangled[][2] = { { "_Z3getv", NULL },
					  { NULL, NULL },
					  { "_Z4mainv", NULL } };
static const struct report_inlined inlined = { "get", "_Z3getv", "find", "_Z4findv", "work" };
static struct report_opts opts;
static struct report_row rows[3];
static struct report_table table;
static const enum table_column columns[] = { TABLE_SAMPLES, TABLE_MEAN, TABLE_SHARE, TABLE_OPS };

static int begin_table(void **state)
{
	opts = (struct report_opts){ .by = { LABEL_SYMBOL, LABEL_PID },
				     .n_by = 2,
				     .metric = IBS_METRIC_DC_MISS_LAT,
				     .info = &info };
	memset(rows, 0, sizeof(rows));
	for (int i = 0; i < 3; i++) {
		rows[i] = (struct report_row){
			.label = labels[i],
			.mangled = mangled[i],
			.inlined = i ? NULL : &inlined,
			.samples = 1010,
			.valid = 100,
			.sum = 5000 + i,
			.cycles = 500000,
			.waits = { .sum = 500000, .squares = 2.5e9, .largest = 5000 },
			.estimated = 1010000,
			.has_estimated = true,
			.units = REPORT_OPS,
			.imbalance = NAN
		};
	}
	table = (struct report_table){ .opts = &opts,
				       .rows = rows,
				       .n = 2,
				       .rest = rows[2],
				       .total = rows[2],
				       .sort = TABLE_CYCLES,
				       .estimated_unit = "ops" };
	table.rest.label = table.total.label = NULL;
	table.rest.samples = 3;
	table.rest.valid = 0;
	table.total.samples = 2023;
	table.total.cycles = 1000000;
	return begin(state);
}

static void print_table(enum table_format format, unsigned int n)
{
	static const struct screen screen = { .width = 100 };
	FILE *f = begin_text();

	report_print(f, &screen, format, &head, &table, columns, n);
	fclose(f);
}

static void test_csv(void **state)
{
	(void)state;
	print_table(FORMAT_CSV, 3);
	is("symbol,pid,samples,mean,share,symbol_mangled,inlined_into,inlined_into_mangled,source\n"
	   "get,7,1010,50.0,0.5,_Z3getv,find,_Z4findv,ibs\n"
	   "\"a,b\",,1010,50.0,0.5,\"\",\"\",\"\",ibs\n");
	table.n_rest = 4;
	info.source = NULL;
	print_table(FORMAT_CSV, 1);
	has("\n[rest],,3,\"\",\"\",\"\",\"\"\n");
	opts.by[0] = LABEL_OP;
	table.n_rest = 0;
	info.source = "sim";
	print_table(FORMAT_CSV, 1);
	is("op,pid,samples,source\n"
	   "get (inlined into find),7,1010,sim\n"
	   "\"a,b\",,1010,sim\n");
}

static json_t *print_json(void)
{
	json_error_t error;
	json_t *all;

	print_table(FORMAT_JSON, 3);
	all = json_loads(text, 0, &error);
	if (!all)
		fail_msg("%s in %s", error.text, text);
	return all;
}

static void test_json(void **state)
{
	static const __u64 code[CODE_KIND_N] = { 1, 2, [CODE_NO_ADDRESS] = 3 };
	json_t *all;

	(void)state;
	table.n_rest = 4;
	table.kinds.code = code;
	all = print_json();
	same(all, "by", "['symbol','pid']");
	same(all, "estimated_unit", "'ops'");
	same(all, "ranks", "0");
	same(all, "busiest_rank", "null");
	same(all, "recordings", "[]");
	same(all, "data", "null");
	same(all, "types", "null");
	same(all, "nodes", "null");
	same(all, "symbols",
	     "{'named':1,'no_symbol':2,'jit_without_map':0,'given_up':0,'no_time':0,'no_file':0,"
	     "'no_address':3}");
	same(all, "rows",
	     "[{'labels':{'symbol':'get','pid':'7'},'mangled':{'symbol':'_Z3getv'},"
	     "'inlined_into':{'symbol':'find','mangled':'_Z4findv'},'samples':1010,'mean':50.0,"
	     "'share':0.5},{'labels':{'symbol':'a,b','pid':null},'mangled':{'symbol':null},"
	     "'inlined_into':null,'samples':1010,'mean':50.0,'share':0.5}]");
	same(all, "rest", "{'rows':4,'samples':3,'mean':null,'share':null}");
	same(all, "total", "{'samples':2023,'mean':50.0,'share':1}");
	json_decref(all);
	table.n_ranks = 4;
	table.total.imbalance = 2;
	table.total.busiest = 3;
	table.estimated_unit = NULL;
	opts.by[0] = LABEL_OP;
	all = print_json();
	same(all, "ranks", "4");
	same(all, "busiest_rank", "3");
	same(all, "estimated_unit", "null");
	assert_null(
		json_object_get(json_array_get(json_object_get(all, "rows"), 0), "inlined_into"));
	same(json_array_get(json_object_get(all, "rows"), 0), "mangled", "{}");
	json_decref(all);
}

static void test_json_head(void **state)
{
	struct report_head part = head;
	json_t *all, *one;

	(void)state;
	strcpy(info.command, "make");
	head.part = &part;
	head.n_parts = 1;
	head.lost_samples = 5;
	head.lost_records = 6;
	head.fetch_samples = 7;
	head.selected = 8;
	end.skipped_blocks = 1;
	end.skipped_bytes = 99;
	end.has_ledger = true;
	end.ledger.seen = 20;
	end.ledger.outcome[IBS_OUTCOME_FORWARDED] = 11;
	end.ledger.outcome[IBS_OUTCOME_FILTERED_PID] = 6;
	end.ledger.outcome[IBS_OUTCOME_LOST_READ] = 3;
	part.file = "part";
	part.info = &info;
	all = print_json();
	same(all, "file", "'f.ibs'");
	same(all, "format", "'test'");
	same(all, "source", "'ibs'");
	same(all, "simulated", "false");
	same(all, "host", "'h1'");
	same(all, "release", "'6.12'");
	same(all, "command", "'make'");
	same(all, "cpus", "2");
	same(all, "cpu",
	     "{'vendor':'AuthenticAMD','name':'AMD EPYC 9654','generation':'Zen 4','family':25,"
	     "'model':17}");
	same(all, "events",
	     "[{'name':'ibs_op/cnt_ctl=1/','period':100000,'freq':null,'pmu':'ibs_op',"
	     "'ledger':null}]");
	same(all, "filter", "null");
	same(all, "options", "null");
	same(all, "samples", "{'op':12402,'fetch':7,'selected':8}");
	same(all, "lost", "{'samples':5,'records':6}");
	same(all, "ledger", "{'seen':20,'forwarded':11,'filtered':6,'unseen':null,'lost':3}");
	same(all, "whole", "false");
	same(all, "missing", "null");
	same(all, "skipped_blocks", "1");
	same(all, "skipped_bytes", "99");
	same(all, "metric", "'dc_miss_lat'");
	one = json_array_get(json_object_get(all, "recordings"), 0);
	same(one, "file", "'part'");
	same(one, "samples", "{'op':12402,'fetch':0,'selected':12402}");
	json_decref(all);
	head.n_parts = 0;
	info.has_cpu = false;
	info.n_cpus = 0;
	info.n_pmus = 2;
	pmus[0].freq = true;
	pmus[1].period = 0;
	end.skipped_blocks = 0;
	end.ledger.pmu_exact = true;
	end.ledger.unseen = 4;
	end.n_ledgers = 1;
	end.event_ledger[0].seen = 9;
	all = print_json();
	same(all, "cpu", "null");
	same(all, "cpus", "null");
	same(all, "whole", "true");
	same(all, "ledger", "{'seen':20,'forwarded':11,'filtered':6,'unseen':4,'lost':3}");
	same(all, "events",
	     "[{'name':'ibs_op/cnt_ctl=1/','period':null,'freq':100000,'pmu':'ibs_op',"
	     "'ledger':{'seen':9,'forwarded':0,'filtered':0,'unseen':null,'lost':0}},"
	     "{'name':'ibs_fetch//','period':null,'freq':null,'pmu':'ibs_fetch','ledger':null}]");
	json_decref(all);
	/* strata */
	end.whole = false;
	end.has_ledger = false;
	pmus[0].reach = 1;
	all = print_json();
	same(all, "whole", "false");
	same(all, "ledger", "null");
	same(json_array_get(json_object_get(all, "events"), 1), "stratum", "'miss'");
	json_decref(all);
}

static void test_text(void **state)
{
	(void)state;
	print_table(FORMAT_TEXT, 2);
	has("f.ibs: 12,402 samples; lost: not recorded\n" MACHINE "\n");
	has("SYMBOL                   PID        SAMPLES  MEAN\n");
	has("get (inlined into find)  7            1,010    50\n");
	has("a,b                      [unknown]    1,010    50\n");
	has("total                                 2,023    50\n");
	has("95% intervals of cycles: ");
	has_not("other");
	table.n_rest = 4;
	print_table(FORMAT_TEXT, 2);
	has("other (4) ");
	table.n_rest = table.n = 0;
	print_table(FORMAT_TEXT, 2);
	has("\nno samples\n");
	has_not("SYMBOL");
}

/* Which columns there are if none are asked for; what heads them. */
static void test_usual_columns(void **state)
{
	(void)state;
	print_table(FORMAT_TEXT, 0);
	has("SYMBOL                   PID        SAMPLES  MISS CYCLES   SHARE  DRAM");
	has_not("REMOTE PRICE");
	has_not("LOADS");
	print_table(FORMAT_TEXT, 4);
	has("SHARE   EST. OPS\n");
	table.estimated_unit = "cycles";
	print_table(FORMAT_TEXT, 4);
	has("SHARE  EST. CYCLES\n");
	opts.price = true;
	print_table(FORMAT_TEXT, 0);
	has("SYMBOL                   PID        MISS CYCLES  REMOTE PRICE");
	opts.price = false;
	opts.type = "struct s";
	opts.by[1] = LABEL_FIELD_OFFSET;
	print_table(FORMAT_TEXT, 0);
	has("SYMBOL                   OFFSET     SAMPLES  LOADS  STORES  DRAM");
	opts.type = NULL;
	print_table(FORMAT_TEXT, 0);
	has("FIELD_OFFSET");
	has_not("LOADS");
	opts.by[0] = LABEL_LINE;
	opts.by[1] = LABEL_PAGE;
	print_table(FORMAT_TEXT, 0);
	has("VIRT LINE");
	has("VIRT PAGE");
	opts.phys = true;
	print_table(FORMAT_TEXT, 0);
	has("PHYS LINE");
	has("PHYS PAGE");
}

/* --- the lines below --- */

static void test_balance(void **state)
{
	static const __u64 data[DATA_KIND_N] = { [DATA_HEAP] = 1200, [DATA_STACK] = 3 };
	static const __u64 types[TYPE_KIND_N] = {
		[TYPE_STACK] = 2, [TYPE_NO_ACCESS] = 5, [TYPE_KERNEL] = 1
	};
	static const __u64 code[CODE_KIND_N] = { [CODE_NO_FILE] = 4 };
	static const __u64 nodes[NODE_KIND_N] = { [NODE_KNOWN] = 2, [NODE_NO_CPU] = 4 };
	FILE *f = begin_text();

	(void)state;
	report_print_balance(f, &table);
	table.n_ranks = 1;
	table.total.imbalance = 1.5;
	report_print_balance(f, &table);
	fclose(f);
	is("");
	table.n_ranks = 3;
	table.total.busiest = 2;
	table.kinds = (struct report_kinds){ data, types, code, nodes };
	f = begin_text();
	report_print_balance(f, &table);
	fclose(f);
	is("\nimbalance 1.50 over 3 ranks: rank 2 has most miss cycles\n"
	   "\ndata      1,203 samples = 0 variable + 1,200 heap + 3 stack\n"
	   "\ntypes     8 samples = 0 pointer + 2 stack + 5 no_access + 1 kernel\n"
	   "          known of 66.7 % of 3 accesses\n"
	   "\nsymbols   4 samples = 0 named + 4 no_file\n"
	   "\nnodes     6 samples = 2 known + 4 no_cpu\n");
}

/* Lines of kinds are at most 79 columns wide. */
static void test_wide_kinds(void **state)
{
	__u64 types[TYPE_KIND_N];
	FILE *f = begin_text();
	size_t most = 0;

	(void)state;
	for (int k = 0; k < TYPE_KIND_N; k++)
		types[k] = 1000;
	type_kinds_print(f, types);
	fclose(f);
	has("\ntypes     20,000 samples = 1,000 pointer + 1,000 stack + 1,000 variable\n"
	    "          + 1,000 slab + 1,000 no_access + 1,000 kernel + 1,000 slab_unknown\n");
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		most = strcspn(line, "\n") > most ? strcspn(line, "\n") : most;
	assert_in_range(most, 70, 79);
}

static void test_strata(void **state)
{
	FILE *f = begin_text();

	(void)state;
	end.has_ledger = true;
	end.n_ledgers = 2;
	end.event_ledger[0].seen = 10;
	end.event_ledger[1].seen = 20;
	end.ledger.seen = 31;
	end.ledger.outcome[IBS_OUTCOME_AGGREGATED] = 30;
	report_print_strata(f, &head, &table);
	table.strata = true;
	table.effective = 1234.6;
	report_print_strata(f, &head, &table);
	fclose(f);
	is("\nstrata    samples of different weights, as good as 1,235 of equal ones\n"
	   "full      seen 10 = aggregated 0 + filtered 0 + lost 0; unseen unknown\n"
	   "miss      seen 20 = aggregated 0 + filtered 0 + lost 0; unseen unknown\n"
	   "sum       seen 31 = aggregated 30 + filtered 0 + lost 0; unseen unknown; residual 1\n");
	for (int i = 0; i < 2; i++) {
		end.has_ledger = i;
		end.n_ledgers = i ? 1 : 2;
		f = begin_text();
		report_print_strata(f, &head, &table);
		fclose(f);
		is("\nstrata    samples of different weights, as good as 1,235 of equal ones\n");
	}
}

/* Pages in the order of addresses, neighbours joined. */
static void test_regions(void **state)
{
	static const char *const pages[][1] = { { "0x5000" }, { NULL },	    { "0x2000" },
						{ "0x1000" }, { "0x9000" }, { "0x1000" } };
	struct report_row of[6] = { { 0 } };
	const struct report_table t = { .rows = of, .n = 6 }, none = { .n = 0 };
	FILE *f = begin_text();

	(void)state;
	for (int i = 0; i < 6; i++)
		of[i].label = pages[i];
	report_regions_print(f, &none, false);
	report_regions_print(f, &t, false);
	fclose(f);
	is("4096-12288\n20480-24576\n36864-40960\n");
}

/* --- keys and columns --- */

static void test_keys(void **state)
{
	const enum label keys[] = { LABEL_PID, LABEL_SRC }, stack[] = { LABEL_PID, LABEL_STACK },
			 site[] = { LABEL_ALLOCATION }, fetch[] = { LABEL_FETCH };
	struct err err;

	(void)state;
	assert_int_equal(report_keys_check(keys, 2, false, &err), 0);
	assert_int_equal(report_keys_check(keys, 1, true, &err), 0);
	assert_int_equal(report_keys_check(keys, 2, true, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--by src: samples of ibs_fetch do not have that"));
	assert_int_equal(report_keys_check(fetch, 1, false, &err), -EINVAL);
	assert_int_equal(report_check_recorded(keys, 2, &info, "f", &err), 0);
	assert_int_equal(report_check_recorded(stack, 1, &info, "f", &err), 0);
	assert_int_equal(report_check_recorded(stack, 2, &info, "f", &err), -ENODATA);
	assert_string_equal(err.text, "--by stack: f has no call chains; record with -g");
	pmus[0].stacks = true;
	assert_int_equal(report_check_recorded(stack, 2, &info, "f", &err), 0);
	assert_int_equal(report_check_recorded(site, 1, &info, "f", &err), -ENODATA);
	assert_string_equal(err.text,
			    "--by allocation: f has no allocations; record with --allocs");
	info.alloc_bytes = 1;
	assert_int_equal(report_check_recorded(site, 1, &info, "f", &err), 0);
	assert_int_equal(report_keys_flags(stack, 2), KEY_OF_HOST | KEY_SYMBOLS | KEY_CHAINS);
	assert_true(report_by(&(struct report_opts){ .by = { LABEL_PID, LABEL_TID }, .n_by = 2 },
			      LABEL_TID));
	assert_false(report_by(&(struct report_opts){ .by = { LABEL_PID, LABEL_TID }, .n_by = 1 },
			       LABEL_TID));
}

static bool is_default(const struct report_opts *o, bool several, enum table_column column)
{
	enum table_column list[TABLE_COLUMNS];
	const unsigned int n = report_columns_default(o, several, list);

	for (unsigned int i = 0; i < n; i++)
		if (list[i] == column)
			return true;
	return false;
}

static void test_default_columns(void **state)
{
	struct report_opts o = { .by = { LABEL_SRC }, .n_by = 1 };

	(void)state;
	assert_true(is_default(&o, false, TABLE_SAMPLES));
	assert_true(is_default(&o, false, TABLE_LOADS));
	assert_false(is_default(&o, false, TABLE_ABORTED));
	assert_false(is_default(&o, false, TABLE_THREADS));
	assert_false(is_default(&o, false, TABLE_IMBALANCE));
	assert_true(is_default(&o, true, TABLE_IMBALANCE));
	assert_false(is_default(&o, false, TABLE_PRICE));
	assert_false(is_default(&o, false, TABLE_PAGES));
	report_count_column(&o, TABLE_PRICE);
	assert_true(is_default(&o, false, TABLE_PRICE));
	report_count_column(&o, TABLE_MISPLACED);
	assert_true(is_default(&o, false, TABLE_PAGES));
	assert_false(o.cpus || o.threads);
	report_count_column(&o, TABLE_CPUS);
	assert_true(o.cpus && !o.threads);
	report_count_column(&o, TABLE_THREADS);
	assert_true(o.threads);
	o = (struct report_opts){ .by = { LABEL_LINE }, .n_by = 1 };
	assert_true(is_default(&o, false, TABLE_THREADS));
	report_count_column(&o, TABLE_PAGES);
	assert_true(o.pages && !o.price);
	o.metric = IBS_METRIC_FETCH_LAT;
	o.by[0] = LABEL_PID;
	assert_true(is_default(&o, false, TABLE_ABORTED));
	assert_false(is_default(&o, false, TABLE_LOADS));
}

static void value_is(const struct report_row *row, enum table_column c, double want)
{
	const double v = report_value(&table, row, c);

	if (isnan(want) ? !isnan(v) : !(fabs(v - want) < 1e-9))
		fail_msg("%s is %g, not %g", column_find(&report_columns, c)->name, v, want);
}

static void test_values(void **state)
{
	struct report_row *r = &rows[0];

	(void)state;
	*r = (struct report_row){ .label = labels[0],
				  .samples = 200,
				  .valid = 100,
				  .sum = 5000,
				  .estimated = 200000,
				  .valid_ops = 100000,
				  .units = REPORT_OPS,
				  .has_estimated = true,
				  .max = 90,
				  .last = 1500000000,
				  .p50 = 40,
				  .p90 = -1,
				  .p99 = -1,
				  .loads = 7,
				  .stores = 8,
				  .translated = 10,
				  .walks = 4,
				  .aborted = 50,
				  .offsets = 3,
				  .cpus = 2,
				  .threads = 4,
				  .cycles = 5000000,
				  .known = 4000000,
				  .dram = 1000000,
				  .remote = 3000000,
				  .hitm = 2000000,
				  .stateful = 5,
				  .cached = 6,
				  .missed = 1000,
				  .blocking = 250,
				  .exposed = 77,
				  .pages = 9,
				  .placed = 5,
				  .misplaced = 1,
				  .price = 12.4,
				  .imbalance = 1.25 };
	table.total = *r;
	table.total.label = NULL;
	table.total.samples = 400;
	table.total.cycles = 20000000;
	table.total.sum = 50000;
	value_is(r, TABLE_SAMPLES, 200);
	value_is(r, TABLE_SAMPLE_SHARE, .5);
	value_is(r, TABLE_OPS, 200000);
	value_is(r, TABLE_VALID, 100);
	value_is(r, TABLE_CYCLES, 5000000);
	value_is(r, TABLE_EXPOSED, 77);
	value_is(r, TABLE_BLOCKING, .25);
	value_is(r, TABLE_SHARE, .25);
	value_is(r, TABLE_DRAM, .25);
	value_is(r, TABLE_REMOTE, .75);
	value_is(r, TABLE_HITM, .5);
	value_is(r, TABLE_MEAN, 50);
	value_is(r, TABLE_P50, 40);
	value_is(r, TABLE_P90, NAN);
	value_is(r, TABLE_P99, NAN);
	value_is(r, TABLE_MAX, 90);
	value_is(r, TABLE_TOTAL, 5000);
	value_is(r, TABLE_LOADS, 7);
	value_is(r, TABLE_STORES, 8);
	value_is(r, TABLE_OFFSETS, NAN); /* rows are not lines */
	value_is(r, TABLE_CPUS, 2);
	value_is(r, TABLE_THREADS, 4);
	value_is(&table.total, TABLE_CPUS, NAN);
	value_is(&table.total, TABLE_THREADS, NAN);
	value_is(r, TABLE_LAST, 1.5);
	value_is(r, TABLE_IMBALANCE, 1.25);
	value_is(r, TABLE_PRICE, NAN); /* not asked for */
	value_is(r, TABLE_PAGES, 9);
	value_is(r, TABLE_MISPLACED, 1);
	value_is(r, TABLE_L3_MISS, NAN);
	value_is(r, TABLE_WALK, .4);
	value_is(r, TABLE_ABORTED, NAN);
	opts.price = true;
	opts.by[1] = LABEL_LINE;
	value_is(r, TABLE_PRICE, 12);
	value_is(r, TABLE_OFFSETS, 3);
	value_is(&table.total, TABLE_OFFSETS, NAN);
	r->placed = r->stateful = r->last = r->cpus = r->offsets = 0;
	value_is(r, TABLE_MISPLACED, NAN);
	value_is(r, TABLE_HITM, NAN);
	value_is(r, TABLE_LAST, NAN);
	value_is(r, TABLE_CPUS, NAN);
	value_is(r, TABLE_OFFSETS, NAN);
	r->cached = 0;
	value_is(r, TABLE_HITM, .5);
	opts.metric = IBS_METRIC_FETCH_LAT;
	value_is(r, TABLE_HITM, NAN);
	value_is(r, TABLE_DRAM, NAN);
	value_is(r, TABLE_REMOTE, NAN);
	value_is(r, TABLE_LOADS, NAN);
	value_is(r, TABLE_STORES, NAN);
	value_is(r, TABLE_L3_MISS, .25);
	value_is(r, TABLE_ABORTED, .25);
}

/* Without a period nothing is said of ops, and latencies take the place of miss cycles. */
static void test_unknown_values(void **state)
{
	struct report_row *r = &rows[0];

	(void)state;
	r->exposed = r->missed = 10;
	value_is(r, TABLE_EXPOSED, 10);
	r->units = REPORT_CYCLES;
	value_is(r, TABLE_EXPOSED, NAN);
	r->units = REPORT_OPS;
	r->unexposed = 1;
	value_is(r, TABLE_EXPOSED, NAN);
	r->unexposed = r->missed = 0;
	value_is(r, TABLE_EXPOSED, NAN);
	value_is(r, TABLE_BLOCKING, NAN);
	r->missed = 10;
	r->has_estimated = table.total.has_estimated = false;
	opts.price = true;
	table.total.sum = 10000;
	value_is(r, TABLE_EXPOSED, NAN);
	value_is(r, TABLE_OPS, NAN);
	value_is(r, TABLE_CYCLES, NAN);
	value_is(r, TABLE_PRICE, NAN);
	value_is(r, TABLE_LOW, NAN);
	value_is(r, TABLE_SHARE, .5);
	value_is(r, TABLE_MEAN, 50);
	table.strata = true; /* samples of unknown weights */
	value_is(r, TABLE_SHARE, NAN);
	value_is(r, TABLE_MEAN, NAN);
	r->has_estimated = true;
	r->valid_ops = 25000;
	value_is(r, TABLE_MEAN, 20);
	r->has_estimated = false;
	r->valid = 0;
	value_is(r, TABLE_CYCLES, 500000);
	value_is(r, TABLE_MAX, NAN);
	value_is(r, TABLE_TOTAL, NAN);
	value_is(r, TABLE_SHARE, NAN);
	value_is(r, TABLE_ERROR, NAN);
}

#define T(f)	    cmocka_unit_test_setup(f, begin)
#define OF_TABLE(f) cmocka_unit_test_setup(f, begin_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_short),
		T(test_events),
		T(test_lost),
		T(test_incomplete),
		T(test_verbose),
		T(test_verbose_parts),
		OF_TABLE(test_csv),
		OF_TABLE(test_json),
		OF_TABLE(test_json_head),
		OF_TABLE(test_text),
		OF_TABLE(test_usual_columns),
		OF_TABLE(test_balance),
		T(test_wide_kinds),
		OF_TABLE(test_strata),
		T(test_regions),
		T(test_keys),
		T(test_default_columns),
		OF_TABLE(test_values),
		OF_TABLE(test_unknown_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
