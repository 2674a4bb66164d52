/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Intervals of a session of the simulation, and what they had. After cmocka.h. */
#ifndef IBSCOPE_TESTS_SESSION_RUN_H
#define IBSCOPE_TESTS_SESSION_RUN_H

#include "sim_session.h"

#include <errno.h>

/* What intervals had. */
static struct {
	unsigned int n[2], groups;
	__u64 seen[2], last_seen[2], pmu;
	double at[32];
	int fail_at; /* the one whose printing fails; 0: none */
	bool strata;
} got;
static struct session_signals signals;

static inline int note(void *arg, unsigned int event, struct snapshot *interval,
		       const struct snapshot *now, struct err *e)
{
	assert_ptr_equal(arg, &got);
	got.at[got.n[event]++ % 32] = now_s();
	got.seen[event] += interval->ledger.seen;
	got.last_seen[event] = now->ledger.seen;
	got.pmu += interval->ledger.pmu_samples;
	got.groups += interval->n_groups;
	got.strata |= interval->strata != NULL;
	if (interval->strata) {
		assert_string_equal(interval->strata->event[STRATUM_MISS], "ibs_op/l3missonly=1/");
		assert_true(strata_total(&interval->strata->design, STRATUM_N).seconds > 0.001);
	}
	if (got.n[event] == (unsigned int)got.fail_at)
		return err_set(e, -EPIPE, "nobody reads it");
	return 0;
}

static inline int run(double interval_s, uint64_t count)
{
	const struct session_intervals i = { .interval_s = interval_s,
					     .count = count,
					     .sigfd = -1,
					     .signals = &signals,
					     .print = note,
					     .arg = &got };

	return session_run_intervals(s, &i, &err);
}

static inline int begin(void **state)
{
	memset(&got, 0, sizeof(got));
	memset(&signals, 0, sizeof(signals));
	return new_session(state);
}

#endif
