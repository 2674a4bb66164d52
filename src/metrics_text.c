// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of a reading, made piece by piece. */
#include "metrics_text.h"

#include <string.h>

/* The histogram's name and help, by what is histogrammed. */
const struct metric metrics_latency[IBS_METRIC_N] = {
	[IBS_METRIC_DC_MISS_LAT] = { "ibscope_load_miss_latency_cycles", METRIC_HISTOGRAM, "cycles",
				     "Core cycles from an L1 data cache miss of a load to its data "
				     "(DcMissLat), by data source." },
	[IBS_METRIC_TLB_REFILL_LAT] = { "ibscope_tlb_refill_latency_cycles", METRIC_HISTOGRAM,
					"cycles",
					"Core cycles that the refill of the L1 data TLB took "
					"(TlbRefillLat), by data source." },
	[IBS_METRIC_TAG_TO_RET] = { "ibscope_tag_to_retire_cycles", METRIC_HISTOGRAM, "cycles",
				    "Core cycles from the tagging of an op to its retirement." },
	[IBS_METRIC_COMP_TO_RET] = { "ibscope_completion_to_retire_cycles", METRIC_HISTOGRAM,
				     "cycles",
				     "Core cycles from an op's completion to its retirement." },
};

/* One value of a group for each kind of op and source. */
typedef __u64 op_src_t[IBS_OP_KIND_N][IBS_SRC_N];

static const op_src_t *samples_of(const struct metrics_group *g)
{
	return &g->count;
}

static const op_src_t *weights_of(const struct metrics_group *g)
{
	return &g->weight;
}

/* Where a text goes. A step finds room for METRICS_STEP bytes, and goes on as long as there is. */
struct out {
	char *to, *end;
};

#define METRICS_STEP (METRICS_ROOM / 2)
#define LINE_TAIL    128 /* at most, behind the labels of the group: its own, and the value */

/* Write what comes next, a line at least; false: the section is done. */
typedef bool step_fn(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		     struct out *out);

static step_fn latency_step, op_src_step, tlb_step, refill_step;

/* How the lines of each section are made. */
static const struct section {
	struct metric metric;
	step_fn *step;
	const op_src_t *(*values)(const struct metrics_group *g); /* of op_src_step() */
	bool weights;						  /* of tlb_step() */
} sections[METRICS_SECTIONS] = {
	[METRICS_LATENCY] = { .step = latency_step },
	[METRICS_SAMPLES] = { { "ibscope_samples", METRIC_COUNTER, "",
				"Samples added to histograms, by kind of op and data source." },
			      op_src_step,
			      samples_of },
	[METRICS_OPS] = { { "ibscope_estimated_ops", METRIC_COUNTER, "",
			    "Ops (cycles, where the event counts those) that the samples stand "
			    "for: each for the period that it ended." },
			  op_src_step,
			  weights_of },
	[METRICS_TLB_SAMPLES] = { { "ibscope_dtlb_l1_miss_samples", METRIC_COUNTER, "",
				    "Samples that missed the L1 data TLB, by whether the L2 had "
				    "the page; a miss there is a page walk." },
				  tlb_step },
	[METRICS_TLB_OPS] = { { "ibscope_dtlb_l1_miss_estimated_ops", METRIC_COUNTER, "",
				"Ops that those samples stand for." },
			      tlb_step,
			      .weights = true },
	[METRICS_TLB_REFILL] = { { "ibscope_dtlb_refill_latency_cycles", METRIC_SUMMARY, "cycles",
				   "Core cycles that the refill of the L1 data TLB took "
				   "(TlbRefillLat), of those samples that tell it." },
				 refill_step },
};

const struct metric *metrics_of_section(const struct metrics *m, enum metrics_section s)
{
	return s == METRICS_LATENCY ? m->latency : &sections[s].metric;
}

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

static char *put_series(char *to, const char *name, const char *suffix,
			const struct metrics_group *g)
{
	to = put_text(put_text(to, name), suffix);
	*to++ = '{';
	return put(to, g->labels, g->labels_len);
}

/* Where no label of its own follows those of the group. */
static char *end_labels(char *to)
{
	return put_text(to[-1] == ',' ? to - 1 : to, "} ");
}

/* Is there room for one more line that begins as the last one did, with @same bytes? */
static bool room_for(const struct out *out, size_t same)
{
	return (size_t)(out->end - out->to) >= same + LINE_TAIL;
}

/* Lines of a histogram from number @line: its edges, and +Inf. */
static void put_buckets(struct out *out, const struct metrics *m, enum metrics_format format,
			struct metrics_cursor *c)
{
	const struct metrics_group *g = m->groups.group[c->group];
	const struct packed_hist *h = &g->hist[c->src];
	const char *begin = out->to;
	char *to = put_series(out->to, m->latency->name, "_bucket", g);
	size_t same;

	to = put_text(put_text(put_text(to, "data_src=\""), src_name(c->src)), "\",le=\"");
	same = to - begin;
	for (;;) {
		bool last = c->line == m->n_edges;

		if (last)
			to = put_text(to, "+Inf");
		else
			to = put_number(to, m->edges[c->line]);
		if (!last && format == METRICS_OPENMETRICS) /* which wants a float's spelling */
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

/* Its sum and count. */
static void put_sums(struct out *out, const struct metrics *m, const struct metrics_cursor *c)
{
	const struct metrics_group *g = m->groups.group[c->group];
	const struct packed_hist *h = &g->hist[c->src];

	for (int count = 0; count < 2; count++) {
		char *to = put_series(out->to, m->latency->name, count ? "_count" : "_sum", g);

		to = put_text(put_text(to, "data_src=\""), src_name(c->src));
		to = put_number(put_text(to, "\"} "), count ? h->valid : h->sum);
		*to++ = '\n';
		out->to = to;
	}
}

static char *put_json_percentile(char *to, const char *name, const struct series *s, double q)
{
	long p = series_percentile(s, q);

	to = put_text(to, name);
	return p < 0 ? put_text(to, "null") : put_number(to, p);
}

static char *put_json_source(char *to, const struct metrics_group *g, unsigned int src, bool first)
{
	__u64 buckets[IBS_LAT_BUCKETS] = {}, samples = 0, weight = 0;
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
		weight += g->weight[op][src];
		to = put_text(put_text(put_text(to, sep), "\""), op_kind_name(op));
		to = put_number(put_text(to, "\":"), g->count[op][src]);
		sep = ",";
	}
	to = put_number(put_text(to, "},\"samples\":"), samples);
	to = put_number(put_text(to, ",\"estimated_ops\":"), weight);
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

/* The next histogram from where @c is, or false. */
static bool next_latency(const struct metrics *m, struct metrics_cursor *c)
{
	for (; c->group < m->groups.n; c->group++, c->src = 0)
		for (; c->src < IBS_SRC_N; c->src++)
			if (m->groups.group[c->group]->hist[c->src].valid)
				return true;
	return false;
}

static bool latency_step(const struct metrics *m, enum metrics_format format,
			 struct metrics_cursor *c, struct out *out)
{
	if (!next_latency(m, c))
		return false;
	if (c->line > m->n_edges) {
		put_sums(out, m, c);
		c->line = 0;
		c->src++;
		return true;
	}
	put_buckets(out, m, format, c);
	return true;
}

/* A line for each kind of op and source that a group has. */
static bool op_src_step(const struct metrics *m, enum metrics_format format,
			struct metrics_cursor *c, struct out *out)
{
	const struct section *row = &sections[c->section];
	const struct metrics_group *g;
	const char *begin = out->to;
	size_t same = 0;

	(void)format;
	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group];
	for (; c->src < IBS_OP_KIND_N * IBS_SRC_N; c->src++) {
		unsigned int op = c->src / IBS_SRC_N, src = c->src % IBS_SRC_N;
		__u64 value = (*row->values(g))[op][src];
		char *to;

		if (!value)
			continue;
		if (same && !room_for(out, same))
			return true;
		if (same) {
			to = put(out->to, begin, same);
		} else {
			to = put_text(put_series(out->to, row->metric.name, "_total", g), "op=\"");
			same = to - begin;
		}
		to = put_text(put_text(to, op_kind_name(op)), "\",data_src=\"");
		to = put_number(put_text(put_text(to, src_name(src)), "\"} "), value);
		*to++ = '\n';
		out->to = to;
	}
	c->group++;
	c->src = 0;
	return true;
}

static bool tlb_step(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		     struct out *out)
{
	const struct section *row = &sections[c->section];
	const struct metrics_group *g;

	(void)format;
	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group++];
	for (int miss = 0; miss < 2; miss++) {
		const __u64 value[2][2] = { { g->tlb.l2_hit, g->tlb.l2_miss },
					    { g->tlb.l2_hit_weight, g->tlb.l2_miss_weight } };
		__u64 v = value[row->weights][miss];
		char *to;

		if (!v)
			continue;
		to = put_series(out->to, row->metric.name, "_total", g);
		to = put_text(to, miss ? "l2=\"miss\"} " : "l2=\"hit\"} ");
		to = put_number(to, v);
		*to++ = '\n';
		out->to = to;
	}
	return true;
}

static bool refill_step(const struct metrics *m, enum metrics_format format,
			struct metrics_cursor *c, struct out *out)
{
	const char *name = sections[c->section].metric.name;
	const struct metrics_group *g;
	char *to = out->to;

	(void)format;
	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group++];
	if (!g->tlb.refills)
		return true;
	to = put_number(end_labels(put_series(to, name, "_sum", g)), g->tlb.refill_cycles);
	*to++ = '\n';
	to = put_number(end_labels(put_series(to, name, "_count", g)), g->tlb.refills);
	*to++ = '\n';
	out->to = to;
	return true;
}

static char *put_json_tlb(char *to, const struct tlb_counts *t)
{
	const struct {
		const char *name;
		__u64 value;
	} members[] = {
		{ "\"tlb\":{\"l2_hit\":", t->l2_hit },
		{ ",\"l2_miss\":", t->l2_miss },
		{ ",\"l2_hit_ops\":", t->l2_hit_weight },
		{ ",\"l2_miss_ops\":", t->l2_miss_weight },
		{ ",\"refills\":", t->refills },
		{ ",\"refill_cycles\":", t->refill_cycles },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		to = put_number(put_text(to, members[i].name), members[i].value);
	*to++ = '}';
	return to;
}

static bool json_step(const struct metrics *m, struct metrics_cursor *c, struct out *out)
{
	const struct metrics_group *g;

	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group];
	if (!c->line) {
		out->to = put_text(put_text(out->to, c->group ? ",\n{" : "\n{"), g->json);
		out->to = put_json_tlb(put_text(out->to, ","), &g->tlb);
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

static bool head_step(const struct metrics_part *p, struct metrics_cursor *c, struct out *out)
{
	size_t n = p->len - c->at;

	if (n > METRICS_STEP)
		n = METRICS_STEP;
	if (!n)
		return false;
	out->to = put(out->to, p->s + c->at, n);
	c->at += n;
	return true;
}

static bool step(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		 struct out *out)
{
	if (head_step(&m->head[c->section][format], c, out))
		return true;
	if (format == METRICS_JSON)
		return c->section == METRICS_LATENCY && json_step(m, c, out);
	return sections[c->section].step && sections[c->section].step(m, format, c, out);
}

size_t metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		    char *buf, size_t size)
{
	struct out out = { .to = buf, .end = buf + size };

	while (c->section != METRICS_SECTIONS && (size_t)(out.end - out.to) >= METRICS_STEP)
		if (!step(m, format, c, &out))
			*c = (struct metrics_cursor){ .section = c->section + 1 };
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
