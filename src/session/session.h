/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every command that samples shares: the options that select, and a sampler made from them. */
#ifndef IBSCOPE_SAMPLING_H
#define IBSCOPE_SAMPLING_H

#include "cgroup/cgroup.h"
#include "task/command.h"
#include "machine/cpu.h"
#include "base/cpulist.h"
#include "machine/event.h"
#include "view/hist.h"
#include "base/options.h"
#include "sampler/sampler.h"
#include "select/cgroup_select.h"
#include "select/plan.h"
#include "select/select_options.h"

enum source_option { SOURCE_AUTO, SOURCE_IBS, SOURCE_SIM };

/* Options as given; the zero value, but for what sampling_init() sets, is the default. */
struct sampling {
	struct event_spec event;
	char events[EVENT_TEXT_MAX]; /* all that were given with -e */
	/* of a list of events the one to take, by options_parse(), and how many there are */
	unsigned int nth_event, n_events, n_periods;
	bool takes_two; /* the command can sample two events */
	struct event_rate rate;
	struct cpulist cpus;
	bool has_cpus;
	bool all;		/* -a was given, which matters with a command */
	enum ibs_metric metric; /* of --metric; IBS_METRIC_N: the event's own */
	enum source_option source;
	unsigned int sim_faults; /* 1: the simulation is driven by page faults, 0: by the clock */
	struct sampler_opts opts;
	unsigned int labels; /* of --by */
	struct label_order order;
	struct select_options select;
	unsigned int stages; /* of --plan: 1 << enum plan_stage */
	bool stages_given;
	bool core_counters; /* count tagged ops also where no estimate needs it */
	char **argv;	    /* the command behind "--"; NULL: none */
	const __u32 *ranks; /* commands of other ranks of an MPI job, which are measured with it */
	size_t n_ranks;
	struct command_signals signals;
	char hierarchy[32]; /* of --cgroup-hierarchy; "": auto */
	bool wait_for_names; /* cgroups and containers that do not exist are no error: they may appear */

	/* made by sampling_open() */
	struct cpu_info cpu;
	struct plan plan;
	__u64 bound;	 /* the cgroup that events are bound to; 0: none */
	bool unbindable; /* the kernel refuses that */
	struct cgroup_tree *tree;
	struct container_names *names;
	struct cgroup_select *cgroups;
	uint64_t seen_changes;		 /* of the tree, when `cgroups` was last updated */
	double updated_s, update_cost_s; /* when that was, and what it took */
	bool select_failed;		 /* the sampler did not take it */
	struct sampler *sampler;
	unsigned int *cpu_array;
	char event_text[EVENT_TEXT_MAX];
	struct hist_info info;
	struct command *command;
	bool command_runs;
	__u64 command_cgroup; /* 0: none, or not what is measured */
	/* The same where it has no cgroup: its process, and those of the commands of other ranks. */
	__u32 *command_pids;
	size_t n_command_pids;
	int status; /* of the command, or why it could not be started: as a shell has it */
	bool usage; /* a failure was the user's input, not the machine */
	bool warned_throttled, warned_shared, warned_other;
};

extern const struct option_row sampling_options[];
extern const size_t sampling_n_options;

void sampling_init(struct sampling *s);

static inline bool sampling_of_fetch(const struct sampling *s)
{
	return event_of_fetch(&s->event);
}

/**
 * sampling_cut_command() - find "-- COMMAND" before options are parsed
 *
 * Return: how many words come before it, all if there is none; or -EINVAL with @err.
 */
int sampling_cut_command(struct sampling *s, int argc, char **argv, struct err *err);

/* select_options_check(), and what follows from it. Return: 0, or a negative errno with @err. */
int sampling_filter(struct sampling *s, struct err *err);

/**
 * sampling_explain() - print the plan, and what --filter tests
 * @second: of two events, see sampling_open_both(); NULL: there is one event
 * @json: as one object an event, without the tests
 *
 * Nothing is printed if the machine cannot sample an event at its period.
 *
 * Return: an exit status; a failure is reported.
 */
int sampling_explain(const struct sampling *s, const struct sampling *second, bool json);

/* After *s was copied to where it is now: what pointed into it does so again. */
void sampling_moved(struct sampling *s);

/**
 * sampling_prepare() - check the options against the machine, and make the event's attributes of them
 *
 * Opens nothing: what it made is sampling_open()'s, which begins with it.
 *
 * Return: as sampling_open().
 */
int sampling_prepare(struct sampling *s, struct err *err);

/**
 * sampling_open() - from options to a sampler that is ready to start
 *
 * Says on stderr what will be sampled and how much memory that takes.
 *
 * Return: 0, or a negative errno with @err; s->usage is set if it was the user's input. sampling_close() is
 * due in either case.
 */
int sampling_open(struct sampling *s, struct err *err);

/**
 * sampling_open_both() - the same of two events
 * @second: as parsed from the same options, with nth_event 1; NULL: there is one event
 *
 * Return: as sampling_open(); s->usage is set for both. sampling_close_both() is due in either case.
 */
int sampling_open_both(struct sampling *s, struct sampling *second, struct err *err);
void sampling_close_both(struct sampling *s, struct sampling *second);

/**
 * sampling_start() - start sampling, then the command
 *
 * Return: 0, or a negative errno with @err; s->status is set where the command is the reason.
 */
int sampling_start(struct sampling *s, struct err *err);

/* For poll(): readable when the command has ended; -1 without one, or where it cannot be had. */
int sampling_command_fd(const struct sampling *s);
bool sampling_command_ended(const struct sampling *s);

/**
 * sampling_end() - wait for the command's own end
 * @interrupted: a SIGINT or SIGTERM has ended sampling, and is not pending
 * @ret:	 the result of sampling; a negative errno is reported already
 *
 * The command is the user's: it runs to its end also when sampling has ended before. A second SIGINT
 * or SIGTERM is passed on to it, and it has two seconds to exit.
 *
 * Return: an exit status: ours if we failed, else the command's.
 */
int sampling_end(struct sampling *s, bool interrupted, int ret);

/**
 * sampling_follow() - select the cgroups and containers that came, if they are to be
 *
 * Call it after each cgroup_tree_update(), and when the time has come that it last said.
 *
 * Return: seconds until it is due although the tree does not change; INFINITY if never.
 */
double sampling_follow(struct sampling *s);

/**
 * sampling_unresolved() - what --cgroup, --container and --filter name that does not exist yet
 * @text: gets "--container web, --cgroup /a", as far as it fits
 *
 * Return: how many names.
 */
size_t sampling_unresolved(const struct sampling *s, char *text, size_t size);

/* What can be changed while sampling continues, by its options. */
enum sampling_change {
	SAMPLING_LATENCY = 1 << 0,   /* --min-lat, --max-lat */
	SAMPLING_PROCESSES = 1 << 1, /* -p */
	SAMPLING_CGROUPS = 1 << 2,   /* --cgroup, --container */
	SAMPLING_PERIOD = 1 << 3,    /* -c */
};

/* What selection.live must have for that: enum sampler_live bits. */
unsigned int sampling_change_needs(unsigned int what);

/**
 * sampling_change() - continue with other options, without losing a sample but those that entering
 *		       cgroups may cost, which are unseen
 * @s:	   open
 * @fresh: prepared; differs from @s in no option but those that @what says, which are exchanged
 * @what:  enum sampling_change bits
 *
 * Return: 0; 1 if sampling must be opened again for it, as the program does not test for that, or as
 * the period varies; or a negative errno with @err, fresh->usage telling whose fault it was. Then
 * nothing is changed.
 */
int sampling_change(struct sampling *s, struct sampling *fresh, unsigned int what, struct err *err);

/* Names for rows_build(); @arg is the struct sampling. */
const char *sampling_cgroup_name(void *arg, __u64 id, enum label l);

/* Warn, once each, of what makes an interval less than it seems. */
void sampling_warn(struct sampling *s, const struct snapshot *interval);

/* Undo sampling_open(); the options stay, so that it can be called again. */
void sampling_release(struct sampling *s);

void sampling_close(struct sampling *s);

#endif
