/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that a recording describes, and their state when it began. */
#ifndef IBSCOPE_TASK_EVENTS_H
#define IBSCOPE_TASK_EVENTS_H

#include "trace.h"

/* A set of processes. The zero value: all. */
struct task_choice {
	unsigned char *pids; /* one bit each; NULL: all */
	bool follow;	     /* also their children */
};

/* @n 0 chooses all. Return: 0. */
int task_choice_init(struct task_choice *c, const __u32 *tgids, size_t n, bool follow);
bool task_choice_has(const struct task_choice *c, __u32 tgid);
void task_choice_add(struct task_choice *c, __u32 tgid);
void task_choice_free(struct task_choice *c);

/* Return: 0 to continue, or a negative errno with @err. */
typedef int trace_event_cb(const struct trace_event *ev, void *arg, struct err *err);

/**
 * task_events_now() - report the current thread names and accessible maps from /proc
 * @root: prefix of the file system, "" for the real one
 * @data: also report maps of memory that is not executable
 * @time: time of the events
 *
 * Also reports the kernel's text and its modules, with their build ids, if the kernel shows addresses
 * (CAP_SYSLOG, kernel.kptr_restrict). Leaves out processes that exit or cannot be read.
 * Reads one file per thread and one per process, at some 20 us each.
 *
 * Return: 0; what @cb returned; or a negative errno with @err if there is no /proc.
 */
int task_events_now(const char *root, const struct task_choice *choice, bool data, __u64 time,
		    trace_event_cb *cb, void *arg, struct err *err);

/* The build id in a file of ELF notes, as /sys/kernel/notes. Return: its length; 0: none. */
unsigned int notes_build_id(const char *path, unsigned char id[20]);

#endif
