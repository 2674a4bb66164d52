// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/choice.h"
#include "base/std.h"
#include "base/clock.h"

#include <ibscope/maps.h>

#define READ_TRIES 3

/* Fewer edges for fewer series. */
static const struct metrics_opts default_edges[METRICS_DETAILS] = {
	[METRICS_LOW] = { .edges = { 64, 128, 256, 384, 512, 1024, 2048 }, .n_edges = 7 },
	[METRICS_MEDIUM... METRICS_FULL] = { .edges = { 32, 64, 128, 192, 256, 384, 512, 640, 768,
							1024, 1536, 2048, 4096 },
					     .n_edges = 13 },
};

/* One pass over the counters. */
struct pass {
	const struct metrics_source *src;
	struct metrics_groups *groups;
	size_t n; /* groups with counters of their own */
};

static int take_group(void *arg, struct group *g)
{
	struct pass *p = arg;
	bool other = g->other;
	struct ibs_slot_name name;

	p->n += !g->other;
	memset(&name, 0, sizeof(name));
	if (!other && p->groups->by & IBS_BY_CGROUP) {
		p->src->name(p->src->arg, g, &name);
		if (!(p->src->meta->status.flight_on & IBS_FLIGHT_SLOWEST))
			memset(name.slowest, 0, sizeof(name.slowest));
		if (!*name.cgroup && g->key.cgroup_id)
			snprintf(name.cgroup, sizeof(name.cgroup), "#%llu", g->key.cgroup_id);
		/* beyond the limits of the collector's cgroup tree */
		other = !strcmp(name.cgroup, "other");
	}
	metrics_groups_add(p->groups, g, &name, other);
	return p->groups->coarse || p->groups->bytes <= METRICS_FINE_MAX ? 0 : -E2BIG;
}

static int compare_samples(const void *pa, const void *pb)
{
	const struct metrics_packed *a = pa, *b = pb;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

static int read_counts(struct metrics *m, const struct metrics_source *src, struct err *err)
{
	const unsigned int event = m->facts.n_events++;
	struct reading *reading = &m->facts.reading[event];
	struct metrics_groups *groups = &m->groups[event];
	struct pass p = { .src = src, .groups = groups };
	struct ledger counted = {};
	int ret = -EUCLEAN;

	reading_begin(reading, src->meta);
	groups->by = src->meta->layout.by;
	groups->by_path = src->meta->by_path;
	groups->fetch = ibs_metric_of_fetch(src->meta->layout.metric);
	groups->coarse = m->facts.self.coarse ? &m->opts : NULL;
	groups->sum = xcalloc(1, sizeof(*groups->sum));
	/* a group that is created or folded meanwhile can invalidate a reading */
	for (int tries = 0; ret == -EUCLEAN && tries < READ_TRIES; tries++) {
		metrics_groups_free(groups);
		memset(groups->sum, 0, sizeof(*groups->sum));
		p.n = 0;
		ret = counts_each(src->counts, take_group, &p, &counted, err);
	}
	metrics_pack(groups, &groups->whole, groups->sum);
	free(groups->sum);
	groups->sum = NULL;
	reading_finish(reading, src->counts, &counted, p.n);
	m->facts.ended[event] = groups->ended;
	if (groups->n)
		qsort(groups->group, groups->n, sizeof(*groups->group), compare_samples);
	return ret;
}

/* @src: @n of them, one of each event */
static int read_once(const struct metrics_source *src, unsigned int n,
		     const struct metrics_opts *opts, const struct metrics_self *self,
		     struct metrics **out, struct err *err)
{
	struct metrics *m = xcalloc(1, sizeof(*m));
	double begin = now_s();
	int ret = 0;

	m->opts = opts->n_edges ? *opts : default_edges[opts->detail];
	m->opts.detail = opts->detail;
	m->facts.self = *self;
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = read_counts(m, &src[i], err);
	m->facts.self.read_s = now_s() - begin;
	process_stats_read(&m->facts.process);
	if (ret) {
		metrics_free(m);
		return ret;
	}
	*out = m;
	return 0;
}

/* Coarse for good: buckets that come and go would look like counters that start again. */
static int read_all(const struct metrics_source *src, unsigned int n,
		    const struct metrics_opts *opts, struct metrics_self *self,
		    struct metrics **out, struct err *err)
{
	int ret = read_once(src, n, opts, self, out, err);

	if (ret != -E2BIG || self->coarse)
		return ret;
	self->coarse = true;
	return read_once(src, n, opts, self, out, err);
}

int metrics_read(const struct metrics_source *src, const struct metrics_opts *opts,
		 struct metrics_self *self, struct metrics **out, struct err *err)
{
	return read_all(src, 1, opts, self, out, err);
}

static void name_pinned(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	pinned_name(arg, g, out);
}

int metrics_read_pinned(const struct pinned *p, const struct metrics_opts *opts,
			struct metrics_self *self, struct metrics **out, struct err *err)
{
	struct ibs_meta meta[METRICS_EVENTS];
	struct metrics_source src[METRICS_EVENTS];
	const struct pinned *first = p;
	unsigned int n = 0;
	int ret;

	for (; p && n < METRICS_EVENTS; p = pinned_second(p), n++) {
		pinned_meta(p, &meta[n]);
		src[n] = (struct metrics_source){
			.counts = pinned_counts(p), .meta = &meta[n], .name = name_pinned, .arg = p
		};
	}
	ret = read_all(src, n, opts, self, out, err);
	if (!ret)
		reading_pinned_neighbours(&(*out)->facts.reading[0], first);
	return ret;
}

struct metrics *metrics_read_nothing(enum metrics_state state, const char *why,
				     const struct metrics_self *self)
{
	struct metrics *m = xcalloc(1, sizeof(*m));

	m->facts.state = state;
	m->facts.self = *self;
	process_stats_read(&m->facts.process);
	m->why = xstrdup(why);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (unsigned int i = 0; i < m->facts.n_events; i++)
		metrics_groups_free(&m->groups[i]);
	free(m->why);
	free(m);
}

CHOICE_NAMES(metrics_detail_name, unsigned int, METRICS_DETAIL_TABLE)

size_t metrics_bytes(const struct metrics *m)
{
	size_t bytes = sizeof(*m);

	for (unsigned int i = 0; i < m->facts.n_events; i++)
		bytes += m->groups[i].bytes;
	return bytes;
}

int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err)
{
	size_t n = 0;

	for (const char *p = text;; p++) {
		char *end;
		unsigned long edge = strtoul(p, &end, 10);
		int b = 0;

		if (end == p || *p < '0' || *p > '9' || (*end && *end != ','))
			return err_set(err, -EINVAL, "column %td: expected a number of cycles",
				       p - text + 1);
		while (b < IBS_LAT_BUCKETS - 1 && ibs_lat_le(b) < edge)
			b++;
		if (ibs_lat_le(b) != edge)
			return err_set(err, -EINVAL,
				       "column %td: invalid edge %lu: the nearest edges are %u and "
				       "%u",
				       p - text + 1, edge, ibs_lat_le(b - 1), ibs_lat_le(b));
		if (n && edge <= opts->edges[n - 1])
			return err_set(err, -EINVAL, "column %td: edges must be in ascending order",
				       p - text + 1);
		if (n == METRICS_EDGES_MAX)
			return err_set(err, -EINVAL, "too many edges: at most %d",
				       METRICS_EDGES_MAX);
		opts->edges[n++] = edge;
		p = end;
		if (!*p)
			break;
	}
	opts->n_edges = n;
	return 0;
}
