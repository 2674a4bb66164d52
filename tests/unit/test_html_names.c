// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names on the page of an HTML report, from samples and events: MPI ranks, threads, regions, allocations and their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "html/html_facts.h"
#include "html/html_report.h"

static struct trace_info info;
static struct tasks *tasks;
static struct symbols *symbols;
static struct html_report *r;

static int begin(void **state)
{
	const struct symbols_opts opts = { .info = &info };
	struct err err;

	(void)state;
	info = (struct trace_info){ .format = "ibscope 1" };
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	tasks = tasks_new();
	return symbols_new(&opts, &symbols, &err);
}

static int end(void **state)
{
	(void)state;
	html_report_free(r);
	r = NULL;
	symbols_free(symbols);
	tasks_free(tasks);
	return 0;
}

/* After the last event; samples follow. */
static void report(void)
{
	r = html_report_new(&(struct html_report_opts){
		.info = &info, .tasks = tasks, .symbols = symbols, .file = "f", .options = "" });
}

/* Return: the key of its row. */
static struct html_key sample(__u32 tgid, __u32 tid, __u64 time, __u64 addr)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = time };
	struct trace_sample *s = &ev.sample;
	struct html_key key;

	s->has_task = s->has_time = true;
	s->tgid = tgid;
	s->tid = tid;
	s->op.cpu = (struct ibs_cpu){ .caps = 0xbff };
	s->op.present = ~0;
	s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID;
	s->op.reg[IBS_DC_LINADDR] = addr;
	assert_int_equal(html_report_add(r, &ev, 1000), 0);
	assert_int_equal(html_fold_flush(r), 0);
	key = r->rows.row[r->rows.n - 1].key;
	html_rows_free(&r->rows);
	return key;
}

static const char *name(enum html_name kind, __u16 number)
{
	assert_true(number < r->names[kind].n);
	return intern_text(&r->names[kind], number);
}

static json_t *written(const char *key)
{
	struct json_writer w = {};
	json_t *o, *v;
	char *text;
	size_t n;

	w.f = open_memstream(&text, &n);
	json_begin_object(&w, NULL);
	html_names_write(r, &w);
	json_finish(&w);
	fclose(w.f);
	o = json_loads(text, 0, NULL);
	if (!o)
		fail_msg("%s", text);
	free(text);
	v = json_incref(json_object_get(o, key));
	json_decref(o);
	return v;
}

static void add(struct trace_event ev)
{
	tasks_add(tasks, &ev);
}

static void rank(__u32 tgid, __u32 number)
{
	add((struct trace_event){
		.kind = TRACE_RANK, .time = 1, .rank = { .tgid = tgid, .rank = number } });
}

static void thread(__u32 tid)
{
	add((struct trace_event){
		.kind = TRACE_FORK,
		.time = 2,
		.fork = { .tgid = 10, .tid = tid, .parent_tgid = 10, .parent_tid = 10 } });
}

/* --- ranks and threads --- */

static void test_ranks(void **state)
{
	struct html_key key;

	(void)state;
	rank(10, 7);
	rank(20, 0);
	report();
	key = sample(10, 10, 5, 0);
	assert_int_equal(key.rank, 1);
	assert_string_equal(name(HTML_RANK, key.rank), "7");
	key = sample(20, 20, 5, 0);
	assert_string_equal(name(HTML_RANK, key.rank), "0");
	assert_int_equal(sample(10, 10, 6, 0).rank, 1);
	assert_int_equal(sample(30, 30, 5, 0).rank, 0);
	assert_int_equal(r->names[HTML_RANK].n, 3);
}

/* Threads are told apart where there are ranks: by the order in which they began. */
static void test_roles(void **state)
{
	struct html_key key;

	(void)state;
	rank(10, 7);
	thread(11);
	thread(12);
	report();
	key = sample(10, 12, 5, 0);
	assert_string_equal(name(HTML_ROLE, key.role), "start 2");
	key = sample(10, 11, 5, 0);
	assert_string_equal(name(HTML_ROLE, key.role), "start 1");
	assert_int_equal(key.region, 0);
}

static void test_no_roles(void **state)
{
	(void)state;
	thread(11);
	report();
	assert_int_equal(sample(10, 11, 5, 0).role, 0);
	assert_int_equal(r->names[HTML_ROLE].n, 1);
}

/* A region has a name, or is the function of an OpenMP region; in one, threads have roles. */
static void test_regions(void **state)
{
	struct html_key key;

	(void)state;
	thread(11);
	add((struct trace_event){
		.kind = TRACE_REGION, .time = 10, .region = { .tid = 11, .name = "solve" } });
	add((struct trace_event){ .kind = TRACE_REGION,
				  .time = 20,
				  .region = { .tid = 11, .end = true, .name = "" } });
	add((struct trace_event){ .kind = TRACE_REGION,
				  .time = 30,
				  .region = { .tid = 12,
					      .omp = true,
					      .number = 3,
					      .team = 12,
					      .addr = 0x401000,
					      .name = "" } });
	report();
	assert_int_equal(sample(10, 11, 5, 0).region, 0);
	key = sample(10, 11, 15, 0);
	assert_string_equal(name(HTML_REGION, key.region), "solve");
	assert_string_equal(name(HTML_ROLE, key.role), "start 1");
	key = sample(10, 11, 25, 0);
	assert_int_equal(key.region, 0);
	assert_int_equal(key.role, 0);
	key = sample(10, 12, 35, 0);
	assert_int_not_equal(key.region, 0);
	assert_string_not_equal(name(HTML_REGION, key.region), "solve");
	assert_string_equal(name(HTML_ROLE, key.role), "omp 3");
}

/* Beyond so many names of a kind, all others are one. */
static void test_many(void **state)
{
	struct html_key key = {};

	(void)state;
	for (__u32 i = 0; i < HTML_NAMES_MAX + 10; i++)
		rank(100 + i, i);
	report();
	for (__u32 i = 0; i < HTML_NAMES_MAX + 10; i++) {
		key = sample(100 + i, 100 + i, 5, 0);
		if (i < HTML_NAMES_MAX - 1)
			assert_int_equal(key.rank, i + 1);
		else
			assert_string_equal(name(HTML_RANK, key.rank), "[others]");
	}
	assert_string_equal(name(HTML_RANK, HTML_NAMES_MAX - 1), "4094");
	/* those that have a name keep it */
	assert_int_equal(sample(107, 107, 5, 0).rank, 8);
}

/* --- allocations --- */

static const __u64 stack[] = { 0x401000, 0x402000 };

static void allocate(__u64 addr, __u64 size, unsigned int n_stack)
{
	add((struct trace_event){ .kind = TRACE_ALLOC,
				  .time = 3,
				  .alloc = { .tgid = 10,
					     .tid = 10,
					     .addr = addr,
					     .size = size,
					     .weight = size,
					     .stack = stack,
					     .n_stack = n_stack } });
}

static void bytes_of(__u16 site, __u64 least, __u64 most)
{
	json_t *all = written("block_bytes");

	assert_int_equal(json_array_size(all), 2 * r->names[HTML_SITE].n);
	assert_int_equal(json_integer_value(json_array_get(all, 2 * site)), least);
	assert_int_equal(json_integer_value(json_array_get(all, 2 * site + 1)), most);
	json_decref(all);
}

/* Blocks of one stack are one site, with the sizes of its smallest and largest block. */
static void test_sites(void **state)
{
	__u16 one, other, none;
	json_t *names;

	(void)state;
	tasks_keep_heap(tasks);
	allocate(0x5000, 100, 2);
	allocate(0x6000, 40, 2);
	allocate(0x7000, 300, 2);
	allocate(0x8000, 64, 0);
	report();
	one = sample(10, 10, 5, 0x5000).site;
	assert_int_equal(one, 1);
	bytes_of(one, 100, 100);
	assert_int_equal(sample(10, 10, 5, 0x6010).site, one);
	bytes_of(one, 40, 100);
	assert_int_equal(sample(10, 10, 5, 0x7000).site, one);
	bytes_of(one, 40, 300);
	assert_int_equal(sample(10, 10, 5, 0x5063).site, one);
	bytes_of(one, 40, 300);
	other = sample(10, 10, 5, 0x8000).site;
	assert_int_equal(other, 2);
	assert_string_equal(name(HTML_SITE, other), "[no stack]");
	bytes_of(other, 64, 64);
	bytes_of(one, 40, 300);
	/* before it was allocated, and behind its end */
	none = sample(10, 10, 2, 0x5000).site;
	assert_int_not_equal(none, one);
	assert_int_equal(sample(10, 10, 5, 0x5064).site, none);
	bytes_of(none, 0, 0);
	bytes_of(0, 0, 0);
	names = written("names");
	assert_int_equal(json_array_size(json_object_get(names, "site")), r->names[HTML_SITE].n);
	json_decref(names);
}

/* A recording without allocations has no sites, and no sizes of them. */
static void test_no_heap(void **state)
{
	json_t *all;

	(void)state;
	report();
	assert_int_equal(sample(10, 10, 5, 0x5000).site, 0);
	assert_int_equal(r->names[HTML_SITE].n, 1);
	all = written("block_bytes");
	assert_int_equal(json_array_size(all), 2);
	assert_int_equal(json_integer_value(json_array_get(all, 0)), 0);
	assert_int_equal(json_integer_value(json_array_get(all, 1)), 0);
	json_decref(all);
}

/* --- groups --- */

/* A cgroup without a name has its number, and of no cgroup nothing is known. */
static void test_groups(void **state)
{
	const __u64 ids[] = { 7, 0, 9, 8 };

	(void)state;
	add((struct trace_event){
		.kind = TRACE_CGROUP, .time = 1, .cgroup = { .id = 9, .path = "/a/b" } });
	add((struct trace_event){ .kind = TRACE_CGROUP,
				  .time = 1,
				  .cgroup = { .id = 8,
					      .path = "/docker/0123456789abcdef0123456789abcdef"
						      "0123456789abcdef0123456789abcdef",
					      .container = "web" } });
	report();
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 5 };

		ev.sample.op.present = ~0;
		ev.sample.cgroup_id = ids[i];
		assert_int_equal(html_report_add(r, &ev, 1000), 0);
	}
	assert_int_equal(r->groups.n, 4);
	assert_string_equal(intern_text(&r->groups, 0), "#7");
	assert_null(r->group[0].option);
	assert_string_equal(intern_text(&r->groups, 1), "[cgroup unknown]");
	assert_null(r->group[1].option);
	assert_string_equal(intern_text(&r->groups, 2), "/a/b");
	assert_string_equal(r->group[2].option, "--cgroup");
	assert_string_equal(intern_text(&r->groups, 3), "web");
	assert_string_equal(r->group[3].option, "--container");
}

/* Threads are the outermost frames; what is not resolved is said to be so, and counted by the reason. */
static void test_stacks(void **state)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 5 };
	const struct html_node *n;

	(void)state;
	add((struct trace_event){ .kind = TRACE_COMM,
				  .time = 1,
				  .comm = { .tgid = 10, .tid = 10, .name = "worker" } });
	report();
	ev.sample.op.present = ~0;
	assert_int_equal(html_report_add(r, &ev, 1000), 0);
	assert_int_equal(r->code_kinds[CODE_NO_ADDRESS], 1);
	assert_int_equal(r->n_nodes, 3);
	n = &r->nodes[2];
	assert_string_equal(intern_text(&r->frames, n->frame), "[unresolved]");
	n = &r->nodes[n->parent];
	assert_string_equal(intern_text(&r->frames, n->frame), "[unknown thread]");
	assert_int_equal(n->parent, 0);
	ev.sample.has_task = ev.sample.has_ip = true;
	ev.sample.tgid = ev.sample.tid = 10;
	ev.sample.ip = 0x401000;
	assert_int_equal(html_report_add(r, &ev, 1000), 0);
	assert_int_equal(r->code_kinds[CODE_NO_ADDRESS], 1);
	assert_int_equal(r->code_kinds[CODE_NAMED], 0);
	assert_int_equal(r->n_nodes, 5);
	n = &r->nodes[4];
	assert_string_equal(intern_text(&r->frames, n->frame), "[unknown]");
	n = &r->nodes[n->parent];
	assert_string_equal(intern_text(&r->frames, n->frame), "worker");
}

/* The period is that of all samples, or varies. */
static void test_period(void **state)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 5 };

	(void)state;
	report();
	ev.sample.op.present = ~0;
	assert_int_equal(html_report_add(r, &ev, 1000), 0);
	assert_int_equal(r->period, 1000);
	assert_true(r->same_period);
	assert_int_equal(html_report_add(r, &ev, 2000), 0);
	assert_int_equal(r->period, 1000);
	assert_false(r->same_period);
	assert_int_equal(r->samples, 2);
}

/* Recordings of two machines are aligned by the time of day. */
static void test_parts(void **state)
{
	const struct trace_info first = { .monotonic_ns = 10, .realtime_ns = 100 },
				second = { .monotonic_ns = 20, .realtime_ns = 160 }, third = {};

	(void)state;
	r = html_report_new(&(struct html_report_opts){
		.info = &info, .several = true, .file = "f", .options = "" });
	html_report_part(r, &first, tasks, symbols);
	assert_int_equal(r->time_shift, 0);
	html_report_part(r, &second, tasks, symbols);
	/* 60 later of the day, of which the clock has counted 10 */
	assert_int_equal(r->time_shift, 50);
	html_report_part(r, &third, tasks, symbols);
	assert_int_equal(r->time_shift, 0);
	assert_int_equal(r->parts, 3);
	html_report_part(r, &info, NULL, NULL);
	assert_int_equal(r->parts, 3);
}

/* Intervals have costs if ops are known. */
static void test_intervals(void **state)
{
	static char none[] = "", name[] = "web";
	struct row row = { .series = { .src = IBS_SRC_DRAM, .samples = 3, .valid = 0 } };
	const struct rows rows = { 1, &row };

	(void)state;
	for (unsigned int l = 0; l < LABEL_N; l++)
		row.label[l] = none;
	row.label[LABEL_CONTAINER] = name;
	report();
	assert_int_equal(html_report_interval(r, &rows, 2000000000, 1000000000), 0);
	assert_int_equal(r->period, 0);
	row.series.ops = 3000;
	assert_int_equal(html_report_interval(r, &rows, 3000000000, 1000000000), 0);
	assert_int_equal(r->period, 1);
	row.series.ops = 0;
	assert_int_equal(html_report_interval(r, &rows, 4000000000, 1000000000), 0);
	assert_int_equal(r->period, 1);
	assert_int_equal(r->samples, 9);
	assert_int_equal(r->length_ns, 3000000000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ranks),	   T(test_roles),  T(test_no_roles), T(test_regions),
		T(test_many),	   T(test_sites),  T(test_no_heap),  T(test_groups),
		T(test_intervals), T(test_stacks), T(test_period),   T(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
