// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Histograms and trends of one line. */
#include "table.h"

#include <string.h>

/* two bins per octave in between, one below, one above */
#define EDGE_FIRST 16
#define EDGE_LAST  4096

static unsigned int bin_of(unsigned int bucket)
{
	__u32 le = ibs_lat_le(bucket), edge = EDGE_FIRST, bin = 0;

	for (; le > edge && edge < EDGE_LAST; bin++)
		edge = bin % 2 ? edge / 3 * 4 : edge / 2 * 3;
	return le > EDGE_LAST ? TABLE_BINS - 1 : bin;
}

void table_bins(const struct series *series, double bin[TABLE_BINS])
{
	memset(bin, 0, TABLE_BINS * sizeof(*bin));
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
		bin[bin_of(b)] += series_in_bucket(series, b);
}

void table_spark(const struct screen *s, const double *v, size_t n, bool zero, char *out,
		 size_t size)
{
	static const char *const steps[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
	double most = 0;
	size_t k = 0;

	*out = 0;
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	for (size_t i = 0; i < n && k < size; i++) {
		unsigned int step = v[i] > 0	? 1 + (most > 1 ? 7 * (v[i] - 1) / (most - 1) : 0)
				    : v[i] == 0 ? zero
						: 0;

		k += snprintf(out + k, size - k, "%s", (s->utf8 ? steps : ascii)[step]);
	}
}
