/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pieces of the HTML file: fixed parts, JSON that is safe in a script element, packed columns. */
#ifndef IBSCOPE_HTML_WRITE_H
#define IBSCOPE_HTML_WRITE_H

#include "html_rows.h"

#include <stdio.h>

/* Everything up to the body. @title and @band are escaped; @band: warnings, "" for none. */
void html_write_head(FILE *f, const char *title, const char *band);

/* The body of a report, up to the data. */
void html_write_views(FILE *f);

/* JSON as the data block "facts-data", with every '<' escaped, which could end the element. */
void html_write_facts(FILE *f, const char *json, size_t size);

/**
 * html_write_rows() - write the rows as the data block "cells-data"
 * @sources: from enum ibs_src to the page's number for it
 * @period: of all samples; 0: varies, or is unknown
 * @exposed: exposed cycles are known
 *
 * Columns one after the other, each padded to 8 bytes, deflated, as base64. 1-data.js reads them.
 */
void html_write_rows(FILE *f, const struct html_rows *rows, const __u8 *sources, __u64 period,
		     bool exposed);

/* The script, and the end of the file. */
void html_write_tail(FILE *f);

#endif
