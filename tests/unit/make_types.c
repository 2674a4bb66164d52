// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_types FILE PROGRAM [wrong|stacks]: a recording of simulated accesses of a program, as the lines of standard input
 * say: "IP DATA OP COUNT", addresses in hexadecimal as the linker gave them, OP load, store, none, or invalid for a load
 * whose IP is, DATA 0 for none.
 * With "wrong" it has a build-id that the program has not; with "stacks" samples have the chain of "stack IP IP ..", from
 * the innermost address on, above them, and "top WORD .." is the top of the stack of those below it. Addresses of the kernel are as they are; a line of those may
 * end in SLAB, and OpMemWidth, "thread N" makes the lines below it of another thread, on CPU N, and "cache ID OBJECT_SIZE SIZE PAD ORDER MIN_ORDER MERGED NAME" is a slab cache.
 */
#include "made_recording.h"

#include <gelf.h>
#include <stdio.h>

#define BASE 0x555500000000ull
#define PAGE 4096ull
#define PID  1000

static void put_maps(const char *path, bool wrong)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err err;
	GElf_Phdr ph;
	size_t n = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	need(elf && !elf_getphdrnum(elf, &n));
	for (size_t i = 0; i < n; i++) {
		struct trace_event ev = { .kind = TRACE_MMAP };

		if (!gelf_getphdr(elf, i, &ph) || ph.p_type != PT_LOAD)
			continue;
		ev.mmap = (struct trace_mmap){
			.tgid = PID,
			.tid = PID,
			.start = BASE + ph.p_vaddr / PAGE * PAGE,
			.len = (ph.p_vaddr % PAGE + ph.p_memsz + PAGE - 1) / PAGE * PAGE,
			.pgoff = ph.p_offset / PAGE * PAGE,
			.exec = ph.p_flags & PF_X,
			.path = path,
			.build_id_len = wrong ? 20 : 0,
			.build_id = { 1, 2, 3 },
		};
		need(!recording_event(made, &ev, &err));
	}
	elf_end(elf);
	close(fd);
}

static __u64 at_base(__u64 addr)
{
	return addr >> 63 ? addr : BASE + addr;
}

static int stacks;
static unsigned int thread;
static __u64 top[IBS_STACK_TOP];

static bool put_top(const char *line)
{
	char *end;

	if (strncmp(line, "top ", 4) != 0)
		return false;
	memset(top, 0, sizeof(top));
	line += 4;
	for (unsigned int k = 0; k < IBS_STACK_TOP; k++, line = end) {
		const __u64 word = strtoull(line, &end, 16);

		top[k] = word ? at_base(word) : 0;
	}
	return true;
}

static bool put_stack(const char *line)
{
	__u64 chain[TRACE_STACK_MAX];
	unsigned int n = 0;
	struct err err;
	char *end;

	if (strncmp(line, "stack ", 6) != 0)
		return false;
	for (line += 6; n < TRACE_STACK_MAX; line = end) {
		chain[n++] = at_base(strtoull(line, &end, 16));
		if (end == line)
			break;
	}
	need(!recording_stack(made, stacks++, chain, n - 1, &err));
	return true;
}

static void access_memory(__u64 ip, __u64 data, const char *op, __u64 slab, unsigned int width)
{
	const struct ibs_record_extra extra = { .kernel = -1,
						.user = stacks - 1,
						.callers = -1,
						.slab = slab,
						.top = { top[0], top[1], top[2], top[3] } };
	bool invalid = !strcmp(op, "invalid");
	const __u64 miss = IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 200ull << 32;
	struct ibs_record rec = {
		.tgid = PID,
		.tid = PID + thread,
		.ip = at_base(ip),
		.addr = data ? at_base(data) : 0x7000,
		.data3 = !strcmp(op, "load") || invalid ? IBS_OP_DATA3_LD_OP | miss
			 : !strcmp(op, "store")		? IBS_OP_DATA3_ST_OP
							: 0,
		.packed = ibs_record_pack(invalid ? IBS_OP_DATA_RIP_INVALID : 0, 2, thread),
	};

	if (rec.data3)
		rec.data3 |= (__u64)width << 22;
	if (rec.data3)
		rec.data3 |= data ? IBS_OP_DATA3_LIN_VALID : 0;
	made_add(rec, slab || stacks ? &extra : NULL);
}

static bool put_cache(const char *line)
{
	struct trace_event ev = { .kind = TRACE_SLAB };
	unsigned int order, min_order, merged;
	unsigned long long id;
	struct err err;

	if (sscanf(line, "cache %llx %u %u %u %u %u %u %60s", &id, &ev.slab.object_size,
		   &ev.slab.size, &ev.slab.pad, &order, &min_order, &merged, ev.slab.name) != 8)
		return false;
	ev.slab.id = id;
	ev.slab.order = order;
	ev.slab.min_order = min_order;
	ev.slab.merged = merged;
	need(!recording_event(made, &ev, &err));
	return true;
}

int main(int argc, char **argv)
{
	struct trace_info info = made_info();
	unsigned long long ip, data, slab;
	unsigned int n, width;
	char op[16], line[256];

	if (argc < 3)
		return 2;
	((struct trace_pmu *)info.pmu)->stacks = argc > 3 && !strcmp(argv[3], "stacks");
	made_begin(argv[1], &info);
	put_maps(argv[2], argc > 3 && !strcmp(argv[3], "wrong"));
	while (fgets(line, sizeof(line), stdin)) {
		slab = width = 0;
		if (sscanf(line, "thread %u", &thread) == 1 || put_cache(line) || put_stack(line) ||
		    put_top(line) ||
		    sscanf(line, "%llx %llx %15s %u %llx %u", &ip, &data, op, &n, &slab, &width) <
			    4)
			continue;
		while (n--)
			access_memory(ip, data, op, slab, width);
	}
	return made_end();
}
