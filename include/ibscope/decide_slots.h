/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decision core: slots, the numbers of groups in the counters. */
#ifndef IBSCOPE_DECIDE_SLOTS_H
#define IBSCOPE_DECIDE_SLOTS_H

#include <ibscope/decide_env.h>
#include <linux/errno.h>

/*
 * Other CPUs take slots concurrently, so next_slot is only a hint, but it must not move backwards.
 * In an NMI a map update fails while the map's lock is held; that does not mean the slot is taken.
 */
static __noinline __u32 slot_alloc(core_t core)
{
	struct ibs_control *control = core_control(core);
	const __u32 max_slots = core_config(core)->max_slots;
	__u32 slot = READ_ONCE(control->next_slot);
	__u8 used = 1;
	int i;

	for (i = 0; i < 16 && slot < max_slots; i++) {
		/* before v6.4 the upper half of what a map returns is undefined */
		int ret = map_add(core, slots, &slot, &used);

		if (!ret) {
			if (READ_ONCE(control->next_slot) <= slot)
				WRITE_ONCE(control->next_slot, slot + 1);
			return slot;
		}
		if (ret == -EEXIST)
			slot++;
	}
	if (READ_ONCE(control->next_slot) < slot)
		WRITE_ONCE(control->next_slot, slot); /* all lower slots are taken */
	return IBS_SLOT_OTHER;
}

/* Set the owner before the slot appears in a map, so that no reader misses its counts. */
static __always_inline void slot_own(core_t core, __u32 slot, const struct ibs_group_key *key)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	owner->key = *key;
	barrier();
	WRITE_ONCE(owner->used, IBS_SLOT_USED);
}

static __always_inline void slot_free(core_t core, __u32 slot)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);
	struct ibs_control *control = core_control(core);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	WRITE_ONCE(owner->used, IBS_SLOT_FREE);
	map_delete(core, slots, &slot);
	if (slot < READ_ONCE(control->next_slot))
		WRITE_ONCE(control->next_slot, slot);
}

/* The cgroup's previous slot, unless user space has freed it since. */
static __always_inline __u32 slot_kept(core_t core, __u32 slot, __u64 cgroup_id)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);

	if (owner && READ_ONCE(owner->used) == IBS_SLOT_USED &&
	    READ_ONCE(owner->key.cgroup_id) == cgroup_id)
		return slot;
	return IBS_SLOT_OTHER;
}

#endif
