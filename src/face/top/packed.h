/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts as few bytes: most are small, and most buckets of a histogram are empty. */
#ifndef IBSCOPE_PACKED_H
#define IBSCOPE_PACKED_H

#include "counts/snapshot.h"

/* The zero value is empty. */
struct packed {
	unsigned char *data;
	size_t n, room;
};

void pack_put(struct packed *b, __u64 v);
void pack_put_bytes(struct packed *b, const void *data, size_t n);
void pack_put_series(struct packed *b, const struct series *s);
/* Put how many bytes there are from @from on in front of them. */
void pack_put_length(struct packed *b, size_t from);

/* What was put, in the same order; *@p is moved. */
__u64 pack_get(const unsigned char **p);
/* s->buckets is the caller's. */
void pack_get_series(const unsigned char **p, struct series *s);
/* The same, taken off @s, which has its op and source. */
void pack_subtract_series(const unsigned char **p, struct series *s);

/*
 * How an interval was sampled in strata; @event: numbers for the texts of its events. _get_(): r->event is the caller's.
 */
void pack_put_report(struct packed *b, const struct strata_report *r, const __u32 event[STRATUM_N]);
void pack_get_report(const unsigned char **p, struct strata_report *r, __u32 event[STRATUM_N]);
/* What a series has of the slices of @d. */
void pack_put_strata(struct packed *b, const struct series_strata *x);
void pack_get_strata(const unsigned char **p, const struct strata_design *d,
		     struct series_strata *x);

#endif
