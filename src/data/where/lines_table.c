// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Accesses to lines, slots and verdicts. */
#include "lines_private.h"

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

/* The line of an access, found by address and space, made if need be. */
static __u32 line_of(struct lines *out, size_t *room, struct u64_map *of,
		     const struct line_pages *pages, const struct line_access *a)
{
	struct line l = { .physical = a->phys, .virtual = !a->phys && a->addr };
	__u64 hash;
	__u32 i;

	if (l.physical) {
		__u64 page = a->phys & ~(LINE_PAGE_BYTES - 1);
		const struct line_page *p = line_page(pages, page);

		l.address = pages->page[p->root].page | (a->phys & (LINE_PAGE_BYTES - LINE_BYTES));
		l.moved = pages->page[p->root].page != page;
	} else if (l.virtual) {
		l.address = a->addr & ~(__u64)(LINE_BYTES - 1);
		l.space = line_space(a);
	}
	hash = words_hash((const __u64[]){ l.address, l.space, l.physical }, 3);
	u64_map_for_each(i, of, hash)
	{
		struct line *k = &out->line[i];

		if (k->address == l.address && k->space == l.space && k->physical == l.physical &&
		    k->virtual == l.virtual) {
			k->moved |= l.moved;
			k->n_access++;
			return i;
		}
	}
	array_reserve(out->line, *room, out->n + 1);
	u64_map_add(of, hash, out->n);
	l.n_access = 1;
	out->line[out->n] = l;
	return out->n++;
}

/* Accesses of a line become neighbours. */
static void group(struct line_set *s, const __u32 *line)
{
	struct line_access *sorted = xcalloc(s->n, sizeof(*sorted));
	size_t at = 0;

	for (size_t i = 0; i < s->out.n; i++) {
		s->out.line[i].access = sorted + at;
		at += s->out.line[i].n_access;
		s->out.line[i].n_access = 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct line *l = &s->out.line[line[i]];

		sorted[l->access - sorted + l->n_access++] = s->access[i];
	}
	free(s->access);
	s->access = sorted;
}

const struct lines *lines_finish(struct line_set *s)
{
	__u32 *line = xcalloc(s->n, sizeof(*line));
	struct line *total = &s->out.total;
	struct u64_map of = { 0 };
	struct line_pages pages;
	size_t room = 0;

	u64_map_free(&s->of);
	s->of = (struct u64_map){ 0 };
	line_pages_find(s, &pages);
	for (size_t i = 0; i < s->n; i++) {
		line[i] = line_of(&s->out, &room, &of, &pages, &s->access[i]);
		add_access(total, &s->access[i]);
	}
	u64_map_free(&of);
	s->out.moved = pages.moved;
	line_pages_free(&pages);
	group(s, line);
	free(line);
	for (size_t i = 0; i < s->out.n; i++)
		line_judge(&s->out.line[i], total->stores);
	return &s->out;
}
