/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One perf event on each of a list of CPUs, with a BPF program on it. */
#ifndef IBSCOPE_PERF_EVENTS_H
#define IBSCOPE_PERF_EVENTS_H

#include "err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_events;

struct perf_event_count {
	unsigned int cpu;
	__u64 count;	  /* in units of the event, as of the last sample or stop */
	__u64 enabled_ns; /* since the event was enabled */
	__u64 running_ns; /* of that, on the PMU; less means another user shares it */
};

/**
 * perf_events_open() - open one disabled event a CPU
 * @attr:  used as is, but for `disabled`
 * @cpus:  logical CPUs; one that went offline meanwhile is skipped and logged
 * @event: as the user wrote it, for messages
 *
 * Return: 0, or a negative errno with @err saying which CPU, why, and what to do:
 * -ENODEV  none of @cpus is online
 */
int perf_events_open(const struct perf_event_attr *attr, const unsigned int *cpus, size_t n_cpus,
		     const char *event, struct perf_events **out, struct err *err);

/* Attach @prog_fd to every event, by bpf_link where @use_link, else by ioctl. */
int perf_events_attach(struct perf_events *pe, int prog_fd, bool use_link, struct err *err);

int perf_events_enable(struct perf_events *pe, struct err *err);
/* After it no program of ours runs, and counts include the last, unfinished period. */
void perf_events_disable(struct perf_events *pe);

size_t perf_events_n(const struct perf_events *pe);

/* Counts of the @i-th event; 0, or a negative errno. */
int perf_events_read(struct perf_events *pe, size_t i, struct perf_event_count *out);

/**
 * perf_events_throttled() - throttlings since open, over all CPUs
 *
 * The kernel announces them only in an event's ring buffer, so each event has one of a page. Call
 * at least once a second; throttlings that did not fit are counted by the kernel's own tally of
 * lost records.
 */
__u64 perf_events_throttled(struct perf_events *pe);

/* Accepts NULL. No event, link or mapping is left. */
void perf_events_close(struct perf_events *pe);

#endif
