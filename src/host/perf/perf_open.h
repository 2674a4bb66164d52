/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens perf events on a CPU, and explains failures. */
#ifndef IBSCOPE_PERF_OPEN_H
#define IBSCOPE_PERF_OPEN_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stddef.h>

/* Open an event for all tasks of @cpu. Return: a file, closed on exec, or -1 with errno. */
int perf_open(const struct perf_event_attr *attr, unsigned int cpu);

/*
 * The same, but only for tasks of a cgroup and its descendants; @cgroup: fd of its directory, or
 * -1: all. @leader: leader of the event's group; -1: none.
 */
int perf_open_cgroup(const struct perf_event_attr *attr, unsigned int cpu, int cgroup, int leader);

/* The same for an event that counts nothing, but is enabled as long as the CPU is online. */
int perf_open_clock(unsigned int cpu);

/**
 * perf_open_explain() - describe a failure and its remedy
 * @error: the errno of perf_open()
 * @event: as the user wrote it
 *
 * Return: -@error, with @err.
 */
int perf_open_explain(struct err *err, int error, unsigned int cpu, const char *event);

/* Ring buffer of a perf event (perf_event_open(2)). */

/* Map @pages for records, a power of two. Return: NULL with errno; EPERM: above the mlock limit. */
struct perf_event_mmap_page *perf_ring_map(int fd, size_t pages);
/* Accepts NULL. */
void perf_ring_unmap(struct perf_event_mmap_page *ring);
/* Bytes of memory, including the first page. */
size_t perf_ring_bytes(const struct perf_event_mmap_page *ring);

/* Complete records lie between the reader's ring->data_tail and this position. */
__u64 perf_ring_head(const struct perf_event_mmap_page *ring);
/* Copy from a position; it may wrap. */
void perf_ring_copy(const struct perf_event_mmap_page *ring, __u64 at, void *dst, size_t len);
/* Let the kernel overwrite everything before @tail. */
void perf_ring_done(struct perf_event_mmap_page *ring, __u64 tail);
/* Number of throttlings in the records since the last call, which are consumed; accepts NULL. */
__u64 perf_ring_throttled(struct perf_event_mmap_page *ring);

#endif
