/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that `serve` is made of. */
#ifndef IBSCOPE_SERVE_H
#define IBSCOPE_SERVE_H

#include "control.h"
#include "live_options.h"
#include "governor.h"
#include "clock_watch.h"
#include "pins.h"
#include "sampling.h"
#include "web.h"

struct serve_options {
	struct sampling sampling;
	const char *config; /* NULL: none */
	bool config_check, unpin;
	char pin_dir[256];
	mode_t pin_mode;
	/* texts of the options of the same names; of the first ones, as SIGHUP leaves them alone */
	char web_listen[WEB_LISTEN_MAX][128], web_config[256];
	size_t n_web_listen; /* 0: nothing is served */
	double grace_s; /* that a dead cgroup's series stay */
	/* of the first ones, too */
	char control[sizeof(((struct ibs_meta *)0)->control)];
	bool control_given;
	mode_t control_mode;
	double max_overhead; /* of the CPUs' time; 0: no bound */
	bool overhead_given;
	double nmi_ns;	     /* 0: to be measured */
	double max_bpf_ns;   /* mean run of the program; 0: no bound */
	__u64 max_rss_bytes; /* 0: the default */
};

/* The governor of a running collector, and what it was told last. */
struct serve_governor {
	struct governor *law; /* NULL: not yet */
	__u64 *seen;	      /* of each CPU */
	double nmi_ns;
	enum ibs_nmi_source nmi_source;
	double measured_ns; /* of it; 0: not tried yet, below: it cannot be */
	__u64 max_rate, rss_max;
	/* windows in which runs of the program were timed */
	bool timing;
	__u64 timed_ns, timed_runs, windows, window_runs;
	double window_ns;
	__u64 unseen;
	double unseen_ops_s;
	enum governor_state state;
	enum governor_reason reason;
	__u64 cost_ns, cost_before_ns; /* since it was opened, and before */
	__u64 told_ns;		       /* of it, when the status was written */
	double told_s, next_rate_s, retry_s;
	double next_s, tick_s; /* the next look; the next tick of who calls */
};

/* A running collector. */
struct serve {
	struct serve_options opts;
	struct pins *pins;
	struct web *web; /* NULL: metrics are another process' business */
	struct control *control; /* NULL: no requests are taken */
	int argc;
	char **argv;
	char *config_text; /* of opts.config, as it was read last */
	size_t config_size;
	struct live_options live;
	unsigned int live_bits; /* enum sampler_live: what was set live since options were read */
	int broken; /* sampling could not go on, even as it was before: */
	struct err broken_err;
	struct ibs_meta_status status;
	__u64 stats_seen; /* samples whose time in the program is in `status` */
	__u64 cpu_before_ns; /* CPU time of earlier collectors; wraps, sums do not */
	int stats_fd; /* -1: off */
	double next_stats_s, next_fold_s;
	struct serve_governor governor;
	struct clock_watch clock;
	bool clock_watched; /* it was started */
	__u64 off_pmu_ns;   /* enabled, but not running, so far */
	bool shared;	    /* and growing */
};

/* Write `status` and what else readers are told. */
int serve_status_update(struct serve *s, double now_s, struct err *err);
/* The same once a second, with serve_machine_look(). */
int serve_status_tick(struct serve *s, double now_s, struct err *err);

/*
 * What happens to the machine: clocks, suspend, other users of the PMU. Changes are logged, and added
 * up in `status`, which starts as the pins had it. Start it with each sampler, and look once a second:
 * that the PMU is shared is told by how much was missed since the last look.
 */
void serve_machine_start(struct serve *s);
void serve_machine_look(struct serve *s, const struct pmu_state *pmu);

/* The texts that change only when sampling begins. */
void serve_status_texts(struct serve *s, const char *selection);
/* The same of what is set live. */
void serve_status_live(struct serve *s);

/**
 * serve_parse() - file, command line and what is set live, in this order
 *
 * Return: 0, OPTIONS_HELP, or a negative errno with @err; @o is to be closed in any case.
 */
int serve_parse(const struct serve *s, const struct live_options *live, struct serve_options *o,
		struct err *err);
/* NULL: serve has no option of that name. */
const struct option_row *serve_find_option(struct serve *s, const char *name);

/**
 * serve_replace() - sample with other options, and go on with the counters
 * @fresh: parsed; is taken over or closed
 *
 * Return: 0; or a negative errno with @err, *usage telling whose fault it was: then sampling goes on
 * with the old ones, or s->broken is set.
 */
int serve_replace(struct serve *s, struct serve_options *fresh, bool *usage, struct err *err);

/* Read the options again. As serve_replace(). */
int serve_reload(struct serve *s, bool *usage, struct err *err);

extern const struct option_row serve_control_rows[];
extern const size_t serve_control_n_rows;

/* Take requests, if that is asked for. Return: 0 or a negative errno with @err. */
int serve_control_start(struct serve *s, struct err *err);

/* What a sample without the program can be given as, or be measured to take. */
#define SERVE_NMI_MIN_NS 50
#define SERVE_NMI_MAX_NS 100000

/* Is serve_calibrate() to measure? Nothing else is to be sampled then. */
bool serve_must_calibrate(const struct serve *s);

/* Between sampling_open() and sampler_start(): governor.nmi_ns, of which it is measured once. */
void serve_calibrate(struct serve *s);

extern const struct option_row serve_governor_rows[];
extern const size_t serve_governor_n_rows;

/*
 * Are the options right together? With -F there is no budget: the kernel chooses the period. Return:
 * 0, or a negative errno with @err.
 */
int serve_governor_settle(struct serve_options *o, struct err *err);

/*
 * Between sampling_open() and sampler_start(), each time anew: measures what a sample costs, if it is
 * not known, and begins with the period asked for, or a longer one that was needed before. Return: 0
 * or a negative errno with @err.
 */
int serve_governor_open(struct serve *s, struct err *err);

/*
 * The same while it samples, when options of it have changed; sampling goes on also if it was stopped.
 * @paused: set to whether it rested while it was measured what a sample costs. Return: 0; or a
 * negative errno with @err: the collector is to end.
 */
int serve_governor_renew(struct serve *s, bool *paused, struct err *err);

/* To be called at governor.next_s. Return: 0; or a negative errno with @err: the collector is to end. */
int serve_governor_look(struct serve *s, struct err *err);

/* bpf_stats were switched on, or are about to be switched off. */
void serve_governor_timed(struct serve *s, bool on);

/* Its part of s->status, whose other members are new. */
void serve_governor_status(struct serve *s, double now_s);

void serve_governor_close(struct serve *s);

extern const struct option_row serve_web_rows[];
extern const size_t serve_web_n_rows;

/* Are the options right together? Return: 0, or a negative errno with @err. */
int serve_web_check(const struct serve_options *o, struct err *err);

/* Serve metrics, if that is asked for. Return: 0 or a negative errno with @err. */
int serve_web_start(struct serve *s, struct err *err);

/* Name the groups that have no name yet. */
void serve_names_update(struct serve *s);

#endif
