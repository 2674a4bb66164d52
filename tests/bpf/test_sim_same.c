// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs of `--source sim`: a CPU's n-th random sample depends on the seed only, so what the kernel counts or
 * forwards is what user space makes of the same samples. Samples of a task are its own instructions.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/record.h>
#include <ibscope/sim.h>

#include "bind_to.h"
#include "filter/filter.h"
#include "pins/pins.h"
#include "replay/engine.h"
#include "twin_model.h"

#define SEED	  7
#define LEAST	  300 /* samples */
#define LONGEST_S 20

static const struct sampler_opts random_ops = {
	.source = SAMPLER_SIM,
	.event = "sim",
	.attr = { .size = sizeof(random_ops.attr),
		  .type = PERF_TYPE_SOFTWARE,
		  .config = PERF_COUNT_SW_CPU_CLOCK,
		  .sample_period = 200000,
		  .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING },
	.cpus = &(const unsigned int){ 0 },
	.n_cpus = 1,
	.ibs.caps = ZEN4_CAPS,
	.max_groups = 64,
	.sim_seed = SEED,
	.sim_ops = SAMPLER_SIM_RANDOM,
};

struct got {
	struct ibs_record packed[1 << 16];
	struct ibs_record_raw raw[1 << 16];
	size_t n;
};

static int collect(const struct record_batch *b, void *arg, struct err *err)
{
	struct got *g = arg;

	(void)err;
	for (size_t i = 0; i < b->n && g->n < 1 << 16; i++, g->n++) {
		if (b->raw)
			g->raw[g->n] = b->raw[i];
		else
			g->packed[g->n] = b->records[i];
	}
	return 0;
}

/* Run until there are @least samples that count or are forwarded. The caller frees @snap. */
static void sample_until(struct sampler *s, __u64 least, struct snapshot *snap)
{
	const time_t end = time(NULL) + LONGEST_S;
	struct err err = {};

	if (sampler_start(s, &err))
		fail_msg("%s", err.text);
	for (;;) {
		const __u64 *out = snap->ledger.outcome;

		if (sampler_snapshot(s, snap, &err))
			fail_msg("%s", err.text);
		if (out[IBS_OUTCOME_AGGREGATED] + out[IBS_OUTCOME_FORWARDED] >= least ||
		    time(NULL) > end)
			break;
		snapshot_free(snap);
		usleep(10000);
	}
	sampler_stop(s);
	snapshot_free(snap);
	if (sampler_snapshot(s, snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
	assert_true(snap->ledger.seen >= least);
}

static void check_same(const struct snapshot *is, const struct snapshot *want)
{
	assert_int_equal(is->n_groups, want->n_groups);
	for (size_t g = 0; g < is->n_groups; g++) {
		assert_memory_equal(&is->groups[g].key, &want->groups[g].key,
				    sizeof(is->groups[g].key));
		assert_int_equal(is->groups[g].n_series, want->groups[g].n_series);
		for (size_t i = 0; i < is->groups[g].n_series; i++) {
			const struct series *a = &is->groups[g].series[i],
					    *b = &want->groups[g].series[i];

			assert_int_equal(a->op, b->op);
			assert_int_equal(a->src, b->src);
			assert_int_equal(a->samples, b->samples);
			assert_int_equal(a->valid, b->valid);
			assert_int_equal(a->sum, b->sum);
			assert_int_equal(a->ops, b->ops);
			assert_int_equal(a->cycles, b->cycles);
			assert_int_equal(!a->buckets, !b->buckets);
			if (a->buckets)
				assert_memory_equal(a->buckets, b->buckets,
						    IBS_LAT_BUCKETS * sizeof(*a->buckets));
		}
	}
}

static void draw(const struct sampler_opts *opts, __u64 n, __u64 *regs)
{
	if (ibs_metric_of_fetch(opts->metric))
		ibs_sim_fetch(SEED, 0, n, regs);
	else
		ibs_sim_op(SEED, 0, n, opts->ibs.caps, regs);
}

static void compare_counts(const struct sampler_opts *opts)
{
	const struct engine_opts eo = { .ibs = opts->ibs,
					.metric = opts->metric,
					.by = opts->by,
					.memory = opts->memory,
					.n_memory = opts->n_memory,
					.max_groups = opts->max_groups,
					.sel = &opts->sel,
					.period = opts->attr.sample_period,
					.count_ops = opts->count_ops };
	const struct task task = { .pid_tgid = 1ULL << 32 | 1, .cgroup_id = 1 };
	struct sampler *s = open_twin(opts);
	__u64 outcome[IBS_OUTCOME_N] = {};
	struct snapshot is, want;
	struct engine *e = NULL;
	struct err err = {};

	sample_until(s, LEAST, &is);
	assert_int_equal(engine_open(&eo, &e, &err), 0);
	for (__u64 n = 0; n < is.ledger.seen; n++) {
		__u64 regs[IBS_OP_REG_FIXED];
		enum ibs_outcome out;

		draw(opts, n, regs);
		engine_run(e, regs, opts->attr.sample_period, &task, &out);
		outcome[out]++;
	}
	assert_int_equal(engine_snapshot(e, &want, &err), 0);
	assert_memory_equal(is.ledger.outcome, outcome, sizeof(outcome));
	check_same(&is, &want);
	snapshot_free(&is);
	snapshot_free(&want);
	engine_close(e);
	sampler_close(s);
}

static void test_counts(void **state)
{
	struct sampler_opts opts = random_ops;

	(void)state;
	compare_counts(&opts);
	opts.count_ops = true;
	opts.sel.min_lat = 20;
	compare_counts(&opts);
	opts.ibs.caps = IBS_CAPS_DEFAULT; /* coarse sources */
	opts.sel.min_lat = 0;
	compare_counts(&opts);
}

static void test_fetch_counts(void **state)
{
	const struct filter_part slow = { .text = "fetch_lat > 12 && !l2_miss",
					  .outcome = IBS_OUTCOME_FILTERED_EXPR,
					  .fetch = true };
	struct sampler_opts opts = random_ops;
	struct filter filter = {};
	struct err err = {};

	(void)state;
	if (filter_compile(&slow, 1, &filter, &err))
		fail_msg("%s", err.text);
	opts.ibs.caps |= IBS_CAPS_FETCHCTLEXTD;
	for (opts.metric = IBS_METRIC_FETCH_LAT; opts.metric < IBS_METRIC_N; opts.metric++) {
		for (int run = 0; run < 4; run++) {
			opts.count_ops = run & 1;
			opts.by = run & 1 ? IBS_BY_MODE : 0;
			opts.sel.min_lat = run == 2 ? 10 : 0;
			opts.sel.max_lat = run == 3 ? 50 : 0;
			opts.sel.src_mask = run == 3 ? 3 : 0;
			opts.sel.filter = run == 1 ? &filter.prog : NULL;
			compare_counts(&opts);
		}
	}
	filter_free(&filter);
}

/* What a filter tells of a fetch, and the node of its memory. */
static void test_fetch_filters(void **state)
{
	static const char *const texts[] = {
		"fetch != l3 && fetch != l2-miss",
		"itlb != walk-4k && itlb != l2",
		"page_size == 4k",
	};
	static const struct memory_range memory[] = {
		{ 0x100000000, 0x100400000, 3 },
		{ 0x100400000, 0x100800000, 1 },
	};
	static const __u32 caps[] = { IBS_CAPS_DEFAULT, ZEN4_CAPS };
	struct sampler_opts opts = random_ops;

	(void)state;
	opts.metric = IBS_METRIC_FETCH_LAT;
	opts.by = IBS_BY_MEM_NODE;
	opts.memory = memory;
	opts.n_memory = sizeof(memory) / sizeof(*memory);
	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(*texts); i++) {
		const struct filter_part part = { .text = texts[i / 2],
						  .outcome = IBS_OUTCOME_FILTERED_EXPR,
						  .fetch = true };
		struct filter filter = {};
		struct err err = {};

		if (filter_compile(&part, 1, &filter, &err))
			fail_msg("%s", err.text);
		opts.ibs.caps = caps[i % 2] | IBS_CAPS_FETCHCTLEXTD;
		opts.sel.filter = &filter.prog;
		compare_counts(&opts);
		filter_free(&filter);
	}
}

static struct got *records_of(const struct sampler_opts *opts, struct snapshot *snap)
{
	struct got *g = calloc(1, sizeof(*g));
	struct sampler *s = open_twin(opts);
	struct err err = {};

	assert_non_null(g);
	sample_until(s, LEAST, snap);
	assert_int_equal(rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err), 0);
	assert_int_equal(g->n, snap->ledger.outcome[IBS_OUTCOME_FORWARDED]);
	sampler_close(s);
	return g;
}

static void test_records(void **state)
{
	struct sampler_opts opts = random_ops;
	struct snapshot snap;
	struct got *g;

	(void)state;
	opts.output = SAMPLER_RECORDS;
	g = records_of(&opts, &snap);
	assert_int_equal(g->n, snap.ledger.seen);
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *r = &g->packed[n];
		__u64 regs[IBS_OP_REG_FIXED], back[IBS_OP_REG_FIXED];

		ibs_sim_op(SEED, 0, n, ZEN4_CAPS, regs);
		ibs_record_regs(r, back);
		assert_false(r->packed & IBS_RECORD_FETCH);
		assert_int_equal(r->ip, regs[IBS_OP_RIP]);
		assert_int_equal(r->addr, regs[IBS_DC_LINADDR]);
		assert_int_equal(r->phys, regs[IBS_DC_PHYSADDR]);
		assert_int_equal(r->data3, regs[IBS_OP_DATA3]);
		assert_int_equal(back[IBS_OP_DATA], regs[IBS_OP_DATA]);
		assert_int_equal(back[IBS_OP_DATA2], regs[IBS_OP_DATA2]);
		assert_true(r->cgroup_id && (!n || r->time > r[-1].time));
	}
	snapshot_free(&snap);
	free(g);
}

/* @extd: the processor has the register IBS_FETCH_EXTD; else it reads as 0 */
static void check_fetch_records(bool raw, bool extd)
{
	struct sampler_opts opts = random_ops;
	struct snapshot snap;
	struct got *g;

	opts.metric = IBS_METRIC_FETCH_LAT;
	opts.output = raw ? SAMPLER_RECORDS_RAW : SAMPLER_RECORDS;
	opts.ibs.caps &= ~IBS_CAPS_FETCHCTLEXTD;
	opts.ibs.caps |= extd ? IBS_CAPS_FETCHCTLEXTD : 0;
	g = records_of(&opts, &snap);
	assert_int_equal(g->n, snap.ledger.seen);
	for (size_t n = 0; n < g->n; n++) {
		const struct ibs_record *p = &g->packed[n];
		const struct ibs_record_raw *r = &g->raw[n];
		__u64 regs[IBS_FETCH_REG_N], extd_value;

		ibs_sim_fetch(SEED, 0, n, regs);
		extd_value = extd ? regs[IBS_FETCH_EXTD] : 0;
		if (!raw) {
			/* of CPU 0: all else is 0 */
			assert_true(p->packed == IBS_RECORD_FETCH);
			assert_int_equal(p->ip, regs[IBS_FETCH_LINADDR]);
			assert_int_equal(p->addr, extd_value);
			assert_int_equal(p->phys, regs[IBS_FETCH_PHYSADDR]);
			assert_int_equal(p->data3, regs[IBS_FETCH_CTL]);
			continue;
		}
		assert_int_equal(r->fetch, 1);
		assert_int_equal(r->cpu, 0);
		assert_int_equal(r->caps, opts.ibs.caps);
		assert_int_equal(r->bytes, extd ? 36 : 28); /* caps and 4 or 3 registers */
		assert_memory_equal(r->regs, regs, 3 * sizeof(*regs));
		assert_int_equal(r->regs[IBS_FETCH_EXTD], extd_value);
		for (int i = IBS_FETCH_REG_N; i < IBS_OP_REG_N; i++)
			assert_int_equal(r->regs[i], 0);
	}
	snapshot_free(&snap);
	free(g);
}

static void test_fetch_records(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		check_fetch_records(i & 1, i & 2);
}

static __u64 aggregated_after(struct sampler *s, double seconds)
{
	struct snapshot snap;
	struct err err = {};
	__u64 n;

	usleep(seconds * 1e6);
	if (sampler_snapshot(s, &snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap.ledger), 0);
	n = snap.ledger.outcome[IBS_OUTCOME_AGGREGATED];
	snapshot_free(&snap);
	return n;
}

/* Sampling ends when nobody renews the lease, not before, and goes on when somebody does. */
static void test_lease(void **state)
{
	char bpffs[] = "/run/ibscope-lease-XXXXXX", dir[64];
	struct sampler_opts opts = random_ops;
	struct err err = {};
	struct sampler *s;
	bool lapsed = false;
	__u64 n;

	(void)state;
	assert_non_null(mkdtemp(bpffs));
	assert_return_code(mount("bpf", bpffs, "bpf", 0, "mode=0700"), errno);
	snprintf(dir, sizeof(dir), "%s/pins", bpffs);
	if (pins_open(dir, 0600, &opts.pins, &err))
		fail_msg("%s", err.text);
	s = open_twin(&opts);
	sampler_renew_lease(s, 60, &lapsed);
	if (sampler_start(s, &err))
		fail_msg("%s", err.text);
	n = aggregated_after(s, 1);
	assert_true(n > 0);
	assert_true(aggregated_after(s, 0.5) > n);
	sampler_renew_lease(s, 0.1, &lapsed);
	assert_false(lapsed);
	n = aggregated_after(s, 2);
	assert_int_equal(aggregated_after(s, 0.3), n);
	sampler_renew_lease(s, 60, &lapsed);
	assert_true(lapsed);
	assert_true(aggregated_after(s, 1) > n);
	sampler_close(s);
	pins_close(opts.pins);
	assert_return_code(umount(bpffs), errno);
	rmdir(bpffs);
}

/* --- instructions of a task --- */

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

static pid_t start_loop(char *data)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to(0);
	loop_forever(data);
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
	pid = start_loop(data);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),	      cmocka_unit_test(test_fetch_counts),
		cmocka_unit_test(test_records),	      cmocka_unit_test(test_fetch_records),
		cmocka_unit_test(test_task),	      cmocka_unit_test(test_lease),
		cmocka_unit_test(test_fetch_filters),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
