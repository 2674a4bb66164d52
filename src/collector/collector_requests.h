/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a collector does on request of `ibscope ctl`. */
#ifndef IBSCOPE_COLLECTOR_REQUESTS_H
#define IBSCOPE_COLLECTOR_REQUESTS_H

#include "collector_state.h"

/*
 * Listen for requests, unless --control is none. A default socket that cannot be used is no failure.
 * Return: 0 or a negative errno with @err.
 */
int requests_open(struct collector *c, struct err *err);

#endif
