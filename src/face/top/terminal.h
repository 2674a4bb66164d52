/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user's terminal: shows grids, reads keys, and is restored whatever ends the program. */
#ifndef IBSCOPE_TERMINAL_H
#define IBSCOPE_TERMINAL_H

#include "grid.h"

struct err;

/**
 * terminal_guard() - fork a child to run the program; the parent restores the terminal
 *
 * Call it before anything is opened. It returns in the child; the parent passes signals on to it,
 * stops when it stops, restores the terminal if it is killed, and exits with its status.
 *
 * Return: 0 in the child; or a negative errno with @err if stdin or stdout is not a terminal.
 */
int terminal_guard(struct err *err);

/* Before anything is opened. Return: 0; or a negative errno with @err for an unknown TERM. */
int terminal_check(struct err *err);
/* After terminal_guard(). Return: 0; or a negative errno with @err. */
int terminal_open(struct err *err);
/* Return to the shell's screen. Does nothing if it is not open. */
void terminal_close(void);

/* The current size, independent of signals. */
void terminal_size(int *width, int *height);
void terminal_show(const struct grid *g);

/* Special keys have numbers from TERMINAL_KEYS on, in this order. */
#define TERMINAL_KEYS 0x110000
enum terminal_event { TERMINAL_NONE, TERMINAL_KEY, TERMINAL_CLICK, TERMINAL_RESIZE };

/* Does not wait. @key: a character or special key; @y and @x of a click with the first button */
enum terminal_event terminal_read(unsigned int *key, int *y, int *x);

#endif
