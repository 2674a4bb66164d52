/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples of the simulation on CPU 0, until there are enough, and their records. After cmocka.h. */
#ifndef IBSCOPE_TESTS_SIM_RECORDS_H
#define IBSCOPE_TESTS_SIM_RECORDS_H

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <ibscope/record.h>

#include "clock_attr.h"
#include "sampler/rings.h"
#include "sampler/sampler.h"
#include "twin_model.h"

#define SEED	  7
#define LEAST	  300 /* samples */
#define LONGEST_S 20

static const struct sampler_opts random_ops = {
	.source = SAMPLER_SIM,
	.event = "sim",
	.attr = CLOCK_ATTR(200000),
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

static inline int collect(const struct record_batch *b, void *arg, struct err *err)
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
static inline void sample_until(struct sampler *s, __u64 least, struct snapshot *snap)
{
	const time_t end = time(NULL) + LONGEST_S;
	struct err err = {};

	if (sampler_start(s, &err))
		fail_msg("%s", err.text);
	for (;;) {
		const __u64 *out = snap->ledger.outcome;

		if (sampler_snapshot(s, snap, &err))
			fail_msg("%s", err.text);
		if (out[IBS_OUTCOME_AGGREGATED] + out[IBS_OUTCOME_FORWARDED] >= least)
			break;
		if (time(NULL) > end)
			fail_msg("fewer than %llu samples in %d s", least, LONGEST_S);
		snapshot_free(snap);
		usleep(10000);
	}
	sampler_stop(s);
	snapshot_free(snap);
	if (sampler_snapshot(s, snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap->ledger), 0);
}

static inline struct got *records_of(const struct sampler_opts *opts, struct snapshot *snap)
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

#endif
