/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Windows of a source for the judge of neighbours. */
#ifndef IBSCOPE_CMD_NEIGHBOURS_H
#define IBSCOPE_CMD_NEIGHBOURS_H

#include "base/intern.h"
#include "neighbours/neighbours.h"

struct top_source;
struct err;

/* Labels to open the source with. */
#define NEIGHBOURS_LABELS (1U << LABEL_CONTAINER | 1U << LABEL_CCX)

/**
 * neighbours_read_window() - add what was counted since the last call, and judge
 * @names: of containers, "namespace/pod/container"; their numbers are those in the judge
 *
 * Return: 0; 1 if the source has ended; or a negative errno with @err.
 */
int neighbours_read_window(struct top_source *source, double seconds, struct neighbours *judge,
			   struct intern *names, struct err *err);

#endif
