// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/std.h"
#include "table/table.h"

#include <math.h>

#include <ibscope/histogram.h>

#define PIECE 32768 /* minimum bytes to write at once */

void buf_put(struct metrics_buf *b, const char *s, size_t n)
{
	array_reserve(b->s, b->room, b->n + n);
	memcpy(b->s + b->n, s, n);
	b->n += n;
}

void buf_text(struct metrics_buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_number(struct metrics_buf *b, const char *before, __u64 v, const char *after)
{
	char digits[20];
	int n = sizeof(digits);

	do
		digits[--n] = '0' + v % 10;
	while (v /= 10);
	buf_text(b, before);
	buf_put(b, digits + n, sizeof(digits) - n);
	buf_text(b, after);
}

static void put_stream(struct metrics_buf *b, FILE *f, char **text, const size_t *n)
{
	xmemclose(f);
	buf_put(b, *text, *n);
	free(*text);
}

static void put_head(struct metrics_buf *b, enum metrics_format format,
		     const struct metric_head *head)
{
	char *text;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	metric_write_head(f, format, head);
	put_stream(b, f, &text, &n);
}

static void put_table(struct metrics_buf *b, enum metrics_format format,
		      const struct metrics_facts *facts)
{
	char *text;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	metrics_table_write(f, format, facts);
	put_stream(b, f, &text, &n);
	if (format != METRICS_TEXT)
		buf_text(b, "# EOF\n");
}

/* Write the next piece. Return: false at the end. */
static bool text_piece(const struct metrics *m, enum metrics_format format,
		       struct metrics_cursor *c, struct metrics_buf *b)
{
	const unsigned int n = group_metrics * (m->second ? 2 : 1);
	const struct metrics *of = c->metric < group_metrics ? m : m->second;
	const struct group_metric *row;

	if (c->metric >= n) {
		if (c->metric == n)
			put_table(b, format, &m->facts);
		return c->metric++ == n;
	}
	/* the two events share no group metric */
	row = group_metric_at(of, c->metric % group_metrics);
	if (row && !c->group)
		put_head(b, format, group_metric_head(row));
	if (row && c->group < of->groups.n)
		group_metric_put(b, of, row, format, of->groups.group[c->group++]);
	else
		*c = (struct metrics_cursor){ .metric = c->metric + 1 };
	return true;
}

/* --- JSON --- */

static void put_percentile(struct metrics_buf *b, const char *name, const struct series *s,
			   double q)
{
	long p = series_percentile(s, q);

	if (p >= 0) {
		buf_number(b, name, p, "");
	} else {
		buf_text(b, name);
		buf_text(b, "null");
	}
}

static void put_source(struct metrics_buf *b, const struct metrics_group *g, int src, bool fetch)
{
	const struct series *s = &g->src[src];
	const char *sep = "";

	buf_text(b, fetch ? fetch_class_name(src) : src_name(src));
	buf_text(b, fetch ? "\":{\"itlb\":{" : "\":{\"ops\":{");
	for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
		if (!g->count[op][src])
			continue;
		buf_text(b, sep);
		buf_text(b, "\"");
		buf_text(b, fetch ? itlb_name(op) : op_kind_name(op));
		buf_number(b, "\":", g->count[op][src], "");
		sep = ",";
	}
	buf_number(b, "},\"samples\":", s->samples, "");
	buf_number(b, fetch ? ",\"estimated_fetches\":" : ",\"estimated_ops\":", s->ops, "");
	buf_number(b, ",\"valid\":", s->valid, "");
	buf_number(b, ",\"sum\":", s->sum, "");
	if (isnan(series_miss_cycles(s)))
		buf_text(b, ",\"miss_cycles\":null");
	else
		buf_number(b, ",\"miss_cycles\":", series_miss_cycles(s), "");
	put_percentile(b, ",\"p50\":", s, 0.5);
	put_percentile(b, ",\"p90\":", s, 0.9);
	put_percentile(b, ",\"p99\":", s, 0.99);
	buf_text(b, ",\"buckets\":[");
	sep = "[";
	for (int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		buf_number(b, sep, ibs_lat_le(i), ",");
		buf_number(b, "", s->buckets[i], "]");
		sep = ",[";
	}
	buf_text(b, "]}");
}

static void put_group(struct metrics_buf *b, const struct metrics_group *g, bool fetch)
{
	const struct tlb_counts *t = &g->tlb;
	const char *sep = "\"";

	buf_text(b, g->json);
	buf_number(b, *g->json ? ",\"tlb\":{\"l2_hit\":" : "\"tlb\":{\"l2_hit\":", t->l2_hit, "");
	buf_number(b, ",\"l2_miss\":", t->l2_miss, "");
	buf_number(b, ",\"l2_hit_ops\":", t->l2_hit_ops, "");
	buf_number(b, ",\"l2_miss_ops\":", t->l2_miss_ops, "");
	buf_number(b, ",\"refills\":", t->refills, "");
	buf_number(b, ",\"refill_cycles\":", t->refill_cycles, "},\"sources\":{");
	if (fetch)
		buf_text(b, "},\"fetches\":{");
	for (int src = 0; src < IBS_SRC_N; src++) {
		if (!g->src[src].samples)
			continue;
		buf_text(b, sep);
		put_source(b, g, src, fetch);
		sep = ",\n\"";
	}
	buf_text(b, "}}");
}

/* Write the collector, then its groups: each is a "metric" of the cursor. Then the other event. */
static bool json_piece(const struct metrics *m, struct metrics_cursor *c, struct metrics_buf *b)
{
	const unsigned int event = c->metric / 2;
	const struct metrics *of = event ? m->second : m;

	if (event > 1 || !of)
		return false;
	if (c->metric % 2 == 0) {
		buf_put(b, of->json, of->json_len);
		c->metric++;
	} else if (c->group < of->groups.n) {
		buf_text(b, c->group ? ",\n{" : "\n{");
		put_group(b, of->groups.group[c->group++], of->groups.fetch);
	} else {
		buf_text(b, event ? "\n]}}\n" : m->second ? "\n],\"fetch\":" : "\n]}\n");
		*c = (struct metrics_cursor){ .metric = c->metric + 1 };
	}
	return true;
}

/* --- all together --- */

bool metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		  struct metrics_buf *b)
{
	const size_t enough = b->n + PIECE;
	bool more = true;

	while (more && b->n < enough)
		more = format == METRICS_JSON ? json_piece(m, c, b) : text_piece(m, format, c, b);
	return more;
}

void metrics_print(FILE *f, const struct metrics *m, enum metrics_format format)
{
	struct metrics_cursor c = {};
	struct metrics_buf b = {};
	bool more;

	do {
		b.n = 0;
		more = metrics_text(m, format, &c, &b);
		fwrite(b.s, 1, b.n, f);
	} while (more);
	free(b.s);
}

void metrics_list(FILE *f)
{
	group_metrics_describe(f);
	metrics_table_describe(f);
}
