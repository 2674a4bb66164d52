/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the rings of a sampler to a recording: the samples, and before each what is to be known of it. */
#ifndef IBSCOPE_CAPTURE_H
#define IBSCOPE_CAPTURE_H

#include "base/u64_map.h"
#include "record_output.h"
#include "regions.h"
#include "session/session.h"
#include "sideband.h"

#define CAPTURE_UNNAMED 1024

/* The zero value is closed. */
struct capture {
	struct sampling *sampling;
	struct sampling *second;	/* of the other event; NULL: one event */
	struct output *output;		/* the caller opens it after capture_begin() */
	__u64 unnamed[CAPTURE_UNNAMED]; /* cgroups of containers whose names the file lacks */
	size_t n_unnamed;
	struct task_choice choice;
	struct sideband *sideband;
	bool data;
	struct regions *regions; /* the caller's; NULL: none */
	unsigned int *online;
	struct u64_map slabs; /* caches that were listed */
	__u64 last_cgroup;    /* whose name the file has */
	__u64 until;	      /* up to which time all is written */
};

/*
 * Keep from now on what happens beside samples. @s, and @second unless it is NULL: open; they outlive the
 * capture. @data: also maps of memory that is not executable. Return: 0 or a negative errno with @err;
 * capture_close() is due in either case.
 */
int capture_begin(struct capture *c, struct sampling *s, struct sampling *second, bool data,
		  struct err *err);

/*
 * Write what exists already, with the time of the last event that was written; what changed since then
 * is written twice, which does no harm. To be called for each file. Return: 0 or a negative errno with
 * @err.
 */
int capture_state(struct capture *c, struct err *err);

/*
 * A record shows in its ring a little after the time that it bears, and more than a little where a
 * hypervisor takes the CPU away in between. What is younger waits, so that the file is in order.
 */
#define CAPTURE_SETTLE_NS 1000000

/* Write all that happened until then; UINT64_MAX - 1: all. Return: 0 or a negative errno with @err. */
int capture_drain(struct capture *c, __u64 until, struct err *err);

/* Runtimes write some names after the container has started: write those that are known by now. */
int capture_late_names(struct capture *c, struct err *err);

/* Give an event the path and names of a cgroup. Return: false if it is in a container that has no name yet. */
bool capture_name_cgroup(const struct sampling *s, __u64 id, struct trace_event *ev);

void capture_close(struct capture *c);

#endif
