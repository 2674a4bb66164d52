// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/std.h"
#include "table/table.h"

#include <math.h>

#include <ibscope/histogram.h>

#define PIECE 32768 /* minimum bytes to write at once */

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
	const unsigned int n = group_metrics * m->facts.n_events;
	const unsigned int event = c->metric / group_metrics;
	const struct metrics_groups *of;
	const struct group_metric *row;
	struct metrics_group g;

	if (c->metric >= n) {
		if (c->metric == n)
			put_table(b, format, &m->facts);
		return c->metric++ == n;
	}
	/* the two events share no group metric */
	of = &m->groups[event];
	row = group_metric_at(m, event, c->metric % group_metrics);
	if (row && !c->group)
		put_head(b, format, group_metric_head(row));
	if (row && c->group < of->n) {
		metrics_unpack(of, &of->group[c->group++], group_metric_of_histograms(row), &g);
		group_metric_put(b, m, row, format, &g);
	} else {
		*c = (struct metrics_cursor){ .metric = c->metric + 1 };
	}
	return true;
}

/* --- JSON --- */

/* @coarse: buckets are too wide for percentiles */
static void put_percentile(struct json_writer *w, const char *key, const struct series *s, double q,
			   bool coarse)
{
	long p = coarse ? -1 : series_percentile(s, q);

	json_put_known(w, key, p >= 0, p);
}

static void put_source(struct json_writer *w, const struct metrics_group *g, int src, bool fetch,
		       bool coarse)
{
	const struct series *s = &g->src[src];

	json_begin_object(w, fetch ? fetch_class_name(src) : src_name(src));
	json_begin_object(w, fetch ? "itlb" : "ops");
	for (int op = 0; op < IBS_LAYOUT_OPS; op++)
		if (g->count[op][src])
			json_put_u64(w, fetch ? itlb_name(op) : op_kind_name(op),
				     g->count[op][src]);
	json_end(w);
	json_put_u64(w, "samples", s->samples);
	json_put_u64(w, fetch ? "estimated_fetches" : "estimated_ops", s->ops);
	json_put_u64(w, "valid", s->valid);
	json_put_u64(w, "sum", s->sum);
	json_put_known(w, "miss_cycles", !isnan(series_miss_cycles(s)), series_miss_cycles(s));
	put_percentile(w, "p50", s, 0.5, coarse);
	put_percentile(w, "p90", s, 0.9, coarse);
	put_percentile(w, "p99", s, 0.99, coarse);
	series_put_buckets(w, s);
	json_end(w);
}

static void put_group(struct json_writer *w, const struct metrics_packed *packed,
		      const struct metrics_groups *of)
{
	const bool fetch = of->fetch;
	struct metrics_group unpacked, *g = &unpacked;
	const struct tlb_counts *t = &g->tlb;

	metrics_unpack(of, packed, true, g);
	json_line_break(w);
	json_begin_object(w, NULL);
	if (*g->json)
		json_put_raw(w, NULL, g->json);
	json_begin_object(w, "tlb");
	json_put_u64(w, "l2_hit", t->l2_hit);
	json_put_u64(w, "l2_miss", t->l2_miss);
	json_put_u64(w, "l2_hit_ops", t->l2_hit_ops);
	json_put_u64(w, "l2_miss_ops", t->l2_miss_ops);
	json_put_u64(w, "refills", t->refills);
	json_put_u64(w, "refill_cycles", t->refill_cycles);
	json_end(w);
	if (!fetch) {
		json_begin_object(w, "exposed");
		json_put_u64(w, "cycles", metrics_exposed(g));
		json_put_u64(w, "unknown_samples", g->unexposed);
		json_end(w);
	}
	json_begin_object(w, "sources");
	if (fetch) {
		json_end(w);
		json_begin_object(w, "fetches");
	}
	for (int src = 0; src < IBS_SRC_N; src++)
		if (g->src[src].samples)
			put_source(w, g, src, fetch, of->coarse);
	json_end(w);
	json_end(w);
}

/* The collector, up to its list of groups. */
static void put_collector(struct json_writer *w, const struct metrics *m, unsigned int event)
{
	const struct metrics_facts *facts = &m->facts;
	const bool read = facts->state == METRICS_READ;

	if (read)
		collector_put(w, &facts->reading[event], 1, NULL);
	if (facts->state == METRICS_FAILED)
		json_put_null(w, "collector");
	else
		json_put_bool(w, "collector", read);
	json_put_bool(w, "coarse_histograms", facts->self.coarse);
	if (m->why)
		collector_put_text(w, "why", m->why);
	json_begin_array(w, "containers");
}

/* Write the collector, then its groups: each is a "metric" of the cursor. Then the other event. */
static bool json_piece(const struct metrics *m, struct metrics_cursor *c)
{
	const unsigned int event = c->metric / 2;
	const struct metrics_groups *of = &m->groups[event];
	struct json_writer *w = &c->json;

	if (event && event >= m->facts.n_events) {
		if (w->depth)
			json_finish(w);
		return false;
	}
	if (c->metric % 2 == 0) {
		w->precision = READING_PRECISION;
		json_begin_object(w, event ? "fetch" : NULL);
		put_collector(w, m, event);
		c->metric++;
	} else if (c->group < of->n) {
		put_group(w, &of->group[c->group++], of);
	} else {
		json_end(w);
		c->metric++;
		c->group = 0;
	}
	return true;
}

static bool json_pieces(const struct metrics *m, struct metrics_cursor *c, struct metrics_buf *b)
{
	bool more = true;
	char *text;
	size_t n;

	c->json.f = xmemopen(&text, &n);
	while (more && ftell(c->json.f) < PIECE)
		more = json_piece(m, c);
	put_stream(b, c->json.f, &text, &n);
	return more;
}

/* --- all together --- */

bool metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		  struct metrics_buf *b)
{
	const size_t enough = b->n + PIECE;
	bool more = true;

	if (format == METRICS_JSON)
		return json_pieces(m, c, b);
	while (more && b->n < enough)
		more = text_piece(m, format, c, b);
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
