/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samplers that take samples made here, such samples, and a plain model of what must have been
 * counted of them. What cannot be is a failed assertion. After cmocka.h.
 */
#ifndef IBSCOPE_TESTS_TWIN_MODEL_H
#define IBSCOPE_TESTS_TWIN_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibscope/op_fields.h>
#include <ibscope/sim.h>

#include "sampler/sampler.h"
#include "twin_run.h"

#define ZEN4_CAPS 0xbffU

typedef __u64 regs_t[IBS_OP_REG_FIXED];

/* Samples that came to each outcome, in all samplers of this program that were looked at. */
static __u64 reached[IBS_OUTCOME_N];

static const struct sampler_opts zen4 = {
	.source = SAMPLER_TWIN,
	.ibs.caps = ZEN4_CAPS,
	.max_groups = 64,
};

/* False where this kernel or user cannot load the program; the reason is printed. */
static inline bool can_run(void)
{
	struct sampler *s = NULL;
	struct err err = {};
	int ret = sampler_open(&zen4, &s, &err);

	sampler_close(s);
	if (ret == -EPERM || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	return true;
}

static inline struct sampler *open_twin(const struct sampler_opts *opts)
{
	struct sampler *s = NULL;
	struct err err = {};

	if (sampler_open(opts, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* What no sample can come to today is listed here, so that it is noticed when it can. */
static inline bool can_reach(enum ibs_outcome o)
{
	return o != IBS_OUTCOME_FORWARDED && o != IBS_OUTCOME_LOST_RING_FULL &&
	       o != IBS_OUTCOME_LOST_INTERNAL && o != IBS_OUTCOME_LOST_LEASE &&
	       o != IBS_OUTCOME_LOST_OVERWRITTEN;
}

/* Each sample that was seen has one outcome. The caller frees @snap. */
static inline void snapshot(struct sampler *s, struct snapshot *snap)
{
	struct err err = {};

	if (sampler_snapshot(s, snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		reached[o] += snap->ledger.outcome[o];
		if (!can_reach(o) && reached[o])
			fail_msg("%s: %llu samples", outcome_name(o), reached[o]);
	}
}

static inline enum ibs_outcome run_raw(struct sampler *s, const struct twin_raw *raw)
{
	enum ibs_outcome out = IBS_OUTCOME_N;
	struct err err = {};

	if (twin_run_raw(s, raw, &out, &err))
		fail_msg("%s", err.text);
	return out;
}

/* @outcomes: one of each of the @n, or NULL. */
static inline void run_regs(struct sampler *s, const regs_t *regs, size_t n, __u8 *outcomes)
{
	struct err err = {};

	if (twin_run_regs(s, regs, n, outcomes, &err))
		fail_msg("%s", err.text);
}

static inline enum ibs_outcome run_one(struct sampler *s, const regs_t regs)
{
	__u8 out = IBS_OUTCOME_N;

	run_regs(s, (const regs_t *)regs, 1, &out);
	return out;
}

/* What is in it must add up. */
static inline void close_twin(struct sampler *s)
{
	struct snapshot snap;

	snapshot(s, &snap);
	snapshot_free(&snap);
	sampler_close(s);
}

/* --- samples --- */

#define LOAD_MISS \
	(IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_LIN_VALID)
#define DRAM 3 /* DataSrc */
#define L3   1

static inline void load_miss(regs_t regs, __u32 data_src, __u32 lat)
{
	memset(regs, 0, sizeof(regs_t));
	regs[IBS_OP_DATA2] = data_src;
	regs[IBS_OP_DATA3] = LOAD_MISS | (__u64)lat << 32;
}

/* @raw: IBS_TWIN_RAW_MAX bytes. Return: how many of them the record has. */
static inline size_t to_raw(const regs_t regs, __u8 *raw)
{
	__u32 caps = ZEN4_CAPS;

	memset(raw, 0x5a, IBS_TWIN_RAW_MAX);
	memcpy(raw, &caps, sizeof(caps));
	memcpy(raw + sizeof(caps), regs, sizeof(regs_t));
	return sizeof(caps) + sizeof(regs_t);
}

/* Half of them what hardware could say, half arbitrary bits. */
static inline void random_regs(__u64 seed, __u32 caps, regs_t *regs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ibs_sim_op(seed, 0, i, caps, regs[i]);
		if (i & 1)
			for (int r = 0; r < IBS_OP_REG_FIXED; r++)
				regs[i][r] = ibs_sim_mix(seed + i * 8 + r);
	}
}

/* A record that is cut, or followed by more, after so many bytes. */
static inline void check_size(struct sampler *s, __u32 bytes)
{
	__u8 raw[IBS_TWIN_RAW_MAX];
	regs_t regs;

	load_miss(regs, DRAM, 300);
	to_raw(regs, raw);
	assert_int_equal(run_raw(s, &(struct twin_raw){ .raw = raw, .bytes = bytes }),
			 bytes >= 60 && bytes % 8 == 4 ? IBS_OUTCOME_AGGREGATED
						       : IBS_OUTCOME_LOST_BAD_RAW);
}

/* --- the model: what must have been counted --- */

struct model_series {
	__u64 samples, valid, sum, buckets[IBS_LAT_BUCKETS];
};

struct model {
	struct model_series at[IBS_SRC_N][IBS_OP_KIND_N];
	__u64 outcome[IBS_OUTCOME_N];
	__u64 seen;
};

static inline enum ibs_outcome model_outcome(const struct sampler_opts *o, const regs_t regs)
{
	__u64 data3 = regs[IBS_OP_DATA3];
	__u32 lat = ibs_op_metric(o->metric, regs, data3);
	const struct selection *sel = &o->sel;

	if ((sel->min_lat || sel->max_lat) &&
	    (!ibs_op_metric_valid(o->metric, o->ibs.caps, data3) || lat < sel->min_lat ||
	     (sel->max_lat && lat > sel->max_lat)))
		return IBS_OUTCOME_FILTERED_LAT;
	if (sel->op_mask && !(sel->op_mask >> ibs_op_kind(regs[IBS_OP_DATA], data3) & 1))
		return IBS_OUTCOME_FILTERED_OP;
	if (sel->src_mask && !(sel->src_mask >> ibs_op_src(o->ibs, regs) & 1))
		return IBS_OUTCOME_FILTERED_SRC;
	return IBS_OUTCOME_AGGREGATED;
}

static inline enum ibs_outcome model_add(struct model *m, const struct sampler_opts *o,
					 const regs_t regs)
{
	enum ibs_outcome out = model_outcome(o, regs);
	__u64 data3 = regs[IBS_OP_DATA3];
	struct model_series *s =
		&m->at[ibs_op_src(o->ibs, regs)][ibs_op_kind(regs[IBS_OP_DATA], data3)];
	__u32 lat = ibs_op_metric(o->metric, regs, data3), b = 0;

	m->seen++;
	m->outcome[out]++;
	if (out != IBS_OUTCOME_AGGREGATED)
		return out;
	s->samples++;
	if (!ibs_op_metric_valid(o->metric, o->ibs.caps, data3))
		return out;
	while (ibs_lat_le(b) < lat)
		b++;
	s->valid++;
	s->sum += lat;
	s->buckets[b]++;
	return out;
}

/* With @times the model holds for one of so many equal parts of the group. */
static inline void check_group(const struct group *g, const struct model *m, __u64 times)
{
	size_t n = 0;

	for (int src = 0; src < IBS_SRC_N; src++)
		for (int op = 0; op < IBS_OP_KIND_N; op++)
			n += m->at[src][op].samples > 0;
	assert_int_equal(g->n_series, n);
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		const struct model_series *want = &m->at[s->src][s->op];

		assert_int_equal(s->samples, want->samples * times);
		assert_int_equal(s->valid, want->valid * times);
		assert_int_equal(s->sum, want->sum * times);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			assert_int_equal(s->buckets ? s->buckets[b] : 0, want->buckets[b] * times);
	}
}

static inline void check_ledger(const struct ledger *l, const struct model *m)
{
	assert_int_equal(l->seen, m->seen);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(l->outcome[o], m->outcome[o]);
}

/* @n samples go in, and what comes out is what the model says, sample by sample and in sum. */
static inline void check_against_model(const struct sampler_opts *opts, const regs_t *regs,
				       size_t n)
{
	struct sampler *s = open_twin(opts);
	struct model *m = calloc(1, sizeof(*m));
	__u8 *outcomes = malloc(n);
	struct snapshot snap;

	assert_non_null(m);
	assert_non_null(outcomes);
	run_regs(s, regs, n, outcomes);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(outcomes[i], model_add(m, opts, regs[i]));
	snapshot(s, &snap);
	check_ledger(&snap.ledger, m);
	assert_int_equal(snap.n_groups, 1);
	check_group(&snap.groups[0], m, 1);
	snapshot_free(&snap);
	free(outcomes);
	free(m);
	sampler_close(s);
}

#endif
