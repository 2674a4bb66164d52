/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_NEIGHBOURS_PRIVATE_H
#define IBSCOPE_NEIGHBOURS_PRIVATE_H

#include "neighbours.h"
#include "base/u64_map.h"

/* A container on a complex: rings of windows. */
struct resident {
	unsigned int complex, container;
	unsigned int seen; /* last window with samples */
	float samples[NEIGHBOURS_HISTORY], accesses[NEIGHBOURS_HISTORY];
	float latency[NEIGHBOURS_HISTORY]; /* logarithm of the mean; undefined without samples */
	double volume[NEIGHBOURS_HISTORY]; /* logarithm of the samples, 0 without */
};

struct neighbours {
	bool explains;
	unsigned int window;	    /* the current one */
	struct resident **resident; /* sorted by complex while judging */
	size_t n, room;
	struct u64_map by_key;
	bool known[NEIGHBOURS_HISTORY];
	struct neighbours_pair *pair;
	size_t n_pairs, room_pairs;
	struct neighbours_lack lack;
};

/* The windows of a container in order of time, the last one last. */
struct window_series {
	unsigned int n;
	bool known[NEIGHBOURS_HISTORY];
	double samples[NEIGHBOURS_HISTORY], accesses[NEIGHBOURS_HISTORY],
		latency[NEIGHBOURS_HISTORY];
	/* of a victim only: logarithm of the samples; these, 0 where there are too few; the same times the latency */
	double volume[NEIGHBOURS_HISTORY], weight[NEIGHBOURS_HISTORY], weighted[NEIGHBOURS_HISTORY];
};

/* When a suspect was busy. */
enum suspect_state { SUSPECT_BETWEEN, SUSPECT_QUIET, SUSPECT_BUSY, SUSPECT_UNKNOWN };

struct suspect {
	struct window_series series;
	enum suspect_state state[NEIGHBOURS_HISTORY];
	double busy[NEIGHBOURS_HISTORY], quiet[NEIGHBOURS_HISTORY]; /* 1 where it was, else 0 */
	double share;
};

/* Judge by the experiments of a pair. */
struct evidence {
	unsigned int runs, busy, quiet, lag;
	double rise; /* of the logarithm of the latency */
	double baseline;
	double correlation, deviations;
	double coincidence; /* probability that the runs only hit ups of the victim's own; 1: unknown */
};

/* Set state and share; @total: accesses of the complex. Return: whether it may slow others. */
bool suspect_prepare(struct suspect *s, const double *total);

/*
 * The best evidence that the experiments of a suspect on a victim can be: evidence_gather() finds the same or
 * less, and costs many times as much. Lags at which the victim is not a twentieth slower in all busy windows
 * together than in all quiet ones are left out: an effect that is named is three times that.
 *
 * Return: false if there are no experiments.
 */
bool evidence_estimate(const struct window_series *victim, const struct suspect *s,
		       struct evidence *out);

/*
 * Experiments of a suspect on a victim, judged by those at other times.
 * @quiet: another suspect that must be quiet, too; NULL: none
 *
 * Return: false if there are none.
 */
bool evidence_gather(const struct window_series *victim, const struct suspect *s,
		     const struct suspect *quiet, struct evidence *out);

/* Take from the latency what a suspect adds to it by this evidence, so that others can be seen beside it. */
void evidence_remove(struct window_series *victim, const struct suspect *s,
		     const struct evidence *e);

/* The same as samples of equal weights. */
struct neighbours_activity neighbours_activity_weighed(const struct neighbours_activity *a);

#endif
