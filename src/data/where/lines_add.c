// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples to accesses: equal ones are added up in a table found by hash. */
#include "lines_private.h"
#include "base/choice.h"

#include "report/report.h"

#include <ibscope/op_fields.h>

CHOICE_NAMES(line_verdict_name, enum line_verdict, LINE_VERDICT_TABLE)

static const struct {
	const char *name;
	__u32 bits;
} feeds[] = {
#define FEED(id, name, bits, what) { name, bits },
	LINE_FEED_TABLE(FEED)
};

const char *line_feed_name(unsigned int i)
{
	return i < ARRAY_SIZE(feeds) ? feeds[i].name : NULL;
}

__u32 line_feed_bits(unsigned int i)
{
	return i < ARRAY_SIZE(feeds) ? feeds[i].bits : 0;
}

static __u8 width_of(const struct ibs_op_sample *op)
{
	__u64 code;

	return ibs_op_field(op, IBS_OP_FIELD_OP_MEM_WIDTH, &code) && code <= 7 ? 1 << (code - 1)
									       : 0;
}

/* Return: NULL if there is none; @hash: of its key */
static struct line_access *find(const struct line_set *s, const struct line_access *a, __u64 hash)
{
	__u32 i;

	u64_map_for_each(i, &s->of, hash)
	{
		if (!memcmp(&s->access[i], a, ACCESS_WORDS * sizeof(__u64)))
			return &s->access[i];
	}
	return NULL;
}

static struct line_access *append(struct line_set *s, const struct line_access *a, __u64 hash)
{
	if (s->n == U64_MAP_NONE - 1)
		out_of_memory();
	array_reserve(s->access, s->room, s->n + 1);
	u64_map_add(&s->of, hash, s->n);
	s->access[s->n] = *a;
	return &s->access[s->n++];
}

static __u64 hash_of(const struct line_access *a)
{
	return words_hash((const __u64 *)a, ACCESS_WORDS);
}

struct line_access *line_access_of(struct line_set *s, const struct line_access *a)
{
	const __u64 hash = hash_of(a);

	lines_flush(s);
	return find(s, a, hash) ?: append(s, a, hash);
}

static void add_up(struct line_access *sum, const struct line_access *a)
{
	sum->samples += a->samples;
	sum->valid += a->valid;
	sum->sum += a->sum;
	sum->cycles += a->cycles;
	sum->squares += a->squares;
	sum->largest = a->largest > sum->largest ? a->largest : sum->largest;
	sum->first = a->first < sum->first ? a->first : sum->first;
	sum->last = a->last > sum->last ? a->last : sum->last;
}

/* At most LINES_AT_ONCE accesses. */
static void add_some(struct line_set *s, const struct line_access *a, unsigned int n)
{
	__u64 hash[LINES_AT_ONCE];

	for (unsigned int i = 0; i < n; i++) {
		hash[i] = hash_of(&a[i]);
		u64_map_prefetch(&s->of, hash[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		const __u32 first = u64_map_get(&s->of, hash[i]);

		if (first == U64_MAP_NONE)
			continue;
		__builtin_prefetch(&s->access[first]);
		__builtin_prefetch(&s->access[first].samples);
	}
	for (unsigned int i = 0; i < n; i++) {
		struct line_access *sum = find(s, &a[i], hash[i]);

		if (sum)
			add_up(sum, &a[i]);
		else
			append(s, &a[i], hash[i]);
		if (s->opts.most && s->n >= s->opts.most)
			lines_trim(s);
	}
}

static void add_batch(void *ctx, const void *items, size_t n)
{
	const struct line_access *a = items;

	for (size_t i = 0; i < n; i += LINES_AT_ONCE)
		add_some(ctx, &a[i], n - i < LINES_AT_ONCE ? n - i : LINES_AT_ONCE);
}

void lines_flush(struct line_set *s)
{
	parallel_queue_flush(&s->queue);
}

struct line_set *lines_new(const struct lines_opts *opts)
{
	struct line_set *s = xcalloc(1, sizeof(*s));

	s->opts = *opts;
	s->out.has_period = true;
	s->out.strata = opts->info && trace_has_strata(opts->info);
	s->queue = (struct parallel_queue){
		.item = sizeof(*s->access), .room = LINES_BATCH, .work = add_batch, .ctx = s
	};
	return s;
}

void lines_free(struct line_set *s)
{
	if (!s)
		return;
	parallel_queue_free(&s->queue);
	free(s->access);
	free(s->out.line);
	u64_map_free(&s->of);
	free(s);
}

static void count_address(struct lines *out, const struct line_access *a)
{
	if (a->phys)
		out->physical++;
	else if (a->addr)
		out->only_virtual++;
	else
		out->no_address++;
}

void lines_add(struct line_set *s, const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	const struct ibs_op_sample *op = &t->op;
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3;
	__u64 data3 = op->reg[IBS_OP_DATA3], period;
	struct line_access a = { 0 };
	enum report_unit unit;
	__u32 lat;

	if (ev->kind != TRACE_SAMPLE_OP)
		return;
	s->out.cpu = op->cpu;
	if ((op->present & need) != need || !(data3 & IBS_OP_DATA3_MEM)) {
		s->out.other++;
		return;
	}
	ibs_op_field(op, IBS_OP_FIELD_DC_PHYS_AD, &a.phys);
	ibs_op_field(op, IBS_OP_FIELD_DC_LIN_AD, &a.addr);
	count_address(&s->out, &a);
	a.kind = (data3 & IBS_OP_DATA3_LD_OP ? LINE_LOAD : 0) |
		 (data3 & IBS_OP_DATA3_ST_OP ? LINE_STORE : 0) |
		 (data3 & IBS_OP_DATA3_SW_PF ? LINE_PREFETCH : 0);
	a.has = (t->has_task ? LINE_HAS_TASK : 0) | (t->has_cpu ? LINE_HAS_CPU : 0) |
		(t->has_ip ? LINE_HAS_IP : 0) | (t->kernel ? LINE_KERNEL : 0);
	a.ip = t->has_ip ? t->ip : 0;
	a.cgroup_id = t->cgroup_id;
	a.tgid = t->has_task ? t->tgid : 0;
	a.tid = t->has_task ? t->tid : 0;
	a.cpu = t->has_cpu ? t->cpu : 0;
	a.width = width_of(op);
	a.from = ibs_line_from(op->cpu, ibs_op_src(op->cpu, op->reg), op->reg[IBS_OP_DATA2]);
	a.samples = 1;
	a.first = a.last = ev->time;
	period = report_period(s->opts.info, ev, &unit);
	s->out.has_period &= period != 0;
	if (report_latency(s->opts.metric, &ev->sample, &lat)) {
		a.valid = 1;
		a.sum = lat;
		a.cycles = lat * (period ?: 1);
		a.largest = a.cycles;
		a.squares = a.largest * a.largest;
	}
	parallel_queue_put(&s->queue, &a, 1);
}
