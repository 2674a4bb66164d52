// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The metrics of groups, and their numbers of series. */
#include "metrics_private.h"
#include "base/text.h"
#include "counts/counts.h"
#include "table/table.h"

#include <limits.h>
#include <string.h>

#include <ibscope/fetch.h>

/* --- sources --- */

/* The values of the label `src`, or of ibs_fetch `fetch`. */
enum src_form {
	SRC_HIDDEN, /* the metric is not exported */
	SRC_SUM,    /* no label */
	SRC_FAR,    /* distinctions of a histogram with few series */
	SRC_MERGED, /* few kinds of memory and cache */
	SRC_EACH,   /* as reported by the processor */
	SRC_FORMS
};

static const char *const merged_src[IBS_SRC_N][SRC_FORMS] = {
#define MERGED(NAME, far, few) [IBS_SRC_##NAME] = { [SRC_FAR] = far, [SRC_MERGED] = few }
	MERGED(UNKNOWN, "near", "other"),
	MERGED(NONE, "near", "none"),
	MERGED(L1, "near", "l1"),
	MERGED(L2, "near", "l2"),
	MERGED(L3, "near", "l3"),
	MERGED(LOCAL_CACHE, "near", "cache"),
	MERGED(NEAR_CACHE, "near", "cache"),
	MERGED(REMOTE_CACHE, "remote", "remote"),
	MERGED(DRAM, "dram", "dram"),
	MERGED(REMOTE_DRAM, "remote", "remote"),
	MERGED(PMEM, "dram", "dram"),
	MERGED(REMOTE_PMEM, "remote", "remote"),
	MERGED(CXL, "dram", "dram"),
	MERGED(REMOTE_CXL, "remote", "remote"),
	MERGED(IO, "near", "other"),
	MERGED(PEER, "near", "other"),
	MERGED(UNCACHED, "near", "other"),
	MERGED(MAB, "near", "other"),
#undef MERGED
};

static const char *const merged_fetch[IBS_FETCH_CLASS_N][SRC_FORMS] = {
#define MERGED(NAME, far, few) [IBS_FETCH_CLASS_##NAME] = { [SRC_FAR] = far, [SRC_MERGED] = few }
	MERGED(UNKNOWN, "near", "other"),   MERGED(OP_CACHE, "near", "op-cache"),
	MERGED(L1, "near", "l1"),	    MERGED(L1_L2, "near", "l1"),
	MERGED(L2, "near", "l2"),	    MERGED(L3, "far", "l3"),
	MERGED(L2_MISS, "far", "miss"),	    MERGED(L3_MISS, "far", "miss"),
	MERGED(ABORTED, "near", "aborted"), MERGED(KILLED, "near", "aborted"),
#undef MERGED
};

static const char *form_name(enum src_form form, int src, bool fetch)
{
	if (form == SRC_EACH)
		return fetch ? fetch_class_name(src) : src_name(src);
	if (form == SRC_SUM)
		return "";
	return fetch ? merged_fetch[src][form] : merged_src[src][form];
}

/* The first source with the same name as @src. */
static int first_of(enum src_form form, int src, bool fetch)
{
	static unsigned char known[2][SRC_FORMS][IBS_SRC_N]; /* plus one */
	unsigned char *of = &known[fetch][form][src];
	int first = 0;

	if (!*of) {
		while (strcmp(form_name(form, first, fetch), form_name(form, src, fetch)))
			first++;
		*of = first + 1;
	}
	return *of - 1;
}

/* --- rows --- */

/* A metric of every group. */
struct group_metric {
	struct metric_head head;
	void (*put)(struct metrics_buf *b, const struct metrics *m, const struct group_metric *row,
		    enum metrics_format format, const struct metrics_group *g);
	enum src_form form[METRICS_DETAILS];
	/* for counters by source: the value for a kind of op and a source */
	__u64 (*value)(const struct metrics_group *g, int op, int src);
	bool ops;   /* one value per kind of op, or translation; else only the first */
	bool fetch; /* only of ibs_fetch; else only of ibs_op */
	/* for data TLB counters */
	__u64 (*tlb)(const struct tlb_counts *t, bool miss);
};

/* Begin a line: name and the labels of the group. */
static void put_name(struct metrics_buf *b, const char *name, const char *suffix,
		     const struct metrics_group *g)
{
	buf_text(b, name);
	buf_text(b, suffix);
	buf_text(b, "{");
	buf_text(b, g->labels);
}

/* End the labels, without trailing comma or empty braces. */
static void end_labels(struct metrics_buf *b)
{
	if (b->s[b->n - 1] == '{')
		b->n--;
	else {
		b->n -= b->s[b->n - 1] == ',';
		buf_text(b, "}");
	}
	buf_text(b, " ");
}

static void put_label(struct metrics_buf *b, const char *name, const char *value)
{
	buf_text(b, name);
	buf_text(b, "=\"");
	buf_text(b, value);
	buf_text(b, "\",");
}

static void put_src(struct metrics_buf *b, enum src_form form, int src, bool fetch)
{
	if (form > SRC_SUM)
		put_label(b, fetch ? "fetch" : "src", form_name(form, src, fetch));
}

static int group_sources(const struct group_metric *row)
{
	return row->fetch ? (int)IBS_FETCH_CLASS_N : (int)IBS_SRC_N;
}

/* --- counters --- */

static __u64 sample_count(const struct metrics_group *g, int op, int src)
{
	return g->count[op][src];
}

static __u64 estimated_ops(const struct metrics_group *g, int op, int src)
{
	return g->ops[op][src];
}

#define OF_SERIES(function, member)                                           \
	static __u64 function(const struct metrics_group *g, int op, int src) \
	{                                                                     \
		(void)op;                                                     \
		return g->src[src].member;                                    \
	}
OF_SERIES(miss_cycles, cycles)
OF_SERIES(hitm_cycles, hitm)
OF_SERIES(exposed_cycles, exposed)
OF_SERIES(open_samples, open_n)
OF_SERIES(open_requests, open)

static __u64 unexposed_samples(const struct metrics_group *g, int op, int src)
{
	(void)op;
	return src ? 0 : g->unexposed;
}

/* The price of remote memory falls when local memory gets slower; its components never do. */
static bool of_memory(int src)
{
	bool remote;

	return price_place(src, PRICE_NODE_UNKNOWN, -1, &remote) >= 0;
}

static __u64 memory_cycles(const struct metrics_group *g, int op, int src)
{
	return of_memory(src) ? miss_cycles(g, op, src) : 0;
}

static __u64 memory_ops(const struct metrics_group *g, int op, int src)
{
	(void)op;
	return of_memory(src) ? g->timed[src] : 0;
}

/* If all sources are separate, kinds of op are too; else their sum. */
static void put_counters(struct metrics_buf *b, const struct metrics *m,
			 const struct group_metric *row, enum metrics_format format,
			 const struct metrics_group *g)
{
	const enum src_form form = row->form[m->opts.detail];
	const bool by_op = row->ops && form == SRC_EACH;
	__u64 sum[IBS_LAYOUT_OPS][IBS_SRC_N] = {};

	(void)format;
	for (int src = 0; src < group_sources(row); src++) {
		const int first = first_of(form, src, row->fetch);

		for (int op = 0; op < (row->ops ? IBS_LAYOUT_OPS : 1); op++)
			sum[by_op ? op : 0][first] += row->value(g, op, src);
	}
	for (int op = 0; op < (by_op ? IBS_LAYOUT_OPS : 1); op++) {
		for (int src = 0; src < group_sources(row); src++) {
			if (!sum[op][src])
				continue;
			put_name(b, row->head.name, metric_suffix(&row->head), g);
			if (by_op)
				put_label(b, row->fetch ? "itlb" : "op",
					  row->fetch ? itlb_name(op) : op_kind_name(op));
			put_src(b, form, src, row->fetch);
			end_labels(b);
			buf_number(b, "", sum[op][src], "\n");
		}
	}
}

/* Only for collectors that histogram this latency. */
static void put_load_misses(struct metrics_buf *b, const struct metrics *m,
			    const struct group_metric *row, enum metrics_format format,
			    const struct metrics_group *g)
{
	if (reading_metric(&m->facts.reading[0].meta) == IBS_METRIC_DC_MISS_LAT)
		put_counters(b, m, row, format, g);
}

static __u64 tlb_samples(const struct tlb_counts *t, bool miss)
{
	return miss ? t->l2_miss : t->l2_hit;
}

static __u64 tlb_ops(const struct tlb_counts *t, bool miss)
{
	return miss ? t->l2_miss_ops : t->l2_hit_ops;
}

/* Page walks, which cost most, are always included. */
static void put_tlb(struct metrics_buf *b, const struct metrics *m, const struct group_metric *row,
		    enum metrics_format format, const struct metrics_group *g)
{
	(void)format;
	for (int miss = m->opts.detail == METRICS_LOW; miss < 2; miss++) {
		if (!row->tlb(&g->tlb, miss))
			continue;
		put_name(b, row->head.name, metric_suffix(&row->head), g);
		put_label(b, "l2", miss ? "miss" : "hit");
		end_labels(b);
		buf_number(b, "", row->tlb(&g->tlb, miss), "\n");
	}
}

/* --- summary --- */

static void put_refills(struct metrics_buf *b, const struct metrics *m,
			const struct group_metric *row, enum metrics_format format,
			const struct metrics_group *g)
{
	const bool one = format == METRICS_OPENMETRICS2;

	(void)m;
	for (int count = one; count < 2 && g->tlb.refills; count++) {
		put_name(b, row->head.name, one ? "" : count ? "_count" : "_sum", g);
		end_labels(b);
		if (one) {
			buf_number(b, "{count:", g->tlb.refills, "");
			buf_number(b, ",sum:", g->tlb.refill_cycles, ",quantile:[]}\n");
		} else {
			buf_number(b, "", count ? g->tlb.refills : g->tlb.refill_cycles, "\n");
		}
	}
}

/* --- histogram --- */

/*
 * The slowest sample of a bucket that is in a recording. The file, the CPU and the latency find it there; who may not
 * read the file learns nothing else about it.
 */
static void put_exemplar(struct metrics_buf *b, const struct metrics_group *g, enum src_form form,
			 int src, bool fetch, unsigned int above, unsigned int to)
{
	const struct ibs_exemplar *e = g->slowest, *end = e + IBS_EXEMPLARS;
	char stamp[TEXT_TIME_STAMP_SIZE], text[160];

	while (e < end && (!e->time_ns || e->src >= IBS_SRC_N || e->latency <= above ||
			   e->latency > to || first_of(form, e->src, fetch) != src))
		e++;
	if (e == end)
		return;
	snprintf(text, sizeof(text),
		 " # {recording=\"" IBS_FLIGHT_FILE "\",cpu=\"%u\"} %u %llu.%03u",
		 text_time_stamp(stamp, e->recording_ns), e->cpu, e->latency,
		 e->time_ns / 1000000000, (unsigned int)(e->time_ns / 1000000 % 1000));
	buf_text(b, text);
}

static void put_classic(struct metrics_buf *b, const struct metrics *m, const char *name,
			enum metrics_format format, const struct metrics_group *g,
			enum src_form form, int src, bool fetch, const struct series *s)
{
	const char *after = format == METRICS_TEXT ? "\"} " : ".0\"} "; /* le is a float there */
	unsigned int above = 0;
	__u64 below = 0;
	int bucket = 0;

	for (size_t i = 0; i < m->opts.n_edges; i++) {
		while (bucket < IBS_LAT_BUCKETS && ibs_lat_le(bucket) <= m->opts.edges[i])
			below += s->buckets[bucket++];
		put_name(b, name, "_bucket", g);
		put_src(b, form, src, fetch);
		buf_number(b, "le=\"", m->opts.edges[i], after);
		buf_number(b, "", below, "");
		if (format != METRICS_TEXT)
			put_exemplar(b, g, form, src, fetch, above, m->opts.edges[i]);
		buf_text(b, "\n");
		above = m->opts.edges[i];
	}
	put_name(b, name, "_bucket", g);
	put_src(b, form, src, fetch);
	buf_number(b, "le=\"+Inf\"} ", s->valid, "");
	if (format != METRICS_TEXT)
		put_exemplar(b, g, form, src, fetch, above, UINT_MAX);
	buf_text(b, "\n");
	for (int count = 0; count < 2; count++) {
		put_name(b, name, count ? "_count" : "_sum", g);
		put_src(b, form, src, fetch);
		end_labels(b);
		buf_number(b, "", count ? s->valid : s->sum, "\n");
	}
}

/*
 * Exponential buckets, four per octave: bucket i ends at 2^(i/4). Ours are an eighth of their lower
 * edge wide, and each is counted at its upper edge.
 */
#define NATIVE_SCHEMA 2
#define NATIVE_MAX    (16 << NATIVE_SCHEMA) /* 65536 */

static int native_bucket(unsigned int le)
{
	static const double root[] = { 1, 1.189207115002721, 1.414213562373095, 1.681792830507429 };
	int octave = 31 - __builtin_clz(le), part = 0;

	while (part < 4 && le > root[part] * (1U << octave))
		part++;
	return octave * 4 + part;
}

static void put_native(struct metrics_buf *b, const char *name, const struct metrics_group *g,
		       enum src_form form, int src, bool fetch, const struct series *s)
{
	__u64 n[NATIVE_MAX + 1] = {};
	const char *sep = "";
	int end = 0;

	for (int i = 1; i < IBS_LAT_BUCKETS; i++)
		n[native_bucket(ibs_lat_le(i))] += s->buckets[i];
	put_name(b, name, "", g);
	put_src(b, form, src, fetch);
	end_labels(b);
	buf_number(b, "{count:", s->valid, "");
	buf_number(b, ",sum:", s->sum, "");
	buf_number(b, ",schema:", NATIVE_SCHEMA, ",zero_threshold:0");
	buf_number(b, ",zero_count:", s->buckets[0], ",positive_spans:[");
	for (int i = 0, len; i <= NATIVE_MAX; i += len + 1) {
		for (len = 0; i + len <= NATIVE_MAX && n[i + len]; len++)
			;
		if (!len)
			continue;
		buf_number(b, sep, i - end, "");
		buf_number(b, ":", len, "");
		end = i + len;
		sep = ",";
	}
	sep = "],positive_buckets:[";
	for (int i = 0; i <= NATIVE_MAX; i++) {
		if (!n[i])
			continue;
		buf_number(b, sep, n[i], "");
		sep = ",";
	}
	buf_text(b, end ? "]}\n" : "],positive_buckets:[]}\n");
}

static void put_latencies(struct metrics_buf *b, const struct metrics *m,
			  const struct group_metric *row, enum metrics_format format,
			  const struct metrics_group *g)
{
	const enum src_form form = row->form[m->opts.detail];

	for (int src = 0; src < group_sources(row); src++) {
		__u64 buckets[IBS_LAT_BUCKETS] = {};
		struct series sum = { .buckets = buckets };

		if (first_of(form, src, row->fetch) != src)
			continue;
		for (int i = src; i < group_sources(row); i++)
			if (g->src[i].valid && first_of(form, i, row->fetch) == src)
				series_add(&sum, &g->src[i]);
		if (!sum.valid)
			continue;
		if (format == METRICS_OPENMETRICS2)
			put_native(b, row->head.name, g, form, src, row->fetch, &sum);
		else
			put_classic(b, m, row->head.name, format, g, form, src, row->fetch, &sum);
	}
}

/* --- the table --- */

#define LATENCY_FORMS                         \
	{                                     \
		SRC_FAR, SRC_MERGED, SRC_EACH \
	}
static const struct group_metric latency[IBS_METRIC_N] = {
	[IBS_METRIC_DC_MISS_LAT] = { { "ibscope_load_miss_latency_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from a load's L1 data cache miss to its data "
				       "(DcMissLat), by data source." },
				     put_latencies,
				     LATENCY_FORMS },
	[IBS_METRIC_TLB_REFILL_LAT] = { { "ibscope_tlb_refill_latency_cycles", METRIC_HISTOGRAM,
					  "cycles",
					  "Core cycles to refill the L1 data TLB (TlbRefillLat), "
					  "by data source." },
					put_latencies,
					LATENCY_FORMS },
	[IBS_METRIC_TAG_TO_RET] = { { "ibscope_tag_to_retire_cycles", METRIC_HISTOGRAM, "cycles",
				      "Core cycles from the tagging of an op to its retirement." },
				    put_latencies,
				    LATENCY_FORMS },
	[IBS_METRIC_COMP_TO_RET] = { { "ibscope_completion_to_retire_cycles", METRIC_HISTOGRAM,
				       "cycles",
				       "Core cycles from the completion of an op to its "
				       "retirement." },
				     put_latencies,
				     LATENCY_FORMS },
	[IBS_METRIC_FETCH_LAT] = { { "ibscope_fetch_latency_cycles", METRIC_HISTOGRAM, "cycles",
				     "Core cycles from an instruction fetch to its delivery, of "
				     "fetches that completed, by outcome." },
				   put_latencies,
				   LATENCY_FORMS,
				   .fetch = true },
	[IBS_METRIC_ITLB_REFILL_LAT] = { { "ibscope_itlb_refill_latency_cycles", METRIC_HISTOGRAM,
					   "cycles",
					   "Core cycles to refill the L1 instruction TLB, by "
					   "outcome of the fetch." },
					 put_latencies,
					 LATENCY_FORMS,
					 .fetch = true },
};

static const struct group_metric table[] = {
	{ { "ibscope_samples", METRIC_COUNTER, "",
	    "Samples added to histograms, by kind of op and data source." },
	  put_counters,
	  { SRC_SUM, SRC_MERGED, SRC_EACH },
	  .value = sample_count,
	  .ops = true },
	{ { "ibscope_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops (or cycles, if the event counts cycles): each sample counts as the "
	    "period that it ended." },
	  put_counters,
	  { SRC_SUM, SRC_MERGED, SRC_EACH },
	  .value = estimated_ops,
	  .ops = true },
	{ { "ibscope_load_miss_cycles", METRIC_COUNTER, "cycles",
	    "Core cycles of load misses, each sample's latency (DcMissLat) times its estimated "
	    "ops, by data source; misses overlap. With detail low and medium, src is merged: "
	    "dram has pmem and cxl, remote caches and memory of other nodes." },
	  put_load_misses,
	  { SRC_MERGED, SRC_MERGED, SRC_EACH },
	  .value = miss_cycles },
	{ { "ibscope_memory_load_miss_cycles", METRIC_COUNTER, "cycles",
	    "Core cycles of load misses that memory answered, each sample's latency times its "
	    "estimated ops. src is as with detail full: remote-dram here is part of what is "
	    "remote elsewhere." },
	  put_load_misses,
	  { SRC_HIDDEN, SRC_EACH, SRC_EACH },
	  .value = memory_cycles },
	{ { "ibscope_memory_load_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops of load misses that memory answered. src is as with detail full: "
	    "remote-dram here is part of what is remote elsewhere." },
	  put_load_misses,
	  { SRC_HIDDEN, SRC_EACH, SRC_EACH },
	  .value = memory_ops },
	{ { "ibscope_load_exposed_cycles", METRIC_COUNTER, "cycles",
	    "Estimate of the core cycles for which retirement waited for load misses, without the "
	    "samples of ibscope_load_exposed_unknown_samples. Only of events that count ops." },
	  put_load_misses,
	  { SRC_SUM, SRC_MERGED, SRC_EACH },
	  .value = exposed_cycles },
	{ { "ibscope_load_exposed_unknown_samples", METRIC_COUNTER, "",
	    "Sampled load misses that retirement waited for, but that do not report how many "
	    "requests were open." },
	  put_load_misses,
	  { SRC_SUM, SRC_SUM, SRC_SUM },
	  .value = unexposed_samples },
	{ { "ibscope_load_hitm_cycles", METRIC_COUNTER, "cycles",
	    "Of all miss cycles, those of loads that found the line modified in another cache." },
	  put_load_misses,
	  { SRC_HIDDEN, SRC_MERGED, SRC_EACH },
	  .value = hitm_cycles },
	{ { "ibscope_load_open_requests_samples", METRIC_COUNTER, "",
	    "Sampled load misses that report how many requests their core had open when they were "
	    "filled, by data source." },
	  put_load_misses,
	  { SRC_HIDDEN, SRC_HIDDEN, SRC_EACH },
	  .value = open_samples },
	{ { "ibscope_load_open_requests", METRIC_COUNTER, "",
	    "Requests open when sampled load misses were filled, including the misses themselves, "
	    "summed over the samples." },
	  put_load_misses,
	  { SRC_HIDDEN, SRC_HIDDEN, SRC_EACH },
	  .value = open_requests },
	{ { "ibscope_dtlb_l1_miss_samples", METRIC_COUNTER, "",
	    "Samples that missed the L1 data TLB, by result in the L2 data TLB; a miss there is a "
	    "page walk." },
	  put_tlb,
	  { SRC_HIDDEN, SRC_SUM, SRC_SUM },
	  .tlb = tlb_samples },
	{ { "ibscope_dtlb_l1_miss_estimated_ops", METRIC_COUNTER, "",
	    "Estimated ops that missed the L1 data TLB, by result in the L2 data TLB." },
	  put_tlb,
	  { SRC_SUM, SRC_SUM, SRC_SUM },
	  .tlb = tlb_ops },
	{ { "ibscope_dtlb_refill_latency_cycles", METRIC_SUMMARY, "cycles",
	    "Core cycles to refill the L1 data TLB (TlbRefillLat), of samples that report it." },
	  put_refills,
	  { SRC_HIDDEN, SRC_SUM, SRC_SUM } },
	{ { "ibscope_fetch_samples", METRIC_COUNTER, "",
	    "Samples of instruction fetches added to histograms, by translation and outcome." },
	  put_counters,
	  { SRC_SUM, SRC_MERGED, SRC_EACH },
	  .value = sample_count,
	  .ops = true,
	  .fetch = true },
	{ { "ibscope_estimated_fetches", METRIC_COUNTER, "",
	    "Estimated instruction fetches: each sample counts as the period that it ended." },
	  put_counters,
	  { SRC_MERGED, SRC_MERGED, SRC_EACH },
	  .value = estimated_ops,
	  .ops = true,
	  .fetch = true },
	{ { "ibscope_itlb_l1_miss_samples", METRIC_COUNTER, "",
	    "Samples of fetches that missed the L1 instruction TLB, by result in the L2; a miss "
	    "there is a page walk." },
	  put_tlb,
	  { SRC_HIDDEN, SRC_SUM, SRC_SUM },
	  .tlb = tlb_samples,
	  .fetch = true },
	{ { "ibscope_itlb_l1_miss_estimated_fetches", METRIC_COUNTER, "",
	    "Estimated fetches that missed the L1 instruction TLB, by result in the L2." },
	  put_tlb,
	  { SRC_SUM, SRC_SUM, SRC_SUM },
	  .tlb = tlb_ops,
	  .fetch = true },
};

const unsigned int group_metrics = 1 + sizeof(table) / sizeof(table[0]);

const struct group_metric *group_metric_at(const struct metrics *m, unsigned int event,
					   unsigned int i)
{
	const struct group_metric *row =
		i ? &table[i - 1] : &latency[reading_metric(&m->facts.reading[event].meta)];

	if (row->fetch != m->groups[event].fetch)
		return NULL;
	return row->form[m->opts.detail] == SRC_HIDDEN ? NULL : row;
}

const struct metric_head *group_metric_head(const struct group_metric *row)
{
	return &row->head;
}

void group_metric_put(struct metrics_buf *b, const struct metrics *m,
		      const struct group_metric *row, enum metrics_format format,
		      const struct metrics_group *g)
{
	row->put(b, m, row, format, g);
}

bool group_metric_of_histograms(const struct group_metric *row)
{
	return row->put == put_latencies;
}

void group_metrics_describe(FILE *f)
{
	for (int i = 0; i < IBS_METRIC_N; i++)
		metric_describe(f, &latency[i].head);
	for (unsigned int i = 0; i + 1 < group_metrics; i++)
		metric_describe(f, &table[i].head);
}
