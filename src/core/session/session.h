/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by all commands that sample: the selecting options, and a sampler made from them. */
#ifndef IBSCOPE_SAMPLING_H
#define IBSCOPE_SAMPLING_H

#include "cgroup/cgroup.h"
#include "task/command.h"
#include "machine/cpu.h"
#include "base/cpulist.h"
#include "machine/event.h"
#include "counts/rows.h"
#include "base/options.h"
#include "sampler/sampler.h"
#include "select/cgroup_select.h"
#include "select/plan.h"
#include "select/select_options.h"

enum source_option { SOURCE_AUTO, SOURCE_IBS, SOURCE_SIM };

/* The options; the zero value after sampling_init() is the default. */
struct sampling {
	struct event_spec event;
	char events[EVENT_TEXT_MAX]; /* all events of -e */
	/* which event of the list options_parse() takes, and their number */
	unsigned int nth_event, n_events, n_periods;
	bool takes_two; /* the program's command supports two events */
	struct event_rate rate;
	struct cpulist cpus;
	bool has_cpus;
	bool all;		/* -a, which matters with a command */
	enum ibs_metric metric; /* of --metric; IBS_METRIC_N: the event's default */
	enum source_option source;
	unsigned int sim_faults; /* simulation driven by 1: page faults, 0: the clock */
	struct sampler_opts opts;
	unsigned int labels; /* of --by */
	struct label_order order;
	struct select_options select;
	unsigned int stages; /* of --plan: 1 << enum plan_stage */
	bool stages_given;
	bool core_counters; /* count tagged ops even if no estimate needs it */
	char **argv;	    /* the command after "--"; NULL: none */
	const __u32 *ranks; /* commands of other ranks of an MPI job, measured as well */
	size_t n_ranks;
	struct command_signals signals;
	char hierarchy[32]; /* of --cgroup-hierarchy; "": auto */
	bool wait_for_names; /* accept cgroups and containers that do not exist yet */

	/* set by sampling_open() */
	struct cpu_info cpu;
	struct plan plan;
	__u64 bound;	 /* cgroup that events are bound to; 0: none */
	bool unbindable; /* the kernel cannot bind events */
	struct cgroup_tree *tree;
	struct container_names *names;
	struct cgroup_select *cgroups;
	uint64_t seen_changes;		 /* changes of the tree at the last update of `cgroups` */
	double updated_s, update_cost_s; /* time and cost of that update */
	bool select_failed;		 /* the sampler rejected it */
	struct sampler *sampler;
	unsigned int *cpu_array;
	char event_text[EVENT_TEXT_MAX];
	struct hist_info info;
	struct command *command;
	bool command_runs;
	__u64 command_cgroup; /* 0: none, or not measured */
	/* Without a cgroup: its process, and those of the commands of other ranks. */
	__u32 *command_pids;
	size_t n_command_pids;
	int status; /* exit status of the command, or of the failed start, as in a shell */
	bool usage; /* invalid user input caused the failure, not the machine */
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
 * Return: number of words before it, all if there is none; or -EINVAL with @err.
 */
int sampling_cut_command(struct sampling *s, int argc, char **argv, struct err *err);

/* select_options_check(), and derived values. Return: 0, or a negative errno with @err. */
int sampling_filter(struct sampling *s, struct err *err);

/**
 * sampling_explain() - print the plan, and the tests of --filter
 * @second: of two events, see sampling_open_both(); NULL: one event
 * @json: one object per event, without the tests
 *
 * Prints nothing if the machine cannot sample an event at its period.
 *
 * Return: an exit status; failures are reported.
 */
int sampling_explain(const struct sampling *s, const struct sampling *second, bool json);

/* Call after *s was moved by copying: fixes pointers into it. */
void sampling_moved(struct sampling *s);

/**
 * sampling_prepare() - check the options against the machine, and make the event's attributes
 *
 * Opens nothing; sampling_open() begins with it.
 *
 * Return: as sampling_open().
 */
int sampling_prepare(struct sampling *s, struct err *err);

/**
 * sampling_open() - open a sampler that is ready to start
 *
 * Logs what will be sampled and its memory use.
 *
 * Return: 0, or a negative errno with @err; s->usage is set if user input caused it. Call
 * sampling_close() in either case.
 */
int sampling_open(struct sampling *s, struct err *err);

/**
 * sampling_open_both() - the same for two events
 * @second: parsed from the same options, with nth_event 1; NULL: one event
 *
 * Return: as sampling_open(); s->usage is set for both. Call sampling_close_both() in either case.
 */
int sampling_open_both(struct sampling *s, struct sampling *second, struct err *err);
void sampling_close_both(struct sampling *s, struct sampling *second);

/**
 * sampling_start() - start sampling, then the command
 *
 * Return: 0, or a negative errno with @err; s->status is set if the command failed to start.
 */
int sampling_start(struct sampling *s, struct err *err);

/* For poll(): readable when the command has exited; -1 if there is none, or without pidfds. */
int sampling_command_fd(const struct sampling *s);
bool sampling_command_ended(const struct sampling *s);

/**
 * sampling_end() - wait for the command to exit
 * @interrupted: a SIGINT or SIGTERM has ended sampling, and is not pending
 * @ret:	 the result of sampling; a negative errno has been reported
 *
 * The command belongs to the user: it runs to its end even if sampling has ended before. A second
 * SIGINT or SIGTERM is passed on to it, and it has two seconds to exit.
 *
 * Return: an exit status: ours if we failed, else the command's.
 */
int sampling_end(struct sampling *s, bool interrupted, int ret);

/**
 * sampling_follow() - select cgroups and containers as they appear
 *
 * Call it after each cgroup_tree_update(), and at the time that it last returned.
 *
 * Return: seconds until the next call is due even if the tree does not change; INFINITY: never.
 */
double sampling_follow(struct sampling *s);

/**
 * sampling_unresolved() - names in --cgroup, --container and --filter that do not exist yet
 * @text: gets "--container web, --cgroup /a", truncated if needed
 *
 * Return: their number.
 */
size_t sampling_unresolved(const struct sampling *s, char *text, size_t size);

/* Changes that are possible while sampling continues, by option. */
enum sampling_change {
	SAMPLING_LATENCY = 1 << 0,   /* --min-lat, --max-lat */
	SAMPLING_PROCESSES = 1 << 1, /* -p */
	SAMPLING_CGROUPS = 1 << 2,   /* --cgroup, --container */
	SAMPLING_PERIOD = 1 << 3,    /* -c */
};

/* The enum sampler_live bits that such changes require. */
unsigned int sampling_change_needs(unsigned int what);

/**
 * sampling_change() - change options without losing samples, except those that bpf() calls for
 * cgroups may cost, which count as unseen
 * @s:	   open
 * @fresh: prepared; differs from @s only in options of @what, which are exchanged
 * @what:  enum sampling_change bits
 *
 * Return: 0; 1 if sampling must be reopened, because the program lacks the tests or the period
 * varies; or a negative errno with @err and nothing changed, fresh->usage set for invalid user
 * input.
 */
int sampling_change(struct sampling *s, struct sampling *fresh, unsigned int what, struct err *err);

/* Namer for rows_build(); @arg is the struct sampling. */
const char *sampling_cgroup_name(void *arg, __u64 id, enum label l);

/* Warn, once each, about conditions that make an interval incomplete. */
void sampling_warn(struct sampling *s, const struct snapshot *interval);

/* Undo sampling_open(); the options stay, so it can be called again. */
void sampling_release(struct sampling *s);

void sampling_close(struct sampling *s);

#endif
