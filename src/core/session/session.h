/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sampling: the options of all commands that sample, and a session, which is what runs: samplers of
 * up to two events, the cgroups and containers that they select, and the command.
 */
#ifndef IBSCOPE_SESSION_H
#define IBSCOPE_SESSION_H

#include "cgroup/cgroup.h"
#include "task/command.h"
#include "event/cpu.h"
#include "base/cpulist.h"
#include "event/event.h"
#include "rows/rows.h"
#include "base/options.h"
#include "sampler/sampler.h"
#include "plan/plan.h"
#include "select/select_options.h"
#include "strata/strata.h"

#include <signal.h>

/* --- options --- */

#define SESSION_EVENTS 2 /* one of ibs_op, one of ibs_fetch */

/* Sampling in strata (strata/strata.h): where the machine can; else it fails with STRATA_ON. */
enum strata_option { STRATA_OFF, STRATA_AUTO, STRATA_ON, STRATA_OPTIONS };
#define STRATA_OPTION_CHOICES "off|auto|on"
#define STRATA_OPTION_HELP                                                                      \
	"alternate between all ops and, at a shorter period, only those that miss the L3, for " \
	"narrower intervals of what comes from memory; auto: where the machine can; default off"
const char *strata_option_name(unsigned int i);

enum source_option { SOURCE_AUTO, SOURCE_IBS, SOURCE_SIM };

/* An event of -e. */
struct sampling_event {
	struct event_spec spec;
	struct event_rate rate; /* of -c and -F */
	struct pins *pins;	/* as in struct sampler_opts */
	/* set by sampling_check() */
	unsigned int labels;
	enum ibs_metric metric;
};

/* Plain values. Copies share the lists of `select`; the default is set by sampling_init(). */
struct sampling_opts {
	struct sampling_event event[SESSION_EVENTS];
	unsigned int n_events, n_periods;
	char bad_period[41]; /* of -c: the error depends on the source */
	bool has_bad_period;
	char events[EVENT_TEXT_MAX]; /* all events of -e; "": not given */
	bool takes_two;		     /* the program's command supports two events */
	struct cpulist cpus;
	bool has_cpus;
	bool all;		/* -a, which matters with a command */
	enum ibs_metric metric; /* of --metric; IBS_METRIC_N: the event's default */
	enum source_option source;
	unsigned int sim_faults; /* simulation driven by 1: page faults, 0: the clock */
	/* what options set; the session completes a copy for each event */
	struct sampler_opts sampler;
	unsigned int labels; /* of --by */
	struct label_order order;
	struct select_options select;
	unsigned int live;   /* enum sampler_live: what session_apply() must be able to change */
	unsigned int stages; /* of --plan: 1 << enum plan_stage, or PLAN_AUTO */
	enum strata_option strata;
	bool strata_counters; /* of both in one set of counters: see sampler_turn() */
	bool core_counters;   /* count tagged ops even if no estimate needs it */
	bool any_period;      /* do not refuse one that costs too much: sampling_rate_check() */
	char **argv;	      /* the command after "--"; NULL: none */
	const __u32 *ranks;   /* commands of other ranks of an MPI job, measured as well */
	size_t n_ranks;
	struct command_signals signals;
	char hierarchy[32];  /* of --cgroup-hierarchy; "": auto */
	bool wait_for_names; /* accept cgroups and containers that do not exist yet */
};

/* The context is a struct sampling_opts. */
extern const struct option_row sampling_options[];
extern const size_t sampling_n_options;

void sampling_init(struct sampling_opts *o);
void sampling_free(struct sampling_opts *o);

static inline bool sampling_of_fetch(const struct sampling_opts *o)
{
	return event_of_fetch(&o->event[0].spec);
}

/**
 * sampling_cut_command() - find "-- COMMAND" before options are parsed
 *
 * Return: number of words before it, all if there is none; or -EINVAL with @err.
 */
int sampling_cut_command(struct sampling_opts *o, int argc, char **argv, struct err *err);

/* Check the options, and set what they imply for each event. Return: 0, or a negative errno with @err. */
int sampling_check(struct sampling_opts *o, struct err *err);

/* The selection of the n-th event, without cgroups, after sampling_check(). It points into @o. */
struct selection sampling_selection(const struct sampling_opts *o, unsigned int n);

/* True if options rather than the command decide what is measured. */
bool sampling_measures_others(const struct sampling_opts *o);

/**
 * sampling_explain() - print the plan of each event, and the tests of --filter
 * @json: one object per event, without the tests
 *
 * Prints nothing if the machine cannot sample an event at its period.
 *
 * Return: an exit status; failures are reported.
 */
int sampling_explain(const struct sampling_opts *o, bool json);

/* --- a session --- */

struct session;

/* An event of a session, as made from the options and the machine. */
struct session_event {
	const struct event_spec *spec;
	char text[EVENT_TEXT_MAX]; /* the event as planned */
	unsigned int labels;
	struct plan plan;
	/* of the miss stratum, if plan.strata */
	struct perf_event_attr miss_attr;
	char miss_text[EVENT_TEXT_MAX];
	struct hist_info info;
	struct sampler_opts opts;
	struct sampler *sampler; /* NULL: not open */
};

struct session *session_new(void);
void session_free(struct session *s); /* accepts NULL */

/**
 * session_check() - check the options against the machine
 * @usage: set to whether user input is wrong, not the machine
 *
 * Opens nothing; session_open() begins with it.
 *
 * Return: 0 or a negative errno with @err.
 */
int session_check(const struct sampling_opts *o, bool *usage, struct err *err);

/**
 * session_open() - open samplers that are ready to start, after closing those that were open
 * @o: copied; its lists must live as long as the session uses them
 *
 * Logs what will be sampled and its memory use; above a table on a terminal with -v only.
 *
 * Return: 0, or a negative errno with @err; see session_usage().
 */
int session_open(struct session *s, const struct sampling_opts *o, struct err *err);

/* Undo session_open(). */
void session_close(struct session *s);

/**
 * session_apply() - change the latency limits, processes, cgroups, containers and period of a
 * session without a command
 * @o: differs from the options in use only in these; as in session_open()
 *
 * No sample is lost, except those that bpf() calls for cgroups may cost, which count as unseen.
 *
 * Return: 0; 1 if the session must be opened again, because the program lacks the tests or the
 * period varies; or a negative errno with @err. Unless 0, nothing was changed.
 */
int session_apply(struct session *s, const struct sampling_opts *o, struct err *err);

/* enum sampler_live bits that session_apply() needs to change the options in use to @o. */
unsigned int session_apply_needs(const struct session *s, const struct sampling_opts *o);

/* True if wrong user input, not the machine, made the last call fail. */
bool session_usage(const struct session *s);

/* Start all events, then the command. Return: 0, or a negative errno with @err. */
int session_start(struct session *s, struct err *err);

/* Stop all events: snapshots taken afterwards are final and exact. */
void session_stop(struct session *s);

/* A slice of time in which one of two strata sampled, with what core counters counted in it. */
struct session_slice {
	enum stratum of;
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC: all samples of the slice are in between */
	__u64 ops, tags;
	__u64 period;
};

/*
 * Strata of records, which a reader of the slices combines. The samplers are those of the events; with
 * strata there is one more, of the miss stratum. _reach(): 1 << enum ibs_src of samples that both
 * strata take; 0: no strata. _start(): before session_start(). _now(): stratum and start of the
 * running slice. _due(): when to call _end(), which starts the next slice, in seconds of now_s();
 * INFINITY without strata. _end() with @last: after session_stop().
 *
 * Return of _end(): 1 and *out, 0 if the slice goes on, or a negative errno with @err.
 */
unsigned int session_samplers(const struct session *s);
struct sampler *session_sampler(const struct session *s, unsigned int n);
__u32 session_strata_reach(const struct session *s);
int session_slices_start(struct session *s, struct err *err);
struct session_slice session_slice_now(const struct session *s);
double session_slice_due(const struct session *s);
int session_slice_end(struct session *s, bool last, struct session_slice *out, struct err *err);

/*
 * Intervals of strata, of a session whose plan has them. _start(): before session_start(). _interval(): those after the
 * one that goes on are that long. _due(): when to call _turn(), which starts the next slice if that time has come, in
 * seconds of now_s(). Without strata they are INFINITY and nothing. _end(): the samples since the last call;
 * texts in its report live as long as the session is open.
 */
int session_strata_start(struct session *s, double interval_s, struct err *err);
void session_strata_interval(struct session *s, double interval_s);
double session_strata_due(const struct session *s);
int session_strata_turn(struct session *s, struct err *err);
int session_strata_end(struct session *s, struct snapshot *out, struct err *err);

/* sampler_tick() of all events. */
void session_tick(struct session *s);

/* False also after a failure of session_open(). */
bool session_is_open(const struct session *s);

/* Of an open session. */
const struct sampling_opts *session_options(const struct session *s);
const struct session_event *session_event(const struct session *s, unsigned int n);
const struct cpu_info *session_cpu(const struct session *s);
struct cgroup_tree *session_tree(const struct session *s);
struct container_names *session_names(const struct session *s);
struct command *session_command(const struct session *s); /* NULL: none */
__u64 session_command_cgroup(const struct session *s);	  /* 0: none, or not measured */

/* For poll(): readable when cgroups have changed; -1: there is nothing to wait for. */
int session_fd(const struct session *s);

/**
 * session_follow() - select cgroups and containers as they appear
 *
 * Call it when session_fd() is readable, and at the time that it last returned.
 *
 * Return: seconds until the next call is due even if no cgroup changes; INFINITY: never.
 */
double session_follow(struct session *s);

/**
 * session_unresolved() - names in --cgroup, --container and --filter that do not exist yet
 * @text: gets "--container web, --cgroup /a", truncated if needed
 *
 * Return: their number.
 */
size_t session_unresolved(const struct session *s, char *text, size_t size);

/* Namer for rows_build(); @arg is the struct session. */
const char *session_cgroup_name(void *arg, __u64 id, enum label l);

/* Warn if groups had to be counted together. Return: whether. */
bool sampling_warn_other(const struct snapshot *interval);

struct sample_cost;

/**
 * sampling_rate_check() - refuse a period or frequency if samples would take more than a quarter of a busy CPU's time
 * @measured: NULL: it cannot be measured, so that published figures have to do
 * @period:   0: @freq samples a second are taken, unless that is 0, too
 *
 * Return: 0, or -ERANGE with @err, which names one that fits.
 */
int sampling_rate_check(const struct sample_cost *measured, __u64 period, __u64 freq,
			struct err *err);

/**
 * sampling_rate_warning() - say if samples of an interval are too many, or are not delivered
 * @period:   0: it varies
 * @filtered: hardware or driver drop samples on purpose
 *
 * The rate is not known before: it depends on what runs. A session with a short period counts tags where
 * it can, to know of samples that raised no interrupt. Return: false if all is well.
 */
bool sampling_rate_warning(const struct snapshot *interval, __u64 period, bool filtered, char *text,
			   size_t size);

/* The same of an event; false where the rate is a simulation's. */
bool session_rate_warning(const struct session *s, unsigned int n, const struct snapshot *interval,
			  char *text, size_t size);

/* Warn, once each, about conditions that make an interval of an event incomplete. */
void session_warn(struct session *s, unsigned int n, const struct snapshot *interval);

/* For poll(): readable when the command has exited; -1 if there is none, or without pidfds. */
int session_command_fd(const struct session *s);
bool session_command_ended(const struct session *s);

/* --- signals: the first SIGINT or SIGTERM ends sampling, later ones are for the command --- */

struct session_signals {
	volatile sig_atomic_t n;	/* so far */
	volatile sig_atomic_t last;	/* number of the last one, */
	volatile sig_atomic_t terminal; /* which the terminal has sent to the command, too */
};

/* Count one. Async-signal-safe. */
static inline void session_signal(struct session_signals *s, int sig, bool terminal)
{
	s->last = sig;
	s->terminal = terminal;
	s->n++;
}

/* --- intervals --- */

struct session_intervals {
	double interval_s; /* 0: one, until a signal comes or the command exits */
	uint64_t count;	   /* 0: no limit */
	int sigfd;	   /* of signals_open(); those that a handler took are in: */
	struct session_signals *signals;
	/* The samples of an event in an interval, which ended at @now. Return: 0 or a negative errno with @err. */
	int (*print)(void *arg, unsigned int event, struct snapshot *interval,
		     const struct snapshot *now, struct err *err);
	void *arg;
};

/* Start an open session, and print its intervals. Return: 0 or a negative errno with @err. */
int session_run_intervals(struct session *s, const struct session_intervals *o, struct err *err);

/**
 * session_end() - wait for the command to exit
 * @signals: those that are not pending
 * @ret:     the result of sampling; a negative errno has been reported
 *
 * The command belongs to the user: it runs to its end even if sampling has ended before. A second
 * SIGINT or SIGTERM is passed on to it, and it has two seconds to exit.
 *
 * Return: an exit status: ours if we failed, else the command's.
 */
int session_end(struct session *s, struct session_signals *signals, int ret);

#endif
