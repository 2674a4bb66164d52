/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One reading of a collector: its status, and the ledger of its counters. */
#ifndef IBSCOPE_READING_H
#define IBSCOPE_READING_H

#include "pins/pinned.h"
#include "reading_neighbours.h"
#include "reading_text.h"
#include "counts/snapshot.h"

#include <ibscope/governor_state.h>
#include <stdio.h>

struct reading {
	struct ibs_meta meta; /* its texts are terminated */
	__u64 time_ns;	      /* CLOCK_BOOTTIME */
	struct ledger ledger; /* PMU counts are those of meta.status */
	size_t groups;	      /* with counters of their own */
	struct reading_neighbours neighbours;
	struct ibs_strata strata; /* up to the end of the last slice; used 0: none */
};

extern const char *const stratum_names[STRATUM_N];

/* Without what the PMU counts. */
void stratum_ledger(const struct ibs_stratum *of, struct ledger *out);

/* Samples of one event that would bring as many samples from beyond the L3. */
__u64 strata_effective_samples(const struct ibs_strata *s);

/* Both print nothing if there are none. */
void strata_status_print(FILE *f, const struct ibs_strata *s);
/* The member "strata". */
void strata_status_put(struct json_writer *w, const struct ibs_strata *s);

/*
 * True if the collector is running: it did not exit cleanly, and updated its status within the last
 * ten seconds. Its pid proves nothing: it may belong to another namespace, or be reused.
 */
bool collector_alive(const struct ibs_meta *m);

/* Time until sampling ends if nobody renews the lease; 0: it ended; NAN: there is no lease. */
double collector_lease_s(const struct ibs_meta *m);

/*
 * True if the collector was killed and sampling continues without it: nothing governs the period, names
 * new groups or counts unseen samples.
 */
bool collector_orphaned(const struct ibs_meta *m);

/* The latency of the histograms. */
enum ibs_metric reading_metric(const struct ibs_meta *m);

/* Maximum number of groups with counters: two slots are reserved for the counts of others. */
__u32 reading_groups_limit(const struct ibs_meta *m);

const char *governor_state_name(enum governor_state s);
const char *governor_reason_name(enum governor_reason r);
const char *governor_reason_help(enum governor_reason r);

/* The name of a number in the status; "unknown" for those of a later version. */
const char *status_nmi_source(const struct ibs_meta_status *st);

extern const char *const work_names[];		 /* by enum ibs_work */
extern const char *const push_outcome_names[];	 /* by enum ibs_push_outcome */
extern const char *const flight_outcome_names[]; /* by enum ibs_flight_outcome */

bool status_stopped(const struct ibs_meta_status *st);

/* Assumed run time of the program while none has been measured. */
#define GOVERNOR_BPF_ASSUMED_NS 500

/* CPU time of a sample in the BPF program; "measured", or "assumed" until runs were timed. */
double status_bpf_ns(const struct ibs_meta_status *st);
const char *status_bpf_source(const struct ibs_meta_status *st);

/* Share of CPU time that sampling took in the last second; NAN in the first one. */
double status_overhead(const struct ibs_meta_status *st);

/* Begin a reading. @m must have been read before the counters, so that no sample looks unseen. */
void reading_begin(struct reading *r, const struct ibs_meta *m);

/* Complete it with @counts, of which the ledger and the number of groups have been read. */
void reading_finish(struct reading *r, const struct counts *counts, const struct ledger *counted,
		    size_t groups);

/* Add the neighbours that pins have. */
void reading_pinned_neighbours(struct reading *r, const struct pinned *p);

/* Read from pins. Return: 0 or a negative errno with @err. */
int reading_pinned(const struct pinned *p, struct reading *out, struct err *err);

/*
 * Print readings of the @n events of a collector as text and as JSON: the same whether they come
 * from the collector or its pins.
 */

void collector_print(FILE *f, const struct reading *r, unsigned int n);

/* What only the process that pushes profiles knows. */
struct reading_push {
	bool pending;
	const char *failure; /* of the last attempt; "": it succeeded */
	unsigned int files_given_up;
};

#define READING_PRECISION 15 /* significant digits of its JSON */

/* One line. @push: NULL: unknown */
void collector_print_json(FILE *f, const struct reading *r, unsigned int n,
			  const struct reading_push *push);

/* The same as members; a second event is the object "fetch". */
void collector_put(struct json_writer *w, const struct reading *r, unsigned int n,
		   const struct reading_push *push);

/* CPU time of the programs of @n events and the collector as a share of all; NAN: unknown. */
double collector_overhead(const struct reading *r, unsigned int n);

#endif
