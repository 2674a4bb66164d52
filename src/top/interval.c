// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interval.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int unpack(const struct record *r, struct group *out)
{
	const unsigned char *p = r->data + sizeof(out->key);
	size_t n = pack_get(&p);
	int ret = 0;

	*out = (struct group){ .series = calloc(n ?: 1, sizeof(*out->series)) };
	if (!out->series)
		return -ENOMEM;
	while (!ret && out->n_series < n)
		ret = pack_get_series(&p, &out->series[out->n_series++]);
	return ret;
}

/* @old: what was counted in the slot before; NULL: nothing */
static int add_difference(struct step *s, const struct group *g, const struct record *old)
{
	struct group was = {}, *to;
	int ret = old ? unpack(old, &was) : 0;

	if (!ret && array_reserve(s->out->groups, s->room, s->out->n_groups + 1))
		ret = -ENOMEM;
	if (!ret) {
		to = &s->out->groups[s->out->n_groups];
		ret = group_diff(g, old ? &was : NULL, to);
		if (ret || !to->n_series)
			group_free(to);
		else
			s->out->n_groups++;
	}
	group_free(&was);
	return ret;
}

static int add_group(void *arg, struct group *g)
{
	struct step *s = arg;
	struct packed *one = &s->one;
	const struct record *old;

	one->n = 0;
	pack_put_bytes(one, &g->key, sizeof(g->key));
	pack_put(one, g->n_series);
	for (size_t i = 0; i < g->n_series; i++)
		pack_put_series(one, &g->series[i]);
	pack_put(&s->groups, g->slot);
	pack_put(&s->groups, one->n);
	pack_put_bytes(&s->groups, one->data, one->n);
	if (one->failed || s->groups.failed)
		return -ENOMEM;
	while (s->was.data && s->was.slot < g->slot)
		next_record(s);
	/* a slot that was folded may be another group's by now */
	old = s->was.data && s->was.slot == g->slot && !memcmp(s->was.data, &g->key, sizeof(g->key))
		      ? &s->was
		      : NULL;
	if (old && old->n == one->n && !memcmp(old->data, one->data, one->n))
		return 0;
	return add_difference(s, g, old);
}

static int try_read(struct baseline *b, const struct counts *c, struct snapshot *now,
		    struct snapshot *out, struct packed *groups, struct err *err)
{
	struct step s = { .at = b->groups.data, .out = out };
	struct ledger l;
	int ret;

	s.end = b->groups.data + b->groups.n;
	memset(out, 0, sizeof(*out));
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
	return ret == -ENOMEM ? err_set(err, ret, "out of memory for an interval") : ret;
}

int interval_read(struct baseline *b, const struct counts *c, const struct snapshot *head,
		  struct snapshot *out, struct err *err)
{
	struct snapshot now = *head, times = {};
	struct packed groups;
	bool valid = b->valid;
	int ret = -EUCLEAN;

	for (int tries = 0; ret == -EUCLEAN && tries < TRIES; tries++)
		ret = try_read(b, c, &now, out, &groups, err);
	if (ret)
		return ret;
	/* groups are differences already; the rest, here */
	ret = snapshot_diff(&now, valid ? &b->head : NULL, &times);
	free(times.groups);
	times.n_groups = out->n_groups;
	times.groups = out->groups;
	*out = times;
	valid &= now.ledger.seen >= b->head.ledger.seen; /* they were counted from zero, else */
	baseline_free(b);
	*b = (struct baseline){ .head = now, .groups = groups, .valid = true };
	if (ret || !valid)
		snapshot_free(out);
	return ret ? err_set(err, ret, "out of memory for an interval") : !valid;
}

void baseline_free(struct baseline *b)
{
	free(b->groups.data);
	memset(b, 0, sizeof(*b));
}
