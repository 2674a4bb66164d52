// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The live screen without a terminal: frames of several sizes against golden files, keys, and the
 * history. After an intended change: UPDATE_GOLDEN=1 build/tests/unit/test_top, and read the diff.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "top/top_private.h"

#define GOLDEN "tests/data/top"
#define PLACES 12
#define BY     (IBS_BY_CGROUP | IBS_BY_PID | IBS_BY_COMM)

static const char *const containers[] = {
	"shop/db-0/postgres",
	"shop/web-7f9c/web",
	"",
	"ml/train-0/trainer\033[31m",
	"kube/漢字-コンテナ",
	"a/e\xcc\x81t\xc3\xa9",
	"\xff\xfe/bad",
};
#define CONTAINERS (sizeof(containers) / sizeof(containers[0]))

/* "POD/CONTAINER", as text behind the last and before it. */
static const char *name_of(void *arg, __u64 id, enum label l)
{
	static char text[256];
	const char *name = containers[id % CONTAINERS], *slash = strrchr(name, '/');

	(void)arg;
	if (l == LABEL_CGROUP)
		snprintf(text, sizeof(text), "/kubepods.slice/%llu", (unsigned long long)id);
	else if (!slash)
		*text = 0;
	else if (l == LABEL_CONTAINER)
		snprintf(text, sizeof(text), "%s-%llu", slash + 1, (unsigned long long)id);
	else
		snprintf(text, sizeof(text), "%.*s", (int)(slash - name), name);
	return text;
}

static void add_series(struct group *g, enum ibs_src src, unsigned int n, unsigned int latency)
{
	struct series *s;

	g->series = realloc(g->series, (g->n_series + 1) * sizeof(*s));
	assert_non_null(g->series);
	s = &g->series[g->n_series++];
	*s = (struct series){
		.op = IBS_OP_KIND_LOAD, .src = src, .samples = n, .ops = n * 1000000
	};
	if (!latency)
		return;
	s->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	assert_non_null(s->buckets);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int l = latency / 2 + latency * (i % 11) / 10;

		s->sum += l;
		s->cycles += l * 1000000ull;
		s->valid++;
		s->buckets[ibs_lat_bucket(l)]++;
	}
}

/* Interval @t of @n groups: the costs of each go up and down. */
static void make(struct snapshot *s, unsigned int n, unsigned int t)
{
	*s = (struct snapshot){ .n_groups = n, .time_ns = 2000000000 };
	s->groups = calloc(n ?: 1, sizeof(*s->groups));
	assert_non_null(s->groups);
	for (unsigned int i = 0; i < n; i++) {
		struct group *g = &s->groups[i];
		unsigned int scale = 3000 / (i + 1) + 3 + 40 * ((t + i) % 7);

		g->slot = i + 1;
		g->key = (struct ibs_group_key){ .cgroup_id = i / 2, .tgid = 100 + i };
		snprintf(g->key.comm, sizeof(g->key.comm), "task%u", i);
		add_series(g, IBS_SRC_NONE, scale, 0);
		add_series(g, IBS_SRC_L2, scale, 18);
		add_series(g, IBS_SRC_DRAM, scale / 4, 400);
		if (i % 2)
			add_series(g, IBS_SRC_REMOTE_DRAM, scale / 9, 700);
		for (size_t k = 0; k < g->n_series; k++)
			s->ledger.seen += g->series[k].samples;
	}
	s->n_shards = PLACES;
	s->shards = calloc(PLACES, sizeof(*s->shards));
	assert_non_null(s->shards);
	for (unsigned int i = 0; i < PLACES; i++) {
		s->shards[i].cycles[IBS_SRC_DRAM] = 1000000000ull * i;
		s->shards[i].cycles[IBS_SRC_REMOTE_DRAM] = i == 9 ? 3000000000 : 20000000 * t * i;
	}
	s->ledger.outcome[IBS_OUTCOME_AGGREGATED] = s->ledger.seen;
	s->ledger.pmu_exact = true;
	s->pmu = (struct pmu_state){ .cpus = 96, .enabled_ns = 100, .running_ns = 100 };
}

static struct top_source_info info;
static __u16 nodes[PLACES] = { [6] = 1, 1, 1, 1, 1, 1 };

static struct top *start_by(unsigned int labels, unsigned int groups, unsigned int intervals)
{
	struct top_opts opts = { .view.sort = TABLE_CURRENCY,
				 .labels = labels,
				 .interval_s = 2,
				 .info = &info,
				 .host = "db-host-07",
				 .command = "ibscope top" };
	struct top *t;

	info = (struct top_source_info){ .hist = { .source = "ibs", .event = "ibs_op/cnt_ctl=1/" },
					 .by = BY,
					 .by_possible = BY | IBS_BY_TID,
					 .places = { PLACES, PLACES, nodes } };
	setenv("TZ", "UTC", 1);
	t = top_new(&opts);
	for (unsigned int i = 0; i < intervals; i++) {
		struct frame f = { .end_ns = (1795356221ULL + 2 * i) * 1000000000,
				   .by = BY,
				   .period = 1000000,
				   .cost = 0.0021 };
		struct snapshot s;

		make(&s, groups, i);
		if (i == 3)
			s.pmu.throttled = 3;
		top_add(t, &s, &f, name_of, NULL);
		snapshot_free(&s);
	}
	return t;
}

static struct top *start(unsigned int groups, unsigned int intervals)
{
	return start_by(0, groups, intervals);
}

static char *painted(struct top *t, int width, int height)
{
	const struct screen screen = { .width = width, .height = height, .utf8 = true };
	char *text;
	struct grid g;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	grid_open(&g, width, height);
	top_paint(t, &screen, &g);
	grid_print(f, &g, false);
	fclose(f);
	grid_free(&g);
	return text;
}

static void has(struct top *t, const char *what)
{
	char *text = painted(t, 100, 30);

	if (!strstr(text, what))
		fail_msg("no '%s' in:\n%s", what, text);
	free(text);
}

static void has_not(struct top *t, const char *what)
{
	char *text = painted(t, 100, 30);

	if (strstr(text, what))
		fail_msg("'%s' in:\n%s", what, text);
	free(text);
}

static void keys(struct top *t, const char *text)
{
	for (; *text; text++)
		assert_int_equal(top_key(t, *text), TOP_NOTHING);
}

static void golden(const char *name, char *text)
{
	char path[256], want[65536];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), GOLDEN "/%s.txt", name);
	f = fopen(path, getenv("UPDATE_GOLDEN") ? "w" : "r");
	assert_non_null(f);
	if (getenv("UPDATE_GOLDEN")) {
		fputs(text, f);
	} else {
		n = fread(want, 1, sizeof(want) - 1, f);
		want[n] = 0;
		assert_string_equal(text, want);
	}
	fclose(f);
	free(text);
}

static void test_golden(void **state)
{
	static const int sizes[][2] = { { 80, 24 }, { 160, 45 }, { 100, 30 },
					{ 50, 12 }, { 80, 8 },	 { 20, 5 } };
	struct top *t = start(40, 12);
	char name[32];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "%dx%d", sizes[i][0], sizes[i][1]);
		golden(name, painted(t, sizes[i][0], sizes[i][1]));
	}
	keys(t, "h");
	golden("histogram", painted(t, 80, 24));
	keys(t, "?");
	keys(t, "?");
	top_free(t);
}

/* Columns that a text takes: of these characters only the ideographs and the mark are not one. */
static int columns(const char *s)
{
	int n = 0;

	for (; *s; s++)
		if ((*s & 0xc0) != 0x80)
			n += (unsigned char)*s >= 0xe3 && (unsigned char)*s <= 0xe9 ? 2
			     : (unsigned char)*s == 0xcc			    ? 0
										    : 1;
	return n;
}

static void test_any_size(void **state)
{
	struct top *t = start(40, 12);

	(void)state;
	for (int width = 1; width < 200; width += width < 30 ? 1 : 17) {
		for (int height = 1; height < 60; height += height < 25 ? 1 : 11) {
			char *text = painted(t, width, height), *rest = text, *line;
			int lines = 0;

			while ((line = strsep(&rest, "\n")) && rest) {
				assert_true(columns(line) <= width);
				assert_null(strchr(line, '\033'));
				lines++;
			}
			assert_true(lines <= height);
			free(text);
		}
	}
	golden("1x1", painted(t, 1, 1));
	top_free(t);
}

static void test_always_visible(void **state)
{
	struct top *t = start(6, 4);

	(void)state;
	has(t, "throttled by the kernel 3 times");
	has(t, "cost 0.21 %");
	has(t, "seen ");
	has_not(t, "SIMULATED");
	info.hist.simulated = true;
	for (int height = 3; height < 40; height++) {
		char *text = painted(t, 80, height);

		assert_non_null(strstr(text, "SIMULATED"));
		free(text);
	}
	top_free(t);
	t = start(0, 0);
	has(t, "waiting for the first interval");
	top_free(t);
}

static void add_interval(struct top *t, unsigned int n, unsigned int times, bool shared)
{
	struct frame f = { .end_ns = 1795356300ULL * 1000000000, .by = BY, .cost = 0.0021 };
	struct snapshot s;

	make(&s, n, 3);
	for (size_t k = 0; k < s.groups[0].n_series; k++) {
		struct series *one = &s.groups[0].series[k], copy = *one;

		copy.buckets = one->buckets ? calloc(IBS_LAT_BUCKETS, sizeof(*copy.buckets)) : NULL;
		for (int b = 0; copy.buckets && b < IBS_LAT_BUCKETS; b++)
			copy.buckets[b] = one->buckets[b];
		for (unsigned int i = 1; i < times; i++)
			series_add(one, &copy);
		free(copy.buckets);
	}
	s.pmu.throttled = shared ? 12 : 0;
	s.pmu.running_ns = shared ? 60 : 100;
	top_add(t, &s, &f, name_of, NULL);
	snapshot_free(&s);
}

static void test_warnings_fit(void **state)
{
	struct top *t = start(6, 4);

	(void)state;
	info.hist.simulated = true;
	add_interval(t, 6, 1, true);
	for (int width = 40; width < 200; width += 9) {
		for (int height = 3; height < 40; height++) {
			char *text = painted(t, width, height);

			assert_non_null(strstr(text, "SIMULATED"));
			assert_non_null(strstr(text, "throttled"));
			assert_non_null(strstr(text, "60 %"));
			if (height >= 10) {
				assert_non_null(strstr(text, "cost"));
				assert_non_null(strstr(text, "unseen 0"));
			}
			free(text);
		}
	}
	top_free(t);
}

static void test_change(void **state)
{
	struct top *t = start(2, 20);

	(void)state;
	has_not(t, "▲");
	add_interval(t, 2, 3, false);
	has(t, "▲");
	has_not(t, "▼");
	top_free(t);
	t = start(2, 20);
	add_interval(t, 2, 1, false);
	has_not(t, "▲"); /* as before */
	has_not(t, "▼");
	top_free(t);
	t = start(2, 3);
	add_interval(t, 2, 3, false);
	has_not(t, "▲"); /* nobody knows what is usual */
	top_free(t);
}

/* Every line of it can be seen on every screen. */
static void test_help(void **state)
{
	struct top *t = start(6, 4);
	char *text = painted(t, 80, 24);

	(void)state;
	free(text);
	keys(t, "?");
	text = painted(t, 80, 24);
	assert_non_null(strstr(text, "row above"));
	assert_null(strstr(text, "q         quit"));
	free(text);
	keys(t, "?");
	text = painted(t, 80, 24);
	assert_non_null(strstr(text, "q         quit"));
	free(text);
	keys(t, "?");
	has(t, "by source of miss cycles");
	top_free(t);
}

/* Characters of one to four bytes, which the backspace removes as a whole. */
static void test_typed(void **state)
{
	static const unsigned int typed[] = { 'a',    0x7f + 1,	  0xe4,	   0x7ff,  0x800,
					      0x20ac, 0xffff - 2, 0x10000, 0x1f600 };
	static const char text[] =
		"a\xc2\x80\xc3\xa4\xdf\xbf\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbd\xf0\x90\x80\x80"
		"\xf0\x9f\x98\x80";
	struct top *t = start(8, 12);

	(void)state;
	keys(t, "/");
	for (size_t i = 0; i < sizeof(typed) / sizeof(*typed); i++)
		top_key(t, typed[i]);
	assert_string_equal(t->opts.match, text);
	top_key(t, TOP_BACKSPACE);
	assert_int_equal(strlen(t->opts.match), sizeof(text) - 5);
	top_key(t, 0x7f);
	top_key(t, 8);
	assert_int_equal(strlen(t->opts.match), sizeof(text) - 12);
	/* nothing else is taken, and Esc brings back what was there before */
	top_key(t, TOP_UP);
	top_key(t, 7);
	assert_int_equal(strlen(t->opts.match), sizeof(text) - 12);
	top_key(t, TOP_ESCAPE);
	assert_string_equal(t->opts.match, "");
	keys(t, "/bc\n/d");
	assert_string_equal(t->opts.match, "bcd");
	top_key(t, TOP_ESCAPE);
	assert_string_equal(t->opts.match, "bc");
	keys(t, "/");
	top_key(t, 0x15);
	assert_string_equal(t->opts.match, "");
	/* text that is too long is not taken */
	for (size_t i = 0; i < 2 * sizeof(t->opts.match); i++)
		top_key(t, 0x20ac);
	assert_int_equal(strlen(t->opts.match) % 3, 0);
	assert_in_range(strlen(t->opts.match), sizeof(t->opts.match) - 8,
			sizeof(t->opts.match) - 1);
	top_free(t);
}

static void test_keys(void **state)
{
	struct top *t = start(8, 12);
	char command[512];

	(void)state;
	has(t, "by container");
	has(t, "shop/db-0/postgres-0");
	/* filter: the others are in the sum of the rest */
	keys(t, "/POSTGRES\n");
	has(t, "filter: POSTGRES");
	has(t, "other (3)");
	has_not(t, "web-1");
	top_key(t, TOP_ESCAPE);
	has(t, "web-1");
	/* zoom */
	top_key(t, TOP_HOME);
	top_key(t, TOP_ENTER);
	has(t, "by process");
	has(t, "in shop/db-0/postgres-0");
	has(t, "100    task0");
	has_not(t, "task2");
	top_command(t, command, sizeof(command));
	assert_string_equal(command,
			    "ibscope top --container shop/db-0/postgres-0 --by pid,comm -d 2");
	top_key(t, TOP_ENTER); /* no interval has threads */
	has(t, "this interval was not counted by");
	assert_true(top_labels(t) & 1U << LABEL_TID);
	top_key(t, TOP_ESCAPE);
	top_key(t, TOP_ESCAPE);
	has(t, "by container");
	/* order */
	has(t, "sort cycles");
	keys(t, "r");
	has(t, "sort cycles ▲");
	keys(t, "r");
	keys(t, "<");
	has(t, "sort name");
	/* rows: only what can be told apart */
	for (int i = 0; i < 12; i++) {
		keys(t, "c");
		has_not(t, "by CPU");
		has_not(t, "by node");
	}
	assert_int_equal(top_key(t, 'w'), TOP_NOTHING);
	assert_int_equal(top_key(t, 'h'), TOP_WRITE_HISTORY);
	assert_int_equal(top_key(t, 'q'), TOP_QUIT);
	top_free(t);
}

/* The pane has what the selected row has, and each row can be selected, also where rows are parts of one group. */
static void test_rows_of_sources(void **state)
{
	static const char *const sources[] = { "dram", "remote-dram", "l2" };
	struct top *t = start_by(1U << LABEL_SRC, 2, 12);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		char head[64], *text = painted(t, 100, 30), *pane;

		snprintf(head, sizeof(head), "\n%s   by source", sources[i]);
		pane = strstr(text, head);
		if (!pane)
			fail_msg("no '%s' in:\n%s", head, text);
		assert_non_null(strstr(pane, "100.0%"));
		for (size_t k = 0; k < ARRAY_SIZE(sources); k++) {
			snprintf(head, sizeof(head), "\n%s ", sources[k]);
			assert_int_equal(!!strstr(pane + 1, head), k == i);
		}
		/* of a source, the history knows no rates */
		assert_null(strstr(pane, "last 10 min"));
		free(text);
		keys(t, "j");
	}
	top_key(t, TOP_HOME);
	top_key(t, TOP_ENTER);
	has(t, "nothing inside");
	top_free(t);
}

/* Inside a row of a container and a source is the container. */
static void test_into_row_of_source(void **state)
{
	const unsigned int labels = 1U << LABEL_CONTAINER | 1U << LABEL_SRC;
	struct top *t = start_by(labels, 2, 12);
	char command[512];

	(void)state;
	has(t, "\npostgres-0 dram   by source");
	keys(t, "j");
	has(t, "\npostgres-0 remote-dram   by source");
	top_key(t, TOP_ENTER);
	has(t, "in postgres-0 ");
	has(t, "100    task0");
	top_command(t, command, sizeof(command));
	assert_string_equal(command, "ibscope top --container postgres-0 --by pid,comm -d 2");
	top_key(t, TOP_ESCAPE);
	assert_int_equal(top_labels(t), labels);
	has(t, "\npostgres-0 remote-dram   by source");
	top_free(t);
}

static void test_time(void **state)
{
	struct top *t = start(8, 12);
	struct frame f = { .end_ns = 1795356300ULL * 1000000000, .by = BY, .cost = 0 };
	struct snapshot s;

	(void)state;
	has(t, "[LIVE]");
	has(t, "14:04:03");
	keys(t, " ");
	has(t, "[FROZEN -00:00]");
	make(&s, 1, 0);
	top_add(t, &s, &f, name_of, NULL);
	snapshot_free(&s);
	has(t, "14:04:03");
	has(t, "[FROZEN -00:57]");
	top_key(t, TOP_LEFT);
	has(t, "14:04:01");
	keys(t, "[");
	has(t, "14:03:41"); /* the oldest */
	top_key(t, TOP_RIGHT);
	has(t, "14:03:43");
	keys(t, " ");
	has(t, "[LIVE]");
	has(t, "14:05:00");
	/* as a recording ends */
	make(&s, 0, 0);
	f.end_ns += 2000000000;
	top_add(t, &s, &f, name_of, NULL);
	snapshot_free(&s);
	has(t, "no samples in this interval");
	has_not(t, "the left arrow");
	info.ended = true;
	has(t, "no samples in this interval; the left arrow goes to the one before");
	top_free(t);
}

/* In the lines of a function, which end with the last one that can be the first on the screen. */
static void test_lines(void **state)
{
	static const struct {
		unsigned int key;
		size_t line;
	} rows[] = {
		{ TOP_UP, 0 },	      { TOP_DOWN, 1 },	     { 'j', 2 },
		{ 'k', 1 },	      { TOP_END, 12 },	     { TOP_DOWN, 12 },
		{ TOP_PAGE_UP, 7 },   { TOP_PAGE_UP, 2 },    { TOP_PAGE_UP, 0 },
		{ TOP_PAGE_DOWN, 5 }, { TOP_PAGE_DOWN, 10 }, { TOP_PAGE_DOWN, 12 },
		{ TOP_HOME, 0 },
	};
	struct top *t = start(8, 2);

	(void)state;
	top_update(t);
	t->mode = TOP_FUNCTION;
	t->last_line = 12;
	t->hits.rows = 5;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(top_key(t, rows[i].key), TOP_NOTHING);
		assert_int_equal(t->line, rows[i].line);
		assert_int_equal(t->cursor, 0);
	}
	t->mode = TOP_TABLE;
	top_free(t);
}

static void presses(struct top *t, const char *key, double s)
{
	keys(t, key);
	assert_true(top_interval(t) == s);
}

/* From a tenth of a second to a minute; strata need a second. */
static void test_intervals(void **state)
{
	static const double steps[] = { .1, .2, .5, 1, 2, 5, 10, 30, 60 };
	struct top *t = start(8, 2);

	(void)state;
	for (int i = 5; i < 9; i++)
		presses(t, "+", steps[i]);
	presses(t, "+", 60);
	for (int i = 7; i >= 0; i--)
		presses(t, "-", steps[i]);
	presses(t, "-", .1);
	/* the next one of an interval between two */
	t->opts.interval_s = 3;
	presses(t, "+", 5);
	t->opts.interval_s = 3;
	presses(t, "-", 2);
	t->opts.in_strata = true;
	presses(t, "-", 1);
	assert_false(top_says(t));
	presses(t, "-", 1);
	has(t, "--strata needs intervals of 1 s or longer");
	top_free(t);
}

/* What does not fit on the first line is cut behind a blank. */
static void test_head(void **state)
{
	struct top *t = start(8, 2);
	char *text = painted(t, 30, 24);

	(void)state;
	assert_memory_equal(text, "ibscope top cost 0.21 %   14:0\n", 31);
	free(text);
	text = painted(t, 34, 24);
	assert_memory_equal(text, "ibscope top cost 0.21 %   14:03:43\n", 35);
	free(text);
	text = painted(t, 35, 24);
	assert_memory_equal(text, "ibscope top  cost 0.21 %   14:03:43\n", 36);
	free(text);
	top_free(t);
}

static void test_mouse(void **state)
{
	struct top *t = start(8, 12);
	char *text = painted(t, 100, 30), *at = strstr(text, "SHARE"), *line = at;
	int y = 0;

	(void)state;
	while (line > text && line[-1] != '\n')
		line--;
	for (char *p = text; p < line; p++)
		y += *p == '\n';
	top_click(t, y, at - line);
	has(t, "sort share");
	top_click(t, y, 0);
	has(t, "sort name");
	free(text);
	top_free(t);
}

static void test_json(void **state)
{
	struct top *t = start(8, 3);
	struct err err;
	char *text;
	size_t n, lines = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(top_write(t, true, f, &err), 0);
	fclose(f);
	for (char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 3);
	assert_non_null(strstr(text, "\"end\":\"2026-11-22T14:03:41.000Z\""));
	free(text);
	top_free(t);
}

/* --- history --- */

static void add_all(const struct history *h, struct series *sum, __u64 *seen, __u64 *time)
{
	for (size_t i = 0; i < history_n(h); i++) {
		struct snapshot s;

		history_snapshot(h, i, &s);
		*time += s.time_ns;
		*seen += s.ledger.seen;
		assert_int_equal(ledger_residual(&s.ledger), 0);
		for (size_t g = 0; g < s.n_groups; g++)
			for (size_t k = 0; k < s.groups[g].n_series; k++)
				series_add(sum, &s.groups[g].series[k]);
		snapshot_free(&s);
	}
}

/* More than fits is added up in pairs: longer intervals, and not a sample less. */
static void test_history_is_exact(void **state)
{
	const unsigned int n = 200, groups = 400;
	struct series want = {}, got = {};
	__u64 seen = 0, got_seen = 0, time = 0;
	struct history *h;

	(void)state;
	h = history_new();
	for (unsigned int i = 0; i < n; i++) {
		struct frame f = { .end_ns = (1000ULL + 2 * i) * 1000000000, .by = BY };
		struct snapshot s;

		make(&s, groups, i);
		for (unsigned int g = 0; g < groups; g++)
			for (size_t k = 0; k < s.groups[g].n_series; k++)
				series_add(&want, &s.groups[g].series[k]);
		seen += s.ledger.seen;
		history_add(h, &s, &f, name_of, NULL);
		snapshot_free(&s);
	}
	assert_true(history_n(h) < n);
	assert_true(history_n(h) > 20);
	add_all(h, &got, &got_seen, &time);
	assert_int_equal(time, 2000000000ULL * n);
	assert_int_equal(got_seen, seen);
	assert_int_equal(got.samples, want.samples);
	assert_int_equal(got.sum, want.sum);
	assert_int_equal(got.ops, want.ops);
	assert_int_equal(got.cycles, want.cycles);
	assert_memory_equal(got.buckets, want.buckets, IBS_LAT_BUCKETS * sizeof(*got.buckets));
	/* the newest are as they came */
	assert_int_equal(history_frame(h, 0)->time_ns, 2000000000);
	free(got.buckets);
	free(want.buckets);
	history_free(h);
}

/* However long it runs and whatever it shows: `top` takes at most 16 MiB more than the sampler. */
/* mallinfo2() knows nothing of a sanitizer's heap. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : m.uordblks + m.hblkhd;
}

static void test_memory(void **state)
{
	size_t before = allocated(), most = 0;
	struct top *t = start(0, 0);

	(void)state;
	for (unsigned int i = 0; i < 150; i++) {
		struct frame f = { .end_ns = (1000ULL + 2 * i) * 1000000000, .by = BY };
		struct snapshot s;

		make(&s, 1000, i);
		top_add(t, &s, &f, name_of, NULL);
		most = allocated() - before > most ? allocated() - before : most;
		snapshot_free(&s);
		if (i % 10 == 0) {
			if (i % 20 == 0)
				keys(t, "c");
			free(painted(t, 200, 50));
		}
	}
	print_message("%zu KiB\n", most >> 10);
	assert_in_range(most, HISTORY_BYTES, 16 << 20);
	top_free(t);
}

/* Groups come and go: old intervals and groups are forgotten, names are not mixed up. */
static void test_history_forgets(void **state)
{
	struct history *h;

	(void)state;
	h = history_new();
	for (unsigned int i = 0; i < 2000; i++) {
		struct frame f = { .end_ns = (1000ULL + i) * 1000000000, .by = BY };
		struct snapshot s;

		make(&s, 2, i);
		s.groups[0].key.cgroup_id = 1000 + i;
		history_add(h, &s, &f, name_of, NULL);
		snapshot_free(&s);
	}
	assert_in_range(history_n(h), HISTORY_S, HISTORY_S + 1);
	assert_null(history_name(h, 1000, LABEL_CGROUP));
	assert_string_equal(history_name(h, 2999, LABEL_CGROUP), "/kubepods.slice/2999");
	assert_string_equal(history_name(h, 2500, LABEL_CGROUP), "/kubepods.slice/2500");
	history_free(h);
}

static struct table table_of(const struct history *h, size_t i)
{
	struct snapshot s;
	struct table t;

	history_snapshot(h, i, &s);
	table_build(&s, IBS_METRIC_DC_MISS_LAT, 0, TABLE_CYCLES, 1, history_name, (void *)h, &t);
	snapshot_free(&s);
	return t;
}

/* Samples of strata: percentiles, means and walks are those of the ops, also of intervals added up. */
static void test_weighted(void **state)
{
	const unsigned int n = 400, groups = 400;
	struct history *h = history_new();

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		struct frame f = { .end_ns = (1000ULL + i) * 1000000000, .by = BY };
		struct snapshot s;

		make(&s, groups, 0);
		for (unsigned int g = 0; g < groups; g++) {
			struct group *group = &s.groups[g];

			group->weighted = group->has_tlb = true;
			group->tlb = (struct tlb_counts){ .l2_miss = 7, .l2_miss_ops = 1000000 };
			/* a fifth of the samples is from memory, but few of the ops */
			for (size_t k = 2; k < group->n_series; k++) {
				group->series[k].ops /= 100;
				group->series[k].cycles /= 100;
			}
		}
		history_add(h, &s, &f, name_of, NULL);
		snapshot_free(&s);
	}
	for (size_t i = 0; i < history_n(h); i += history_n(h) - 1) {
		const struct frame *f = history_frame(h, i);
		struct table t = table_of(h, i);
		const __u64 intervals = f->number - f->first + 1;

		assert_int_equal(intervals > 1, i > 0);
		assert_int_equal(t.total.walks, intervals * groups * 1000000);
		assert_true(t.total.memory > 1000000 * t.total.all.valid / 2);
		assert_in_range(series_percentile(&t.total.all, 0.9), 9, 36);
		assert_true(series_mean(&t.total.all) < 36);
		table_free(&t);
	}
	history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_any_size),
		cmocka_unit_test(test_always_visible),
		cmocka_unit_test(test_warnings_fit),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_typed),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_rows_of_sources),
		cmocka_unit_test(test_into_row_of_source),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_mouse),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_history_is_exact),
		cmocka_unit_test(test_weighted),
		cmocka_unit_test(test_history_forgets),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
