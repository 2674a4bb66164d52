// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the page of an HTML report knows, of made-up rows: CPUs, details that are given up, findings, facts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "html/html_facts.h"
#include "html/html_report.h"

static struct trace_info info;
static struct trace_end end_of;
static struct html_report *r;
static char *printed;

static int begin(void **state)
{
	(void)state;
	info = (struct trace_info){ .format = "ibscope 1" };
	end_of = (struct trace_end){ .whole = true };
	r = html_report_new(&(struct html_report_opts){
		.info = &info, .several = true, .file = "f", .again = "f.data", .options = "" });
	r->parts = 1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	html_report_free(r);
	return 0;
}

/* What @put writes into an object. */
static json_t *object(void (*put)(struct json_writer *w))
{
	struct json_writer w = {};
	json_t *o;
	size_t n;

	free(printed);
	w.f = open_memstream(&printed, &n);
	json_begin_object(&w, NULL);
	put(&w);
	json_finish(&w);
	fclose(w.f);
	o = json_loads(printed, 0, NULL);
	assert_non_null(o);
	return o;
}

/* @key: NULL: @o itself. @want: JSON, with ' for " */
static void same(const json_t *o, const char *key, const char *want)
{
	const json_t *v = key ? json_object_get(o, key) : o;
	char text[1024];
	json_t *wanted;

	snprintf(text, sizeof(text), "%s", want);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	wanted = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(wanted);
	if (!json_equal(v, wanted)) {
		char *is = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

		fail_msg("%s: %s, not %s", key ?: "", is, text);
	}
	json_decref(wanted);
}

/* --- CPUs --- */

static void put_places(struct json_writer *w)
{
	html_places_write(&r->places, w);
}

/* A known machine shows all of its CPUs; of another one those that occur. */
static void test_places(void **state)
{
	static const struct trace_topology known = { .n = 3,
						     .has_sockets = true,
						     .ccx = { 0, 1, 1 },
						     .node = { 0, 0, 1 },
						     .socket = { 0, 0, 2 } };
	struct trace_info other = { .host = "b" };
	struct html_places *p = &r->places;
	json_t *o;

	(void)state;
	strcpy(info.host, "a");
	info.topology = &known;
	html_places_host(p, &info);
	assert_int_equal(p->n, 3);
	assert_int_equal(html_places_cpu(p, 2), 2);
	assert_int_equal(html_places_l3(p, 0), 0);
	assert_int_equal(html_places_l3(p, 1), 1);
	assert_int_equal(html_places_l3(p, 2), 1);
	/* one beyond those that are known */
	assert_int_equal(html_places_cpu(p, 3), 3);
	assert_int_equal(html_places_l3(p, 3), 3);
	html_places_host(p, &other);
	assert_int_equal(html_places_cpu(p, 2), 4);
	assert_int_equal(html_places_cpu(p, 2), 4);
	assert_int_equal(html_places_l3(p, 4), 4);
	html_places_host(p, &info);
	assert_int_equal(html_places_cpu(p, 2), 2);
	assert_int_equal(html_places_l3(p, HTML_NO_CPU), HTML_NO_CPU);
	o = object(put_places);
	same(o, "hosts", "['a','b']");
	same(o, "cpus",
	     "[{'host':0,'cpu':0,'socket':0,'node':0,'l3':0},{'host':0,'cpu':1,'socket':0,'node':0,"
	     "'l3':1},"
	     "{'host':0,'cpu':2,'socket':2,'node':1,'l3':1},{'host':0,'cpu':3},{'host':1,'cpu':2}"
	     "]");
	json_decref(o);
}

/* L3s of two machines are two, even with one number; sockets may be unknown. */
static void test_places_of_two(void **state)
{
	static const struct trace_topology a = { .n = 2 }, b = { .n = 2 };
	struct trace_info other = { .host = "b", .topology = &b };
	struct html_places *p = &r->places;
	json_t *o;

	(void)state;
	strcpy(info.host, "a");
	info.topology = &a;
	html_places_host(p, &info);
	html_places_host(p, &other);
	assert_int_equal(html_places_l3(p, 1), 0);
	assert_int_equal(html_places_l3(p, 3), 2);
	o = object(put_places);
	same(o, "cpus",
	     "[{'host':0,'cpu':0,'node':0,'l3':0},{'host':0,'cpu':1,'node':0,'l3':0},"
	     "{'host':1,'cpu':0,'node':0,'l3':0},{'host':1,'cpu':1,'node':0,'l3':0}]");
	json_decref(o);
}

static void test_too_many_places(void **state)
{
	struct html_places *p = &r->places;

	(void)state;
	html_places_host(p, &info);
	for (__u32 cpu = 0; cpu < HTML_PLACES_MAX; cpu++)
		assert_int_equal(html_places_cpu(p, cpu), cpu);
	assert_int_equal(html_places_cpu(p, HTML_PLACES_MAX), HTML_NO_CPU);
	assert_int_equal(p->n, HTML_PLACES_MAX);
	assert_int_equal(html_places_cpu(p, 7), 7);
}

/* --- details --- */

static const struct html_row one = { .samples = 1 };

static const char *folded(void)
{
	static char text[512];

	html_fold_text(r, text, sizeof(text));
	return text;
}

/* Two rows become one: how many details are given up for that. */
static unsigned int folds(struct html_key a, struct html_key b)
{
	html_rows_free(&r->rows);
	r->rows.rows_max = 1;
	r->folds = 0;
	assert_int_equal(html_fold_add(r, a, 0, &one), 0);
	assert_int_equal(r->folds, 0);
	assert_int_equal(html_fold_add(r, b, 0, &one), 0);
	assert_int_equal(r->rows.n, 1);
	assert_int_equal(r->rows.row[0].samples, 2);
	return r->folds;
}

/* The least useful first: callers, CPUs of an L3, functions, allocations, threads, kinds of ops, regions, CPUs. */
static void test_fold(void **state)
{
	static const struct trace_topology t = { .n = 3, .ccx = { 0, 1, 1 } };
	const __u32 f = intern_get(&r->frames, "f"), g = intern_get(&r->frames, "g");
	const __u32 under_f = html_node_of(r, html_node_of(r, 0, f), g),
		    alone = html_node_of(r, 0, g);
	const struct html_key key = {};
	struct html_key k = {};

	(void)state;
	assert_int_not_equal(under_f, alone);
	assert_int_equal(html_node_of(r, 0, g), alone);
	intern_get(&r->names[HTML_SITE], "x");
	info.topology = &t;
	html_places_host(&r->places, &info);
	assert_string_equal(folded(), "");
	assert_int_equal(folds(key, key), 0);
	assert_int_equal(
		folds((struct html_key){ .stack = under_f }, (struct html_key){ .stack = alone }),
		2);
	assert_int_equal(r->rows.row[0].key.stack, alone);
	assert_string_equal(folded(), "time has at most 60 steps, functions have no callers");
	assert_int_equal(folds((struct html_key){ .cpu = 1 }, (struct html_key){ .cpu = 2 }), 3);
	assert_int_equal(r->rows.row[0].key.cpu, 1);
	assert_int_equal(folds((struct html_key){ .stack = html_node_of(r, 0, f) },
			       (struct html_key){ .stack = alone }),
			 5);
	assert_string_equal(folded(), "functions have no callers, CPUs with one L3 are added up, "
				      "time has at most 12 steps, functions are not shown");
	k.site = 1;
	assert_int_equal(folds(key, k), 6);
	k = (struct html_key){ .role = 1 };
	assert_int_equal(folds(key, k), 7);
	k = (struct html_key){ .flags = HTML_WALK };
	assert_int_equal(folds(key, k), 8);
	k = (struct html_key){ .region = 1 };
	assert_int_equal(folds(key, k), 9);
	k = (struct html_key){ .cpu = 1 };
	assert_int_equal(folds(key, k), 11);
	assert_int_equal(r->rows.row[0].key.cpu, HTML_NO_CPU);
	assert_string_equal(folded(), "functions have no callers, CPUs with one L3 are added up, "
				      "functions are not shown, "
				      "allocations are not shown, threads of a rank are added up, "
				      "page walks and modified "
				      "lines are not shown, regions are not shown, time has at "
				      "most 4 steps, CPUs are not "
				      "shown");
	assert_int_equal(r->rows.row[0].key.stack, 0);
	assert_int_equal(r->rows.row[0].key.site, 0);
	assert_int_equal(r->rows.row[0].key.role, 0);
	assert_int_equal(r->rows.row[0].key.flags, 0);
	assert_int_equal(r->rows.row[0].key.region, 0);
	/* what is always shown stays apart */
	k = (struct html_key){ .group = 1 };
	assert_int_equal(html_fold_add(r, k, 0, &one), -E2BIG);
}

/* Without allocations, nobody misses them. */
static void test_fold_without_sites(void **state)
{
	const struct html_key key = { .cpu = HTML_NO_CPU },
			      role = { .cpu = HTML_NO_CPU, .role = 1 };

	(void)state;
	assert_int_equal(folds(key, role), 7);
	assert_string_equal(folded(), "functions have no callers, CPUs with one L3 are added up, "
				      "time has at most 12 steps, functions are not shown, threads "
				      "of a rank are added up");
}

/* Details that were given up are so for all that follows. */
static void test_fold_later(void **state)
{
	struct html_key key = { .cpu = HTML_NO_CPU }, role = { .cpu = HTML_NO_CPU, .role = 1 };

	(void)state;
	folds(key, role);
	r->rows.rows_max = 10;
	role.site = 3;
	assert_int_equal(html_fold_add(r, role, 0, &one), 0);
	assert_int_equal(r->rows.n, 1);
	assert_int_equal(r->rows.row[0].samples, 3);
	assert_int_equal(r->folds, 7);
}

/* A sample on its way: its period and its exposed cycles are multiplied. */
static void test_fold_samples(void **state)
{
	struct html_sample s = { .period = 10, .latency = 7, .exposed = 3, .key = { .bucket = 7 } };

	(void)state;
	for (int i = 0; i < HTML_BATCH + 5; i++)
		assert_int_equal(html_fold_sample(r, &s), 0);
	s.key.group = 1;
	s.key.bucket = HTML_NO_LATENCY;
	assert_int_equal(html_fold_sample(r, &s), 0);
	assert_int_equal(html_fold_flush(r), 0);
	assert_int_equal(r->rows.n, 2);
	assert_int_equal(r->rows.row[0].samples, HTML_BATCH + 5);
	assert_int_equal(r->rows.row[0].latencies, 7 * (HTML_BATCH + 5));
	assert_true(r->rows.row[0].exposed == 30. * (HTML_BATCH + 5));
	assert_true(r->rows.row[0].cycles == 70. * (HTML_BATCH + 5));
	assert_int_equal(r->rows.row[1].samples, 1);
	assert_int_equal(r->rows.row[1].latencies, 0);
}

/* With no room for a row, those of another thread are folded like others. */
static void test_fold_samples_too_many(void **state)
{
	struct html_sample s = { .period = 1, .key = { .cpu = HTML_NO_CPU, .role = 1 } };

	(void)state;
	r->rows.rows_max = 1;
	html_fold_sample(r, &s);
	s.key.role = 2;
	for (int i = 0; i < 3; i++)
		html_fold_sample(r, &s);
	assert_int_equal(html_fold_flush(r), 0);
	assert_int_equal(r->folds, 7);
	assert_int_equal(r->rows.n, 1);
	assert_int_equal(r->rows.row[0].samples, 4);
	s.key.group = 1;
	html_fold_sample(r, &s);
	assert_int_equal(html_fold_flush(r), -E2BIG);
}

/* --- findings --- */

static void put_findings(struct json_writer *w)
{
	html_findings_put(r, w);
}

#define SLOW 60 /* a bucket whose samples cost ten times as much as others */

static void add_row(struct html_key key, __u64 samples)
{
	const double cost = key.bucket == SLOW ? 1000 : 100;
	const struct html_row row = { .samples = samples, .cycles = samples * cost };

	assert_int_equal(html_rows_add(&r->rows, &key, 0, &row), 0);
}

/* Containers "a" and "b", functions "hot" and "cold": 400 of 500 samples of a, all those of hot, are as @key. */
static void two_containers(struct html_key key)
{
	const __u32 root = intern_get(&r->frames, "[root]");
	const __u32 hot = html_node_of(r, html_node_of(r, 0, root), intern_get(&r->frames, "hot")),
		    cold = html_node_of(r, 0, intern_get(&r->frames, "cold"));

	intern_get(&r->groups, "a");
	intern_get(&r->groups, "b");
	array_reserve(r->group, r->room_groups, 2);
	r->group[0] = (struct html_group){ "--container" };
	r->group[1] = (struct html_group){ NULL };
	key.stack = hot;
	add_row(key, 400);
	add_row((struct html_key){ .stack = cold, .source = IBS_SRC_L3, .bucket = 20 }, 100);
	add_row((struct html_key){ .stack = cold, .source = IBS_SRC_L3, .bucket = 20, .group = 1 },
		2000);
}

static const struct html_key hitm = { .source = IBS_SRC_L3, .flags = HTML_HITM, .bucket = 20 };

/* Both lists, the container first, as they cost the same. */
static void test_findings(void **state)
{
	json_t *o, *f;

	(void)state;
	two_containers(hitm);
	/* "[root]" is not the name of a function */
	add_row((struct html_key){ .stack = 1, .source = IBS_SRC_L3, .bucket = 20, .group = 1 }, 1);
	o = object(put_findings);
	f = json_object_get(o, "findings");
	same(f, "containers", "2");
	same(f, "functions", "2");
	same(f, "list",
	     "[{'group':0,'cause':'hitm','share':0.8,'rest':0,'excess':40000,"
	     "'command':['c2c','f.data','--container','a']},"
	     "{'frame':1,'cause':'hitm','share':1,'rest':0,'excess':40000,"
	     "'command':['annotate','-i','f.data','hot']}]");
	json_decref(o);
}

static void check_command(const char *want)
{
	json_t *o = object(put_findings),
	       *list = json_object_get(json_object_get(o, "findings"), "list");

	same(json_array_get(list, 0), "command", want);
	json_decref(o);
}

/* Intervals lead to a recording, several recordings to `report`. */
static void test_commands(void **state)
{
	(void)state;
	two_containers(hitm);
	r->parts = 0;
	check_command("['hist','--container','a','--by','comm,src','10','1']");
	info.simulated = true;
	check_command("['hist','--source=sim','--container','a','--by','comm,src','10','1']");
	r->parts = 2;
	check_command("['report','f.data','--container','a','--by','host,symbol,src']");
	r->parts = 1;
	r->group[0].option = NULL;
	check_command("['c2c','f.data']");
	r->opts.again = NULL;
	check_command("['c2c']");
}

/* Each cause, and what shows it. */
static void test_causes(void **state)
{
	static const struct {
		struct html_key key;
		const char *cause, *command;
	} rows[] = {
		{ { .source = IBS_SRC_REMOTE_DRAM, .bucket = 20 },
		  "'remote'",
		  "['numa','f.data','--container','a']" },
		{ { .source = IBS_SRC_REMOTE_CACHE, .bucket = 20 },
		  "'remote'",
		  "['numa','f.data','--container','a']" },
		{ { .source = IBS_SRC_CXL, .bucket = 20 },
		  "'far'",
		  "['numa','f.data','--container','a']" },
		{ { .source = IBS_SRC_PMEM, .bucket = 20 },
		  "'far'",
		  "['numa','f.data','--container','a']" },
		{ { .source = IBS_SRC_L3, .flags = HTML_WALK, .bucket = 20 },
		  "'walk'",
		  "['report','f.data','--container','a','--by','page_size,symbol']" },
		{ { .source = IBS_SRC_DRAM, .bucket = 20 },
		  "'memory'",
		  "['report','f.data','--container','a','--by','symbol,src']" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *o, *list;

		begin(state);
		two_containers(rows[i].key);
		o = object(put_findings);
		list = json_object_get(json_object_get(o, "findings"), "list");
		same(json_array_get(list, 0), "cause", rows[i].cause);
		same(json_array_get(list, 0), "command", rows[i].command);
		json_decref(o);
		end(state);
	}
	begin(state);
}

/* The slowest tenth of local DRAM is slow: of 4,000 accesses, those of above the bucket of 3,600. */
static void test_slow(void **state)
{
	json_t *o, *f;

	(void)state;
	two_containers((struct html_key){ .source = IBS_SRC_DRAM, .bucket = SLOW });
	add_row((struct html_key){ .source = IBS_SRC_DRAM, .bucket = 40, .group = 1 }, 3600);
	add_row((struct html_key){ .source = IBS_SRC_L2, .bucket = 50, .group = 1 }, 9000);
	/* neither has a latency nor costs */
	add_row((struct html_key){ .source = IBS_SRC_DRAM, .bucket = HTML_NO_LATENCY }, 100000);
	o = object(put_findings);
	f = json_object_get(o, "findings");
	assert_int_equal(json_integer_value(json_object_get(f, "slow")), ibs_lat_le(40));
	/* the first one is of a function: rows without one are not in what it is compared with */
	same(json_array_get(json_object_get(f, "list"), 1), "cause", "'slow'");
	same(json_array_get(json_object_get(f, "list"), 1), "command",
	     "['report','f.data','--container','a','--by','node,mem_node','--src','dram']");
	json_decref(o);
}

/* 99 samples with a latency prove nothing. */
static void test_few(void **state)
{
	json_t *o;

	(void)state;
	intern_get(&r->groups, "a");
	add_row((struct html_key){ .bucket = 20 }, 99);
	add_row((struct html_key){ .bucket = HTML_NO_LATENCY }, 99);
	o = object(put_findings);
	same(o, "findings", "null");
	json_decref(o);
	add_row((struct html_key){ .bucket = 20 }, 1);
	o = object(put_findings);
	same(o, "findings", "{'containers':1,'functions':0,'slow':0,'list':[]}");
	json_decref(o);
}

/* --- facts --- */

/* Near to far, of those that occur. */
static void test_sources(void **state)
{
	__u8 n[IBS_SRC_N];

	(void)state;
	r->sources = 1u << IBS_SRC_DRAM | 1u << IBS_SRC_L1 | 1u << IBS_SRC_NONE |
		     1u << IBS_SRC_REMOTE_CXL;
	html_facts_sources(r, n);
	assert_int_equal(n[IBS_SRC_L1], 0);
	assert_int_equal(n[IBS_SRC_DRAM], 1);
	assert_int_equal(n[IBS_SRC_REMOTE_CXL], 2);
	assert_int_equal(n[IBS_SRC_NONE], 3);
	assert_int_equal(n[IBS_SRC_L3], 0);
}

static void check_band(__u64 fetches, const char *want)
{
	char text[1024];

	html_facts_band(r, &end_of, fetches, text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_band(void **state)
{
	(void)state;
	check_band(0, "");
	info.simulated = true;
	check_band(0, "SIMULATED samples, not measurements. ");
	info.simulated = false;
	end_of.whole = false;
	strcpy(end_of.missing, "cut");
	check_band(0, "INCOMPLETE recording: cut. ");
	end_of.whole = true;
	end_of.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL] = 1500;
	end_of.ledger.outcome[IBS_OUTCOME_LOST_READ] = 1;
	end_of.ledger.outcome[IBS_OUTCOME_FORWARDED] = 7;
	end_of.ledger.seen = 20000;
	check_band(0, "");
	end_of.has_ledger = true;
	check_band(0, "1,501 of 20,000 samples were lost while recording. ");
	end_of.has_ledger = false;
	r->without_registers = 1234;
	check_band(0, "1,234 samples have no registers and are not shown. ");
	r->without_registers = 0;
	check_band(5678, "5,678 samples of ibs_fetch are not shown here: ibscope report -e "
			 "ibs_fetch shows them. ");
	r->folds = 1;
	check_band(0, "To keep this file small: time has at most 60 steps. ");
	r->folds = 0;
	r->same_period = false;
	check_band(0, "The sampling period was not recorded: costs are unknown. ");
	r->period = 100;
	check_band(0, "");
}

/* Containers are ranked by exposed cycles if all samples have them. */
static void test_exposed(void **state)
{
	struct html_row row = { .samples = 1 };
	const struct html_key key = {};

	(void)state;
	assert_false(html_facts_exposed(r));
	html_rows_add(&r->rows, &key, 0, &row);
	assert_false(html_facts_exposed(r));
	row.exposed = 2;
	html_rows_add(&r->rows, &key, 0, &row);
	assert_true(html_facts_exposed(r));
	r->exposed_unknown = true;
	assert_false(html_facts_exposed(r));
}

static json_t *facts(void)
{
	json_t *o;
	size_t n;
	FILE *f;

	free(printed);
	fflush(r->hot_file);
	f = open_memstream(&printed, &n);
	html_facts_write(r, &end_of, f);
	fclose(f);
	o = json_loads(printed, 0, NULL);
	if (!o)
		fail_msg("not JSON: %s", printed);
	return o;
}

/* Nothing is known, of no samples. */
static void test_facts_unknown(void **state)
{
	json_t *o = facts();

	(void)state;
	same(o, "schema", "1");
	same(o, "rows", "0");
	same(o, "period", "0");
	same(o, "strata", "false");
	same(o, "hitm", "false");
	same(o, "exposed", "false");
	same(o, "host", "''");
	same(o, "file", "'f.data'");
	same(o, "parts", "1");
	same(o, "command", "'ibscope report'");
	same(o, "sources", "[]");
	same(o, "bins", "1");
	same(o, "bin_s", "1");
	same(o, "duration_s", "1");
	same(o, "start_s", "null");
	same(o, "when", "''");
	same(o, "facts", "['processor unknown']");
	same(o, "ledger", "null");
	same(o, "group_title", "'Container'");
	same(o, "groups", "[]");
	same(o, "chains", "false");
	same(o, "frames", "[]");
	same(o, "stacks", "[0,0]");
	same(o, "findings", "null");
	same(o, "hosts", "[]");
	same(o, "cpus", "[]");
	same(o, "names", "{'rank':[''],'role':[''],'region':[''],'site':['']}");
	same(o, "block_bytes", "[0,0]");
	same(o, "lines_lack", "0");
	same(o, "lines_private", "0");
	same(o, "lines", "[]");
	assert_int_equal(json_array_size(json_object_get(o, "edges")), IBS_LAT_BUCKETS);
	json_decref(o);
	r->parts = 0;
	o = facts();
	same(o, "command", "'ibscope hist'");
	same(o, "attribution", "[]");
	json_decref(o);
}

static void test_facts(void **state)
{
	static const struct trace_pmu pmu[] = {
		{ .name = "p", .op = true, .period = 100000, .stacks = true },
		{ .name = "hz", .period = 1000, .freq = true },
		{ .name = "unknown" },
	};
	json_t *o;

	(void)state;
	strcpy(info.host, "h");
	strcpy(info.release, "6.12");
	strcpy(info.command, "ibscope record");
	strcpy(info.filter, "--src dram");
	info.cpu = (struct cpu_info){ .name = "EPYC", .amd = true, .family = 0x19, .model = 0x11 };
	info.has_cpu = true;
	info.n_cpus = 1;
	info.pmu = pmu;
	info.n_pmus = 3;
	r->opts.options = "--top 3";
	r->period = 100000;
	r->hitm_known = true;
	r->parts = 2;
	r->sources = 1u << IBS_SRC_DRAM | 1u << IBS_SRC_L2;
	r->trimmed = 5;
	fputs("{\"line\":1}", r->hot_file);
	r->lines_private = 6;
	two_containers(hitm);
	o = facts();
	same(o, "rows", "3");
	same(o, "period", "100000");
	same(o, "hitm", "true");
	same(o, "host", "'h'");
	same(o, "sources", "['l2','dram']");
	same(o, "facts",
	     "['EPYC (Zen 4)','2 recordings','1 CPU','Linux 6.12','p, 1 sample per 100,000',"
	     "'hz,  1,000 samples/s','unknown, period unknown']");
	same(o, "record",
	     "[['command','ibscope record'],['selection','--src dram'],['file','f, complete'],"
	     "['format','ibscope 1'],['processor','EPYC, family 0x19 model "
	     "0x11'],['kernel','6.12'],"
	     "['report','--top 3'],['written by','ibscope " IBSCOPE_VERSION "']]");
	same(o, "groups", "[{'name':'a','option':'--container'},{'name':'b'}]");
	same(o, "chains", "true");
	same(o, "frames", "['[root]','hot','cold']");
	/* parent and frame of the root, of [root], of hot below it, and of cold */
	same(o, "stacks", "[0,0,0,0,1,1,0,2]");
	same(o, "lines", "[{'line':1}]");
	same(o, "lines_lack", "5");
	same(o, "lines_private", "6");
	json_decref(o);
	r->parts = 1;
	r->same_period = false;
	info.n_cpus = 2;
	info.filter[0] = 0;
	end_of.whole = false;
	o = facts();
	same(o, "period", "0");
	same(json_array_get(json_object_get(o, "record"), 1), NULL, "['selection','everything']");
	same(json_array_get(json_object_get(o, "record"), 2), NULL, "['file','f, INCOMPLETE']");
	same(json_array_get(json_object_get(o, "facts"), 1), NULL, "'2 CPUs'");
	json_decref(o);
}

static void test_facts_ledger(void **state)
{
	json_t *o;

	(void)state;
	end_of.has_ledger = true;
	end_of.ledger.seen = 10;
	end_of.ledger.unseen = 3;
	end_of.ledger.outcome[IBS_OUTCOME_FORWARDED] = 7;
	end_of.ledger.outcome[IBS_OUTCOME_FILTERED_PID] = 2;
	end_of.ledger.outcome[IBS_OUTCOME_LOST_LEASE] = 1;
	o = facts();
	same(o, "ledger",
	     "{'seen':10,'rows':[['filtered: pid',2],['forwarded',7],['lost: "
	     "lease',1]],'unseen':null,"
	     "'strata':[]}");
	json_decref(o);
	end_of.ledger.pmu_exact = true;
	o = facts();
	same(json_object_get(o, "ledger"), "unseen", "3");
	json_decref(o);
	/* counters have samples that were counted, the first outcome of all */
	end_of.ledger.outcome[IBS_OUTCOME_AGGREGATED] = 4;
	end_of.ledger.outcome[IBS_OUTCOME_FORWARDED] = 0;
	o = facts();
	same(json_object_get(o, "ledger"), "rows",
	     "[['aggregated',4],['filtered: pid',2],['lost: lease',1]]");
	json_decref(o);
}

static void test_facts_strata(void **state)
{
	static const struct trace_pmu pmu[] = { { .name = "full", .op = true, .reach = 1 },
						{ .name = "miss", .op = true } };
	json_t *o;

	(void)state;
	info.pmu = pmu;
	info.n_pmus = 2;
	end_of.has_ledger = true;
	end_of.n_ledgers = 2;
	end_of.event_ledger[0].seen = 11;
	end_of.event_ledger[1].seen = 12;
	o = facts();
	same(o, "strata", "true");
	same(json_object_get(o, "ledger"), "strata", "[['full stratum',11],['miss stratum',12]]");
	same(o, "facts", "['processor unknown','full, period varies','miss, period unknown']");
	json_decref(o);
	/* not known apart */
	end_of.n_ledgers = 0;
	o = facts();
	same(json_object_get(o, "ledger"), "strata", "[]");
	json_decref(o);
}

static void test_facts_attribution(void **state)
{
	json_t *o, *a;

	(void)state;
	for (unsigned int i = 0; i < CODE_KIND_N; i++)
		r->code_kinds[i] = 10 + i;
	for (unsigned int i = 0; i < NODE_KIND_N; i++)
		r->node_kinds[i] = 20 + i;
	r->addresses[HTML_PHYSICAL] = 30;
	r->addresses[HTML_VIRTUAL] = 31;
	r->addresses[HTML_NO_ADDRESS] = 32;
	o = facts();
	a = json_object_get(o, "attribution");
	assert_int_equal(json_array_size(a), 3);
	same(json_array_get(a, 0), "what", "'functions'");
	same(json_array_get(a, 0), "known", "1");
	same(json_array_get(a, 0), "rows",
	     "[['named',10],['no_symbol',11],['jit_without_map',12],['given_up',13],['no_time',14],"
	     "['no_file',15],['no_address',16]]");
	same(json_array_get(a, 1), "what", "'memory nodes'");
	same(json_array_get(a, 1), "known", "1");
	same(json_array_get(a, 1), "rows",
	     "[['known',20],['no_address',21],['no_range',22],['no_cpu',23]]");
	same(json_array_get(a, 2), "what", "'lines'");
	same(json_array_get(a, 2), "known", "2");
	same(json_array_get(a, 2), "rows", "[['physical',30],['virtual',31],['no_address',32]]");
	json_decref(o);
}

/* From 01:02:03.5 on, for 10 seconds. */
static void test_facts_time(void **state)
{
	const struct html_key key = {};
	json_t *o;

	(void)state;
	info.monotonic_ns = 1000000000;
	info.realtime_ns = (1767225600ull + 3600 + 2 * 60 + 3) * 1000000000;
	r->rows.bin_ns = 1000000000;
	html_rows_add(&r->rows, &key, 1500000000, &one);
	html_rows_add(&r->rows, &key, 11500000000, &one);
	o = facts();
	same(o, "bins", "11");
	same(o, "bin_s", "1");
	same(o, "duration_s", "10");
	same(o, "start_s", "3723");
	same(o, "when", "' 1 Jan 2026, 01:02:03 to 01:02:13 UTC'");
	json_decref(o);
	/* intervals say how long they are */
	r->length_ns = 20000000000;
	o = facts();
	same(o, "duration_s", "20");
	same(o, "when", "' 1 Jan 2026, 01:02:03 to 01:02:23 UTC'");
	json_decref(o);
	info.realtime_ns = 0;
	o = facts();
	same(o, "start_s", "null");
	same(o, "when", "''");
	json_decref(o);
}

static void put_names(struct json_writer *w)
{
	html_names_write(r, w);
}

static void test_names(void **state)
{
	json_t *o;

	(void)state;
	intern_get(&r->names[HTML_RANK], "3");
	intern_get(&r->names[HTML_ROLE], "omp 1");
	intern_get(&r->names[HTML_REGION], "solve");
	intern_get(&r->names[HTML_SITE], "malloc");
	o = object(put_names);
	same(o, "names",
	     "{'rank':['','3'],'role':['','omp 1'],'region':['','solve'],'site':['','malloc']}");
	same(o, "block_bytes", "[0,0,0,0]");
	json_decref(o);
}

#define R(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_places),
		R(test_places_of_two),
		R(test_too_many_places),
		R(test_fold),
		R(test_fold_without_sites),
		R(test_fold_later),
		R(test_fold_samples),
		R(test_fold_samples_too_many),
		R(test_findings),
		R(test_commands),
		cmocka_unit_test_teardown(test_causes, end),
		R(test_slow),
		R(test_few),
		R(test_sources),
		R(test_band),
		R(test_exposed),
		R(test_facts_unknown),
		R(test_facts),
		R(test_facts_ledger),
		R(test_facts_strata),
		R(test_facts_attribution),
		R(test_facts_time),
		R(test_names),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return ret;
}
