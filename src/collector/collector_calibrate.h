/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cost of a sample without the program: given, measured or assumed. */
#ifndef IBSCOPE_COLLECTOR_CALIBRATE_H
#define IBSCOPE_COLLECTOR_CALIBRATE_H

#include "collector_state.h"

/* Is collector_calibrate() going to measure? Nothing else may sample meanwhile. */
bool collector_must_calibrate(const struct collector *c);

/* Set budget.nmi_ns, between sampling_open() and sampler_start(). It is measured once. */
void collector_calibrate(struct collector *c);

#endif
