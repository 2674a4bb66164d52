// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_text.h"

#include <string.h>

/* Where the text goes. A step has room for METRICS_STEP bytes, and may use what there is beyond. */
struct out {
	char *to, *end;
};

#define METRICS_STEP (METRICS_ROOM / 2)
#define LINE_TAIL    128 /* at most, after the labels of the group: other labels and the value */

/*
 * A metric of every group: the histogram of what the collector histograms, a summary, or counters,
 * which have a line for each number from 0 to @lines whose value is not 0.
 */
struct group_metric {
	struct metric_head head;
	unsigned int lines;
	__u64 (*value)(const struct metrics_group *g, unsigned int line);
	char *(*put_labels)(char *to, unsigned int line);
	bool (*step)(const struct metrics *m, const struct group_metric *row,
		     enum metrics_format format, struct metrics_cursor *c, struct out *out);
};

static char *put(char *to, const char *s, size_t n)
{
	memcpy(to, s, n);
	return to + n;
}

static char *put_text(char *to, const char *s)
{
	return put(to, s, strlen(s));
}

static char *put_number(char *to, __u64 v)
{
	char digits[20];
	int n = sizeof(digits);

	do
		digits[--n] = '0' + v % 10;
	while (v /= 10);
	return put(to, digits + n, sizeof(digits) - n);
}

/* Is there room for one more line that begins like the last one, with @same bytes? */
static bool room_for(const struct out *out, size_t same)
{
	return (size_t)(out->end - out->to) >= same + LINE_TAIL;
}

/* The beginning of a line: name and the labels of the group. */
static char *put_series(char *to, const char *name, const char *suffix,
			const struct metrics_group *g)
{
	to = put_text(put_text(to, name), suffix);
	*to++ = '{';
	return put(to, g->labels, g->labels_len);
}

/* --- counters --- */

static __u64 sample_count(const struct metrics_group *g, unsigned int line)
{
	return g->count[line / IBS_SRC_N][line % IBS_SRC_N];
}

static __u64 estimated_ops(const struct metrics_group *g, unsigned int line)
{
	return g->ops[line / IBS_SRC_N][line % IBS_SRC_N];
}

static char *put_op_src(char *to, unsigned int line)
{
	to = put_text(put_text(to, "op=\""), op_kind_name(line / IBS_SRC_N));
	return put_text(put_text(put_text(to, "\",src=\""), src_name(line % IBS_SRC_N)), "\"");
}

static __u64 tlb_samples(const struct metrics_group *g, unsigned int line)
{
	return line ? g->tlb.l2_miss : g->tlb.l2_hit;
}

static __u64 tlb_ops(const struct metrics_group *g, unsigned int line)
{
	return line ? g->tlb.l2_miss_ops : g->tlb.l2_hit_ops;
}

static char *put_l2(char *to, unsigned int line)
{
	return put_text(to, line ? "l2=\"miss\"" : "l2=\"hit\"");
}

static bool counter_step(const struct metrics *m, const struct group_metric *row,
			 enum metrics_format format, struct metrics_cursor *c, struct out *out)
{
	const struct metrics_group *g;
	const char *begin = out->to;
	size_t same = 0;

	(void)format;
	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group];
	for (; c->line < row->lines; c->line++) {
		__u64 value = row->value(g, c->line);
		char *to;

		if (!value)
			continue;
		if (same && !room_for(out, same))
			return true;
		to = same ? put(out->to, begin, same)
			  : put_series(out->to, row->head.name, metric_suffix(&row->head), g);
		same = same ?: (size_t)(to - begin);
		to = put_text(row->put_labels(to, c->line), "} ");
		to = put_number(to, value);
		*to++ = '\n';
		out->to = to;
	}
	c->group++;
	c->line = 0;
	return true;
}

/* --- summary --- */

static bool refill_step(const struct metrics *m, const struct group_metric *row,
			enum metrics_format format, struct metrics_cursor *c, struct out *out)
{
	const struct metrics_group *g;

	(void)format;
	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group++];
	for (int count = 0; count < 2 && g->tlb.refills; count++) {
		char *to = put_series(out->to, row->head.name, count ? "_count" : "_sum", g);

		/* no label follows: the comma after the last one goes, and braces with none */
		to = g->labels_len ? put_text(to - 1, "} ") : put_text(to - 1, " ");
		to = put_number(to, count ? g->tlb.refills : g->tlb.refill_cycles);
		*to++ = '\n';
		out->to = to;
	}
	return true;
}

/* --- histogram --- */

/* The histogram's lines from c->line on: its edges and +Inf. */
static void put_buckets(struct out *out, const struct metrics *m, const char *name,
			enum metrics_format format, struct metrics_cursor *c)
{
	const struct metrics_group *g = m->groups.group[c->group];
	const struct packed_hist *h = &g->hist[c->src];
	const char *begin = out->to;
	char *to = put_series(out->to, name, "_bucket", g);
	size_t same;

	to = put_text(put_text(put_text(to, "src=\""), src_name(c->src)), "\",le=\"");
	same = to - begin;
	for (;;) {
		bool last = c->line == m->n_edges;

		if (last)
			to = put_text(to, "+Inf");
		else
			to = put_number(to, m->edges[c->line]);
		if (!last && format == METRICS_OPENMETRICS) /* le is a float there */
			to = put_text(to, ".0");
		to = put_text(to, "\"} ");
		to = put_number(to, last ? h->valid : h->below[c->line]);
		*to++ = '\n';
		out->to = to;
		c->line++;
		if (last || !room_for(out, same))
			return;
		to = put(to, begin, same);
	}
}

/* The histogram's sum and count. */
static void put_sums(struct out *out, const struct metrics *m, const char *name,
		     const struct metrics_cursor *c)
{
	const struct metrics_group *g = m->groups.group[c->group];
	const struct packed_hist *h = &g->hist[c->src];

	for (int count = 0; count < 2; count++) {
		char *to = put_series(out->to, name, count ? "_count" : "_sum", g);

		to = put_text(put_text(to, "src=\""), src_name(c->src));
		to = put_number(put_text(to, "\"} "), count ? h->valid : h->sum);
		*to++ = '\n';
		out->to = to;
	}
}

/* Move @c to the next histogram. Return: false if there is none. */
static bool next_latency(const struct metrics *m, struct metrics_cursor *c)
{
	for (; c->group < m->groups.n; c->group++, c->src = 0)
		for (; c->src < IBS_SRC_N; c->src++)
			if (m->groups.group[c->group]->hist[c->src].valid)
				return true;
	return false;
}

static bool latency_step(const struct metrics *m, const struct group_metric *row,
			 enum metrics_format format, struct metrics_cursor *c, struct out *out)
{
	if (!next_latency(m, c))
		return false;
	if (c->line > m->n_edges) {
		put_sums(out, m, row->head.name, c);
		c->line = 0;
		c->src++;
		return true;
	}
	put_buckets(out, m, row->head.name, format, c);
	return true;
}

/* --- the table --- */

/* The collector histograms one of these, and the others have no lines. */
static const struct group_metric latency[IBS_METRIC_N] = {
	[IBS_METRIC_DC_MISS_LAT] = { { "ibscope_load_miss_latency_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from a load's L1 data cache miss to its data "
				       "(DcMissLat), by data source." },
				     .step = latency_step },
	[IBS_METRIC_TLB_REFILL_LAT] = { { "ibscope_tlb_refill_latency_cycles", METRIC_HISTOGRAM,
					  "cycles",
					  "Core cycles to refill the L1 data TLB (TlbRefillLat), "
					  "by "
					  "data source." },
					.step = latency_step },
	[IBS_METRIC_TAG_TO_RET] = { { "ibscope_tag_to_retire_cycles", METRIC_HISTOGRAM, "cycles",
				      "Core cycles from the tagging of an op to its retirement." },
				    .step = latency_step },
	[IBS_METRIC_COMP_TO_RET] = { { "ibscope_completion_to_retire_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from the completion of an op to its "
				       "retirement." },
				     .step = latency_step },
};

static const struct group_metric group_table[] = {
	{ { "ibscope_samples", METRIC_COUNTER, "",
	    "Samples added to histograms, by kind of op and data source." },
	  IBS_OP_KIND_N *IBS_SRC_N,
	  sample_count,
	  put_op_src,
	  counter_step },
	{ { "ibscope_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops (or cycles, if the event counts cycles): each sample counts as the "
	    "period "
	    "that it ended." },
	  IBS_OP_KIND_N *IBS_SRC_N,
	  estimated_ops,
	  put_op_src,
	  counter_step },
	{ { "ibscope_dtlb_l1_miss_samples", METRIC_COUNTER, "",
	    "Samples that missed the L1 data TLB, by result in the L2 data TLB; a miss there is a "
	    "page "
	    "walk." },
	  2,
	  tlb_samples,
	  put_l2,
	  counter_step },
	{ { "ibscope_dtlb_l1_miss_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops that missed the L1 data TLB, by result in the L2 data TLB." },
	  2,
	  tlb_ops,
	  put_l2,
	  counter_step },
	{ { "ibscope_dtlb_refill_latency_cycles", METRIC_SUMMARY, "cycles",
	    "Core cycles to refill the L1 data TLB (TlbRefillLat), of samples that report it." },
	  .step = refill_step },
};

#define GROUP_METRICS (sizeof(group_table) / sizeof(group_table[0]))

/* --- JSON --- */

static char *put_json_percentile(char *to, const char *name, const struct series *s, double q)
{
	long p = series_percentile(s, q);

	to = put_text(to, name);
	return p < 0 ? put_text(to, "null") : put_number(to, p);
}

static char *put_json_source(char *to, const struct metrics_group *g, unsigned int src, bool first)
{
	__u64 buckets[IBS_LAT_BUCKETS] = {}, samples = 0, ops = 0;
	const struct packed_hist *h = &g->hist[src];
	struct series s = { .valid = h->valid, .buckets = buckets };
	const char *sep = "";

	packed_get(h, buckets);
	to = put_text(put_text(to, first ? "\"" : ",\n\""), src_name(src));
	to = put_text(to, "\":{\"ops\":{");
	for (int op = 0; op < IBS_OP_KIND_N; op++) {
		if (!g->count[op][src])
			continue;
		samples += g->count[op][src];
		ops += g->ops[op][src];
		to = put_text(put_text(put_text(to, sep), "\""), op_kind_name(op));
		to = put_number(put_text(to, "\":"), g->count[op][src]);
		sep = ",";
	}
	to = put_number(put_text(to, "},\"samples\":"), samples);
	to = put_number(put_text(to, ",\"estimated_ops\":"), ops);
	to = put_number(put_text(to, ",\"valid\":"), h->valid);
	to = put_number(put_text(to, ",\"sum\":"), h->sum);
	to = put_json_percentile(to, ",\"p50\":", &s, 0.5);
	to = put_json_percentile(to, ",\"p90\":", &s, 0.9);
	to = put_json_percentile(to, ",\"p99\":", &s, 0.99);
	to = put_text(to, ",\"buckets\":[");
	sep = "[";
	for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
		if (!buckets[b])
			continue;
		to = put_number(put_text(to, sep), ibs_lat_le(b));
		to = put_number(put_text(to, ","), buckets[b]);
		*to++ = ']';
		sep = ",[";
	}
	return put_text(to, "]}");
}

static bool has_source(const struct metrics_group *g, unsigned int src)
{
	for (int op = 0; op < IBS_OP_KIND_N; op++)
		if (g->count[op][src])
			return true;
	return false;
}

static char *put_json_tlb(char *to, const struct tlb_counts *t)
{
	const struct {
		const char *name;
		__u64 value;
	} members[] = {
		{ "\"tlb\":{\"l2_hit\":", t->l2_hit }, { ",\"l2_miss\":", t->l2_miss },
		{ ",\"l2_hit_ops\":", t->l2_hit_ops }, { ",\"l2_miss_ops\":", t->l2_miss_ops },
		{ ",\"refills\":", t->refills },       { ",\"refill_cycles\":", t->refill_cycles },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		to = put_number(put_text(to, members[i].name), members[i].value);
	*to++ = '}';
	return to;
}

static bool json_group_step(const struct metrics *m, struct metrics_cursor *c, struct out *out)
{
	const struct metrics_group *g;

	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group];
	if (!c->line) {
		out->to = put_text(put_text(out->to, c->group ? ",\n{" : "\n{"), g->json);
		out->to = put_json_tlb(put_text(out->to, *g->json ? "," : ""), &g->tlb);
		out->to = put_text(out->to, ",\"sources\":{");
		c->line = 1;
		return true;
	}
	for (; c->src < IBS_SRC_N; c->src++) {
		if (!has_source(g, c->src))
			continue;
		out->to = put_json_source(out->to, g, c->src++, c->line == 1);
		c->line = 2;
		return true;
	}
	out->to = put_text(out->to, "}}");
	c->group++;
	c->src = c->line = 0;
	return true;
}

/* The collector, its groups, and the end: each is a "metric" of the cursor. */
static bool json_step(const struct metrics *m, struct metrics_cursor *c, struct out *out)
{
	size_t n = m->json_len - c->at;

	switch (c->metric) {
	case 0:
		n = n < METRICS_STEP ? n : METRICS_STEP;
		out->to = put(out->to, m->json + c->at, n);
		c->at += n;
		return n;
	case 1:
		return json_group_step(m, c, out);
	default:
		if (!c->begun)
			out->to = put_text(out->to, "\n]}\n");
		return !c->begun && (c->begun = true);
	}
}

/* --- all together --- */

/* What does not grow with groups goes through a stream, which must not fill the room. */
static FILE *open_step(struct out *out)
{
	return fmemopen(out->to, METRICS_STEP, "w");
}

static bool close_step(FILE *f, struct out *out)
{
	long n = ftell(f);

	fclose(f);
	out->to += n > 0 ? n : 0;
	return true;
}

static bool group_metric_step(const struct metrics *m, const struct group_metric *row,
			      enum metrics_format format, struct metrics_cursor *c, struct out *out)
{
	FILE *f;

	if (c->begun)
		return row->step(m, row, format, c, out);
	f = open_step(out);
	if (!f)
		return false;
	c->begun = true;
	metric_write_head(f, format, &row->head);
	return close_step(f, out);
}

static bool table_step(const struct metrics *m, unsigned int row, enum metrics_format format,
		       struct metrics_cursor *c, struct out *out)
{
	FILE *f = c->begun ? NULL : open_step(out);

	if (!f)
		return false;
	c->begun = true;
	metric_write(f, format, &metrics_table[row], &m->facts);
	return close_step(f, out);
}

/* Write what comes next. Return: false if this metric is complete. */
static bool text_step(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		      struct out *out)
{
	const bool groups = m->facts.state == METRICS_READ;
	const unsigned int row = c->metric - 1 - GROUP_METRICS;

	if (!c->metric)
		return groups &&
		       group_metric_step(m, &latency[reading_metric(&m->facts.reading.meta)],
					 format, c, out);
	if (c->metric <= GROUP_METRICS)
		return groups && group_metric_step(m, &group_table[c->metric - 1], format, c, out);
	if (row < metrics_table_n)
		return table_step(m, row, format, c, out);
	if (format == METRICS_OPENMETRICS && !c->begun) {
		out->to = put_text(out->to, "# EOF\n");
		return c->begun = true;
	}
	return false;
}

size_t metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		    char *buf, size_t size)
{
	const unsigned int end =
		format == METRICS_JSON ? 3 : 1 + GROUP_METRICS + metrics_table_n + 1;
	struct out out = { .to = buf, .end = buf + size };

	while (c->metric < end && (size_t)(out.end - out.to) >= METRICS_STEP) {
		bool more = format == METRICS_JSON ? json_step(m, c, &out)
						   : text_step(m, format, c, &out);

		if (!more)
			*c = (struct metrics_cursor){ .metric = c->metric + 1 };
	}
	return out.to - buf;
}

void metrics_print(FILE *f, const struct metrics *m, enum metrics_format format)
{
	struct metrics_cursor c = {};
	char buf[2 * METRICS_ROOM];
	size_t n;

	while ((n = metrics_text(m, format, &c, buf, sizeof(buf))))
		fwrite(buf, 1, n, f);
}

void metrics_list(FILE *f)
{
	for (int i = 0; i < IBS_METRIC_N; i++)
		metric_describe(f, &latency[i].head);
	for (size_t i = 0; i < GROUP_METRICS; i++)
		metric_describe(f, &group_table[i].head);
	for (unsigned int i = 0; i < metrics_table_n; i++)
		metric_describe(f, &metrics_table[i].head);
}
