/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that the command's processes begin and end: include/ibscope/region.h writes them to files
 * in a directory of ours, named in the environment. Their contents are not trusted. Other users
 * cannot enter the directory.
 */
#ifndef IBSCOPE_REGIONS_H
#define IBSCOPE_REGIONS_H

#include "trace/tasks.h"

#define REGIONS_DIR_MAX 64 /* size of a directory name including its NUL */

/**
 * regions_dir_new() - create a directory for commands that start from now on, and export it in our
 * environment
 *
 * Removes directories of crashed instances.
 *
 * Return: 0 with its name in @dir; or a negative errno.
 */
int regions_dir_new(char dir[REGIONS_DIR_MAX]);

/* Remove a directory and its contents. "": none. */
void regions_dir_remove(const char *dir);

/* The functions below accept NULL and then do nothing. */
struct regions;

struct regions *regions_new(void);

/* Also collect from this directory. regions_free() removes it. */
void regions_add(struct regions *r, const char *dir);
void regions_free(struct regions *r);

/* Read new events. @last: writing has ended. */
void regions_refresh(struct regions *r, bool last);

/* Time of the next event, CLOCK_MONOTONIC; UINT64_MAX: none. */
__u64 regions_peek(const struct regions *r);

/* The next event in order of time; its strings live as long as @r. There must be one. */
void regions_next(struct regions *r, struct trace_event *ev);

/* Report all threads' current regions with the given time. Return: 0, or what @cb returned. */
int regions_now(const struct regions *r, __u64 time, trace_event_cb *cb, void *arg,
		struct err *err);

/* Call when a thread has exited or called exec. */
void regions_forget(struct regions *r, __u32 tid);

/* Maximum time until the next regions_refresh(), so that rings do not overflow; seconds. */
double regions_delay_s(const struct regions *r);

/* Events that were overwritten before they were read, or invalid. */
__u64 regions_lost(const struct regions *r);

#endif
