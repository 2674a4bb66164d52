/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes samples from the rings to a recording, each preceded by the events it depends on. */
#ifndef IBSCOPE_CAPTURE_H
#define IBSCOPE_CAPTURE_H

#include "allocs.h"
#include "base/u64_map.h"
#include "record_output.h"
#include "regions.h"
#include "session/session.h"
#include "sideband.h"

#define CAPTURE_UNNAMED 1024

/* The zero value is closed. */
struct capture {
	struct session *session;
	struct output *output;		/* opened by the caller after capture_begin() */
	__u64 unnamed[CAPTURE_UNNAMED]; /* cgroups of containers without a name in the file */
	size_t n_unnamed;
	struct task_choice choice;
	struct sideband *sideband;
	bool data;
	struct regions *regions; /* the caller's; NULL: none */
	struct allocs *allocs;	 /* likewise */
	unsigned int *online;
	struct u64_map slabs; /* listed caches */
	__u64 chains_lost;    /* samples whose call chain found no room in the kernel's map */
	__u64 last_cgroup;    /* last cgroup with a name in the file */
	__u64 until;	      /* everything up to this time is written */
	/* called with the records that are written, if it is set */
	void (*each)(const struct record_batch *b, void *arg);
	void *each_arg;
};

/*
 * Start collecting events other than samples. @s is open and outlives the capture. @data: also mappings
 * of non-executable memory. Return: 0 or a negative errno with @err; call capture_close() in either case.
 */
int capture_begin(struct capture *c, struct session *s, bool data, struct err *err);

/*
 * With strata, else they do nothing. _strata(): after session_start(). _slice(): end the slice when it
 * is due, or with @last after session_stop(), and write it; before capture_drain() of its samples.
 * Return: 0 or a negative errno with @err.
 */
void capture_strata(struct capture *c);
int capture_slice(struct capture *c, bool last, struct err *err);

/*
 * Write the existing state, with the time of the last event; changes since then are written twice,
 * which is harmless. Call it for each file. Return: 0 or a negative errno with @err.
 */
int capture_state(struct capture *c, struct err *err);

/*
 * A record appears in its ring slightly after its timestamp, or later if a hypervisor preempts the
 * CPU in between. Younger records wait, so that the file is in order.
 */
#define CAPTURE_SETTLE_NS 1000000

/* Write all events until @until; UINT64_MAX - 1: all. Return: 0 or a negative errno with @err. */
int capture_drain(struct capture *c, __u64 until, struct err *err);

/* Runtimes write some names after the container has started: write those that became known. */
int capture_late_names(struct capture *c, struct err *err);

/* Make later calls of capture_kept(), also in child processes, faster. */
void capture_prepare(void);

/*
 * Instead of the calls above: write a copy of rings that keep the last samples, with the names and mappings that
 * their processes have now, as if they had had them since @since_ns. @c: zero, except for its output and `each`. Return: 0 or a negative
 * errno with @err; call capture_close() in either case.
 */
int capture_kept(struct capture *c, struct session *s, struct rings *copy, __u64 since_ns,
		 struct err *err);

/* Set the names of a cgroup in an event. Return: false if its container has no name yet. */
bool capture_name_cgroup(const struct session *s, __u64 id, struct trace_event *ev);

void capture_close(struct capture *c);

#endif
