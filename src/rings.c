// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rings.h"

#include "rlimit.h"
#include "clock.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BATCH 4096 /* records */

/* Of a ring that the kernel has beside its data (Linux kernel/bpf/ringbuf.c). */
#define META_PAGES 3

struct ring {
	int fd;
	unsigned long *consumer; /* position, ours to write */
	const unsigned long *producer;
	const char *data;  /* mapped twice in a row, so that no record wraps */
	unsigned long at;  /* our position; `consumer` follows when a batch was handed over */
	unsigned long end; /* of what was written when the pass began */
};

/* The next record of each ring that has one, the earliest on top. */
struct head {
	__u64 time;
	size_t ring;
};

struct rings {
	struct ring *ring;
	size_t n;
	struct head *heap;
	size_t heap_n;
	size_t page, ring_bytes;
	size_t record_bytes, stride; /* without and with what is behind a record in the ring */
	bool raw;
	int epoll_fd;
	char *batch;
	struct ibs_record_stacks *stacks; /* of the batch; NULL: not asked for */
	__u64 taken;
	__u64 last_ns;
	unsigned int delay_ms;
};

__u64 rings_bytes(__u32 ring_bytes)
{
	return ring_bytes + META_PAGES * sysconf(_SC_PAGESIZE);
}

static int open_ring(struct rings *r, const struct rings_opts *opts, unsigned int cpu,
		     struct ring *ring, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	void *p;

	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ibs_ring", 0, 0, opts->ring_bytes, NULL);
	if (ring->fd < 0)
		return err_set(err, -errno,
			       "cpu %u: cannot make a ring buffer of %u KiB: %s; ask for smaller "
			       "ones with --ring-size, or raise the limit of %s",
			       cpu, opts->ring_bytes >> 10, strerror(errno),
			       errno == EMFILE ? "open files (ulimit -n)" : "memory");
	p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (p == MAP_FAILED)
		goto fail;
	ring->consumer = p;
	p = mmap(NULL, r->page + 2 * r->ring_bytes, PROT_READ, MAP_SHARED, ring->fd, r->page);
	if (p == MAP_FAILED)
		goto fail;
	ring->producer = p;
	ring->data = (const char *)p + r->page;
	if (bpf_map_update_elem(opts->map_fd, &cpu, &ring->fd, BPF_ANY) ||
	    epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, ring->fd, &ev))
		goto fail;
	return 0;
fail:
	return err_set(err, -errno, "cpu %u: cannot use the ring buffer: %s", cpu, strerror(errno));
}

int rings_open(const struct rings_opts *opts, struct rings **out, struct err *err)
{
	struct rings *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->page = sysconf(_SC_PAGESIZE);
	r->ring_bytes = opts->ring_bytes;
	r->raw = opts->raw;
	r->record_bytes = opts->raw ? sizeof(struct ibs_record_raw) : sizeof(struct ibs_record);
	r->stride = r->record_bytes + (opts->stacks ? sizeof(*r->stacks) : 0);
	r->delay_ms = 1;
	r->last_ns = clock_ns(CLOCK_MONOTONIC);
	rlimit_files(opts->n_cpus);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->ring = calloc(opts->n_cpus, sizeof(*r->ring));
	r->heap = calloc(opts->n_cpus, sizeof(*r->heap));
	r->batch = malloc(BATCH * r->record_bytes);
	if (opts->stacks)
		r->stacks = calloc(BATCH, sizeof(*r->stacks));
	if (r->epoll_fd < 0 || !r->ring || !r->heap || !r->batch || (opts->stacks && !r->stacks)) {
		err_set(err, -ENOMEM, "out of memory for reading records");
		goto fail;
	}
	for (size_t i = 0; i < opts->n_cpus; i++) {
		r->n++;
		ret = open_ring(r, opts, opts->cpus[i], &r->ring[i], err);
		if (ret)
			goto fail;
	}
	*out = r;
	return 0;
fail:
	rings_close(r);
	return ret;
}

void rings_close(struct rings *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];

		if (ring->consumer)
			munmap(ring->consumer, r->page);
		if (ring->producer)
			munmap((void *)ring->producer, r->page + 2 * r->ring_bytes);
		if (ring->fd >= 0)
			close(ring->fd);
	}
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	free(r->ring);
	free(r->heap);
	free(r->batch);
	free(r->stacks);
	free(r);
}

/* The record at our position, stepping over what was given up; NULL if there is none yet. */
static const void *ring_peek(const struct rings *r, struct ring *ring)
{
	while (ring->at < ring->end) {
		const char *p = ring->data + (ring->at & (r->ring_bytes - 1));
		__u32 len = __atomic_load_n((const __u32 *)p, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			return p + BPF_RINGBUF_HDR_SZ;
		len &= ~BPF_RINGBUF_DISCARD_BIT;
		ring->at += (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
	}
	return NULL;
}

static __u64 record_time(const void *record)
{
	__u64 time;

	_Static_assert(!__builtin_offsetof(struct ibs_record, time), "time is not first");
	_Static_assert(!__builtin_offsetof(struct ibs_record_raw, time), "time is not first");
	memcpy(&time, record, sizeof(time));
	return time;
}

static void sift_down(struct rings *r, size_t i)
{
	for (;;) {
		size_t least = i;
		struct head h;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < r->heap_n; c++)
			if (r->heap[c].time < r->heap[least].time)
				least = c;
		if (least == i)
			return;
		h = r->heap[i];
		r->heap[i] = r->heap[least];
		r->heap[least] = h;
		i = least;
	}
}

/* What a pass begins with; how full the fullest ring is goes to *fullest. */
static void build_heap(struct rings *r, __u64 until, unsigned long *fullest)
{
	*fullest = 0;
	r->heap_n = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];
		const void *record;

		ring->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
		if (ring->end - ring->at > *fullest)
			*fullest = ring->end - ring->at;
		record = ring_peek(r, ring);
		if (record && record_time(record) <= until)
			r->heap[r->heap_n++] = (struct head){ record_time(record), i };
	}
	for (size_t i = r->heap_n / 2; i-- > 0;)
		sift_down(r, i);
}

/* So much time as an eighth of a ring takes, if it goes on like that. */
static void plan(struct rings *r, unsigned long fullest)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), took_ms = (now - r->last_ns) / 1000000;
	__u64 delay = r->delay_ms * 2;

	r->last_ns = now;
	if (fullest)
		delay = took_ms * r->ring_bytes / 8 / fullest;
	/* a burst is met at once, its end believed step by step */
	if (delay > r->delay_ms * 2)
		delay = r->delay_ms * 2;
	r->delay_ms = delay < 1 ? 1 : delay > RINGS_DELAY_MAX_MS ? RINGS_DELAY_MAX_MS : delay;
}

/* The kernel may write again where the records of the batch were. */
static void release(struct rings *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (*r->ring[i].consumer != r->ring[i].at)
			__atomic_store_n(r->ring[i].consumer, r->ring[i].at, __ATOMIC_RELEASE);
}

static int hand_over(struct rings *r, size_t n, record_cb *cb, void *arg, struct err *err)
{
	struct record_batch batch = { .stacks = r->stacks, .n = n };

	release(r);
	if (!n)
		return 0;
	r->taken += n;
	if (r->raw)
		batch.raw = (const struct ibs_record_raw *)r->batch;
	else
		batch.records = (const struct ibs_record *)r->batch;
	return cb(&batch, arg, err);
}

int rings_drain(struct rings *r, __u64 until, record_cb *cb, void *arg, struct err *err)
{
	struct epoll_event woken[64];
	unsigned long fullest;
	size_t n = 0;
	int ret = 0;

	epoll_wait(r->epoll_fd, woken, sizeof(woken) / sizeof(woken[0]), 0);
	build_heap(r, until, &fullest);
	while (r->heap_n) {
		struct ring *ring = &r->ring[r->heap[0].ring];
		const void *record = ring_peek(r, ring);

		memcpy(r->batch + n * r->record_bytes, record, r->record_bytes);
		if (r->stacks)
			memcpy(&r->stacks[n], (const char *)record + r->record_bytes,
			       sizeof(*r->stacks));
		n++;
		ring->at += (r->stride + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		record = ring_peek(r, ring);
		if (record && record_time(record) <= until)
			r->heap[0].time = record_time(record);
		else
			r->heap[0] = r->heap[--r->heap_n];
		sift_down(r, 0);
		if (n == BATCH) {
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

__u64 rings_taken(const struct rings *r)
{
	return r->taken;
}

int rings_fd(const struct rings *r)
{
	return r->epoll_fd;
}

unsigned int rings_delay_ms(const struct rings *r)
{
	return r->delay_ms;
}
