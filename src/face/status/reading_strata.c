// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a reading says of strata. */
#include "reading.h"
#include "base/text.h"

#include <string.h>

const char *const stratum_names[STRATUM_N] = { "full", "miss" };
_Static_assert((int)STRATUM_N == IBS_STRATA, "pins have as many strata");

void stratum_ledger(const struct ibs_stratum *of, struct ledger *out)
{
	*out = (struct ledger){ .seen = of->seen };
	memcpy(out->outcome, of->outcome, sizeof(out->outcome));
}

__u64 strata_effective_samples(const struct ibs_strata *s)
{
	return s->of[STRATUM_FULL].tags + s->of[STRATUM_MISS].tags;
}

void strata_status_print(FILE *f, const struct ibs_strata *s)
{
	if (!s->used)
		return;
	fprintf(f,
		"strata: %s, %.0f%% of the time for the full one; ops beyond the L3 as many as in "
		"%s samples of all ops\n",
		s->on ? "sampled by turns" : "not sampled now", 100 * STRATA_FULL_SHARE,
		TEXT_COUNT(strata_effective_samples(s)));
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		const struct ibs_stratum *one = &s->of[of];
		struct ledger l;

		stratum_ledger(one, &l);
		fprintf(f, "%s stratum: %.1f s in %s slices, period %s: ", stratum_names[of],
			one->time_ns / 1e9, TEXT_COUNT(one->slices), TEXT_COUNT(one->period));
		ledger_print(f, &l);
		fputc('\n', f);
	}
}

void strata_status_put(struct json_writer *w, const struct ibs_strata *s)
{
	if (!s->used)
		return;
	json_begin_object(w, "strata");
	json_put_bool(w, "on", s->on);
	json_put_double(w, "full_share", STRATA_FULL_SHARE);
	json_put_u64(w, "effective_samples", strata_effective_samples(s));
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		const struct ibs_stratum *one = &s->of[of];
		struct ledger l;

		stratum_ledger(one, &l);
		json_begin_object(w, stratum_names[of]);
		json_put_double(w, "seconds", one->time_ns / 1e9);
		json_put_u64(w, "slices", one->slices);
		json_put_u64(w, "period", one->period);
		json_put_u64(w, "tags", one->tags);
		ledger_put(w, &l);
		json_end(w);
	}
	json_end(w);
}
