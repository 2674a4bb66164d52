/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A running collector, as the files of this room share it. */
#ifndef IBSCOPE_COLLECTOR_STATE_H
#define IBSCOPE_COLLECTOR_STATE_H

#include "collector_settings.h"
#include "control.h"
#include "governor.h"
#include "work_limit.h"
#include "counts/pins.h"
#include "machine/clock_watch.h"
#include "sampler/sampler.h"

/* The governor, its input and its last decision. */
struct budget {
	struct governor *governor; /* NULL: not yet */
	__u64 *seen;		   /* of each CPU */
	double nmi_ns;
	enum ibs_nmi_source nmi_source;
	double measured_ns; /* of it; 0: not tried yet, below 0: cannot be measured */
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
	__u64 reported_ns;	       /* of it, when the status was last written */
	double reported_s, next_rate_s, retry_s;
	double next_s; /* the next step */
};

struct collector {
	struct collector_opts opts;
	struct settings_source source;
	struct collector_settings set;
	struct live_options live;
	unsigned int live_bits; /* enum sampler_live: set live since options were read */
	struct pins *pins;
	struct control *control; /* NULL: there is no socket */
	bool running;		 /* was opened: options are no reason to end any more */
	int broken; /* a negative errno: sampling cannot even resume with the old options */
	struct err broken_err;
	struct ibs_meta_status status;
	__u64 stats_seen;    /* samples for which `status` has the time in the program */
	__u64 cpu_before_ns; /* CPU time of earlier collectors; wraps, sums do not */
	int stats_fd;	     /* -1: off */
	double next_tick_s, next_stats_s, next_fold_s, next_follow_s;
	struct budget budget;
	struct work_limit work;
	__u64 work_before_ns[IBS_WORK_N], delayed_before_ns[IBS_WORK_N]; /* of earlier collectors */
	__u64 warned_delayed_ns[IBS_WORK_N];
	double warned_s[IBS_WORK_N];
	struct clock_watch clock;
	bool clock_watched;
	__u64 off_pmu_ns;  /* for which the event was enabled but not on the PMU */
	bool shared;	   /* and that time grows */
	size_t unresolved; /* names of the selection that nothing has yet, as last logged */
};

#endif
