/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A line at the bottom of a terminal that shows progress. Messages, and signals that end the program, erase it first. */
#ifndef IBSCOPE_STATUS_LINE_H
#define IBSCOPE_STATUS_LINE_H

#include <stdbool.h>

/* True if stderr is a terminal that can erase a line. */
bool status_line_possible(void);

/* Show a line of ASCII on stderr in place of the one before; what does not fit is cut. */
void status_line_show(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void status_line_end(void);

/* Return: what erases the line, once, for who prints it to stderr; "" if there is none. */
const char *status_line_eraser(void);

#endif
