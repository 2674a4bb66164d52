/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One event of a struct perf_events, on one CPU. */
#ifndef IBSCOPE_CPU_EVENT_H
#define IBSCOPE_CPU_EVENT_H

#include "base/err.h"
#include "base/pin_file.h"
#include "perf_total.h"

#include <linux/perf_event.h>
#include <stddef.h>

struct cpu_event {
	unsigned int cpu;
	int fd, link_fd, second_fd; /* -1: not open */
	__u32 link_id;		    /* of the kernel; 0: none, or unknown */
	struct pin_file pin;	    /* of the link */
	/* measures time enabled if that of the event is only its cgroup's; -1: not open */
	int clock_fd;
	struct perf_event_mmap_page *ring; /* NULL: throttling is unknown */
	/* before the current period: samples, and the corresponding count plus remainder */
	__u64 samples_before, counted_before;
	__u64 enabled_ns, followed_ns; /* time enabled, now and at the last check */
	/* as read last: time enabled for its cgroup, of that on the PMU, and the count */
	__u64 own_ns, running_ns, counted;
	bool fresh;	/* enabled_ns was read since the last check */
	bool begun;	/* was enabled once */
	__u64 since_ns; /* enabled time at which it seems to have stopped */
	bool stalled;
};

struct perf_events {
	struct perf_event_attr attr, second; /* second.size 0: none */
	char *event;			     /* for messages */
	int cgroup;			     /* directory fd; -1: events always count */
	struct cpu_event *ev;
	size_t n, n_open;
	int prog_fd; /* -1: none attached */
	bool use_link, enabled;
	bool ends;			 /* see perf_events_let_end() */
	const char *pin_dir;		 /* NULL: links are not pinned */
	struct perf_events_total closed; /* counts of closed events */
	__u64 throttled;
	bool ring_warned, pin_warned;
};

#define CLOSED_EVENT(cpu_)   \
	((struct cpu_event){ \
		.cpu = (cpu_), .fd = -1, .link_fd = -1, .second_fd = -1, .clock_fd = -1 })

int cpu_event_attach(const struct perf_events *pe, struct cpu_event *ev, struct err *err);
/* Return: 0, also if there is nothing to pin, or a negative errno, logged if the last try succeeded. */
int cpu_event_pin(struct perf_events *pe, struct cpu_event *ev);
/* False if its link must be pinned, and is not. */
bool cpu_event_is_pinned(const struct perf_events *pe, struct cpu_event *ev);
void cpu_event_unpin(const struct perf_events *pe, struct cpu_event *ev);
/* Enable for the first time; later the event must be reopened. */
int cpu_event_enable(const struct perf_events *pe, struct cpu_event *ev, struct err *err);
/* Open the event, disabled. Returns 0 for an offline CPU, too: the event stays closed. */
int cpu_event_open(struct perf_events *pe, struct cpu_event *ev, struct err *err);
/* Add the counts of an event to @t. Return: false if it cannot be read. */
bool cpu_event_read(const struct perf_events *pe, struct cpu_event *ev,
		    struct perf_events_total *t);
void cpu_event_close(struct perf_events *pe, struct cpu_event *ev);

#endif
