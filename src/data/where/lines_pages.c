// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lines_private.h"

/* A page as a process saw it. */
struct seen {
	__u64 space, addr, first;
	__u64 page; /* physical */
};

struct move {
	__u64 time; /* the first use of @to */
	__u64 from, to;
};

static void use(struct line_pages *p, const struct line_access *a, __u64 address)
{
	__u32 i = u64_map_get(&p->of, address);

	if (i == U64_MAP_NONE) {
		i = p->n++;
		array_reserve(p->page, p->room, p->n);
		p->page[i] = (struct line_page){ address, a->first, a->last, i };
		u64_map_put(&p->of, address, i);
	}
	if (a->first < p->page[i].first)
		p->page[i].first = a->first;
	if (a->last > p->page[i].last)
		p->page[i].last = a->last;
}

static int compare_words(const __u64 *a, const __u64 *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int compare_seen(const void *pa, const void *pb)
{
	return compare_words(pa, pb, sizeof(struct seen) / sizeof(__u64));
}

static int compare_moves(const void *pa, const void *pb)
{
	return compare_words(pa, pb, sizeof(struct move) / sizeof(__u64));
}

static __u32 root_of(struct line_pages *p, __u32 i)
{
	while (p->page[i].root != i)
		i = p->page[i].root;
	return i;
}

/* One row a process and page; those of one physical page have its earliest time. */
static size_t see(const struct line_set *s, struct line_pages *p, struct seen **out)
{
	struct seen *seen = xcalloc(s->n, sizeof(*seen));
	struct u64_map of = { 0 };
	size_t n = 0;
	__u32 k;

	for (size_t i = 0; i < s->n; i++) {
		const struct line_access *a = &s->access[i];
		struct seen v = { line_space(a), a->addr & ~(LINE_PAGE_BYTES - 1), a->first, 0 };
		__u64 hash;

		if (!a->phys)
			continue;
		v.page = a->phys & ~(LINE_PAGE_BYTES - 1);
		use(p, a, v.page);
		if (!a->addr || !(a->has & LINE_HAS_TASK))
			continue;
		hash = words_hash((const __u64[]){ v.space, v.addr, v.page }, 3);
		u64_map_for_each(k, &of, hash)
		{
			if (seen[k].space == v.space && seen[k].addr == v.addr &&
			    seen[k].page == v.page)
				break;
		}
		if (k == U64_MAP_NONE) {
			u64_map_add(&of, hash, n);
			seen[n++] = v;
		} else if (v.first < seen[k].first) {
			seen[k].first = v.first;
		}
	}
	u64_map_free(&of);
	*out = seen;
	return n;
}

void line_pages_find(const struct line_set *s, struct line_pages *out)
{
	size_t n_moves = 0, n;
	struct move *moves;
	struct seen *seen;

	*out = (struct line_pages){ 0 };
	n = see(s, out, &seen);
	qsort(seen, n, sizeof(*seen), compare_seen);
	moves = xcalloc(n, sizeof(*moves));
	for (size_t i = 1; i < n; i++)
		if (seen[i].space == seen[i - 1].space && seen[i].addr == seen[i - 1].addr)
			moves[n_moves++] = (struct move){ line_page(out, seen[i].page)->first,
							  seen[i - 1].page, seen[i].page };
	qsort(moves, n_moves, sizeof(*moves), compare_moves);
	for (size_t i = 0; i < n_moves; i++) {
		__u32 from = root_of(out, line_page(out, moves[i].from)->root);
		__u32 to = root_of(out, line_page(out, moves[i].to)->root);
		struct line_page *a = &out->page[from], *b = &out->page[to];

		if (from == to || a->last >= b->first)
			continue;
		a->root = to;
		b->first = a->first;
		out->moved++;
	}
	for (__u32 i = 0; i < out->n; i++)
		out->page[i].root = root_of(out, i);
	free(moves);
	free(seen);
}

void line_pages_free(struct line_pages *p)
{
	free(p->page);
	u64_map_free(&p->of);
}
