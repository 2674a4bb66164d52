// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the tables of hot lines that each CPU keeps to the same accesses as of a recording. */
#include "lines_private.h"

#include <math.h>

/* No thread has it: of threads that are known by 5 bits alone. */
#define TID_OF_BIT(bit) (0xffffffe0u | (bit))

/* Accesses of a line on one CPU while they are made. */
struct making {
	struct line_set *s;
	const struct hot_detail *k;
	__u64 period; /* by which latencies are multiplied */
	__u64 time;
	__u32 from[LINE_FROM_N]; /* samples that no access has yet */
	/* what the first access takes that answers to it */
	__u64 sum, valid, unknown, known, hitm_cycles;
	const __u32 *tids; /* by bit, 0: not known */
};

static const struct ibs_line_user *user_of(const struct hot_detail *k, __u8 kind)
{
	return kind & LINE_STORE ? &k->d.writer : &k->d.reader;
}

static __u64 take(__u64 *from)
{
	__u64 n = *from;

	*from = 0;
	return n;
}

static void make(struct making *m, unsigned int slot, __u8 kind, __u32 from, __u32 tid,
		 __u64 samples)
{
	const struct ibs_line_user *u = user_of(m->k, kind);
	struct line_access a = {
		.phys = m->k->d.line << IBS_LINE_SHIFT | slot * SLOT_BYTES,
		.addr = u->addr ? (u->addr & ~(__u64)(LINE_BYTES - 1)) | slot * SLOT_BYTES : 0,
		.ip = u->ip,
		.cgroup_id = u->cgroup_id,
		.tgid = u->tgid,
		.tid = tid,
		.cpu = m->k->cpu,
		.kind = kind,
		.from = from,
		.has = LINE_HAS_TASK | LINE_HAS_CPU | LINE_HAS_IP | (u->ip >> 63 ? LINE_KERNEL : 0),
	};
	struct line_access *sum = line_access_of(m->s, &a);
	__u64 *cycles = from == LINE_FROM_UNKNOWN ? &m->unknown
			: line_from_hitm(from)	  ? &m->hitm_cycles
						  : &m->known;

	sum->first = sum->first && sum->first < m->time ? sum->first : m->time;
	sum->last = m->time;
	sum->samples += samples;
	sum->squares = NAN;
	if (!samples || !(kind & LINE_LOAD))
		return;
	sum->sum += take(&m->sum);
	sum->valid += take(&m->valid);
	sum->cycles += take(cycles) * m->period;
}

/* The thread that the details know by name if it is among @bits, else one of these. */
static __u32 first_tid(const struct making *m, __u32 bits, __u32 known)
{
	const unsigned int bit = bits >> (known & 31) & 1 ? known & 31 : (__u32)__builtin_ctz(bits);

	return m->tids[bit] ?: TID_OF_BIT(bit);
}

/*
 * Samples of one kind in a slot. How many each source has is known of the line, and of modified lines of the
 * slot: between slots the other sources are shared out as they come.
 */
static void make_kind(struct making *m, unsigned int slot, __u8 kind, __u32 n, __u32 *hitm,
		      __u32 bits)
{
	const __u32 modified = !(kind & LINE_LOAD) ? 0 : *hitm < n ? *hitm : n;
	__u32 rest[2] = { n - modified, modified }, tid;

	if (!n || !bits)
		return;
	*hitm -= modified;
	tid = first_tid(m, bits, user_of(m->k, kind)->tid);
	for (__u32 f = kind & LINE_LOAD ? 0 : LINE_FROM_OTHER; f < LINE_FROM_N; f++) {
		__u32 *want = &rest[line_from_hitm(f)];
		const __u32 some = m->from[f] < *want ? m->from[f] : *want;

		if (some)
			make(m, slot, kind, f, tid, some);
		m->from[f] -= some;
		*want -= some;
	}
	for (unsigned int bit = 0; bit < 32; bit++)
		if (bits >> bit & 1 && (m->tids[bit] ?: TID_OF_BIT(bit)) != tid)
			make(m, slot, kind, LINE_FROM_OTHER, m->tids[bit] ?: TID_OF_BIT(bit), 0);
}

static void make_all(struct making *m)
{
	const struct ibs_line_detail *d = &m->k->d;
	__u32 none = 0;

	memcpy(m->from, d->from, sizeof(m->from));
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		m->from[LINE_FROM_OTHER] += d->stores[s];
	m->sum = d->sum;
	m->valid = d->valid;
	m->unknown = d->cycles - d->known;
	m->known = d->known - d->hitm_cycles;
	m->hitm_cycles = d->hitm_cycles;
	/* stores first: they have one source, and so must not find it taken */
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		make_kind(m, s, LINE_STORE, d->stores[s], &none, d->writers[s]);
	for (unsigned int s = 0; s < LINE_SLOTS; s++) {
		__u32 hitm = d->hitm[s];

		make_kind(m, s, LINE_LOAD, d->loads[s], &hitm, d->readers[s]);
		make_kind(m, s, LINE_LOAD | LINE_STORE, d->both[s], &hitm, d->writers[s]);
	}
}

/* The details of the CPUs of one line, while a window is made. */
struct line_group {
	const struct hot_detail *first;
	size_t n;
	__u64 samples, lack; /* in the details; and at most, that these lack */
};

static __u64 samples_of(const struct ibs_line_detail *d)
{
	__u64 sum = 0;

	for (unsigned int slot = 0; slot < LINE_SLOTS; slot++)
		sum += (__u64)d->loads[slot] + d->stores[slot] + d->both[slot];
	return sum;
}

static __u64 lacking(const struct hot_tables *t, const struct line_group *g)
{
	const __u64 line = g->first->d.line;
	const __u64 set = ibs_line_set(line << IBS_LINE_HAND, t->sets);
	const struct hot_detail *own = g->first;
	__u64 out = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct ibs_line_count *c = &t->table[i].lines->count[set];
		__u64 most = ~0ull;

		if (own < g->first + g->n && own->cpu == t->table[i].cpu) {
			out += own++->d.before;
			continue;
		}
		for (int w = 0; w < IBS_LINE_WAYS; w++)
			if (c[w].count < most)
				most = c[w].count;
		for (int w = 0; w < IBS_LINE_WAYS; w++)
			if (ibs_line_of(&c[w]) == line)
				most = c[w].count;
		out += most;
	}
	return out;
}

/* The most samples that a line without details in this table has had on its CPU. */
static __u64 without_details(const struct ibs_lines *l, __u32 sets)
{
	__u64 out = 0;

	for (size_t i = 0; i < (size_t)sets * IBS_LINE_WAYS; i++) {
		const struct ibs_line_count *c = &l->count[i], *set = c - i % IBS_LINE_WAYS;
		const __u64 hand = c->key & (IBS_BIT(IBS_LINE_HAND) - 1);
		bool least = true; /* a line without a place has had as many */

		for (int w = 0; w < IBS_LINE_WAYS; w++)
			least &= set[w].count >= c->count;
		if (c->count > out &&
		    (least || !hand || l->detail[hand - 1].line != ibs_line_of(c)))
			out = c->count;
	}
	return out;
}

static int compare_details(const void *pa, const void *pb)
{
	const struct hot_detail *a = pa, *b = pb;

	if (a->d.line != b->d.line)
		return a->d.line < b->d.line ? -1 : 1;
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

static int compare_groups(const void *pa, const void *pb)
{
	const struct line_group *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return a->first->d.line < b->first->d.line ? -1 : 1; /* none is there twice */
}

/* @all: the details of all CPUs, by line. Return: how many lines, in *out, most samples first. */
static size_t group_lines(const struct hot_tables *t, const struct hot_detail *all, size_t n,
			  struct line_group **out)
{
	struct line_group *groups = xcalloc(n + 1, sizeof(*groups)), *g = groups;

	for (size_t i = 0; i < n; i += g++->n) {
		g->first = &all[i];
		while (i + g->n < n && all[i + g->n].d.line == all[i].d.line)
			g->samples += samples_of(&all[i + g->n++].d);
		g->lack = lacking(t, g);
	}
	qsort(groups, g - groups, sizeof(*groups), compare_groups);
	*out = groups;
	return g - groups;
}

struct hot_window *hot_window_new(const struct hot_tables *t, size_t most)
{
	struct hot_detail *all = xcalloc(t->n * IBS_LINE_DETAILS, sizeof(*all));
	struct hot_window *w = xcalloc(1, sizeof(*w) + t->n * IBS_LINE_DETAILS * sizeof(*all));
	struct line_group *groups;
	size_t n = 0, n_groups;
	__u64 left_out = 0;

	w->tables = t->n;
	w->period = t->period;
	w->weighed = t->weighed;
	w->feed = t->feed;
	w->time = t->time;
	w->ibs = t->ibs;
	for (size_t i = 0; i < t->n; i++) {
		const struct ibs_lines *l = t->table[i].lines;

		w->fed += l->fed;
		w->cpus += l->fed != 0;
		w->replaced += l->replaced;
		w->no_address += l->no_address;
		w->hidden += without_details(l, t->sets);
		for (int k = 0; k < IBS_LINE_DETAILS; k++)
			if (l->detail[k].line)
				all[n++] = (struct hot_detail){ .d = l->detail[k],
								.cpu = t->table[i].cpu };
	}
	qsort(all, n, sizeof(*all), compare_details);
	n_groups = group_lines(t, all, n, &groups);
	for (struct line_group *g = groups; g < groups + n_groups; g++) {
		if (g->n > most - w->n) { /* fewer samples from here on: the first has most */
			left_out =
				g->samples + g->lack > left_out ? g->samples + g->lack : left_out;
			continue;
		}
		memcpy(&w->detail[w->n], g->first, g->n * sizeof(*all));
		w->n += g->n;
		w->lines++;
		w->lack = g->lack > w->lack ? g->lack : w->lack;
	}
	w->hidden = left_out > w->hidden ? left_out : w->hidden;
	free(groups);
	free(all);
	return xrealloc(w, sizeof(*w) + w->n * sizeof(*all));
}

/* The threads that the details of a line name. */
static void name_threads(const struct hot_detail *d, size_t n, __u32 *tids)
{
	memset(tids, 0, 32 * sizeof(*tids));
	for (size_t i = 0; i < n; i++) {
		tids[d[i].d.reader.tid & 31] = d[i].d.reader.tid;
		tids[d[i].d.writer.tid & 31] = d[i].d.writer.tid;
	}
}

void lines_add_window(struct line_set *s, const struct hot_window *w)
{
	struct lines_hot *hot = &s->out.hot;
	struct making m = { .s = s, .period = w->period ?: 1, .time = w->time };
	size_t same;
	__u32 tids[32];

	m.tids = tids;
	s->out.has_period &= w->weighed || w->period;
	s->out.no_address += w->no_address;
	s->out.cpu = w->ibs;
	hot->tables += w->tables;
	hot->fed += w->fed;
	hot->cpus = w->cpus > hot->cpus ? w->cpus : hot->cpus;
	hot->feed |= w->feed;
	hot->replaced += w->replaced;
	/* a line of one window need not have details in another one */
	hot->any += w->hidden > w->lack ? w->hidden : w->lack;
	hot->lack = hot->windows++ ? hot->any : w->lack;
	for (size_t i = 0; i < w->n; i += same) {
		for (same = 1;
		     i + same < w->n && w->detail[i + same].d.line == w->detail[i].d.line;)
			same++;
		name_threads(&w->detail[i], same, tids);
		for (m.k = &w->detail[i]; m.k < &w->detail[i + same]; m.k++) {
			const __u64 samples = samples_of(&m.k->d);

			make_all(&m);
			hot->kept += samples;
			s->out.physical += samples;
		}
	}
}
