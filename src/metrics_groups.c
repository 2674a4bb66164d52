// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_groups.h"

#include "metrics_out.h"
#include "utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A bucket is its number and its count, seven bits a byte, the lowest first. */
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
	memset(g->weight, 0, sizeof(g->weight));
	memset(&g->tlb, 0, sizeof(g->tlb));
	g->samples = 0;
}

static void free_group(struct metrics_group *g)
{
	if (!g)
		return;
	free_counts(g);
	free(g->cgroup);
	free(g->labels);
	free(g->json);
	free(g);
}

static void json_text(FILE *f, const char *sep, const char *name, const char *value)
{
	fprintf(f, "%s\"%s\":", sep, name);
	utf8_put_json(f, value);
}

/* A label that is empty is, to Prometheus, a label that is not there. */
static int set_labels(struct metrics_group *g, const struct ibs_slot_name *name)
{
	const struct {
		const char *name, *value;
	} labels[] = { { "namespace", name->name_space },
		       { "pod", name->pod },
		       { "container", name->container },
		       { "cgroup", name->cgroup } };
	size_t json_len;
	FILE *text = open_memstream(&g->labels, &g->labels_len);
	FILE *json = open_memstream(&g->json, &json_len);
	bool failed = !text || !json;

	for (size_t i = 0; !failed && i < sizeof(labels) / sizeof(labels[0]); i++) {
		json_text(json, i ? "," : "", labels[i].name, labels[i].value);
		if (!*labels[i].value)
			continue;
		metric_label(text, "", labels[i].name, labels[i].value);
		fputc(',', text);
	}
	/* of a stream that ran out of memory, closing says so */
	if (text && fclose(text))
		failed = true;
	if (json && fclose(json))
		failed = true;
	return failed ? -ENOMEM : 0;
}

static __u32 hash_text(const char *s)
{
	__u32 h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

/* Where a path is, or would be. */
static __u32 *find_place(const struct metrics_groups *all, const char *cgroup, bool other)
{
	size_t i = hash_text(cgroup) & (all->n_places - 1);

	for (;; i = (i + 1) & (all->n_places - 1)) {
		const struct metrics_group *g;

		if (!all->places[i])
			return &all->places[i];
		g = all->group[all->places[i] - 1];
		if (g->other == other && !strcmp(g->cgroup, cgroup))
			return &all->places[i];
	}
}

static int grow(struct metrics_groups *all)
{
	size_t room = all->room ? 2 * all->room : 64;
	struct metrics_group **group = realloc(all->group, room * sizeof(*group));
	__u32 *places;

	if (!group)
		return -ENOMEM;
	all->group = group;
	places = calloc(2 * room, sizeof(*places));
	if (!places)
		return -ENOMEM;
	free(all->places);
	all->places = places;
	all->n_places = 2 * room;
	all->room = room;
	for (size_t i = 0; i < all->n; i++)
		*find_place(all, group[i]->cgroup, group[i]->other) = i + 1;
	return 0;
}

static struct metrics_group *get_group(struct metrics_groups *all, const struct ibs_slot_name *name,
				       __u64 id, bool other)
{
	struct metrics_group *g;
	__u32 *place;

	if (all->n == all->room && grow(all))
		return NULL;
	place = find_place(all, name->cgroup, other);
	if (*place)
		return all->group[*place - 1];
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->other = other;
	g->cgroup_id = id;
	g->cgroup = strdup(name->cgroup);
	if (!g->cgroup || set_labels(g, name)) {
		free_group(g);
		return NULL;
	}
	all->group[all->n++] = g;
	*place = all->n;
	all->bytes += sizeof(*g) + 3 * g->labels_len;
	return g;
}

static struct metrics_group *get_other(struct metrics_groups *all)
{
	static const struct ibs_slot_name name = { .cgroup = "other", .container = "other" };

	return get_group(all, &name, 0, true);
}

static int move_counts(const struct metrics_edges *edges, struct metrics_group *to,
		       struct metrics_group *from)
{
	for (int s = 0; s < IBS_SRC_N; s++) {
		__u64 buckets[IBS_LAT_BUCKETS] = {};

		for (int op = 0; op < IBS_OP_KIND_N; op++) {
			to->count[op][s] += from->count[op][s];
			to->weight[op][s] += from->weight[op][s];
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
		to->weight[s->op][s->src] += s->weight;
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

	to = other ? get_other(all) : get_group(all, name, g->key.cgroup_id, false);
	if (!to)
		return -ENOMEM;
	/* ids of cgroups ascend: of two with one path, the larger is alive */
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
	free(all->places);
	*all = (struct metrics_groups){ .edges = all->edges };
}
