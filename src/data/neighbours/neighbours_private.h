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
};

struct neighbours {
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
};

/* When a suspect was busy. */
enum suspect_state { SUSPECT_BETWEEN, SUSPECT_QUIET, SUSPECT_BUSY, SUSPECT_UNKNOWN };

struct suspect {
	struct window_series series;
	enum suspect_state state[NEIGHBOURS_HISTORY];
	double share;
};

/* Judge by the experiments of a pair. */
struct evidence {
	unsigned int runs, busy, quiet, lag;
	double rise; /* of the logarithm of the latency */
	double baseline;
	double correlation, deviations;
	double coincidence; /* probability that the runs only hit ups of the victim's own */
};

/* Set state and share; @total: accesses of the complex. Return: whether it may slow others. */
bool suspect_prepare(struct suspect *s, const double *total);

/*
 * Experiments of a suspect on a victim.
 * @quiet: another suspect that must be quiet, too; NULL: none
 *
 * Return: false if there are none.
 */
bool evidence_gather(const struct window_series *victim, const struct suspect *s,
		     const struct suspect *quiet, struct evidence *out);

#endif
