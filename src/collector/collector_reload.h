/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling with other options, without losing counters. */
#ifndef IBSCOPE_COLLECTOR_RELOAD_H
#define IBSCOPE_COLLECTOR_RELOAD_H

#include "collector_state.h"

/* Open and start sampling with c->set. Return: 0 or a negative errno with @err. */
int collector_begin(struct collector *c, struct err *err);

/**
 * collector_replace() - sample with other options and resume the counters
 * @fresh: parsed; is taken over or closed
 *
 * Return: 0; or a negative errno with @err, *usage set if the user is to blame. Then the old options
 * are in force again, or c->broken is set.
 */
int collector_replace(struct collector *c, struct collector_settings *fresh, bool *usage,
		      struct err *err);

/* Read the options again. Return: as collector_replace(). */
int reload_options(struct collector *c, bool *usage, struct err *err);

#endif
