/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens beside the samples and gives them names: threads that are made, renamed and end,
 * memory that is mapped. The kernel writes it to buffers of one event per CPU that
 * counts nothing. It costs what those system calls cost anyway and about a microsecond more, and
 * 68 KiB of kernel memory a CPU.
 */
#ifndef IBSCOPE_SIDEBAND_H
#define IBSCOPE_SIDEBAND_H

#include "trace/task_events.h"

struct sideband;

struct sideband_opts {
	/*
	 * All that are online: a process that is sampled on one CPU is made and maps its files on
	 * any.
	 */
	const unsigned int *cpus;
	size_t n_cpus;
	/* Others are left out here, not in the kernel. Children are added as they are made. */
	struct task_choice *choice;
	/* Perf's hierarchy is v2, and so the ids of its cgroups are those of samples. */
	bool cgroups;
	bool data; /* maps of memory that is not executable, too: one per mmap() or mprotect() */
};

/**
 * sideband_open() - from now on events are kept
 *
 * Ids of processes and threads are those of our pid namespace.
 *
 * Return: 0, or a negative errno with @err.
 */
int sideband_open(const struct sideband_opts *opts, struct sideband **out, struct err *err);
void sideband_close(struct sideband *sb); /* accepts NULL */

/* Readable when a buffer is a quarter full. */
int sideband_fd(const struct sideband *sb);

/* See what came since the last time; sideband_next() gives that and no more. */
void sideband_refresh(struct sideband *sb);

/* Time of what sideband_next() gives or leaves out next, CLOCK_MONOTONIC; UINT64_MAX: nothing. */
__u64 sideband_peek(struct sideband *sb);

/**
 * sideband_next() - the earliest event of all CPUs
 *
 * Return: true and *ev, whose strings live until the next call; or false.
 */
bool sideband_next(struct sideband *sb, struct trace_event *ev);

/* Events that found no room, before Linux 6.0 without the last ones. */
__u64 sideband_lost(const struct sideband *sb);

#endif
