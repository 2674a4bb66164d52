/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The buffer of records that the kernel shares with whoever opened an event (perf_event_open(2)). */
#ifndef IBSCOPE_PERF_RING_H
#define IBSCOPE_PERF_RING_H

#include <linux/perf_event.h>
#include <stddef.h>

/* @pages for records, a power of two. NULL with errno; EPERM: more than may be locked. */
struct perf_event_mmap_page *perf_ring_map(int fd, size_t pages);
/* Accepts NULL. */
void perf_ring_unmap(struct perf_event_mmap_page *ring);
/* What it takes of memory, its first page included. */
size_t perf_ring_bytes(const struct perf_event_mmap_page *ring);

/* Whole records lie between the tail, which is the reader's (ring->data_tail), and this. */
__u64 perf_ring_head(const struct perf_event_mmap_page *ring);
/* What is there at a position; it may wrap. */
void perf_ring_copy(const struct perf_event_mmap_page *ring, __u64 at, void *dst, size_t len);
/* The kernel may write over all that is before @tail. */
void perf_ring_done(struct perf_event_mmap_page *ring, __u64 tail);

#endif
