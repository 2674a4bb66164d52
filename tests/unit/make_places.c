// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_places FILE [code]: simulated loads of this program's own memory, of each kind, with its own maps; "code"
 * keeps maps of code only. The n-th kind, from 1 on, has n samples of each of its addresses.
 */
#include "recording/recording.h"
#include "trace/task_events.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

struct stats {
	long requests, errors;
};

struct stats places_data = { 1, 2 };
struct stats places_bss[1000]; /* more than a page, so that it has a map of its own */
const struct stats places_const = { 3, 4 };
static long places_static = 5;

static struct recording *out;
static __u64 written;

static int put_event(const struct trace_event *ev, void *code, struct err *err)
{
	if (code && ev->kind == TRACE_MMAP && !ev->mmap.exec)
		return 0;
	return recording_event(out, ev, err);
}

static void load(const void *at, unsigned int n)
{
	struct err err;

	for (unsigned int i = 0; i < n; i++) {
		struct ibs_record rec = {
			.time = 1000 + written,
			.tgid = getpid(),
			.tid = getpid(),
			.ip = (uintptr_t)load,
			.addr = (uintptr_t)at,
			.data3 =
				IBS_OP_DATA3_LD_OP | (at ? IBS_OP_DATA3_LIN_VALID : 0) | 4ull << 22,
		};

		written++;
		if (recording_samples(out, &rec, NULL, 1, &err))
			exit(1);
	}
}

static void *map(int fd)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* What is not in a map when the recording begins: the stack further down, and memory of nobody. */
static void load_all(const char *shared, const char *anon, const char *file, const void *heap)
{
	const char *stack = (const char *)__builtin_frame_address(0);

	load(&places_data.errors, 1);
	load(&places_bss[700].errors, 2);
	load(&places_const, 3);
	load(&places_static, 4);
	load(heap, 5);
	load(stack, 6);
	load(stack - (1 << 20), 7);
	load(anon + 4096, 8);
	load(shared + 8, 9);
	load(file + 4100, 10);
	load((const void *)getauxval(AT_SYSINFO_EHDR), 11);
	load((const void *)64, 12);
	load((const void *)0xffffffff82000018ull, 13);
	load((const void *)0xffff888000000000ull, 14);
	load(NULL, 15);
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
	const __u32 self = getpid();
	struct ledger ledger = { 0 };
	struct task_choice choice;
	struct err err = { "" };
	struct utsname u;
	char *shared, *anon, *file;
	int fd;

	if (argc < 2)
		return 2;
	uname(&u);
	strcpy(info.host, u.nodename);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (opts.fd < 0 || recording_create(&opts, &out, &err))
		return 1;
	file = map(opts.fd);
	fd = memfd_create("places", 0);
	if (ftruncate(fd, 8192))
		return 1;
	shared = map(fd);
	anon = map(-1);
	task_choice_init(&choice, &self, 1, false);
	if (task_events_now("", &choice, true, 0, put_event, argc > 2 ? argv : NULL, &err))
		return 1;
	load_all(shared, anon, file, sbrk(0) - 8);
	ledger.seen = ledger.outcome[IBS_OUTCOME_FORWARDED] = written;
	if (recording_finish(out, &ledger, &err))
		return 1;
	recording_close(out);
	task_choice_free(&choice);
	return close(opts.fd);
}
