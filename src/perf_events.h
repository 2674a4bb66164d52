/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One perf event on each of a list of CPUs, with a BPF program on it. */
#ifndef IBSCOPE_PERF_EVENTS_H
#define IBSCOPE_PERF_EVENTS_H

#include "cpulist.h"
#include "err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_events;

/* Over all CPUs, those that went offline meanwhile included. */
struct perf_events_total {
	unsigned int cpus;  /* sampled now */
	__u64 samples;	    /* whole periods counted; 0 if the period varies */
	__u64 counted;	    /* what the event counts: ops, cycles, ns */
	__u64 enabled_ns;   /* since the events were enabled */
	__u64 running_ns;   /* of that, on the PMU; less means another user shares it */
	bool exact;	    /* nothing was lost to the count of samples */
	__u64 went, came;   /* CPUs that went offline, and came (back) online, so far */
};

/**
 * perf_events_open() - open one disabled event a CPU
 * @attr:  used as is, but for `disabled`
 * @cpus:  logical CPUs; those that are offline wait for perf_events_follow()
 * @event: as the user wrote it, for messages
 *
 * Return: 0, or a negative errno with @err saying which CPU, why, and what to do:
 * -ENODEV  none of @cpus is online
 */
int perf_events_open(const struct perf_event_attr *attr, const unsigned int *cpus, size_t n_cpus,
		     const char *event, struct perf_events **out, struct err *err);

/* Attach @prog_fd to every event, by bpf_link where @use_link, else by ioctl. */
int perf_events_attach(struct perf_events *pe, int prog_fd, bool use_link, struct err *err);

/**
 * perf_events_pin_links() - let sampling go on if we are killed
 * @dir: in bpffs, where each CPU's link gets a file, until the event is closed; not copied
 *
 * Only of events attached by links.
 */
void perf_events_pin_links(struct perf_events *pe, const char *dir);

/*
 * Also after perf_events_disable(): events are opened anew then, as their CPUs may have gone and
 * come. Return: 0, or a negative errno with @err; perf_events_follow() tries those again that could
 * not be opened.
 */
int perf_events_enable(struct perf_events *pe, struct err *err);
/* After it no program of ours runs, and counts include the last, unfinished period. */
void perf_events_disable(struct perf_events *pe);

/**
 * perf_events_set_period() - of all events, also of those that open later
 *
 * Not for events by frequency. Each is disabled, read, changed and enabled again, so that samples of
 * either period are counted exactly. One whose CPU went and came is opened anew.
 *
 * Return: 0, or a negative errno with @err, and all have the old period.
 */
int perf_events_set_period(struct perf_events *pe, __u64 period, struct err *err);

__u64 perf_events_period(const struct perf_events *pe); /* 0: by frequency */

/**
 * perf_events_follow() - do what CPUs that went offline or came online need
 * @online: those that are now
 *
 * The kernel takes an event off a CPU that goes and does not put it back: it must be closed, and a
 * new one opened. What it counted is kept. That a CPU went and came between two calls shows in
 * its event, which stands still.
 *
 * Return: 0, or what opening an event failed with, @err saying why; that CPU is tried again at the
 * next call.
 */
int perf_events_follow(struct perf_events *pe, const struct cpulist *online, struct err *err);

/*
 * Close all events and open new ones. Counts are kept, and CPUs that went and came since the last
 * perf_events_follow() are told. Return: as there.
 */
int perf_events_renew(struct perf_events *pe, struct err *err);

/* CPUs that are sampled now. */
size_t perf_events_n(const struct perf_events *pe);

/* Reads all counts: one read(2) a CPU, answered by that CPU. */
void perf_events_read(struct perf_events *pe, struct perf_events_total *out);

/**
 * perf_events_realign() - count periods exactly again, once another user has left the PMU
 * @enabled: is set to whether they were enabled, and are to be again
 *
 * Each time that it came and went an event's count got out of step with its samples, so that what is
 * counted at its end may be a period too much. All are closed and opened anew, disabled; `exact` is
 * of what comes from here on. Not for events by frequency.
 *
 * Return: as perf_events_follow(); the others are realigned.
 */
int perf_events_realign(struct perf_events *pe, bool *enabled, struct err *err);

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
