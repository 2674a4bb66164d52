// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ops that `--source sim` makes of the instructions of tasks: of processes in loops that are known. */
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bind_to.h"
#include "child_process.h"
#include "sim_records.h"
#include "twin_model.h"

/* --- what the instructions are --- */

#define DATA_BYTES (2 * 4096)

extern const char sim_loop_load[], sim_loop_store[], sim_loop_lock[], sim_loop_prefetch[],
	sim_loop_add[], sim_loop_jump[], sim_loop_end[];

/* The loop ends only with the process. @data: two pages */
static void __attribute__((noinline)) loop_forever(char *data)
{
	asm volatile("sim_loop_load: mov 8(%0), %%rax\n"
		     "sim_loop_store: movl %%eax, 4160(%0)\n"
		     "sim_loop_lock: lock incb 200(%0)\n"
		     "sim_loop_prefetch: prefetcht0 256(%0)\n"
		     "sim_loop_add: add $1, %%rcx\n"
		     "sim_loop_jump: jmp sim_loop_load\n"
		     "sim_loop_end:\n" ::"r"(data)
		     : "rax", "rcx", "memory", "cc");
}

#define LOAD  IBS_OP_DATA3_LD_OP
#define STORE IBS_OP_DATA3_ST_OP

static const struct {
	const char *at;
	__u32 offset, width; /* IbsOpMemWidth: 1 for a byte, one more for each doubling */
	__u64 data3;	     /* what the op does */
	__u64 data;
} code[] = {
	{ sim_loop_load, 8, 4, LOAD, 0 },
	{ sim_loop_store, 4160, 3, STORE, 0 },
	{ sim_loop_lock, 200, 1, LOAD | STORE | IBS_OP_DATA3_LOCKED_OP, 0 },
	{ sim_loop_prefetch, 256, 0, LOAD | IBS_OP_DATA3_SW_PF, 0 },
	{ sim_loop_add, 0, 0, 0, 0 },
	{ sim_loop_jump, 0, 0, 0, IBS_OP_DATA_BRN_RET },
};
#define CODE_N (sizeof(code) / sizeof(*code))
#define DOES   (LOAD | STORE | IBS_OP_DATA3_LOCKED_OP | IBS_OP_DATA3_SW_PF)
#define KNOWN  (IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID)

static size_t find_code(__u64 ip)
{
	for (size_t i = 0; i < CODE_N; i++)
		if (ip == (__u64)code[i].at)
			return i;
	fail_msg("0x%llx is not an instruction of the loop", ip);
	return 0;
}

static volatile bool *begun; /* shared with the processes */

/* A process that runs a loop. It has begun: what it does before is not sampled. */
static pid_t start_in(void (*loop)(char *data), char *data)
{
	const time_t end = time(NULL) + LONGEST_S;
	pid_t pid;

	*begun = false;
	pid = fork();
	assert_true(pid >= 0);
	while (pid) {
		if (*begun)
			return pid;
		assert_true(time(NULL) <= end);
		usleep(200);
	}
	child_begins();
	bind_to(0);
	*begun = true;
	loop(data);
	_exit(1);
}

static void check_task_records(const struct got *g, const char *data, pid_t pid)
{
	unsigned int met[CODE_N] = {};
	__u64 page[2] = {};

	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];
		__u64 regs[IBS_OP_REG_FIXED], at;
		size_t i;

		assert_int_equal(r->tgid, pid);
		/* the kernel's own instructions, and what came before the loop */
		if (r->ip < (__u64)sim_loop_load || r->ip >= (__u64)sim_loop_end)
			continue;
		i = find_code(r->ip);
		met[i]++;
		ibs_record_regs(r, regs);
		assert_int_equal(r->data3 & DOES, code[i].data3);
		assert_int_equal(regs[IBS_OP_DATA] & IBS_OP_DATA_BRN_RET, code[i].data);
		if (!code[i].data3) {
			assert_int_equal(r->addr | r->phys | r->data3, 0);
			continue;
		}
		assert_int_equal(r->data3 & KNOWN, KNOWN);
		assert_int_equal(r->data3 >> 22 & 15, code[i].width);
		at = (__u64)data + code[i].offset;
		assert_int_equal(r->addr, at);
		/* a page of physical memory is that of one page */
		assert_int_equal(r->phys & 4095, at & 4095);
		if (!page[i == 1])
			page[i == 1] = r->phys & ~4095ULL;
		assert_int_equal(r->phys & ~4095ULL, page[i == 1]);
	}
	for (size_t i = 0; i < CODE_N; i++)
		assert_true(met[i] > 0);
	assert_true(page[0] && page[1] && page[0] != page[1]);
}

static void test_task(void **state)
{
	char *data =
		mmap(NULL, DATA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sampler_opts opts = random_ops;
	__u32 tgid;
	struct snapshot snap;
	struct got *g;
	pid_t pid;

	(void)state;
	assert_true(data != MAP_FAILED);
	pid = start_in(loop_forever, data);
	tgid = pid;
	opts.sim_ops = SAMPLER_SIM_TASKS;
	opts.output = SAMPLER_RECORDS;
	opts.sel.processes.pids = &tgid;
	opts.sel.processes.n = 1;
	g = records_of(&opts, &snap);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	check_task_records(g, data, pid);
	snapshot_free(&snap);
	free(g);
	munmap(data, DATA_BYTES);
}

/* --- what the model makes of them --- */

#define WALK_BYTES (64UL << 20)

/* @data: WALK_BYTES; each access is to another line, and another page. */
static void __attribute__((noinline)) walk_forever(char *data)
{
	asm volatile("1: mov (%%rdi), %%al\n"
		     "add $4160, %%rdi\n"
		     "cmp %%rsi, %%rdi\n"
		     "jb 1b\n"
		     "sub $0x3f00000, %%rdi\n"
		     "jmp 1b\n" ::"D"(data),
		     "S"(data + 0x3f00000)
		     : "rax", "memory", "cc");
}

static void __attribute__((noinline)) stay_forever(char *data)
{
	asm volatile("1: mov (%0), %%al\n"
		     "jmp 1b\n" ::"r"(data)
		     : "rax", "memory", "cc");
}

extern const char sim_set_first[], sim_use_first[], sim_set_second[], sim_use_second[];

/* Each access has an address that the instruction before it computes. */
static void __attribute__((noinline)) compute_forever(char *data)
{
	asm volatile("sim_set_first: lea 4096(%0), %%rax\n"
		     "sim_use_first: mov 1(%%rax), %%cl\n"
		     "sim_set_second: lea 128(%0), %%rax\n"
		     "sim_use_second: mov 64(%%rax), %%cl\n"
		     "jmp sim_set_first\n" ::"r"(data)
		     : "rax", "rcx", "memory", "cc");
}

extern const char sim_load_pointer[], sim_use_pointer[];

/* The address of the second access is what the first one reads, and is not there before. */
static void __attribute__((noinline)) chase_forever(char *data)
{
	asm volatile("sim_load_pointer: mov 512(%0), %%rax\n"
		     "sim_use_pointer: cmpb $0, 64(%%rax)\n"
		     "xor %%eax, %%eax\n"
		     "jmp sim_load_pointer\n" ::"r"(data)
		     : "rax", "memory", "cc");
}

void registers_forever(char *data);
extern const __u64 sim_registers_at[16]; /* the access by each register */

/* The register with number n has data + 64 n. Every second access is to a byte, the others to two. */
asm(".pushsection .data.rel.ro.sim, \"aw\"\n"
    "sim_registers_at:\n"
    ".popsection\n"
    ".macro sim_access insn reg\n"
    "772: \\insn $0, 16(\\reg)\n"
    ".pushsection .data.rel.ro.sim, \"aw\"\n"
    ".quad 772b\n"
    ".popsection\n"
    ".endm\n"
    ".pushsection .text\n"
    "registers_forever:\n"
    "	mov %rdi, %rax\n"
    "	lea 64(%rdi), %rcx\n"
    "	lea 128(%rdi), %rdx\n"
    "	lea 192(%rdi), %rbx\n"
    "	lea 256(%rdi), %rsp\n"
    "	lea 320(%rdi), %rbp\n"
    "	lea 384(%rdi), %rsi\n"
    "	lea 512(%rdi), %r8\n"
    "	lea 576(%rdi), %r9\n"
    "	lea 640(%rdi), %r10\n"
    "	lea 704(%rdi), %r11\n"
    "	lea 768(%rdi), %r12\n"
    "	lea 832(%rdi), %r13\n"
    "	lea 896(%rdi), %r14\n"
    "	lea 960(%rdi), %r15\n"
    "	lea 448(%rdi), %rdi\n"
    "773:\n"
    "	sim_access cmpb %rax\n"
    "	sim_access cmpw %rcx\n"
    "	sim_access cmpb %rdx\n"
    "	sim_access cmpw %rbx\n"
    "	sim_access cmpb %rsp\n"
    "	sim_access cmpw %rbp\n"
    "	sim_access cmpb %rsi\n"
    "	sim_access cmpw %rdi\n"
    "	sim_access cmpb %r8\n"
    "	sim_access cmpw %r9\n"
    "	sim_access cmpb %r10\n"
    "	sim_access cmpw %r11\n"
    "	sim_access cmpb %r12\n"
    "	sim_access cmpw %r13\n"
    "	sim_access cmpb %r14\n"
    "	sim_access cmpw %r15\n"
    "	jmp 773b\n"
    ".popsection");

/* The base of the segment is not known to the simulation. */
static void __attribute__((noinline)) segment_forever(char *data)
{
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, data))
		return;
	asm volatile("1: mov %%gs:8, %%al\n"
		     "jmp 1b\n" ::
			     : "rax", "memory", "cc");
}

static void __attribute__((noinline)) call_forever(char *data)
{
	asm volatile("1: mov $39, %%eax\n" /* getpid() */
		     "syscall\n"
		     "jmp 1b\n" ::"r"(data)
		     : "rax", "rcx", "r11", "memory", "cc");
}

/* Two words of a line, and one of the next that is only read. */
static void __attribute__((noinline)) lock_forever(char *data)
{
	asm volatile("1: lock incb (%0)\n"
		     "lock incb 32(%0)\n"
		     "cmpb $0, 64(%0)\n"
		     "jmp 1b\n" ::"r"(data)
		     : "memory", "cc");
}

static char *page_end; /* behind it nothing can be read */

/* An access in the last 16 bytes of a page, and a jump back in the last two. */
static const unsigned char last_code[16] = { 0x8a, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
					     0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xf0 };

static void last_forever(char *data)
{
	((void (*)(char *))(page_end - sizeof(last_code)))(data);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static char *map_data(size_t bytes)
{
	char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(data != MAP_FAILED);
	return data;
}

static struct sampler_opts records_of_tasks(const __u32 *tgids, size_t n)
{
	struct sampler_opts opts = random_ops;

	opts.sim_ops = SAMPLER_SIM_TASKS;
	opts.output = SAMPLER_RECORDS;
	opts.sel.processes.pids = tgids;
	opts.sel.processes.n = n;
	return opts;
}

/* Records of a process in such a loop, at least LEAST of them. */
static struct got *records_in(void (*loop)(char *data), char *data)
{
	const __u32 tgid = start_in(loop, data);
	const struct sampler_opts opts = records_of_tasks(&tgid, 1);
	struct snapshot snap;
	struct got *g = records_of(&opts, &snap);

	stop(tgid);
	snapshot_free(&snap);
	return g;
}

static bool is_load(const struct ibs_record *r)
{
	return r->data3 & LOAD && !(r->ip >> 63);
}

static __u32 source_of(const struct ibs_record *r)
{
	return ibs_record_data2(r) & 7;
}

static __u32 latency_of(const struct ibs_record *r)
{
	return r->data3 >> 32 & 0xffff;
}

/* Lines that were not accessed lately miss more often than one that is accessed all the time. */
static void test_cold(void **state)
{
	char *data = map_data(WALK_BYTES);
	double misses[2] = {}, deep[2] = {}, loads[2] = {};

	(void)state;
	for (int cold = 0; cold < 2; cold++) {
		struct got *g = records_in(cold ? walk_forever : stay_forever, data);
		__u32 even = 0, met = 0;

		for (size_t n = 0; n < g->n; n++) {
			const struct ibs_record *r = &g->packed[n];
			const __u32 comp_to_ret = ibs_record_data(r) & 0xffff;

			even += !(comp_to_ret & 1);
			assert_in_range(comp_to_ret, 1, 32);
			if (!is_load(r))
				continue;
			met++;
			misses[cold] += !!(r->data3 & IBS_OP_DATA3_DC_MISS);
			deep[cold] += !!(r->data3 & IBS_OP_DATA3_L2_MISS);
			/* no other CPU has the line */
			if (r->data3 & IBS_OP_DATA3_L2_MISS)
				assert_true(source_of(r) != 2 && source_of(r) != 5);
		}
		/* half of them, and between a quarter and the half of the instructions are loads */
		assert_in_range(even, g->n * 3 / 10, g->n * 7 / 10);
		assert_in_range(met, g->n / 8, g->n * 3 / 4);
		loads[cold] = met;
		free(g);
	}
	assert_true(misses[1] > 0.5 * loads[1] && deep[1] > 0.4 * loads[1]);
	assert_true(misses[0] < 0.3 * loads[0] && deep[0] < 0.15 * loads[0]);
	munmap(data, WALK_BYTES);
}

/* An address is that of the moment at which the instruction will run. */
static void test_computed(void **state)
{
	char *data = map_data(DATA_BYTES);
	struct got *g = records_in(compute_forever, data);
	size_t met[2] = {};

	(void)state;
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];

		if (r->ip == (__u64)sim_use_first) {
			assert_int_equal(r->addr, (__u64)data + 4096 + 1);
			met[0]++;
		} else if (r->ip == (__u64)sim_use_second) {
			assert_int_equal(r->addr, (__u64)data + 128 + 64);
			met[1]++;
		} else if (!(r->ip >> 63)) {
			assert_int_equal(r->addr | r->data3, 0);
		}
	}
	assert_true(met[0] > 10 && met[1] > 10);
	free(g);
	munmap(data, DATA_BYTES);
}

static void test_chased(void **state)
{
	char *data = map_data(DATA_BYTES), *pointer = data + 1024;
	size_t met = 0, user = 0;
	struct got *g;

	(void)state;
	memcpy(data + 512, &pointer, sizeof(pointer));
	g = records_in(chase_forever, data);
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];

		user += !(r->ip >> 63);
		if (r->ip == (__u64)sim_load_pointer)
			assert_int_equal(r->addr, (__u64)data + 512);
		if (r->ip != (__u64)sim_use_pointer)
			continue;
		assert_int_equal(r->addr, (__u64)pointer + 64);
		met++;
	}
	/* a quarter of the instructions; a sixteenth at most if only the interrupted one could be it */
	assert_true(met > user * 12 / 100);
	free(g);
	munmap(data, DATA_BYTES);
}

static void test_registers(void **state)
{
	char *data = map_data(DATA_BYTES);
	struct got *g = records_in(registers_forever, data);
	size_t met[16] = {};

	(void)state;
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];

		for (size_t i = 0; i < 16; i++) {
			if (r->ip != sim_registers_at[i])
				continue;
			met[i]++;
			assert_int_equal(r->addr, (__u64)data + 64 * i + 16);
			assert_int_equal(r->data3 & DOES, LOAD);
			assert_int_equal(r->data3 >> 22 & 15, 1 + i % 2);
		}
	}
	for (size_t i = 0; i < 16; i++)
		assert_true(met[i] > 0);
	free(g);
	munmap(data, DATA_BYTES);
}

/* An access whose address is not known has none. */
static void check_unknown(const struct ibs_record *r)
{
	if (r->data3 & KNOWN) {
		assert_int_equal(r->data3 & KNOWN, KNOWN);
		assert_true(r->data3 & DOES);
		return;
	}
	assert_int_equal(r->addr | r->phys, 0);
	assert_int_equal(r->data3 >> 22 & 15, 0);
}

static void test_segment(void **state)
{
	char *data = map_data(DATA_BYTES);
	struct got *g = records_in(segment_forever, data);
	size_t loads = 0;

	(void)state;
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];

		check_unknown(r);
		if (!is_load(r))
			continue;
		assert_false(r->data3 & KNOWN);
		loads++;
	}
	assert_true(loads > 10);
	free(g);
	munmap(data, DATA_BYTES);
}

/* Instructions of the kernel, which access the memory of the kernel. */
static void test_kernel_code(void **state)
{
	struct got *g = records_in(call_forever, NULL);
	size_t kernel = 0, located = 0, in_kernel = 0;

	(void)state;
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];

		check_unknown(r);
		if (!(r->ip >> 63)) {
			assert_int_equal(r->data3 & DOES, 0);
			continue;
		}
		kernel++;
		located += !!(r->data3 & KNOWN);
		in_kernel += r->addr >> 63;
	}
	assert_true(kernel > 20);
	assert_true(located > kernel / 20);
	assert_true(in_kernel > located / 2);
	free(g);
}

/* Code up to the end of the last page that there is. */
static void test_last_page(void **state)
{
	char *data = map_data(DATA_BYTES);
	char *code = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t loads = 0, jumps = 0;
	struct got *g;

	(void)state;
	assert_true(code != MAP_FAILED);
	page_end = code + 4096;
	assert_int_equal(munmap(page_end, 4096), 0);
	memcpy(page_end - sizeof(last_code), last_code, sizeof(last_code));
	g = records_in(last_forever, data);
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];
		const __u64 left = (__u64)page_end - r->ip;
		const bool jump = ibs_record_data(r) & IBS_OP_DATA_BRN_RET;

		if (left > sizeof(last_code)) /* the way to it, and the kernel */
			continue;
		assert_true(left == 16 || (left >= 2 && left <= 14));
		assert_int_equal(r->data3 & DOES, left == 16 ? LOAD : 0);
		assert_int_equal(r->addr, left == 16 ? (__u64)data : 0);
		assert_int_equal(jump, left == 2);
		loads += left == 16;
		jumps += left == 2;
	}
	assert_true(loads > 0 && jumps > 0);
	free(g);
	munmap(code, 4096);
	munmap(data, DATA_BYTES);
}

/* Two processes whose numbers differ in the lowest bit alone. */
static void start_two(char *data, __u32 tgids[2])
{
	for (int i = 0; i < 1000; i++) {
		tgids[0] = start_in(compute_forever, data);
		tgids[1] = start_in(compute_forever, data);
		if ((tgids[0] ^ 1) == tgids[1])
			return;
		stop(tgids[0]);
		stop(tgids[1]);
	}
	fail_msg("no two processes with numbers next to each other");
}

/* A page of a process is one page of memory; its other page, and those of another process, are other ones. */
static void test_pages(void **state)
{
	char *mapped = map_data(2 * DATA_BYTES);
	char *data = mapped + (-(__u64)mapped & (DATA_BYTES - 1)); /* both in one pair of pages */
	__u64 page[4] = {};
	struct sampler_opts opts;
	struct snapshot snap;
	__u32 tgids[2];
	struct got *g;

	(void)state;
	start_two(data, tgids);
	opts = records_of_tasks(tgids, 2);
	g = records_of(&opts, &snap);
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];
		__u64 *known = &page[2 * (r->tgid == tgids[1]) + (r->addr >= (__u64)data + 4096)];

		if (!is_load(r))
			continue;
		assert_int_equal(r->phys & 4095, r->addr & 4095);
		assert_true(r->phys >> 32 && !(r->phys >> 36)); /* from 4 GiB on, below 64 GiB */
		*known = *known ?: r->phys >> 12;
		assert_int_equal(r->phys >> 12, *known);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(page[i] > 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(page[i], page[k]);
	}
	stop(tgids[0]);
	stop(tgids[1]);
	snapshot_free(&snap);
	free(g);
	munmap(mapped, 2 * DATA_BYTES);
}

/* A line that another CPU has written since is modified there; then it is this one's. */
static void test_foreign(void **state)
{
	static const unsigned int cpus[] = { 0, 1 };
	struct sampler_opts opts;
	unsigned int foreign = 0;
	struct err err = {};
	struct sampler *s;
	struct got *g;
	__u32 tgid;
	char *data;

	(void)state;
	if (!may_run_on(0) || !may_run_on(1)) {
		print_message("skipped: needs CPUs 0 and 1\n");
		skip();
	}
	data = map_data(4096);
	g = calloc(1, sizeof(*g));
	assert_non_null(g);
	tgid = start_in(lock_forever, data);
	opts = records_of_tasks(&tgid, 1);
	opts.cpus = cpus;
	opts.n_cpus = 2;
	s = open_twin(&opts);
	if (sampler_start(s, &err))
		fail_msg("%s", err.text);
	for (int move = 0; move < 16; move++) {
		const time_t end = time(NULL) + LONGEST_S;
		size_t locks = 0, n = 0;
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(move & 1, &set);
		assert_int_equal(sched_setaffinity(tgid, sizeof(set), &set), 0);
		for (g->n = 0; locks < 5; n = g->n) {
			assert_true(time(NULL) <= end);
			usleep(1000);
			if (rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err))
				fail_msg("%s", err.text);
			for (; n < g->n; n++) {
				const struct ibs_record *r = &g->packed[n];
				const __u32 lat = latency_of(r);

				/* those of before the move */
				if (!is_load(r) || ibs_record_cpu(r) != (move & 1))
					continue;
				if (!(r->data3 & STORE)) {
					assert_int_not_equal(source_of(r), 2);
					continue;
				}
				assert_true(r->data3 & IBS_OP_DATA3_LOCKED_OP);
				if (locks++) {
					assert_int_not_equal(source_of(r), 2);
					continue;
				}
				if (source_of(r) != 2)
					continue;
				foreign++;
				assert_true(r->data3 & IBS_OP_DATA3_L2_MISS);
				assert_false(ibs_record_data2(r) & (IBS_OP_DATA2_OWNED | 1 << 4));
				assert_in_range(lat, 120, 120 + 127);
			}
		}
	}
	/* the first time it is on no CPU; and its line may have made way for another one */
	assert_in_range(foreign, 10, 15);
	sampler_close(s);
	stop(tgid);
	free(g);
	munmap(data, 4096);
}

/* Local memory takes 280 to 535 cycles, and longer if much of the complex' capacity is in use. */
static void test_contended(void **state)
{
	char *data = map_data(WALK_BYTES);
	const __u32 tgid = start_in(walk_forever, data);
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_non_null(g);
	for (int contended = 0; contended < 2; contended++) {
		const time_t end = time(NULL) + LONGEST_S;
		struct sampler_opts opts = records_of_tasks(&tgid, 1);
		struct err err = {};
		struct sampler *s;
		bool longer = false;
		size_t local = 0;

		opts.sim_ops = contended ? SAMPLER_SIM_CONTENDED : SAMPLER_SIM_TASKS;
		s = open_twin(&opts);
		if (sampler_start(s, &err))
			fail_msg("%s", err.text);
		while (contended ? !longer : local < 50) {
			assert_true(time(NULL) <= end);
			usleep(2000);
			g->n = 0;
			if (rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err))
				fail_msg("%s", err.text);
			for (size_t n = 0; n < g->n; n++) {
				const struct ibs_record *r = &g->packed[n];

				if (!is_load(r) || source_of(r) != DRAM ||
				    ibs_record_data2(r) & 1 << 4)
					continue;
				local++;
				assert_in_range(latency_of(r), 280, contended ? 5350 : 535);
				longer |= latency_of(r) > 535;
			}
		}
		sampler_close(s);
	}
	stop(tgid);
	free(g);
	munmap(data, WALK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_task),	    cmocka_unit_test(test_cold),
		cmocka_unit_test(test_computed),    cmocka_unit_test(test_chased),
		cmocka_unit_test(test_registers),   cmocka_unit_test(test_segment),
		cmocka_unit_test(test_kernel_code), cmocka_unit_test(test_last_page),
		cmocka_unit_test(test_pages),	    cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_contended),
	};

	if (!can_run())
		return 77;
	begun = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (begun == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
