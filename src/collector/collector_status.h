/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pinned status: what readers learn of the collector itself. */
#ifndef IBSCOPE_COLLECTOR_STATUS_H
#define IBSCOPE_COLLECTOR_STATUS_H

#include "collector_state.h"

/* Write what changes all the time. */
int status_update(struct collector *c, double now_s, struct err *err);
/* The same once a second; watches the machine, too. */
int status_tick(struct collector *c, double now_s, struct err *err);

/* Write the texts that change only when sampling begins, after sampling_open(). */
void status_begin(struct collector *c);
/* Write what is set live. */
void status_live(struct collector *c);

#endif
