/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this room share. */
#ifndef IBSCOPE_COMPARE_PRIVATE_H
#define IBSCOPE_COMPARE_PRIVATE_H

#include "base/intern.h"
#include "compare.h"

/* Sums of a cause in a block. */
struct compare_part {
	double ops, cycles;
	float bucket[IBS_LAT_BUCKETS]; /* ops */
};

struct compare_stream {
	bool started, timed, spread;
	__u64 first, last, calls;
	__u64 width;	       /* of a block, in units of time */
	unsigned int n, block; /* blocks used, and the current one */
	__u64 samples, valid;
	double ops, squares; /* of those of valid samples */
	double seconds;	     /* 0: unknown */
	double base[COMPARE_BLOCKS];
	struct compare_part *part[COMPARE_CAUSES]; /* COMPARE_BLOCKS each; NULL: none */
};

/* What a row waited for a cause. */
struct compare_cell {
	double ops, cycles;
};

struct compare_line {
	__u32 name; /* the first of n_names words in c->names */
	__u64 valid;
	float cycles[COMPARE_SIDES][COMPARE_BLOCKS];
};

struct compare {
	bool per_second;
	unsigned int rounds;
	struct compare_stream side[COMPARE_SIDES];
	enum compare_side now;

	struct intern causes, texts;
	unsigned int n_names;
	__u32 *names; /* numbers in texts; INTERN_NONE: absent */
	size_t names_room;
	struct compare_line *line;
	size_t n_lines, line_room;
	struct u64_map line_of; /* by the hash of names */
	struct compare_cell *cell;
	size_t n_cells, cell_room;
	struct u64_map cell_of; /* by cell_key() */
	__u64 random;
	bool no_latency, wide;
	bool inner[IBS_LAT_BUCKETS]; /* the upper edge is within a wide bucket */
};

static inline __u64 cell_key(__u32 row, unsigned int cause, enum compare_side side)
{
	return (__u64)row << 8 | cause << 1 | side;
}

/* The cell; zeros if there is none. */
struct compare_cell compare_cell_of(const struct compare *c, __u32 row, unsigned int cause,
				    enum compare_side side);

/* A random number below @n; the sequence is the same in each run. */
__u32 compare_random(__u64 *state, __u32 n);

/* Number of samples of equal weights that would be as good as those with a latency. */
double compare_effective(const struct compare_stream *s);

/* After the last sample: blocks of a second if that leaves enough of them, and their base. */
void compare_finish_side(struct compare *c, enum compare_side side);

/* How often each block of a side is drawn in a round. */
struct compare_draw {
	__u8 times[COMPARE_SIDES][COMPARE_BLOCKS];
};

/* How blocks are drawn: those of a run are neighbours. */
enum compare_drawn { COMPARE_SINGLY, COMPARE_IN_RUNS };

/* The blocks as they are, and as drawn; @state: of compare_random() */
void compare_draw_all(const struct compare *c, struct compare_draw *d);
void compare_draw(const struct compare *c, enum compare_drawn drawn, __u64 *state,
		  struct compare_draw *d);

/* Sums of one draw. */
struct compare_sums {
	double base[COMPARE_SIDES];
	struct compare_cell cause[COMPARE_SIDES][COMPARE_CAUSES];
};
void compare_sum(const struct compare *c, const struct compare_draw *d, struct compare_sums *out);
double compare_line_sum(const struct compare *c, const struct compare_draw *d, size_t line,
			enum compare_side side);

/* The two terms of a cause. */
void compare_terms(const struct compare_cell cell[COMPARE_SIDES], const double base[COMPARE_SIDES],
		   double term[2]);

/* Mean and variance of values that come one by one. */
struct compare_moments {
	double mean, square;
	unsigned int n;
};
void compare_moment(struct compare_moments *m, double v);

/* Set low, high and p from the change and the moments of its draws. */
void compare_interval(const struct compare *c, enum compare_drawn drawn,
		      const struct compare_moments *m, struct compare_change *out);

/* Two-sided probability of Student's t, and its quantile of 97.5 %. */
double compare_student(double t, unsigned int df);
/* The t of which compare_student() is @p. */
double compare_student_of(double p, unsigned int df);
unsigned int compare_freedom(const struct compare *c, enum compare_drawn drawn);

/*
 * The false discovery rate of Benjamini and Hochberg: set `finding` of the changes with small p.
 * @tests: how many there were, of which those not in @change are none
 */
void compare_discover(struct compare_change **change, size_t n, size_t tests);

/* A row or a cause; -1: all. */
struct compare_part_of {
	long line;
	int cause;
};

/*
 * Was a difference in the first two thirds of B's blocks, and not after?
 * @found:    it is a finding for all of B; else it must be one for these two thirds
 * @all_gone: that of all was, so that this one must be there in the last third to count
 */
bool compare_is_gone(const struct compare *c, struct compare_part_of of, bool found, bool all_gone);

/* Percentiles and what they changed by. */
void compare_quantiles(const struct compare *c, struct compare_result *out);

/* The same for compare_is_gone(). */
bool compare_quantile_is_gone(const struct compare *c, const struct compare_result *r);

#define COMPARE_GONE_SHARE 0.25 /* of a change that is left at the end */

/* The blocks of B that are its end. */
static inline unsigned int compare_late(const struct compare *c)
{
	return c->side[COMPARE_B].n - c->side[COMPARE_B].n / 3;
}

#endif
