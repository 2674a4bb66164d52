/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters in ordinary memory. Define CAPS, SHARDS and SLOTS first, and CPUS if there are several; set_up() and tear_down() are of all tests of a program. */
#ifndef IBSCOPE_TESTS_SLOTS_H
#define IBSCOPE_TESTS_SLOTS_H

#include "counts/counts.h"

#include <stdlib.h>
#include <string.h>

#ifndef CPUS
#define CPUS 1
#endif

static struct layout layout;
static struct ibs_slot_owner owners[SLOTS];
static struct ibs_state *state;
static __u64 *series;

static int set_up(void **unused)
{
	(void)unused;
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, CAPS);
	series = calloc((size_t)SHARDS * SLOTS * layout.words, sizeof(*series));
	state = aligned_alloc(_Alignof(struct ibs_state),
			      sizeof(*state) + CPUS * sizeof(*state->cpu));
	if (state)
		memset(state, 0, sizeof(*state) + CPUS * sizeof(*state->cpu));
	return series && state ? 0 : -1;
}

static int tear_down(void **unused)
{
	(void)unused;
	free(series);
	free(state);
	return 0;
}

#endif
