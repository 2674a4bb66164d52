// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slab caches of kernel addresses, asked for by the program that forwards samples: of an object that is known to
 * be one, and of addresses that are of none. The oracle for the offset is the kernel's type information.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_process.h"
#include "rows/rows.h"
#include "machine/kernel.h"
#include "sampler/rings.h"
#include "sampler/sampler.h"
#include "twin_run.h"
#include "symbols/symbols_slab.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <ibscope/sim.h>

#define N      3000
#define CACHES 1024 /* at most */

static const struct sampler_opts with_slabs = {
	.source = SAMPLER_TWIN,
	.output = SAMPLER_RECORDS,
	.slabs = true,
	.ibs.caps = 0xbff,
};

struct got {
	__u64 slab[N];
	size_t n, listed;
	struct ibs_slab task; /* the cache of tasks */
	struct ibs_slab all[CACHES];
};

/* Run a program that needs no input but that it returns. */
static __u64 run_insns(const struct bpf_insn *insns, size_t n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);
	__u64 found = 0;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &found, .ctx_size_in = sizeof(found));
	int fd = bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "found", "GPL", insns, n, &opts);

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_test_run_opts(fd, &run), 0);
	close(fd);
	assert_true(found >> 63);
	return found;
}

/* The address of our own struct task_struct. */
static __u64 own_task(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 6, .src_reg = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return run_insns(insns, ARRAY_SIZE(insns));
}

/* A pointer that our struct task_struct has at that offset. */
static __u64 own_pointer(__s32 offset)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 3, .src_reg = 0 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 3, .imm = offset },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 0, .src_reg = 10, .off = -8 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 6, .src_reg = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return run_insns(insns, ARRAY_SIZE(insns));
}

/* The address of the value of an array. */
static __u64 value_address(int map_fd)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = 2,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = map_fd },
		{},
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return run_insns(insns, ARRAY_SIZE(insns));
}

static int collect(const struct record_batch *b, void *arg, struct err *err)
{
	struct got *g = arg;

	(void)err;
	assert_non_null(b->extra);
	for (size_t i = 0; i < b->n; i++) {
		assert_true(b->extra[i].kernel < 0 && b->extra[i].user < 0);
		g->slab[g->n++] = b->extra[i].slab;
	}
	return 0;
}

static int list(const struct ibs_slab *slab, void *arg, struct err *err)
{
	struct got *g = arg;

	(void)err;
	assert_in_range(g->listed, 0, CACHES - 1);
	g->all[g->listed++] = *slab;
	assert_true(slab->id >> 63 && slab->size >= slab->object_size && slab->order < 16);
	if (!strcmp(slab->name, "task_struct"))
		g->task = *slab;
	return 0;
}

static void run(const struct sampler_opts *opts, const __u64 (*regs)[IBS_OP_REG_FIXED], size_t n,
		struct got *g)
{
	struct sampler *s = NULL;
	struct err err = {};

	if (sampler_open(opts, &s, &err))
		fail_msg("%s", err.text);
	if (twin_run_regs(s, regs, n, NULL, &err) ||
	    rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err) ||
	    sampler_slabs(s, list, g, &err))
		fail_msg("%s", err.text);
	assert_int_equal(g->n, n);
	sampler_close(s);
}

static const char *slab_name(void *arg, __u64 id, enum label l)
{
	assert_int_equal(l, LABEL_SLAB);
	return sampler_slab_name(arg, id);
}

static void test_known_object(void **state)
{
	const __u64 valid = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID, task = own_task();
	const __u64 regs[][IBS_OP_REG_FIXED] = {
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = task },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = task + 1000 },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = (__u64)&valid },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = 0xffffffff81000000 },
		{ [IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP, [IBS_DC_LINADDR] = task },
	};
	struct slab_types types = {};
	struct type_access access;
	static struct got g;

	(void)state;
	run(&with_slabs, regs, ARRAY_SIZE(regs), &g);
	assert_true(g.listed > 20);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(IBS_SLAB_ID(g.slab[i]), g.task.id);
		assert_true((g.slab[i] & 3) == IBS_SLAB_ORDER ||
			    (g.slab[i] & 3) == IBS_SLAB_MIN_ORDER);
	}
	for (size_t i = 2; i < ARRAY_SIZE(regs); i++)
		assert_int_equal(g.slab[i], 0);
	/* the first byte of an object and its 1000th are where the geometry of the cache says */
	for (__u64 at = 0; at <= 1000; at += 1000) {
		slab_types_find(&types, NULL, true, &g.task, g.slab[!!at], task + at, 8, &access);
		assert_int_equal(access.kind, TYPE_SLAB);
		assert_string_equal(access.type, "struct task_struct");
		assert_int_equal(access.offset, at);
	}
	slab_types_close(&types);
}

/* A place of a ring that had a slab is used again for a sample without one. */
static void test_place_again(void **state)
{
	const __u64 valid = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID, task = own_task();
	static __u64 regs[64][IBS_OP_REG_FIXED];
	struct sampler_opts opts = with_slabs;
	struct sampler *s = NULL;
	struct err err = {};

	(void)state;
	opts.ring_bytes = SAMPLER_RING_MIN;
	if (sampler_open(&opts, &s, &err))
		fail_msg("%s", err.text);
	for (int round = 0; round < 20; round++) {
		static struct got g;

		g.n = 0;
		for (size_t i = 0; i < ARRAY_SIZE(regs); i++) {
			regs[i][IBS_OP_DATA3] = valid;
			regs[i][IBS_DC_LINADDR] = round & 1 ? (__u64)&opts : task;
		}
		if (twin_run_regs(s, (const void *)regs, ARRAY_SIZE(regs), NULL, &err) ||
		    rings_drain(sampler_rings(s), UINT64_MAX, collect, &g, &err))
			fail_msg("%s", err.text);
		assert_int_equal(g.n, ARRAY_SIZE(regs));
		for (size_t i = 0; i < g.n; i++)
			assert_int_equal(!g.slab[i], round & 1);
	}
	sampler_close(s);
}

/* --- the list --- */

/* A number of a cache in sysfs; -1: none. */
static long in_sysfs(const char *cache, const char *file)
{
	char path[256];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/%s", cache, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

static void test_list(void **state)
{
	static const __u64 none[1][IBS_OP_REG_FIXED];
	static struct got g;
	size_t known = 0, merged = 0;

	(void)state;
	run(&with_slabs, none, 1, &g);
	for (size_t i = 0; i < g.listed; i++) {
		const struct ibs_slab *s = &g.all[i];

		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(s->id, g.all[k].id);
		/* one object at least, with no more pages than that takes */
		assert_true(s->size <= 4096U << s->min_order);
		assert_true(!s->min_order || s->size > 4096U << (s->min_order - 1));
		assert_true(s->min_order <= s->order);
		if (in_sysfs(s->name, "order") < 0)
			continue;
		known++;
		merged += s->merged;
		assert_int_equal(s->order, in_sysfs(s->name, "order"));
		assert_int_equal(s->object_size, in_sysfs(s->name, "object_size"));
		assert_int_equal(s->size, in_sysfs(s->name, "slab_size"));
		assert_int_equal(s->merged, in_sysfs(s->name, "aliases") > 0);
		if (!in_sysfs(s->name, "red_zone"))
			assert_int_equal(s->pad, 0);
	}
	if (!known) {
		print_message("skipped: no /sys/kernel/slab\n");
		skip();
	}
	assert_true(known > 20);
	assert_true(merged < known); /* 0 if the kernel does not merge caches */
}

/* --- objects of several caches --- */

#define TASKS 12

/* Tasks of other processes, at other places of their slabs; each ends with this one. */
static size_t add_tasks(__u64 *addr, pid_t *pid)
{
	for (size_t i = 0; i < TASKS; i++) {
		int ends[2];

		assert_int_equal(pipe(ends), 0);
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i]) {
			__u64 task;

			child_begins();
			task = own_task();
			if (write(ends[1], &task, sizeof(task)) == sizeof(task))
				pause();
			_exit(1);
		}
		assert_int_equal(read(ends[0], &addr[i], sizeof(addr[i])), sizeof(addr[i]));
		close(ends[0]);
		close(ends[1]);
	}
	return TASKS;
}

/* What our task points to: large and small objects, of caches with slabs of several pages and of one. */
static size_t add_pointers(__u64 *addr)
{
	static const char *const members[] = { "mm", "signal", "sighand", "files", "fs", "cred" };
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *task;
	size_t n = 0;

	assert_non_null(btf);
	task = btf__type_by_id(btf, btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT));
	assert_non_null(task);
	for (int i = 0; i < btf_vlen(task); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(task)[i].name_off);

		for (size_t m = 0; m < ARRAY_SIZE(members); m++)
			if (!strcmp(name, members[m]))
				addr[n++] = own_pointer(btf_member_bit_offset(task, i) / 8);
	}
	btf__free(btf);
	assert_int_equal(n, ARRAY_SIZE(members));
	return n;
}

static const struct ibs_slab *cache_of(const struct got *g, __u64 slab)
{
	for (size_t i = 0; i < g->listed; i++)
		if (g->all[i].id == IBS_SLAB_ID(slab))
			return &g->all[i];
	fail_msg("no cache %llx", slab);
	return NULL;
}

/* An object begins where the geometry of its slab says. @orders: bits of the orders met */
static void check_object(const struct got *g, __u64 slab, __u64 addr, __u32 *orders)
{
	const struct ibs_slab *s = cache_of(g, slab);
	__u64 first, order;

	assert_true((slab & 3) == IBS_SLAB_ORDER || (slab & 3) == IBS_SLAB_MIN_ORDER);
	if (s->order == s->min_order)
		assert_int_equal(slab & 3, IBS_SLAB_ORDER);
	order = slab & IBS_SLAB_ORDER ? s->order : s->min_order;
	*orders |= 1U << order;
	first = addr & ~((4096ULL << order) - 1);
	assert_int_equal((addr - first - s->pad) % s->size, 0);
}

static void test_objects(void **state)
{
	enum { MOST = TASKS + 16 };
	static __u64 regs[2 * MOST][IBS_OP_REG_FIXED];
	static struct got g;
	__u64 addr[MOST];
	pid_t pid[TASKS];
	__u32 orders = 0;
	size_t n = add_tasks(addr, pid);

	(void)state;
	n += add_pointers(addr + n);
	for (size_t i = 0; i < 2 * n; i++) {
		regs[i][IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID;
		regs[i][IBS_DC_LINADDR] = addr[i / 2];
		if (i % 2) /* within the object, in its first page or behind it */
			regs[i][IBS_DC_LINADDR] += i / 2 < TASKS ? 5000 : 40;
	}
	run(&with_slabs, (const void *)regs, 2 * n, &g);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(g.slab[2 * i], g.slab[2 * i + 1]);
		check_object(&g, g.slab[2 * i], addr[i], &orders);
		if (i < TASKS)
			assert_int_equal(IBS_SLAB_ID(g.slab[2 * i]), g.task.id);
	}
	assert_true(orders & 1 && orders & ~1U);
	for (size_t i = 0; i < TASKS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* --- where the kernel has its pages --- */

unsigned long long __real_kernel_symbol(const char *name);
unsigned long long __wrap_kernel_symbol(const char *name);

/* 0: of this kernel; else the addresses of two such variables, one behind the other. */
static __u64 pages_at;
static const char *hidden = ""; /* the kernel does not tell where this one is */

unsigned long long __wrap_kernel_symbol(const char *name)
{
	if (!pages_at)
		return __real_kernel_symbol(name);
	if (!strcmp(name, hidden))
		return 0;
	if (!strcmp(name, "vmemmap_base"))
		return pages_at;
	return strcmp(name, "page_offset_base") ? 0 : pages_at + sizeof(pages_at);
}

/* @known: the order of the slab of our task is */
static void check_bases(int map_fd, __u64 vmemmap, __u64 page_offset, bool known)
{
	const __u64 regs[][IBS_OP_REG_FIXED] = {
		{ [IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID,
		  [IBS_DC_LINADDR] = own_task() },
	};
	const __u64 bases[] = { vmemmap, page_offset };
	static struct got g;
	__u32 zero = 0;

	g.n = g.listed = 0;
	assert_int_equal(bpf_map_update_elem(map_fd, &zero, bases, 0), 0);
	run(&with_slabs, regs, 1, &g);
	assert_int_equal(IBS_SLAB_ID(g.slab[0]), g.task.id);
	assert_int_equal(!!(g.slab[0] & 3), known || g.task.order == g.task.min_order);
}

/* The variables say where the pages are; whatever they say, nothing is read that is not there. */
static void test_bases(void **state)
{
	const __u64 vmemmap = 0xffffea0000000000, offset = 0xffff888000000000, step = 1ULL << 30;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bases", 4, 16, 1, NULL);

	(void)state;
	assert_true(fd >= 0);
	pages_at = value_address(fd);
	/* the direct map of kernels whose place is not random */
	if (own_task() >> 40 == offset >> 40)
		check_bases(fd, vmemmap, offset, true);
	check_bases(fd, vmemmap + step, offset, false);
	check_bases(fd, vmemmap, offset + step, false);
	/* one of the two alone says nothing */
	for (int i = 0; i < 2 && own_task() >> 40 == offset >> 40; i++) {
		hidden = i ? "vmemmap_base" : "page_offset_base";
		check_bases(fd, vmemmap + step, offset + 2 * step, true);
	}
	hidden = "";
	pages_at = 0;
	close(fd);
}

/* The same when samples are counted: the lookup is of kernel addresses alone. */
static void test_counted(void **state)
{
	const __u64 valid = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID, task = own_task();
	const __u64 regs[][IBS_OP_REG_FIXED] = {
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = task },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = task + 1000 },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = (__u64)&valid },
		{ [IBS_OP_DATA3] = valid, [IBS_DC_LINADDR] = 0xffffffff81000000 },
		{ [IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP, [IBS_DC_LINADDR] = task },
		{ [IBS_OP_DATA3] = IBS_OP_DATA3_LIN_VALID, [IBS_DC_LINADDR] = task },
	};
	static const char *const names[] = { "task_struct", "[user]", "[no slab]", "unknown" };
	static const __u64 counts[] = { 2, 1, 1, 2 };
	struct sampler_opts opts = with_slabs;
	struct sampler *s = NULL;
	struct snapshot snap;
	struct rows rows;
	struct err err = {};

	(void)state;
	opts.output = SAMPLER_SERIES;
	opts.by = IBS_BY_SLAB;
	if (sampler_open(&opts, &s, &err) || twin_run_regs(s, regs, ARRAY_SIZE(regs), NULL, &err) ||
	    sampler_snapshot(s, &snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], ARRAY_SIZE(regs));
	rows_build(&snap, 1u << LABEL_SLAB, slab_name, s, &rows);
	assert_int_equal(rows.n, ARRAY_SIZE(names));
	for (size_t i = 0; i < rows.n; i++) {
		size_t k = 0;

		while (k < rows.n && strcmp(names[k], rows.row[i].label[LABEL_SLAB]))
			k++;
		assert_in_range(k, 0, rows.n - 1);
		assert_int_equal(rows.row[i].series.samples, counts[k]);
	}
	rows_free(&rows);
	snapshot_free(&snap);
	sampler_close(s);
}

/* Whatever hardware says, the kernel answers, and no sample is lost. */
static void test_any_address(void **state)
{
	static __u64 regs[N][IBS_OP_REG_FIXED];
	static struct got g;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		regs[i][IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID;
		regs[i][IBS_DC_LINADDR] =
			ibs_sim_mix(i) | (i & 1 ? 0xffff800000000000 : 1ull << 63);
	}
	run(&with_slabs, (const void *)regs, N, &g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_object), cmocka_unit_test(test_counted),
		cmocka_unit_test(test_any_address),  cmocka_unit_test(test_list),
		cmocka_unit_test(test_objects),	     cmocka_unit_test(test_bases),
		cmocka_unit_test(test_place_again),
	};
	struct sampler *s = NULL;
	struct err err = {};
	int ret = sampler_open(&with_slabs, &s, &err);

	sampler_close(s);
	if (ret == -EOPNOTSUPP)
		printf("%s", kernel_finds_slabs() ? "although the kernel can: " : "");
	if (ret) {
		printf("skipped: %s\n", err.text);
		return ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT ? 77 : 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
