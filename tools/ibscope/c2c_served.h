/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hot lines of `ibscope serve --hot-lines`, and how `ibscope c2c --control` gets them. */
#ifndef IBSCOPE_C2C_SERVED_H
#define IBSCOPE_C2C_SERVED_H

#include "collector/collector.h"
#include "input/recorded.h"
#include "where/lines.h"

/* --- the collector --- */

/* To be called as often as the loop likes. Return: ms until it has to be called again. */
int c2c_served_run(struct collector *c);

/* The tables are about to go: take what they have. */
void c2c_served_closing(struct collector *c);

/* Answer a request with all windows, as this build has them in memory. Return: 0 or a negative errno with @err. */
int c2c_served_answer(const struct collector *c, FILE *f, struct err *err);

/* --- who asks --- */

/**
 * c2c_served_ask() - the lines that a collector has
 * @in: gets head, tasks and symbols, as recorded_start() makes them; closed by the caller
 *
 * Return: 0 with *out; or a negative errno with @err.
 */
int c2c_served_ask(const char *path, struct recorded *in, struct line_set **out, struct err *err);

#endif
