/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output that does not fit the terminal goes through the user's pager, as in git. */
#ifndef IBSCOPE_PAGER_H
#define IBSCOPE_PAGER_H

#include <stdio.h>

struct err;

struct pager {
	FILE *to, *f; /* destination, and the stream to print to: the same, or memory */
	char *text;
	size_t size;
};

/*
 * pager_open() - begin output on @to
 *
 * Output to a terminal is buffered: its long lines of words are wrapped, and it goes to a pager if it does not fit, this
 * process is in the foreground, and IBSCOPE_PAGER, else PAGER, is neither empty nor "cat".
 *
 * Return: the stream to print to.
 */
FILE *pager_open(struct pager *p, FILE *to);

/*
 * pager_close() - show the output, and wait until the user has read it
 *
 * If the pager cannot be run or fails, no output is lost; an early exit of it is not an error.
 *
 * Return: 0; or a negative errno with @err if the output cannot be written.
 */
int pager_close(struct pager *p, struct err *err);

#endif
