// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics.h"

#include "metrics_collector.h"
#include "metrics_text.h"
#include "metrics_out.h"
#include "utf8.h"
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READ_TRIES 3

static const unsigned int default_edges[] = { 32,  64,	128,  192,  256,  384, 512,
					      640, 768, 1024, 1536, 2048, 4096 };

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

static FILE *open_text(struct metrics_part *p)
{
	return open_memstream(&p->s, &p->len);
}

static int write_head(struct metrics_part *p, enum metrics_format format,
		      const struct metric *metric)
{
	FILE *f = open_text(p);

	if (!f)
		return -ENOMEM;
	metric_head(f, format, metric);
	return fclose(f) ? -ENOMEM : 0;
}

static int write_prometheus(struct metrics *m, enum metrics_format format,
			    const struct metrics_collector *c, const struct metrics_self *self)
{
	FILE *f;
	int ret = 0;

	for (int s = 0; c && !ret && s < METRICS_TAIL; s++)
		ret = write_head(&m->head[s][format], format, metrics_of_section(m, s));
	if (ret)
		return ret;
	f = open_text(&m->head[METRICS_TAIL][format]);
	if (!f)
		return -ENOMEM;
	if (c)
		metrics_collector_print(f, format, c);
	else
		metrics_collector_print_none(f, format);
	metrics_self_print(f, format, self);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", f);
	return fclose(f) ? -ENOMEM : 0;
}

static int write_json(struct metrics *m, const struct metrics_collector *c, const char *why)
{
	FILE *f = open_text(&m->head[0][METRICS_JSON]);
	int failed;

	if (!f)
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
	f = open_text(&m->head[METRICS_TAIL][METRICS_JSON]);
	if (failed || !f)
		return -ENOMEM;
	fprintf(f, "\n]}\n");
	return fclose(f) ? -ENOMEM : 0;
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
	m->groups.edges = (struct metrics_edges){ .le = m->edges, .n = m->n_edges };
	m->latency = &metrics_latency[metrics_histogrammed(src->meta)];
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
	struct ibs_meta meta;
	struct metrics_source src = {
		.counts = pinned_counts(p), .meta = &meta, .name = name_pinned, .arg = p
	};

	/* first: what arrives meanwhile is then seen rather than unseen */
	pinned_meta(p, &meta);
	src.status = meta.status;
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
	for (int s = 0; s < METRICS_SECTIONS; s++)
		for (int f = 0; f < METRICS_FORMATS; f++)
			free(m->head[s][f].s);
	metrics_groups_free(&m->groups);
	free(m);
}

size_t metrics_bytes(const struct metrics *m)
{
	size_t bytes = sizeof(*m) + m->groups.bytes;

	for (int s = 0; s < METRICS_SECTIONS; s++)
		for (int f = 0; f < METRICS_FORMATS; f++)
			bytes += m->head[s][f].len;
	return bytes;
}

void metrics_list(FILE *f)
{
	for (int m = 0; m < IBS_METRIC_N; m++)
		metric_describe(f, &metrics_latency[m]);
	for (int s = METRICS_LATENCY + 1; s < METRICS_TAIL; s++)
		metric_describe(f, metrics_of_section(NULL, s));
	metrics_collector_list(f);
	metrics_self_list(f);
}
