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

static __u32 use(struct line_pages *p, const struct line_access *a, __u64 address)
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
	return i;
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

static __u64 page_of(const struct line_access *a)
{
	return a->phys & ~(LINE_PAGE_BYTES - 1);
}

static struct seen seen_of(const struct line_access *a)
{
	return (struct seen){ line_space(a), a->addr & ~(LINE_PAGE_BYTES - 1), a->first,
			      page_of(a) };
}

static __u64 hash_of(const struct seen *v)
{
	return words_hash((const __u64[]){ v->space, v->addr, v->page }, 3);
}

static bool is_seen(const struct line_access *a)
{
	return a->phys && a->addr && (a->has & LINE_HAS_TASK);
}

/* What processes saw, found by hash. */
struct sight {
	struct seen *seen;
	size_t n;
	struct u64_map of;
};

/* One row a process and page; those of one physical page have its earliest time. */
static void see(struct sight *s, const struct seen *v, __u64 hash)
{
	__u32 k;

	u64_map_for_each(k, &s->of, hash)
	{
		if (s->seen[k].space == v->space && s->seen[k].addr == v->addr &&
		    s->seen[k].page == v->page)
			break;
	}
	if (k == U64_MAP_NONE) {
		u64_map_add(&s->of, hash, s->n);
		s->seen[s->n++] = *v;
	} else if (v->first < s->seen[k].first) {
		s->seen[k].first = v->first;
	}
}

/* Pages and sights of them are found apart, each by a thread. */
struct search {
	const struct line_set *set;
	struct line_pages *pages;
	__u32 *page; /* of each access */
	struct sight sight;
};

/* At most LINES_AT_ONCE accesses: their lookups wait for memory together. */
static void use_some(struct line_pages *p, const struct line_access *a, size_t n, __u32 *page)
{
	for (size_t i = 0; i < n; i++)
		u64_map_prefetch(&p->of, page_of(&a[i]));
	for (size_t i = 0; i < n; i++) {
		const __u32 k = u64_map_get(&p->of, page_of(&a[i]));

		if (k != U64_MAP_NONE)
			__builtin_prefetch(&p->page[k]);
	}
	for (size_t i = 0; i < n; i++)
		page[i] = a[i].phys ? use(p, &a[i], page_of(&a[i])) : U64_MAP_NONE;
}

static void see_some(struct sight *s, const struct line_access *a, size_t n)
{
	__u64 hash[LINES_AT_ONCE];
	struct seen v;

	for (size_t i = 0; i < n; i++) {
		v = seen_of(&a[i]);
		hash[i] = hash_of(&v);
		u64_map_prefetch(&s->of, hash[i]);
	}
	for (size_t i = 0; i < n; i++) {
		const __u32 first = u64_map_get(&s->of, hash[i]);

		if (first != U64_MAP_NONE)
			__builtin_prefetch(&s->seen[first]);
	}
	for (size_t i = 0; i < n; i++) {
		v = seen_of(&a[i]);
		if (is_seen(&a[i]))
			see(s, &v, hash[i]);
	}
}

static void use_all(struct search *f)
{
	const struct line_set *s = f->set;

	for (size_t i = 0; i < s->n; i += LINES_AT_ONCE)
		use_some(f->pages, &s->access[i],
			 s->n - i < LINES_AT_ONCE ? s->n - i : LINES_AT_ONCE, &f->page[i]);
}

static void see_all(struct search *f)
{
	const struct line_set *s = f->set;

	f->sight.seen = xcalloc(s->n, sizeof(*f->sight.seen));
	for (size_t i = 0; i < s->n; i += LINES_AT_ONCE)
		see_some(&f->sight, &s->access[i],
			 s->n - i < LINES_AT_ONCE ? s->n - i : LINES_AT_ONCE);
	u64_map_free(&f->sight.of);
	qsort(f->sight.seen, f->sight.n, sizeof(*f->sight.seen), compare_seen);
}

static void do_searches(void *ctx, size_t from, size_t to)
{
	static void (*const searches[])(struct search * f) = { see_all, use_all };

	for (size_t i = from; i < to; i++)
		searches[i](ctx);
}

void line_pages_find(const struct line_set *s, struct line_pages *out, __u32 *page)
{
	struct search f = { .set = s, .pages = out, .page = page };
	size_t n_moves = 0, n;
	struct move *moves;
	struct seen *seen;

	*out = (struct line_pages){ 0 };
	parallel_for(2, 1, do_searches, &f);
	seen = f.sight.seen;
	n = f.sight.n;
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
