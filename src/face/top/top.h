/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The live screen: what it shows, what keys do, and how it is painted. It knows no terminal, so that
 * tests can look at every frame:
 *
 *	top_new()
 *	loop: top_add() for each interval, top_key() for each key, top_paint()
 */
#ifndef IBSCOPE_TOP_H
#define IBSCOPE_TOP_H

#include "history.h"
#include "places.h"
#include "grid.h"
#include "view/hist.h"
#include "table/table.h"

/* Beside characters. */
enum top_special {
	TOP_UP = 0x110000,
	TOP_DOWN,
	TOP_LEFT,
	TOP_RIGHT,
	TOP_PAGE_UP,
	TOP_PAGE_DOWN,
	TOP_HOME,
	TOP_END,
	TOP_ENTER,
	TOP_ESCAPE,
	TOP_BACKSPACE,
};

/* What the caller has to do after top_key(). */
enum top_action {
	TOP_NOTHING,
	TOP_QUIT,
	TOP_WRITE_FRAME,   /* top_write() to a file of the caller's choice */
	TOP_WRITE_HISTORY, /* the same */
	TOP_ANNOTATE,	   /* top_annotate() with the samples of top_function() */
};

#define TOP_MIN_INTERVAL_S 0.1
#define TOP_MAX_INTERVAL_S 60.0
/* of strata: in less, there are too few slices of 50 ms or more for intervals */
#define TOP_STRATA_INTERVAL_S 1
#define TOP_TEXT	      128

/* What is sampled and how, for the first lines. The texts live as long as the source. */
struct top_source_info {
	struct hist_info hist;
	char origin[TOP_TEXT]; /* "" or what is read: "collector 1234", "recording FILE, 10x" */
	__u32 by;	       /* keys to group by: enum ibs_by bits */
	__u32 by_possible;     /* those that could be */
	bool ended;	       /* nothing more will come */
	bool cost_assumed;
	bool unselectable; /* a collector decides what is counted: no option selects */
	struct places places;
	char trouble[256]; /* why nothing new can be read, or not all; "": all is well */
};

struct top_opts {
	unsigned int labels; /* 0: containers */
	struct view_opts view;
	bool reverse;
	char match[TOP_TEXT]; /* rows with this in their name; "": all */
	double interval_s;
	const struct top_source_info *info;
	const char *host;
	bool once;			  /* a single frame: it has no trend */
	bool in_strata;			  /* no interval is shorter than TOP_STRATA_INTERVAL_S */
	const char *command;		  /* "ibscope top" with the options that no key changes */
	const char *given[TABLE_OPTIONS]; /* those that a row replaces; NULL: not given */
	const struct cpulist *cpus;	  /* of the one for CPUs; NULL: not given */
	const char *annotate; /* "ibscope annotate" with those options of `command` that it takes */
	const char *note;     /* on the options, beside what is shown; NULL: none */
};

struct top;
struct annotate;

struct top *top_new(const struct top_opts *opts);
void top_free(struct top *t); /* accepts NULL */

/* An interval has passed. */
void top_add(struct top *t, const struct snapshot *interval, const struct frame *info,
	     cgroup_namer name, void *arg);

/* @key: a Unicode character or an enum top_special */
enum top_action top_key(struct top *t, unsigned int key);
void top_click(struct top *t, int y, int x);

/* Read by the caller before each interval. */
double top_interval(const struct top *t);
unsigned int top_labels(const struct top *t); /* that groups must have */

/* The function of the selected row. NULL: it is none, or there is no row. */
const char *top_function(struct top *t);
/* Is the group in the selected row? */
bool top_in_row(struct top *t, const struct group *g);
/* Show the instructions of top_function(), with annotate_finish() called; @a is top's from now on. */
void top_annotate(struct top *t, const char *function, struct annotate *a);

/* A line that is shown until the next key. */
void top_say(struct top *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True while there is such a line. */
bool top_says(const struct top *t);

void top_paint(struct top *t, const struct screen *screen, struct grid *g);

/* One object a line, as `hist --json`: the interval that is shown, or @all of them. */
int top_write(struct top *t, bool all, FILE *f, struct err *err);

/* The equivalent command line of what is shown. */
void top_command(const struct top *t, char *out, size_t size);

/* What keys do, for --help. */
void top_keys_help(FILE *f);

#endif
