/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A running collector, shared by the files of this room. */
#ifndef IBSCOPE_COLLECTOR_PRIVATE_H
#define IBSCOPE_COLLECTOR_PRIVATE_H

#include "collector_settings.h"
#include "control.h"
#include "governor.h"
#include "work_limit.h"
#include "pins/pins.h"
#include "clock_watch.h"
#include "live_lines/served_lines.h"
#include "status/reading.h"
#include "sampler/sampler.h"

/* The governor of an event, its input and its last decision. */
struct budget {
	struct governor *governor; /* NULL: not yet */
	__u64 *seen;		   /* by CPU */
	double nmi_ns;
	enum ibs_nmi_source nmi_source;
	double measured_ns; /* measured nmi_ns; 0: not tried yet, below 0: cannot be measured */
	/* windows in which runs of the program were timed */
	bool timing;
	__u64 timed_ns, timed_runs, windows, window_runs;
	double window_ns;
	__u64 unseen;
	double unseen_ops_s;
	enum governor_state state;
	enum governor_reason reason;
	__u64 cost_ns; /* since budget_open() */
	double retry_s;
};

/* An event, and the state that belongs to it alone. */
struct collector_event {
	struct collector *c;
	struct pins *pins;
	struct ibs_meta_status
		status;	   /* members about all events are current only in that of the first */
	__u64 stats_seen;  /* samples whose program time is in `status` */
	__u64 off_pmu_ns;  /* time enabled but not on the PMU */
	bool shared;	   /* off_pmu_ns is growing */
	size_t unresolved; /* names of the selection that match nothing yet, as last logged */
	struct budget budget;
};

struct collector {
	struct collector_opts opts;
	struct collector_event event[COLLECTOR_EVENTS];
	unsigned int n_events;
	struct settings_source source;
	struct collector_settings set;
	struct session *session;
	struct live_options live;
	unsigned int live_bits; /* enum sampler_live: changed live since the options were read */
	struct ibs_push_counts pushed, pushed_before; /* pushed_before: by earlier collectors */
	struct reading_push push;		      /* as of collector_set_push() */
	bool pushes;				      /* it was called */
	struct control *control;		      /* NULL: no socket */
	struct control *users;			      /* the same of --user-socket */
	struct cgroup_pattern *jobs;		      /* NULL: none */
	bool running; /* was opened: invalid options no longer make it exit */
	int broken;   /* a negative errno: sampling cannot even resume with the old options */
	struct err broken_err;
	__u64 cpu_before_ns; /* CPU time of earlier collectors; wraps, sums do not */
	int stats_fd;	     /* -1: off */
	double next_tick_s, next_stats_s, next_fold_s, next_follow_s, next_pins_s, next_accept_s;
	unsigned int pins_repaired, pins_missing;
	struct err pins_err; /* why pins are missing, as logged; "": none are */
	/* the budget of all events */
	__u64 max_rate, rss_max;
	__u64 cost_before_ns; /* before this collector opened it */
	__u64 overhead_cost_ns; /* cost since then when the overhead was worked out, at overhead_at_s */
	double overhead_at_s, reported_s, next_rate_s, next_step_s;
	struct {
		unsigned int n; /* since then */
		double since_s;
	} changes; /* by requests */
	struct work_limit work;
	__u64 work_before_ns[IBS_WORK_N], delayed_before_ns[IBS_WORK_N]; /* of earlier collectors */
	__u64 warned_delayed_ns[IBS_WORK_N];
	double warned_s[IBS_WORK_N];
	struct clock_watch clock;
	bool clock_watched;
	struct served_lines lines;
	struct flight *flight;
	struct neighbour_watch *neighbours;
};

#define for_each_event(e, c) \
	for (struct collector_event *e = (c)->event; e < (c)->event + (c)->n_events; e++)

/* Does it keep hot lines? */
static inline bool keeps_lines(const struct collector *c)
{
	return c->set.sampling.sampler.line_sets;
}

/* Let the programs sample on. Call once a second, before anything else looks at the events. */
void collector_renew_lease(struct collector *c);

static inline const struct session_event *opened(const struct collector_event *e)
{
	return session_event(e->c->session, e - e->c->event);
}

/* Sampling within a budget: feeds the governor and carries out its decisions. */

/*
 * Call between session_open() and sampler_start(): measures the cost of a sample, if unknown, and
 * starts with the configured period, or with a longer one that was needed before. Return: 0 or a
 * negative errno with @err.
 */
int budget_open(struct collector *c, struct err *err);

/*
 * The same while sampling, after options have changed. Sampling resumes even if it was stopped.
 * @paused: set to whether sampling paused to measure the cost of a sample. Return: 0; or a negative
 * errno with @err if the collector must exit.
 */
int budget_reopen(struct collector *c, bool *paused, struct err *err);

/* Call at next_step_s. Return: 0; or a negative errno with @err if the collector must exit. */
int budget_step(struct collector *c, struct err *err);

/* Call after timing of program runs is switched on, and before it is switched off. */
void budget_timed(struct collector *c, bool on);

/* Fill in the budget's part of the events' status; the rest must be current. */
void budget_status(struct collector *c, double now_s);

void budget_close(struct collector *c);

/*
 * Start watching the machine: status_tick() detects, logs and counts clock changes, suspends and
 * other users of the PMU. Call after each session_open().
 */
void machine_watch_start(struct collector *c);

/* Names of groups, for readers that cannot look them up. */

/* Update the pinned names. */
void collector_names_update(struct collector_event *e);

/* Pin the slowest samples of a recording beside the names of their groups, in place of those of an older one. */
void collector_put_slowest(struct collector_event *e, const struct flight_slowest *slowest);

/* For sampler_fold_into(): another group with the same labels. @arg: a struct collector_event */
__u32 collector_heir(void *arg, __u32 slot);

/* Sampling with other options, without losing counters. */

/* Open and start sampling with c->set. Return: 0 or a negative errno with @err. */
int collector_begin(struct collector *c, struct err *err);

/**
 * collector_replace() - sample with other options and resume the counters
 * @fresh: parsed; taken over or closed
 *
 * Return: 0; or a negative errno with @err, *usage set if user input caused it. Then the old
 * options are in force again, or c->broken is set.
 */
int collector_replace(struct collector *c, struct collector_settings *fresh, bool *usage,
		      struct err *err);

/* Take over @fresh, without what only a start can change. Return: the old options, to be closed. */
struct collector_settings settings_replace(struct collector *c, struct collector_settings *fresh);

/* Call every few seconds while sampling: pins again what others have removed or replaced. Return: 0, or a
 * negative errno with @err, logged, if pins are missing.
 */
int collector_check_pins(struct collector *c, struct err *err);

/* Reload the options. Return: as collector_replace(). */
int reload_options(struct collector *c, bool *usage, struct err *err);

/* Neighbours that slow each other, judged once a second if the groups have containers and complexes. */

struct neighbour_watch *neighbour_watch_new(void);
void neighbour_watch_free(struct neighbour_watch *w); /* accepts NULL */

/* Forget everything. Call after each session_open(). */
void neighbour_watch_begin(struct collector *c);

/* Call once a second, with current names of the groups. */
void neighbour_watch_tick(struct collector *c);

/* Add what is pinned to a reading of the first event. */
void neighbour_watch_read(struct collector *c, struct reading *r);

/* Requests of `ibscope ctl`. */

/*
 * Listen for requests, unless --control is none. It is no error if the default socket cannot be
 * used. Return: 0 or a negative errno with @err.
 */
int requests_open(struct collector *c, struct err *err);

/* Log how many changes were not logged, if a minute has passed since the first, or @now. */
void requests_log_rest(struct collector *c, bool now);

/* Requests of users for the groups of their own cgroups. */

/* Listen for requests if --user-socket is given. Return: 0 or a negative errno with @err. */
int users_open(struct collector *c, struct err *err);
void users_close(struct collector *c);

/* The pinned status of the collector. */

/* Update the changing part of the status. */
int status_update(struct collector *c, double now_s, struct err *err);
/* Call once a second: updates the status and watches the machine. */
int status_tick(struct collector *c, double now_s, struct err *err);

/* Resume the pinned status and write its texts, after session_open(). */
void status_begin(struct collector_event *e);
/* Write the texts that change only when sampling begins. */
void status_texts(struct collector_event *e);
/* Write the options set live. */
void status_live(struct collector *c);

#endif
