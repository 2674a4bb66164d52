/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a measurement wants before it begins. */
#ifndef IBSCOPE_QUIET_H
#define IBSCOPE_QUIET_H

#include "err.h"

/* The calling thread runs there from now on. 0, or a negative errno with @err. */
int quiet_bind(unsigned int cpu, struct err *err);

/* What was closed before leaves work to do, as freeing maps, that must not run in the time measured. */
void quiet_settle(void);

#endif
