/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that lines are made of. */
#ifndef IBSCOPE_LINES_PRIVATE_H
#define IBSCOPE_LINES_PRIVATE_H

#include "base/array.h"
#include "base/parallel.h"
#include "base/u64_map.h"
#include "lines.h"

#define LINE_PAGE_BYTES 4096ull

/* The words of an access that tell it from others come before its sums. */
#define ACCESS_WORDS (offsetof(struct line_access, samples) / sizeof(__u64))
_Static_assert(offsetof(struct line_access, samples) == 48, "line_access has padding in its key");

/* Lookups that wait for memory together take little longer than one that waits alone. */
#define LINES_AT_ONCE 32
#define LINES_BATCH   4096 /* accesses of a job */

struct line_set {
	struct lines_opts opts;
	struct lines out;

	/* complete after lines_flush(); before that, another thread may add to them */
	struct line_access *access;
	size_t n, room;
	struct u64_map of; /* by the hash of its key */

	struct parallel_queue queue; /* of struct line_access */
};

/* The sums of equal accesses, by all words before them. */
struct line_access *line_access_of(struct line_set *s, const struct line_access *a);

/* Apply lines_opts.most. */
void lines_trim(struct line_set *s);

/* Add what waits: then `access` has all. */
void lines_flush(struct line_set *s);

/* Physical pages, each with the one that it is shown as: itself, or where it moved to. */
struct line_pages {
	struct line_page {
		__u64 page; /* address */
		__u64 first, last;
		__u32 root;
	} * page;
	size_t n, room;
	struct u64_map of; /* by address */
	__u64 moved;
};

/**
 * line_pages_find() - which pages moved
 *
 * @page: set to the index of each access's page in @out; U64_MAP_NONE without a physical address
 *
 * A page that a process saw at one physical address and later at another moved if nobody used the
 * first one any more when the second was first used. Else it is another page: copied on write, say.
 */
void line_pages_find(const struct line_set *s, struct line_pages *out, __u32 *page);
void line_pages_free(struct line_pages *p);

/* @page: the address of one that is there */
static inline struct line_page *line_page(const struct line_pages *p, __u64 page)
{
	return &p->page[u64_map_get(&p->of, page)];
}

#endif
