// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table that hist prints, against golden files for several widths and numbers of groups, and its
 * arithmetic. After an intended change: UPDATE_GOLDEN=1 build/tests/unit/test_table, and read the diff.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "table/table.h"
#include "view/hist.h"

#include <ibscope/fetch.h>

#define GOLDEN "tests/data/table"

/* --- snapshots */

struct made {
	struct snapshot s;
	char (*name)[128];
	char (*container)[64], (*pod)[64];
};

static void add_series(struct group *g, enum ibs_src src, unsigned int n, unsigned int latency,
		       __u64 period)
{
	struct series *s;

	g->series = realloc(g->series, (g->n_series + 1) * sizeof(*s));
	assert_non_null(g->series);
	s = &g->series[g->n_series++];
	*s = (struct series){ .op = IBS_OP_KIND_LOAD, .src = src, .samples = n, .ops = n * period };
	if (!latency)
		return;
	s->valid = n;
	s->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	assert_non_null(s->buckets);
	for (unsigned int i = 0; i < n; i++) {
		/* spread over half to one and a half */
		unsigned int l = latency / 2 + latency * (i % 11) / 10;

		s->sum += l;
		s->cycles += l * period;
		s->buckets[ibs_lat_bucket(l)]++;
	}
}

static void make(struct made *m, size_t n, __u64 period)
{
	memset(m, 0, sizeof(*m));
	m->s.n_groups = n;
	m->s.time_ns = 10000000000;
	m->s.pmu.cpus = 96;
	m->s.groups = calloc(n ?: 1, sizeof(*m->s.groups));
	m->name = calloc(n ?: 1, sizeof(*m->name));
	m->container = calloc(n ?: 1, sizeof(*m->container));
	m->pod = calloc(n ?: 1, sizeof(*m->pod));
	assert_non_null(m->s.groups);
	for (size_t i = 0; i < n; i++) {
		struct group *g = &m->s.groups[i];
		unsigned int scale = 4000 / (i + 1) + 3;

		g->slot = i + 1;
		g->key.cgroup_id = i + 1;
		add_series(g, IBS_SRC_NONE, 5 * scale, 0, period);
		add_series(g, IBS_SRC_L2, scale, 18, period);
		add_series(g, IBS_SRC_L3, scale / 3, 60 + i % 7, period);
		if (i % 3 != 2)
			add_series(g, IBS_SRC_DRAM, scale / (5 + i % 4), 400 + 3 * (i % 50),
				   period);
		if (i % 2)
			add_series(g, IBS_SRC_REMOTE_DRAM, scale / 9, 700, period);
		snprintf(m->name[i], sizeof(m->name[i]),
			 "/kubepods.slice/kubepods-pod%04zu.slice/cri-containerd-%08zx.scope", i,
			 i * 2654435761 % 0xffffffff);
		if (i % 4 == 3)
			continue; /* not of a container */
		snprintf(m->container[i], sizeof(m->container[i]), "worker-%zu", i);
		if (i % 4)
			snprintf(m->pod[i], sizeof(m->pod[i]), "shop-production/web-7f9c5d-%04zx",
				 i * 40503 % 65536);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < m->s.groups[i].n_series; k++)
			m->s.ledger.seen += m->s.groups[i].series[k].samples;
	m->s.ledger.outcome[IBS_OUTCOME_AGGREGATED] = m->s.ledger.seen;
	m->s.ledger.pmu_exact = true;
}

static void destroy(struct made *m)
{
	snapshot_free(&m->s);
	free(m->name);
	free(m->container);
	free(m->pod);
}

static const char *namer(void *arg, __u64 id, enum label l)
{
	const struct made *m = arg;

	return l == LABEL_CGROUP ? m->name[id - 1]
	       : l == LABEL_POD	 ? m->pod[id - 1]
				 : m->container[id - 1];
}

/* --- printing */

static char *print(struct made *m, const struct screen *screen, const struct hist_view *v,
		   unsigned int labels)
{
	const struct hist_info info = { .source = "ibs",
					.event = "ibs_op/cnt_ctl=1/",
					.period = 1000000,
					.metric = IBS_METRIC_DC_MISS_LAT };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	hist_print_text(f, screen, v, &info, &m->s, labels, namer, m);
	fclose(f);
	return text;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = calloc(1, 1 << 17);

	assert_non_null(text);
	if (f) {
		size_t n = fread(text, 1, (1 << 17) - 1, f);

		text[n] = 0;
		fclose(f);
	}
	return text;
}

static void check_golden(const char *name, const char *text)
{
	char path[256], *want;

	snprintf(path, sizeof(path), "%s/%s", GOLDEN, name);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "we");

		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	want = read_file(path);
	assert_string_equal(text, want);
	free(want);
}

static size_t widest_line(const char *text)
{
	size_t most = 0;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "\n");
		char *line = strndup(p, n);

		assert_non_null(line);
		assert_true(!n || line[n - 1] != ' ');
		/* the ledger is not cut: every reason counts */
		if (strncmp(line, "seen ", 5) && screen_columns(line) > most)
			most = screen_columns(line);
		free(line);
		p += n + (p[n] == '\n');
	}
	return most;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_golden(void **state)
{
	static const unsigned int widths[] = { 60, 80, 120, 300 };
	static const size_t groups[] = { 0, 1, 10, 200 };

	(void)state;
	for (size_t w = 0; w < 4; w++) {
		for (size_t g = 0; g < 4; g++) {
			const struct screen screen = { .width = widths[w], .utf8 = true };
			const struct hist_view view = {};
			char name[64], *text;
			struct made m;

			make(&m, groups[g], 1000000);
			text = print(&m, &screen, &view, 0);
			assert_in_range(widest_line(text), 1, widths[w]);
			snprintf(name, sizeof(name), "%u-%zu.txt", widths[w], groups[g]);
			check_golden(name, text);
			free(text);
			destroy(&m);
		}
	}
}

static void test_golden_of_options(void **state)
{
	const struct screen plain = { .width = 100 },
			    color = { .width = 100, .color = true, .utf8 = true },
			    low = { .width = 100, .height = 24, .utf8 = true };
	const struct hist_view none = {}, full = { .histograms = true, .opts.top = 2 },
			       chosen = { .opts = { .columns = { TABLE_P99, TABLE_OPS, TABLE_MEAN,
								 TABLE_VALID },
						    .n_columns = 4,
						    .sort = TABLE_DRAM,
						    .has_sort = true,
						    .top = 6 } };
	struct made m;
	char *text;

	(void)state;
	make(&m, 40, 1000000);
	text = print(&m, &plain, &none, 0);
	for (const char *p = text; *p; p++)
		assert_true(*p > 0);
	check_golden("ascii.txt", text);
	free(text);
	text = print(&m, &color, &none, 0);
	assert_int_equal(count(text, "\033[1m"), 2);
	assert_int_equal(count(text, "\033[0m"), 2);
	free(text);
	text = print(&m, &low, &none, 0);
	assert_in_range(count(text, "\n"), 20, 23);
	free(text);
	text = print(&m, &plain, &full, 1U << LABEL_POD | 1U << LABEL_CONTAINER);
	check_golden("histogram.txt", text);
	free(text);
	text = print(&m, &low, &chosen, 1U << LABEL_CGROUP | 1U << LABEL_SRC);
	check_golden("columns.txt", text);
	free(text);
	destroy(&m);
}

/* --- arithmetic */

static void build(struct made *m, unsigned int labels, enum table_column sort, size_t top,
		  struct table *t)
{
	table_build(&m->s, IBS_METRIC_DC_MISS_LAT, labels, sort, top, namer, m, t);
}

static void test_sums(void **state)
{
	static const size_t tops[] = { 0, 1, 7, 38, 39, 40, 100 };

	(void)state;
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		double cycles = 0, want = 0;
		__u64 samples = 0, all = 0;
		struct made m;
		struct table t;

		make(&m, 40, 1000);
		build(&m, TABLE_LABELS, TABLE_CYCLES, tops[i], &t);
		/* a single row is never folded: it would take the same line */
		assert_int_equal(t.n, !tops[i] || tops[i] >= 39 ? 40 : tops[i]);
		assert_int_equal(t.n + t.n_rest, 40);
		for (size_t r = 0; r < t.n; r++) {
			cycles += t.row[r].cycles;
			samples += t.row[r].all.samples;
			assert_true(!r || t.row[r].cycles <= t.row[r - 1].cycles);
		}
		for (size_t g = 0; g < m.s.n_groups; g++) {
			for (size_t k = 0; k < m.s.groups[g].n_series; k++) {
				all += m.s.groups[g].series[k].samples;
				want += m.s.groups[g].series[k].sum * 1000.0;
			}
		}
		assert_true(fabs(cycles + t.rest.cycles - t.total.cycles) < 1);
		assert_true(fabs(want - t.total.cycles) < 1);
		assert_int_equal(samples + t.rest.all.samples, all);
		assert_int_equal(t.total.all.samples, all);
		table_free(&t);
		destroy(&m);
	}
}

/* Where exposed cycles are known of all rows, these are ranked by them. */
static void test_currency(void **state)
{
	const struct screen wide = { .width = 120, .utf8 = true };
	static const size_t order[] = { 3, 2, 1, 0, 4 };
	const struct hist_view none = {};
	struct made m;
	struct table t;
	char *text;

	(void)state;
	make(&m, 5, 1000);
	build(&m, 1U << LABEL_CGROUP, TABLE_CURRENCY, 0, &t);
	assert_int_equal(t.sort, TABLE_CYCLES);
	assert_true(isnan(table_value(&t, &t.total, TABLE_EXPOSED)));
	table_free(&t);
	/* the fewer miss cycles, the more are exposed; of the last group none */
	for (size_t g = 0; g < m.s.n_groups; g++)
		for (size_t k = 0; k < m.s.groups[g].n_series; k++) {
			struct series *s = &m.s.groups[g].series[k];

			s->exposed_n = s->valid;
			s->exposed = g < 4 && s->valid ? 2000000 * g * g : 0;
		}
	build(&m, 1U << LABEL_CGROUP, TABLE_CURRENCY, 0, &t);
	assert_int_equal(t.sort, TABLE_EXPOSED);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(t.row[i].name[LABEL_CGROUP], m.name[order[i]]);
	table_free(&t);
	text = print(&m, &wide, &none, TABLE_LABELS);
	check_golden("exposed.txt", text);
	free(text);
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	assert_string_equal(t.row[0].name[LABEL_CGROUP], m.name[0]);
	table_free(&t);
	/* one sample of one group that lacks it */
	m.s.groups[2].series[1].exposed_n--;
	build(&m, 1U << LABEL_CGROUP, TABLE_CURRENCY, 0, &t);
	assert_int_equal(t.sort, TABLE_CYCLES);
	assert_true(isnan(table_value(&t, &t.row[4], TABLE_EXPOSED)));
	assert_false(isnan(table_value(&t, &t.row[0], TABLE_EXPOSED)));
	table_free(&t);
	destroy(&m);
}

/* Sources are told apart in every group, whether or not --by names them. */
static void test_shares_of_sources(void **state)
{
	struct table t;
	struct made m;

	(void)state;
	make(&m, 0, 0);
	m.s.n_groups = 1;
	m.s.groups[0].key.cgroup_id = 1;
	add_series(&m.s.groups[0], IBS_SRC_UNKNOWN, 1000, 400, 16); /* in no share */
	add_series(&m.s.groups[0], IBS_SRC_L3, 11, 100, 16);
	add_series(&m.s.groups[0], IBS_SRC_DRAM, 22, 100, 16);
	add_series(&m.s.groups[0], IBS_SRC_REMOTE_DRAM, 11, 100, 16);
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	assert_int_equal(t.n, 1);
	assert_true(fabs(t.row[0].dram - 0.75) < 1e-9);
	assert_true(fabs(t.row[0].remote - 0.25) < 1e-9);
	table_free(&t);
	/* an unknown period is not zero */
	m.s.groups[0].series[2].ops = m.s.groups[0].series[2].cycles = 0;
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	assert_true(isnan(t.row[0].cycles) && isnan(t.total.cycles));
	table_free(&t);
	destroy(&m);
}

static void test_unknown_is_printed(void **state)
{
	const struct screen screen = { .width = 120, .utf8 = true };
	const struct hist_view view = {};
	struct made m;
	char *text;

	(void)state;
	make(&m, 0, 0);
	m.s.n_groups = 1;
	m.s.groups[0].key.cgroup_id = 1;
	add_series(&m.s.groups[0], IBS_SRC_UNKNOWN, 5, 400, 0);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	/* miss cycles, DRAM, REMOTE; p90 and p99 of five samples; the share is one of latencies */
	assert_int_equal(count(text, " –"), 5);
	assert_non_null(strstr(text, " 100.0%"));
	free(text);
	/* some of the ops are known: of what the share is nobody can tell */
	add_series(&m.s.groups[0], IBS_SRC_L3, 5, 400, 16);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_null(strstr(text, " 100.0%\n"));
	assert_null(strstr(text, "50.0%"));
	free(text);
	destroy(&m);
}

/* What some CPUs do not tell is left out where nobody asks for it, and never 0. */
static void test_misses(void **state)
{
	static const enum table_column asked[] = { TABLE_HITM, TABLE_MLP, TABLE_WALK };
	struct screen screen = { .width = 200, .utf8 = true };
	struct hist_view view = {};
	struct series *s;
	struct made m;
	char *text;

	(void)state;
	make(&m, 0, 0);
	m.s.n_groups = 1;
	m.s.groups[0].key.cgroup_id = 1;
	add_series(&m.s.groups[0], IBS_SRC_L3, 10, 100, 16);
	add_series(&m.s.groups[0], IBS_SRC_DRAM, 10, 300, 16);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_null(strstr(text, "HITM"));
	assert_null(strstr(text, "MLP"));
	assert_null(strstr(text, "WALK"));
	free(text);

	memcpy(view.opts.columns, asked, sizeof(asked));
	view.opts.n_columns = 3;
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_int_equal(count(text, " –"), 3);
	free(text);

	s = &m.s.groups[0].series[0];
	s->state_n = 4;
	s->hitm = s->cycles / 2;
	s->open_n = 4;
	s->open = 10;
	m.s.groups[0].has_tlb = true;
	m.s.groups[0].tlb.l2_miss = 5;
	view.opts.n_columns = 0;
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_non_null(strstr(text, "12.5%"));
	assert_non_null(strstr(text, " 2.5 "));
	assert_non_null(strstr(text, "25.0%"));
	free(text);
	destroy(&m);
}

/* --- names */

static void test_hostile_names(void **state)
{
	static const char *const names[] = { "/a\033[31mred",
					     "/b\nforged: line",
					     "/c\302\233m",
					     "/d\377\376",
					     "/e\342\200\256gnp.exe",
					     "=cmd|' /C calc'!A0",
					     "" };
	struct screen screen = { .width = 100, .utf8 = true };
	const struct hist_view view = {};
	char *text, *csv = NULL;
	struct made m;
	struct table t;
	size_t size;
	FILE *f;

	(void)state;
	make(&m, 7, 1000);
	for (int i = 0; i < 7; i++) {
		strcpy(m.name[i], names[i]);
		m.container[i][0] = 0;
	}
	for (screen.width = 60; screen.width <= 300; screen.width += 8) {
		text = print(&m, &screen, &view, 0);
		for (const char *p = text; *p; p++)
			assert_true((unsigned char)*p >= ' ' || *p == '\n');
		assert_null(strstr(text, "\302\233"));
		assert_null(strstr(text, "\342\200\256"));
		assert_null(strstr(text, "\nforged"));
		assert_in_range(widest_line(text), 1, screen.width);
		free(text);
	}
	f = open_memstream(&csv, &size);
	assert_non_null(f);
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	table_print_csv(f, &t, false, true);
	table_free(&t);
	fclose(f);
	assert_int_equal(count(csv, "\n"), 8);
	assert_null(strstr(csv, ",=cmd"));
	assert_non_null(strstr(csv, "'=cmd"));
	free(csv);
	destroy(&m);
}

/* A percentile that the leading rows have too few samples for is the first to give way. */
static void test_unknown_columns_go_first(void **state)
{
	const struct screen screen = { .width = 60, .utf8 = true };
	const struct hist_view view = {};
	struct made m;
	char *text;

	(void)state;
	make(&m, 1, 1000);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_non_null(strstr(text, "p99"));
	assert_null(strstr(text, "256"));
	free(text);
	destroy(&m);
	make(&m, 1, 1000);
	for (size_t k = 0; k < m.s.groups[0].n_series; k++)
		free(m.s.groups[0].series[k].buckets);
	m.s.groups[0].n_series = 0;
	add_series(&m.s.groups[0], IBS_SRC_DRAM, 12, 400, 1000);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_null(strstr(text, "p99"));
	assert_non_null(strstr(text, "p50"));
	free(text);
	destroy(&m);
}

/* Give a group samples from DRAM only. */
static void set_group(struct made *m, size_t i, __u64 samples, __u64 latency)
{
	struct group *g = &m->s.groups[i];

	for (size_t k = 0; k < g->n_series; k++)
		free(g->series[k].buckets);
	g->n_series = 0;
	memset(&g->tlb, 0, sizeof(g->tlb));
	add_series(g, IBS_SRC_DRAM, samples, latency, 1000);
}

/* Four samples do not lead, are marked, and are a row only for what they may cost. */
static void test_few_samples(void **state)
{
	const struct screen screen = { .width = 100, .utf8 = true, .color = true };
	const struct hist_view view = {}, all = { .opts.top = 20 };
	struct made m;
	struct table t;
	char *text;

	(void)state;
	make(&m, 9, 1000);
	set_group(&m, 0, 4, 16000);
	for (size_t i = 1; i < 7; i++)
		set_group(&m, i, 50 + i, 400);
	set_group(&m, 7, 3, 100);
	set_group(&m, 8, 3, 100);
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	assert_int_equal(t.row[0].all.samples, 4); /* as programs get it */
	table_rank_weak(&t, 0, true);
	assert_int_equal(t.n, 7);
	assert_int_equal(t.n_rest, 2);
	assert_int_equal(t.rest.all.samples, 6);
	assert_int_equal(t.row[0].all.samples, 56);
	assert_int_equal(t.row[6].all.samples, 4);
	table_free(&t);
	text = print(&m, &screen, &view, 1U << LABEL_CGROUP);
	assert_int_equal(count(text, "\033[2m"), 2);
	/* the line above the row; the row and the rest: cycles and share; the line below */
	assert_int_equal(count(text, "~"), 6);
	assert_non_null(strstr(text, "\n\033[2m~ under 20 samples:\033[0m\n\033[2m"));
	assert_non_null(strstr(text, "other (2)"));
	free(text);
	text = print(&m, &screen, &all, 1U << LABEL_CGROUP);
	assert_null(strstr(text, "other"));
	free(text);
	/* where they have the fewest cycles, too, nothing is to be explained */
	m.s.groups[0].series[0].cycles /= 100;
	text = print(&m, &screen, &all, 1U << LABEL_CGROUP);
	assert_null(strstr(text, "~ under"));
	free(text);
	m.s.groups[0].series[0].cycles *= 100;
	/* rows with enough samples do not answer: nothing is folded */
	m.s.groups[0].series[0].cycles *= 100;
	build(&m, 1U << LABEL_CGROUP, TABLE_CYCLES, 0, &t);
	table_rank_weak(&t, 0, true);
	assert_int_equal(t.n, 9);
	table_free(&t);
	destroy(&m);
}

/* Latency keeps its place before columns that are zero everywhere. */
static void test_zero_columns_go_first(void **state)
{
	const struct screen screen = { .width = 88, .utf8 = true };
	const struct hist_view view = {};
	struct made m;
	char *text;

	(void)state;
	make(&m, 3, 1000);
	for (size_t i = 0; i < 3; i++) {
		set_group(&m, i, 200, 400);
		m.s.groups[i].series[0].state_n = 200;
	}
	text = print(&m, &screen, &view, 1U << LABEL_CONTAINER);
	assert_non_null(strstr(text, "p90"));
	assert_non_null(strstr(text, "p50"));
	assert_null(strstr(text, "HITM"));
	free(text);
	destroy(&m);
}

static void shorten(const char *const *names, size_t n, unsigned int width, char **out)
{
	const struct screen s = { .width = 100, .utf8 = true };

	screen_shorten(&s, names, n, width, out);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(out[i]);
		assert_in_range(screen_columns(out[i]), 0, width);
	}
}

static void test_shortened_names(void **state)
{
	static const char *const names[] = {
		"/kubepods.slice/kubepods-pod1111.slice/cri-aaaaaaaa.scope",
		"/kubepods.slice/kubepods-pod2222.slice/cri-aaaaaaaa.scope",
		"/kubepods.slice/kubepods-pod2222.slice/cri-bbbbbbbb.scope",
		"/system.slice/postgresql@15-main.service",
		"short",
		"größe/äöü/äöüäöüäöüäöüäöüäöüäöüäöüäöüäöü",
	};
	char *out[6];

	(void)state;
	shorten(names, 6, 28, out);
	assert_string_equal(out[3], "/system.slice/…-main.service");
	assert_string_equal(out[4], "short");
	/* what tells names apart is kept: at any width all are different */
	for (unsigned int width = 12; width < 60; width++) {
		for (int i = 0; i < 6; i++)
			free(out[i]);
		shorten(names, 6, width, out);
		for (int i = 0; i < 6; i++)
			for (int k = 0; k < i; k++)
				assert_string_not_equal(out[i], out[k]);
	}
	for (int i = 0; i < 6; i++) {
		assert_string_equal(out[i], names[i]); /* 59 columns are enough for all */
		free(out[i]);
	}
	shorten(names + 3, 1, 32, out);
	assert_string_equal(out[0], "/sys…/postgresql@15-main.service");
	free(out[0]);
}

static void assert_shortened(unsigned int width, const char *name, const char *want)
{
	char *out;

	shorten(&name, 1, width, &out);
	assert_string_equal(out, want);
	free(out);
}

static void test_shortened_templates(void **state)
{
	static const char *const names[] = {
		"store::map<long, store::pair<int, int> >::find<store::less<long> >",
		"store::map<long, store::pair<int, int> >::find<store::greater<long> >",
		"store::map<char, store::pair<int, int> >::find<store::less<char> >",
		"store::map<char, store::pair<int, int> >::find<store::less<char> >::at",
	};
	char *out[4];

	(void)state;
	assert_shortened(27, "std::vector<int>::push_back", "std::vector<int>::push_back");
	assert_shortened(26, "std::vector<int>::push_back", "std::vector<…>::push_back");
	assert_shortened(34, "store::map<long>::find<store::less<long> >",
			 "store::map<long>::find<…>");
	assert_shortened(24, "store::map<long>::find<store::less<long> >",
			 "store::map<…>::find<…>");
	assert_shortened(16, "store::map<long>::find<store::less<long> >", "store::m…find<…>");
	/* neither operators nor arrows are brackets */
	assert_shortened(20, "n::operator<< <char, n::traits<char> >", "n::operator<< <…>");
	assert_shortened(20, "n::operator-><n::pointer, n::traits>", "n::operator-><…>");
	assert_shortened(20, "core::call<fn(u8) -> core::option<u16>>::x", "core::call<…>::x");
	assert_shortened(12, "a<b::c::d::e::f::g", "a<b::c…:f::g");
	assert_shortened(12, ">>>>>>>>>>>>>>>>>", ">>>>>>…>>>>>");
	for (unsigned int width = 16; width < 72; width++) {
		shorten(names, 4, width, out);
		for (int i = 0; i < 4; i++)
			for (int k = 0; k < i; k++)
				assert_string_not_equal(out[i], out[k]);
		for (int i = 0; i < 4; i++)
			free(out[i]);
	}
}

static void test_numbers(void **state)
{
	const struct screen s = { .utf8 = true };
	char b[32];

	(void)state;
#define SAYS(call, text)                      \
	do {                                  \
		call;                         \
		assert_string_equal(b, text); \
	} while (0)
	SAYS(screen_count(&s, 0, b, sizeof(b)), "0");
	SAYS(screen_count(&s, 999, b, sizeof(b)), "999");
	SAYS(screen_count(&s, 1000, b, sizeof(b)), "1,000");
	SAYS(screen_count(&s, 12345678, b, sizeof(b)), "12,345,678");
	SAYS(screen_count(&s, NAN, b, sizeof(b)), "–");
	SAYS(screen_percent(&s, 0, b, sizeof(b)), "0%");
	SAYS(screen_percent(&s, 0.0004, b, sizeof(b)), "<0.1%");
	SAYS(screen_percent(&s, 0.0005, b, sizeof(b)), "0.1%");
	SAYS(screen_percent(&s, 1, b, sizeof(b)), "100.0%");
	SAYS(screen_percent(&s, NAN, b, sizeof(b)), "–");
	SAYS(screen_scaled(&s, 1.92e9, 'G', b, sizeof(b)), "1.92 G");
	SAYS(screen_scaled(&s, 9.996e9, 'G', b, sizeof(b)), "10.0 G");
	SAYS(screen_scaled(&s, 123.4e9, 'G', b, sizeof(b)), "123 G");
	SAYS(screen_scaled(&s, 1e6, 'G', b, sizeof(b)), "<0.01 G");
	SAYS(screen_scaled(&s, 0, 'G', b, sizeof(b)), "0");
	SAYS(screen_scaled(&s, -1e6, 'G', b, sizeof(b)), "0");
	SAYS(screen_scaled(&s, -12.34e9, 'G', b, sizeof(b)), "-12.3 G");
	SAYS(screen_scaled(&s, 812, ' ', b, sizeof(b)), "812");
#undef SAYS
	assert_int_equal(screen_unit(999), ' ');
	assert_int_equal(screen_unit(1000), 'k');
	assert_int_equal(screen_unit(5e12), 'T');
}

/* --- instruction fetches */

static struct series fetches(enum ibs_fetch_class class, enum ibs_fetch_itlb itlb, __u64 n,
			     __u64 latency, __u64 *buckets)
{
	const bool done = class != IBS_FETCH_CLASS_ABORTED;

	memset(buckets, 0, IBS_LAT_BUCKETS * sizeof(*buckets));
	buckets[ibs_lat_bucket(latency)] = done ? n : 0;
	return (struct series){ .op = (enum ibs_op_kind)itlb,
				.src = (enum ibs_src) class,
				.samples = n,
				.valid = done ? n : 0,
				.sum = done ? n * latency : 0,
				.ops = n * 100,
				.cycles = done ? n * latency * 100 : 0,
				.buckets = buckets };
}

static const char *fetch_namer(void *arg, __u64 id, enum label l)
{
	(void)arg;
	return l == LABEL_CGROUP ? id == 1 ? "/web" : "/db" : "";
}

static char *verdict(const struct snapshot *s, enum ibs_metric metric)
{
	const struct screen screen = { .width = 100 };
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	fetch_verdict(f, &screen, s, metric, fetch_namer, NULL);
	fclose(f);
	return text;
}

static void test_fetches(void **state)
{
	static __u64 b[6][IBS_LAT_BUCKETS];
	struct series web[] = {
		fetches(IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_L1, 1000, 5, b[0]),
		fetches(IBS_FETCH_CLASS_L2, IBS_FETCH_ITLB_WALK_4K, 90, 100, b[1]),
		fetches(IBS_FETCH_CLASS_ABORTED, IBS_FETCH_ITLB_UNKNOWN, 110, 0, b[2]),
	};
	struct series db[] = {
		fetches(IBS_FETCH_CLASS_L3_MISS, IBS_FETCH_ITLB_WALK_4K, 30, 100, b[3]),
		fetches(IBS_FETCH_CLASS_L3_MISS, IBS_FETCH_ITLB_L2, 60, 50, b[4]),
		fetches(IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_WALK_2M, 10, 200, b[5]),
	};
	struct group groups[] = {
		{ .slot = 1, .key.cgroup_id = 1, .series = web, .n_series = 3 },
		{ .slot = 2, .key.cgroup_id = 2, .series = db, .n_series = 3 },
	};
	struct snapshot s = { .time_ns = 1000000000, .groups = groups, .n_groups = 2 };
	struct table t;
	char *text;

	(void)state;
	table_build(&s, IBS_METRIC_FETCH_LAT, TABLE_LABELS, TABLE_CYCLES, 0, fetch_namer, NULL, &t);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.row[0].name[0], "/web");
	assert_true(fabs(table_value(&t, &t.row[0], TABLE_ABORTED) - 110.0 / 1200) < 1e-9);
	assert_true(fabs(table_value(&t, &t.row[0], TABLE_WALK) - 90.0 / 1090) < 1e-9);
	assert_true(t.row[0].dram == 0);
	/* 3000 + 3000 of 3000 + 3000 + 2000 cycles */
	assert_true(fabs(t.row[1].dram - 0.75) < 1e-9);
	assert_true(table_value(&t, &t.row[1], TABLE_WALK) == 0.4);
	table_free(&t);

	/* 12000 of 22000 cycles are of 120 walks; 90 L3 misses are too few */
	text = verdict(&s, IBS_METRIC_FETCH_LAT);
	assert_non_null(strstr(text,
			       "54.5% of the fetch latency is that of fetches that walked page "
			       "tables of 4 KiB pages, 75.0% of that in /web: huge pages"));
	assert_null(strstr(text, "L3"));
	free(text);
	text = verdict(&s, IBS_METRIC_ITLB_REFILL_LAT);
	assert_string_equal(text, "");
	free(text);
	/* a small share suggests nothing */
	web[0].sum = 200000;
	text = verdict(&s, IBS_METRIC_FETCH_LAT);
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_currency),
		cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_golden_of_options),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_shares_of_sources),
		cmocka_unit_test(test_unknown_is_printed),
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_shortened_names),
		cmocka_unit_test(test_shortened_templates),
		cmocka_unit_test(test_unknown_columns_go_first),
		cmocka_unit_test(test_zero_columns_go_first),
		cmocka_unit_test(test_few_samples),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
