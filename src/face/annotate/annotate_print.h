/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An annotated function as text, JSON or HTML. */
#ifndef IBSCOPE_ANNOTATE_PRINT_H
#define IBSCOPE_ANNOTATE_PRINT_H

#include "annotate.h"
#include "report/report_print.h"

struct annotate_print {
	const struct report_head *head;
	const struct screen *screen;  /* of text */
	const char *file;	      /* the recording, as a word of another command */
	const struct view_opts *view; /* columns of text; none: the most important four */
	bool all;		      /* text shows instructions far from samples, too */
};

/*
 * annotate_print_function() - text with source lines, as many columns as fit
 *
 * What the function is, an empty line, a heading, instructions, and how many types are known. Bold lines are between the control sequences
 * for that, if the screen has colour. Warns of sources that cannot be shown.
 */
void annotate_print_function(FILE *f, const struct annotate_print *p, const struct annotate *a);

/* The same after the head of the recording. */
void annotate_print(FILE *f, const struct annotate_print *p, const struct annotate *a);

/**
 * annotate_print_json() - one object; null is what is not known
 *
 * The head of report_print(), then function, object, start, size, others [{object, start, samples}],
 * attribution {function, namesakes, elsewhere, inexact, fetches}, which add up to all selected samples, callers
 * [{function, mangled, samples, sample_share, share}], instructions
 * [{address, bytes, inside, text, file, line, type, field, type_found, inlined [{function, mangled, call_file, call_line}],
 * column}], total {column}.
 */
void annotate_print_json(FILE *f, const struct annotate_print *p, const struct annotate *a);

/* A page of its own, without scripts, in the style of the HTML report. */
void annotate_print_html(FILE *f, const struct annotate_print *p, const struct annotate *a);

#endif
