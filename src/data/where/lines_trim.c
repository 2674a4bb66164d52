// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Give up the coldest lines, for those who need only the hottest ones. */
#include "lines_private.h"

#include <stdlib.h>

/* Sums of a line so far. */
struct sum {
	__u64 cycles, samples;
	size_t n; /* accesses */
	__u32 line;
};

static __u64 key_of(const struct line_access *a)
{
	const __u64 words[] = { (a->phys ?: a->addr) / LINE_BYTES, a->phys ? 0 : line_space(a) };

	return words_hash(words, ARRAY_SIZE(words));
}

static int compare(const void *pa, const void *pb)
{
	const struct sum *a = pa, *b = pb;

	if (a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return a->line < b->line ? -1 : 1;
}

/* Number the lines of the accesses, and add them up. Return: how many there are. */
static size_t add_up(const struct line_set *s, __u32 *line, struct sum *sum)
{
	struct u64_map of = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct line_access *a = &s->access[i];
		__u64 key = key_of(a);

		line[i] = u64_map_get(&of, key);
		if (line[i] == U64_MAP_NONE) {
			line[i] = n;
			sum[n] = (struct sum){ .line = n };
			u64_map_put(&of, key, n++);
		}
		sum[line[i]].cycles += a->cycles;
		sum[line[i]].samples += a->samples;
		sum[line[i]].n++;
	}
	u64_map_free(&of);
	return n;
}

static void give_up(struct lines *out, const struct line_access *a)
{
	out->trimmed += a->samples;
	out->trimmed_cycles += a->cycles;
	out->trimmed_hitm += line_from_hitm(a->from) ? a->cycles : 0;
}

/* Keep the accesses of lines that are kept, and find them again. */
static void keep(struct line_set *s, const __u32 *line, const bool *kept)
{
	size_t n = s->n;

	u64_map_free(&s->of);
	s->of = (struct u64_map){ 0 };
	s->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!kept[line[i]]) {
			give_up(&s->out, &s->access[i]);
			continue;
		}
		s->access[s->n] = s->access[i];
		u64_map_add(&s->of, words_hash((const __u64 *)&s->access[s->n], ACCESS_WORDS),
			    s->n);
		s->n++;
	}
}

void lines_trim(struct line_set *s)
{
	const size_t most = s->opts.most;
	size_t n, accesses = 0;
	struct sum *sum;
	__u32 *line;
	bool *kept;

	line = xcalloc(s->n, sizeof(*line));
	sum = xcalloc(s->n, sizeof(*sum));
	n = add_up(s, line, sum);
	kept = xcalloc(n, sizeof(*kept));
	qsort(sum, n, sizeof(*sum), compare);
	for (size_t i = 0; i < n && accesses + sum[i].n <= most / 2; i++) {
		accesses += sum[i].n;
		kept[sum[i].line] = true;
	}
	keep(s, line, kept);
	free(kept);
	free(sum);
	free(line);
}
