// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The history of the exporter: sums, gaps, counters that begin again, its limit of memory, and its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/caps.h>
#include <jansson.h>
#include <zlib.h>

#include "memory_in_use.h"
#include "metrics/history_piece.h"
#include "metrics/metrics_history.h"
#include "metrics/metrics_private.h"

#define SLOTS	500
#define PERIOD	1000
#define BEGIN_S 1000

static struct layout layout;
static __u64 *series;
static struct ibs_slot_owner owners[SLOTS];
static union {
	struct ibs_state state;
	struct ibs_cpu_state room[2];
} counted;
static struct ibs_meta meta;
static struct counts counts;
static struct metrics_self self;
static struct metrics_history *history;
static double now_s;

static int up(void **state)
{
	(void)state;
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, IBS_CAPS_ZEN4);
	series = calloc((size_t)SLOTS * layout.words, sizeof(*series));
	memset(owners, 0, sizeof(owners));
	memset(&counted, 0, sizeof(counted));
	self = (struct metrics_self){};
	meta = (struct ibs_meta){ .layout = { .max_slots = SLOTS, .by = IBS_BY_CGROUP },
				  .pid = 1,
				  .starts = 1,
				  .start_realtime_ns = 1 };
	counts = (struct counts){ .series = series,
				  .owners = owners,
				  .state = &counted.state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = 1,
				  .max_slots = SLOTS,
				  .has_ops = true,
				  .layout = &layout };
	now_s = BEGIN_S;
	history = metrics_history_open(
		&(struct metrics_history_opts){ .length_s = 3600, .interval_s = 10 });
	return 0;
}

static int down(void **state)
{
	(void)state;
	free(series);
	metrics_history_close(history);
	return 0;
}

/* As the collector counts: @n samples of @cycles in the slot of a cgroup. */
static void add(__u32 slot, int src, int cycles, __u64 n)
{
	__u64 *w = series + slot * layout.words +
		   (layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, src)] & IBS_LAYOUT_WORD);

	owners[slot].key.cgroup_id = slot;
	owners[slot].used = slot ? 1 : 0;
	w[IBS_PAIR_OPS] += n * PERIOD;
	w[IBS_HIST_BUCKET + ibs_lat_bucket(cycles)] += n;
	w[IBS_HIST_SUM] += n * cycles;
	w[IBS_HIST_CYCLES] += n * cycles * PERIOD;
	counted.state.cpu[0].seen += n;
	counted.state.cpu[0].outcome[IBS_OUTCOME_AGGREGATED] += n;
}

/* The collector adds a slot to another one, and empties it. */
static void fold(__u32 from, __u32 to)
{
	for (__u32 i = 0; i < layout.words; i++) {
		series[to * layout.words + i] += series[from * layout.words + i];
		series[from * layout.words + i] = 0;
	}
	owners[from].used = 0;
}

static void name(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	memset(out, 0, sizeof(*out));
	snprintf(out->cgroup, sizeof(out->cgroup), "/cgroup-%llu", g->key.cgroup_id);
}

static struct metrics *read_counts(void)
{
	static const struct metrics_opts opts;
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name };
	struct metrics *m;
	struct err err = {};

	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	m->facts.reading[0].time_ns = now_s * 1e9;
	return m;
}

static void step_at(double seconds, bool collector)
{
	struct metrics *m;

	now_s += seconds;
	if (collector)
		meta.status.time_ns = now_s * 1e9;
	m = read_counts();
	assert_true(metrics_history_add(history, m));
	assert_false(metrics_history_add(history, m));
	metrics_free(m);
}

static void step(void)
{
	step_at(10, true);
}

static char *text_of(__u64 after, bool gzip, size_t piece, size_t *n)
{
	struct metrics_history_text *t = metrics_history_text_open(history, after, gzip);
	const size_t size = metrics_history_text_size(t);
	char *text = malloc(size + piece + 1);
	size_t got;

	*n = 0;
	while ((got = metrics_history_text_read(t, text + *n, piece)))
		*n += got;
	text[*n] = 0;
	assert_int_equal(*n, size);
	metrics_history_text_close(t);
	return text;
}

static json_t *json_of(__u64 after)
{
	size_t n;
	char *text = text_of(after, false, 777, &n);
	json_t *j = json_loads(text, 0, NULL);

	assert_non_null(j);
	free(text);
	return j;
}

static json_t *interval(json_t *j, size_t i)
{
	return json_array_get(json_object_get(j, "intervals"), i);
}

static __u64 number(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

/* Member @i of a source of a cgroup in an interval; "": of all groups. Its buckets are added up as member 5. */
static __u64 sum_of(json_t *j, size_t i, const char *cgroup, const char *src, size_t member)
{
	json_t *row, *names = json_array(), *in, *v;
	__u64 sum = 0, id = -1;
	size_t k, b;

	json_array_foreach(json_object_get(j, "intervals"), k, in)
		json_array_extend(names, json_object_get(in, "names"));
	json_array_foreach(names, k,
			   row) if (!strcmp(json_string_value(json_object_get(row, "cgroup")),
					    cgroup)) id = number(row, "id");
	if (!strcmp(cgroup, "rest"))
		id = 0;
	json_array_foreach(json_object_get(interval(j, i), "groups"), k, row)
	{
		json_t *s = json_object_get(json_object_get(row, "sources"), src);

		if ((*cgroup && number(row, "id") != id) || !s)
			continue;
		if (member < 5)
			sum += json_integer_value(json_array_get(s, member));
		json_array_foreach(json_array_get(s, 5), b, v) sum +=
			member == 5 && b % 2 ? json_integer_value(v) : 0;
	}
	json_decref(names);
	return sum;
}

static void test_differences(void **state)
{
	json_t *j;

	(void)state;
	add(1, IBS_SRC_DRAM, 300, 1000);
	step();
	add(1, IBS_SRC_DRAM, 300, 5);
	add(1, IBS_SRC_DRAM, 900, 2);
	add(2, IBS_SRC_L3, 50, 3);
	step();
	add(1, IBS_SRC_L2, 12, 1);
	step();
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 0), 7);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 1), 7);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 2), 5 * 300 + 2 * 900);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 3), 7 * PERIOD);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 4), (5 * 300 + 2 * 900) * PERIOD);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 5), 7);
	assert_int_equal(sum_of(j, 0, "/cgroup-2", "l3", 0), 3);
	assert_int_equal(sum_of(j, 0, "rest", "l3", 0), 0);
	assert_int_equal(number(json_object_get(interval(j, 0), "ledger"), "seen"), 10);
	/* a group that did nothing has no row */
	assert_int_equal(json_array_size(json_object_get(interval(j, 1), "groups")), 1);
	assert_int_equal(sum_of(j, 1, "/cgroup-1", "l2", 0), 1);
	assert_true(json_real_value(json_object_get(interval(j, 1), "begin_s")) == BEGIN_S + 20);
	assert_true(json_real_value(json_object_get(interval(j, 1), "end_s")) == BEGIN_S + 30);
	assert_true(metrics_history_seconds(history) == 20);
	json_decref(j);
}

static void expect_gap(json_t *j, size_t i, double begin_s, double end_s, const char *why)
{
	json_t *gap = interval(j, i);

	assert_string_equal(json_string_value(json_object_get(gap, "gap")), why);
	assert_true(json_real_value(json_object_get(gap, "begin_s")) == begin_s);
	if (end_s)
		assert_true(json_real_value(json_object_get(gap, "end_s")) == end_s);
}

static double boottime_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void test_unread(void **state)
{
	struct metrics *m = metrics_read_nothing(METRICS_FAILED, "no permission", &self);
	double end_s;
	size_t bytes;
	json_t *j;

	(void)state;
	metrics_history_add(history,
			    m); /* before anything was read there is nothing that could lack */
	add(1, IBS_SRC_DRAM, 300, 1);
	step();
	add(1, IBS_SRC_DRAM, 300, 2);
	step();
	bytes = metrics_history_bytes(history);
	metrics_history_add(history, m);
	assert_true(metrics_history_bytes(history) < bytes); /* without the last counts */
	add(1, IBS_SRC_DRAM, 300, 4);
	metrics_history_add(history, m);
	j = json_of(0);
	expect_gap(j, 1, BEGIN_S + 20, 0, "no permission");
	end_s = json_real_value(json_object_get(interval(j, 1), "end_s"));
	assert_true(boottime_s() - 60 < end_s && end_s < boottime_s() + 1e-3);
	json_decref(j);
	step();
	j = json_of(0);
	expect_gap(j, 1, BEGIN_S + 20, BEGIN_S + 30, "no permission");
	assert_null(json_object_get(interval(j, 1), "number")); /* it may go on */
	json_decref(j);
	add(1, IBS_SRC_DRAM, 300, 8);
	step();
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 3);
	assert_int_equal(sum_of(j, 0, "", "dram", 0), 2);
	expect_gap(j, 1, BEGIN_S + 20, BEGIN_S + 30, "no permission");
	assert_int_equal(number(interval(j, 1), "number"), 2);
	assert_int_equal(sum_of(j, 2, "", "dram", 0), 8);
	assert_true(metrics_history_seconds(history) == 20);
	json_decref(j);
	metrics_free(m);
}

static void test_began_again(void **state)
{
	json_t *j;

	(void)state;
	add(1, IBS_SRC_DRAM, 300, 100);
	step();
	/* another collector, from zero, which has already counted more */
	memset(series, 0, sizeof(*series) * SLOTS * layout.words);
	memset(&counted, 0, sizeof(counted));
	add(1, IBS_SRC_DRAM, 300, 150);
	meta.start_realtime_ns++;
	step();
	/* less than before, whatever the reason */
	memset(series, 0, sizeof(*series) * SLOTS * layout.words);
	memset(&counted, 0, sizeof(counted));
	add(1, IBS_SRC_DRAM, 300, 7);
	step();
	add(1, IBS_SRC_DRAM, 300, 3);
	meta.starts++; /* the same counters go on */
	step();
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	expect_gap(j, 0, BEGIN_S + 10, BEGIN_S + 30, "the counters began again");
	assert_int_equal(sum_of(j, 1, "", "dram", 0), 3);
	assert_true(json_is_true(json_object_get(interval(j, 1), "partial")));
	json_decref(j);
}

/* What was not sampled is a gap; what was sampled and had nothing is zero. */
static void test_silence(void **state)
{
	json_t *j;

	(void)state;
	add(1, IBS_SRC_DRAM, 300, 100);
	step();
	step();
	add(1, IBS_SRC_DRAM, 300, 5);
	now_s += 2;
	meta.status.time_ns = now_s * 1e9;
	step_at(8, false); /* the collector died 8 s ago */
	step_at(10, false);
	for (int i = 0; i < 1000; i++) /* which does not fill the history */
		step_at(10, false);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 3);
	assert_int_equal(json_array_size(json_object_get(interval(j, 0), "groups")), 0);
	assert_true(json_is_false(json_object_get(interval(j, 0), "partial")));
	assert_int_equal(sum_of(j, 1, "", "dram", 0), 5);
	assert_true(json_is_true(json_object_get(interval(j, 1), "partial")));
	expect_gap(j, 2, BEGIN_S + 30, now_s, "the collector is not running");
	json_decref(j);
	meta.status.governor_state = GOVERNOR_STATE_STOPPED;
	step();
	j = json_of(0);
	expect_gap(j, 3, now_s - 10, now_s, "sampling is stopped");
	json_decref(j);
}

/* Groups that end or make way for others, and come back. */
static void test_folded(void **state)
{
	json_t *j;

	(void)state;
	owners[9].used = IBS_SLOT_ENDED;
	add(1, IBS_SRC_DRAM, 300, 100);
	add(2, IBS_SRC_DRAM, 300, 100);
	add(3, IBS_SRC_DRAM, 300, 100);
	step();
	add(1, IBS_SRC_DRAM, 300, 5);
	fold(1, 9); /* gone */
	add(2, IBS_SRC_DRAM, 300, 7);
	fold(2, 9); /* and back */
	add(2, IBS_SRC_DRAM, 300, 11);
	add(3, IBS_SRC_DRAM, 300, 13);
	fold(3, 4); /* to another group */
	add(4, IBS_SRC_DRAM, 300, 1);
	step();
	j = json_of(0);
	assert_int_equal(sum_of(j, 0, "", "dram", 0), 5 + 7 + 11 + 13 + 1);
	assert_int_equal(sum_of(j, 0, "", "dram", 5), 5 + 7 + 11 + 13 + 1);
	json_decref(j);
	add(2, IBS_SRC_DRAM, 300, 2);
	step();
	j = json_of(0);
	assert_int_equal(sum_of(j, 1, "/cgroup-2", "dram", 0), 2);
	assert_int_equal(sum_of(j, 1, "", "dram", 0), 2);
	json_decref(j);
}

static unsigned int chance(unsigned int n)
{
	static unsigned int x = 1;

	x = x * 1103515245 + 12345;
	return (x >> 8) % n;
}

static void fill(unsigned int n_groups, unsigned int each)
{
	for (unsigned int slot = 1; slot <= n_groups; slot++)
		for (unsigned int i = 0; i < each; i++)
			add(slot, chance(2) ? IBS_SRC_DRAM : IBS_SRC_L3, 1 + chance(3000),
			    1 + chance(slot));
}

static void test_budget(void **state)
{
	const size_t limit = 400000;
	__u64 after_s = 0, before, most = 0;
	double length_s;
	json_t *j, *in;
	size_t k;

	(void)state;
	metrics_history_close(history);
	history = metrics_history_open(&(struct metrics_history_opts){
		.length_s = 600, .interval_s = 10, .bytes = limit });
	step();
	for (int i = 0; i < 150; i++) {
		fill(400, 20);
		before = counted.state.cpu[0].seen;
		step();
		fill(i % 7, 3);
		after_s = counted.state.cpu[0].seen - before;
		step();
	}
	assert_true(metrics_history_bytes(history) <
		    limit + 20000 /* its frame and ids */ + (4 << 20));
	j = json_of(0);
	assert_true(number(j, "bytes") < number(j, "bytes_limit"));
	length_s = metrics_history_seconds(history);
	assert_true(length_s >= 600 && length_s <= 660);
	json_array_foreach(json_object_get(j, "intervals"), k, in)
	{
		/* each adds up to the whole, and a later one has as many groups again */
		assert_int_equal(sum_of(j, k, "", "dram", 0) + sum_of(j, k, "", "l3", 0),
				 number(json_object_get(in, "ledger"), "aggregated"));
		assert_int_equal(sum_of(j, k, "", "dram", 5), sum_of(j, k, "", "dram", 1));
		if (k % 2)
			most = number(in, "left_out") > most ? number(in, "left_out") : most;
	}
	k = json_array_size(json_object_get(j, "intervals"));
	assert_int_equal(number(json_object_get(interval(j, k - 1), "ledger"), "seen"), after_s);
	assert_true(most > 100 && most < 400);
	json_decref(j);
	/* where an interval without rows is too much, the oldest go */
	metrics_history_close(history);
	history = metrics_history_open(&(struct metrics_history_opts){
		.length_s = 600, .interval_s = 10, .bytes = 20000 });
	for (int i = 0; i < 100; i++) {
		fill(400, 5);
		step();
	}
	assert_in_range(metrics_history_seconds(history), 60, 500);
	j = json_of(0);
	assert_in_range(json_array_size(json_object_get(j, "intervals")), 6, 50);
	json_decref(j);
}

/* The page asks for what it lacks, and gets all if that is gone. */
static void test_text(void **state)
{
	struct metrics_history_text *slow;
	char *plain, *packed, *unpacked, early[100];
	size_t n, n_packed;
	z_stream z = {};
	__u64 first;
	json_t *j;

	(void)state;
	for (int i = 0; i < 30; i++) {
		fill(20, 5);
		step();
	}
	plain = text_of(0, false, 65536, &n);
	packed = text_of(0, true, 100, &n_packed);
	assert_true(n_packed < n / 2);
	unpacked = calloc(1, n + 100);
	z.next_in = (Bytef *)packed;
	z.avail_in = n_packed;
	z.next_out = (Bytef *)unpacked;
	z.avail_out = n + 100;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END); /* also checks CRC and size */
	inflateEnd(&z);
	/* but for the time of the request */
	assert_string_equal(strstr(plain, "\"source_members"),
			    strstr(unpacked, "\"source_members"));
	free(packed);
	free(unpacked);
	free(plain);
	slow = metrics_history_text_open(history, 0, false);
	n = metrics_history_text_size(slow) - metrics_history_text_read(slow, early, sizeof(early));
	for (int i = 0; i < 1000; i++) {
		fill(5, 1);
		step();
	}
	while ((n_packed = metrics_history_text_read(slow, early, sizeof(early))))
		n -= n_packed;
	assert_int_equal(n, 0);
	metrics_history_text_close(slow);
	j = json_of(0);
	assert_in_range(json_array_size(json_object_get(j, "intervals")), 360, 391);
	n = number(interval(j, json_array_size(json_object_get(j, "intervals")) - 1), "number");
	first = number(interval(j, 0), "number");
	json_decref(j);
	j = json_of(first); /* which is not gone */
	assert_int_equal(number(j, "after"), first);
	assert_int_equal(number(interval(j, 0), "number"), first + 1);
	json_decref(j);
	j = json_of(n - 2);
	assert_int_equal(number(j, "after"), n - 2);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	json_decref(j);
	j = json_of(n);
	assert_int_equal(number(j, "after"), n);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 0);
	json_decref(j);
	for (int i = 0; i < 2; i++) {
		j = json_of(i ? n + 1 : 3);
		assert_int_equal(number(j, "after"), 0);
		assert_true(json_array_size(json_object_get(j, "intervals")) >= 360);
		json_decref(j);
	}
}

static void is_text(const json_t *v, const char *want)
{
	char *text = json_dumps(v, JSON_COMPACT);

	assert_string_equal(text, want);
	free(text);
}

/* What the text says of the history itself. */
static void test_head(void **state)
{
	const double before_s = boottime_s();
	double opened_s, asked_s;
	json_t *j;

	(void)state;
	metrics_history_close(history);
	history = metrics_history_open(&(struct metrics_history_opts){
		.length_s = 600, .interval_s = 10, .bytes = 1 << 20 });
	for (int i = 0; i < 3; i++) {
		add(1, IBS_SRC_DRAM, 300, 5);
		step();
	}
	j = json_of(0);
	opened_s = json_real_value(json_object_get(j, "opened_s"));
	asked_s = json_real_value(json_object_get(j, "now_s"));
	assert_true(before_s <= opened_s + 1e-3 && opened_s <= asked_s);
	assert_true(asked_s <= boottime_s() + 1e-3);
	assert_true(json_real_value(json_object_get(j, "length_s")) == 600);
	assert_true(json_real_value(json_object_get(j, "interval_s")) == 10);
	assert_true(json_real_value(json_object_get(j, "kept_s")) == 20);
	assert_int_equal(number(j, "left_out"), 0);
	/* with the base of each event */
	assert_int_equal(number(j, "bytes_limit"), (1 << 20) + 2 * (2 << 20));
	assert_int_equal(number(j, "bytes"), metrics_history_bytes(history));
	is_text(json_object_get(j, "source_members"),
		"[\"samples\",\"valid\",\"sum\",\"estimated\",\"miss_cycles\",\"buckets\"]");
	is_text(json_object_get(j, "tlb_members"), "[\"l2_hit\",\"l2_miss\",\"l2_hit_ops\",\"l2_"
						   "miss_ops\",\"refills\",\"refill_cycles\"]");
	json_decref(j);
}

/* Groups whose last counts found no room are together in one row; others have their own. */
static void test_not_kept(void **state)
{
	json_t *j;

	(void)state;
	for (__u32 slot = 1; slot < SLOTS; slot++)
		for (int src = 0; src < IBS_SRC_N; src++) {
			const __u16 entry = layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, src)];

			if (!layout_has(&layout, IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, src)) ||
			    !(entry & IBS_LAYOUT_HIST))
				continue;
			for (int b = 0; b < IBS_LAT_BUCKETS; b++)
				add(slot, src, ibs_lat_le(b), 1 << 21);
		}
	step();
	add(1, IBS_SRC_DRAM, 300, 3);
	add(SLOTS - 1, IBS_SRC_DRAM, 900, 5);
	step();
	j = json_of(0);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 0), 3);
	assert_int_equal(sum_of(j, 0, "rest", "dram", 0), 5);
	assert_int_equal(number(interval(j, 0), "left_out"), 1);
	json_decref(j);
}

/* The bytes of a history are those that it gives back. */
static void test_bytes(void **state)
{
	size_t bytes, before;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fill(400, 1);
		step();
	}
	bytes = metrics_history_bytes(history);
	before = memory_in_use();
	metrics_history_close(history);
	history = NULL;
	if (before) /* a sanitizer's allocator does not say */
		assert_in_range(before - memory_in_use(), bytes, bytes + 1024);
	assert_in_range(bytes, 10000, HISTORY_MAX);
}

/* Histograms that have only edges are as good as others, but not comparable with them. */
static void test_coarse(void **state)
{
	json_t *j;

	(void)state;
	self.coarse = true;
	for (int i = 0; i < 3; i++) {
		add(1, IBS_SRC_DRAM, 300, 5);
		step();
	}
	self.coarse = false;
	add(1, IBS_SRC_DRAM, 300, 5);
	step();
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 3);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sum_of(j, i, "/cgroup-1", "dram", 0), 5);
		assert_int_equal(sum_of(j, i, "/cgroup-1", "dram", 5), 5);
	}
	expect_gap(j, 2, BEGIN_S + 30, BEGIN_S + 40, "the counters began again");
	json_decref(j);
}

static void test_off(void **state)
{
	static const char *const zero[] = { "opened_s", "length_s",    "interval_s", "kept_s",
					    "bytes",	"bytes_limit", "left_out" };
	struct metrics_history *h = history;
	json_t *j;

	(void)state;
	history = NULL;
	j = json_of(0);
	history = h;
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 0);
	for (size_t i = 0; i < sizeof(zero) / sizeof(*zero); i++)
		if (json_number_value(json_object_get(j, zero[i])) != 0)
			fail_msg("%s is not 0", zero[i]);
	json_decref(j);
}

static void open_with(size_t quota)
{
	/* an epoch and what is kept are an interval each */
	metrics_history_close(history);
	history = metrics_history_open(&(struct metrics_history_opts){
		.length_s = 10, .interval_s = 10, .bytes = 2 * quota });
}

/*
 * The only interval, with one group that has a row if there is room. @id: of the group, which each attempt numbers
 * anew; 0: none. Return: the bytes of the interval.
 */
static size_t with_quota(size_t quota, __u64 *id)
{
	struct history_piece *p;
	char *text, *begin;
	size_t n, bytes;
	json_t *j;

	memset(series, 0, sizeof(*series) * SLOTS * layout.words);
	memset(&counted, 0, sizeof(counted));
	now_s = BEGIN_S;
	open_with(quota);
	add(1, IBS_SRC_DRAM, 300, 100);
	step();
	add(1, IBS_SRC_DRAM, 300, 5);
	step();
	text = text_of(0, false, 777, &n);
	begin = strstr(text, "\"intervals\":[");
	assert_non_null(begin);
	begin += strlen("\"intervals\":[");
	p = history_piece_new(begin, n - (begin - text) - strlen("]}\n"));
	bytes = sizeof(*p) + p->n;
	history_piece_put(p);
	free(text);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 1);
	assert_int_equal(sum_of(j, 0, "", "dram", 0), 5);
	*id = number(json_array_get(json_object_get(interval(j, 0), "names"), 0), "id");
	assert_int_equal(number(interval(j, 0), "left_out"), *id ? 0 : 1);
	json_decref(j);
	return bytes;
}

/* An epoch more than was asked for is kept, and goes when it is complete. */
static void test_epochs(void **state)
{
	json_t *j;

	(void)state;
	open_with(1 << 20);
	step();
	for (__u64 i = 1; i < 6; i++) {
		add(1, IBS_SRC_DRAM, 300, 1);
		step();
		j = json_of(0);
		assert_int_equal(json_array_size(json_object_get(j, "intervals")), i < 2 ? i : 2);
		assert_int_equal(number(interval(j, 0), "number"), i < 2 ? i : i - 1);
		json_decref(j);
	}
}

/* Each epoch, here of two intervals, repeats the names and what is counted: older ones may be gone. */
static void test_names_again(void **state)
{
	const json_t *in;
	json_t *j;

	(void)state;
	metrics_history_close(history);
	history = metrics_history_open(
		&(struct metrics_history_opts){ .length_s = 120, .interval_s = 10 });
	step();
	for (__u64 i = 1; i < 40; i++) {
		const bool first = i == 1 || i % 2 == 0;

		add(1, IBS_SRC_DRAM, 300, 1);
		add(2, IBS_SRC_DRAM, 300, 1);
		step();
		j = json_of(i - 1);
		in = interval(j, 0);
		assert_int_equal(number(in, "number"), i);
		assert_int_equal(json_array_size(json_object_get(in, "names")), 2 * first);
		assert_int_equal(json_is_array(json_object_get(in, "collector")), first);
		json_decref(j);
	}
	j = json_of(0);
	in = interval(j, 0);
	assert_in_range(json_array_size(json_object_get(j, "intervals")), 13, 14);
	assert_int_equal(number(in, "number") % 2, 0);
	json_decref(j);
}

/* An interval may take its quota to the last byte. */
static void test_quota(void **state)
{
	__u64 id;
	const size_t bytes = with_quota(1 << 20, &id);

	(void)state;
	assert_int_equal(id, 1);
	assert_int_equal(with_quota(bytes, &id), bytes);
	assert_int_equal(id, 1);
	with_quota(bytes - 1, &id);
	assert_int_not_equal(id, 1);
	assert_in_range(with_quota(bytes / 2, &id), 1, bytes - 1);
	assert_int_equal(id, 0);
}

/* While the quota has room for groups that have no row, each interval tries a quarter more than the last. */
static void test_more_rows(void **state)
{
	static const size_t rows[] = { 64, 81, 102, 128, 161 };
	const size_t groups = 400, n = sizeof(rows) / sizeof(*rows), quiet = 3;
	json_t *j;

	(void)state;
	step();
	for (size_t i = 0; i < quiet; i++) { /* has all rows it needs */
		fill(1, 1);
		step();
	}
	for (size_t i = 0; i < n; i++) {
		fill(groups, 1);
		step();
	}
	j = json_of(0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(json_array_size(json_object_get(interval(j, quiet + i), "groups")),
				 rows[i] + 1 /* the rest */);
		assert_int_equal(number(interval(j, quiet + i), "left_out"), groups - rows[i]);
	}
	assert_int_equal(number(j, "left_out"), groups - rows[n - 1]);
	json_decref(j);
}

/* Seconds with samples are not shown as missing, even if the collector has ended when the history is read. */
static void test_last_words(void **state)
{
	json_t *j;

	(void)state;
	add(1, IBS_SRC_DRAM, 300, 100);
	step();
	add(1, IBS_SRC_DRAM, 300, 5);
	meta.pid = 0;
	step();
	step();
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	assert_int_equal(sum_of(j, 0, "/cgroup-1", "dram", 0), 5);
	assert_true(json_is_true(json_object_get(interval(j, 0), "partial")));
	expect_gap(j, 1, BEGIN_S + 20, BEGIN_S + 30, "the collector is not running");
	json_decref(j);
}

/* A collector that is late by three seconds is not gone. */
static void test_late(void **state)
{
	json_t *j;

	(void)state;
	step();
	for (int i = 0; i < 4; i++)
		step_at(1, false);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 4);
	for (size_t i = 0; i < 3; i++)
		assert_true(json_is_false(json_object_get(interval(j, i), "partial")));
	expect_gap(j, 3, BEGIN_S + 13, BEGIN_S + 14, "the collector is not running");
	json_decref(j);
}

/* A collector that was killed may leave its links, which sample until the lease ends, if it has an end. */
static void test_outlived(void **state)
{
	struct timespec now;
	json_t *j;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &now);
	meta.outlives = 1;
	step();
	for (int i = 0; i < 2; i++) {
		meta.lease_ns = i ? (now.tv_sec + 1000) * 1000000000ull : 0;
		add(1, IBS_SRC_DRAM, 300, 5);
		step_at(10, false);
		step_at(10, false);
	}
	j = json_of(0);
	for (size_t i = 0; i < 4; i++) {
		assert_true(json_is_false(json_object_get(interval(j, i), "partial")));
		assert_int_equal(sum_of(j, i, "", "dram", 0), i % 2 ? 0 : 5);
	}
	json_decref(j);
	meta.lease_ns = 1; /* long ago */
	step_at(10, false);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 5);
	expect_gap(j, 4, BEGIN_S + 50, BEGIN_S + 60, "the collector is not running");
	json_decref(j);
}

/* As a collector of two events has the same of both, but for samples that the second has in no group. */
static void step_two(__u64 more)
{
	struct metrics *m, *second;

	now_s += 10;
	meta.status.time_ns = now_s * 1e9;
	m = read_counts();
	second = read_counts();
	m->groups[1] = second->groups[0];
	m->groups[1].coarse = m->groups[0].coarse; /* the options are those of the reading */
	m->facts.reading[1] = second->facts.reading[0];
	m->facts.reading[1].ledger.seen += more;
	m->facts.n_events = 2;
	second->facts.n_events = 0;
	metrics_free(second);
	assert_true(metrics_history_add(history, m));
	metrics_free(m);
}

/* With other events nothing can be compared. */
static void test_other_events(void **state)
{
	json_t *j;

	(void)state;
	for (int i = 0; i < 6; i++) {
		add(1, IBS_SRC_DRAM, 300, 5);
		if (i / 2 == 1)
			step_two(0);
		else
			step();
	}
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 5);
	for (size_t i = 0; i < 5; i += 2)
		assert_int_equal(sum_of(j, i, "/cgroup-1", "dram", 0), 5);
	expect_gap(j, 1, BEGIN_S + 20, BEGIN_S + 30, "other events are sampled");
	expect_gap(j, 3, BEGIN_S + 40, BEGIN_S + 50, "other events are sampled");
	assert_non_null(json_object_get(interval(j, 2), "fetch"));
	assert_null(json_object_get(interval(j, 4), "fetch"));
	json_decref(j);
}

/* A collector that ended has last samples of either event. */
static void test_last_of_second(void **state)
{
	json_t *j;

	(void)state;
	step_two(0);
	meta.pid = 0;
	for (int i = 0; i < 2; i++)
		step_two(5);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	assert_true(json_is_true(json_object_get(interval(j, 0), "partial")));
	expect_gap(j, 1, BEGIN_S + 20, BEGIN_S + 30, "the collector is not running");
	json_decref(j);
}

/* Counters began again also if only those of the second event did. */
static void test_second_began_again(void **state)
{
	json_t *j;

	(void)state;
	for (int i = 0; i < 3; i++) {
		add(1, IBS_SRC_DRAM, 300, 1);
		step_two(i == 1 ? 0 : 5);
	}
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 2);
	expect_gap(j, 0, BEGIN_S + 10, BEGIN_S + 20, "the counters began again");
	assert_int_equal(sum_of(j, 1, "", "dram", 0), 1);
	json_decref(j);
}

/* A reason that is cut is still the same reason. */
static void test_long_reason(void **state)
{
	char why[300] = "";
	struct metrics *m;
	json_t *j;

	(void)state;
	memset(why, 'w', sizeof(why) - 1);
	m = metrics_read_nothing(METRICS_FAILED, why, &self);
	step();
	for (int i = 0; i < 3; i++)
		metrics_history_add(history, m);
	j = json_of(0);
	assert_int_equal(json_array_size(json_object_get(j, "intervals")), 1);
	why[159] = '\0';
	expect_gap(j, 0, BEGIN_S + 10, 0, why);
	json_decref(j);
	metrics_free(m);
}

/* A group has one name in an interval, whichever of the events it had samples of. */
static void test_two_events(void **state)
{
	json_t *j, *names, *fetch;

	(void)state;
	for (int i = 0; i < 3; i++) {
		add(1, IBS_SRC_DRAM, 300, 5);
		add(2, IBS_SRC_DRAM, 300, 3);
		step_two(0);
	}
	j = json_of(0);
	names = json_object_get(interval(j, 0), "names");
	fetch = json_object_get(interval(j, 0), "fetch");
	assert_int_equal(json_array_size(names), 2);
	assert_int_equal(json_array_size(json_object_get(fetch, "groups")), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *one = json_object_get(interval(j, i), "fetch");

		assert_int_equal(number(json_object_get(one, "ledger"), "seen"), 8);
	}
	for (size_t i = 0; i < 2; i++) {
		const __u64 id = number(json_array_get(names, i), "id");

		assert_int_equal(
			number(json_array_get(json_object_get(interval(j, 0), "groups"), i), "id"),
			id);
		assert_int_equal(number(json_array_get(json_object_get(fetch, "groups"), i), "id"),
				 id);
	}
	json_decref(j);
}

static char *letters(size_t n)
{
	static unsigned int state = 1;
	char *s = malloc(n + 1);

	for (size_t i = 0; i < n; i++) {
		state = state * 1103515245 + 12345;
		s[i] = 'a' + (state >> 16) % 26;
	}
	s[n] = '\0';
	return s;
}

static struct history_frame frame_of(const char *head, const char *tail)
{
	return (struct history_frame){ .head = strdup(head), .tail = strdup(tail) };
}

/* In parts of @part bytes. */
static char *read_all(struct metrics_history_text *t, size_t part, size_t *n)
{
	const size_t size = metrics_history_text_size(t);
	char *all = malloc(size + part);
	size_t one;

	for (*n = 0; (one = metrics_history_text_read(t, all + *n, part)); *n += one)
		assert_in_range(one, 1, part);
	assert_int_equal(*n, size);
	metrics_history_text_close(t);
	return all;
}

static void check_frame(size_t n_head, size_t n_tail, size_t part)
{
	char *head = letters(n_head), *tail = letters(n_tail),
	     *pieces[] = { letters(3), letters(70000) };
	struct history_piece *first = history_piece_new(pieces[0], 3);
	size_t n_want = n_head + 3 + 1 + 70000 + n_tail, n;
	char *want = malloc(n_want + 1), *got, *unpacked = calloc(1, n_want + 1);
	z_stream z = {};

	snprintf(want, n_want + 1, "%s%s,%s%s", head, pieces[0], pieces[1], tail);
	first->next = history_piece_new(pieces[1], 70000);
	got = read_all(history_text_new(first, frame_of(head, tail), false), part, &n);
	assert_int_equal(n, n_want);
	assert_memory_equal(got, want, n);
	free(got);
	got = read_all(history_text_new(first, frame_of(head, tail), true), part, &n);
	z.next_in = (Bytef *)got;
	z.avail_in = n;
	z.next_out = (Bytef *)unpacked;
	z.avail_out = n_want + 1;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, n_want);
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	assert_string_equal(unpacked, want);
	history_piece_put(first);
	free(got);
	free(unpacked);
	free(want);
	free(head);
	free(tail);
	free(pieces[0]);
	free(pieces[1]);
}

/* A frame around a piece of each kind: one that fits into a read, and one that takes several. */
static void test_long_frames(void **state)
{
	static const size_t sizes[] = { 0, 1, 65534, 65535, 65536, 131070, 200000 };
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		if (i == 3)
			before = memory_in_use();
		check_frame(sizes[i % 7], sizes[(i * 3 + 1) % 7], i % 2 ? 4096 : 100003);
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

/* Also what a client has of it that went away before the end. */
static void test_given_back(void **state)
{
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct metrics_history_text *t;
		char first;

		if (i == 10)
			before = memory_in_use();
		if (i % 2) {
			open_with(200); /* too little: each interval is tried again */
		} else {
			metrics_history_close(history);
			history = metrics_history_open(&(struct metrics_history_opts){
				.length_s = 3600, .interval_s = 10 });
		}
		for (int k = 0; k < 6; k++) {
			self.coarse = k > 2;
			add(1 + k, IBS_SRC_DRAM, 300, 1);
			step();
		}
		fold(1, 8); /* which then has more than was counted */
		add(8, IBS_SRC_DRAM, 300, 1);
		step();
		fold(8, 1);
		for (int k = 0; k < 2; k++) {
			add(1, IBS_SRC_DRAM, 300, 1);
			step_two(0);
		}
		t = metrics_history_text_open(history, 0, false);
		assert_int_equal(metrics_history_text_read(t, &first, 1), 1);
		metrics_history_text_close(t);
		metrics_history_close(history);
		history = NULL;
	}
	/* 5 KiB more were kept at hand at times; what is made in each round is 20 KiB and more in all */
	assert_in_range(memory_in_use(), 0, before + 3 * MEMORY_SLACK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
	/* the slow ones last */
	const struct CMUnitTest tests[] = {
		TEST(test_differences),	   TEST(test_unread),	    TEST(test_began_again),
		TEST(test_folded),	   TEST(test_off),	    TEST(test_quota),
		TEST(test_last_of_second), TEST(test_long_reason),  TEST(test_second_began_again),
		TEST(test_not_kept),	   TEST(test_names_again),  TEST(test_epochs),
		TEST(test_last_words),	   TEST(test_two_events),   TEST(test_long_frames),
		TEST(test_head),	   TEST(test_coarse),	    TEST(test_late),
		TEST(test_outlived),	   TEST(test_other_events), TEST(test_more_rows),
		TEST(test_given_back),	   TEST(test_bytes),	    TEST(test_silence),
		TEST(test_text),	   TEST(test_budget),
	};

	mallopt(M_PERTURB, 0x5a); /* so that what is read without being set is not 0 */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
