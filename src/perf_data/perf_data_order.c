// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_order.h"

#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK_BYTES (1 << 18)
#define CHUNKS_MAX  1024

/* Memory of records of about the same time; goes back when all of them were taken. */
struct chunk {
	struct chunk *next; /* while it is free */
	size_t used, entries;
	_Alignas(8) unsigned char bytes[];
};

struct entry {
	struct entry *next; /* of its run */
	struct chunk *chunk;
	__u64 time, offset;
	size_t attr;
	_Alignas(8) unsigned char record[];
};

_Static_assert(CHUNK_BYTES > sizeof(struct chunk) + sizeof(struct entry) + PERF_RECORD_MAX_SIZE + 8,
	       "a record fits");

struct perf_order {
	struct chunk *chunk, *free;
	size_t chunks;
	/*
	 * Runs of records that were added one after the other with times that do not decrease, as the
	 * buffer of a CPU has them: by time and number of the first record. They are few.
	 */
	struct heap runs;
	__u64 seq;
	struct entry *last; /* of the newest run, NULL when that is empty */
	struct entry *taken;
	__u64 due, newest, newest_of_round;
	bool has_due, has_newest;
};

struct perf_order *perf_order_new(void)
{
	return calloc(1, sizeof(struct perf_order));
}

static struct chunk *new_chunk(struct perf_order *o)
{
	struct chunk *c = o->free;

	if (c) {
		o->free = c->next;
	} else {
		c = malloc(CHUNK_BYTES);
		if (!c)
			return NULL;
		o->chunks++;
	}
	c->used = sizeof(*c);
	c->entries = 0;
	return c;
}

static struct entry *new_entry(struct perf_order *o, size_t record)
{
	size_t n = (sizeof(struct entry) + record + 7) & ~7UL;
	struct chunk *c = o->chunk;
	struct entry *e;

	if (!c || CHUNK_BYTES - c->used < n) {
		c = new_chunk(o);
		if (!c)
			return NULL;
		if (o->chunk && !o->chunk->entries) {
			o->chunk->next = o->free;
			o->free = o->chunk;
		}
		o->chunk = c;
	}
	e = (struct entry *)((unsigned char *)c + c->used);
	c->used += n;
	c->entries++;
	e->chunk = c;
	return e;
}

static void release(struct perf_order *o, struct entry *e)
{
	struct chunk *c = e->chunk;

	if (--c->entries)
		return;
	if (c == o->chunk) {
		c->used = sizeof(*c);
		return;
	}
	c->next = o->free;
	o->free = c;
}

static void release_taken(struct perf_order *o)
{
	if (o->taken)
		release(o, o->taken);
	o->taken = NULL;
}

int perf_order_add(struct perf_order *o, __u64 time, size_t attr, const struct perf_record *rec)
{
	struct entry *e;

	release_taken(o);
	e = new_entry(o, rec->size);
	if (!e)
		return -ENOMEM;
	e->next = NULL;
	e->time = time;
	e->offset = rec->offset;
	e->attr = attr;
	memcpy(e->record, rec->data, rec->size);
	if (o->last && o->last->time <= time) {
		o->last->next = e;
	} else if (heap_push(&o->runs, (struct heap_item){ time, o->seq++, e })) {
		release(o, e);
		return -ENOMEM;
	}
	o->last = e;
	if (!o->has_newest || time > o->newest)
		o->newest = time;
	o->has_newest = true;
	return 0;
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

bool perf_order_full(const struct perf_order *o)
{
	return o->runs.n && !o->free && o->chunks >= CHUNKS_MAX;
}

bool perf_order_take(struct perf_order *o, bool force, struct perf_record *rec, __u64 *time,
		     size_t *attr)
{
	struct entry *e;

	release_taken(o);
	if (!o->runs.n || (!force && (!o->has_due || o->runs.item[0].key > o->due)))
		return false;
	e = o->runs.item[0].item;
	if (e->next) {
		heap_replace_first(&o->runs, (struct heap_item){ e->next->time, o->runs.item[0].tie,
								 e->next });
	} else {
		if (o->last == e)
			o->last = NULL;
		heap_pop(&o->runs);
	}
	o->taken = e;
	rec->data = e->record;
	rec->type = perf_get32(e->record);
	rec->misc = perf_get16(e->record + 4);
	rec->size = perf_get16(e->record + 6);
	rec->offset = e->offset;
	*time = e->time;
	*attr = e->attr;
	return true;
}

static void free_chunk(struct perf_order *o, struct chunk *c)
{
	free(c);
	o->chunks--;
}

/* Chunks are found by their entries: so all of these are taken. */
void perf_order_clear(struct perf_order *o)
{
	struct perf_record rec;
	__u64 time;
	size_t attr;

	while (perf_order_take(o, true, &rec, &time, &attr))
		;
	o->due = o->newest = o->newest_of_round = 0;
	o->has_due = o->has_newest = false;
}

void perf_order_free(struct perf_order *o)
{
	struct chunk *c;

	if (!o)
		return;
	perf_order_clear(o);
	while ((c = o->free)) {
		o->free = c->next;
		free_chunk(o, c);
	}
	free(o->chunk);
	heap_free(&o->runs);
	free(o);
}
