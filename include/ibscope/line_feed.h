/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Feeds a sample to the hot-line tables of its CPU: see hot_lines.h; needs decide.h. */
#ifndef IBSCOPE_LINE_FEED_H
#define IBSCOPE_LINE_FEED_H

#include <ibscope/hot_lines.h>

/* Details name the last accessor for which the access count of its slot was a power of two. */
static __always_inline void line_set_user(core_t core, struct ibs_line_user *u, const __u64 *regs,
				      __u64 task)
{
	u->ip = regs[IBS_OP_RIP];
	u->addr = regs[IBS_DC_LINADDR];
	u->tgid = task >> 32;
	u->tid = task;
	u->cgroup_id = task_cgroup_id(core, core_config(core)->cgroup_v1);
}

static __always_inline void line_latency(struct ibs_line_detail *d, __u32 from, __u64 data3,
					 __u64 ops)
{
	const __u64 lat = ibs_op_metric(IBS_METRIC_DC_MISS_LAT, NULL, data3), cycles = lat * ops;

	d->valid++;
	d->sum += lat;
	d->cycles += cycles;
	if (from != LINE_FROM_UNKNOWN)
		d->known += cycles;
	if (line_from_hitm(from))
		d->hitm_cycles += cycles;
}

static __always_inline void line_detail_add(core_t core, struct ibs_line_detail *d,
					    const struct sample *s, __u64 data3, __u64 phys)
{
	core_cfg *cfg = core_config(core);
	const struct ibs_cpu cpu = { .caps = cfg->ibs.caps, .quirks = cfg->ibs.quirks };
	/* read each register once: reading in place takes ten instructions */
	const __u64 data2 = data3 & IBS_OP_DATA3_LD_OP ? s->regs[IBS_OP_DATA2] : 0;
	const __u64 regs[] = { [IBS_OP_DATA2] = data2, [IBS_OP_DATA3] = data3 };
	const __u32 slot = phys / 8 & (IBS_LINE_SLOTS - 1);
	const __u64 task = task_pid_tgid(core);
	const __u32 bit = 1u << (task & 31);
	__u32 n;

	if (data3 & IBS_OP_DATA3_LD_OP) {
		const __u32 from = ibs_line_from(cpu, ibs_op_src(cpu, regs), data2);

		d->from[from & (LINE_FROM_N - 1)]++;
		if (line_from_hitm(from))
			d->hitm[slot]++;
		if (ibs_op_dc_miss_lat_valid(data3))
			line_latency(d, from, data3, cfg->weigh ? sample_ops(core, s) : 1);
		d->readers[slot] |= bit;
		n = data3 & IBS_OP_DATA3_ST_OP ? ++d->both[slot] : ++d->loads[slot];
	} else {
		n = ++d->stores[slot];
	}
	if (data3 & IBS_OP_DATA3_ST_OP)
		d->writers[slot] |= bit;
	if (!(n & (n - 1)))
		line_set_user(core, data3 & IBS_OP_DATA3_ST_OP ? &d->writer : &d->reader, s->regs,
			  task);
}

/*
 * Details are reassigned round-robin: this line gets the next ones only if their present line has
 * had clearly fewer samples. @place: set by regs_select()
 */
static __always_inline void line_feed(core_t core, const struct sample *s, __u64 data3, __u32 place)
{
	core_cfg *cfg = core_config(core);
	const __u32 sets = cfg->line_sets;
	struct ibs_line_detail *d;
	struct ibs_line_count *c;
	__u64 phys, key, hand;
	struct ibs_lines *t;
	__u32 sure, index;

	if (!ibs_line_feeds(cfg->line_feed, cfg->ibs.caps, data3, place))
		return;
	index = READ_ONCE(core_state(core)->lines);
	t = map_find(core, hot_lines, &index);
	if (!t || !sets)
		return;
	t->fed++;
	phys = ibs_op_phys_known(cfg->ibs.caps, data3) ? s->regs[IBS_DC_PHYSADDR] : 0;
	if (!phys) {
		t->no_address++;
		return;
	}
	key = phys >> IBS_LINE_SHIFT << IBS_LINE_HAND;
	c = ibs_line_count(&t->count[ibs_line_set(key, sets)], key, &hand, &t->replaced);
	sure = c->count - c->error;
	d = &t->detail[(hand - 1) & (IBS_LINE_DETAILS - 1)];
	if (!hand || d->line != key >> IBS_LINE_HAND) {
		if (sure < IBS_LINE_LEAST)
			return;
		hand = t->hand++ & (IBS_LINE_DETAILS - 1);
		d = &t->detail[hand];
		if (d->line && d->rank + d->rank / 4 >= sure)
			return;
		t->lost += d->line != 0;
		__builtin_memset(d, 0, sizeof(*d));
		d->line = key >> IBS_LINE_HAND;
		d->before = c->count - 1;
		c->key = key | (hand + 1);
	}
	d->rank = sure;
	line_detail_add(core, d, s, data3, phys);
}

#endif
