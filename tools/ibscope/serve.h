/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that `serve` is made of. */
#ifndef IBSCOPE_SERVE_H
#define IBSCOPE_SERVE_H

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
};

/* A running collector. */
struct serve {
	struct serve_options opts;
	struct pins *pins;
	struct web *web; /* NULL: metrics are another process' business */
	struct ibs_meta_status status;
	/* what bpf_stats told of the program since it was loaded, while they were on */
	__u64 stats_ns, stats_runs, stats_seen;
	__u64 cpu_before_ns; /* CPU time of earlier collectors; wraps, sums do not */
	int stats_fd; /* -1: off */
	double next_stats_s, next_fold_s;
	struct clock_watch clock;
	__u64 off_pmu_ns; /* enabled, but not running, so far */
	bool shared;	  /* and growing */
};

/* Write `status` and what else readers are told; once a second. */
int serve_status_update(struct serve *s, double now_s, struct err *err);
/*
 * What happens to the machine: clocks, suspend, other users of the PMU. Changes are logged, and added
 * up in `status`, which starts as the pins had it. Start anew with each sampler.
 */
void serve_machine_start(struct serve *s);
void serve_machine_look(struct serve *s, const struct pmu_state *pmu);

/* The texts that change only when sampling begins. */
void serve_status_texts(struct serve *s, const char *selection);

extern const struct option_row serve_web_rows[];
extern const size_t serve_web_n_rows;

/* Are the options right together? Return: 0, or a negative errno with @err. */
int serve_web_check(const struct serve_options *o, struct err *err);

/* Serve metrics, if that is asked for. Return: 0 or a negative errno with @err. */
int serve_web_start(struct serve *s, struct err *err);

/* Name the groups that have no name yet. */
void serve_names_update(struct serve *s);

#endif
