// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_annotated FILE [WITH [COPY]]: simulated samples of instructions of a function, see main().
 * WITH: "copy": the function also runs in COPY, a copy of this program; "rebuilt": the program's build-id
 * is not the recorded one; "jit": the code is in memory of no file; "kernel": the
 * samples are of the kernel's code at address COPY, recorded in this boot; "other": the same, of another machine.
 */
#include "base/clock.h"
#include "made_recording.h"
#include "self_map.h"

#define PROCESS	     100
#define MISPREDICTED (1ull << 36)

enum { CACHE = 2, DRAM = 3 };

/* The instructions of annotated() that have samples; symbols for them would be functions to perf. */
extern const char *const places[];
enum { LOAD, LOCK, BRANCH, END };

struct shelf {
	long number;
	int books, chairs;
	struct shelf *next;
};

__attribute__((noinline, used)) static long annotated(struct shelf *p)
{
	long sum;

	__asm__ volatile(".Lload: movq 16(%1), %0\n\t"
			 ".Llock: lock incl 8(%1)\n\t"
			 ".Lbranch: jz .Lend\n\t"
			 ".nops 200, 1\n\t"
			 ".Lend: .byte 0x06\n\t" /* no instruction */
			 "xorl %%eax, %%eax\n\t"
			 ".pushsection .data.rel.ro, \"aw\"\n\t"
			 ".balign 8\n\t"
			 "places: .quad .Lload, .Llock, .Lbranch, .Lend\n\t"
			 ".popsection"
			 : "=&r"(sum)
			 : "r"(p)
			 : "memory", "rax");
	return sum;
}

static void add(__u32 process, const void *ip, unsigned int n, __u64 data, __u64 data2, __u64 data3)
{
	const struct ibs_record rec = { .tgid = process,
					.tid = process,
					.ip = (uintptr_t)ip,
					.data3 = data3,
					.packed = ibs_record_pack(data, data2, 0) };

	while (n--)
		made_add(rec, NULL);
}

static __u64 load(__u64 cycles, bool walks)
{
	return IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | cycles << 32 |
	       IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID |
	       (walks ? IBS_OP_DATA3_L1TLB_MISS | IBS_OP_DATA3_L2TLB_MISS : 0);
}

static int put_map(struct trace_mmap *map, __u32 process)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .mmap = *map };
	struct err err;

	ev.mmap.tgid = ev.mmap.tid = process;
	ev.mmap.exec = true;
	return recording_event(made, &ev, &err);
}

static int put_maps(const char *with, const char *copy)
{
	struct trace_mmap all = { .len = 1ull << 47, .path = "//anon" };
	struct err err;

	if (!strcmp(with, "jit"))
		return put_map(&all, PROCESS);
	if (!strcmp(with, "rebuilt")) {
		all.path = copy;
		all.build_id_len = sizeof(all.build_id);
		return put_map(&all, PROCESS);
	}
	return self_map(made, (uintptr_t)annotated, NULL, PROCESS, 1, &err)
		       ?: !strcmp(with, "copy")
			  ? self_map(made, (uintptr_t)annotated, copy, PROCESS + 1, 1, &err)
			  : 0;
}

int main(int argc, char **argv)
{
	struct trace_info info = made_info();
	const char *with = argc > 2 ? argv[2] : "", *copy = argc > 3 ? argv[3] : "";
	const __u64 remote = 1 << 4;
	const bool is_kernel = !strcmp(with, "kernel") || !strcmp(with, "other");
	struct utsname u;

	if (argc < 2)
		return 2;
	if (!strcmp(with, "kernel")) {
		uname(&u);
		strcpy(info.release, u.release);
		info.realtime_ns = clock_ns(CLOCK_REALTIME);
		info.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	}
	made_begin(argv[1], &info);
	need(!put_maps(with, copy));
	if (is_kernel) {
		add(PROCESS, (void *)strtoull(copy, NULL, 16), 4, 0, DRAM, load(100, false));
	} else {
		add(PROCESS, places[LOAD], 10, 0, DRAM, load(200, false));
		add(PROCESS, places[LOAD], 5, 0, DRAM | remote, load(400, true));
		add(PROCESS, places[LOAD], 5, 0, CACHE, load(200, true));
		add(PROCESS, places[LOCK], 4, 0, 0,
		    IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_LIN_VALID);
		add(PROCESS, places[LOCK] + 1, 1, 0, 0, 0);
		add(PROCESS, places[BRANCH], 6, IBS_OP_DATA_BRN_RET, 0, 0);
		add(PROCESS, places[BRANCH], 2, IBS_OP_DATA_BRN_RET | MISPREDICTED, 0, 0);
		add(PROCESS, places[END], 1, 0, 0, 0);
		add(PROCESS, places[LOAD], 3, IBS_OP_DATA_RIP_INVALID, DRAM, load(900, false));
		add(PROCESS, (const void *)main, 7, 0, 0, 0);
		add(PROCESS + 1, places[LOAD], 2, 0, DRAM, load(100, false));
	}
	return made_end();
}
