/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which container slows which on the cores that share an L3.
 *
 * A victim is judged by its mean latency per access from L3 and beyond, never by how much it accesses,
 * and a suspect by how much it accesses there. Each time that the suspect is busy for some windows is an
 * experiment: the victim's latency then against that in the quiet windows just before and just after,
 * taking the smaller of the two differences and only quiet windows in which the victim itself was about as
 * busy. So containers that are merely busy at the same time have no windows to compare. A pair is named
 * only if several experiments agree, victim and suspect correlate, and the same experiments at other times
 * show nothing alike.
 */
#ifndef IBSCOPE_NEIGHBOURS_H
#define IBSCOPE_NEIGHBOURS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define NEIGHBOURS_HISTORY 128 /* windows that are kept */
#define NEIGHBOURS_WINDOWS 10  /* of a pair: with fewer it is not named */
#define NEIGHBOURS_KNOWN \
	20 /* of a victim, with enough samples: its own ups and downs are unknown before */
#define NEIGHBOURS_SAMPLES 8 /* with a latency: a window with fewer says nothing of a victim */
#define NEIGHBOURS_RUNS	   2 /* experiments: one is a coincidence */
#define NEIGHBOURS_LAG	   2 /* windows that a victim may come later */

/* That of CPI2 (EuroSys 2013); the others by the streams of tests/unit/neighbours_errors.c. */
#define NEIGHBOURS_CORRELATION 0.35
#define NEIGHBOURS_RISE	       1.15 /* of the victim's latency */
#define NEIGHBOURS_SHARE       0.10 /* of the accesses on the complex, while the suspect is busy */
#define NEIGHBOURS_FALSE \
	1e-6 /* probability of naming anybody by chance, all pairs of a window taken together */
#define NEIGHBOURS_COINCIDENCE 1e-4 /* the same for a pair, by its runs at other times */

/* What a container did in one window on one complex: accesses that L3 or anything beyond answered. */
struct neighbours_activity {
	double samples;	 /* with a latency */
	double latency;	 /* sum over these, cycles */
	double accesses; /* estimated number of accesses; 0: as many as samples */
	/*
	 * Of samples with different weights, else 0: those that L3 answered and those that went beyond it, the ops that
	 * each kind represents, and the cycles of all these ops.
	 */
	double of_kind[2], ops[2], cycles;
};

struct group;

/* The sources that count, 1 << enum ibs_src. */
unsigned int neighbours_sources(void);

/* What a group counted. Return: false if that is nothing, or if it is of several containers. */
bool neighbours_activity_of(const struct group *g, struct neighbours_activity *out);

/* What was added since @before. */
void neighbours_activity_since(struct neighbours_activity *a,
			       const struct neighbours_activity *before);

struct neighbours_pair {
	unsigned int complex, victim, suspect;
	double latency, baseline; /* of the victim: while the suspect was busy, and quiet; cycles */
	double share; /* of the accesses on the complex that were the suspect's while it was busy */
	double correlation;
	unsigned int lag;		/* windows from cause to effect */
	unsigned int runs, busy, quiet; /* experiments; windows of both kinds */
	double deviations;		/* standard deviations from no effect */
	double chance;			/* probability of this by chance, all pairs considered */
	unsigned int first,
		last; /* windows, from 0, in which it was so; the rest is of the clearest one */
	unsigned int judged; /* the last one in which all evidence was looked at */
};

/* Why nobody may be named, as of the last window. */
struct neighbours_lack {
	unsigned int windows;	 /* that were seen */
	unsigned int containers; /* on some complex, in any recent window */
	unsigned int too_few;	 /* of these: too few samples in most windows */
	double more_samples; /* a factor that would do for the first of the latter; 0: there are none */
	unsigned int undecided; /* pairs whose latency rises, without enough evidence */
	unsigned int
		more_windows; /* that would decide the clearest of them if it goes on like this; 0: unknown */
	unsigned int alike; /* suspects with the schedule of another one */
};

struct neighbours;

/* @explains: count pairs that are undecided and suspects that are alike, at several times the CPU cost */
struct neighbours *neighbours_new(bool explains);
void neighbours_free(struct neighbours *n); /* accepts NULL */

/* Add to the current window; @container is the caller's number. */
void neighbours_add(struct neighbours *n, unsigned int complex, unsigned int container,
		    const struct neighbours_activity *a);

/* End the window, judge, and begin the next one. @known: false if it was not measured as a whole. */
void neighbours_end_window(struct neighbours *n, bool known);

/* All pairs named so far, the clearest first. Valid until the next call. */
const struct neighbours_pair *neighbours_pairs(struct neighbours *n, size_t *count);

/* Forget pairs that were not named in the last @windows. */
void neighbours_forget(struct neighbours *n, unsigned int windows);

void neighbours_lack(const struct neighbours *n, struct neighbours_lack *out);

#endif
