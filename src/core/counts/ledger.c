// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot.h"

#include "base/std.h"
#include "base/text.h"

void ledger_add(struct ledger *to, const struct ledger *l, int sign)
{
	to->seen += sign * l->seen;
	to->pmu_samples += sign * l->pmu_samples;
	to->unseen += sign * l->unseen;
	to->pmu_exact &= l->pmu_exact;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		to->outcome[o] += sign * l->outcome[o];
}

void ledger_join(struct ledger *to, const struct ledger *l)
{
	ledger_add(to, l, 1);
	to->dropped += l->dropped;
	to->dropped_known &= l->dropped_known;
	to->undelivered += l->undelivered;
	to->undelivered_known &= l->undelivered_known;
}

__u64 ledger_sum(const struct ledger *l, enum ibs_outcome_kind kind)
{
	__u64 sum = 0;

	for (int o = 0; o < IBS_OUTCOME_N; o++)
		if (outcome_kind(o) == kind)
			sum += l->outcome[o];
	return sum;
}

long long ledger_residual(const struct ledger *l)
{
	__u64 sum = 0;

	for (int k = 0; k < IBS_OUTCOME_KIND_N; k++)
		sum += ledger_sum(l, k);
	return l->seen - sum;
}

static void print_kind(FILE *f, const struct ledger *l, enum ibs_outcome_kind kind,
		       const char *name)
{
	const char *sep = " (";

	fprintf(f, " + %s %s", name, TEXT_COUNT(ledger_sum(l, kind)));
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		if (outcome_kind(o) != kind || !l->outcome[o])
			continue;
		fprintf(f, "%s%s %s", sep, outcome_name(o), TEXT_COUNT(l->outcome[o]));
		sep = ", ";
	}
	if (*sep == ',')
		fputc(')', f);
}

void ledger_print(FILE *f, const struct ledger *l)
{
	fprintf(f, "seen %s = aggregated %s", TEXT_COUNT(l->seen),
		TEXT_COUNT(ledger_sum(l, IBS_OUTCOME_KIND_AGGREGATED)));
	if (ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED))
		fprintf(f, " + forwarded %s",
			TEXT_COUNT(ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED)));
	print_kind(f, l, IBS_OUTCOME_KIND_FILTERED, "filtered");
	print_kind(f, l, IBS_OUTCOME_KIND_LOST, "lost");
	if (l->pmu_exact)
		fprintf(f, "; unseen %s", TEXT_COUNT(l->unseen));
	else
		fprintf(f, "; unseen unknown");
	if (l->dropped_known && l->dropped)
		fprintf(f, "; dropped by hardware %s", TEXT_COUNT(l->dropped));
	if (l->undelivered_known && l->undelivered)
		fprintf(f, "; tagged, but not delivered %s", TEXT_COUNT(l->undelivered));
}

/* Reasons of one kind with nonzero counts. */
static void put_reasons(struct json_writer *w, const char *key, const struct ledger *l,
			enum ibs_outcome_kind kind)
{
	json_begin_object(w, key);
	for (int i = 0; i < IBS_OUTCOME_N; i++)
		if (outcome_kind(i) == kind && l->outcome[i])
			json_put_u64(w, outcome_name(i), l->outcome[i]);
	json_end(w);
}

static void put_members(struct json_writer *w, const struct ledger *l)
{
	json_put_u64(w, "seen", l->seen);
	json_put_u64(w, "aggregated", ledger_sum(l, IBS_OUTCOME_KIND_AGGREGATED));
	json_put_u64(w, "forwarded", ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED));
	put_reasons(w, "filtered", l, IBS_OUTCOME_KIND_FILTERED);
	put_reasons(w, "lost", l, IBS_OUTCOME_KIND_LOST);
	json_put_known(w, "unseen", l->pmu_exact, l->unseen);
	json_put_known(w, "dropped_by_hardware", l->dropped_known, l->dropped);
	json_put_known(w, "tagged_undelivered", l->undelivered_known, l->undelivered);
}

void ledger_put(struct json_writer *w, const struct ledger *l)
{
	json_begin_object(w, "ledger");
	put_members(w, l);
	json_end(w);
}

void ledger_print_line(FILE *f, const char *event, const struct ledger *l, bool json)
{
	struct json_writer w = { .f = f };

	if (json) {
		json_begin_object(&w, NULL);
		put_members(&w, l);
		if (event)
			json_put_text(&w, "event", event);
		json_finish(&w);
		return;
	}
	fprintf(f, "%s%s", event ?: "", event ? ": " : "");
	ledger_print(f, l);
	fputc('\n', f);
}
