// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows are found by hashing the words of their key. What a row counts apart, buckets of latencies,
 * CPUs and threads, are cells of one table for all rows: most rows have few of them.
 */
#include "report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024

int report_new(const struct report_opts *opts, struct report **out, struct err *err)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->opts = *opts;
	r->words = opts->n_by + 1;
	*out = r;
	return 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	free(r->keys);
	free(r->sums);
	free(r->slots);
	free(r->cells);
	intern_free(&r->texts);
	for (size_t i = 0; i < sizeof(r->cgroups) / sizeof(r->cgroups[0]); i++)
		u64_map_free(&r->cgroups[i]);
	free(r);
}

static __u64 hash_words(const __u64 *words, unsigned int n)
{
	__u64 h = 0;

	for (unsigned int i = 0; i < n; i++)
		h = u64_hash(h ^ words[i]);
	return h;
}

static size_t row_slot(const struct report *r, const __u64 *words)
{
	size_t i = hash_words(words, r->words) & (r->n_slots - 1);

	while (r->slots[i] != INTERN_NONE &&
	       memcmp(&r->keys[(size_t)r->slots[i] * r->words], words, r->words * sizeof(*words)))
		i = (i + 1) & (r->n_slots - 1);
	return i;
}

static int grow_rows(struct report *r)
{
	size_t room = r->room ? 2 * r->room : FIRST_ROOM;
	struct sums *sums;
	__u64 *keys;
	__u32 *slots;

	if (room > REPORT_MAX_ROWS)
		return -ENOMEM;
	keys = realloc(r->keys, room * r->words * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	r->keys = keys;
	sums = realloc(r->sums, room * sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	r->sums = sums;
	slots = malloc(2 * room * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, 2 * room * sizeof(*slots));
	free(r->slots);
	r->slots = slots;
	r->n_slots = 2 * room;
	r->room = room;
	for (size_t i = 0; i < r->n; i++)
		slots[row_slot(r, &r->keys[i * r->words])] = i;
	return 0;
}

/* Return: the row, or -ENOMEM. */
static long row_of(struct report *r, const __u64 *words)
{
	size_t at;

	if (r->n == r->room && grow_rows(r))
		return -ENOMEM;
	at = row_slot(r, words);
	if (r->slots[at] == INTERN_NONE) {
		memcpy(&r->keys[r->n * r->words], words, r->words * sizeof(*words));
		memset(&r->sums[r->n], 0, sizeof(*r->sums));
		r->slots[at] = r->n++;
	}
	return r->slots[at];
}

static struct cell *cell_slot(const struct cell *cells, size_t room, __u64 key)
{
	size_t i = u64_hash(key) & (room - 1);

	while (cells[i].key && cells[i].key != key)
		i = (i + 1) & (room - 1);
	return (struct cell *)&cells[i];
}

static int grow_cells(struct report *r)
{
	size_t room = r->cell_room ? 2 * r->cell_room : FIRST_ROOM;
	struct cell *cells = calloc(room, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < r->cell_room; i++)
		if (r->cells[i].key)
			*cell_slot(cells, room, r->cells[i].key) = r->cells[i];
	free(r->cells);
	r->cells = cells;
	r->cell_room = room;
	return 0;
}

/* Return: 1 if it is the first of its kind, 0, or -ENOMEM. */
static int count_cell(struct report *r, size_t row, enum cell_kind kind, __u32 value)
{
	__u64 key = cell_key(row, kind, value);
	struct cell *c;

	if (2 * (r->n_cells + 1) > r->cell_room && grow_cells(r))
		return -ENOMEM;
	c = cell_slot(r->cells, r->cell_room, key);
	if (!c->key) {
		c->key = key;
		r->n_cells++;
	}
	return c->count++ == 0;
}

static int add_latency(struct report *r, size_t row, const struct ibs_op_sample *op)
{
	__u64 data3 = op->reg[IBS_OP_DATA3];
	struct sums *s = &r->sums[row];
	__u32 lat;

	if (!(op->present & 1u << IBS_OP_DATA) || !(op->present & 1u << IBS_OP_DATA3) ||
	    !ibs_op_metric_valid(r->opts.metric, op->cpu.caps, data3))
		return 0;
	lat = ibs_op_metric(r->opts.metric, op->reg, data3);
	s->valid++;
	s->sum += lat;
	if (lat > s->max)
		s->max = lat;
	return count_cell(r, row, CELL_BUCKET, ibs_lat_bucket(lat)) < 0 ? -ENOMEM : 0;
}

static void add_access(struct report *r, struct sums *s, const struct ibs_op_sample *op)
{
	__u64 addr;

	if (!(op->present & 1u << IBS_OP_DATA3))
		return;
	s->loads += !!(op->reg[IBS_OP_DATA3] & IBS_OP_DATA3_LD_OP);
	s->stores += !!(op->reg[IBS_OP_DATA3] & IBS_OP_DATA3_ST_OP);
	if (ibs_op_field(op, r->opts.phys ? IBS_OP_FIELD_DC_PHYS_AD : IBS_OP_FIELD_DC_LIN_AD,
			 &addr))
		s->offsets |= 1ull << (addr & 63);
}

/*
 * The registers tell what a sample stood for, where they are whole; else the event does, unless it
 * has a frequency, which says nothing of one sample.
 */
static __u64 period_of(const struct report *r, const struct trace_event *ev, __u8 *unit)
{
	const struct trace_info *info = r->opts.info;
	const struct trace_sample *s = &ev->sample;
	const struct trace_pmu *pmu = s->pmu < info->n_pmus ? &info->pmu[s->pmu] : NULL;
	bool fixed = pmu && !pmu->freq && pmu->period;
	__u64 ctl;

	if (ev->kind == TRACE_SAMPLE_FETCH) {
		*unit = REPORT_FETCHES;
		ctl = s->fetch.reg[IBS_FETCH_CTL];
		return fixed ? pmu->period
			     : ibs_field_bits(&ibs_fetch_fields[IBS_FETCH_FIELD_MAXCNT], &ctl) << 4;
	}
	if (info->full_registers && s->op.present >> IBS_OP_CTL & 1) {
		ctl = ibs_field_bits(&ibs_op_fields[IBS_OP_FIELD_CNT_CTL], s->op.reg);
		*unit = ctl ? REPORT_OPS : REPORT_CYCLES;
		return fixed ? pmu->period : ibs_op_period(&s->op);
	}
	*unit = pmu && strstr(pmu->name, "cnt_ctl=1") ? REPORT_OPS : REPORT_CYCLES;
	return fixed ? pmu->period : 0;
}

int report_add(struct report *r, const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	__u64 words[REPORT_WORDS], period;
	struct sums *s;
	__u8 unit;
	long row;
	int ret;

	if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
		return 0;
	if (report_key_of(r, ev, words))
		return -ENOMEM;
	row = row_of(r, words);
	if (row < 0)
		return row;
	s = &r->sums[row];
	s->samples++;
	period = period_of(r, ev, &unit);
	s->estimated += period;
	s->units |= unit;
	s->no_estimate |= !period;
	if (ev->kind == TRACE_SAMPLE_OP) {
		add_access(r, s, &t->op);
		if (add_latency(r, row, &t->op))
			return -ENOMEM;
	}
	if (r->opts.cpus && t->has_cpu) {
		ret = count_cell(r, row, CELL_CPU, t->cpu);
		if (ret < 0)
			return ret;
		s->cpus += ret;
	}
	if (r->opts.threads && t->has_task) {
		ret = count_cell(r, row, CELL_THREAD, t->tid);
		if (ret < 0)
			return ret;
		s->threads += ret;
	}
	return 0;
}
