// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_heap FILE [WITH]: simulated loads of allocations of this program, which are not real: their addresses are between
 * two of one real allocation, their stacks are addresses of functions here. Times are in steps of 1000.
 * WITH "none": a recording without allocations. WITH "much N": N allocations of 100 sites, one load each.
 */
#include "made_recording.h"
#include "trace/tasks.h"

#include <stdint.h>
#include <stdio.h>

#define ROOM  (1 << 20)
#define NODES 2
#define BIG   4160 /* bytes of a table */

long heap_global;

static __u32 self;
static __u64 now = 1000;
static char *room;

static int put_event(const struct trace_event *ev, void *arg, struct err *err)
{
	(void)arg;
	return recording_event(made, ev, err);
}

static void put(struct trace_event ev)
{
	struct err err;

	ev.time = now;
	need(!recording_event(made, &ev, &err));
	now += 1000;
}

static void put_alloc(__u64 addr, __u64 size, bool mapped, const void *inner, const void *outer)
{
	const __u64 stack[] = { (uintptr_t)inner, (uintptr_t)outer };

	put((struct trace_event){ .kind = TRACE_ALLOC,
				  .alloc = { .tgid = self,
					     .tid = self + 7,
					     .addr = addr,
					     .size = size,
					     .weight = size,
					     .stack = stack + !inner,
					     .n_stack = inner ? 2 : 1,
					     .mapped = mapped } });
}

static void put_free(__u64 addr, __u64 size)
{
	put((struct trace_event){
		.kind = TRACE_FREE,
		.free = { .tgid = self, .tid = self, .addr = addr, .size = size } });
}

/* As the allocator of a program that has its own: its frame is left out. */
static __attribute__((noinline)) void xmalloc_of(__u64 addr, __u64 size)
{
	const void *outer = __builtin_return_address(0);

	put_alloc(addr, size, false, (const char *)xmalloc_of + 1, outer);
	__asm__ volatile("" ::: "memory"); /* no jump in place of a call */
}

static __attribute__((noinline)) void make_table(__u64 addr)
{
	xmalloc_of(addr, BIG);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void make_index(__u64 addr)
{
	xmalloc_of(addr, 4096);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void map_pages(__u64 addr)
{
	put_alloc(addr, 0x10000, true, NULL, (const char *)map_pages + 1);
}

static void load_by(__u32 tgid, __u32 tid, unsigned int cpu, __u64 addr, __u64 phys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct ibs_record rec = {
			.time = now++,
			.tgid = tgid,
			.tid = tid,
			.ip = (uintptr_t)load_by + 1,
			.addr = addr,
			.phys = phys,
			.data3 = (cpu && i % 2 ? IBS_OP_DATA3_ST_OP : IBS_OP_DATA3_LD_OP) |
				 IBS_OP_DATA3_LIN_VALID | (phys ? IBS_OP_DATA3_PHY_VALID : 0) |
				 IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 4ull << 22 |
				 300ull << 32,
			.packed = ibs_record_pack(0, 2, cpu),
		};
		struct err err;

		need(!recording_samples(made, &rec, NULL, 1, &err));
		made_samples++;
	}
}

static void load(__u64 addr, unsigned int n)
{
	load_by(self, self, 0, addr, 0, n);
}

static void put_fork(__u32 child)
{
	put((struct trace_event){
		.kind = TRACE_FORK,
		.fork = { .tgid = child, .tid = child, .parent_tgid = self, .parent_tid = self } });
}

static void all(void)
{
	const __u64 a = (uintptr_t)room, b = a + 0x20000;

	make_table(a);
	load(a, 10);
	load(a + BIG - 1, 1);
	load(a + BIG, 2); /* not noted */
	map_pages(b);
	load(b + 0x8000, 6);
	put_free(b + 0x8000, 0x1000);
	load(b + 0x8000, 3); /* not noted any more */
	load(b + 0x9000, 4);
	put_free(a, 0);
	make_index(a); /* the same address again */
	load(a + 64, 20);
	put_fork(self + 50);
	put_free(a, 0);
	load_by(self + 50, self + 50, 0, a + 64, 0, 5); /* the child still has it */
	load(a + 64, 7);
	load((uintptr_t)&heap_global, 8);
	load((uintptr_t)__builtin_frame_address(0), 9);
	load(64, 11);
}

/* Two threads on two nodes share a line of a table that is all on the node of the first one. */
static void share(void)
{
	const __u64 a = (uintptr_t)room + 0x40;

	make_table((uintptr_t)room);
	load_by(self, self, 0, a, 0x1040, 1);
	for (unsigned int i = 0; i < 100; i++) {
		load_by(self, self, 0, a, 0x1040, 1);
		load_by(self, self + 1, 1, a + 8, 0x1048, 2);
	}
}

static void much(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const __u64 at = (uintptr_t)room + (u64_hash(i) % 4096) * 256;

		put_alloc(at, 256, false, NULL, (const char *)much + i % 100);
		load(at + i % 256, 1);
		put_free(at, 0);
	}
}

int main(int argc, char **argv)
{
	static struct trace_pmu pmu = {
		.name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000, .physical = true
	};
	static const struct memory_range memory[] = { { 0x1000, 0x100000, 0 },
						      { 0x100000, 0x200000, 1 } };
	static struct trace_topology topology = { .n = 2, .ccx = { 0, 1 }, .node = { 0, 1 } };
	const char *with = argc > 2 ? argv[2] : "";
	struct trace_info info = made_info();
	struct task_choice choice;
	struct err err = { "" };

	if (argc < 2)
		return 2;
	info.n_cpus = 2;
	info.pmu = &pmu;
	info.topology = &topology;
	info.memory = memory;
	info.n_memory = NODES;
	info.alloc_bytes = strcmp(with, "none") ? 4096 : 0;
	self = getpid();
	made_begin(argv[1], &info);
	room = sbrk(ROOM);
	need(room != (void *)-1);
	task_choice_init(&choice, &self, 1, false);
	need(!task_events_now("", &choice, true, 0, put_event, NULL, &err));
	if (!strcmp(with, "much"))
		much(argc > 3 ? atoi(argv[3]) : 1000);
	else if (!strcmp(with, "share"))
		share();
	else
		all();
	task_choice_free(&choice);
	return made_end();
}
