/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes a recording describes, and their state when it began. */
#ifndef IBSCOPE_TASK_EVENTS_H
#define IBSCOPE_TASK_EVENTS_H

#include "trace.h"

/* Processes that matter. The zero value: all. */
struct task_choice {
	unsigned char *pids; /* a bit each; NULL: all */
	bool follow;	     /* the children of those, too */
};

/* @n 0 chooses all. Return: 0. */
int task_choice_init(struct task_choice *c, const __u32 *tgids, size_t n, bool follow);
bool task_choice_has(const struct task_choice *c, __u32 tgid);
void task_choice_add(struct task_choice *c, __u32 tgid);
void task_choice_free(struct task_choice *c);

/* Return: 0 to go on, or a negative errno with @err. */
typedef int trace_event_cb(const struct trace_event *ev, void *arg, struct err *err);

/**
 * task_events_now() - the names of threads and the accessible maps that there are, from /proc
 * @root: prefix of the file system, "" for the real one
 * @data: also of memory that is not executable
 * @time: that the events are to bear
 *
 * Also the kernel's own text and its modules, with their build ids, where the kernel shows
 * addresses (CAP_SYSLOG, kernel.kptr_restrict). What ends or may not be read meanwhile is left out.
 * Reads one file a thread and one a process: some 20 us each.
 *
 * Return: 0; what @cb returned; or a negative errno with @err if there is no /proc.
 */
int task_events_now(const char *root, const struct task_choice *choice, bool data, __u64 time,
		    trace_event_cb *cb, void *arg, struct err *err);

/* The build id in a file of ELF notes, as /sys/kernel/notes. Return: its length; 0: none. */
unsigned int notes_build_id(const char *path, unsigned char id[20]);

#endif
