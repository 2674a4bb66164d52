/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_DIFF_PRIVATE_H
#define IBSCOPE_DIFF_PRIVATE_H

#include "diff.h"

/* What a cause without keys is called. */
#define DIFF_NO_CAUSE "unknown"

void diff_put_json(FILE *f, const struct diff *d, const struct compare_result *r);
void diff_put_csv(FILE *f, const struct diff *d, const struct compare_result *r);

/* "more often" or "slower", by the sign of a change. */
const char *diff_word(enum compare_kind kind, double change);

/* "ops", "cycles" or "fetches": what the samples count. */
const char *diff_unit(const struct diff *d);

#endif
