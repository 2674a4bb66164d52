/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals that end a program in order, as a file for poll(). */
#ifndef IBSCOPE_SIGNALS_H
#define IBSCOPE_SIGNALS_H

#include "std.h"

/**
 * signals_open() - block SIGINT and SIGTERM, and read them from a file instead
 * @hangup: SIGHUP, too
 *
 * Return: a signalfd, not blocking and closed on exec; or a negative errno with @err.
 */
int signals_open(bool hangup, struct err *err);

#endif
