/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Process events that give samples their names: creation, renaming and exit of threads, memory
 * mappings. The kernel writes them to buffers of one dummy event per CPU. They cost about a
 * microsecond per such system call, and 68 KiB of kernel memory per CPU.
 */
#ifndef IBSCOPE_SIDEBAND_H
#define IBSCOPE_SIDEBAND_H

#include "trace/tasks.h"

struct sideband;

struct sideband_opts {
	/* All online CPUs: processes start and map files on any CPU, not only sampled ones. */
	const unsigned int *cpus;
	size_t n_cpus;
	/* Filters here, not in the kernel. Children are added when created. */
	struct task_choice *choice;
	/* Record cgroups: perf's cgroup ids are v2 ids, like those of the samples. */
	bool cgroups;
	bool data; /* also mappings of non-executable memory: one per mmap() or mprotect() */
};

/**
 * sideband_open() - start collecting events
 *
 * Ids of processes and threads are those of our pid namespace.
 *
 * Return: 0, or a negative errno with @err.
 */
int sideband_open(const struct sideband_opts *opts, struct sideband **out, struct err *err);
void sideband_close(struct sideband *sb); /* accepts NULL */

/* Readable when a buffer is a quarter full. */
int sideband_fd(const struct sideband *sb);

/* Read new records; sideband_next() returns only those. */
void sideband_refresh(struct sideband *sb);

/* Time of the next record, returned or filtered out, CLOCK_MONOTONIC; UINT64_MAX: none. Accepts NULL. */
__u64 sideband_peek(struct sideband *sb);

/**
 * sideband_next() - the earliest event of all CPUs
 *
 * Return: true with *ev, its strings valid until the next call; or false.
 */
bool sideband_next(struct sideband *sb, struct trace_event *ev);

/*
 * Number of lost events that no event told yet: the kernel tells a loss with the next event of its CPU, which may never
 * come. They count as told from now on. Accepts NULL.
 */
__u64 sideband_untold(struct sideband *sb);

/* Number of lost events; before Linux 6.0 without the last ones. */
__u64 sideband_lost(const struct sideband *sb);

#endif
