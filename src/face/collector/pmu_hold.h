/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps the events of others off a PMU for a moment. */
#ifndef IBSCOPE_PMU_HOLD_H
#define IBSCOPE_PMU_HOLD_H

#include "base/err.h"

#include <stddef.h>

struct pmu_hold;

/**
 * pmu_hold() - take PMUs with one counter from other events, on all online CPUs
 * @names: of the PMUs; those that this machine lacks are skipped
 *
 * The kernel prefers pinned events: once this returns, no event of others counts, and none of their
 * programs runs, unless they are pinned, too. The holding events take no samples.
 *
 * Return: to be passed to pmu_release().
 */
struct pmu_hold *pmu_hold(const char *const *names, size_t n);
void pmu_release(struct pmu_hold *hold); /* accepts NULL */

#endif
