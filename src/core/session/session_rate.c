// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Periods that are too short, by what an interval shows. */
#include "session.h"

#include "base/text.h"

#include <math.h>

/*
 * What an interrupt costs, and below which period few samples arrive: measurements of ParCoreLab (TPDS'23,
 * github.com/ParCoreLab/PES-artifact), which got 75 % of the samples at a period of 10,000 ops and
 * hardly any at 1,000. `ibscope doctor --cost` measures the cost of the machine at hand.
 */
#define SAMPLE_NS    2900.0
#define SHORT_PERIOD 20000
#define GOOD_PERIOD  100000

#define SHARE_MAX 0.1 /* of the CPUs' time, or of the samples */

bool sampling_rate_warning(const struct snapshot *interval, __u64 period, char *text, size_t size)
{
	const struct ledger *l = &interval->ledger;
	const double time_ns = interval->pmu.running_ns, samples = l->seen;
	const double share = time_ns > 0 ? samples * SAMPLE_NS / time_ns : 0;
	const double unseen =
		l->pmu_exact && l->pmu_samples ? (double)l->unseen / l->pmu_samples : 0;

	if (unseen > SHARE_MAX && period && period < SHORT_PERIOD && !interval->pmu.throttled) {
		snprintf(text, size,
			 "%.0f%% of the samples were never delivered: the period of %s is too "
			 "short; use "
			 "at least %s (-c)",
			 100 * unseen, TEXT_COUNT(period), TEXT_COUNT(GOOD_PERIOD));
		return true;
	}
	if (share <= SHARE_MAX)
		return false;
	snprintf(text, size,
		 "%s samples a second on each CPU cost about %.0f%% of its time, if each takes 2.9 "
		 "us "
		 "(doctor --cost measures it): use ",
		 TEXT_COUNT(llround(samples / time_ns * 1e9)), 100 * fmin(share, 1));
	if (period)
		snprintf(text + strlen(text), size - strlen(text), "a period of at least %s (-c)",
			 TEXT_COUNT((__u64)ceil(period * share / SHARE_MAX / 16) * 16));
	else
		snprintf(text + strlen(text), size - strlen(text), "at most %s Hz (-F)",
			 TEXT_COUNT((__u64)(SHARE_MAX * 1e9 / SAMPLE_NS)));
	return true;
}
