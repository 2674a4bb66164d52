// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of strata as few bytes, and to the bit: estimates and intervals do not change with age. */
#include "packed.h"
#include "base/std.h"

#include <byteswap.h>
#include <string.h>

/* The low bytes of most numbers are 0: as the high ones, pack_put() leaves them out. */
static void put_double(struct packed *b, double v)
{
	__u64 bits;

	memcpy(&bits, &v, sizeof(bits));
	pack_put(b, bswap_64(bits));
}

static double get_double(const unsigned char **p)
{
	const __u64 bits = bswap_64(pack_get(p));
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static void put_float(struct packed *b, float v)
{
	__u32 bits;

	memcpy(&bits, &v, sizeof(bits));
	pack_put(b, bswap_32(bits));
}

static float get_float(const unsigned char **p)
{
	const __u32 bits = bswap_32(pack_get(p));
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* --- the interval --- */

static void put_ledger(struct packed *b, const struct ledger *l)
{
	pack_put(b, l->seen);
	pack_put(b, l->pmu_samples);
	pack_put(b, l->unseen);
	pack_put(b, l->dropped);
	pack_put(b, l->undelivered);
	pack_put(b, l->pmu_exact | l->dropped_known << 1 | l->undelivered_known << 2);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		pack_put(b, l->outcome[o]);
}

static void get_ledger(const unsigned char **p, struct ledger *l)
{
	unsigned int known;

	l->seen = pack_get(p);
	l->pmu_samples = pack_get(p);
	l->unseen = pack_get(p);
	l->dropped = pack_get(p);
	l->undelivered = pack_get(p);
	known = pack_get(p);
	l->pmu_exact = known & 1;
	l->dropped_known = known & 2;
	l->undelivered_known = known & 4;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		l->outcome[o] = pack_get(p);
}

void pack_put_report(struct packed *b, const struct strata_report *r, const __u32 event[STRATUM_N])
{
	for (int of = 0; of < STRATUM_N; of++) {
		put_ledger(b, &r->ledger[of]);
		pack_put(b, r->period[of]);
		pack_put(b, event[of]);
	}
	pack_put(b, r->design.n);
	for (unsigned int k = 0; k < r->design.n; k++) {
		const struct strata_slice *s = &r->design.slice[k];

		pack_put(b, s->of);
		put_double(b, s->ops);
		put_double(b, s->tags);
		put_double(b, s->seconds);
		pack_put(b, s->period);
	}
}

void pack_get_report(const unsigned char **p, struct strata_report *r, __u32 event[STRATUM_N])
{
	for (int of = 0; of < STRATUM_N; of++) {
		get_ledger(p, &r->ledger[of]);
		r->period[of] = pack_get(p);
		event[of] = pack_get(p);
	}
	r->design.n = pack_get(p);
	for (unsigned int k = 0; k < r->design.n; k++) {
		struct strata_slice *s = &r->design.slice[k];

		s->of = pack_get(p);
		s->ops = get_double(p);
		s->tags = get_double(p);
		s->seconds = get_double(p);
		s->period = pack_get(p);
	}
}

/* --- a series --- */

/* Only slices that have any of it, each with its distance from the one before. */
static void put_sum(struct packed *b, const struct strata_sum *s, unsigned int slices)
{
	unsigned int n = 0, last = 0;

	for (unsigned int k = 0; k < slices; k++)
		n += s->part[k] != 0;
	pack_put(b, n);
	for (unsigned int k = 0; k < slices; k++) {
		if (s->part[k] == 0)
			continue;
		pack_put(b, k - last);
		put_float(b, s->part[k]);
		last = k;
	}
	for (int of = 0; of < STRATUM_N; of++)
		put_double(b, s->square[of]);
}

static void get_sum(const unsigned char **p, struct strata_sum *s)
{
	unsigned int at = 0;

	for (__u64 n = pack_get(p); n; n--) {
		at += pack_get(p);
		s->part[at] = get_float(p);
	}
	for (int of = 0; of < STRATUM_N; of++)
		s->square[of] = get_double(p);
}

/*
 * Samples of a stratum have one weight, or a few, so that most latencies repeat the ops and the square of one of the last:
 * then its place is put, and else 0 and both.
 */
#define AMOUNTS 64

struct amounts {
	struct amount {
		float ops, square;
	} of[AMOUNTS];
	unsigned int n;
};

static void keep_amount(struct amounts *known, const struct strata_timed *t)
{
	known->of[known->n++ % AMOUNTS] = (struct amount){ t->ops, t->square };
}

static void put_amount(struct packed *b, struct amounts *known, const struct strata_timed *t)
{
	for (unsigned int i = 0; i < known->n && i < AMOUNTS; i++) {
		if (known->of[i].ops == t->ops && known->of[i].square == t->square) {
			pack_put(b, i + 1);
			return;
		}
	}
	pack_put(b, 0);
	put_float(b, t->ops);
	put_float(b, t->square);
	keep_amount(known, t);
}

static void get_amount(const unsigned char **p, struct amounts *known, struct strata_timed *t)
{
	const unsigned int at = pack_get(p);

	if (at) {
		t->ops = known->of[at - 1].ops;
		t->square = known->of[at - 1].square;
		return;
	}
	t->ops = get_float(p);
	t->square = get_float(p);
	keep_amount(known, t);
}

static void put_timed(struct packed *b, const struct series_strata *x)
{
	struct strata_timed *list = xcalloc(x->n_timed, sizeof(*list));
	struct amounts known = {};
	unsigned int slice = 0;
	size_t n;

	if (x->n_timed)
		memcpy(list, x->timed, x->n_timed * sizeof(*list));
	n = x->n_timed ? strata_timed_sort(list, x->n_timed) : 0;
	pack_put(b, n);
	for (size_t i = 0; i < n; i++) {
		pack_put(b, list[i].slice - slice);
		pack_put(b, list[i].bucket);
		put_amount(b, &known, &list[i]);
		slice = list[i].slice;
	}
	free(list);
}

static void get_timed(const unsigned char **p, struct series_strata *x)
{
	struct amounts known = {};
	unsigned int slice = 0;
	const size_t n = pack_get(p);

	x->timed = xcalloc(n, sizeof(*x->timed));
	x->timed_room = x->n_sorted = n;
	for (; x->n_timed < n; x->n_timed++) {
		struct strata_timed *t = &x->timed[x->n_timed];

		slice += pack_get(p);
		t->slice = slice;
		t->bucket = pack_get(p);
		get_amount(p, &known, t);
	}
}

void pack_put_strata(struct packed *b, const struct series_strata *x)
{
	unsigned int n = 0, last = 0;

	put_sum(b, &x->cycles, x->design->n);
	put_sum(b, &x->ops, x->design->n);
	for (unsigned int i = 0; i < IBS_LAT_BUCKETS; i++)
		n += x->buckets[i] > 0;
	pack_put(b, n);
	for (unsigned int i = 0; i < IBS_LAT_BUCKETS; i++) {
		if (!x->buckets[i])
			continue;
		pack_put(b, i - last);
		pack_put(b, x->buckets[i]);
		last = i;
	}
	put_timed(b, x);
}

void pack_get_strata(const unsigned char **p, const struct strata_design *d,
		     struct series_strata *x)
{
	unsigned int at = 0;

	*x = (struct series_strata){ .design = d };
	get_sum(p, &x->cycles);
	get_sum(p, &x->ops);
	for (__u64 n = pack_get(p); n; n--) {
		at += pack_get(p);
		x->buckets[at] = pack_get(p);
	}
	get_timed(p, x);
}
