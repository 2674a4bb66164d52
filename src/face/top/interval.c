// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interval.h"
#include "base/std.h"

#define TRIES 3 /* a group that is being made while it is read may be missed once */

/* A group as it was: its slot, the size of what follows, its key and its series. */
struct record {
	__u32 slot;
	size_t n;
	const unsigned char *data; /* NULL: there are no more */
};

struct step {
	const unsigned char *at, *end; /* of the groups before */
	struct record was;
	struct packed groups, one;
	struct snapshot *out;
	size_t room;
};

static void next_record(struct step *s)
{
	s->was.data = NULL;
	if (s->at == s->end)
		return;
	s->was.slot = pack_get(&s->at);
	s->was.n = pack_get(&s->at);
	s->was.data = s->at;
	s->at += s->was.n;
}

/* Take the series of @g as the difference, but those without samples in it. */
static void add_difference(struct step *s, struct group *g)
{
	struct group *to;
	size_t n = 0;

	array_reserve(s->out->groups, s->room, s->out->n_groups + 1);
	to = &s->out->groups[s->out->n_groups];
	*to = *g;
	for (size_t i = 0; i < g->n_series; i++) {
		if (g->series[i].samples)
			to->series[n++] = g->series[i];
		else
			free(g->series[i].buckets);
	}
	to->n_series = n;
	g->series = NULL;
	g->n_series = 0;
	if (n)
		s->out->n_groups++;
	else
		group_free(to);
}

static unsigned int order_of(enum ibs_src src, enum ibs_op_kind op)
{
	return src << 8 | op;
}

/*
 * Keep a series in @one, and take off it what @old has of it: series of a group come in one order
 * and do not go away. What has not changed is copied.
 */
static void step_series(struct packed *one, const unsigned char **old, const unsigned char *end,
			struct series *s)
{
	const unsigned char *p, *data = NULL;
	size_t n = 0, at;
	__u64 samples = 0;

	while (*old < end) {
		enum ibs_op_kind op;
		enum ibs_src src;

		p = *old;
		n = pack_get(&p);
		data = p;
		op = pack_get(&p);
		src = pack_get(&p);
		samples = pack_get(&p);
		if (order_of(src, op) > order_of(s->src, s->op))
			data = NULL;
		else
			*old = data + n;
		if (!data || order_of(src, op) == order_of(s->src, s->op))
			break;
		data = NULL;
	}
	if (data && samples == s->samples) {
		pack_put(one, n);
		pack_put_bytes(one, data, n);
		s->samples = 0;
		return;
	}
	at = one->n;
	pack_put_series(one, s);
	pack_put_length(one, at);
	if (data)
		pack_subtract_series(&data, s);
}

static int add_group(void *arg, struct group *g)
{
	struct step *s = arg;
	struct packed *one = &s->one;
	const unsigned char *old = NULL, *end = NULL;
	struct tlb_counts was = {};

	while (s->was.data && s->was.slot < g->slot)
		next_record(s);
	/* a slot that was folded may be another group's by now */
	if (s->was.data && s->was.slot == g->slot &&
	    !memcmp(s->was.data, &g->key, sizeof(g->key))) {
		old = s->was.data + sizeof(g->key);
		end = s->was.data + s->was.n;
		was.l2_miss = pack_get(&old);
		was.l2_miss_ops = pack_get(&old);
	}
	one->n = 0;
	pack_put_bytes(one, &g->key, sizeof(g->key));
	pack_put(one, g->tlb.l2_miss); /* of these counts, all that a table shows */
	pack_put(one, g->tlb.l2_miss_ops);
	g->tlb = (struct tlb_counts){ .l2_miss = g->tlb.l2_miss - was.l2_miss,
				      .l2_miss_ops = g->tlb.l2_miss_ops - was.l2_miss_ops };
	for (size_t i = 0; i < g->n_series; i++)
		step_series(one, &old, end, &g->series[i]);
	pack_put(&s->groups, g->slot);
	pack_put(&s->groups, one->n);
	pack_put_bytes(&s->groups, one->data, one->n);
	add_difference(s, g);
	return 0;
}

static int try_read(struct baseline *b, const struct counts *c, struct snapshot *now,
		    struct snapshot *out, struct packed *groups, struct err *err)
{
	struct step s = { .at = b->groups.data, .out = out };
	struct ledger l;
	int ret;

	s.end = b->groups.data + b->groups.n;
	memset(out, 0, sizeof(*out));
	memset(now->shards, 0, now->n_shards * sizeof(*now->shards));
	next_record(&s);
	ret = counts_each(c, add_group, &s, &l, err);
	free(s.one.data);
	*groups = s.groups;
	if (!ret) {
		now->ledger.seen = l.seen;
		memcpy(now->ledger.outcome, l.outcome, sizeof(l.outcome));
		return 0;
	}
	free(groups->data);
	snapshot_free(out);
	return ret;
}

int interval_read(struct baseline *b, const struct counts *c, const struct snapshot *head,
		  struct snapshot *out, struct err *err)
{
	struct counts own = *c;
	struct snapshot now = *head, times = {};
	struct packed groups;
	bool valid = b->valid;
	int ret = -EUCLEAN;

	now.n_shards = c->shards;
	now.shards = own.cost = xcalloc(c->shards, sizeof(*now.shards));
	for (int tries = 0; ret == -EUCLEAN && tries < TRIES; tries++)
		ret = try_read(b, &own, &now, out, &groups, err);
	if (ret) {
		free(now.shards);
		return ret;
	}
	/* groups are differences already; the rest, here */
	snapshot_diff(&now, valid ? &b->head : NULL, &times);
	free(times.groups);
	times.n_groups = out->n_groups;
	times.groups = out->groups;
	*out = times;
	for (size_t i = 0; i < out->n_groups; i++)
		group_weigh(&out->groups[i], &out->pmu);
	valid &= now.ledger.seen >= b->head.ledger.seen; /* they were counted from zero, else */
	baseline_free(b);
	*b = (struct baseline){ .head = now, .groups = groups, .valid = true };
	if (!valid)
		snapshot_free(out);
	return !valid;
}

void baseline_free(struct baseline *b)
{
	free(b->groups.data);
	free(b->head.shards);
	memset(b, 0, sizeof(*b));
}
