/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens performance events, and reads them on all CPUs. */
#ifndef IBSCOPE_PERF_H
#define IBSCOPE_PERF_H

#include "base/cpulist.h"
#include "base/err.h"
#include "perf_total.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_events;

/* Opens perf events on a CPU, and explains failures. */

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

/**
 * perf_users() - name who else may use the PMU
 * @root: prefix of the file system, "" for the real one
 * @buf:  "perf (12), AMDuProfCLI-bin (34)": processes with performance events, of whatever PMU, that
 *	  this one may look at, and users in the kernel that are known; "" if there are none
 *
 * Reads the files of all processes. Return: how many there are.
 */
unsigned int perf_users(const char *root, char *buf, size_t size);

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

/* Perf events, one per CPU of a list: sampling, with a BPF program attached, or only counting. */

/**
 * perf_events_open() - open one disabled event per CPU
 * @attr:  used as is, except `disabled`; without a period or frequency they only count
 * @cpus:  logical CPUs; offline ones wait for perf_events_follow()
 * @cgroup: directory fd of a cgroup: count only while its or its descendants' tasks run; not kept
 *          open; -1: always count
 * @event: as the user wrote it, for messages
 * @second: an event that is enabled and read together with each; NULL: none
 *
 * Return: 0, or a negative errno with @err saying which CPU, why, and what to do:
 * -ENODEV  none of @cpus is online
 */
int perf_events_open(const struct perf_event_attr *attr, const unsigned int *cpus, size_t n_cpus,
		     int cgroup, const char *event, const struct perf_event_attr *second,
		     struct perf_events **out, struct err *err);

/**
 * perf_events_set_cgroup() - count while tasks of another cgroup run
 * @cgroup: as for perf_events_open()
 *
 * All events are reopened. Counts are kept.
 *
 * Return: 0, or a negative errno with @err; events then always count.
 */
int perf_events_set_cgroup(struct perf_events *pe, int cgroup, struct err *err);
bool perf_events_has_cgroup(const struct perf_events *pe);

/* Attach @prog_fd to every event, by bpf_link if @use_link, else by ioctl. */
int perf_events_attach(struct perf_events *pe, int prog_fd, bool use_link, struct err *err);

/**
 * perf_events_pin_links() - keep sampling if we are killed
 * @dir: in bpffs, for one file per CPU until the event is closed; not copied
 *
 * Only for events attached by links.
 */
void perf_events_pin_links(struct perf_events *pe, const char *dir);

/**
 * perf_events_mark() - what one must know to count the samples of events by their links alone
 * @fn: called for each event that has a link: the link's id, and what the event had counted of a period
 *      when its last one began, below 2^32
 * @samples: add to it the whole periods that each event counts above that, for perf_events_total.samples
 *
 * Return: false if that cannot be known: for events of a cgroup or without a link, or longer periods.
 */
bool perf_events_mark(const struct perf_events *pe,
		      void (*fn)(void *ctx, unsigned int cpu, __u32 link, __u32 rest), void *ctx,
		      __u64 *samples);

/*
 * Let the program end an event by returning 1, once it is enabled. For kernels where overflows that the
 * program does not pass on do not count (struct kernel_features.limit_after_prog).
 */
void perf_events_let_end(struct perf_events *pe);

/*
 * Pin links again whose pins others have removed or replaced. @missing: set to the number of those that
 * cannot be pinned. Return: the number of those that were repaired.
 */
unsigned int perf_events_check_links(struct perf_events *pe, unsigned int *missing);

/*
 * Enable all events. After perf_events_disable() they are reopened, as CPUs may have been offline.
 * Return: 0, or a negative errno with @err; perf_events_follow() retries events that failed.
 */
int perf_events_enable(struct perf_events *pe, struct err *err);
/*
 * Continue after perf_events_disable() without opening events again, each with a new period. Only if no CPU was
 * offline in between: its event would look alive and never sample. Return: as perf_events_enable().
 */
int perf_events_resume(struct perf_events *pe, struct err *err);
/* Disable all events. Then the program does not run, and counts include incomplete periods. */
void perf_events_disable(struct perf_events *pe);

/* True between the two, whatever ended single events. */
bool perf_events_are_enabled(const struct perf_events *pe);

/**
 * perf_events_set_period() - change the period of all events, including those opened later
 *
 * Not for events by frequency. Each is disabled, read, changed and enabled again, so that samples
 * of both periods are counted exactly. An event whose CPU has been offline is reopened.
 *
 * Return: 0, or a negative errno with @err, and the period is unchanged.
 */
int perf_events_set_period(struct perf_events *pe, __u64 period, struct err *err);

__u64 perf_events_period(const struct perf_events *pe); /* 0: by frequency */

/**
 * perf_events_follow() - close and open events as CPUs go offline and come online
 * @online: CPUs online now
 *
 * The kernel removes an event from a CPU that goes offline and does not put it back: it must be closed
 * and a new one opened. Its counts are kept. If a CPU was offline between two calls, its event has
 * stopped counting.
 *
 * Return: 0, or what opening an event failed with, @err saying why; the next call retries
 * that CPU.
 */
int perf_events_follow(struct perf_events *pe, const struct cpulist *online, struct err *err);

/*
 * Reopen all events. Counts are kept, and CPUs that were offline since the last
 * perf_events_follow() are reported. Return: as perf_events_follow().
 */
int perf_events_renew(struct perf_events *pe, struct err *err);

/* Number of CPUs sampled now. */
size_t perf_events_n(const struct perf_events *pe);

/* Read all counts: one read(2) per CPU, served by that CPU. */
void perf_events_read(struct perf_events *pe, struct perf_events_total *out);

/* How long an event was enabled, of that on the PMU, and what it counted then. */
struct perf_share {
	__u64 enabled_ns, running_ns, counted;
};

/**
 * perf_events_shares() - the share of each open event
 *
 * As read last, by any of these functions. A reopened event begins from 0.
 */
void perf_events_shares(const struct perf_events *pe,
			void (*fn)(void *ctx, unsigned int cpu, const struct perf_share *now),
			void *ctx);

/**
 * perf_events_realign() - count periods exactly again after another user has left the PMU
 * @enabled: set to true if they were enabled, and must be enabled again
 *
 * Each time an event leaves the PMU its count gets out of step with its samples, so that its final
 * count may be one period too high. All are closed and reopened, disabled; `exact` then covers what
 * follows. Not for events by frequency.
 *
 * Return: as perf_events_follow(); the others are realigned.
 */
int perf_events_realign(struct perf_events *pe, bool *enabled, struct err *err);

/**
 * perf_events_throttled() - number of throttlings since open, over all CPUs
 *
 * The kernel reports them only in an event's ring buffer, so each event has one of a page. Call
 * at least once a second; throttlings that did not fit are in the kernel's count of lost records.
 */
__u64 perf_events_throttled(struct perf_events *pe);

/* Accepts NULL. Close all events, links and mappings. */
void perf_events_close(struct perf_events *pe);

#endif
