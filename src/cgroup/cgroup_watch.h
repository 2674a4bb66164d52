/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel reports of watched directories, and a budget of CPU time for acting on it. Anyone
 * who may make cgroups decides how much there is to do. When the budget is used up, events wait in
 * the kernel; if they are too many for its queue, the tree has to be read again, once.
 */
#ifndef IBSCOPE_CGROUP_WATCH_H
#define IBSCOPE_CGROUP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_watch {
	int inotify, epoll, timer; /* -1: nothing is watched */
	int64_t budget_ns;
	uint64_t refilled_ns, started_ns;
	bool paused, warned;
};

/* Where nothing can be watched it warns, and only keeps the budget. */
void cgroup_watch_open(struct cgroup_watch *w);
void cgroup_watch_close(struct cgroup_watch *w);

/* Readable when there are events and budget; -1 if nothing is watched. */
int cgroup_watch_fd(const struct cgroup_watch *w);

/* Watch the directory that @fd has open. Return: a watch or a negative errno. */
int cgroup_watch_add(struct cgroup_watch *w, int fd);
void cgroup_watch_remove(struct cgroup_watch *w, int wd);

/* Events of inotify(7). Return: bytes; 0 if there are none. */
size_t cgroup_watch_read(struct cgroup_watch *w, char *buf, size_t size);

/* Return: whether there is budget. Then its use is counted until cgroup_watch_end(). */
bool cgroup_watch_begin(struct cgroup_watch *w);
void cgroup_watch_end(struct cgroup_watch *w);
/* Between the two: is the budget used up? */
bool cgroup_watch_spent(const struct cgroup_watch *w);

#endif
