/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_TOP_PRIVATE_H
#define IBSCOPE_TOP_PRIVATE_H

#include "top.h"

#define TOP_ZOOMS  6
#define TOP_TREND  10 /* intervals that are shown */
#define TOP_BEFORE 30 /* that a change is judged by */
#define TOP_LINE   1024
#define SORT_NAME  TABLE_COLUMNS

/* One row of a level, into which the view has gone. */
struct top_zoom {
	unsigned int labels;
	__u64 hash, id;		     /* as those of the rows */
	char *name;		     /* for people */
	char *option[TABLE_OPTIONS]; /* for a command line, as table_options; NULL: none */
	bool selected;		     /* by these alone */
};

/* Where the mouse hits what, as painted last. */
struct top_hits {
	int heading, first_row, rows, right;
	size_t n;
	struct {
		int from, to;
		unsigned int sort;
	} column[TABLE_COLUMNS + TABLE_NAMES];
};

enum top_mode { TOP_TABLE, TOP_HELP, TOP_HISTOGRAM, TOP_EDIT, TOP_WRITE, TOP_FUNCTION };

struct top {
	struct top_opts opts;
	struct history *history;
	enum top_mode mode;
	size_t help_from, help_more; /* lines of help; how many more a page goes on, 0: the last */
	struct annotate *annotate;   /* of TOP_FUNCTION */
	char *function;		     /* its name */
	size_t line, last_line; /* of its text: the first on the screen, and the last that can be */
	int level;		/* -1: what --by says */
	unsigned int sort;
	struct top_zoom zoom[TOP_ZOOMS];
	unsigned int n_zooms;
	bool frozen;
	__u64 number; /* of the interval that is shown while frozen */
	char said[1024];
	char match_before[TOP_TEXT];

	/* of the interval that is shown; built when something has changed */
	bool fresh;
	struct snapshot shown;
	struct table table;
	__u64 *hash; /* of the rows, without sources and ops */
	__u64 *id;   /* the same with them */
	float *trend;
	bool missing; /* the interval lacks groups for these rows */
	__u64 selected;
	bool has_selected;
	size_t cursor, first; /* rows */
	struct top_hits hits;
};

/* A frame that is being painted. */
struct paint {
	struct top *t;
	const struct top_source_info *info;
	const struct screen *screen;
	struct grid *g;
	const struct frame *frame; /* NULL: nothing yet */
	char *trust;		   /* of the rows on the screen; NULL: there are none */
};

/* The number of the interval that is shown, as history_frame() counts. */
size_t top_shown(const struct top *t);
void top_cycle(struct top *t);
void top_zoom_in(struct top *t);  /* into the selected row */
void top_zoom_out(struct top *t); /* of the last of n_zooms */
/* The options that select the samples of the row. */
void top_zoom_options(struct top *t, struct top_zoom *z);
unsigned int top_row_labels(const struct top *t);
const char *top_level_name(const struct top *t);
/* Make `table` current. */
void top_update(struct top *t);
/* From the instructions back to the table. */
void top_leave_function(struct top *t);
/* The instructions, in lines from @y on. */
void top_paint_function(struct top *t, const struct screen *screen, struct grid *g, int y,
			int lines);
/* The first lines, at @y. */
void top_paint_host(struct paint *p, int y);
void top_paint_view(struct paint *p, int y);
/*
 * What makes the figures less than they seem; it is always on the screen, if need be in short.
 * @head: the first line of the screen is there, which says that samples are simulated
 * Return: how many lines.
 */
int top_paint_warnings(struct paint *p, int y, bool head);
/* The lines of help; 0 after the last. */
bool top_help_line(size_t i, const char **keys, const char **text);

/* What the table that is shown is sorted by. */
static inline unsigned int top_sort(const struct top *t)
{
	return t->sort != TABLE_CURRENCY		      ? t->sort
	       : t->table.n && t->table.sort == TABLE_EXPOSED ? TABLE_EXPOSED
							      : TABLE_CYCLES;
}

static inline const char *top_sort_name(const struct top *t)
{
	return t->sort == SORT_NAME ? "name" : column_find(&top_columns, top_sort(t))->name;
}

/* The label that the pane beside the rows shows: the source of data, or the outcome of fetches. */
static inline enum label top_source_label(const struct top *t)
{
	return ibs_metric_of_fetch(t->table.metric) ? LABEL_FETCH : LABEL_SRC;
}

#endif
