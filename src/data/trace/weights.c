// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "weights.h"

#include "base/array.h"

#include <stdlib.h>

_Static_assert(2 * STRATA_WINDOW <= STRATA_SLICES, "a window has up to twice as many slices");

void trace_weights_add(struct trace_weights *w, const struct trace_slice *slice)
{
	array_reserve(w->slice, w->room, w->n + 1);
	w->slice[w->n++] = *slice;
}

/* Weigh the slices [from, to). */
static void weigh(struct trace_weights *w, size_t from, size_t to, struct strata_design *d)
{
	d->n = to - from;
	for (size_t i = from; i < to; i++)
		d->slice[i - from] = w->slice[i].counts;
	if (!(strata_total(d, STRATUM_FULL).tags > 0))
		return;
	for (size_t i = from; i < to; i++) {
		w->slice[i].window = d;
		w->slice[i].k = i - from;
		for (int reach = 0; reach < 2; reach++)
			w->slice[i].weight[reach] = strata_slice_weight(d, i - from, reach);
	}
}

static int compare_slices(const void *a, const void *b)
{
	const struct trace_slice *x = a, *y = b;

	return x->end < y->end ? -1 : x->end > y->end;
}

void trace_weights_end(struct trace_weights *w)
{
	const size_t windows = w->n / STRATA_WINDOW ?: 1;

	if (!w->n)
		return;
	qsort(w->slice, w->n, sizeof(*w->slice), compare_slices);
	w->window = xcalloc(windows, sizeof(*w->window));
	for (size_t i = 0; i < windows; i++)
		weigh(w, i * STRATA_WINDOW, i + 1 < windows ? (i + 1) * STRATA_WINDOW : w->n,
		      &w->window[i]);
}

void trace_weights_free(struct trace_weights *w)
{
	free(w->slice);
	free(w->window);
	*w = (struct trace_weights){};
}

/* The first slice that has not ended at @time; after the last one, n - 1. */
static size_t slice_at(struct trace_weights *w, __u64 time)
{
	size_t low = 0, high = w->n - 1;

	if (w->slice[w->last].end >= time && (!w->last || w->slice[w->last - 1].end < time))
		return w->last;
	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (w->slice[middle].end < time)
			low = middle + 1;
		else
			high = middle;
	}
	return w->last = low;
}

const struct trace_slice *trace_weights_at(struct trace_weights *w, unsigned int stratum,
					   __u64 time)
{
	size_t at;

	if (!w->n)
		return NULL;
	/* of a slice that was lost, or not ended when the file was cut, the last one of its stratum tells most */
	for (at = slice_at(w, time); at && w->slice[at].counts.of != stratum;)
		at--;
	return w->slice[at].counts.of == stratum ? &w->slice[at] : NULL;
}
