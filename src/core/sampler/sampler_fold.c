// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Folding of cgroups: their counts stay in the sums, their slots are reused. Dead cgroups leave, and
 * if there are more cgroups than slots, the least active ones make room.
 */
#include "sampler_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Delete dead cgroups from the map `cgroups`, including those without a slot. */
static size_t forget_cgroups(int fd, sampler_dead *dead, void *arg)
{
	__u64 id, next;
	__u64 *ids = NULL;
	size_t n = 0, room = 0;
	bool more;

	/* collect the keys first: deleting the current key would restart the iteration */
	for (more = !bpf_map_get_next_key(fd, NULL, &next); more;
	     more = !bpf_map_get_next_key(fd, &id, &next)) {
		id = next;
		if (!dead(arg, id))
			continue;
		array_reserve(ids, room, n + 1);
		ids[n++] = id;
	}
	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(fd, &ids[i]);
	free(ids);
	return n;
}

struct sampler_leaving {
	__u32 slot;
	__u32 into; /* slot that gets its counts: sampler.ended, or another one in use */
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

/* Counts added by a fold are not activity of the slot's cgroup. */
static void keep_activity(struct sampler *s, const struct sampler_leaving *l)
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

static void move_words(struct sampler *s, const struct sampler_leaving *l)
{
	__u64 *series = s->series.addr;

	for (__u32 shard = 0; shard < s->memory.shards; shard++) {
		__u64 *from = series + ((size_t)shard * s->max_slots + l->slot) * s->layout.words;
		__u64 *to = series + ((size_t)shard * s->max_slots + l->into) * s->layout.words;

		for (__u32 w = 0; w < s->layout.words; w++) {
			__u64 n = from[w] ? __atomic_exchange_n(&from[w], 0, __ATOMIC_SEQ_CST) : 0;

			if (n)
				__atomic_fetch_add(&to[w], n, __ATOMIC_SEQ_CST);
		}
	}
}

static void free_slot(const struct sampler_fold_maps *maps, struct ibs_control *control, __u32 slot)
{
	bpf_map_delete_elem(maps->slots, &slot);
	if (slot < __atomic_load_n(&control->next_slot, __ATOMIC_SEQ_CST))
		__atomic_store_n(&control->next_slot, slot, __ATOMIC_SEQ_CST);
}

/*
 * Add the counts of slots in use to others, and free the slots; programs then look up every cgroup
 * again. Groups other than cgroups must no longer be in a map.
 *
 * No program adds to a leaving slot once it has looked up its cgroup again, which `gen` forces. A
 * cgroup looked up before slots are free finds none: a second change of `gen` makes it retry.
 */
static void fold_slots(struct sampler *s, struct sampler_leaving *leaving, size_t n)
{
	const struct sampler_fold_maps maps = sampler_fold_maps(s);
	struct ibs_control *control = s->select.control;
	struct ibs_slot_owner *owners = s->slot_owners.addr;

	for (size_t i = 0; i < n; i++)
		__atomic_store_n(&owners[leaving[i].slot].used, IBS_SLOT_LEAVING, __ATOMIC_SEQ_CST);
	select_renew(&s->select);
	sampler_wait_for_programs(s);
	for (size_t i = 0; i < n && s->heir; i++)
		if (leaving[i].into == s->ended)
			leaving[i].into = s->heir(s->heir_arg, leaving[i].slot) ?: s->ended;
	__atomic_fetch_add(&control->fold, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++) {
		__atomic_store_n(&owners[leaving[i].slot].used, IBS_SLOT_FREE, __ATOMIC_SEQ_CST);
		keep_activity(s, &leaving[i]);
		move_words(s, &leaving[i]);
	}
	__atomic_fetch_add(&control->fold, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++)
		free_slot(&maps, control, leaving[i].slot);
	if (n)
		select_renew(&s->select);
}

struct owned {
	__u64 cgroup_id;
	__u32 slot;
};

static int by_cgroup(const void *pa, const void *pb)
{
	const struct owned *a = pa, *b = pb;

	return a->cgroup_id < b->cgroup_id ? -1 : a->cgroup_id > b->cgroup_id;
}

/*
 * Find slots of one cgroup that two CPUs allocated at once, to merge them into the one in use.
 * @owned: sorted by cgroup
 */
static size_t find_duplicates(int cgroups_fd, const struct owned *owned, size_t n,
			      struct sampler_leaving *leaving)
{
	size_t found = 0;

	for (size_t i = 0, end; i < n; i = end) {
		__u32 into = owned[i].slot;
		struct ibs_cgroup cg;

		for (end = i + 1; end < n && owned[end].cgroup_id == owned[i].cgroup_id; end++)
			;
		if (end == i + 1)
			continue;
		if (!bpf_map_lookup_elem(cgroups_fd, &owned[i].cgroup_id, &cg))
			for (size_t j = i; j < end; j++)
				if (owned[j].slot == cg.slot)
					into = cg.slot;
		for (size_t j = i; j < end; j++)
			if (owned[j].slot != into)
				leaving[found++] = (struct sampler_leaving){ owned[j].slot, into };
	}
	return found;
}

__u32 sampler_fold(struct sampler *s, sampler_dead *dead, void *arg)
{
	const struct sampler_fold_maps maps = sampler_fold_maps(s);
	struct ibs_slot_owner *owners = s->slot_owners.addr;
	struct sampler_leaving *leaving = xcalloc(s->max_slots, sizeof(*leaving));
	struct owned *owned = xcalloc(s->max_slots, sizeof(*owned));
	size_t n_dead = 0, n_owned = 0, n, forgotten;

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < s->max_slots; slot++) {
		if (!__atomic_load_n(&owners[slot].used, __ATOMIC_ACQUIRE) ||
		    !owners[slot].key.cgroup_id)
			continue;
		if (dead(arg, owners[slot].key.cgroup_id))
			leaving[n_dead++] = (struct sampler_leaving){ slot, s->ended };
		else
			owned[n_owned++] = (struct owned){ owners[slot].key.cgroup_id, slot };
	}
	n = n_dead;
	if (s->by == IBS_BY_CGROUP) {
		qsort(owned, n_owned, sizeof(*owned), by_cgroup);
		n += find_duplicates(maps.cgroups, owned, n_owned, leaving + n);
	}
	forgotten = forget_cgroups(maps.cgroups, dead, arg);
	for (size_t i = 0; i < n_dead && maps.by_groups; i++)
		bpf_map_delete_elem(maps.groups, &owners[leaving[i].slot].key);
	if (forgotten || n)
		fold_slots(s, leaving, n);
	free(owned);
	free(leaving);
	return n_dead;
}

void sampler_fold_into(struct sampler *s, sampler_heir *heir, void *arg)
{
	s->heir = heir;
	s->heir_arg = arg;
}

void sampler_fold_reserve(struct sampler *s, const struct sampler_opts *opts)
{
	struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u8 used = 1;

	s->ended = IBS_SLOT_OTHER;
	if (!opts->pins)
		return;
	s->ended = s->max_slots - 1;
	/* programs do not allocate slots in this map */
	bpf_map_update_elem(sampler_fold_maps(s).slots, &s->ended, &used, BPF_ANY);
	owners[s->ended].used = IBS_SLOT_ENDED;
}

void sampler_fold_repair(struct sampler *s)
{
	const struct sampler_fold_maps maps = sampler_fold_maps(s);
	struct ibs_control *control = s->select.control;
	struct ibs_slot_owner *owners = s->slot_owners.addr;

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < s->max_slots; slot++) {
		if (owners[slot].used == IBS_SLOT_USED || owners[slot].used == IBS_SLOT_ENDED ||
		    (!s->counts.by && slot == IBS_SLOT_OTHER + 1))
			continue;
		owners[slot].used = IBS_SLOT_FREE;
		move_words(s, &(struct sampler_leaving){ slot, s->ended });
		free_slot(&maps, control, slot);
	}
	if (control->fold & 1)
		__atomic_fetch_add(&control->fold, 1, __ATOMIC_SEQ_CST);
}

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
		fold_slots(s, leaving, leave);
	free(activity);
	free(leaving);
	return leave;
}
