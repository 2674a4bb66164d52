/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Neighbours that a collector names: for people, as JSON and as metrics. */
#ifndef IBSCOPE_READING_NEIGHBOURS_H
#define IBSCOPE_READING_NEIGHBOURS_H

#include "base/json_writer.h"
#include "counts/snapshot.h"

#include <ibscope/pin_layout.h>
#include <stdbool.h>
#include <stdio.h>

struct neighbour_name {
	char name_space[64], pod[256], container[184];
};

/* Pairs of a victim and a suspect; those whose names are known. */
struct reading_neighbours {
	bool known;    /* the collector judges them */
	__u64 time_ns; /* of the reading, CLOCK_BOOTTIME */
	unsigned int pairs, judged, n;
	struct ibs_neighbour pair[IBS_NEIGHBOURS];
	struct ibs_neighbour_use use[IBS_NEIGHBOURS]; /* of the suspects */
	struct neighbour_name victim[IBS_NEIGHBOURS], suspect[IBS_NEIGHBOURS];
};

/* Names of the group with this slot and cgroup; all "" if the slot has another one now. */
typedef void neighbour_name_cb(const void *arg, const struct group *g, struct ibs_slot_name *out);

void neighbours_read(struct reading_neighbours *to, __u64 time_ns, const struct ibs_neighbours *all,
		     neighbour_name_cb *name, const void *arg);

/* Latency of the victim in relation to that without the suspect, minus 1. */
static inline double neighbour_slowdown(const struct ibs_neighbour *n)
{
	return n->latency / n->baseline - 1;
}

void neighbours_print(FILE *f, const struct reading_neighbours *all);

/* The member "neighbours". */
void neighbours_put(struct json_writer *w, const struct reading_neighbours *all);

#endif
