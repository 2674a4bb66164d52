/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Termination signals as a file descriptor for poll(). */
#ifndef IBSCOPE_SIGNALS_H
#define IBSCOPE_SIGNALS_H

#include "std.h"

/**
 * signals_open() - block SIGINT and SIGTERM, and report them through a signalfd
 * @daemon: SIGHUP and SIGUSR2, too
 *
 * Return: a signalfd, nonblocking and closed on exec; or a negative errno with @err.
 */
int signals_open(bool daemon, struct err *err);

#endif
