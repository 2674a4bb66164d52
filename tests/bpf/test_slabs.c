// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slab caches of kernel addresses, asked for by the program that forwards samples: of an object that is known to
 * be one, and of addresses that are of none. The oracle for the offset is the kernel's type information.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rows/rows.h"
#include "machine/kernel.h"
#include "sampler/rings.h"
#include "sampler/sampler.h"
#include "twin_run.h"
#include "symbols/symbols_slab.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <ibscope/sim.h>

#define N 3000

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
};

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
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);
	__u64 task = 0;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &task, .ctx_size_in = sizeof(task));
	int fd = bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "own_task", "GPL", insns, ARRAY_SIZE(insns),
			       &opts);

	assert_true(fd >= 0);
	assert_int_equal(bpf_prog_test_run_opts(fd, &run), 0);
	close(fd);
	assert_true(task >> 63);
	return task;
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
	g->listed++;
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
	struct got g = {};

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
		cmocka_unit_test(test_known_object),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_any_address),
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
