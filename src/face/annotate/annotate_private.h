/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What text and HTML print alike. */
#ifndef IBSCOPE_ANNOTATE_PRIVATE_H
#define IBSCOPE_ANNOTATE_PRIVATE_H

#include "annotate.h"

/* Where all selected samples are, in words. */
void annotate_attribution(const struct annotate *a, char *buf, size_t size);

/* Who called the function, with shares, in words. Only with call chains. */
void annotate_callers(const struct annotate *a, char *buf, size_t size);

/* The type and field of an instruction, in words: "" if they are not known. May be in @buf. */
const char *annotate_data(const struct annotate_row *r, char *buf, size_t size);

/* Does a line go before the row that says which inlined function it is of? @last: the row printed before, or NULL */
bool annotate_new_inlined(const struct annotate_row *last, const struct annotate_row *r);

/* Its text. */
const char *annotate_inlined(const struct annotate *a, const struct annotate_row *r, char *buf,
			     size_t size);

/* Does a line of source go before the row? @last: the row printed before, or NULL */
bool annotate_new_line(const struct annotate_row *last, const struct annotate_row *r);

#endif
