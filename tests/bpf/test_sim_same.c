// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs of `--source sim`: a CPU's n-th random sample depends on the seed only, so what the kernel counts or
 * forwards is what user space makes of the same samples.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/record.h>
#include <ibscope/sim.h>

#include "filter/filter.h"
#include "pins/pins.h"
#include "replay/engine.h"
#include "sampler/sampler_private.h"
#include "sim_records.h"
#include "twin_model.h"

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

static void test_records(void **state)
{
	struct sampler_opts opts = random_ops;
	struct snapshot snap;
	struct got *g;

	(void)state;
	opts.output = SAMPLER_RECORDS;
	g = records_of(&opts, &snap);
	assert_int_equal(g->n + snap.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL], snap.ledger.seen);
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
	assert_int_equal(g->n + snap.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL], snap.ledger.seen);
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

/* Samples that are counted and copied: what finds no room is counted all the same. */
static void test_copies(void **state)
{
	struct sampler_opts opts = random_ops;
	struct got *g = calloc(1, sizeof(*g));
	struct snapshot snap;
	struct err err = {};
	struct sampler *s;
	__u64 dropped;
	__u32 slots;

	(void)state;
	assert_non_null(g);
	opts.copies = true;
	opts.ring_bytes = SAMPLER_RING_MIN;
	s = open_twin(&opts);
	slots = s->memory.ring_slots;
	sample_until(s, LEAST, &snap);
	assert_int_equal(rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err), 0);
	assert_int_equal(g->n + sampler_copies_dropped(s), 0);
	dropped = snap.ledger.seen;
	snapshot_free(&snap);
	sampler_copy(s, true);
	sample_until(s, dropped + slots + 20, &snap);
	assert_int_equal(rings_drain(sampler_rings(s), UINT64_MAX, collect, g, &err), 0);
	assert_int_equal(g->n, slots);
	for (size_t n = 0; n < g->n; n++) {
		__u64 regs[IBS_OP_REG_FIXED];

		ibs_sim_op(SEED, 0, dropped + n, ZEN4_CAPS, regs);
		assert_int_equal(g->packed[n].ip, regs[IBS_OP_RIP]);
		assert_int_equal(g->packed[n].data3, regs[IBS_OP_DATA3]);
	}
	dropped = snap.ledger.seen - dropped - slots;
	assert_int_equal(sampler_copies_dropped(s), dropped);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], snap.ledger.seen);
	snapshot_free(&snap);
	sampler_close(s);
	free(g);
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

/* Sample until that outcome has so many samples more than it had. Return: those of @other by then. */
static __u64 sample_more(struct sampler *s, enum ibs_outcome outcome, __u64 more,
			 enum ibs_outcome other)
{
	const time_t end = time(NULL) + LONGEST_S;
	__u64 least = 0, others = 0, is = 0;
	struct err err = {};

	while (!least || is < least) {
		struct snapshot snap;

		if (time(NULL) > end)
			fail_msg("outcome %d: %llu samples of %llu", outcome, is, least);
		if (least)
			usleep(2000);
		if (sampler_snapshot(s, &snap, &err))
			fail_msg("%s", err.text);
		assert_int_equal(ledger_residual(&snap.ledger), 0);
		is = snap.ledger.outcome[outcome];
		others = snap.ledger.outcome[other];
		least = least ?: is + more;
		snapshot_free(&snap);
	}
	return others;
}

/* An event that the program cannot end samples on: without a lease, its samples are counted as lost. */
static void check_lease_drops(enum ibs_metric metric)
{
	struct sampler_opts opts = random_ops;
	struct err err = {};
	struct sampler *s;
	bool lapsed = true;
	__u64 before;

	opts.metric = metric;
	s = open_twin(&opts);
	sampler_renew_lease(s, 60, &lapsed);
	assert_false(lapsed);
	if (sampler_start(s, &err))
		fail_msg("%s", err.text);
	sample_more(s, IBS_OUTCOME_AGGREGATED, 2 * IBS_LEASE_EVERY, IBS_OUTCOME_LOST_LEASE);
	sampler_renew_lease(s, 1e-9, &lapsed);
	assert_false(lapsed);
	sample_more(s, IBS_OUTCOME_LOST_LEASE, 10, IBS_OUTCOME_AGGREGATED);
	before = sample_more(s, IBS_OUTCOME_LOST_LEASE, 1, IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sample_more(s, IBS_OUTCOME_LOST_LEASE, 400, IBS_OUTCOME_AGGREGATED),
			 before);
	if (!ibs_metric_of_fetch(metric))
		for (int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
			assert_int_equal(s->state->cpu[0].layout[i], IBS_OUTCOME_LOST_LEASE);
	assert_int_equal(s->state->cpu[0].lapsed, 1);
	sampler_renew_lease(s, 60, &lapsed);
	assert_true(lapsed);
	sample_more(s, IBS_OUTCOME_AGGREGATED, 1, IBS_OUTCOME_LOST_LEASE);
	before = sample_more(s, IBS_OUTCOME_AGGREGATED, 1, IBS_OUTCOME_LOST_LEASE);
	assert_int_equal(sample_more(s, IBS_OUTCOME_AGGREGATED, 50, IBS_OUTCOME_LOST_LEASE),
			 before);
	/* 0: no lease */
	sampler_renew_lease(s, 0, &lapsed);
	assert_false(lapsed);
	sample_more(s, IBS_OUTCOME_AGGREGATED, 2 * IBS_LEASE_EVERY, IBS_OUTCOME_LOST_LEASE);
	sampler_renew_lease(s, 60, &lapsed);
	assert_false(lapsed);
	sampler_close(s);
}

static void test_lease_drops(void **state)
{
	(void)state;
	check_lease_drops(IBS_METRIC_DC_MISS_LAT);
	check_lease_drops(IBS_METRIC_FETCH_LAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),	      cmocka_unit_test(test_fetch_counts),
		cmocka_unit_test(test_records),	      cmocka_unit_test(test_fetch_records),
		cmocka_unit_test(test_lease),	      cmocka_unit_test(test_lease_drops),
		cmocka_unit_test(test_fetch_filters), cmocka_unit_test(test_copies),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
