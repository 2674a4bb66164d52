/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where intervals come from: our own sampler, the pins of a running collector, or a recording. */
#ifndef IBSCOPE_SOURCE_H
#define IBSCOPE_SOURCE_H

#include "top.h"
#include "base/err.h"

#include <poll.h>

struct annotate;
struct replay_opts;
struct sampling_opts;
struct trace;

#define SOURCE_FDS 2

struct top_source {
	struct top_source_info info;
	bool usage;	   /* wrong user input made open() fail */
	cgroup_namer name; /* its argument is the source */

	/*
	 * Begin, or begin anew with groups of these labels: what was counted is not in the next
	 * interval. A recording goes back by `back_ns` of its own time. Return: 0 or a negative
	 * errno with @err.
	 */
	int (*open)(struct top_source *s, unsigned int labels, struct err *err);
	/*
	 * Samples since the last call; @seconds should have passed. Return: 0, the caller frees
	 * *out; 1 if there is nothing, now; or a negative errno with @err.
	 */
	int (*read)(struct top_source *s, double seconds, struct snapshot *out, struct frame *frame,
		    struct err *err);
	/* What to poll for; NULL: nothing. Return: how many. */
	unsigned int (*fds)(struct top_source *s, struct pollfd *fds);
	/* After poll(); NULL: nothing to do. Return: seconds until it is due again. */
	double (*tick)(struct top_source *s);
	void (*close)(struct top_source *s);
	/*
	 * The samples of all the recording that are in the selected row of @t, by instruction. NULL: it keeps no
	 * samples. source_read_again() is due after it. Return: 0, the caller frees *out; or a negative errno with @err.
	 */
	int (*annotate)(struct top_source *s, struct top *t, struct annotate **out,
			struct err *err);
	double interval_s; /* how long the next interval will be: set by the caller before open() and read() */
	__u64 cpu_ns; /* of this process, at the last read */
	double speed; /* of a recording; 0: what has passed cannot be read again */
	__u64 back_ns;
};

/* @o: parsed and checked; must outlive the source. */
struct top_source *source_live(struct sampling_opts *o);

/* The event to show, if a collector samples both. One that the collector does not sample is refused. */
enum source_event { SOURCE_FIRST, SOURCE_OP, SOURCE_FETCH };

/* What a collector pins in @dir. Return: also -ESRCH if none is running. */
int source_pinned(const char *dir, enum source_event event, struct top_source **out,
		  struct err *err);

/* What the socket for users of a collector, --user-socket, answers. Return: also -ENOENT if there is none. */
int source_users(const char *path, enum source_event event, struct top_source **out,
		 struct err *err);

/* For both: whether counters of @metric are those of @event. */
static inline bool source_has(enum source_event event, enum ibs_metric metric)
{
	return event == SOURCE_FIRST || (event == SOURCE_FETCH) == ibs_metric_of_fetch(metric);
}

static inline int source_lacks(enum source_event event, struct err *err)
{
	return err_set(err, -EINVAL, "-e %s: the collector does not sample it",
		       event == SOURCE_FETCH ? "ibs_fetch//" : "ibs_op//");
}

/* @speed: 10 for ten seconds of the recording in one; @mangled: as in symbols_opts; @opts as for replay_open(). */
struct top_source *source_recording(struct trace *t, const struct replay_opts *opts,
				    const char *name, double speed, bool mangled);

/*
 * Open a recording with groups of other labels, and read again what @t keeps of it. Return: 0 or a
 * negative errno with @err.
 */
int source_read_again(struct top_source *s, struct top *t, struct err *err);

void source_close(struct top_source *s); /* accepts NULL */

#endif
