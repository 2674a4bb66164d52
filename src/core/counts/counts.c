// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counts.h"
#include "base/clock.h"
#include "base/std.h"

#include <sched.h>

/* Timeout of a reader that waits for a sample in progress. */
#define BALANCE_S 5

/* Read a CPU's counts at a moment without a sample in progress. */
static int read_cpu(const struct counts *c, const struct ibs_cpu_state *st, struct ledger *l)
{
	const double give_up = now_s() + BALANCE_S;

	for (int tries = 1;; tries++) {
		__u64 outcome[IBS_OUTCOME_N] = {}, sum = 0;
		__u64 seen = __atomic_load_n(&st->seen, __ATOMIC_ACQUIRE);

		for (__u32 o = 0; o < c->outcomes; o++) {
			outcome[o] = __atomic_load_n(
				o == IBS_OUTCOME_FORWARDED ? &st->ring.forwarded : &st->outcome[o],
				__ATOMIC_ACQUIRE);
			sum += outcome[o];
		}
		if (sum == seen && seen == __atomic_load_n(&st->seen, __ATOMIC_ACQUIRE)) {
			l->seen += seen;
			for (int o = 0; o < IBS_OUTCOME_N; o++)
				l->outcome[o] += outcome[o];
			return 0;
		}
		if (c->refresh && c->refresh(c->arg))
			return -EUCLEAN;
		/* a virtual CPU can be descheduled in the middle of its NMI */
		if (tries % 1000)
			__builtin_ia32_pause();
		else if (now_s() > give_up)
			return -EUCLEAN;
		else
			sched_yield();
	}
}

int counts_ledger(const struct counts *c, struct ledger *l, struct err *err)
{
	if (c->refresh && c->refresh(c->arg))
		return err_set(err, -EIO, "the counters are no longer readable");
	memset(l, 0, sizeof(*l));
	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++)
		if (read_cpu(c, &c->state->cpu[cpu], l))
			return err_set(
				err, -EUCLEAN,
				"cpu %u: samples seen and outcomes do not balance; this is a "
				"bug of ibscope, please report it",
				cpu);
	return 0;
}

static const __u64 *slot_words(const struct counts *c, __u32 shard, __u32 slot)
{
	if (!c->series)
		return c->read_slot(c->arg, shard, slot);
	return c->series + ((size_t)shard * c->max_slots + slot) * c->layout->words;
}

/* Add one shard's counts of a pair. */
static void add_series(const struct layout *layout, unsigned int pair, const volatile __u64 *words,
		       struct series *out)
{
	__u16 entry = layout->entry[pair];
	const volatile __u64 *w = words + (entry & IBS_LAYOUT_WORD);
	__u64 valid = 0, sum;
	int buckets;

	/* slots are far apart: prefetch the next one while adding this one */
	__builtin_prefetch((const void *)(w + layout->words));

	out->ops += w[IBS_PAIR_OPS];
	if (!(entry & IBS_LAYOUT_HIST)) {
		out->samples += w[IBS_PAIR_SAMPLES];
		return;
	}
	sum = w[IBS_HIST_SUM];
	out->sum += sum;
	out->cycles += w[IBS_HIST_CYCLES];
	out->open_n += w[IBS_HIST_MISS + IBS_MISS_OPEN_N];
	out->open += w[IBS_HIST_MISS + IBS_MISS_OPEN];
	out->state_n += w[IBS_HIST_MISS + IBS_MISS_STATE_N];
	out->hitm += w[IBS_HIST_MISS + IBS_MISS_HITM];
	/*
	 * Most histograms are empty, and large machines have gigabytes of them: while the sum is 0,
	 * there are only latencies of 0 cycles. Programs add to the sum last, so that a sample
	 * missed here is not in the ledger, either.
	 */
	buckets = sum ? IBS_LAT_BUCKETS : 1;
	for (int i = 0; i < buckets; i++) {
		__u64 n = w[IBS_HIST_BUCKET + i];

		if (!n)
			continue;
		if (!out->buckets)
			out->buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*out->buckets));
		out->buckets[i] += n;
		valid += n;
	}
	out->valid += valid;
	out->samples += w[IBS_HIST_NO_LAT] + valid;
}

static void add_exposed(const struct counts *c, unsigned int pair, const volatile __u64 *words,
			struct series *out)
{
	const __u16 entry = c->layout->entry[pair];
	__u32 word;

	if (!(entry & IBS_LAYOUT_HIST))
		return;
	word = ibs_exposed_word(c->layout->words, entry & IBS_LAYOUT_WORD);
	out->exposed += word ? words[word] : 0;
}

static void add_tlb(const struct counts *c, const volatile __u64 *slot, struct tlb_counts *out)
{
	out->l2_hit += slot[IBS_TLB_L2_HIT];
	out->l2_miss += slot[IBS_TLB_L2_MISS];
	out->refills += slot[IBS_TLB_REFILL_N];
	out->refill_cycles += slot[IBS_TLB_REFILL_SUM];
	if (c->has_ops) {
		out->l2_hit_ops += slot[IBS_TLB_L2_HIT_OPS];
		out->l2_miss_ops += slot[IBS_TLB_L2_MISS_OPS];
	} else {
		out->l2_hit_ops = c->period * out->l2_hit;
		out->l2_miss_ops = c->period * out->l2_miss;
	}
}

static void add_cost(const struct counts *c, unsigned int pair, const volatile __u64 *words,
		     struct shard_cost *out)
{
	__u16 entry = c->layout->entry[pair];
	const volatile __u64 *w = words + (entry & IBS_LAYOUT_WORD);

	if (entry & IBS_LAYOUT_HIST)
		out->cycles[pair >> 3] +=
			c->has_ops ? w[IBS_HIST_CYCLES] : c->period * w[IBS_HIST_SUM];
}

/* Pairs that have words in a slot. */
struct pairs {
	unsigned int n;
	__u8 pair[IBS_LAYOUT_ENTRIES];
};
_Static_assert(IBS_LAYOUT_ENTRIES <= 256, "a pair is a byte");

static void find_pairs(const struct layout *layout, struct pairs *p)
{
	p->n = 0;
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++)
		if (layout_has(layout, pair))
			p->pair[p->n++] = pair;
}

/* @all: room for the series, indexed by pair, zeroed */
static int read_group(const struct counts *c, const struct pairs *p, __u32 slot, struct series *all,
		      struct group *g)
{
	__u64 unexposed = 0;
	size_t n = 0;

	for (__u32 shard = 0; shard < c->shards; shard++) {
		const __u64 *words = slot_words(c, shard, slot);

		if (!words)
			return -EIO;
		g->has_tlb = c->tlb;
		g->has_exposed = c->state->control.exposed == IBS_EXPOSED_ON;
		g->weighted = c->state->control.strata.used;
		if (c->tlb)
			add_tlb(c, words, &g->tlb);
		for (unsigned int i = 0; i < p->n; i++) {
			add_series(c->layout, p->pair[i], words, &all[p->pair[i]]);
			if (g->has_exposed)
				add_exposed(c, p->pair[i], words, &all[p->pair[i]]);
			if (c->cost)
				add_cost(c, p->pair[i], words, &c->cost[shard]);
		}
		/* last: programs count a sample's latency first */
		unexposed += words[IBS_EXPOSED_UNKNOWN];
	}
	for (unsigned int i = 0; i < p->n; i++)
		n += all[p->pair[i]].samples > 0;
	g->series = xcalloc(n, sizeof(*g->series));
	for (unsigned int i = 0; i < p->n; i++) {
		unsigned int pair = p->pair[i];

		if (!all[pair].samples) {
			all[pair].exposed = 0; /* a sample came meanwhile */
			continue;
		}
		if (!c->has_ops) {
			all[pair].ops = c->period * all[pair].samples;
			all[pair].cycles = c->period * all[pair].sum;
			all[pair].hitm *= c->period ?: 1;
			all[pair].exposed *= c->period ?: 1;
		}
		if (g->has_exposed && c->layout->entry[pair] & IBS_LAYOUT_HIST)
			all[pair].exposed_n = all[pair].valid - unexposed;
		all[pair].op = pair & 7;
		all[pair].src = pair >> 3;
		g->series[g->n_series++] = all[pair];
		memset(&all[pair], 0, sizeof(all[pair]));
	}
	return 0;
}

static int each_group(const struct counts *c, counts_cb *cb, void *arg)
{
	struct series all[IBS_LAYOUT_ENTRIES] = {};
	struct pairs pairs;
	int ret = 0;

	find_pairs(c->layout, &pairs);
	for (__u32 slot = 0; slot < c->max_slots && !ret; slot++) {
		__u64 used = __atomic_load_n(&c->owners[slot].used, __ATOMIC_ACQUIRE);
		const bool ended = used == IBS_SLOT_ENDED;
		struct group g = { .slot = slot,
				   .other = ended || slot == IBS_SLOT_OTHER,
				   .ended = ended };

		if (!used && slot != IBS_SLOT_OTHER && !(!c->by && slot == 1))
			continue;
		g.key = c->owners[slot].key;
		ret = read_group(c, &pairs, slot, all, &g);
		if (!ret && (!g.other || g.n_series))
			ret = cb(arg, &g);
		group_free(&g);
	}
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++)
		free(all[pair].buckets);
	return ret;
}

static void add_activity(const struct counts *c, unsigned int pair, const volatile __u64 *words,
			 struct counts_activity *out)
{
	const __u16 entry = c->layout->entry[pair];
	const volatile __u64 *w = words + (entry & IBS_LAYOUT_WORD);
	const bool hist = entry & IBS_LAYOUT_HIST;
	const __u64 sum = hist ? w[IBS_HIST_SUM] : 0;
	const int buckets = sum ? IBS_LAT_BUCKETS : hist; /* as for add_series() */
	__u64 valid = 0;

	for (int i = 0; i < buckets; i++)
		valid += w[IBS_HIST_BUCKET + i];
	out->valid += valid;
	out->sum += sum;
	if (c->has_ops)
		out->ops += w[IBS_PAIR_OPS];
	else
		out->ops += c->period * (hist ? w[IBS_HIST_NO_LAT] + valid : w[IBS_PAIR_SAMPLES]);
}

static int read_activity(const struct counts *c, const struct pairs *p, __u32 slot,
			 struct counts_activity *out)
{
	*out = (struct counts_activity){ 0 };
	for (__u32 shard = 0; shard < c->shards; shard++) {
		const __u64 *words = slot_words(c, shard, slot);

		if (!words)
			return -EIO;
		for (unsigned int i = 0; i < p->n; i++)
			add_activity(c, p->pair[i], words, out);
	}
	return 0;
}

int counts_each_activity(const struct counts *c, __u32 sources, counts_activity_cb *cb, void *arg)
{
	struct pairs all, wanted = { 0 };
	int ret = 0;

	find_pairs(c->layout, &all);
	for (unsigned int i = 0; i < all.n; i++)
		if (sources >> (all.pair[i] >> 3) & 1)
			wanted.pair[wanted.n++] = all.pair[i];
	for (__u32 slot = 0; slot < c->max_slots && !ret; slot++) {
		const __u64 used = __atomic_load_n(&c->owners[slot].used, __ATOMIC_ACQUIRE);
		struct counts_activity a;

		if (slot == IBS_SLOT_OTHER || !used || used == IBS_SLOT_ENDED)
			continue;
		ret = read_activity(c, &wanted, slot, &a)
			      ?: cb(arg, slot, &c->owners[slot].key, &a);
	}
	return ret;
}

/* Wait for a fold to end: microseconds per group; after a crash the next collector completes it. */
static int wait_unfolded(const struct counts *c, __u32 *fold, struct err *err)
{
	const double give_up = now_s() + BALANCE_S;

	while ((*fold = __atomic_load_n(&c->state->control.fold, __ATOMIC_ACQUIRE)) & 1) {
		if (now_s() > give_up || (c->refresh && c->refresh(c->arg)))
			return err_set(err, -EUCLEAN,
				       "the collector died while folding groups; "
				       "its next start repairs that");
		sched_yield();
	}
	return 0;
}

/* Passes groups to the caller, and sums up their series. */
struct sum {
	counts_cb *cb;
	void *arg;
	__u64 aggregated;
};

static int add_group(void *arg, struct group *g)
{
	struct sum *s = arg;

	for (size_t i = 0; i < g->n_series; i++)
		s->aggregated += g->series[i].samples;
	return s->cb(s->arg, g);
}

int counts_each(const struct counts *c, counts_cb *cb, void *arg, struct ledger *out,
		struct err *err)
{
	struct sum sum = { .cb = cb, .arg = arg };
	struct ledger before, after;
	__u32 fold;
	int ret = counts_ledger(c, &before, err) ?: wait_unfolded(c, &fold, err);

	if (ret)
		return ret;
	ret = each_group(c, add_group, &sum);
	if (ret == -EIO)
		return err_set(err, ret, "the counters are no longer readable");
	ret = ret ?: counts_ledger(c, &after, err);
	if (ret)
		return ret;
	if (fold != __atomic_load_n(&c->state->control.fold, __ATOMIC_ACQUIRE))
		return err_set(err, -EUCLEAN, "groups were folded during the read");
	if (sum.aggregated < before.outcome[IBS_OUTCOME_AGGREGATED] ||
	    sum.aggregated > after.outcome[IBS_OUTCOME_AGGREGATED])
		return err_set(err, -EUCLEAN,
			       "%llu samples in the series, but between %llu and %llu counted as "
			       "aggregated; this is a bug of ibscope, please report it",
			       sum.aggregated, before.outcome[IBS_OUTCOME_AGGREGATED],
			       after.outcome[IBS_OUTCOME_AGGREGATED]);
	*out = before;
	out->seen += sum.aggregated - before.outcome[IBS_OUTCOME_AGGREGATED];
	out->outcome[IBS_OUTCOME_AGGREGATED] = sum.aggregated;
	return 0;
}

/* Keep a group by taking over its series. */
static int keep_group(void *arg, struct group *g)
{
	struct snapshot *s = arg;

	s->groups[s->n_groups++] = *g;
	g->series = NULL;
	g->n_series = 0;
	return 0;
}

int counts_read(const struct counts *c, struct snapshot *out, struct err *err)
{
	struct ledger l;
	int ret;

	out->groups = xcalloc(c->max_slots, sizeof(*out->groups));
	ret = counts_each(c, keep_group, out, &l, err);
	if (ret) {
		snapshot_free(out);
		return ret;
	}
	out->by = c->by;
	out->ledger.seen = l.seen;
	memcpy(out->ledger.outcome, l.outcome, sizeof(l.outcome));
	return 0;
}
