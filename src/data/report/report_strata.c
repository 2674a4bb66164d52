// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports of recordings with strata, whose samples have weights. */
#include "report_print.h"
#include "report_private.h"

#include "base/array.h"
#include "base/text.h"

#include <math.h>

const char *report_strata_of(const struct trace_info *info, unsigned int event)
{
	return !trace_has_strata(info) ? NULL
	       : event == STRATUM_FULL ? "the full stratum"
				       : "the miss stratum";
}

void report_strata_add(struct report *r, size_t row, const struct trace_sample *s, double cycles)
{
	if (!r->strata || !s->slice || !s->slice->window)
		return;
	array_reserve_zero(r->spread, r->spreads, row + 1);
	strata_spread_add(&r->spread[row], s->slice->window, s->slice->k, cycles);
	strata_spread_add(&r->spread_of_all, s->slice->window, s->slice->k, cycles);
}

void report_part_end(struct report *r)
{
	for (size_t i = 0; i < r->spreads; i++)
		strata_spread_end(&r->spread[i]);
	strata_spread_end(&r->spread_of_all);
}

/* Rows that rise and fall together make the total less certain than their sum says. */
void report_strata_intervals(struct report *r, struct report_table *t)
{
	report_part_end(r);
	for (size_t i = 0; i < t->n && i < r->spreads; i++)
		t->rows[i].waits.squares += fmax(r->spread[i].variance, 0);
	t->total.waits.squares += fmax(r->spread_of_all.variance, 0);
}

void report_strata_row(const struct report_table *t, const struct report_row *row,
		       struct table_row *out)
{
	if (!t->strata)
		return;
	out->all.strata = xcalloc(1, sizeof(*out->all.strata));
	memcpy(out->all.strata->buckets, out->all.buckets, sizeof(out->all.strata->buckets));
	out->value[TABLE_ERROR] = estimate_error(&row->waits, 0);
}

void report_print_strata(FILE *f, const struct report_head *h, const struct report_table *t)
{
	const struct trace_end *end = h->end;

	if (!t->strata)
		return;
	fprintf(f, "\nstrata    samples of different weights, as good as %s of equal ones\n",
		TEXT_COUNT(llround(t->effective)));
	if (!end->has_ledger || end->n_ledgers != STRATUM_N)
		return;
	for (unsigned int of = 0; of < STRATUM_N; of++) {
		fprintf(f, "%s      ", stratum_name(of));
		ledger_print(f, &end->event_ledger[of]);
		fputc('\n', f);
	}
	fputs("sum       ", f);
	ledger_print(f, &end->ledger);
	fprintf(f, "; residual %lld\n", ledger_residual(&end->ledger));
}
