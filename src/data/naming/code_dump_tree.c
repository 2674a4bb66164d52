// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code_dump.h"
#include "code_dump_private.h"

static int compare_events(const void *pa, const void *pb)
{
	const struct code_event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static int compare_bounds(const void *pa, const void *pb)
{
	const __u64 a = *(const __u64 *)pa, b = *(const __u64 *)pb;

	return a < b ? -1 : a > b;
}

static size_t parts(const struct code_dump *d)
{
	return d->n_bounds ? d->n_bounds - 1 : 0;
}

static void list_bounds(struct code_dump *d)
{
	size_t kept = 0;

	d->bound = xcalloc(2 * d->n + 1, sizeof(*d->bound));
	for (size_t i = 0; i < d->n; i++) {
		d->bound[2 * i] = d->event[i].start;
		d->bound[2 * i + 1] = d->event[i].end;
	}
	qsort(d->bound, 2 * d->n, sizeof(*d->bound), compare_bounds);
	for (size_t i = 0; i < 2 * d->n; i++)
		if (!kept || d->bound[kept - 1] != d->bound[i])
			d->bound[kept++] = d->bound[i];
	d->n_bounds = kept;
}

/* Return: the number of the last bound at or below an address, plus one; 0: none. */
static size_t bounds_up_to(const struct code_dump *d, __u64 addr)
{
	size_t lo = 0, hi = d->n_bounds;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->bound[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The nodes that have the parts of an event below them, and none besides. Return: how many; at most 2 of each level. */
static unsigned int nodes_of(const struct code_dump *d, const struct code_event *e,
			     size_t node[128])
{
	size_t l = bounds_up_to(d, e->start) - 1 + parts(d);
	size_t r = bounds_up_to(d, e->end) - 1 + parts(d);
	unsigned int n = 0;

	for (; l < r; l /= 2, r /= 2) {
		if (l & 1)
			node[n++] = l++;
		if (r & 1)
			node[n++] = --r;
	}
	return n;
}

/* d->first[i + 1] counts those of node i, and then says where they end. */
static bool count_pieces(struct code_dump *d)
{
	size_t node[128], sum = 0;

	d->first = xcalloc(2 * parts(d) + 2, sizeof(*d->first));
	for (size_t i = 0; i < d->n; i++) {
		unsigned int n = nodes_of(d, &d->event[i], node);

		sum += n;
		if (sum > CODE_DUMP_PIECES)
			return false;
		while (n--)
			d->first[node[n] + 1]++;
	}
	for (size_t i = 1; i < 2 * parts(d) + 2; i++)
		d->first[i] += d->first[i - 1];
	d->piece = xcalloc(sum + 1, sizeof(*d->piece));
	return true;
}

bool code_dump_divide(struct code_dump *d, char *why, size_t size)
{
	size_t node[128];
	__u32 *used;

	if (!d->n)
		return true;
	qsort(d->event, d->n, sizeof(*d->event), compare_events);
	list_bounds(d);
	if (!count_pieces(d)) {
		snprintf(why, size,
			 "too much of its code is at addresses that other code has, too");
		return false;
	}
	used = xcalloc(2 * parts(d) + 1, sizeof(*used));
	for (size_t i = 0; i < d->n; i++)
		for (unsigned int n = nodes_of(d, &d->event[i], node); n--;)
			d->piece[d->first[node[n]] + used[node[n]]++] = i;
	free(used);
	return true;
}

/* The last event at a node that is not after a time, and the first one that is. */
static void search(const struct code_dump *d, size_t node, __u64 time, size_t *last, size_t *next)
{
	size_t lo = d->first[node], hi = d->first[node + 1], begin = lo, end = hi;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->event[d->piece[mid]].time <= time)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo > begin && (*last == SIZE_MAX || d->piece[lo - 1] > *last))
		*last = d->piece[lo - 1];
	if (lo < end && d->piece[lo] < *next)
		*next = d->piece[lo];
}

void code_dump_find(const struct code_dump *d, __u64 addr, __u64 time, struct code_span *out)
{
	size_t last = SIZE_MAX, next = SIZE_MAX, at = bounds_up_to(d, addr);

	*out = (struct code_span){ .until = ~0ull };
	if (!at || at == d->n_bounds)
		return;
	for (size_t node = at - 1 + parts(d); node; node /= 2)
		search(d, node, time, &last, &next);
	if (next != SIZE_MAX)
		out->until = d->event[next].time;
	if (last == SIZE_MAX)
		return;
	out->from = d->event[last].time;
	if (d->event[last].name != NO_CODE)
		out->name = intern_text(&d->names, d->event[last].name);
}
