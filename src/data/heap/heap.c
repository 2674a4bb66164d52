// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events are kept until the first query, then applied in the order of time. Queries usually come in that order, too:
 * then those events are applied that are not later, and what has ended is forgotten. Only a query of an earlier time, or
 * a process that inherits what another one had at its fork, makes all of them apply again, with a history: see pieces.h.
 */
#include "heap_blocks.h"

#include "base/array.h"
#include "pieces.h"

#define EVENTS_DEFAULT (3u << 20)
#define STACK_WORDS    (8u << 20) /* of all stacks together: 64 MB */
#define DEPTH_MAX      64	  /* processes that a block is inherited from, one from the other */
#define NONE	       U64_MAP_NONE
#define HOLE	       0 /* value of a piece that hides what was inherited, and has no block */

enum layer { MALLOC, MAPPED, LAYERS };

enum kind { ALLOC, FREE, FORK, EXEC, EXIT };

struct event {
	__u64 time, addr, size, weight;
	__u32 seq, tgid, tid; /* tid: also the parent that forks */
	__u32 stack; /* 0: none, else one more than where it is in h->words, behind its length */
	enum kind kind : 8;
	bool mapped;
};

/* From its fork, exec or first allocation on; its spaces are LAYERS times its number and those behind. */
struct process {
	__u32 parent; /* NONE: it inherits nothing */
	unsigned int depth;
	__u64 forked;
	bool exited;
};

struct heap {
	struct event *events; /* sorted once they are applied */
	size_t n, room, max;
	size_t applied; /* so many events */
	bool sorted, has_times, inherits;
	__u64 reached; /* the latest time of a query */
	__u64 until;   /* events from then on were left out */

	__u64 *words; /* stacks, each behind its length */
	size_t n_words, words_room;
	struct u64_map stack_of; /* by hash */

	struct process *processes;
	size_t n_processes, processes_room;
	struct chains process_of; /* by tgid */
	struct pieces pieces;
	struct heap_counts counts;
};

struct heap *heap_new(size_t max_events)
{
	struct heap *h = xcalloc(1, sizeof(*h));

	h->max = max_events ?: EVENTS_DEFAULT;
	h->until = ~0ull;
	return h;
}

void heap_free(struct heap *h)
{
	if (!h)
		return;
	free(h->events);
	free(h->words);
	u64_map_free(&h->stack_of);
	free(h->processes);
	chains_free(&h->process_of);
	pieces_free(&h->pieces);
	free(h);
}

/* --- events --- */

static void add(struct heap *h, struct event e)
{
	if (h->n == h->max) {
		h->counts.left_out++;
		h->until = e.time < h->until ? e.time : h->until;
		return;
	}
	e.seq = h->n;
	h->has_times |= e.time != 0;
	array_reserve(h->events, h->room, h->n + 1);
	h->events[h->n++] = e;
	h->counts.events++;
}

static __u32 keep_stack(struct heap *h, const __u64 *stack, unsigned int n)
{
	const size_t bytes = n * sizeof(*stack);
	__u64 hash;
	__u32 at;

	if (!n)
		return 0;
	hash = words_hash(stack, n);
	u64_map_for_each(at, &h->stack_of,
			 hash) if (h->words[at - 1] == n &&
				   !memcmp(&h->words[at], stack, bytes)) return at;
	if (h->n_words + n + 1 > STACK_WORDS)
		return 0;
	array_reserve(h->words, h->words_room, h->n_words + n + 1);
	h->words[h->n_words] = n;
	memcpy(&h->words[h->n_words + 1], stack, bytes);
	at = h->n_words + 1;
	h->n_words += n + 1;
	u64_map_add(&h->stack_of, hash, at);
	return at;
}

void heap_add(struct heap *h, const struct heap_block *b)
{
	__u64 stack[HEAP_STACK];
	unsigned int n = b->n_stack < HEAP_STACK ? b->n_stack : HEAP_STACK;

	if (n)
		memcpy(stack, b->stack, n * sizeof(*stack)); /* it may not be aligned */
	add(h, (struct event){ .time = b->time,
			       .addr = b->addr,
			       .size = b->size,
			       .weight = b->weight,
			       .tgid = b->tgid,
			       .tid = b->tid,
			       .stack = keep_stack(h, stack, n),
			       .kind = ALLOC,
			       .mapped = b->mapped });
}

void heap_add_free(struct heap *h, __u64 time, __u32 tgid, __u64 addr, __u64 size)
{
	add(h,
	    (struct event){ .time = time, .addr = addr, .size = size, .tgid = tgid, .kind = FREE });
}

void heap_add_fork(struct heap *h, __u64 time, __u32 tgid, __u32 parent)
{
	add(h, (struct event){ .time = time, .tgid = tgid, .tid = parent, .kind = FORK });
}

void heap_add_exec(struct heap *h, __u64 time, __u32 tgid)
{
	add(h, (struct event){ .time = time, .tgid = tgid, .kind = EXEC });
}

void heap_add_exit(struct heap *h, __u64 time, __u32 tgid)
{
	add(h, (struct event){ .time = time, .tgid = tgid, .kind = EXIT });
}

/* --- applying them --- */

static __u32 new_process(struct heap *h, __u64 time, __u32 tgid, __u32 parent)
{
	struct process p = { .parent = NONE };

	if (parent != NONE && h->processes[parent].depth < DEPTH_MAX)
		p = (struct process){ .parent = parent,
				      .depth = h->processes[parent].depth + 1,
				      .forked = time };
	h->inherits |= p.parent != NONE;
	for (int layer = 0; layer < LAYERS; layer++)
		pieces_space(&h->pieces);
	array_reserve(h->processes, h->processes_room, h->n_processes + 1);
	h->processes[h->n_processes] = p;
	chains_add(&h->process_of, tgid, time, h->n_processes);
	return h->n_processes++;
}

/* Other threads may still run when the first one has exited. */
static __u32 process_at_end(struct heap *h, const struct event *e)
{
	__u32 p = chains_last(&h->process_of, e->tgid);

	if (p == NONE)
		return new_process(h, 0, e->tgid, NONE);
	return h->processes[p].exited && e->kind == ALLOC && e->tid == e->tgid
		       ? new_process(h, e->time, e->tgid, NONE)
		       : p;
}

static __u64 end_of(__u64 addr, __u64 size)
{
	return addr + size < addr ? ~0ull : addr + size;
}

/* The piece that a process has, or inherits, at a time; PIECE_NONE if it has none, or a hole. */
static __u32 find_piece(struct heap *h, __u32 p, enum layer layer, __u64 addr, __u64 time)
{
	while (p != NONE) {
		const struct process *it = &h->processes[p];
		const __u32 i = pieces_find(&h->pieces, p * LAYERS + layer, addr, time);

		if (i)
			return h->pieces.piece[i].value == HOLE ? PIECE_NONE : i;
		time = it->forked ? it->forked - 1 : 0; /* an event at that time may come later */
		p = it->parent;
	}
	return PIECE_NONE;
}

static void begin(struct heap *h, __u32 p, enum layer layer, __u64 start, __u64 end, __u64 time,
		  __u32 value)
{
	if (start < end)
		pieces_begin(&h->pieces, p * LAYERS + layer, start, end, time, value);
}

/*
 * End what is live in a range. @whole: a block has ended even if only a part is in the range; otherwise the rest stays.
 * Return: how many blocks there were.
 */
static unsigned int clear(struct heap *h, __u32 p, enum layer layer, __u64 start, __u64 end,
			  __u64 time, bool whole)
{
	const bool inherits = h->processes[p].parent != NONE;
	unsigned int blocks = 0;
	__u32 i;

	while ((i = pieces_below(&h->pieces, p * LAYERS + layer, end)) &&
	       h->pieces.piece[i].end > start) {
		const struct piece was = h->pieces.piece[i];
		const bool gone = whole && was.value != HOLE;

		blocks += was.value != HOLE;
		pieces_end(&h->pieces, i, time);
		if (gone && !inherits)
			continue;
		begin(h, p, layer, was.start, start, time, gone ? HOLE : was.value);
		begin(h, p, layer, end, was.end, time, gone ? HOLE : was.value);
	}
	return blocks;
}

/* Nothing is in the range any more, neither of its own nor inherited. */
static unsigned int remove_range(struct heap *h, __u32 p, enum layer layer, __u64 start, __u64 end,
				 __u64 time)
{
	unsigned int n = clear(h, p, layer, start, end, time, false);

	if (h->processes[p].parent != NONE)
		begin(h, p, layer, start, end, time, HOLE);
	return n;
}

static void take_alloc(struct heap *h, const struct event *e)
{
	const __u64 end = end_of(e->addr, e->size);
	const __u32 p = process_at_end(h, e);
	const enum layer layer = e->mapped ? MAPPED : MALLOC;

	/* a new mapping may replace a part of another one, but malloc gives only what is free */
	h->counts.missed += clear(h, p, MALLOC, e->addr, end, e->time, true);
	if (e->mapped) {
		clear(h, p, MAPPED, e->addr, end, e->time, false);
		remove_range(h, p, MALLOC, e->addr, end, e->time); /* what it inherited */
	}
	begin(h, p, layer, e->addr, end, e->time, e - h->events + 1);
}

static void take_free(struct heap *h, const struct event *e)
{
	const __u32 p = process_at_end(h, e);
	const __u64 end = end_of(e->addr, e->size);
	const struct piece *piece;
	__u32 i;

	if (e->size) {
		if (!(remove_range(h, p, MALLOC, e->addr, end, e->time) +
		      remove_range(h, p, MAPPED, e->addr, end, e->time)))
			h->counts.unmatched += h->processes[p].parent == NONE;
		return;
	}
	/* most of what is freed is live and the process's own: no search by time */
	i = pieces_below(&h->pieces, p * LAYERS + MALLOC, e->addr + 1);
	if (!i || h->pieces.piece[i].start != e->addr || h->pieces.piece[i].value == HOLE)
		i = find_piece(h, p, MALLOC, e->addr, e->time);
	piece = &h->pieces.piece[i];
	if (i && piece->to == PIECE_LIVE && piece->space == p * LAYERS && piece->start == e->addr &&
	    h->processes[p].parent == NONE)
		pieces_end(&h->pieces, i, e->time);
	else if (i && piece->start == e->addr)
		remove_range(h, p, MALLOC, piece->start, piece->end, e->time);
	else
		h->counts.unmatched++;
}

static void take(struct heap *h, const struct event *e)
{
	__u32 p;

	switch (e->kind) {
	case ALLOC:
		take_alloc(h, e);
		break;
	case FREE:
		take_free(h, e);
		break;
	case FORK:
		/* in a recording with times, one without is of a process that existed before */
		p = e->tid && (e->time || !h->has_times) ? chains_last(&h->process_of, e->tid)
							 : NONE;
		new_process(h, e->time, e->tgid, p);
		break;
	case EXEC:
		new_process(h, e->time, e->tgid, NONE);
		break;
	default:
		p = chains_last(&h->process_of, e->tgid);
		if (p != NONE)
			h->processes[p].exited = true;
	}
}

static int compare_events(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : 1;
}

static void sort(struct heap *h)
{
	bool sorted = true;

	for (size_t i = 1; i < h->n; i++)
		sorted &= h->events[i - 1].time <= h->events[i].time;
	if (!sorted)
		qsort(h->events, h->n, sizeof(*h->events), compare_events);
	h->sorted = true;
}

/* Begin again, and remember everything. */
static void begin_history(struct heap *h)
{
	free(h->processes);
	h->processes = NULL;
	h->n_processes = h->processes_room = 0;
	chains_free(&h->process_of);
	pieces_free(&h->pieces);
	h->pieces.history = true;
	h->counts.unmatched = h->counts.missed = 0;
	h->applied = 0;
}

/* Apply the events up to a time; with a history, all of them. */
static void advance(struct heap *h, __u64 time)
{
	const struct event *e = &h->events[h->applied];

	while (h->applied < h->n && (h->pieces.history || e->time <= time)) {
		if (e->time < h->until || h->until == ~0ull)
			take(h, e);
		h->applied++;
		e++;
		if (h->inherits && !h->pieces.history) {
			begin_history(h);
			e = h->events;
		}
	}
}

/* Queries apply events first, and note what they found, which changes nothing visible: hence the cast. */
static struct heap *apply(const struct heap *asked, __u64 time)
{
	struct heap *h = (struct heap *)asked;

	if (!h->sorted)
		sort(h);
	if (time < h->reached && !h->pieces.history)
		begin_history(h);
	else
		h->reached = time;
	advance(h, time);
	return h;
}

/* --- queries --- */

bool heap_find(const struct heap *asked, __u32 tgid, __u64 addr, __u64 time, struct heap_block *out)
{
	const __u64 at = time && asked->has_times ? time : PIECE_LIVE - 1;
	__u32 p, i = PIECE_NONE;
	struct heap *h;

	if (at >= asked->until)
		return false;
	h = apply(asked, at);
	if (!chains_at(&h->process_of, tgid, at, &p))
		return false;
	for (int layer = 0; layer < LAYERS && !i; layer++)
		i = find_piece(h, p, layer, addr, at);
	if (i) {
		const __u32 number = h->pieces.piece[i].value - 1;
		const struct event *e = &h->events[number];

		*out = (struct heap_block){ .time = e->time,
					    .addr = e->addr,
					    .size = e->size,
					    .weight = e->weight,
					    .stack = e->stack ? &h->words[e->stack] : NULL,
					    .n_stack = e->stack ? h->words[e->stack - 1] : 0,
					    .tgid = e->tgid,
					    .tid = e->tid,
					    .mapped = e->mapped,
					    .number = number };
	}
	return i;
}

struct heap_counts heap_counts(const struct heap *h)
{
	return apply(h, ~0ull)->counts;
}
