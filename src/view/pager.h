/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output that does not fit the terminal goes through the user's pager, as git does it. */
#ifndef IBSCOPE_PAGER_H
#define IBSCOPE_PAGER_H

#include <stdio.h>

struct err;

struct pager {
	FILE *to, *f; /* where the output goes, and what to print on: the same, or memory */
	char *text;
	size_t size;
};

/*
 * pager_open() - begin output on @to
 *
 * It is held back if @to is the terminal that this process is in the foreground of, and
 * IBSCOPE_PAGER, else PAGER, is neither empty nor "cat".
 *
 * Return: what to print on.
 */
FILE *pager_open(struct pager *p, FILE *to);

/*
 * pager_close() - show what was printed, and wait until the user has read it
 *
 * A pager that cannot be run, or that fails, loses no output; one that leaves early is no error.
 *
 * Return: 0; or a negative errno with @err if the output cannot be written.
 */
int pager_close(struct pager *p, struct err *err);

#endif
