// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "base/std.h"

#include "base/utf8.h"

#include <ibscope/fetch.h>

static void free_group(struct metrics_group *g)
{
	if (!g)
		return;
	for (int s = 0; s < IBS_SRC_N; s++)
		free(g->src[s].buckets);
	free(g->labels);
	free(g->json);
	free(g);
}

/* A writer of a group's labels, in both forms. */
struct label_writer {
	FILE *text, *json;
	bool any;
};

/* To Prometheus, an empty label equals no label. */
static void put_label(struct label_writer *w, const char *name, const char *value)
{
	fprintf(w->json, "%s\"%s\":", w->any ? "," : "", name);
	utf8_put_json(w->json, value);
	w->any = true;
	if (!*value)
		return;
	metric_write_label(w->text, "", name, value);
	fputc(',', w->text);
}

static void put_number_label(struct label_writer *w, const char *name, __u32 value, bool other)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	put_label(w, name, other ? "other" : text);
}

/* Write the members of the group's key in --by, named as in --by. */
static void put_labels(struct label_writer *w, const struct metrics_groups *all,
		       const struct ibs_group_key *key, const struct ibs_slot_name *name,
		       bool other)
{
	char comm[sizeof(key->comm) + 1];
	const __u32 by = all->by;

	if (by & IBS_BY_CGROUP) {
		put_label(w, "namespace", name->name_space);
		put_label(w, "pod", name->pod);
		put_label(w, "container", name->container);
		put_label(w, "runtime", name->show_runtime ? name->runtime : "");
		put_label(w, "cgroup",
			  ibs_slot_name_has_path(name, all->by_path) ? name->cgroup : "");
	}
	if (by & IBS_BY_PID)
		put_number_label(w, "pid", key->tgid, other);
	if (by & IBS_BY_TID)
		put_number_label(w, "tid", key->tid, other);
	snprintf(comm, sizeof(comm), "%.*s", (int)sizeof(key->comm), key->comm);
	if (by & IBS_BY_COMM)
		put_label(w, "comm", other ? "other" : comm);
	if (by & IBS_BY_CPU)
		put_number_label(w, "cpu", key->cpu, other);
	if (by & IBS_BY_COMPLEX)
		put_number_label(w, "ccx", key->complex, other);
	if (by & IBS_BY_NODE)
		put_number_label(w, "node", key->node, other);
	if (by & IBS_BY_MEM_NODE && !key->mem_node)
		put_label(w, "mem_node", other ? "other" : "unknown");
	else if (by & IBS_BY_MEM_NODE)
		put_number_label(w, "mem_node", key->mem_node - 1, other);
	if (by & IBS_BY_MODE)
		put_label(w, "mode", other ? "other" : mode_name(key->mode));
}

static void set_labels(struct metrics_group *g, const struct metrics_groups *all,
		       const struct ibs_group_key *key, const struct ibs_slot_name *name,
		       bool other)
{
	size_t text_len, json_len;
	struct label_writer w = { .text = xmemopen(&g->labels, &text_len),
				  .json = xmemopen(&g->json, &json_len) };

	put_labels(&w, all, key, name, other);
	xmemclose(w.text);
	xmemclose(w.json);
}

/* Find or create the group with the labels of @key. */
static struct metrics_group *get_group(struct metrics_groups *all, const struct ibs_group_key *key,
				       const struct ibs_slot_name *name, bool other)
{
	struct metrics_group *g = xcalloc(1, sizeof(*g));
	__u64 hash;
	__u32 n;

	set_labels(g, all, key, name, other);
	hash = text_hash(g->labels);
	u64_map_for_each(n, &all->by_labels, hash)
	{
		if (!strcmp(all->group[n]->labels, g->labels)) {
			free_group(g);
			return all->group[n];
		}
	}
	array_reserve(all->group, all->room, all->n + 1);
	u64_map_add(&all->by_labels, hash, all->n);
	all->group[all->n++] = g;
	all->bytes += sizeof(*g) + 3 * strlen(g->labels);
	return g;
}

static struct metrics_group *get_other(struct metrics_groups *all)
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

static void add_counts(struct metrics_groups *all, struct metrics_group *to, const struct group *g)
{
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		const bool had = to->src[s->src].buckets;

		to->count[s->op][s->src] += s->samples;
		to->ops[s->op][s->src] += s->ops;
		to->timed[s->src] += s->valid ? s->ops : 0;
		to->samples += s->samples;
		if (all->fetch)
			add_itlb(&to->tlb, s);
		series_add(&to->src[s->src], s);
		if (!had && s->buckets)
			all->bytes += IBS_LAT_BUCKETS * sizeof(*s->buckets);
	}
	tlb_add(&to->tlb, &g->tlb);
}

void metrics_groups_add(struct metrics_groups *all, const struct group *g,
			const struct ibs_slot_name *name, bool other)
{
	for (size_t i = 0; i < g->n_series && g->ended; i++)
		all->ended += g->series[i].samples;
	if (!g->ended)
		add_counts(all, other ? get_other(all) : get_group(all, &g->key, name, false), g);
}

void metrics_groups_free(struct metrics_groups *all)
{
	for (size_t i = 0; i < all->n; i++)
		free_group(all->group[i]);
	free(all->group);
	u64_map_free(&all->by_labels);
	*all = (struct metrics_groups){ .by = all->by,
					.by_path = all->by_path,
					.fetch = all->fetch };
}
