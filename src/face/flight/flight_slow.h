/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slowest samples of each group in a recording, for exemplars: they lead from a histogram to a sample. */
#ifndef IBSCOPE_FLIGHT_SLOW_H
#define IBSCOPE_FLIGHT_SLOW_H

#include "session/session.h"

#include <ibscope/pin_layout.h>

#define FLIGHT_SLOW_GROUPS 256 /* those with the slowest samples */

struct flight_slowest {
	size_t n;
	struct flight_slow_group {
		struct ibs_group_key key;
		struct ibs_exemplar sample[IBS_EXEMPLARS]; /* slowest first */
	} group[FLIGHT_SLOW_GROUPS];
};

struct flight_slow;

/* @event: of which the samples are. Groups by what a record does not say, such as the thread name, have none. */
struct flight_slow *flight_slow_new(const struct session_event *event);
void flight_slow_free(struct flight_slow *s);

void flight_slow_add(struct flight_slow *s, const struct record_batch *batch);

/* @recording_ns: see struct ibs_exemplar */
void flight_slow_get(struct flight_slow *s, __u64 recording_ns, struct flight_slowest *out);

/* The samples of a group; NULL: none. */
const struct ibs_exemplar *flight_slowest_of(const struct flight_slowest *all,
					     const struct ibs_group_key *key);

#endif
