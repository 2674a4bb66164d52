// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_types FILE PROGRAM [wrong]: a recording of simulated accesses of a program, as the lines of standard input
 * say: "IP DATA OP COUNT", addresses in hexadecimal as the linker gave them, OP load, store or none, DATA 0 for none.
 * With "wrong" it has a build-id that the program has not.
 */
#include "recording/recording.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BASE 0x555500000000ull
#define PAGE 4096ull
#define PID  1000

static struct recording *out;
static __u64 written;

static void need(bool condition)
{
	if (!condition)
		exit(1);
}

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
		need(!recording_event(out, &ev, &err));
	}
	elf_end(elf);
	close(fd);
}

static void access_memory(__u64 ip, __u64 data, const char *op)
{
	const __u64 miss = IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 200ull << 32;
	struct ibs_record rec = {
		.time = 1000 + written++,
		.tgid = PID,
		.tid = PID,
		.ip = BASE + ip,
		.addr = data ? BASE + data : 0x7000,
		.data3 = !strcmp(op, "load")	? IBS_OP_DATA3_LD_OP | miss
			 : !strcmp(op, "store") ? IBS_OP_DATA3_ST_OP
						: 0,
		.packed = ibs_record_pack(0, 2, 0),
	};
	struct err err;

	if (rec.data3)
		rec.data3 |= data ? IBS_OP_DATA3_LIN_VALID : 0;
	need(!recording_samples(out, &rec, NULL, 1, &err));
}

int main(int argc, char **argv)
{
	struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = 1,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	struct recording_opts opts = { .info = &info, .compress = true };
	unsigned long long ip, data;
	struct ledger ledger = { 0 };
	struct utsname u;
	struct err err;
	unsigned int n;
	char op[16];

	if (argc < 3)
		return 2;
	uname(&u);
	strcpy(info.host, u.nodename);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
	need(opts.fd >= 0 && !recording_create(&opts, &out, &err));
	put_maps(argv[2], argc > 3);
	while (scanf("%llx %llx %15s %u", &ip, &data, op, &n) == 4)
		while (n--)
			access_memory(ip, data, op);
	ledger.seen = ledger.outcome[IBS_OUTCOME_FORWARDED] = written;
	need(!recording_finish(out, &ledger, &err));
	recording_close(out);
	return close(opts.fd);
}
