// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot.h"

#include "base/std.h"

typedef unsigned long long ull; /* for %llu */

void ledger_add(struct ledger *to, const struct ledger *l, int sign)
{
	to->seen += sign * l->seen;
	to->pmu_samples += sign * l->pmu_samples;
	to->unseen += sign * l->unseen;
	to->pmu_exact &= l->pmu_exact;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		to->outcome[o] += sign * l->outcome[o];
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

	fprintf(f, " + %s %llu", name, (ull)ledger_sum(l, kind));
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		if (outcome_kind(o) != kind || !l->outcome[o])
			continue;
		fprintf(f, "%s%s %llu", sep, outcome_name(o), (ull)l->outcome[o]);
		sep = ", ";
	}
	if (*sep == ',')
		fputc(')', f);
}

void ledger_print(FILE *f, const struct ledger *l)
{
	fprintf(f, "seen %llu = aggregated %llu", (ull)l->seen,
		(ull)ledger_sum(l, IBS_OUTCOME_KIND_AGGREGATED));
	if (ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED))
		fprintf(f, " + forwarded %llu", (ull)ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED));
	print_kind(f, l, IBS_OUTCOME_KIND_FILTERED, "filtered");
	print_kind(f, l, IBS_OUTCOME_KIND_LOST, "lost");
	if (l->pmu_exact)
		fprintf(f, "; unseen %llu", (ull)l->unseen);
	else
		fprintf(f, "; unseen unknown");
	if (l->dropped_known && l->dropped)
		fprintf(f, "; dropped by hardware %llu", (ull)l->dropped);
	if (l->undelivered_known && l->undelivered)
		fprintf(f, "; tagged, but not delivered %llu", (ull)l->undelivered);
}

/* Reasons of one kind with nonzero counts. */
static json_t *json_reasons(const struct ledger *l, enum ibs_outcome_kind kind)
{
	json_t *o = json_object();

	for (int i = 0; i < IBS_OUTCOME_N; i++)
		if (outcome_kind(i) == kind && l->outcome[i])
			json_object_set_new(o, outcome_name(i), json_integer(l->outcome[i]));
	return o;
}

json_t *ledger_json(const struct ledger *l)
{
	return json_pack(
		"{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "seen", (json_int_t)l->seen,
		"aggregated", (json_int_t)ledger_sum(l, IBS_OUTCOME_KIND_AGGREGATED), "forwarded",
		(json_int_t)ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED), "filtered",
		json_reasons(l, IBS_OUTCOME_KIND_FILTERED), "lost",
		json_reasons(l, IBS_OUTCOME_KIND_LOST), "unseen",
		l->pmu_exact ? json_integer(l->unseen) : json_null(), "dropped_by_hardware",
		l->dropped_known ? json_integer(l->dropped) : json_null(), "tagged_undelivered",
		l->undelivered_known ? json_integer(l->undelivered) : json_null());
}

void ledger_print_line(FILE *f, const char *event, const struct ledger *l, bool json)
{
	json_t *o;

	if (json) {
		o = ledger_json(l);
		if (event)
			json_object_set_new(o, "event", json_string(event));
		json_dumpf(o, f, JSON_COMPACT);
		json_decref(o);
	} else {
		fprintf(f, "%s%s", event ?: "", event ? ": " : "");
		ledger_print(f, l);
	}
	fputc('\n', f);
}
