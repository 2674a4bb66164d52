/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of this room. */
#ifndef IBSCOPE_SESSION_PRIVATE_H
#define IBSCOPE_SESSION_PRIVATE_H

#include "session.h"
#include "cgroup_select/cgroup_select.h"

/* What the options mean on this machine. */
struct setup {
	struct sampling_opts options;
	struct cpu_info cpu;
	unsigned int *cpus;
	struct session_event event[SESSION_EVENTS];
};

/* State of an event that outlives session_apply(). */
struct running {
	__u64 bound;	 /* cgroup that events are bound to; 0: none */
	bool unbindable; /* the kernel cannot bind events */
	bool warned_throttled, warned_shared, warned_other, warned_rate;
};

/* "v2", or the controller of a v1 hierarchy; "": none */
struct hierarchy {
	char name[32];
};

/* True if processors may not deliver all samples of it. */
bool period_is_short(__u64 period);

struct session;

/*
 * Refuse a short period or a high frequency whose samples would take too much of a busy CPU's time, by
 * their cost, which is measured. Nothing may sample yet.
 */
int session_check_rate(struct session *s, struct err *err);

struct session {
	struct setup *setup; /* NULL: not open */
	struct running running[SESSION_EVENTS];
	struct cgroup_tree *tree;
	struct container_names *names;
	struct cgroup_select *cgroups;
	uint64_t seen_changes;		 /* changes of the tree at the last update of `cgroups` */
	double updated_s, update_cost_s; /* time and cost of that update */
	bool select_failed;		 /* a sampler rejected it */
	struct command *command;
	bool command_runs;
	__u64 command_cgroup; /* 0: none, or not measured */
	/* Without a cgroup: its process, and those of the commands of other ranks. */
	__u32 *command_pids;
	int status; /* exit status of the command, or of the failed start, as in a shell */
	struct session_strata *strata; /* NULL: one event samples all the time */
	bool usage;		       /* wrong user input, not the machine, caused the failure */
	struct hierarchy kept;	       /* of --cgroup-hierarchy auto, also when closed */
};

#define for_each_event(e, s)                              \
	for (struct session_event *e = (s)->setup->event; \
	     e < (s)->setup->event + (s)->setup->options.n_events; e++)

/* Shortest software clock period that is worth a timer interrupt. */
#define SIM_MIN_PERIOD_NS 10000
#define SIM_MIN_FAULTS	  16

/* Set *@usage if the error @ret can only be caused by user input, and return it. */
static inline int usage_error(bool *usage, int ret)
{
	*usage = ret == -EINVAL || ret == -ERANGE || ret == -E2BIG;
	return ret;
}

/* *@out stays NULL on failure. Return: as session_check(). */
int setup_new(const struct sampling_opts *o, struct setup **out, bool *usage, struct err *err);
void setup_free(struct setup *s); /* accepts NULL */

/* Open the hierarchy of --cgroup-hierarchy as s->tree. */
int session_open_tree(struct session *s, struct err *err);
/* Resolve --cgroup, --container and --filter; the tree must be open. */
int session_select_cgroups(struct session *s, struct err *err);
/* The same while sampling. Return: also 1 if a program lacks the tests. */
int session_reselect_cgroups(struct session *s, struct err *err);
/* fd of the directory of the cgroup to bind an event to, as in struct sampler_opts. */
int session_bound_cgroup(struct session *s, struct session_event *e);

/*
 * Sampling in strata, beside what session.h has. _open(): after the event's sampler, nothing if the plan has no
 * strata; _begin(): start the first slice.
 */
int session_strata_open(struct session *s, struct err *err);
void session_strata_close(struct session *s);
/* The sampler of the miss stratum; NULL: none. */
struct sampler *session_strata_sampler(const struct session *s);
int session_strata_begin(struct session *s, struct err *err);

static inline struct running *running(struct session *s, const struct session_event *e)
{
	return &s->running[e - s->setup->event];
}

/* Count a signal that is pending, at once: as long as it is, a second one is lost. */
void session_take_signal(struct session_signals *signals, int sigfd);

/* Create the process for the command, before any cgroup is read. */
int session_prepare_command(struct session *s, struct err *err);
/* Select the command, if nothing else is selected. */
void session_select_command(struct session *s);

#endif
