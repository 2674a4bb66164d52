// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_order.h"

#define BYTES_MAX (256 << 20)

struct perf_held {
	struct perf_held *next; /* of its run */
	__u64 time, offset;
	size_t attr;
	_Alignas(8) unsigned char record[];
};

static void release_taken(struct perf_order *o)
{
	if (o->taken)
		o->bytes -= sizeof(*o->taken) + perf_get16(o->taken->record + 6);
	free(o->taken);
	o->taken = NULL;
}

void perf_order_add(struct perf_order *o, __u64 time, size_t attr, const struct perf_record *rec)
{
	struct perf_held *e = xrealloc(NULL, sizeof(*e) + rec->size);

	release_taken(o);
	*e = (struct perf_held){ .time = time, .offset = rec->offset, .attr = attr };
	memcpy(e->record, rec->data, rec->size);
	o->bytes += sizeof(*e) + rec->size;
	if (o->last && o->last->time <= time)
		o->last->next = e;
	else
		heap_push(&o->runs, (struct heap_item){ time, o->seq++, e });
	o->last = e;
	if (!o->has_newest || time > o->newest)
		o->newest = time;
	o->has_newest = true;
}

void perf_order_round(struct perf_order *o)
{
	if (!o->has_newest)
		return;
	/* The first time, `newest_of_round` is 0. */
	o->due = o->newest_of_round;
	o->has_due = true;
	o->newest_of_round = o->newest;
}

void perf_order_finish(struct perf_order *o)
{
	o->due = ~0ULL;
	o->has_due = true;
}

bool perf_order_take(struct perf_order *o, struct perf_record *rec, __u64 *time, size_t *attr)
{
	const struct heap_item *first = o->runs.item;
	struct perf_held *e;

	release_taken(o);
	if (!o->runs.n || (o->bytes < BYTES_MAX && (!o->has_due || first->key > o->due)))
		return false;
	e = first->item;
	if (e->next) {
		heap_replace_first(&o->runs,
				   (struct heap_item){ e->next->time, first->tie, e->next });
	} else {
		if (o->last == e)
			o->last = NULL;
		heap_pop(&o->runs);
	}
	o->taken = e;
	perf_record_set(rec, e->record, e->offset);
	*time = e->time;
	*attr = e->attr;
	return true;
}

void perf_order_clear(struct perf_order *o)
{
	struct perf_record rec;
	__u64 time;
	size_t attr;

	perf_order_finish(o);
	while (perf_order_take(o, &rec, &time, &attr))
		;
	heap_free(&o->runs);
	*o = (struct perf_order){};
}
