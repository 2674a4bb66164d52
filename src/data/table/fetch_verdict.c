// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"
#include "base/std.h"

#include <ibscope/fetch.h>

static bool walked_4k(const struct series *s)
{
	return (unsigned int)s->op == IBS_FETCH_ITLB_WALK_4K;
}

static bool missed_l3(const struct series *s)
{
	return (unsigned int)s->src == IBS_FETCH_CLASS_L3_MISS;
}

static const struct {
	bool (*is)(const struct series *s);
	const char *what, *remedy;
} verdicts[] = {
	{ walked_4k, "fetches that walked page tables of 4 KiB pages",
	  "huge pages for its code may help (transparent ones of files, or BOLT --hugify)" },
	{ missed_l3, "fetches that missed the L3 cache",
	  "a denser layout of its code may help (BOLT, Propeller)" },
};

/* Select a group's series of a kind. *out borrows their buckets; the caller frees its array. */
static void pick(const struct group *g, bool (*is)(const struct series *s), struct group *out)
{
	*out = *g;
	out->n_series = 0;
	out->series = xcalloc(g->n_series, sizeof(*out->series));
	for (size_t k = 0; k < g->n_series; k++)
		if (is(&g->series[k]))
			out->series[out->n_series++] = g->series[k];
}

static void print_one(FILE *f, const struct screen *screen, const struct snapshot *s,
		      enum ibs_metric metric, unsigned int v, __u64 all, cgroup_namer name,
		      void *arg)
{
	struct snapshot part = *s;
	char share[32], of_it[32];
	struct table t;

	part.groups = xcalloc(s->n_groups, sizeof(*part.groups));
	for (size_t i = 0; i < s->n_groups; i++)
		pick(&s->groups[i], verdicts[v].is, &part.groups[i]);
	table_build(&part, metric, TABLE_LABELS, TABLE_CYCLES, 0, name, arg, &t);
	if (t.n && t.total.all.valid >= VERDICT_SAMPLES && t.total.all.sum >= VERDICT_SHARE * all) {
		screen_percent(screen, (double)t.total.all.sum / all, share, sizeof(share));
		screen_percent(screen, (double)t.row[0].all.sum / t.total.all.sum, of_it,
			       sizeof(of_it));
		fprintf(f, "%s of the fetch latency is that of %s, %s of that in %s: %s\n", share,
			verdicts[v].what, of_it, t.row[0].name[0], verdicts[v].remedy);
	}
	table_free(&t);
	for (size_t i = 0; i < s->n_groups; i++)
		free(part.groups[i].series);
	free(part.groups);
}

void fetch_verdict(FILE *f, const struct screen *screen, const struct snapshot *s,
		   enum ibs_metric metric, cgroup_namer name, void *arg)
{
	__u64 all = 0;

	if (metric != IBS_METRIC_FETCH_LAT)
		return;
	for (size_t i = 0; i < s->n_groups; i++)
		for (size_t k = 0; k < s->groups[i].n_series; k++)
			all += s->groups[i].series[k].sum;
	for (unsigned int v = 0; v < ARRAY_SIZE(verdicts); v++)
		print_one(f, screen, s, metric, v, all, name, arg);
}
