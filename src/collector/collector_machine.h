/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Notices clock changes, suspends and other users of the PMU; logs them and counts them in c->status. */
#ifndef IBSCOPE_COLLECTOR_MACHINE_H
#define IBSCOPE_COLLECTOR_MACHINE_H

#include "collector_state.h"

/* To be called after each sampling_open(). */
void machine_watch_start(struct collector *c);

/* To be called once a second: a shared PMU shows in what was missed since the last call. */
void machine_watch(struct collector *c, const struct pmu_state *pmu);

#endif
