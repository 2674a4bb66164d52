/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a collector that was killed leaves: pinned links that sample on, and pinned counters. */
#ifndef IBSCOPE_ORPHAN_H
#define IBSCOPE_ORPHAN_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct pins;

/* ibs_op or the only event, and ibs_fetch */
#define ORPHAN_EVENTS 2

/**
 * orphan_open() - open the pins of a directory, and end the sampling that a killed collector has left
 * @mode: of pins for readers
 * @out:  by event; NULL: has none
 *
 * Holds the PMU meanwhile, so that each sample that the hardware delivers reaches the program.
 *
 * Return: 0 or a negative errno with @err, as pins_open().
 */
int orphan_open(const char *dir, mode_t mode, struct pins *out[ORPHAN_EVENTS], struct err *err);

#endif
