// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rings.h"

#include "base/clock.h"
#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BATCH	   1024 /* records: small enough for source and destination to stay in the cache */
#define COPY_BATCH 64	/* the same of records with copies of stacks, which take some MiB */

/* Pages of a ring buffer before its data (Linux kernel/bpf/ringbuf.c). */
#define BELL_META_PAGES 3

struct ring {
	struct ibs_ring *shared;
	const char *first; /* of its slots */
	__u32 slots, at;   /* number of slots; next to read */
	__s32 first_stack; /* added to keys of stacks */
	/* counts of records; shared->taken is updated after a batch was delivered */
	__u32 taken, end;
};

/* The next record of each nonempty ring, the earliest on top. */
struct rings {
	struct ring *ring;
	size_t n;
	__u32 slots;
	/* ordered by time of the ring's next record, then by number of the ring */
	struct heap heads;
	size_t record_bytes, stride; /* size of a record, without and with what follows it */
	size_t most;		     /* records of a batch */
	bool raw;
	const struct rings *joined; /* shares its bell; NULL: none */
	int bell_fd;
	unsigned long *bell_taken; /* positions in the bell's ring buffer */
	const unsigned long *bell_rung;
	char *batch;
	struct ibs_record_extra *extra; /* of the batch; NULL: not recorded */
	char *copies;			/* the same, and their size */
	size_t copy_stride;
	__u64 last_ns;
	unsigned int delay_ms;
	struct ibs_ring *copied; /* of a copy, whose rings own their records; NULL: no copy */
};

static size_t copy_stride(__u32 bytes)
{
	return bytes ? sizeof(struct ibs_user_copy) + bytes : 0;
}

size_t rings_record_bytes(bool raw, bool extra, __u32 copy_bytes)
{
	return (raw ? sizeof(struct ibs_record_raw) : sizeof(struct ibs_record)) +
	       (extra ? sizeof(struct ibs_record_extra) : 0) + copy_stride(copy_bytes);
}

__u64 rings_bytes(__u64 n, __u32 slots, size_t record_bytes)
{
	__u64 page = sysconf(_SC_PAGESIZE);

	return (n * slots * record_bytes + page - 1) / page * page + IBS_BELL_BYTES +
	       BELL_META_PAGES * page;
}

static int map_bell(struct rings *r, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *taken = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, r->bell_fd, 0), *rung;

	if (taken != MAP_FAILED) {
		r->bell_taken = taken;
		rung = mmap(NULL, page, PROT_READ, MAP_SHARED, r->bell_fd, page);
		if (rung != MAP_FAILED) {
			r->bell_rung = rung;
			return 0;
		}
	}
	return err_set(err, -errno, "cannot map the ring buffer that wakes the reader: %s",
		       strerror(errno));
}

static void make_batch(struct rings *r, bool extra)
{
	r->most = r->copy_stride ? COPY_BATCH : BATCH;
	r->batch = xrealloc(NULL, r->most * r->record_bytes);
	if (extra)
		r->extra = xcalloc(r->most, sizeof(*r->extra));
	if (r->copy_stride)
		r->copies = xrealloc(NULL, r->most * r->copy_stride);
}

int rings_open(const struct rings_opts *opts, struct rings **out, struct err *err)
{
	struct rings *r = xcalloc(1, sizeof(*r));
	int ret;

	r->n = opts->n_cpus;
	r->slots = opts->slots;
	r->raw = opts->raw;
	r->record_bytes = rings_record_bytes(opts->raw, false, 0);
	r->stride = rings_record_bytes(opts->raw, opts->extra, opts->copy_bytes);
	r->copy_stride = copy_stride(opts->copy_bytes);
	r->delay_ms = 1;
	r->last_ns = clock_ns(CLOCK_MONOTONIC);
	r->bell_fd = opts->bell_fd;
	r->ring = xcalloc(r->n, sizeof(*r->ring));
	make_batch(r, opts->extra);
	array_reserve(r->heads.item, r->heads.room, r->n);
	ret = map_bell(r, err);
	if (ret) {
		rings_close(r);
		return ret;
	}
	for (size_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];

		ring->shared = &opts->states[opts->cpus[i]].ring;
		ring->first = (const char *)opts->records + i * r->slots * r->stride;
		ring->slots = r->slots;
		ring->shared->cpu = opts->cpus[i];
		ring->shared->first = i * r->slots;
		ring->shared->slots = r->slots;
	}
	*out = r;
	return 0;
}

void rings_join(struct rings *r, const struct rings *other, __s32 first_stack)
{
	size_t n = r->n + other->n;

	r->ring = xrealloc(r->ring, n * sizeof(*r->ring));
	array_reserve(r->heads.item, r->heads.room, n);
	for (size_t i = 0; i < other->n; i++) {
		r->ring[r->n + i] = other->ring[i];
		r->ring[r->n + i].first_stack = first_stack;
	}
	r->n = n;
	r->slots = r->slots < other->slots ? r->slots : other->slots;
	r->joined = other;
}

void rings_close(struct rings *r)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (!r)
		return;
	if (r->bell_taken)
		munmap(r->bell_taken, page);
	if (r->bell_rung)
		munmap((void *)r->bell_rung, page);
	for (size_t i = 0; r->copied && i < r->n; i++)
		free((char *)r->ring[i].first);
	free(r->copied);
	free(r->ring);
	heap_free(&r->heads);
	free(r->batch);
	free(r->extra);
	free(r->copies);
	free(r);
}

/* The next record of a ring; NULL if there is none. */
static const void *ring_peek(const struct rings *r, const struct ring *ring)
{
	return ring->taken == ring->end ? NULL : ring->first + (size_t)ring->at * r->stride;
}

static __u64 record_time(const void *record)
{
	__u64 time;

	_Static_assert(!__builtin_offsetof(struct ibs_record, time), "time is not first");
	_Static_assert(!__builtin_offsetof(struct ibs_record_raw, time), "time is not first");
	memcpy(&time, record, sizeof(time));
	return time;
}

/* Start a pass: find the rings that have records. *fullest: records in the fullest ring. */
static void find_heads(struct rings *r, __u64 until, __u32 *fullest)
{
	*fullest = 0;
	r->heads.n = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];
		const void *record;

		ring->end = __atomic_load_n(&ring->shared->written, __ATOMIC_ACQUIRE);
		if (ring->end - ring->taken > *fullest)
			*fullest = ring->end - ring->taken;
		record = ring_peek(r, ring);
		if (record && record_time(record) <= until)
			heap_push(&r->heads, (struct heap_item){ record_time(record), i });
	}
}

/* Compute the delay: the time to fill one eighth of a ring at the current rate. */
static void plan(struct rings *r, __u32 fullest)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), took_ms = (now - r->last_ns) / 1000000;
	__u64 delay = r->delay_ms * 2;

	r->last_ns = now;
	if (fullest)
		delay = took_ms * r->slots / 8 / fullest;
	/* shorten the delay at once, lengthen it step by step */
	if (delay > r->delay_ms * 2)
		delay = r->delay_ms * 2;
	r->delay_ms = delay < 1 ? 1 : delay > RINGS_DELAY_MAX_MS ? RINGS_DELAY_MAX_MS : delay;
}

/* Let programs overwrite the records of the batch. */
static void release(struct rings *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->ring[i].shared->taken != r->ring[i].taken)
			__atomic_store_n(&r->ring[i].shared->taken, r->ring[i].taken,
					 __ATOMIC_RELEASE);
}

static int hand_over(struct rings *r, size_t n, record_cb *cb, void *arg, struct err *err)
{
	struct record_batch batch = {
		.extra = r->extra, .copies = r->copies, .copy_stride = r->copy_stride, .n = n
	};

	release(r);
	if (!n)
		return 0;
	if (r->raw)
		batch.raw = (const struct ibs_record_raw *)r->batch;
	else
		batch.records = (const struct ibs_record *)r->batch;
	return cb(&batch, arg, err);
}

/* Time of the earliest record in other rings, until which to take from the ring on top. */
static __u64 turn_ends(const struct rings *r, __u64 until)
{
	for (size_t c = 1; c <= 2 && c < r->heads.n; c++)
		if (r->heads.item[c].key < until)
			until = r->heads.item[c].key;
	return until;
}

/*
 * Copy up to @most records to slots of @stride bytes: the first one, and those after it that are
 * not later than @ends. Return: their number.
 */
static inline __attribute__((always_inline)) __u32 copy_run(char *to, const char *from, __u32 most,
							    size_t bytes, size_t stride, __u64 ends)
{
	__u32 n = 0;

	/* constant sizes, so that the compiler inlines the copy */
	do {
		memcpy(to, from, bytes);
		to += bytes;
		from += stride;
		n++;
	} while (n < most && record_time(from) <= ends);
	return n;
}

/* Of a copy of a stack only what is used. */
static void copy_stack(char *to, const char *from, size_t room)
{
	struct ibs_user_copy head;

	memcpy(&head, from, sizeof(head));
	memcpy(to, from, sizeof(head));
	if (head.bytes <= room - sizeof(head))
		memcpy(to + sizeof(head), from + sizeof(head), head.bytes);
}

static __u32 copy_records(struct rings *r, size_t at, const char *from, __u32 most, __u64 ends,
			  __s32 first_stack)
{
	char *to = r->batch + at * r->record_bytes;
	__u32 n;

	if (!r->extra)
		return r->raw ? copy_run(to, from, most, sizeof(struct ibs_record_raw),
					 sizeof(struct ibs_record_raw), ends)
			      : copy_run(to, from, most, sizeof(struct ibs_record),
					 sizeof(struct ibs_record), ends);
	n = copy_run(to, from, most, r->record_bytes, r->stride, ends);
	for (__u32 i = 0; i < n; i++) {
		struct ibs_record_extra *s = &r->extra[at + i];

		memcpy(s, from + i * r->stride + r->record_bytes, sizeof(*s));
		s->kernel += s->kernel < 0 ? 0 : first_stack;
		s->user += s->user < 0 ? 0 : first_stack;
		s->callers += s->callers < 0 ? 0 : first_stack;
	}
	for (__u32 i = 0; r->copies && i < n; i++)
		copy_stack(r->copies + (at + i) * r->copy_stride,
			   from + (i + 1) * r->stride - r->copy_stride, r->copy_stride);
	return n;
}

/* Add records of the ring on top to the batch, from index @n on, until another ring is due. */
static size_t take_turn(struct rings *r, __u64 until, size_t n)
{
	struct heap_item head = r->heads.item[0];
	struct ring *ring = &r->ring[head.tie];
	const void *record = ring_peek(r, ring);
	__u64 ends = turn_ends(r, until);
	__u32 most, run;

	do {
		most = ring->end - ring->taken;
		if (most > ring->slots - ring->at)
			most = ring->slots - ring->at;
		if (most > r->most - n)
			most = r->most - n;
		run = copy_records(r, n, record, most, ends, ring->first_stack);
		n += run;
		ring->taken += run;
		ring->at = ring->at + run == ring->slots ? 0 : ring->at + run;
		record = ring_peek(r, ring);
	} while (n < r->most && record && record_time(record) <= ends);
	if (record && record_time(record) <= until) {
		head.key = record_time(record);
		heap_replace_first(&r->heads, head);
	} else {
		heap_pop(&r->heads);
	}
	return n;
}

static void empty_bell(const struct rings *r)
{
	if (r->bell_taken)
		__atomic_store_n(r->bell_taken, __atomic_load_n(r->bell_rung, __ATOMIC_ACQUIRE),
				 __ATOMIC_SEQ_CST);
}

int rings_drain(struct rings *r, __u64 until, record_cb *cb, void *arg, struct err *err)
{
	__u32 fullest;
	size_t n = 0;
	int ret = 0;

	/* before checking the rings: records that arrive later ring the bell again */
	empty_bell(r);
	if (r->joined)
		empty_bell(r->joined);
	find_heads(r, until, &fullest);
	while (r->heads.n) {
		n = take_turn(r, until, n);
		if (n == r->most) {
			ret = hand_over(r, n, cb, arg, err);
			n = 0;
			if (ret)
				return ret;
		}
	}
	ret = hand_over(r, n, cb, arg, err);
	plan(r, fullest);
	return ret;
}

size_t rings_n(const struct rings *r)
{
	return r->n;
}

void rings_mark(const struct rings *r, __u32 *mark)
{
	for (size_t i = 0; i < r->n; i++)
		mark[i] = __atomic_load_n(&r->ring[i].shared->written, __ATOMIC_ACQUIRE);
}

/* Copy records with the numbers @from to @from + @n - 1; a ring has a power of two of them. */
static char *copy_numbered(const struct rings *r, const struct ring *ring, __u32 from, __u32 n)
{
	__u32 at = from & (ring->slots - 1);
	__u32 first = n < ring->slots - at ? n : ring->slots - at;
	char *to = xrealloc(NULL, (n ?: 1) * r->stride);

	memcpy(to, ring->first + at * r->stride, first * r->stride);
	memcpy(to + first * r->stride, ring->first, (n - first) * r->stride);
	return to;
}

/*
 * Only the records that no program can have touched during the copy count: with the number
 * `written` at its end, a program may be writing record `written`, in place of `written` - slots.
 */
static void copy_ring(struct rings *to, size_t i, const struct ring *ring, __u32 since,
		      struct rings_kept *out)
{
	const __u32 end = __atomic_load_n(&ring->shared->written, __ATOMIC_ACQUIRE);
	const __u32 all = end - since, n = all < ring->slots - 1 ? all : ring->slots - 1;
	char *records = copy_numbered(to, ring, end - n, n);
	__u32 written, gone;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	written = __atomic_load_n(&ring->shared->written, __ATOMIC_ACQUIRE);
	gone = written - end + n + 1;
	gone = gone > ring->slots ? gone - ring->slots : 0;
	if (gone > n)
		gone = n;
	to->copied[i] = (struct ibs_ring){ .written = n, .taken = gone };
	to->ring[i] = (struct ring){ .shared = &to->copied[i],
				     .first = records,
				     .slots = n,
				     .at = gone == n ? 0 : gone,
				     .taken = gone };
	out->kept += n - gone;
	out->overwritten += all - (n - gone);
}

struct rings *rings_copy(const struct rings *r, const __u32 *since, struct rings_kept *out)
{
	struct rings *to = xcalloc(1, sizeof(*to));

	*out = (struct rings_kept){};
	to->n = r->n;
	to->slots = r->slots;
	to->raw = r->raw;
	to->record_bytes = r->record_bytes;
	to->stride = r->stride;
	to->delay_ms = 1;
	to->bell_fd = -1;
	to->ring = xcalloc(to->n, sizeof(*to->ring));
	to->copied = xcalloc(to->n, sizeof(*to->copied));
	to->copy_stride = r->copy_stride;
	make_batch(to, r->extra);
	array_reserve(to->heads.item, to->heads.room, to->n);
	for (size_t i = 0; i < to->n; i++)
		copy_ring(to, i, &r->ring[i], since[i], out);
	return to;
}

void rings_each_process(const struct rings *copy, void (*cb)(__u32 tgid, void *arg), void *arg)
{
	const size_t at = copy->raw ? offsetof(struct ibs_record_raw, tgid)
				    : offsetof(struct ibs_record, tgid);

	for (size_t i = 0; i < copy->n; i++) {
		const struct ring *ring = &copy->ring[i];
		__u32 tgid, last = 0;

		for (__u32 k = ring->taken; k < ring->slots; k++) {
			memcpy(&tgid, ring->first + k * copy->stride + at, sizeof(tgid));
			if (k == ring->taken || tgid != last)
				cb(tgid, arg);
			last = tgid;
		}
	}
}

int rings_fd(const struct rings *r)
{
	return r->bell_fd;
}

unsigned int rings_delay_ms(const struct rings *r)
{
	return r->delay_ms;
}
