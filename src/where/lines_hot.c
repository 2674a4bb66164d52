// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the tables of hot lines that each CPU keeps to the same accesses as of a recording. */
#include "lines_private.h"

/* No thread has it: of threads that are known by 5 bits alone. */
#define TID_OF_BIT(bit) (0xffffffe0u | (bit))

/* The details that one CPU has of a line. */
struct kept {
	const struct ibs_line_detail *d;
	const struct hot_table *of;
};

static int compare_kept(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->d->line != b->d->line)
		return a->d->line < b->d->line ? -1 : 1;
	return a->of->cpu < b->of->cpu ? -1 : a->of->cpu > b->of->cpu;
}

/* Accesses of a line on one CPU while they are made. */
struct making {
	struct line_set *s;
	const struct kept *k;
	__u64 period;		 /* by which latencies are multiplied */
	__u32 from[LINE_FROM_N]; /* samples that no access has yet */
	/* what the first access takes that answers to it */
	__u64 sum, valid, unknown, known, hitm_cycles;
	const __u32 *tids; /* by bit, 0: not known */
};

static const struct ibs_line_user *user_of(const struct kept *k, __u8 kind)
{
	return kind & LINE_STORE ? &k->d->writer : &k->d->reader;
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
		.phys = m->k->d->line << IBS_LINE_SHIFT | slot * SLOT_BYTES,
		.addr = u->addr ? (u->addr & ~(__u64)(LINE_BYTES - 1)) | slot * SLOT_BYTES : 0,
		.ip = u->ip,
		.cgroup_id = u->cgroup_id,
		.tgid = u->tgid,
		.tid = tid,
		.cpu = m->k->of->cpu,
		.kind = kind,
		.from = from,
		.has = LINE_HAS_TASK | LINE_HAS_CPU | LINE_HAS_IP | (u->ip >> 63 ? LINE_KERNEL : 0),
	};
	struct line_access *sum = line_access_of(m->s, &a);
	__u64 *cycles = from == LINE_FROM_UNKNOWN ? &m->unknown
			: line_from_hitm(from)	  ? &m->hitm_cycles
						  : &m->known;

	sum->first = sum->last = m->s->opts.info->monotonic_ns;
	sum->samples += samples;
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
	const struct ibs_line_detail *d = m->k->d;
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

/* The most samples of a line that its details lack. */
static __u64 lacking(const struct hot_tables *t, const struct kept *kept, size_t n)
{
	const __u64 line = kept->d->line;
	const __u32 set = ibs_line_set(line, t->sets);
	__u64 out = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct ibs_line_count *c = &t->table[i].lines->count[set * IBS_LINE_WAYS];
		__u64 most = ~0ull;

		if (n && kept->of == &t->table[i]) {
			out += kept->d->before;
			kept++, n--;
			continue;
		}
		for (int w = 0; w < IBS_LINE_WAYS; w++)
			if (c[w].count < most)
				most = c[w].count;
		for (int w = 0; w < IBS_LINE_WAYS; w++)
			if (!((c[w].line ^ line) << (64 - IBS_LINE_BITS)))
				most = c[w].count;
		out += most;
	}
	return out;
}

/* The threads that the details of a line name. */
static void name_threads(const struct kept *kept, size_t n, __u32 *tids)
{
	memset(tids, 0, 32 * sizeof(*tids));
	for (size_t i = 0; i < n; i++) {
		tids[kept[i].d->reader.tid & 31] = kept[i].d->reader.tid;
		tids[kept[i].d->writer.tid & 31] = kept[i].d->writer.tid;
	}
}

void lines_add_hot(struct line_set *s, const struct hot_tables *t)
{
	struct kept *kept = xcalloc(t->n * IBS_LINE_DETAILS, sizeof(*kept));
	struct lines_hot *hot = &s->out.hot;
	struct making m = { .s = s, .period = t->period ?: 1 };
	size_t n = 0, same;
	__u32 tids[32];

	m.tids = tids;
	hot->tables += t->n;
	s->out.has_period &= t->weighed || t->period;
	for (size_t i = 0; i < t->n; i++) {
		const struct ibs_lines *l = t->table[i].lines;

		hot->fed += l->fed;
		hot->replaced += l->replaced;
		s->out.no_address += l->no_address;
		for (int k = 0; k < IBS_LINE_DETAILS; k++)
			if (l->detail[k].line)
				kept[n++] = (struct kept){ &l->detail[k], &t->table[i] };
	}
	qsort(kept, n, sizeof(*kept), compare_kept);
	for (size_t i = 0; i < n; i += same) {
		__u64 lack;

		for (same = 1; i + same < n && kept[i + same].d->line == kept[i].d->line;)
			same++;
		name_threads(&kept[i], same, tids);
		for (size_t k = i; k < i + same; k++) {
			m.k = &kept[k];
			make_all(&m);
			for (unsigned int slot = 0; slot < LINE_SLOTS; slot++)
				hot->kept += (__u64)m.k->d->loads[slot] + m.k->d->stores[slot] +
					     m.k->d->both[slot];
		}
		lack = lacking(t, &kept[i], same);
		hot->lack = lack > hot->lack ? lack : hot->lack;
	}
	s->out.physical += hot->kept;
	free(kept);
}
