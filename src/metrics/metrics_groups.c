// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_groups.h"

#include "metrics_out.h"
#include "base/array.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A bucket is stored as its number and its count, seven bits per byte, lowest first. */
#define COUNT_BYTES 10

static size_t put_count(__u8 *to, __u64 v)
{
	size_t n = 0;

	for (; v >= 128; v >>= 7)
		to[n++] = v | 128;
	to[n++] = v;
	return n;
}

void packed_get(const struct packed_hist *h, __u64 *buckets)
{
	unsigned int bucket;
	size_t at = 0;
	__u64 n;

	while (packed_next(h, &at, &bucket, &n))
		buckets[bucket] += n;
}

static void fold(const struct metrics_edges *edges, const __u64 *buckets, __u64 *below)
{
	__u64 sum = 0;
	size_t edge = 0;

	for (int b = 0; b < IBS_LAT_BUCKETS && edge < edges->n; b++) {
		sum += buckets[b];
		while (edge < edges->n && ibs_lat_le(b) >= edges->le[edge])
			below[edge++] = sum;
	}
}

int packed_add(struct packed_hist *h, const struct metrics_edges *edges, const __u64 *buckets,
	       __u64 sum)
{
	__u8 packed[IBS_LAT_BUCKETS * (1 + COUNT_BYTES)];
	const size_t below_bytes = edges->n * sizeof(*h->below);
	__u64 all[IBS_LAT_BUCKETS], *below;
	size_t n = 0;

	memcpy(all, buckets, sizeof(all));
	packed_get(h, all);
	h->valid = 0;
	for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
		if (!all[b])
			continue;
		h->valid += all[b];
		packed[n++] = b;
		n += put_count(packed + n, all[b]);
	}
	h->sum += sum;
	if (!n)
		return 0;
	below = realloc(h->below, below_bytes + n);
	if (!below)
		return -ENOMEM;
	h->below = below;
	h->bytes = (__u8 *)below + below_bytes;
	h->n = n;
	memcpy(h->bytes, packed, n);
	fold(edges, all, below);
	return 0;
}

static void free_counts(struct metrics_group *g)
{
	for (int s = 0; s < IBS_SRC_N; s++)
		free(g->hist[s].below);
	memset(g->hist, 0, sizeof(g->hist));
	memset(g->count, 0, sizeof(g->count));
	memset(g->ops, 0, sizeof(g->ops));
	memset(&g->tlb, 0, sizeof(g->tlb));
	g->samples = 0;
}

static void free_group(struct metrics_group *g)
{
	if (!g)
		return;
	free_counts(g);
	free(g->labels);
	free(g->json);
	free(g);
}

/* A group's labels while they are written, in both forms. */
struct label_writer {
	FILE *text, *json;
	bool any;
};

/* An empty label is the same as no label to Prometheus. */
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

/* The members of the group's key that --by asks for, each named as --by names it. */
static void put_labels(struct label_writer *w, __u32 by, const struct ibs_group_key *key,
		       const struct ibs_slot_name *name, bool other)
{
	char comm[sizeof(key->comm) + 1];

	if (by & IBS_BY_CGROUP) {
		put_label(w, "namespace", name->name_space);
		put_label(w, "pod", name->pod);
		put_label(w, "container", name->container);
		put_label(w, "cgroup", name->cgroup);
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
	if (by & IBS_BY_MODE)
		put_label(w, "mode", other ? "other" : mode_name(key->mode));
}

static int set_labels(struct metrics_group *g, __u32 by, const struct ibs_group_key *key,
		      const struct ibs_slot_name *name, bool other)
{
	size_t json_len;
	struct label_writer w = { .text = open_memstream(&g->labels, &g->labels_len),
				  .json = open_memstream(&g->json, &json_len) };
	bool failed = !w.text || !w.json;

	if (!failed)
		put_labels(&w, by, key, name, other);
	/* closing a stream reports that it ran out of memory */
	if (w.text && fclose(w.text))
		failed = true;
	if (w.json && fclose(w.json))
		failed = true;
	return failed ? -ENOMEM : 0;
}

/* The group with the labels of @key, new if there is none yet; NULL: out of memory. */
static struct metrics_group *get_group(struct metrics_groups *all, const struct ibs_group_key *key,
				       const struct ibs_slot_name *name, bool other)
{
	struct metrics_group *g = calloc(1, sizeof(*g));
	__u64 hash;
	__u32 n;

	if (!g || set_labels(g, all->by, key, name, other))
		goto fail;
	hash = text_hash(g->labels);
	u64_map_for_each(n, &all->by_labels, hash)
	{
		if (!strcmp(all->group[n]->labels, g->labels)) {
			free_group(g);
			return all->group[n];
		}
	}
	if (array_reserve(all->group, all->room, all->n + 1) ||
	    u64_map_add(&all->by_labels, hash, all->n))
		goto fail;
	g->cgroup_id = key->cgroup_id;
	all->group[all->n++] = g;
	all->bytes += sizeof(*g) + 3 * g->labels_len;
	return g;
fail:
	free_group(g);
	return NULL;
}

static struct metrics_group *get_other(struct metrics_groups *all)
{
	static const struct ibs_slot_name name = { .cgroup = "other", .container = "other" };
	static const struct ibs_group_key key;

	return get_group(all, &key, &name, true);
}

static int move_counts(const struct metrics_edges *edges, struct metrics_group *to,
		       struct metrics_group *from)
{
	for (int s = 0; s < IBS_SRC_N; s++) {
		__u64 buckets[IBS_LAT_BUCKETS] = {};

		for (int op = 0; op < IBS_OP_KIND_N; op++) {
			to->count[op][s] += from->count[op][s];
			to->ops[op][s] += from->ops[op][s];
		}
		packed_get(&from->hist[s], buckets);
		if (packed_add(&to->hist[s], edges, buckets, from->hist[s].sum))
			return -ENOMEM;
	}
	to->samples += from->samples;
	tlb_add(&to->tlb, &from->tlb);
	free_counts(from);
	return 0;
}

static int add_counts(struct metrics_groups *all, struct metrics_group *to, const struct group *g)
{
	__u64 buckets[IBS_SRC_N][IBS_LAT_BUCKETS] = {}, sum[IBS_SRC_N] = {};

	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];

		to->count[s->op][s->src] += s->samples;
		to->ops[s->op][s->src] += s->ops;
		to->samples += s->samples;
		sum[s->src] += s->sum;
		for (int b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++)
			buckets[s->src][b] += s->buckets[b];
	}
	tlb_add(&to->tlb, &g->tlb);
	for (int s = 0; s < IBS_SRC_N; s++) {
		size_t before = to->hist[s].n;

		if (packed_add(&to->hist[s], &all->edges, buckets[s], sum[s]))
			return -ENOMEM;
		all->bytes += to->hist[s].n - before;
		if (!before && to->hist[s].n)
			all->bytes += all->edges.n * sizeof(*to->hist[s].below);
	}
	return 0;
}

int metrics_groups_add(struct metrics_groups *all, const struct group *g,
		       const struct ibs_slot_name *name, bool other)
{
	struct metrics_group *to, *rest = NULL;
	bool newer, older;

	to = other ? get_other(all) : get_group(all, &g->key, name, false);
	if (!to)
		return -ENOMEM;
	/* cgroup ids ascend: of two with the same path, the larger is alive */
	newer = !other && g->key.cgroup_id > to->cgroup_id;
	older = !other && g->key.cgroup_id < to->cgroup_id;
	if (newer || older) {
		rest = get_other(all);
		if (!rest)
			return -ENOMEM;
	}
	if (newer && move_counts(&all->edges, rest, to))
		return -ENOMEM;
	if (newer)
		to->cgroup_id = g->key.cgroup_id;
	return add_counts(all, older ? rest : to, g);
}

void metrics_groups_free(struct metrics_groups *all)
{
	for (size_t i = 0; i < all->n; i++)
		free_group(all->group[i]);
	free(all->group);
	u64_map_free(&all->by_labels);
	*all = (struct metrics_groups){ .edges = all->edges, .by = all->by };
}
