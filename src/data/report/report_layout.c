// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Below the fields of a type: who reads and writes them, and which bytes of its cache lines. */
#include "report_print.h"
#include "report_private.h"

#include "base/utf8.h"

#define LINE_BYTES  64
#define LINES_MAX   64
#define ACCESSORS   3 /* that are named, of each kind */
#define FIELD_WIDTH 24

static int width(const char *field)
{
	size_t n = strlen(field ?: "[unknown]");

	return n < FIELD_WIDTH ? (int)(FIELD_WIDTH - n) : 0;
}

const enum label report_layout_keys[REPORT_LAYOUT_KEYS] = { LABEL_FIELD_OFFSET, LABEL_FIELD_SIZE,
							    LABEL_FIELD, LABEL_SYMBOL };

static __u64 number(const char *label)
{
	return label ? strtoull(label, NULL, 10) : 0;
}

/* How many rows from @i on are of one field. */
static size_t rows_of_field(const struct report_table *t, size_t i)
{
	const char *field = t->rows[i].label[2];
	size_t end = i;

	while (end < t->n && t->rows[end].label[2] && field &&
	       !strcmp(t->rows[end].label[2], field))
		end++;
	return end > i ? end - i : 1;
}

/* The functions with most samples, "none" without any. */
static void print_accessors(FILE *f, const struct report_row *row, size_t n, bool stores)
{
	bool used[ACCESSORS] = { false };
	size_t at[ACCESSORS], others = 0, shown = 0;

	for (; shown < ACCESSORS; shown++) {
		__u64 best = 0;

		for (size_t i = 0; i < n; i++) {
			__u64 count = stores ? row[i].stores : row[i].loads;

			for (size_t k = 0; k < shown; k++)
				count = at[k] == i ? 0 : count;
			if (count > best) {
				best = count;
				at[shown] = i;
				used[shown] = true;
			}
		}
		if (!used[shown])
			break;
		fputs(shown ? ", " : "", f);
		utf8_put(f, row[at[shown]].label[3] ?: "[unknown]");
		fprintf(f, " %llu", (unsigned long long)best);
	}
	for (size_t i = 0; i < n; i++)
		others += stores ? row[i].stores > 0 : row[i].loads > 0;
	if (others > shown)
		fprintf(f, ", %zu more", others - shown);
	if (!shown)
		fputs("none", f);
}

static void print_lines(FILE *f, const struct report *r, const struct report_table *t)
{
	static char bytes[LINES_MAX * LINE_BYTES];
	size_t end = 0;

	memset(bytes, '.', sizeof(bytes));
	for (size_t i = 0; i < t->n; i++) {
		const struct report_row *row = &t->rows[i];
		__u64 at = number(row->label[0]), last = at + number(row->label[1]);

		end = last > end ? last : end;
		for (; at < last && at < sizeof(bytes); at++)
			bytes[at] = row->stores			     ? 'w'
				    : row->loads && bytes[at] != 'w' ? 'r'
								     : bytes[at];
	}
	if (__builtin_popcountll(r->begins) == 1)
		fprintf(f, "\nobjects begin %d bytes into a cache line\n",
			__builtin_ctzll(r->begins));
	else if (r->begins)
		fprintf(f, "\nobjects begin at %d different offsets in cache lines\n",
			__builtin_popcountll(r->begins));
	for (size_t at = 0; at < end && at < sizeof(bytes); at += LINE_BYTES)
		fprintf(f, "%-9zu %.*s\n", at, (int)(end - at < LINE_BYTES ? end - at : LINE_BYTES),
			bytes + at);
	if (end > sizeof(bytes))
		fprintf(f, "and %zu bytes more\n", end - sizeof(bytes));
}

void report_layout_print(FILE *f, struct report *r)
{
	const struct report_order order = { .by_key = true };
	struct report_table t = { 0 };

	report_add_fields(r);
	report_table(r, &order, &t);
	if (t.n)
		fprintf(f, "\n%-*s readers; writers\n", FIELD_WIDTH, "field");
	for (size_t i = 0, n; i < t.n; i += n) {
		__u64 samples = 0;

		n = rows_of_field(&t, i);
		for (size_t k = i; k < i + n; k++)
			samples += t.rows[k].samples;
		if (!samples)
			continue;
		utf8_put(f, t.rows[i].label[2] ?: "[unknown]");
		fprintf(f, "%*s ", width(t.rows[i].label[2]), "");
		print_accessors(f, &t.rows[i], n, false);
		fputs("; ", f);
		print_accessors(f, &t.rows[i], n, true);
		fputc('\n', f);
	}
	print_lines(f, r, &t);
	report_table_free(&t);
}
