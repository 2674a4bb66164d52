/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accesses added up by cache line, to find the most expensive lines. */
#ifndef IBSCOPE_HTML_LINES_H
#define IBSCOPE_HTML_LINES_H

#include "base/u64_map.h"

#include <stdbool.h>

#define HTML_LINE_THREADS 6 /* counted exactly up to this number; more are "6+" */

struct html_access {
	__u64 line; /* address of its first byte */
	__u32 host, group, tid;
	bool load, store;
	double cycles;
};

struct html_line {
	__u64 line;
	__u32 host;
	__u32 group; /* of the first access */
	__u32 threads[HTML_LINE_THREADS];
	unsigned int n_threads;
	bool more_threads, shared; /* shared: by several groups */
	__u64 samples, loads, stores;
	double cycles;
};

/* The zero value is empty. */
struct html_lines {
	struct html_line *line;
	size_t n, room;
	struct u64_map numbers;
};

void html_lines_add(struct html_lines *l, const struct html_access *a);

/* Sort by miss cycles, largest first; call it after the last addition. */
void html_lines_sort(struct html_lines *l);
void html_lines_free(struct html_lines *l);

#endif
