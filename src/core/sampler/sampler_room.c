// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Gives slots to the most active cgroups if there are more cgroups than slots. */
#include "sampler_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A cgroup is folded if those without a slot are, on average, this many times as active: with about
 * equal activity cgroups would only swap places.
 */
#define TIMES_AS_ACTIVE 2
/* Fold at most 1/PART of all slots at a time, but at least one. */
#define PART 16

struct slot_activity {
	__u32 slot;
	__u64 ops; /* since the last call */
};

/* Estimated ops of a slot. */
static __u64 slot_ops(const struct sampler *s, __u32 slot)
{
	__u64 sum = 0;

	for (__u32 shard = 0; shard < s->memory.shards; shard++) {
		const __u64 *words = (const __u64 *)s->series.addr +
				     ((size_t)shard * s->max_slots + slot) * s->layout.words;

		for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++)
			if (layout_has(&s->layout, pair))
				sum += words[(s->layout.entry[pair] & IBS_LAYOUT_WORD) +
					     IBS_PAIR_OPS];
	}
	return sum;
}

/* Number of selected cgroups that have been sampled but have no slot. */
static __u64 count_waiting(int fd)
{
	struct ibs_cgroup cg;
	__u64 id, next, n = 0;
	bool more;

	for (more = !bpf_map_get_next_key(fd, NULL, &next); more;
	     more = !bpf_map_get_next_key(fd, &id, &next)) {
		id = next;
		if (!bpf_map_lookup_elem(fd, &id, &cg))
			n += cg.selected && cg.slot == IBS_SLOT_OTHER;
	}
	return n;
}

static int by_activity(const void *pa, const void *pb)
{
	const struct slot_activity *a = pa, *b = pb;

	return a->ops < b->ops ? -1 : a->ops > b->ops;
}

/* Ops of each slot since the last call; a slot that has been reassigned counts from zero. */
static __u32 measure_activity(struct sampler *s, struct slot_activity *activity, __u64 *other)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u32 n = 0;

	for (__u32 slot = 0; slot < s->max_slots; slot++) {
		struct slot_seen *seen = &s->slots_seen[slot];
		__u64 ops = slot_ops(s, slot);
		__u64 before = seen->cgroup_id == owners[slot].key.cgroup_id ? seen->ops : 0;

		*seen = (struct slot_seen){ owners[slot].key.cgroup_id, ops };
		ops = ops > before ? ops - before : 0;
		if (slot == IBS_SLOT_OTHER)
			*other = ops;
		else if (owners[slot].used == IBS_SLOT_USED)
			activity[n++] = (struct slot_activity){ slot, ops };
	}
	return n;
}

/* Counts added by a fold are not activity of the slot's cgroup. */
void sampler_room_moving(struct sampler *s, const struct sampler_leaving *l)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	struct slot_seen *into;

	if (!s->slots_seen)
		return;
	into = &s->slots_seen[l->into];
	if (into->cgroup_id == owners[l->into].key.cgroup_id)
		into->ops += slot_ops(s, l->slot);
	s->slots_seen[l->slot].ops = 0;
}

__u32 sampler_make_room(struct sampler *s)
{
	const bool first = !s->slots_seen;
	struct slot_activity *activity;
	__u64 other = 0, waiting = 0;
	struct sampler_leaving *leaving;
	__u32 n, leave = 0;

	if (s->by != IBS_BY_CGROUP || !s->count_ops)
		return 0;
	if (first)
		s->slots_seen = xcalloc(s->max_slots, sizeof(*s->slots_seen));
	activity = xcalloc(s->max_slots, sizeof(*activity));
	leaving = xcalloc(s->max_slots, sizeof(*leaving));
	n = measure_activity(s, activity, &other);
	if (!first && other && n == s->max_slots - 1 - (s->ended != IBS_SLOT_OTHER))
		waiting = count_waiting(sampler_fold_maps(s).cgroups);
	qsort(activity, n, sizeof(*activity), by_activity);
	for (; leave < n && leave < waiting && leave < 1 + s->max_slots / PART; leave++) {
		if (activity[leave].ops > other / waiting / TIMES_AS_ACTIVE)
			break;
		leaving[leave] = (struct sampler_leaving){ activity[leave].slot, s->ended };
	}
	if (leave)
		sampler_fold_slots(s, leaving, leave);
	free(activity);
	free(leaving);
	return leave;
}
