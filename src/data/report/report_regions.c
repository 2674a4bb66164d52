// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report.h"

#include "base/array.h"
#include "base/err.h"
#include "base/text.h"

#define PAGE 4096ull

static int compare(const void *pa, const void *pb)
{
	const __u64 *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

void report_regions_print(FILE *f, const struct report_table *t, bool simulated)
{
	__u64 *page = xcalloc(t->n + 1, sizeof(*page));
	size_t n = 0, end;
	__u64 left = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].label[0])
			page[n++] = strtoull(t->rows[i].label[0], NULL, 16);
		else
			left += t->rows[i].samples;
	}
	qsort(page, n, sizeof(*page), compare);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && page[end] <= page[end - 1] + PAGE;)
			end++;
		fprintf(f, "%llu-%llu\n", (unsigned long long)page[i],
			(unsigned long long)(page[end - 1] + PAGE));
	}
	free(page);
	if (simulated)
		log_warn("SIMULATED addresses: there is no such memory");
	if (left)
		log_warn("%s samples without a physical address are in no region",
			 TEXT_COUNT(left));
}
