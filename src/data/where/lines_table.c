// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Accesses to lines, slots and verdicts. */
#include "lines_private.h"

#include "base/parallel.h"

#define FEW 16 /* accesses of most lines are no more */

/* Set apart from all threads and CPUs that are known. */
#define STAND_IN (1ull << 32)

/*
 * Is there something that shares with a new user, but with none of those before? Its thread is that of
 * one of them, or of none; then its CPU must be that of all the others.
 */
static bool is_needed(const struct line_users *u, __u64 thread, __u64 cpu)
{
	for (unsigned int x = 0; x <= u->n; x++) {
		bool any = false, same = true;
		__u64 c = 0;

		if (x < u->n && u->user[x].thread == thread)
			continue;
		for (unsigned int k = 0; k < u->n; k++) {
			if (x < u->n && u->user[k].thread == u->user[x].thread)
				continue;
			same &= !any || u->user[k].cpu == c;
			c = u->user[k].cpu;
			any = true;
		}
		if (!any || (same && c != cpu))
			return true;
	}
	return false;
}

static void line_users_add(struct line_users *u, const struct line_access *a)
{
	__u64 thread = a->has & LINE_HAS_TASK ? a->tid : STAND_IN | a->cpu;
	__u64 cpu = a->has & LINE_HAS_CPU ? a->cpu : STAND_IN | a->tid;

	if (!(a->has & (LINE_HAS_TASK | LINE_HAS_CPU)) || !is_needed(u, thread, cpu))
		return;
	/* more are never needed (Bollobas' theorem on pairs of sets) */
	if (u->n < LINE_USERS) {
		u->user[u->n].thread = thread;
		u->user[u->n++].cpu = cpu;
	}
}

bool line_users_share(const struct line_users *a, const struct line_users *b)
{
	for (unsigned int i = 0; i < a->n; i++)
		for (unsigned int k = 0; k < b->n; k++)
			if (a->user[i].thread != b->user[k].thread &&
			    a->user[i].cpu != b->user[k].cpu)
				return true;
	return false;
}

unsigned int line_access_slots(const struct line_access *a)
{
	unsigned int at = line_access_offset(a), end = at + (a->width ?: 1) - 1;

	if (!a->phys && !a->addr)
		return 0;
	end = end < LINE_BYTES ? end : LINE_BYTES - 1;
	return (2u << end / SLOT_BYTES) - (1u << at / SLOT_BYTES);
}

void line_slots(const struct line *l, struct line_slot *slots)
{
	memset(slots, 0, LINE_SLOTS * sizeof(*slots));
	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];
		unsigned int bits = a->kind & LINE_PREFETCH ? 0 : line_access_slots(a);

		for (unsigned int s = 0; s < LINE_SLOTS; s++) {
			struct line_slot *slot = &slots[s];

			if (!(bits >> s & 1))
				continue;
			slot->loads += a->kind & LINE_LOAD ? a->samples : 0;
			slot->stores += a->kind & LINE_STORE ? a->samples : 0;
			slot->hitm += line_from_hitm(a->from) ? a->samples : 0;
			line_users_add(&slot->all, a);
			if (a->kind & LINE_STORE)
				line_users_add(&slot->writers, a);
		}
	}
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		slots[s].shared = line_users_share(&slots[s].writers, &slots[s].all);
}

static bool between_slots(const struct line_slot *slots)
{
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		for (unsigned int t = 0; t < LINE_SLOTS; t++)
			if (s != t && !(slots[s].shared && slots[t].shared) &&
			    line_users_share(&slots[s].writers, &slots[t].all))
				return true;
	return false;
}

static bool has_hitm(const struct line *l)
{
	__u64 n = l->from[LINE_FROM_OWNED];

	for (unsigned int f = 0; f < LINE_FROM_N; f++)
		n += line_from_hitm(f) ? l->from[f] : 0;
	return n;
}

static enum line_verdict judge(struct line *l, bool stores)
{
	struct line_slot slots[LINE_SLOTS];
	struct line_users all = { 0 };
	bool overlap = false, apart;

	l->likely = false;
	for (size_t i = 0; i < l->n_access; i++)
		if (!(l->access[i].kind & LINE_PREFETCH))
			line_users_add(&all, &l->access[i]);
	if (!all.n || (!l->physical && !l->virtual))
		return LINE_VERDICT_UNKNOWN;
	if (!line_users_share(&all, &all))
		return LINE_VERDICT_PRIVATE;
	if (!l->stores)
		return stores ? LINE_VERDICT_READ_ONLY : LINE_VERDICT_UNKNOWN;
	if (!has_hitm(l) && !l->from[LINE_FROM_TRANSFERS])
		return LINE_VERDICT_SHARED;
	line_slots(l, slots);
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		overlap |= slots[s].shared;
	apart = between_slots(slots);
	if (!overlap && !apart)
		return LINE_VERDICT_SHARED;
	l->likely = !has_hitm(l);
	return !overlap ? LINE_VERDICT_FALSE : apart ? LINE_VERDICT_MIXED : LINE_VERDICT_TRUE;
}

static int compare_numbers(const void *pa, const void *pb)
{
	const __u32 *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static __u32 distinct(__u32 *v, size_t n)
{
	__u32 k = 0;

	if (n < 2)
		return n;
	qsort(v, n, sizeof(*v), compare_numbers);
	for (size_t i = 0; i < n; i++)
		k += !i || v[i] != v[i - 1];
	return k;
}

static void add_access(struct line *l, const struct line_access *a)
{
	l->samples += a->samples;
	l->loads += a->kind & LINE_LOAD ? a->samples : 0;
	l->stores += a->kind & LINE_STORE ? a->samples : 0;
	l->valid += a->valid;
	l->sum += a->sum;
	l->cycles += a->cycles;
	l->squares += a->squares;
	l->largest = a->largest > l->largest ? a->largest : l->largest;
	l->known += a->from != LINE_FROM_UNKNOWN ? a->cycles : 0;
	l->hitm_cycles += line_from_hitm(a->from) ? a->cycles : 0;
	l->from[a->from] += a->samples;
}

void line_judge(struct line *l, bool stores)
{
	__u32 few[2 * FEW], *many = NULL, *cpus = few, *threads = few + FEW;
	size_t n_cpus = 0, n_threads = 0;

	if (l->n_access > FEW) {
		cpus = many = xcalloc(2 * l->n_access, sizeof(*many));
		threads = many + l->n_access;
	}

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];

		add_access(l, a);
		if (a->has & LINE_HAS_CPU)
			cpus[n_cpus++] = a->cpu;
		if (a->has & LINE_HAS_TASK)
			threads[n_threads++] = a->tid;
	}
	l->cpus = distinct(cpus, n_cpus);
	l->threads = distinct(threads, n_threads);
	free(many);
	l->verdict = judge(l, stores);
}

/* What tells a line from others, and how many accesses it has. */
struct found {
	__u64 address, space;
	__u32 n_access;
	__u32 at; /* where the next access goes */
	bool physical, virtual, moved;
};

struct finding {
	struct line_set *s;
	struct line_pages pages;
	struct found *found;
	size_t n, room;
	struct u64_map of; /* by the hash of address, space and `physical` */
	__u32 *line; /* of each access: its page, later its line, then the place where it goes */
};

static struct found line_at(const struct finding *f, const struct line_access *a, __u32 page)
{
	struct found l = { .physical = a->phys, .virtual = !a->phys && a->addr, .n_access = 1 };

	if (l.physical) {
		const struct line_page *p = &f->pages.page[page];
		const __u64 shown = f->pages.page[p->root].page;

		l.address = shown | (a->phys & (LINE_PAGE_BYTES - LINE_BYTES));
		l.moved = shown != p->page;
	} else if (l.virtual) {
		l.address = a->addr & ~(__u64)(LINE_BYTES - 1);
		l.space = line_space(a);
	}
	return l;
}

/* The number of a line, which is made if need be. */
static __u32 line_of(struct finding *f, const struct found *l, __u64 hash)
{
	__u32 i;

	u64_map_for_each(i, &f->of, hash)
	{
		struct found *k = &f->found[i];

		if (k->address == l->address && k->space == l->space &&
		    k->physical == l->physical && k->virtual == l->virtual) {
			k->moved |= l->moved;
			k->n_access++;
			return i;
		}
	}
	array_reserve(f->found, f->room, f->n + 1);
	u64_map_add(&f->of, hash, f->n);
	f->found[f->n] = *l;
	return f->n++;
}

/* At most LINES_AT_ONCE accesses: their lookups wait for memory together. */
static void find_some(struct finding *f, const struct line_access *a, size_t n, __u32 *line)
{
	struct found l[LINES_AT_ONCE];
	__u64 hash[LINES_AT_ONCE];

	for (size_t i = 0; i < n; i++)
		if (a[i].phys)
			__builtin_prefetch(&f->pages.page[line[i]]);
	for (size_t i = 0; i < n; i++) {
		add_access(&f->s->out.total, &a[i]);
		l[i] = line_at(f, &a[i], line[i]);
		hash[i] = words_hash((const __u64[]){ l[i].address, l[i].space, l[i].physical }, 3);
		u64_map_prefetch(&f->of, hash[i]);
	}
	for (size_t i = 0; i < n; i++) {
		const __u32 first = u64_map_get(&f->of, hash[i]);

		if (first != U64_MAP_NONE)
			__builtin_prefetch(&f->found[first]);
	}
	for (size_t i = 0; i < n; i++)
		line[i] = line_of(f, &l[i], hash[i]);
}

/* Set where the accesses of each line begin, which will be neighbours. */
static void place_lines(struct finding *f)
{
	size_t at = 0;

	for (size_t i = 0; i < f->n; i++) {
		f->found[i].at = at;
		at += f->found[i].n_access;
	}
}

/* Replace the line of each access by the place where it goes, so that those of a line keep their order. */
static void find_places(struct finding *f)
{
	for (size_t i = 0; i < f->s->n; i++) {
		if (i + LINES_AT_ONCE < f->s->n)
			__builtin_prefetch(&f->found[f->line[i + LINES_AT_ONCE]], 1);
		f->line[i] = f->found[f->line[i]].at++;
	}
}

static void swap_accesses(struct finding *f, size_t i, size_t k)
{
	const struct line_access a = f->s->access[i];
	const __u32 to = f->line[i];

	f->s->access[i] = f->s->access[k];
	f->s->access[k] = a;
	f->line[i] = f->line[k];
	f->line[k] = to;
}

/* Accesses that are moved within a part of the array: together they fit into the caches. */
#define PART_BITS 15
#define PART_SIZE ((size_t)1 << PART_BITS)

/* Move each access into the part of the array where it goes. */
static void move_to_parts(struct finding *f)
{
	const size_t n = f->s->n, parts = (n + PART_SIZE - 1) >> PART_BITS;
	size_t *next = xcalloc(parts, sizeof(*next));

	for (size_t p = 0; p < parts; p++)
		next[p] = p << PART_BITS;
	for (size_t p = 0; p < parts; p++) {
		const size_t end = (p + 1) << PART_BITS < n ? (p + 1) << PART_BITS : n;

		while (next[p] < end) {
			const size_t to = f->line[next[p]] >> PART_BITS;

			if (to != p)
				swap_accesses(f, next[p], next[to]);
			next[to]++;
		}
	}
	free(next);
}

/* Move the accesses of parts from [from, to) to their places. */
static void move_in_parts(void *ctx, size_t from, size_t to)
{
	struct finding *f = ctx;

	for (size_t i = from; i < to; i++)
		while (f->line[i] != i)
			swap_accesses(f, i, f->line[i]);
}

/* From what was found to lines. */
static void make_lines(void *ctx, size_t from, size_t to)
{
	const struct finding *f = ctx;
	const struct lines *out = &f->s->out;

	for (size_t i = from; i < to; i++) {
		const struct found *l = &f->found[i];

		out->line[i] = (struct line){ .address = l->address,
					      .physical = l->physical,
					      .virtual = l->virtual,
					      .space = l->space,
					      .moved = l->moved,
					      .access = f->s->access + (l->at - l->n_access),
					      .n_access = l->n_access };
		line_judge(&out->line[i], out->total.stores);
	}
}

#define JUDGED_AT_ONCE 4096

const struct lines *lines_finish(struct line_set *s)
{
	struct finding f = { .s = s };

	lines_flush(s);
	f.line = xcalloc(s->n, sizeof(*f.line));
	u64_map_free(&s->of);
	s->of = (struct u64_map){ 0 };
	line_pages_find(s, &f.pages, f.line);
	s->out.moved = f.pages.moved;
	for (size_t i = 0; i < s->n; i += LINES_AT_ONCE)
		find_some(&f, &s->access[i], s->n - i < LINES_AT_ONCE ? s->n - i : LINES_AT_ONCE,
			  &f.line[i]);
	u64_map_free(&f.of);
	line_pages_free(&f.pages);
	place_lines(&f);
	find_places(&f);
	move_to_parts(&f);
	parallel_for(s->n, PART_SIZE, move_in_parts, &f);
	free(f.line);
	s->out.end = s->access ? s->access + s->n : NULL;
	s->out.n = f.n;
	s->out.line = xcalloc(f.n, sizeof(*s->out.line));
	array_huge_pages(s->out.line, f.n * sizeof(*s->out.line));
	parallel_for(f.n, JUDGED_AT_ONCE, make_lines, &f);
	free(f.found);
	return &s->out;
}
