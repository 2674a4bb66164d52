// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/std.h"

#include "rows/rows.h"

#include <ibscope/fetch.h>

/* A writer of a group's labels, in both forms. */
struct label_writer {
	FILE *text;
	struct json_writer json;
};

/* To Prometheus, an empty label equals no label. */
static void put_label(struct label_writer *w, const char *name, const char *value)
{
	json_put_text(&w->json, name, value);
	if (!*value)
		return;
	metric_write_label(w->text, "", name, value);
	fputc(',', w->text);
}

/* Write the members of the group's key in --by, named as in --by. */
static void put_labels(struct label_writer *w, const struct metrics_groups *all,
		       const struct ibs_group_key *key, const struct ibs_slot_name *name,
		       bool other)
{
	const struct group g = { .key = *key, .other = other };
	const unsigned int labels = labels_of_by(all->by);

	if (labels >> LABEL_CGROUP & 1) {
		put_label(w, "namespace", name->name_space);
		put_label(w, "pod", name->pod);
		put_label(w, "container", name->container);
		put_label(w, "runtime", name->show_runtime ? name->runtime : "");
		put_label(w, "cgroup",
			  ibs_slot_name_has_path(name, all->by_path) ? name->cgroup : "");
	}
	for (int l = LABEL_CGROUP + 1; l < LABEL_N; l++) {
		char *text = labels >> l & 1 ? group_label(&g, l, NULL, NULL) : NULL;

		if (text)
			put_label(w, label_name(l), text);
		free(text);
	}
}

static char *keep_text(struct metrics_groups *all, char *text, size_t len)
{
	char *kept = metrics_keep(all, len + 1);

	memcpy(kept, text, len + 1);
	free(text);
	return kept;
}

/* Find or create the group with the labels of @key. */
static struct metrics_packed *get_group(struct metrics_groups *all, const struct ibs_group_key *key,
					const struct ibs_slot_name *name, bool other)
{
	char *labels, *json;
	size_t labels_len, json_len;
	struct label_writer w = { .text = xmemopen(&labels, &labels_len),
				  .json.f = xmemopen(&json, &json_len) };
	__u32 n;

	put_labels(&w, all, key, name, other);
	xmemclose(w.text);
	xmemclose(w.json.f);
	u64_map_for_each(n, &all->by_labels, text_hash(labels))
	{
		if (!strcmp(all->group[n].labels, labels)) {
			free(labels);
			free(json);
			return &all->group[n];
		}
	}
	array_reserve(all->group, all->room, all->n + 1);
	u64_map_add(&all->by_labels, text_hash(labels), all->n);
	all->group[all->n] = (struct metrics_packed){
		.labels = keep_text(all, labels, labels_len),
		.json = keep_text(all, json, json_len),
	};
	return &all->group[all->n++];
}

static struct metrics_packed *get_other(struct metrics_groups *all)
{
	static const struct ibs_slot_name name = { .cgroup = "other", .container = "other" };
	static const struct ibs_group_key key;

	return get_group(all, &key, &name, true);
}

/* For fetches, derive from translations what the program counts for ops. */
static void add_itlb(struct tlb_counts *to, const struct series *s)
{
	const unsigned int itlb = s->op;

	if (itlb == IBS_FETCH_ITLB_L2) {
		to->l2_hit += s->samples;
		to->l2_hit_ops += s->ops;
	} else if (itlb >= IBS_FETCH_ITLB_WALK_4K) {
		to->l2_miss += s->samples;
		to->l2_miss_ops += s->ops;
	}
}

/* Each series lacks all samples of its group of which they are unknown. 0 if exposed cycles are not counted. */
static __u64 unexposed(const struct group *g)
{
	__u64 most = 0;

	for (size_t i = 0; g->has_exposed && i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		const __s64 lacks = s->valid - s->exposed_n;

		most = lacks > (__s64)most ? (__u64)lacks : most;
	}
	return most;
}

static void add_counts(struct metrics_group *sum, const struct group *g, bool fetch)
{
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];

		sum->count[s->op][s->src] += s->samples;
		sum->ops[s->op][s->src] += s->ops;
		sum->timed[s->src] += s->valid ? s->ops : 0;
		sum->samples += s->samples;
		if (fetch)
			add_itlb(&sum->tlb, s);
		if (s->buckets)
			metrics_buckets(sum, s->src);
		series_add(&sum->src[s->src], s);
	}
	sum->unexposed += fetch ? 0 : unexposed(g);
	tlb_add(&sum->tlb, &g->tlb);
}

static void merge_source(struct metrics_group *to, const struct metrics_group *g, int src)
{
	__u64 *buckets = g->src[src].buckets ? metrics_buckets(to, src) : NULL;
	struct series s = g->src[src];

	for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
		to->count[op][src] += g->count[op][src];
		to->ops[op][src] += g->ops[op][src];
	}
	to->timed[src] += g->timed[src];
	for (int i = 0; buckets && i < IBS_LAT_BUCKETS; i++)
		buckets[i] += s.buckets[i];
	s.buckets = NULL;
	series_add(&to->src[src], &s);
}

/* Several times faster than series by series. */
static void merge(struct metrics_group *to, const struct metrics_group *g)
{
	to->samples += g->samples;
	to->unexposed += g->unexposed;
	tlb_add(&to->tlb, &g->tlb);
	for (int src = 0; src < IBS_SRC_N; src++)
		if (g->src[src].samples)
			merge_source(to, g, src);
}

static void add_packed(struct metrics_groups *all, struct metrics_packed *to, const struct group *g)
{
	const bool first = !to->counts;
	struct metrics_group sum;

	metrics_unpack(all, to, true, &sum);
	add_counts(&sum, g, all->fetch);
	metrics_pack(all, to, &sum);
	if (all->sum && first)
		merge(all->sum, &sum);
	else if (all->sum)
		add_counts(all->sum, g, all->fetch);
}

/* Of cgroups with the same labels, the one with the slowest sample has all. */
static void keep_slowest(struct metrics_groups *all, struct metrics_packed *to,
			 const struct ibs_slot_name *name)
{
	struct ibs_exemplar first = {};

	if (to->slowest)
		memcpy(&first, to->slowest, sizeof(first));
	if (!name->slowest[0].time_ns || first.latency > name->slowest[0].latency)
		return;
	to->slowest = to->slowest ?: metrics_keep(all, sizeof(name->slowest));
	memcpy(to->slowest, name->slowest, sizeof(name->slowest));
}

void metrics_groups_add(struct metrics_groups *all, const struct group *g,
			const struct ibs_slot_name *name, bool other)
{
	struct metrics_packed *to;

	for (size_t i = 0; i < g->n_series && g->ended; i++)
		all->ended += g->series[i].samples;
	if (g->ended) {
		if (all->sum)
			add_counts(all->sum, g, all->fetch);
		return;
	}
	to = other ? get_other(all) : get_group(all, &g->key, name, false);
	if (!other)
		keep_slowest(all, to, name);
	add_packed(all, to, g);
}

void metrics_groups_free(struct metrics_groups *all)
{
	metrics_blocks_free(all);
	free(all->group);
	u64_map_free(&all->by_labels);
	*all = (struct metrics_groups){
		.by = all->by,
		.by_path = all->by_path,
		.coarse = all->coarse,
		.fetch = all->fetch,
		.sum = all->sum,
	};
}
