// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_lines.h"

#include "base/array.h"

#include <stdlib.h>

static struct html_line *line_of(struct html_lines *l, const struct html_access *a)
{
	__u32 number;

	u64_map_for_each(number, &l->numbers, a->line)
	{
		if (l->line[number].host == a->host)
			return &l->line[number];
	}
	array_reserve(l->line, l->room, l->n + 1);
	u64_map_add(&l->numbers, a->line, l->n);
	l->line[l->n] = (struct html_line){ .line = a->line, .host = a->host, .group = a->group };
	return &l->line[l->n++];
}

static void add_thread(struct html_line *line, __u32 tid)
{
	for (unsigned int i = 0; i < line->n_threads; i++)
		if (line->threads[i] == tid)
			return;
	if (line->n_threads < HTML_LINE_THREADS)
		line->threads[line->n_threads++] = tid;
	else
		line->more_threads = true;
}

void html_lines_add(struct html_lines *l, const struct html_access *a)
{
	struct html_line *line = line_of(l, a);

	line->samples++;
	line->loads += a->load;
	line->stores += a->store;
	line->cycles += a->cycles;
	line->shared |= a->group != line->group;
	add_thread(line, a->tid);
}

static int compare(const void *pa, const void *pb)
{
	const struct html_line *a = pa, *b = pb;

	if (a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

void html_lines_sort(struct html_lines *l)
{
	if (l->n)
		qsort(l->line, l->n, sizeof(*l->line), compare);
	u64_map_free(&l->numbers);
}

void html_lines_free(struct html_lines *l)
{
	free(l->line);
	u64_map_free(&l->numbers);
	*l = (struct html_lines){ 0 };
}
