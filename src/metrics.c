// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics.h"

#include "metrics_collector.h"
#include "metrics_groups.h"
#include "metrics_out.h"
#include "utf8.h"
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READ_TRIES 3

/* The histogram's name and help, by what is histogrammed. */
static const struct metric latency_of[IBS_METRIC_N] = {
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

static const struct metric samples_metric = {
	"ibscope_samples", METRIC_COUNTER, "",
	"Samples added to histograms, by kind of op and data source."
};

static const unsigned int default_edges[] = { 32,  64,	128,  192,  256,  384, 512,
					      640, 768, 1024, 1536, 2048, 4096 };

/* What a text has one after the other. */
enum section { HEAD, LATENCY, MIDDLE, SAMPLES, TAIL, END };

struct text {
	char *s;
	size_t len;
};

struct metrics {
	unsigned int edges[METRICS_EDGES_MAX];
	size_t n_edges;
	const char *latency; /* name of the histogram */
	struct metrics_groups groups;
	struct text head[METRICS_FORMATS], middle[METRICS_FORMATS], tail[METRICS_FORMATS];
};

/* --- reading --- */

struct reading {
	const struct metrics_source *src;
	const struct metrics_opts *opts;
	struct metrics_groups *groups;
	size_t n;
};

static int take_group(void *arg, struct group *g)
{
	struct reading *r = arg;
	bool other = g->other || (r->opts->max_groups && g->slot > r->opts->max_groups);
	struct ibs_slot_name name;

	r->n += !g->other;
	memset(&name, 0, sizeof(name));
	if (!other) {
		r->src->name(r->src->arg, g, &name);
		if (!*name.cgroup && g->key.cgroup_id)
			snprintf(name.cgroup, sizeof(name.cgroup), "#%llu", g->key.cgroup_id);
	}
	return metrics_groups_add(r->groups, g, &name, other);
}

static int compare_samples(const void *pa, const void *pb)
{
	const struct metrics_group *a = *(struct metrics_group **)pa, *b = *(void **)pb;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

static int write_text(struct text *t, FILE **f)
{
	*f = open_memstream(&t->s, &t->len);
	return *f ? 0 : -ENOMEM;
}

static int write_prometheus(struct metrics *m, enum metrics_format format,
			    const struct metrics_collector *c, const struct metrics_self *self)
{
	int failed = 0;
	FILE *f;

	if (c) {
		if (write_text(&m->head[format], &f))
			return -ENOMEM;
		metric_head(f, format, &latency_of[metrics_histogrammed(c->meta)]);
		failed |= fclose(f);
		if (write_text(&m->middle[format], &f))
			return -ENOMEM;
		metric_head(f, format, &samples_metric);
		failed |= fclose(f);
	}
	if (write_text(&m->tail[format], &f))
		return -ENOMEM;
	if (c)
		metrics_collector_print(f, format, c);
	else
		metrics_collector_print_none(f, format);
	metrics_self_print(f, format, self);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", f);
	failed |= fclose(f);
	return failed ? -ENOMEM : 0;
}

static int write_json(struct metrics *m, const struct metrics_collector *c, const char *why)
{
	FILE *f;
	int failed;

	if (write_text(&m->head[METRICS_JSON], &f))
		return -ENOMEM;
	fprintf(f, "{\"collector\":%s", c ? "true" : "false");
	if (why) {
		fprintf(f, ",\"why\":");
		utf8_put_json(f, why);
	}
	if (c)
		metrics_collector_json(f, c);
	fprintf(f, ",\"containers\":[");
	failed = fclose(f);
	if (write_text(&m->tail[METRICS_JSON], &f))
		return -ENOMEM;
	fprintf(f, "\n]}\n");
	return failed | fclose(f) ? -ENOMEM : 0;
}

static int write_texts(struct metrics *m, const struct metrics_collector *c,
		       const struct metrics_self *self, const char *why)
{
	return write_prometheus(m, METRICS_TEXT, c, self)
		       ?: write_prometheus(m, METRICS_OPENMETRICS, c, self)
		       ?: write_json(m, c, why);
}

int metrics_read(const struct metrics_source *src, const struct metrics_opts *opts,
		 const struct metrics_self *self, struct metrics **out, struct err *err)
{
	const size_t n_default = sizeof(default_edges) / sizeof(default_edges[0]);
	struct metrics_collector c = { .meta = src->meta, .status = src->status };
	struct metrics *m = calloc(1, sizeof(*m));
	struct metrics_self now = *self;
	struct reading r;
	int ret = -EUCLEAN;

	now.read_s = now_s();
	if (!m)
		return err_set(err, -ENOMEM, "out of memory");
	r = (struct reading){ .src = src, .opts = opts, .groups = &m->groups };
	m->n_edges = opts->n_edges ? opts->n_edges : n_default;
	memcpy(m->edges, opts->n_edges ? opts->edges : default_edges,
	       m->n_edges * sizeof(m->edges[0]));
	m->latency = latency_of[metrics_histogrammed(src->meta)].name;
	/* a group that is made or folded while it is read may spoil one reading */
	for (int tries = 0; ret == -EUCLEAN && tries < READ_TRIES; tries++) {
		metrics_groups_free(&m->groups);
		r.n = 0;
		ret = counts_each(src->counts, take_group, &r, &c.ledger, err);
	}
	c.groups = r.n;
	now.read_s = now_s() - now.read_s;
	if (!ret && m->groups.n)
		qsort(m->groups.group, m->groups.n, sizeof(struct metrics_group *),
		      compare_samples);
	ret = ret ?: write_texts(m, &c, &now, NULL);
	if (ret) {
		metrics_free(m);
		return ret == -ENOMEM ? err_set(err, ret, "out of memory") : ret;
	}
	*out = m;
	return 0;
}

static void name_pinned(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	pinned_name(arg, g, out);
}

int metrics_read_pinned(const struct pinned *p, const struct metrics_opts *opts,
			const struct metrics_self *self, struct metrics **out, struct err *err)
{
	struct metrics_source src = {
		.counts = pinned_counts(p), .meta = pinned_meta(p), .name = name_pinned, .arg = p
	};

	/* first: what arrives meanwhile is then seen rather than unseen */
	pinned_status(p, &src.status);
	return metrics_read(&src, opts, self, out, err);
}

int metrics_read_none(const char *why, const struct metrics_self *self, struct metrics **out)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m || write_texts(m, NULL, self, why)) {
		metrics_free(m);
		return -ENOMEM;
	}
	*out = m;
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (int f = 0; f < METRICS_FORMATS; f++) {
		free(m->head[f].s);
		free(m->middle[f].s);
		free(m->tail[f].s);
	}
	metrics_groups_free(&m->groups);
	free(m);
}

size_t metrics_bytes(const struct metrics *m)
{
	size_t bytes = sizeof(*m) + m->groups.bytes;

	for (int f = 0; f < METRICS_FORMATS; f++)
		bytes += m->head[f].len + m->middle[f].len + m->tail[f].len;
	return bytes;
}

/* --- writing --- */

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

/* The samples at or below each edge. */
static void fold(const struct metrics *m, const struct packed_hist *h, __u64 *below)
{
	__u64 buckets[IBS_LAT_BUCKETS] = {}, sum = 0;
	size_t edge = 0;

	packed_get(h, buckets);
	for (int b = 0; b < IBS_LAT_BUCKETS && edge < m->n_edges; b++) {
		sum += buckets[b];
		while (edge < m->n_edges && ibs_lat_le(b) >= m->edges[edge])
			below[edge++] = sum;
	}
}

static char *put_series(char *to, const char *name, const char *suffix,
			const struct metrics_group *g)
{
	to = put_text(put_text(to, name), suffix);
	*to++ = '{';
	return put(to, g->labels, g->labels_len);
}

/* Line number @line of a histogram: its edges, +Inf, sum and count. */
static char *put_latency(char *to, const struct metrics *m, enum metrics_format format,
			 const struct metrics_cursor *c)
{
	const struct metrics_group *g = m->groups.group[c->group];
	const struct packed_hist *h = &g->hist[c->src];
	__u64 value = h->valid;

	if (c->line == m->n_edges + 1)
		value = h->sum;
	to = put_series(to, m->latency,
			c->line <= m->n_edges	    ? "_bucket"
			: c->line == m->n_edges + 1 ? "_sum"
						    : "_count",
			g);
	to = put_text(put_text(to, "data_src=\""), src_name(c->src));
	if (c->line < m->n_edges) {
		value = c->below[c->line];
		to = put_number(put_text(to, "\",le=\""), m->edges[c->line]);
		if (format == METRICS_OPENMETRICS) /* which wants a float's spelling */
			to = put_text(to, ".0");
	} else if (c->line == m->n_edges) {
		to = put_text(to, "\",le=\"+Inf");
	}
	to = put_number(put_text(to, "\"} "), value);
	*to++ = '\n';
	return to;
}

static char *put_samples(char *to, const struct metrics_group *g, unsigned int op, unsigned int src)
{
	to = put_series(to, samples_metric.name, "_total", g);
	to = put_text(put_text(to, "op=\""), op_kind_name(op));
	to = put_text(put_text(to, "\",data_src=\""), src_name(src));
	to = put_number(put_text(to, "\"} "), g->count[op][src]);
	*to++ = '\n';
	return to;
}

static char *put_json_percentile(char *to, const char *name, const struct series *s, double q)
{
	long p = series_percentile(s, q);

	to = put_text(to, name);
	return p < 0 ? put_text(to, "null") : put_number(to, p);
}

static char *put_json_source(char *to, const struct metrics_group *g, unsigned int src, bool first)
{
	__u64 buckets[IBS_LAT_BUCKETS] = {}, samples = 0;
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
		to = put_text(put_text(put_text(to, sep), "\""), op_kind_name(op));
		to = put_number(put_text(to, "\":"), g->count[op][src]);
		sep = ",";
	}
	to = put_number(put_text(to, "},\"samples\":"), samples);
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

/* Write the next line or the like; false: the section is done. */
static bool latency_step(const struct metrics *m, enum metrics_format format,
			 struct metrics_cursor *c, char **to)
{
	if (!next_latency(m, c))
		return false;
	if (!c->line)
		fold(m, &m->groups.group[c->group]->hist[c->src], c->below);
	*to = put_latency(*to, m, format, c);
	if (++c->line == m->n_edges + 3) {
		c->line = 0;
		c->src++;
	}
	return true;
}

static bool samples_step(const struct metrics *m, struct metrics_cursor *c, char **to)
{
	for (; c->group < m->groups.n; c->group++, c->src = 0) {
		const struct metrics_group *g = m->groups.group[c->group];

		while (c->src < IBS_OP_KIND_N * IBS_SRC_N) {
			unsigned int op = c->src / IBS_SRC_N, src = c->src % IBS_SRC_N;

			c->src++;
			if (!g->count[op][src])
				continue;
			*to = put_samples(*to, g, op, src);
			return true;
		}
	}
	return false;
}

static bool json_step(const struct metrics *m, struct metrics_cursor *c, char **to)
{
	const struct metrics_group *g;

	if (c->group == m->groups.n)
		return false;
	g = m->groups.group[c->group];
	if (!c->line) {
		*to = put_text(*to, c->group ? ",\n{" : "\n{");
		*to = put_text(put_text(*to, g->json), ",\"sources\":{");
		c->line = 1;
		return true;
	}
	for (; c->src < IBS_SRC_N; c->src++) {
		if (!has_source(g, c->src))
			continue;
		*to = put_json_source(*to, g, c->src++, c->line == 1);
		c->line = 2;
		return true;
	}
	*to = put_text(*to, "}}");
	c->group++;
	c->src = c->line = 0;
	return true;
}

static bool text_step(const struct text *t, struct metrics_cursor *c, char **to)
{
	size_t n = t->len - c->at;

	if (n > METRICS_ROOM / 2)
		n = METRICS_ROOM / 2;
	if (!n)
		return false;
	*to = put(*to, t->s + c->at, n);
	c->at += n;
	return true;
}

static bool step(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		 char **to)
{
	switch (c->section) {
	case HEAD:
		return text_step(&m->head[format], c, to);
	case LATENCY:
		return format == METRICS_JSON ? json_step(m, c, to)
					      : latency_step(m, format, c, to);
	case MIDDLE:
		return text_step(&m->middle[format], c, to);
	case SAMPLES:
		return format != METRICS_JSON && samples_step(m, c, to);
	default:
		return text_step(&m->tail[format], c, to);
	}
}

size_t metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		    char *buf, size_t size)
{
	char *to = buf;

	while (c->section != END && (size_t)(to - buf) + METRICS_ROOM <= size)
		if (!step(m, format, c, &to))
			*c = (struct metrics_cursor){ .section = c->section + 1 };
	return to - buf;
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
	for (int m = 0; m < IBS_METRIC_N; m++)
		metric_describe(f, &latency_of[m]);
	metric_describe(f, &samples_metric);
	metrics_collector_list(f);
	metrics_self_list(f);
}
