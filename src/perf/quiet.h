/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Preparing a measurement. */
#ifndef IBSCOPE_QUIET_H
#define IBSCOPE_QUIET_H

#include "base/err.h"

/* Bind the calling thread to @cpu. Return: 0, or a negative errno with @err. */
int quiet_bind(unsigned int cpu, struct err *err);

/* Wait until the kernel has freed what was closed before, which would disturb the measurement. */
void quiet_settle(void);

#endif
