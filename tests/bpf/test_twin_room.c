// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own functions, run by the kernel on samples made here: slots of groups, who has one
 * when there are fewer than cgroups, and what becomes of those whose cgroup is dead.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "bind_to.h"
#include "pins/pins.h"
#include "sampler/sampler.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"
#include "twin_child.h"
#include "twin_model.h"

/* More cgroups than slots: in the end those that do most have one, and no sample is lost. */
#define ROOM_SLOTS 8

/* The id of the cgroup of a number. */
static __u64 cg(unsigned int n)
{
	static __u64 ids[1024];
	char name[16], path[640];

	assert_true(n < 1024);
	if (!ids[n]) {
		snprintf(name, sizeof(name), "%u", n);
		ids[n] = make_cgroup(name, path);
	}
	return ids[n];
}

static void run_cgroups(struct sampler *s, unsigned int first, size_t n, size_t samples,
			__u64 *total)
{
	static regs_t regs[1024];
	char path[640], name[16];

	assert_true(samples <= 1024);
	for (size_t i = 0; i < samples; i++)
		load_miss(regs[i], DRAM, 300);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%zu", first + i);
		make_cgroup(name, path);
		run_child(s, &(struct child){ .cgroup = path, .regs = regs, .n = samples });
	}
	*total += n * samples;
}

static size_t groups_in(struct sampler *s, unsigned int first, size_t n, __u64 total)
{
	size_t found = 0;
	__u64 sum = 0;
	struct snapshot snap;

	snapshot(s, &snap);
	for (size_t g = 0; g < snap.n_groups; g++) {
		const struct group *gr = &snap.groups[g];

		for (size_t i = 0; i < gr->n_series; i++) {
			sum += gr->series[i].samples;
			assert_int_equal(gr->series[i].ops, gr->series[i].samples);
		}
		for (size_t i = 0; i < n; i++)
			found += !gr->other && gr->key.cgroup_id == cg(first + i);
	}
	assert_int_equal(sum, total);
	snapshot_free(&snap);
	return found;
}

static struct sampler *open_rooms(__u32 slots)
{
	struct sampler_opts opts = zen4;

	opts.by = IBS_BY_CGROUP;
	opts.max_groups = slots;
	opts.count_ops = true;
	return open_twin(&opts);
}

static void test_make_room(void **state)
{
	const unsigned int quiet = 100, busy = 200;
	struct sampler *s = open_rooms(ROOM_SLOTS);
	__u64 total = 0, moved = 0;

	(void)state;
	run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
	assert_int_equal(groups_in(s, quiet, ROOM_SLOTS, total), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s), 0); /* the first look */
	for (int round = 0; round < 2 * ROOM_SLOTS; round++) {
		int n;

		run_cgroups(s, busy, ROOM_SLOTS, 20, &total);
		run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
		n = sampler_make_room(s);
		assert_true(n >= 0 && n <= 1);
		moved += n;
		groups_in(s, quiet, ROOM_SLOTS, total);
	}
	assert_int_equal(groups_in(s, busy, ROOM_SLOTS, total), ROOM_SLOTS);
	assert_int_equal(groups_in(s, quiet, ROOM_SLOTS, total), 0);
	/* each made way once, but for those that came back for a moment */
	assert_in_range(moved, ROOM_SLOTS, 2 * ROOM_SLOTS);
	/* as many that do as much find nobody who would make way */
	moved = 0;
	for (int round = 0; round < 4; round++) {
		run_cgroups(s, busy, ROOM_SLOTS + 4, 20, &total);
		moved += sampler_make_room(s);
	}
	assert_int_equal(moved, 0);
	assert_int_equal(groups_in(s, busy, ROOM_SLOTS, total), ROOM_SLOTS);
	sampler_close(s);
}

static bool has_slot(struct sampler *s, __u64 cgroup_id)
{
	struct ibs_cgroup known;

	assert_int_equal(bpf_map_lookup_elem(sampler_fold_maps(s).cgroups, &cgroup_id, &known), 0);
	return known.slot != IBS_SLOT_OTHER;
}

static __u32 slots_used(struct sampler *s)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u32 n = 0;

	for (__u32 slot = 1; slot < s->max_slots; slot++)
		n += owners[slot].used == IBS_SLOT_USED;
	return n;
}

/* A cgroup that asked for a slot while those that leave were not free yet. */
static void test_room_asked_early(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	int cgroups = sampler_fold_maps(s).cgroups;
	const unsigned int quiet = 100, busy = 200;
	struct ibs_cgroup known;
	__u64 total = 0, id = cg(busy);

	(void)state;
	run_cgroups(s, quiet, ROOM_SLOTS, 1, &total);
	assert_int_equal(sampler_make_room(s), 0);
	run_cgroups(s, busy, 1, 20, &total);
	assert_false(has_slot(s, cg(busy)));
	assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &known), 0);
	known.gen++;
	assert_int_equal(bpf_map_update_elem(cgroups, &id, &known, BPF_EXIST), 0);
	assert_int_equal(sampler_make_room(s), 1);
	run_cgroups(s, busy, 1, 1, &total);
	assert_true(has_slot(s, cg(busy)));
	assert_int_equal(groups_in(s, busy, 1, total), 1);
	close_twin(s);
}

static bool dead_in(void *arg, __u64 cgroup_id)
{
	for (const __u64 *id = arg; *id; id++)
		if (*id == cgroup_id)
			return true;
	return false;
}

/* Slots that are far from each other are all found. */
static void test_room_far(void **state)
{
	enum { SLOTS = 200 };
	struct sampler *s = open_rooms(SLOTS);
	__u64 dead[] = { cg(103), cg(150), cg(298), 0 };
	__u64 total = 0;

	(void)state;
	run_cgroups(s, 100, SLOTS, 1, &total);
	run_cgroups(s, 500, 3, 1, &total);
	assert_int_equal(groups_in(s, 500, 3, total), 0);
	assert_int_equal(sampler_fold(s, dead_in, dead), 3);
	run_cgroups(s, 500, 3, 20, &total);
	for (unsigned int id = 500; id < 503; id++)
		assert_true(has_slot(s, cg(id)));
	assert_int_equal(slots_used(s), SLOTS);
	assert_int_equal(groups_in(s, 500, 3, total), 3);
	close_twin(s);
}

static __u32 keys_in(int map)
{
	struct ibs_group_key key;
	__u32 n = 0;

	for (void *before = NULL; !bpf_map_get_next_key(map, before, &key); before = &key)
		n++;
	return n;
}

/* Of a collector with pins, which has a slot for what dead groups leave, and adopts it. */
static void test_fold_with_pins(void **state)
{
	__u64 dead[] = { cg(100), 0 };
	struct sampler_opts opts = zen4;
	struct ibs_slot_owner *owners;
	struct sampler *s;
	char dir[64];
	__u64 total = 0;
	struct err err = {};

	(void)state;
	snprintf(dir, sizeof(dir), "/sys/fs/bpf/ibscope-unit-room-%d", (int)getpid());
	if (pins_open(dir, 0644, &opts.pins, &err)) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	opts.by = IBS_BY_CGROUP | IBS_BY_PID;
	opts.max_groups = ROOM_SLOTS;
	opts.count_ops = true;
	s = open_twin(&opts);
	owners = s->slot_owners.addr;
	assert_int_equal(s->ended, s->max_slots - 1);
	assert_int_equal(owners[s->ended].used, IBS_SLOT_ENDED);
	for (int round = 0; round < 3; round++) {
		struct snapshot snap;
		__u64 ended = 0;

		run_cgroups(s, 100, 2, 3, &total);
		assert_int_equal(sampler_fold(s, dead_in, dead), 1);
		/* the keys of those groups are gone: whoever has one again has another slot */
		assert_int_equal(slots_used(s), round + 1);
		assert_int_equal(keys_in(sampler_fold_maps(s).groups), round + 1);
		snapshot(s, &snap);
		for (size_t g = 0; g < snap.n_groups; g++)
			for (size_t i = 0; i < snap.groups[g].n_series; i++)
				ended +=
					snap.groups[g].ended ? snap.groups[g].series[i].samples : 0;
		assert_int_equal(ended, 3 * (round + 1));
		assert_int_equal(snap.ledger.seen, total);
		snapshot_free(&snap);
	}
	close_twin(s);
	pins_remove(opts.pins);
	pins_close(opts.pins);
}

/* What dead cgroups leave to `other` is no activity of those that wait. */
static void test_room_after_fold(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	const unsigned int quiet = 100, waiting = 200;
	__u64 dead[] = { cg(quiet), 0 };
	__u64 total = 0;

	(void)state;
	run_cgroups(s, quiet, 1, 1000, &total);
	run_cgroups(s, quiet + 1, ROOM_SLOTS - 1, 1, &total);
	assert_int_equal(sampler_make_room(s), 0);
	run_cgroups(s, waiting, 2, 1, &total);
	run_cgroups(s, quiet + 1, ROOM_SLOTS - 1, 5, &total);
	assert_int_equal(sampler_fold(s, dead_in, dead), 1);
	run_cgroups(s, waiting, 2, 5, &total);
	assert_int_equal(slots_used(s), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s), 0);
	/* but what those did before that is */
	run_cgroups(s, waiting + 1, 1, 100, &total);
	dead[0] = cg(quiet + 1);
	assert_int_equal(sampler_fold(s, dead_in, dead), 1);
	run_cgroups(s, waiting, 2, 1, &total);
	run_cgroups(s, waiting + 2, 1, 1, &total);
	assert_int_equal(slots_used(s), ROOM_SLOTS);
	assert_int_equal(sampler_make_room(s), 1);
	groups_in(s, quiet, ROOM_SLOTS, total);
	close_twin(s);
}

/* Two slots of one cgroup, as two CPUs take that meet it at once: they become one, and none is lost. */
static void test_fold_twins(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	int cgroups = sampler_fold_maps(s).cgroups;
	struct ibs_cgroup known, no_slot;
	const __u64 id = cg(100);
	__u64 none[] = { 0 };
	struct snapshot snap;
	__u64 total = 0;

	(void)state;
	for (int later = 0; later < 2; later++) {
		__u64 total_before = total;

		run_cgroups(s, 100, 1, 5, &total);
		assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &known), 0);
		no_slot = known;
		no_slot.gen--;
		no_slot.slot = IBS_SLOT_OTHER;
		assert_int_equal(bpf_map_update_elem(cgroups, &id, &no_slot, BPF_EXIST), 0);
		select_renew(&s->select);
		run_cgroups(s, 100, 1, 7, &total);
		assert_int_equal(slots_used(s), 2);
		if (later) { /* the other one is used */
			assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &no_slot), 0);
			no_slot.slot = known.slot;
			assert_int_equal(bpf_map_update_elem(cgroups, &id, &no_slot, BPF_EXIST), 0);
		}
		assert_int_equal(sampler_fold(s, dead_in, none), 0);
		assert_int_equal(slots_used(s), 1);
		assert_int_equal(total, total_before + 12);
		run_cgroups(s, 100, 1, 1, &total);
		assert_int_equal(slots_used(s), 1);
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, 1);
		assert_int_equal(snap.groups[0].key.cgroup_id, id);
		assert_int_equal(snap.groups[0].series[0].samples, total);
		snapshot_free(&snap);
	}
	close_twin(s);
}

/* The slot of a cgroup. */
static __u32 slot_of(const struct sampler *s, __u64 cgroup_id)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u32 slot = 1;

	while (slot < s->max_slots && owners[slot].key.cgroup_id != cgroup_id)
		slot++;
	assert_in_range(slot, 1, s->max_slots - 1);
	return slot;
}

struct inheritance {
	__u32 from, to;
};

static __u32 successor(void *arg, __u32 slot)
{
	const struct inheritance *i = arg;

	return slot == i->from ? i->to : 0;
}

static __u64 samples_of(struct sampler *s, __u64 cgroup_id)
{
	struct snapshot snap;
	__u64 n = 0;

	snapshot(s, &snap);
	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			if (snap.groups[g].other ? !cgroup_id
						 : snap.groups[g].key.cgroup_id == cgroup_id)
				n += snap.groups[g].series[i].samples;
	snapshot_free(&snap);
	return n;
}

/* What a dead cgroup leaves goes to its successor, or without one to `other`. */
static void test_fold_into(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	__u64 dead[] = { cg(100), cg(101), 0 };
	struct inheritance i;
	__u64 total = 0;

	(void)state;
	run_cgroups(s, 100, 1, 5, &total);
	run_cgroups(s, 101, 1, 7, &total);
	run_cgroups(s, 102, 1, 9, &total);
	i = (struct inheritance){ slot_of(s, cg(100)), slot_of(s, cg(102)) };
	sampler_fold_into(s, successor, &i);
	assert_int_equal(sampler_fold(s, dead_in, dead), 2);
	assert_int_equal(samples_of(s, cg(102)), 5 + 9);
	assert_int_equal(samples_of(s, 0), 7);
	assert_int_equal(samples_of(s, cg(100)), 0);
	close_twin(s);
}

/* Generation of the selection that the entry of a cgroup belongs to. */
static __u32 generation_of(struct sampler *s, __u64 cgroup_id)
{
	struct ibs_cgroup known = {};

	assert_int_equal(bpf_map_lookup_elem(sampler_fold_maps(s).cgroups, &cgroup_id, &known), 0);
	return known.gen;
}

/* What is known of a cgroup holds for the selection under which it was looked up. */
static void test_generation(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	__u64 total = 0;
	__u32 first;

	(void)state;
	run_cgroups(s, 100, 1, 1, &total);
	first = generation_of(s, cg(100));
	assert_int_equal(first, s->state->cpu[0].live & IBS_LIVE_GEN);
	select_renew(&s->select);
	assert_int_equal(generation_of(s, cg(100)), first);
	run_cgroups(s, 100, 1, 1, &total);
	assert_int_equal(generation_of(s, cg(100)), first + IBS_LIVE_STEP);
	assert_int_equal(s->state->cpu[0].live & IBS_LIVE_GEN, first + IBS_LIVE_STEP);
	close_twin(s);
}

/*
 * A CPU looks up a cgroup that it has met when the selection changes, not for each sample. Another one may have its place:
 * which, depends on the serial numbers of the kernel, which others take, too.
 */
static void test_looked_up_once(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	const int cgroups = sampler_fold_maps(s).cgroups;
	const __u64 id = cg(100);
	struct ibs_cgroup known;
	unsigned int tries = 0;
	__u64 total = 0;
	cpu_set_t all;
	int ret = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	bind_to(sched_getcpu());
	while (!ret && tries < 3) {
		run_cgroups(s, 100, 1, 1, &total);
		run_cgroups(s, 101 + tries++, 1, 1, &total);
		/* a look-up would make the entry again, with another slot */
		assert_int_equal(bpf_map_delete_elem(cgroups, &id), 0);
		run_cgroups(s, 100, 1, 2, &total);
		ret = bpf_map_lookup_elem(cgroups, &id, &known);
	}
	assert_int_equal(ret, -ENOENT);
	assert_int_equal(samples_of(s, id), 3 * tries);
	assert_int_equal(slots_used(s), 2 * tries);
	select_renew(&s->select);
	run_cgroups(s, 100, 1, 1, &total);
	assert_int_equal(bpf_map_lookup_elem(cgroups, &id, &known), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	sampler_close(s);
}

/*
 * No cgroup can be added: its samples are counted as `other`, and it takes no slot. The next sample tries
 * again.
 */
static void test_no_entry(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	const int cgroups = sampler_fold_maps(s).cgroups;
	const struct ibs_cgroup any = { .slot = IBS_SLOT_OTHER };
	__u64 id = 1ULL << 60, total = 0; /* no cgroup has these */

	(void)state;
	while (!bpf_map_update_elem(cgroups, &id, &any, BPF_NOEXIST))
		id++;
	assert_int_equal(errno, E2BIG);
	run_cgroups(s, 100, 1, 5, &total);
	assert_int_equal(samples_of(s, 0), 5);
	assert_int_equal(slots_used(s), 0);
	/* elements that were freed may wait on another CPU */
	for (__u64 i = 1ULL << 60; i < id; i++)
		assert_int_equal(bpf_map_delete_elem(cgroups, &i), 0);
	run_cgroups(s, 100, 1, 3, &total);
	assert_int_equal(samples_of(s, cg(100)), 3);
	assert_int_equal(samples_of(s, 0), 5);
	assert_int_equal(slots_used(s), 1);
	close_twin(s);
}

/* A cgroup that found no slot asks again under the next selection, not before. */
static void test_other_stays(void **state)
{
	struct sampler *s = open_rooms(ROOM_SLOTS);
	struct ibs_slot_owner *owners = s->slot_owners.addr;
	__u64 total = 0;
	__u32 slot;

	(void)state;
	run_cgroups(s, 100, ROOM_SLOTS, 1, &total);
	run_cgroups(s, 200, 1, 1, &total);
	assert_false(has_slot(s, cg(200)));
	slot = slot_of(s, cg(100));
	owners[slot].used = IBS_SLOT_FREE;
	assert_int_equal(bpf_map_delete_elem(sampler_fold_maps(s).slots, &slot), 0);
	s->state->control.next_slot = slot;
	/* as on a CPU that has not met the cgroup */
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
		s->state->cpu[cpu].key = 0;
		memset(s->state->cpu[cpu].cache, 0, sizeof(s->state->cpu[cpu].cache));
	}
	run_cgroups(s, 200, 1, 1, &total);
	assert_false(has_slot(s, cg(200)));
	select_renew(&s->select);
	run_cgroups(s, 200, 1, 1, &total);
	assert_true(has_slot(s, cg(200)));
	sampler_close(s);
}

/* A sample looks at 16 slots, and the next one from there on. */
static void test_slots_taken(void **state)
{
	struct sampler *s = open_rooms(200);
	const __u32 first = s->state->control.next_slot;
	const __u8 used = 1;
	__u64 total = 0;

	(void)state;
	for (__u32 slot = first; slot < first + 20; slot++)
		assert_int_equal(
			bpf_map_update_elem(sampler_fold_maps(s).slots, &slot, &used, BPF_NOEXIST),
			0);
	run_cgroups(s, 100, 1, 1, &total);
	assert_int_equal(s->state->control.next_slot, first + 16);
	assert_int_equal(samples_of(s, 0), 1);
	run_cgroups(s, 100, 1, 1, &total);
	assert_int_equal(slot_of(s, cg(100)), first + 20);
	assert_int_equal(s->state->control.next_slot, first + 21);
	close_twin(s);
}

static int rooms_up(void **state)
{
	if (children_up(state))
		return -1;
	if (!cgroup_root[0])
		print_message("no cgroup v2 hierarchy in which cgroups can be made\n");
	return cgroup_root[0] ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make_room),      cmocka_unit_test(test_room_asked_early),
		cmocka_unit_test(test_room_far),       cmocka_unit_test(test_room_after_fold),
		cmocka_unit_test(test_fold_with_pins), cmocka_unit_test(test_fold_twins),
		cmocka_unit_test(test_fold_into),      cmocka_unit_test(test_generation),
		cmocka_unit_test(test_no_entry),       cmocka_unit_test(test_slots_taken),
		cmocka_unit_test(test_other_stays),    cmocka_unit_test(test_looked_up_once),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, rooms_up, children_down);
}
