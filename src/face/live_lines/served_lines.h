/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hot lines of `ibscope serve --hot-lines`, and how `ibscope c2c --control` gets them. */
#ifndef IBSCOPE_SERVED_LINES_H
#define IBSCOPE_SERVED_LINES_H

#include "input/recorded.h"
#include "where/lines.h"

#include <ibscope/pin_layout.h>

struct session;

/* --- the collector --- */

#define SERVED_WINDOWS 6

/* The last windows of a sampler, the newest at (n - 1) % SERVED_WINDOWS. The zero value is empty. */
struct served_lines {
	struct hot_window *window[SERVED_WINDOWS];
	size_t n;
	double next_s; /* when the tables are exchanged; 0: not begun */
};

/*
 * To be called every second or more often. @on: whether @s keeps lines; @counts: added to.
 */
void served_lines_run(struct served_lines *l, struct session *s, bool on,
		      struct ibs_lines_counts *counts);

/* Exchange the tables now: they are about to go, or are asked for. */
void served_lines_take(struct served_lines *l, struct session *s, struct ibs_lines_counts *counts);

/* Write all windows, as this build has them in memory. */
void served_lines_answer(const struct served_lines *l, const struct session *s, FILE *f);

void served_lines_free(struct served_lines *l);

/* --- who asks --- */

/* An answer; what is read of it points to this. */
struct served_answer {
	const char *path; /* of the socket, for messages */
	const char *text; /* @n bytes, and a NUL */
	size_t n, at;
	struct served_head {
		char version[32], source[16];
		__u64 detail_bytes;
		struct trace_info info; /* pointers are NULL */
		struct trace_pmu pmu;
		__u64 windows, cgroups;
	} head;
	struct trace_end end;
};

/**
 * served_lines_read() - the lines of an answer
 * @a:  path, text and n are set
 * @in: gets head, tasks and symbols, as recorded_start() makes them; closed by the caller
 *
 * Return: 0 with *out; or a negative errno with @err.
 */
int served_lines_read(struct served_answer *a, struct recorded *in, struct line_set **out,
		      struct err *err);

#endif
