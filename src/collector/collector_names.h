/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of groups, for readers that cannot find them out themselves. */
#ifndef IBSCOPE_COLLECTOR_NAMES_H
#define IBSCOPE_COLLECTOR_NAMES_H

#include "collector_state.h"

/* Bring the pinned names up to date. */
void collector_names_update(struct collector *c);

#endif
