/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that the command's processes begin and end: include/ibscope/region.h writes them to files in a
 * directory of ours that the environment names. What is read there is not trusted. Other users cannot
 * enter the directory.
 */
#ifndef IBSCOPE_REGIONS_H
#define IBSCOPE_REGIONS_H

#include "trace/task_events.h"

#define REGIONS_DIR_MAX 64 /* of the name of a directory, with its final 0 */

/**
 * regions_dir_new() - make a directory for commands that start from now on, and enter it in our environment
 *
 * Removes what crashed instances left.
 *
 * Return: 0 with its name in @dir; or a negative errno.
 */
int regions_dir_new(char dir[REGIONS_DIR_MAX]);

/* Remove a directory and what is in it. "": none. */
void regions_dir_remove(const char *dir);

/* What the functions below take may be NULL: nothing happens there. */
struct regions;

struct regions *regions_new(void);

/* Collect from a directory too. It is removed by regions_free(). */
void regions_add(struct regions *r, const char *dir);
void regions_free(struct regions *r);

/* Read what came since the last time. @last: nothing more is written. */
void regions_refresh(struct regions *r, bool last);

/* Time of the next event, CLOCK_MONOTONIC; UINT64_MAX: none. */
__u64 regions_peek(const struct regions *r);

/* The next event in the order of time; its strings live as long as @r. Call it if there is one. */
void regions_next(struct regions *r, struct trace_event *ev);

/* The regions that threads are in now, with that time. Return: 0, or what @cb returned. */
int regions_now(const struct regions *r, __u64 time, trace_event_cb *cb, void *arg,
		struct err *err);

/* A thread has ended, or executes another program. */
void regions_forget(struct regions *r, __u32 tid);

/* When to call regions_refresh() again at the latest, so that rings do not overflow; seconds. */
double regions_delay_s(const struct regions *r);

/* Events that were overwritten before they were read, or invalid. */
__u64 regions_lost(const struct regions *r);

#endif
