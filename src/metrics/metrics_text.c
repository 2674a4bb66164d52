// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/array.h"
#include "view/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <ibscope/histogram.h>

#define PIECE 32768 /* bytes to write at once, at least */

/* Stdio would take several times as long for tens of megabytes. */
static void put(struct metrics_buf *b, const char *s, size_t n)
{
	b->failed = b->failed || array_reserve(b->s, b->room, b->n + n);
	if (b->failed)
		return;
	memcpy(b->s + b->n, s, n);
	b->n += n;
}

static void put_text(struct metrics_buf *b, const char *s)
{
	put(b, s, strlen(s));
}

static void put_number(struct metrics_buf *b, const char *before, __u64 v, const char *after)
{
	char digits[20];
	int n = sizeof(digits);

	do
		digits[--n] = '0' + v % 10;
	while (v /= 10);
	put_text(b, before);
	put(b, digits + n, sizeof(digits) - n);
	put_text(b, after);
}

/* The beginning of a line: name and the labels of the group. */
static void put_series(struct metrics_buf *b, const char *name, const char *suffix,
		       const struct metrics_group *g)
{
	put_text(b, name);
	put_text(b, suffix);
	put_text(b, "{");
	put_text(b, g->labels);
}

/* A metric of every group. */
struct group_metric {
	struct metric_head head;
	void (*put)(struct metrics_buf *b, const struct metrics *m, const struct group_metric *row,
		    enum metrics_format format, const struct metrics_group *g);
	/* of counters: a line for each number below @lines whose value is not 0 */
	unsigned int lines;
	__u64 (*value)(const struct metrics_group *g, unsigned int line);
	void (*put_labels)(struct metrics_buf *b, unsigned int line);
};

/* --- counters --- */

static __u64 sample_count(const struct metrics_group *g, unsigned int line)
{
	return g->count[line / IBS_SRC_N][line % IBS_SRC_N];
}

static __u64 estimated_ops(const struct metrics_group *g, unsigned int line)
{
	return g->ops[line / IBS_SRC_N][line % IBS_SRC_N];
}

static __u64 miss_cycles(const struct metrics_group *g, unsigned int line)
{
	return g->src[line].cycles;
}

static __u64 hitm_cycles(const struct metrics_group *g, unsigned int line)
{
	return g->src[line].hitm;
}

static __u64 open_samples(const struct metrics_group *g, unsigned int line)
{
	return g->src[line].open_n;
}

static __u64 open_requests(const struct metrics_group *g, unsigned int line)
{
	return g->src[line].open;
}

static void put_src(struct metrics_buf *b, unsigned int line)
{
	put_text(b, "src=\"");
	put_text(b, src_name(line));
	put_text(b, "\"");
}

static void put_op_src(struct metrics_buf *b, unsigned int line)
{
	put_text(b, "op=\"");
	put_text(b, op_kind_name(line / IBS_SRC_N));
	put_text(b, "\",src=\"");
	put_text(b, src_name(line % IBS_SRC_N));
	put_text(b, "\"");
}

static __u64 tlb_samples(const struct metrics_group *g, unsigned int line)
{
	return line ? g->tlb.l2_miss : g->tlb.l2_hit;
}

static __u64 tlb_ops(const struct metrics_group *g, unsigned int line)
{
	return line ? g->tlb.l2_miss_ops : g->tlb.l2_hit_ops;
}

static void put_l2(struct metrics_buf *b, unsigned int line)
{
	put_text(b, line ? "l2=\"miss\"" : "l2=\"hit\"");
}

static void put_counters(struct metrics_buf *b, const struct metrics *m,
			 const struct group_metric *row, enum metrics_format format,
			 const struct metrics_group *g)
{
	(void)m;
	(void)format;
	for (unsigned int line = 0; line < row->lines; line++) {
		__u64 value = row->value(g, line);

		if (!value)
			continue;
		put_series(b, row->head.name, metric_suffix(&row->head), g);
		row->put_labels(b, line);
		put_number(b, "} ", value, "\n");
	}
}

/* Of a collector that histograms something else there are none. */
static void put_load_misses(struct metrics_buf *b, const struct metrics *m,
			    const struct group_metric *row, enum metrics_format format,
			    const struct metrics_group *g)
{
	if (reading_metric(&m->facts.reading.meta) == IBS_METRIC_DC_MISS_LAT)
		put_counters(b, m, row, format, g);
}

/* --- summary --- */

static void put_refills(struct metrics_buf *b, const struct metrics *m,
			const struct group_metric *row, enum metrics_format format,
			const struct metrics_group *g)
{
	(void)m;
	(void)format;
	for (int count = 0; count < 2 && g->tlb.refills; count++) {
		put_series(b, row->head.name, count ? "_count" : "_sum", g);
		/* no label follows: the last comma goes, or the brace if there are none */
		b->n -= !b->failed;
		put_number(b, *g->labels ? "} " : " ",
			   count ? g->tlb.refills : g->tlb.refill_cycles, "\n");
	}
}

/* --- histogram --- */

static void put_histogram(struct metrics_buf *b, const struct metrics *m, const char *name,
			  enum metrics_format format, const struct metrics_group *g, int src)
{
	const char *after = format == METRICS_OPENMETRICS ? ".0" : ""; /* le is a float there */
	const struct series *s = &g->src[src];
	__u64 below = 0;
	int bucket = 0;

	for (size_t i = 0; i <= m->opts.n_edges; i++) {
		put_series(b, name, "_bucket", g);
		put_text(b, "src=\"");
		put_text(b, src_name(src));
		if (i == m->opts.n_edges) {
			put_number(b, "\",le=\"+Inf\"} ", s->valid, "\n");
			break;
		}
		while (bucket < IBS_LAT_BUCKETS && ibs_lat_le(bucket) <= m->opts.edges[i])
			below += s->buckets[bucket++];
		put_number(b, "\",le=\"", m->opts.edges[i], after);
		put_number(b, "\"} ", below, "\n");
	}
	for (int count = 0; count < 2; count++) {
		put_series(b, name, count ? "_count" : "_sum", g);
		put_text(b, "src=\"");
		put_text(b, src_name(src));
		put_number(b, "\"} ", count ? s->valid : s->sum, "\n");
	}
}

static void put_latencies(struct metrics_buf *b, const struct metrics *m,
			  const struct group_metric *row, enum metrics_format format,
			  const struct metrics_group *g)
{
	for (int src = 0; src < IBS_SRC_N; src++)
		if (g->src[src].valid)
			put_histogram(b, m, row->head.name, format, g, src);
}

/* --- the table --- */

/* The collector histograms one of these, and the others have no lines. */
static const struct group_metric latency[IBS_METRIC_N] = {
	[IBS_METRIC_DC_MISS_LAT] = { { "ibscope_load_miss_latency_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from a load's L1 data cache miss to its data "
				       "(DcMissLat), by data source." },
				     put_latencies },
	[IBS_METRIC_TLB_REFILL_LAT] = { { "ibscope_tlb_refill_latency_cycles", METRIC_HISTOGRAM,
					  "cycles",
					  "Core cycles to refill the L1 data TLB (TlbRefillLat), "
					  "by data source." },
					put_latencies },
	[IBS_METRIC_TAG_TO_RET] = { { "ibscope_tag_to_retire_cycles", METRIC_HISTOGRAM, "cycles",
				      "Core cycles from the tagging of an op to its retirement." },
				    put_latencies },
	[IBS_METRIC_COMP_TO_RET] = { { "ibscope_completion_to_retire_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from the completion of an op to its "
				       "retirement." },
				     put_latencies },
};

static const struct group_metric group_table[] = {
	{ { "ibscope_samples", METRIC_COUNTER, "",
	    "Samples added to histograms, by kind of op and data source." },
	  put_counters,
	  IBS_OP_KIND_N *IBS_SRC_N,
	  sample_count,
	  put_op_src },
	{ { "ibscope_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops (or cycles, if the event counts cycles): each sample counts as the "
	    "period that it ended." },
	  put_counters,
	  IBS_OP_KIND_N *IBS_SRC_N,
	  estimated_ops,
	  put_op_src },
	{ { "ibscope_load_miss_cycles", METRIC_COUNTER, "cycles",
	    "Core cycles of load misses, each sample's latency (DcMissLat) times the ops that it "
	    "stands for, by data source; misses overlap." },
	  put_load_misses,
	  IBS_SRC_N,
	  miss_cycles,
	  put_src },
	{ { "ibscope_load_hitm_cycles", METRIC_COUNTER, "cycles",
	    "Of those, the cycles of loads that found the line modified in another cache." },
	  put_load_misses,
	  IBS_SRC_N,
	  hitm_cycles,
	  put_src },
	{ { "ibscope_load_open_requests_samples", METRIC_COUNTER, "",
	    "Sampled load misses that tell how many requests to memory their core had open when "
	    "they were filled, by data source." },
	  put_load_misses,
	  IBS_SRC_N,
	  open_samples,
	  put_src },
	{ { "ibscope_load_open_requests", METRIC_COUNTER, "",
	    "Requests open when those were filled, themselves included: the sum over the "
	    "samples." },
	  put_load_misses,
	  IBS_SRC_N,
	  open_requests,
	  put_src },
	{ { "ibscope_dtlb_l1_miss_samples", METRIC_COUNTER, "",
	    "Samples that missed the L1 data TLB, by result in the L2 data TLB; a miss there is a "
	    "page walk." },
	  put_counters,
	  2,
	  tlb_samples,
	  put_l2 },
	{ { "ibscope_dtlb_l1_miss_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops that missed the L1 data TLB, by result in the L2 data TLB." },
	  put_counters,
	  2,
	  tlb_ops,
	  put_l2 },
	{ { "ibscope_dtlb_refill_latency_cycles", METRIC_SUMMARY, "cycles",
	    "Core cycles to refill the L1 data TLB (TlbRefillLat), of samples that report it." },
	  put_refills },
};

#define GROUP_METRICS (1 + sizeof(group_table) / sizeof(group_table[0]))

static FILE *open_stream(char **text, size_t *n)
{
	*text = NULL;
	*n = 0;
	return open_memstream(text, n);
}

static void put_stream(struct metrics_buf *b, FILE *f, char **text, const size_t *n)
{
	if (f && !fclose(f))
		put(b, *text, *n);
	else
		b->failed = true;
	free(*text);
}

static void put_head(struct metrics_buf *b, enum metrics_format format,
		     const struct metric_head *head)
{
	char *text;
	size_t n;
	FILE *f = open_stream(&text, &n);

	if (f)
		metric_write_head(f, format, head);
	put_stream(b, f, &text, &n);
}

static void put_table(struct metrics_buf *b, enum metrics_format format,
		      const struct metrics_facts *facts)
{
	char *text;
	size_t n;
	FILE *f = open_stream(&text, &n);

	if (f)
		metrics_table_write(f, format, facts);
	put_stream(b, f, &text, &n);
	if (format == METRICS_OPENMETRICS)
		put_text(b, "# EOF\n");
}

/* Write what comes next. Return: false at the end. */
static bool text_piece(const struct metrics *m, enum metrics_format format,
		       struct metrics_cursor *c, struct metrics_buf *b)
{
	const bool read = m->facts.state == METRICS_READ;
	const struct group_metric *row;

	if (c->metric >= GROUP_METRICS) {
		if (c->metric == GROUP_METRICS)
			put_table(b, format, &m->facts);
		return c->metric++ == GROUP_METRICS;
	}
	row = c->metric ? &group_table[c->metric - 1]
			: &latency[read ? reading_metric(&m->facts.reading.meta) : 0];
	if (read && !c->group)
		put_head(b, format, &row->head);
	if (read && c->group < m->groups.n)
		row->put(b, m, row, format, m->groups.group[c->group++]);
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
		put_number(b, name, p, "");
		return;
	}
	put_text(b, name);
	put_text(b, "null");
}

static void put_source(struct metrics_buf *b, const struct metrics_group *g, int src)
{
	const struct series *s = &g->src[src];
	const char *sep = "";

	put_text(b, src_name(src));
	put_text(b, "\":{\"ops\":{");
	for (int op = 0; op < IBS_OP_KIND_N; op++) {
		if (!g->count[op][src])
			continue;
		put_text(b, sep);
		put_text(b, "\"");
		put_text(b, op_kind_name(op));
		put_number(b, "\":", g->count[op][src], "");
		sep = ",";
	}
	put_number(b, "},\"samples\":", s->samples, "");
	put_number(b, ",\"estimated_ops\":", s->ops, "");
	put_number(b, ",\"valid\":", s->valid, "");
	put_number(b, ",\"sum\":", s->sum, "");
	if (isnan(series_miss_cycles(s)))
		put_text(b, ",\"miss_cycles\":null");
	else
		put_number(b, ",\"miss_cycles\":", series_miss_cycles(s), "");
	put_percentile(b, ",\"p50\":", s, 0.5);
	put_percentile(b, ",\"p90\":", s, 0.9);
	put_percentile(b, ",\"p99\":", s, 0.99);
	put_text(b, ",\"buckets\":[");
	sep = "[";
	for (int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		put_number(b, sep, ibs_lat_le(i), ",");
		put_number(b, "", s->buckets[i], "]");
		sep = ",[";
	}
	put_text(b, "]}");
}

static void put_group(struct metrics_buf *b, const struct metrics_group *g)
{
	const struct tlb_counts *t = &g->tlb;
	const char *sep = "\"";

	put_text(b, g->json);
	put_number(b, *g->json ? ",\"tlb\":{\"l2_hit\":" : "\"tlb\":{\"l2_hit\":", t->l2_hit, "");
	put_number(b, ",\"l2_miss\":", t->l2_miss, "");
	put_number(b, ",\"l2_hit_ops\":", t->l2_hit_ops, "");
	put_number(b, ",\"l2_miss_ops\":", t->l2_miss_ops, "");
	put_number(b, ",\"refills\":", t->refills, "");
	put_number(b, ",\"refill_cycles\":", t->refill_cycles, "},\"sources\":{");
	for (int src = 0; src < IBS_SRC_N; src++) {
		if (!g->src[src].samples)
			continue;
		put_text(b, sep);
		put_source(b, g, src);
		sep = ",\n\"";
	}
	put_text(b, "}}");
}

/* The collector, its groups, and the end: each is a "metric" of the cursor. */
static bool json_piece(const struct metrics *m, struct metrics_cursor *c, struct metrics_buf *b)
{
	if (!c->metric) {
		put(b, m->json, m->json_len);
		c->metric++;
	} else if (c->metric == 1 && c->group < m->groups.n) {
		put_text(b, c->group ? ",\n{" : "\n{");
		put_group(b, m->groups.group[c->group++]);
	} else if (c->metric == 1) {
		put_text(b, "\n]}\n");
		c->metric++;
	} else {
		return false;
	}
	return true;
}

/* --- all together --- */

bool metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		  struct metrics_buf *b)
{
	const size_t enough = b->n + PIECE;
	bool more = true;

	while (more && b->n < enough && !b->failed)
		more = format == METRICS_JSON ? json_piece(m, c, b) : text_piece(m, format, c, b);
	return more && !b->failed;
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
	for (int i = 0; i < IBS_METRIC_N; i++)
		metric_describe(f, &latency[i].head);
	for (size_t i = 0; i + 1 < GROUP_METRICS; i++)
		metric_describe(f, &group_table[i].head);
	metrics_table_describe(f);
}
