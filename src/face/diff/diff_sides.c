// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether two sides can be compared, and the words for what they measure. */
#include "diff_private.h"

#include "base/err.h"

#include <ctype.h>

static const char *const per_names[DIFF_PER_N] = { "ops", "access", "second" };

const char *diff_per_name(unsigned int per)
{
	return per_names[per];
}

const char *diff_unit(const struct diff *d)
{
	return report_unit_name(d->about[COMPARE_A].units) ?: "ops";
}

const char *diff_word(enum compare_kind kind, double change)
{
	static const char *const words[2][2] = { { "less often", "more often" },
						 { "faster", "slower" } };

	return words[kind][change > 0];
}

static int differ(struct err *err, const char *what, const char *a, const char *b,
		  const char *remedy)
{
	return err_set(err, -EINVAL,
		       "the two cannot be compared: %s is '%s' in A and '%s' in B; %s", what, a, b,
		       remedy);
}

/*
 * What of a selection, as selection_text() writes it, is about samples. What is before it is about
 * processes, of which each side may have its own; but minimum latencies of cgroups, "/a:300", are not.
 */
static const char *selected(const char *filter)
{
	static const char *const options[] = { "--src ", "--op ", "--min-lat ", "--max-lat ",
					       "--filter " };
	const char *first = filter + strlen(filter), *at;

	for (at = strchr(filter, ':'); at; at = strchr(at + 1, ':'))
		if (isdigit(at[1]))
			return filter;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		at = strstr(filter, options[i]);
		first = at && at < first ? at : first;
	}
	return first;
}

static const char *yes_no(bool v)
{
	return v ? "yes" : "no";
}

int diff_check(const struct diff *d, struct err *err)
{
	const struct diff_about *a = &d->about[COMPARE_A], *b = &d->about[COMPARE_B];
	const char *ua = report_unit_name(a->units), *ub = report_unit_name(b->units);
	static const char record[] = "record both the same way";

	if (strcmp(a->metric, b->metric))
		return differ(err, "the metric", a->metric, b->metric, record);
	if (a->simulated != b->simulated)
		return differ(err, "simulated", yes_no(a->simulated), yes_no(b->simulated),
			      "the simulation says nothing about a machine");
	if (d->per == DIFF_PER_OPS && a->units && b->units && (!ua || !ub || strcmp(ua, ub)))
		return differ(err, "what the period counts", ua ?: "mixed", ub ?: "mixed",
			      "use --per access or --per second");
	if (a->hardware_filter != b->hardware_filter)
		return differ(err, "a hardware filter", yes_no(a->hardware_filter),
			      yes_no(b->hardware_filter), record);
	if (strcmp(selected(a->filter), selected(b->filter)))
		return differ(err, "the selection of samples while recording", selected(a->filter),
			      selected(b->filter), record);
	return 0;
}
