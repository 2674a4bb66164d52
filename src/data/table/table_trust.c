// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How far estimates are to be trusted. */
#include "table.h"

#include "base/array.h"

#include <math.h>

static void put_error(FILE *f, const struct screen *screen, double error)
{
	fprintf(f, "%s%.*f%%", screen->utf8 ? "±" : "+-", error < 0.1, 100 * error);
}

size_t table_first_weak(const struct table *t)
{
	size_t first = t->n;
	double least = INFINITY;
	bool passed = false;

	for (size_t i = 0; i < t->n; i++) {
		const struct table_row *r = &t->row[i];

		if (!table_is_weak(r->all.valid)) {
			if (first < t->n) /* other than by rank */
				return t->n;
			least = fmin(least, r->cycles);
			continue;
		}
		first = first < t->n ? first : i;
		passed |= r->cycles > least;
	}
	return passed ? first : t->n;
}

void table_print_trust(FILE *f, const struct screen *screen, const struct table *t)
{
	double first = NAN, most = NAN;
	const bool last = table_first_weak(t) < t->n;
	bool weak = false;

	for (size_t i = 0; i < t->n; i++) {
		const struct table_row *r = &t->row[i];
		const double error = table_error(t, r);

		if (table_is_weak(r->all.valid)) {
			weak |= r->all.valid > 0;
			continue;
		}
		first = isnan(first) ? error : first;
		most = fmax(most, error);
	}
	if (isnan(first)) {
		if (weak)
			fprintf(f,
				"every row has fewer than %d samples with a latency: sample "
				"longer\n",
				TABLE_FEW);
		return;
	}
	fputs("95% intervals of cycles: ", f);
	put_error(f, screen, first);
	if (most > first) {
		fputs(" (first row) to ", f);
		put_error(f, screen, most);
	}
	if (weak) /* in the order of cycles nothing is to be explained */
		fprintf(f, last ? "; ~ last: under %d samples" : "; ~ fewer than %d samples",
			TABLE_FEW);
	fputc('\n', f);
}

char *table_trust_text(const struct screen *screen, const struct table *t)
{
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	fputc('\n', f);
	table_print_trust(f, screen, t);
	xmemclose(f);
	if (size == 1)
		*text = 0;
	return text;
}
