// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The decision core where maps are full or busy, other CPUs are faster, and user space changes the selection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/std.h"
#include "decide_world.h"

#define MAX_SLOTS 8
#define GEN(n)	  ((n) * (__u32)IBS_LIVE_STEP)
#define ID	  77 /* of the cgroup that runs */

static struct world world;

/* Groups by cgroup, all slots free but the one of the others. */
static struct world *fresh_world(__u32 by)
{
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->config.by = by;
	w->config.max_slots = MAX_SLOTS;
	w->config.slot_words = WORLD_WORDS;
	w->control.next_slot = 1;
	w->control.cgroup_default = 1;
	w->cpu.live = GEN(3);
	w->cpu.shard = 2;
	w->cgroup_id = w->ancestors[0] = ID;
	w->cgroup_v1_id = 1000 + ID;
	return w;
}

static __u32 index_of(__u32 slot)
{
	return 2 * MAX_SLOTS + slot;
}

static const __u64 no_regs[IBS_OP_REG_N];

/* --- slots --- */

static void test_slot_alloc(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	/* free after some that are taken */
	w->slots[1] = w->slots[2] = 1;
	assert_int_equal(slot_alloc(w), 3);
	assert_int_equal(w->slots[3], 1);
	assert_int_equal(w->control.next_slot, 4);
	assert_int_equal(w->slot_adds, 3);
	/* busy: the same slot is tried again, 16 times in all */
	w->slots_busy = 15;
	assert_int_equal(slot_alloc(w), 4);
	w->slots_busy = 16;
	assert_int_equal(slot_alloc(w), IBS_SLOT_OTHER);
	assert_int_equal(w->slots_busy, 0);
	assert_int_equal(w->slots[5], 0);
	assert_int_equal(w->control.next_slot, 5);
	/* all taken: nothing beyond the last one is tried, and the next search ends at once */
	memset(w->slots, 1, MAX_SLOTS);
	assert_int_equal(slot_alloc(w), IBS_SLOT_OTHER);
	assert_int_equal(w->control.next_slot, MAX_SLOTS);
	w->slot_adds = 0;
	assert_int_equal(slot_alloc(w), IBS_SLOT_OTHER);
	assert_int_equal(w->slot_adds, 0);
}

static void next_slot_6(struct world *w)
{
	w->control.next_slot = 6;
}

/* The hint does not move backwards when another CPU has moved it further. */
static void test_slot_hint(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	w->at_slot = next_slot_6;
	assert_int_equal(slot_alloc(w), 1);
	assert_int_equal(w->control.next_slot, 6);
	w->control.next_slot = 2;
	w->at_slot = next_slot_6;
	w->slots_busy = 16;
	assert_int_equal(slot_alloc(w), IBS_SLOT_OTHER);
	assert_int_equal(w->control.next_slot, 6);
}

static void test_slot_owner(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);
	const struct ibs_group_key key = { .cgroup_id = ID };

	(void)state;
	assert_int_equal(slot_alloc(w), 1);
	slot_own(w, 1, &key);
	assert_int_equal(w->slot_owners[1].used, IBS_SLOT_USED);
	assert_memory_equal(&w->slot_owners[1].key, &key, sizeof(key));
	assert_int_equal(slot_kept(w, 1, ID), 1);
	assert_int_equal(slot_kept(w, 1, ID + 1), IBS_SLOT_OTHER);
	assert_int_equal(slot_kept(w, WORLD_SLOTS, ID), IBS_SLOT_OTHER);
	w->slot_owners[1].used = IBS_SLOT_LEAVING;
	assert_int_equal(slot_kept(w, 1, ID), IBS_SLOT_OTHER);
	/* freed: found by the next search */
	w->slot_owners[1].used = IBS_SLOT_USED;
	w->control.next_slot = 5;
	slot_free(w, 1);
	assert_int_equal(w->slot_owners[1].used, IBS_SLOT_FREE);
	assert_int_equal(w->slots[1], 0);
	assert_int_equal(w->control.next_slot, 1);
	w->slots[4] = 1;
	slot_free(w, 4);
	assert_int_equal(w->control.next_slot, 1);
	/* the slot of the others has no owner and is never free */
	w->slots[IBS_SLOT_OTHER] = 1;
	slot_own(w, IBS_SLOT_OTHER, &key);
	assert_int_equal(w->slot_owners[IBS_SLOT_OTHER].used, IBS_SLOT_FREE);
	w->slot_owners[IBS_SLOT_OTHER].used = IBS_SLOT_ENDED;
	slot_free(w, IBS_SLOT_OTHER);
	assert_int_equal(w->slot_owners[IBS_SLOT_OTHER].used, IBS_SLOT_ENDED);
	assert_int_equal(w->slots[IBS_SLOT_OTHER], 1);
	assert_int_equal(w->control.next_slot, 1);
}

/* --- cgroups --- */

/* All that an earlier selection said of a cgroup is forgotten, except its slot. */
static void test_new_generation(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	put_cgroup(w, ID,
		   (struct ibs_cgroup){ .slot = 4, .gen = GEN(2), .min_lat = 9, .filter = 5 });
	w->slot_owners[4] = (struct ibs_slot_owner){ { .cgroup_id = ID }, IBS_SLOT_USED };
	assert_int_equal(current_cgroup(w, false), index_of(4));
	assert_int_equal(w->cpu.min_lat, 0);
	assert_int_equal(w->cpu.filter, 0);
	assert_int_equal(w->cgroups[0].slot, 4);
	assert_int_equal(w->cgroups[0].gen, GEN(3));
	assert_int_equal(w->cgroups[0].min_lat, 0);
	assert_int_equal(w->cgroups[0].filter, 0);
	assert_int_equal(w->cgroups[0].selected, 1);
	assert_int_equal(w->slot_adds, 0);
	/* user space has freed it since: a new one */
	w->slot_owners[4].used = IBS_SLOT_FREE;
	w->cpu.live = GEN(4);
	assert_int_equal(current_cgroup(w, false), index_of(1));
	assert_int_equal(w->slot_owners[1].key.cgroup_id, ID);
	/* known under this selection: as it was found */
	w = fresh_world(IBS_BY_CGROUP);
	put_cgroup(w, ID,
		   (struct ibs_cgroup){
			   .slot = 4, .gen = GEN(3), .min_lat = 9, .filter = 5, .selected = 1 });
	assert_int_equal(current_cgroup(w, false), index_of(4));
	assert_int_equal(w->cpu.min_lat, 9);
	assert_int_equal(w->cpu.filter, 5);
	w->cgroups[0].selected = 0;
	w->cpu.live += 1; /* another test of processes, the same selection of cgroups */
	assert_int_equal(current_cgroup(w, false), IBS_INDEX_LEFT_OUT);
	assert_int_equal(w->slot_adds, 0);
}

/* A CPU looks a cgroup up once for each selection, also when others run between. */
static void test_cache(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	for (int i = 0; i < 6; i++) {
		w->cgroup_id = ID + i % 2;
		assert_int_equal(current_cgroup(w, false), index_of(1 + i % 2));
		assert_int_equal(w->cpu.key, w->cgroup_id);
		assert_int_equal(w->cpu.key_live, GEN(3));
	}
	assert_int_equal(w->cgroup_finds, 2);
	w->cpu.live = GEN(4);
	for (int i = 0; i < 6; i++) {
		w->cgroup_id = ID + i % 2;
		assert_int_equal(current_cgroup(w, false), index_of(1 + i % 2));
		assert_int_equal(w->cpu.key_live, GEN(4));
	}
	assert_int_equal(w->cgroup_finds, 4);
	/* the same place of the cache */
	w->cgroup_id = ID + IBS_CGROUP_CACHE;
	assert_int_equal(current_cgroup(w, false), index_of(3));
	w->cgroup_id = ID;
	assert_int_equal(current_cgroup(w, false), index_of(1));
	/* of another hierarchy */
	w->config.cgroup_v1 = 1;
	assert_int_equal(slot_index(w, no_regs, false), index_of(4));
	assert_int_equal(w->slot_owners[4].key.cgroup_id, w->cgroup_v1_id);
}

/* While slots are busy the cgroup counts as another, and each of its samples tries again. */
static void test_busy_slots(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	w->slots_busy = 32;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(current_cgroup(w, false), index_of(IBS_SLOT_OTHER));
		assert_int_equal(w->cgroups[0].gen, GEN(3) - 1);
	}
	assert_int_equal(current_cgroup(w, false), index_of(1));
	assert_int_equal(w->cgroups[0].gen, GEN(3));
	assert_int_equal(w->cgroups[0].slot, 1);
	/* with no slot left, nothing is tried again until the selection changes */
	memset(w->slots, 1, MAX_SLOTS);
	w->cgroup_id = ID + 1;
	w->slot_adds = w->cgroup_finds = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(current_cgroup(w, false), index_of(IBS_SLOT_OTHER));
	assert_int_equal(w->slot_adds, MAX_SLOTS - 2);
	assert_int_equal(w->cgroup_finds, 1);
	assert_int_equal(w->cgroups[1].gen, GEN(3));
}

static struct ibs_cgroup theirs;

static void other_is_first(struct world *w)
{
	put_cgroup(w, ID, theirs);
}

/* Two CPUs give a known cgroup a slot at once: the later one takes what the other one wrote, if it is as new. */
static void test_slot_race(void **state)
{
	static const struct {
		__u32 live, gen, slot;
		bool taken;
	} rows[] = {
		{ GEN(3), GEN(3), 5, true },
		{ GEN(3), GEN(4), 5, true },
		{ GEN(3), GEN(3) - 1, 5, false },
		{ GEN(3), GEN(2), 5, false },
		{ GEN(3), GEN(3), IBS_SLOT_OTHER, false },
		{ (__u32)IBS_LIVE_GEN, GEN(1), 5, true }, /* generations wrap around */
		{ GEN(1), (__u32)IBS_LIVE_GEN, 5, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct world *w = fresh_world(IBS_BY_CGROUP);

		w->cpu.live = rows[i].live;
		put_cgroup(w, ID, (struct ibs_cgroup){ .gen = rows[i].live - IBS_LIVE_STEP });
		theirs = (struct ibs_cgroup){ .slot = rows[i].slot,
					      .gen = rows[i].gen,
					      .selected = 1,
					      .min_lat = 3,
					      .filter = 6 };
		w->at_slot = other_is_first;
		assert_int_equal(current_cgroup(w, false), index_of(rows[i].taken ? 5 : 1));
		assert_int_equal(w->cpu.min_lat, rows[i].taken ? 3 : 0);
		assert_int_equal(w->cpu.filter, rows[i].taken ? 6 : 0);
		assert_int_equal(w->slots[1], !rows[i].taken);
		assert_int_equal(w->slot_owners[1].used,
				 rows[i].taken ? IBS_SLOT_FREE : IBS_SLOT_USED);
		assert_int_equal(w->cgroups[0].slot, rows[i].taken ? 5 : 1);
		assert_int_equal(w->cgroups[0].gen, rows[i].taken ? rows[i].gen : rows[i].live);
	}
}

/* The same with a cgroup that nobody knew; and one that the map has no room for. */
static void test_new_cgroup_race(void **state)
{
	struct world *w = fresh_world(IBS_BY_CGROUP);

	(void)state;
	theirs = (struct ibs_cgroup){ .slot = 5, .gen = GEN(3), .selected = 1, .min_lat = 3 };
	w->at_cgroup = other_is_first;
	w->cgroup_error = -EEXIST;
	assert_int_equal(current_cgroup(w, false), index_of(5));
	assert_int_equal(w->cpu.min_lat, 3);
	assert_int_equal(w->cpu.key_live, GEN(3));
	assert_int_equal(w->slots[1], 0);
	assert_int_equal(w->control.next_slot, 1);

	w = fresh_world(IBS_BY_CGROUP);
	w->cgroup_error = -E2BIG;
	assert_int_equal(current_cgroup(w, false), index_of(IBS_SLOT_OTHER));
	assert_int_equal(w->slots[1], 0);
	assert_int_equal(w->control.next_slot, 1);
	assert_int_equal(w->cpu.key_live, 0);
	/* and is tried again */
	assert_int_equal(current_cgroup(w, false), index_of(1));
	assert_int_equal(w->cgroups[0].slot, 1);
}

/* The deepest ancestor that the selection names decides, predicates hold for all below. */
static void test_cgroup_select(void **state)
{
	struct world *w = fresh_world(0);

	(void)state;
	w->control.cgroup_default = 0;
	for (int level = 0; level < WORLD_LEVELS; level++)
		w->ancestors[level] = 100 + level;
	assert_int_equal(cgroup_select(w), 0);
	w->control.cgroup_default = 1;
	assert_int_equal(cgroup_select(w), 1 << 16);
	w->selected_ids[0] = 100;
	w->selected_cgroups[0] = (struct ibs_selected_cgroup){ 300, IBS_CGROUP_IN, 1 };
	w->selected_ids[1] = 100 + CGROUP_MAX_DEPTH - 1;
	w->selected_cgroups[1] = (struct ibs_selected_cgroup){ 20, IBS_CGROUP_OUT, 2 };
	w->selected_ids[2] = 100 + CGROUP_MAX_DEPTH; /* too deep */
	w->selected_cgroups[2] = (struct ibs_selected_cgroup){ 7, IBS_CGROUP_IN, 4 };
	assert_int_equal(cgroup_select(w), 20 | 3 << 24);
	w->selected_cgroups[1].selected = IBS_CGROUP_AS_ABOVE;
	assert_int_equal(cgroup_select(w), 300 | 1 << 16 | 3 << 24);
	w->ancestors[5] = 0;
	assert_int_equal(cgroup_select(w), 300 | 1 << 16 | 1 << 24);

	/* asked for by either option, else not */
	for (int i = 0; i < 4; i++) {
		w->config.task_select = i & 1 ? IBS_TASK_CGROUP : 0;
		w->config.cgroup_filter = i >> 1;
		w->selected_cgroups[0].selected = IBS_CGROUP_OUT;
		w->cpu.live = GEN(4 + i);
		assert_int_equal(current_cgroup(w, false),
				 i ? IBS_INDEX_LEFT_OUT : index_of(IBS_SLOT_OTHER));
		assert_int_equal(w->cpu.min_lat, i ? 300 : 0);
		assert_int_equal(w->cpu.filter, i ? 1 : 0);
		assert_int_equal(select_task(w, w->config.task_select),
				 i & 1 ? IBS_OUTCOME_FILTERED_CGROUP : IBS_OUTCOME_AGGREGATED);
	}
	assert_int_equal(w->slot_adds, 0); /* not by cgroup */
}

/* --- groups --- */

/* The key of the only group there is; it gets the first slot. */
static void check_key(__u32 by, const __u64 *regs, bool fetch, struct ibs_group_key want)
{
	struct world *w = fresh_world(by);

	w->pid_tgid = 5ULL << 32 | 6;
	w->cpu.node = 7;
	w->cpu.complex = 8;
	w->on_cpu = 9;
	memcpy(w->comm, "shop", 5);
	w->slab = 10;
	w->nodes = (struct ibs_memory_nodes){ .n = 1, .node = { 11 } };
	for (int i = 0; i < 2; i++)
		assert_int_equal(slot_index(w, regs, fetch), index_of(1));
	assert_int_equal(w->slot_adds, 1);
	assert_int_equal(w->slot_owners[1].used, IBS_SLOT_USED);
	assert_memory_equal(&w->slot_owners[1].key, &want, sizeof(want));
}

static void test_group_keys(void **state)
{
	static const __u64 op[IBS_OP_REG_N] = {
		[IBS_OP_RIP] = 1,
		[IBS_OP_DATA3] =
			IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID,
		[IBS_DC_LINADDR] = 1ULL << 63 | 0x1234,
		[IBS_DC_PHYSADDR] = 0x5000,
	};
	static const __u64 fetch[IBS_FETCH_REG_N] = {
		[IBS_FETCH_CTL] = IBS_FETCH_CTL_PHY_VALID,
		[IBS_FETCH_LINADDR] = 1ULL << 63,
		[IBS_FETCH_PHYSADDR] = 0x5000,
	};
	static const struct {
		__u32 by;
		struct ibs_group_key op, fetch;
	} rows[] = {
		{ IBS_BY_PID, { .tgid = 5 }, { .tgid = 5 } },
		{ IBS_BY_TID, { .tid = 6 }, { .tid = 6 } },
		{ IBS_BY_NODE, { .node = 7 }, { .node = 7 } },
		{ IBS_BY_COMPLEX, { .complex = 8 }, { .complex = 8 } },
		{ IBS_BY_CPU, { .cpu = 9 }, { .cpu = 9 } },
		{ IBS_BY_MODE, { .mode = IBS_MODE_USER }, { .mode = IBS_MODE_KERNEL } },
		{ IBS_BY_MEM_NODE, { .mem_node = 11 }, { .mem_node = 11 } },
		{ IBS_BY_COMM, { .comm = "shop" }, { .comm = "shop" } },
		{ IBS_BY_CGROUP | IBS_BY_PID,
		  { .cgroup_id = ID, .tgid = 5 },
		  { .cgroup_id = ID, .tgid = 5 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_key(rows[i].by, op, false, rows[i].op);
		check_key(rows[i].by, fetch, true, rows[i].fetch);
	}
	check_key(IBS_BY_SLAB, op, false, (struct ibs_group_key){ .slab = 10 });
	assert_int_equal(world.slab_addr, op[IBS_DC_LINADDR]);
	/* groups by nothing */
	assert_int_equal(slot_index(fresh_world(0), op, false), index_of(1));
	assert_int_equal(world.slot_adds, 0);
}

static void test_group_slab(void **state)
{
	static const struct {
		__u64 data3, addr, slab;
	} rows[] = {
		{ IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID, 1ULL << 63, 10 },
		{ IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_LIN_VALID, (1ULL << 63) - 1,
		  IBS_KEY_SLAB_USER },
		{ IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID, 0, IBS_KEY_SLAB_USER },
		{ IBS_OP_DATA3_LD_OP, 1ULL << 63, IBS_KEY_SLAB_UNKNOWN },
		{ IBS_OP_DATA3_LIN_VALID, 1ULL << 63, IBS_KEY_SLAB_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const __u64 regs[IBS_OP_REG_N] = {
			[IBS_OP_DATA3] = rows[i].data3, [IBS_DC_LINADDR] = rows[i].addr
		};

		check_key(IBS_BY_SLAB, regs, false, (struct ibs_group_key){ .slab = rows[i].slab });
	}
}

static void group_has_slot_5(struct world *w)
{
	w->group_keys[0] = (struct ibs_group_key){ .tgid = 5 };
	w->group_slots[0] = 5;
	w->n_groups = 1;
}

static void test_group_race(void **state)
{
	struct world *w = fresh_world(IBS_BY_PID);

	(void)state;
	w->pid_tgid = 5ULL << 32;
	w->at_group = group_has_slot_5;
	w->group_error = -EEXIST;
	assert_int_equal(slot_index(w, no_regs, false), index_of(5));
	assert_int_equal(w->slots[1], 0);
	assert_int_equal(w->control.next_slot, 1);
	/* no room */
	w->pid_tgid = 6ULL << 32;
	w->group_error = -E2BIG;
	assert_int_equal(slot_index(w, no_regs, false), index_of(IBS_SLOT_OTHER));
	assert_int_equal(w->slots[1], 0);
	/* no slot: the group is not kept */
	memset(w->slots, 1, MAX_SLOTS);
	assert_int_equal(slot_index(w, no_regs, false), index_of(IBS_SLOT_OTHER));
	assert_int_equal(w->n_groups, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot_alloc),    cmocka_unit_test(test_slot_hint),
		cmocka_unit_test(test_slot_owner),    cmocka_unit_test(test_new_generation),
		cmocka_unit_test(test_cache),	      cmocka_unit_test(test_busy_slots),
		cmocka_unit_test(test_slot_race),     cmocka_unit_test(test_new_cgroup_race),
		cmocka_unit_test(test_cgroup_select), cmocka_unit_test(test_group_keys),
		cmocka_unit_test(test_group_slab),    cmocka_unit_test(test_group_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
