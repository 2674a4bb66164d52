// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own functions, run by the kernel on samples made here: the counts that come out
 * against a plain model of them, with estimated ops and TLB misses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/op_fields.h>
#include <ibscope/sim.h>

#include "pins/pins.h"
#include "replay/engine.h"
#include "sampler/sampler.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"
#include "twin_model.h"

#define ZEN3_CAPS 0x3ffU
#define ZEN5_CAPS 0x81bffU

static const struct ibs_cpu cpus[] = {
	{ .caps = IBS_CAPS_DEFAULT },
	{ .caps = ZEN3_CAPS, .quirks = IBS_QUIRK_OP_1293 },
	{ .caps = ZEN4_CAPS },
	{ .caps = ZEN5_CAPS },
};

static void test_random(void **state)
{
	enum { N = 12000 };
	regs_t *regs = malloc(N * sizeof(*regs));
	__u64 seed = 1;

	(void)state;
	assert_non_null(regs);
	for (size_t c = 0; c < sizeof(cpus) / sizeof(cpus[0]); c++) {
		for (int metric = 0; metric < IBS_OP_METRIC_N; metric++) {
			struct sampler_opts opts = zen4;

			opts.ibs = cpus[c];
			opts.metric = metric;
			random_regs(seed++, cpus[c].caps, regs, N);
			check_against_model(&opts, regs, N);
		}
	}
	free(regs);
}

/* Each latency once: every bucket and both of its edges. */
static void test_every_latency(void **state)
{
	regs_t *regs = malloc((IBS_LAT_MAX + 1) * sizeof(*regs));

	(void)state;
	assert_non_null(regs);
	for (__u32 lat = 0; lat <= IBS_LAT_MAX; lat++)
		load_miss(regs[lat], DRAM, lat);
	check_against_model(&zen4, regs, IBS_LAT_MAX + 1);
	free(regs);
}

/* Periods of every length: estimated ops and TLB misses against sums made here, in the kernel and offline. */
#define OPS_N 3000

static void check_ops(const struct snapshot *snap, const struct ibs_twin_sample *sample,
		      bool count_ops, bool with_exposed)
{
	__u64 ops[IBS_OP_KIND_N][IBS_SRC_N] = {}, cycles[IBS_OP_KIND_N][IBS_SRC_N] = {};
	bool met[IBS_OP_KIND_N][IBS_SRC_N] = {};
	struct series miss[IBS_OP_KIND_N][IBS_SRC_N] = {};
	__u64 open = 0, hitm = 0, owned = 0, exposed = 0, unexposed = 0;
	struct tlb_counts tlb = {};
	const struct group *g;
	size_t n_met = 0;

	for (size_t i = 0; i < OPS_N; i++) {
		const __u64 *regs = sample[i].regs, data3 = regs[IBS_OP_DATA3];
		const struct ibs_cpu cpu = { .caps = ZEN4_CAPS };
		struct ibs_op_sample s = { .cpu = cpu };
		enum ibs_op_kind kind = ibs_op_kind(regs[IBS_OP_DATA], data3);
		enum ibs_src src = ibs_op_src(cpu, regs);
		__u64 w = count_ops ? sample[i].period : 0;

		memcpy(s.reg, regs, sizeof(sample[i].regs));
		n_met += !met[kind][src];
		met[kind][src] = true;
		ops[kind][src] += w;
		if (ibs_op_dc_miss_lat_valid(data3)) {
			struct series *m = &miss[kind][src];

			cycles[kind][src] += w * (data3 >> 32 & 0xffff);
			/* of a load that retired at once, part of its latency, if the number of requests is known */
			if ((regs[IBS_OP_DATA] & 0xffff) <= 2 && (data3 >> 26 & 63))
				m->exposed += (count_ops ? w : 1) *
					      ((data3 >> 32 & 0xffff) / (data3 >> 26 & 63));
			else
				unexposed += (regs[IBS_OP_DATA] & 0xffff) <= 2;
			m->open_n += ibs_op_valid_open_mem_reqs(&s);
			if (ibs_op_valid_open_mem_reqs(&s))
				m->open += data3 >> 26 & 63;
			m->state_n += ibs_op_valid_cache_hit_st(&s);
			if (ibs_op_valid_cache_hit_st(&s) && !(regs[IBS_OP_DATA2] >> 5 & 1))
				m->hitm += (count_ops ? w : 1) * (data3 >> 32 & 0xffff);
		}
		if (!ibs_op_valid_l2tlb(&s))
			continue;
		*(data3 >> 3 & 1 ? &tlb.l2_miss : &tlb.l2_hit) += 1;
		*(data3 >> 3 & 1 ? &tlb.l2_miss_ops : &tlb.l2_hit_ops) += w;
		if (ibs_op_valid_tlb_refill_lat(&s)) {
			tlb.refills++;
			tlb.refill_cycles += data3 >> 48;
		}
	}
	assert_int_equal(snap->n_groups, 1);
	g = &snap->groups[0];
	assert_int_equal(g->n_series, n_met);
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *got = &g->series[i], *m = &miss[got->op][got->src];

		assert_int_equal(got->ops, ops[got->op][got->src]);
		assert_int_equal(got->cycles, cycles[got->op][got->src]);
		assert_int_equal(got->open_n, m->open_n);
		assert_int_equal(got->open, m->open);
		assert_int_equal(got->state_n, m->state_n);
		assert_int_equal(got->hitm, m->hitm);
		assert_int_equal(got->exposed, with_exposed ? m->exposed : 0);
		if (got->buckets || !with_exposed)
			assert_int_equal(got->exposed_n, with_exposed ? got->valid - unexposed : 0);
		exposed += got->exposed;
		open += got->open_n;
		hitm += got->hitm;
		owned += got->state_n;
	}
	assert_true(open && hitm && owned);
	assert_true(!with_exposed || (exposed && unexposed));
	assert_true(tlb.l2_hit && tlb.l2_miss && tlb.refills);
	assert_memory_equal(&g->tlb, &tlb, sizeof(tlb));
}

static void test_ops(void **state)
{
	struct ibs_twin_sample *sample = calloc(OPS_N, sizeof(*sample));
	const struct task task = { .cgroup_id = 1 };
	regs_t *regs = calloc(OPS_N, sizeof(*regs));

	(void)state;
	assert_true(sample && regs);
	random_regs(7, ZEN4_CAPS, regs, OPS_N);
	for (size_t i = 0; i < OPS_N; i++) {
		memcpy(sample[i].regs, regs[i], sizeof(regs[i]));
		/* a few cycles from completion to retirement, and few open requests */
		sample[i].regs[IBS_OP_DATA] &= ~0xffffULL;
		sample[i].regs[IBS_OP_DATA] |= i % 5;
		sample[i].regs[IBS_OP_DATA3] &= ~(0x3fULL << 26);
		sample[i].regs[IBS_OP_DATA3] |= (ibs_sim_mix(i) & 3) << 26;
		sample[i].period = ibs_sim_mix(i) >> (24 + i % 32);
	}
	for (int run = 0; run < 4; run++) {
		const bool count_ops = run & 1, exposed = run & 2;
		struct sampler_opts opts = zen4;
		const struct engine_opts eo = { .ibs = opts.ibs,
						.max_groups = opts.max_groups,
						.sel = &opts.sel,
						.count_ops = count_ops,
						.exposed = exposed,
						.tlb = true };
		struct engine *e = NULL;
		struct snapshot snap;
		struct sampler *s;
		struct err err = {};

		opts.count_ops = count_ops;
		opts.exposed = exposed;
		opts.tlb = true;
		s = open_twin(&opts);
		assert_int_equal(twin_run(s, sample, OPS_N, NULL, &err), 0);
		snapshot(s, &snap);
		check_ops(&snap, sample, count_ops, exposed);
		snapshot_free(&snap);
		sampler_close(s);

		assert_int_equal(engine_open(&eo, &e, &err), 0);
		for (size_t i = 0; i < OPS_N; i++)
			engine_run(e, sample[i].regs, sample[i].period, &task, NULL);
		assert_int_equal(engine_snapshot(e, &snap, &err), 0);
		check_ops(&snap, sample, count_ops, exposed);
		snapshot_free(&snap);
		engine_close(e);
	}
	free(sample);
	free(regs);
}

/* Registers alone count the same ops whatever was replayed before. */
static void test_ops_of_regs(void **state)
{
	struct ibs_twin_sample sample = { .period = 1000 };
	struct sampler_opts opts = zen4;
	struct snapshot snap;
	struct err err = {};
	struct sampler *s;

	(void)state;
	opts.count_ops = true;
	s = open_twin(&opts);
	load_miss(sample.regs, DRAM, 300);
	assert_int_equal(twin_run(s, &sample, 1, NULL, &err), 0);
	assert_int_equal(run_one(s, sample.regs), IBS_OUTCOME_AGGREGATED);
	snapshot(s, &snap);
	assert_int_equal(snap.groups[0].series[0].samples, 2);
	assert_int_equal(snap.groups[0].series[0].ops, 1001);
	assert_int_equal(snap.groups[0].series[0].cycles, 300 * 1001);
	snapshot_free(&snap);
	sampler_close(s);
}

/* Another user has the PMU for part of the time: a sample represents more ops, but still counts as one. */
static void test_shares(void **state)
{
	static const struct ibs_twin_sample sample = { .period = 1000 };
	struct ibs_twin_sample load = sample;
	struct sampler_opts opts = zen4;
	struct snapshot snap;
	struct err err = {};
	struct sampler *s;

	(void)state;
	opts.count_ops = true;
	s = open_twin(&opts);
	load_miss(load.regs, DRAM, 300);
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		s->state->cpu[cpu].share = 5 * IBS_SHARE_ONE / 2;
	assert_int_equal(twin_run(s, &load, 1, NULL, &err), 0);
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		s->state->cpu[cpu].live |= IBS_LIVE_SHARED;
	assert_int_equal(twin_run(s, &load, 1, NULL, &err), 0);
	/* a change of the selection leaves it as it is */
	select_renew(&s->select);
	assert_int_equal(twin_run(s, &load, 1, NULL, &err), 0);
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, 1);
	assert_int_equal(snap.groups[0].series[0].samples, 3);
	assert_int_equal(snap.groups[0].series[0].sum, 900);
	assert_int_equal(snap.groups[0].series[0].ops, 6000);
	assert_int_equal(snap.groups[0].series[0].cycles, 300 * 6000);
	snapshot_free(&snap);
	sampler_close(s);
}

static const struct series *series_of(const struct snapshot *snap, enum ibs_src src)
{
	for (size_t i = 0; i < snap->groups[0].n_series; i++)
		if (snap->groups[0].series[i].src == src)
			return &snap->groups[0].series[i];
	fail_msg("no samples of %s", src_name(src));
	return NULL;
}

/* One of DRAM, which both strata sample, and one of L3, each with a miss of the L1 TLB; 300 cycles each. */
static void run_strata(struct sampler *s, __u64 full, __u64 both, bool counts_l3)
{
	static const __u32 data_src[] = { DRAM, L3 };

	s->state->control.tag_ops = full;
	s->state->control.reach_ops = both;
	for (int i = 0; i < 2; i++) {
		regs_t regs;

		load_miss(regs, data_src[i], 300);
		regs[IBS_OP_DATA3] |=
			IBS_OP_DATA3_PHY_VALID | IBS_OP_DATA3_L1TLB_MISS | 7ULL << 48 | 3ULL << 26;
		assert_int_equal(run_one(s, regs), i && !counts_l3 ? IBS_OUTCOME_FILTERED_SRC
								   : IBS_OUTCOME_AGGREGATED);
	}
}

/*
 * Samples of strata have the weight of the stratum that counts them. With a hardware filter, no sample of a
 * source counts that the filter does not reach, and none as a TLB miss.
 */
static void test_strata(void **state)
{
	struct sampler_opts opts = zen4;
	const struct series *l3, *dram;
	struct snapshot snap;
	struct sampler *s;

	(void)state;
	opts.count_ops = opts.tlb = opts.exposed = true;
	opts.miss_attr.size = sizeof(opts.miss_attr);
	opts.reach = 1 << IBS_SRC_DRAM;
	s = open_twin(&opts);
	run_strata(s, 1000, 400, true);
	run_strata(s, 0, 70, false);
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], 3);
	assert_int_equal(snap.n_groups, 1);
	l3 = series_of(&snap, IBS_SRC_L3);
	dram = series_of(&snap, IBS_SRC_DRAM);
	assert_int_equal(l3->samples, 1);
	assert_int_equal(l3->ops, 1000);
	assert_int_equal(l3->cycles, 300 * 1000);
	assert_int_equal(l3->exposed, 100 * 1000); /* a third: three requests were open */
	assert_int_equal(dram->samples, 2);
	assert_int_equal(dram->ops, 470);
	assert_int_equal(dram->cycles, 300 * 470);
	assert_int_equal(dram->exposed, 100 * 470);
	assert_int_equal(snap.groups[0].tlb.l2_hit, 2);
	assert_int_equal(snap.groups[0].tlb.l2_hit_ops, 2000);
	assert_int_equal(snap.groups[0].tlb.refills, 2);
	assert_int_equal(snap.groups[0].tlb.refill_cycles, 14);
	snapshot_free(&snap);
	sampler_close(s);
}

/* Without `tlb`, no TLB miss is counted, also where a later collector would find it. */
static void test_no_tlb(void **state)
{
	static const struct tlb_counts none;
	struct snapshot snap;
	struct sampler *s;
	regs_t regs;

	(void)state;
	s = open_twin(&zen4);
	load_miss(regs, DRAM, 300);
	regs[IBS_OP_DATA3] |= IBS_OP_DATA3_PHY_VALID | IBS_OP_DATA3_L1TLB_MISS | 7ULL << 48;
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	s->counts.tlb = true;
	snapshot(s, &snap);
	assert_memory_equal(&snap.groups[0].tlb, &none, sizeof(none));
	snapshot_free(&snap);
	sampler_close(s);
}

/* The latency of a cgroup counts only if cgroups are selected: the state may be that of an earlier collector. */
static void test_left_latency(void **state)
{
	struct sampler_opts opts = zen4;
	struct sampler *s;
	regs_t regs;

	(void)state;
	opts.sel.min_lat = 100;
	s = open_twin(&opts);
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		s->state->cpu[cpu].min_lat = 500;
	load_miss(regs, DRAM, 300);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	load_miss(regs, DRAM, 99);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_LAT);
	sampler_close(s);
}

#define LATER_N 5

enum later {
	LATER_OFF,
	LATER_ON,
	LATER_OLD,    /* of a build that knows nothing of exposed cycles */
	LATER_BROKEN, /* on, after a change that was interrupted */
};

/* @known: samples of which exposed cycles must be known behind it, in order of this table */
static const struct {
	enum later how;
	bool same_collector; /* as the one before, after a reload */
	unsigned int known, exposed;
} later[] = {
	{ LATER_OFF, false, 0, 0 },
	{ LATER_ON, false, 1, 1 },
	{ LATER_ON, true, 2, 2 },
	{ LATER_OFF, true, 0, 2 },
	{ LATER_OFF, false, 0, 2 },
	{ LATER_ON, false, 3, 3 },
	{ LATER_OFF, true, 0, 3 },
	{ LATER_ON, true, 4, 4 },
	/* nothing is known of what is there when an older build begins, as of what it counts */
	{ LATER_OLD, false, 0, 4 },
	{ LATER_ON, false, 1, 5 },
	{ LATER_OFF, false, 0, 5 },
	{ LATER_OLD, false, 0, 5 },
	{ LATER_OFF, false, 0, 5 },
	{ LATER_ON, false, 1, 6 },
	{ LATER_BROKEN, false, 1, 7 },
	{ LATER_ON, false, 2, 8 },
};

/* What of the counters such a collector leaves differs from what this build leaves. */
static void leave_later(struct sampler *s, struct pins *pins, size_t i)
{
	struct ibs_control *control = &s->state->control;

	if (later[i].how == LATER_OLD) {
		control->exposed = i && later[i - 1].how == LATER_ON;
		control->exposed_starts = pins_meta(pins)->starts - 1;
	}
	if (i + 1 < sizeof(later) / sizeof(*later) && later[i + 1].how == LATER_BROKEN)
		control->exposed = IBS_EXPOSED_CHANGING;
}

static void run_later(struct sampler *s, const struct ibs_twin_sample *sample, size_t i)
{
	const bool on = later[i].how == LATER_ON || later[i].how == LATER_BROKEN;
	const struct series *got;
	struct snapshot snap;
	struct err err = {};

	assert_int_equal(twin_run(s, sample, LATER_N, NULL, &err), 0);
	snapshot(s, &snap);
	got = &snap.groups[0].series[0];
	assert_int_equal(got->valid, LATER_N * (i + 1));
	assert_int_equal(snap.groups[0].has_exposed, on);
	if (on)
		assert_int_equal(got->exposed, later[i].exposed * LATER_N * 100 * 1000);
	assert_int_equal(got->exposed_n, on ? LATER_N * later[i].known : 0);
	snapshot_free(&snap);
}

/*
 * Exposed cycles are unknown of the samples that were counted without them, and of no others, however often that changes;
 * of all where that cannot be known.
 */
static void test_exposed_later(void **state)
{
	struct ibs_twin_sample sample[LATER_N] = {};
	struct sampler_opts opts = zen4;
	char bpffs[] = "/run/ibscope-counts-XXXXXX", dir[64];
	struct err err = {};

	(void)state;
	for (int i = 0; i < LATER_N; i++) {
		sample[i].period = 1000;
		load_miss(sample[i].regs, DRAM, 300);
		sample[i].regs[IBS_OP_DATA3] |= 3ULL << 26;
	}
	opts.count_ops = true;
	assert_non_null(mkdtemp(bpffs));
	assert_return_code(mount("bpf", bpffs, "bpf", 0, "mode=0700"), errno);
	snprintf(dir, sizeof(dir), "%s/pins", bpffs);
	for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++) {
		struct sampler *s;

		if (!later[i].same_collector && opts.pins) {
			pins_close(opts.pins);
			opts.pins = NULL;
		}
		if (!opts.pins && pins_open(dir, 0600, &opts.pins, &err))
			fail_msg("%s", err.text);
		opts.exposed = later[i].how == LATER_ON || later[i].how == LATER_BROKEN;
		s = open_twin(&opts);
		run_later(s, sample, i);
		leave_later(s, opts.pins, i);
		sampler_close(s);
	}
	pins_close(opts.pins);
	assert_return_code(umount(bpffs), errno);
	rmdir(bpffs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	      cmocka_unit_test(test_ops),
		cmocka_unit_test(test_ops_of_regs),   cmocka_unit_test(test_shares),
		cmocka_unit_test(test_every_latency), cmocka_unit_test(test_exposed_later),
		cmocka_unit_test(test_strata),	      cmocka_unit_test(test_no_tlb),
		cmocka_unit_test(test_left_latency),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
