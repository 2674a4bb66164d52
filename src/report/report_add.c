// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows are found by hashing the words of their key. What a row counts apart, buckets of latencies,
 * CPUs and threads, are cells of one table for all rows: most rows have few of them.
 */
#include "report_private.h"

#include "view/table.h"

int report_new(const struct report_opts *opts, struct report **out, struct err *err)
{
	struct report *r = xcalloc(1, sizeof(*r));

	(void)err;
	r->opts = *opts;
	r->words = opts->n_by + 1;
	r->needs_data = report_needs_data(opts->by, opts->n_by);
	r->needs_types = report_needs_types(opts->by, opts->n_by) || opts->type;
	report_part(r, opts->info, opts->tasks, opts->symbols);
	*out = r;
	return 0;
}

void report_part(struct report *r, const struct trace_info *info, const struct tasks *tasks,
		 struct symbols *symbols)
{
	const struct task_rank *ranks = NULL;
	size_t n = 0;

	r->opts.info = info;
	r->opts.tasks = tasks;
	r->opts.symbols = symbols;
	r->part++;
	for (size_t i = 0; i < ARRAY_SIZE(r->cgroups); i++)
		u64_map_free(&r->cgroups[i]);
	if (tasks)
		ranks = tasks_ranks(tasks, &n);
	for (size_t i = 0; i < n; i++)
		if (u64_map_get(&r->ranks, ranks[i].rank) == U64_MAP_NONE)
			u64_map_put(&r->ranks, ranks[i].rank, r->n_ranks++);
}

void report_free(struct report *r)
{
	if (!r)
		return;
	free(r->keys);
	free(r->sums);
	u64_map_free(&r->row_of);
	u64_map_free(&r->cell_of);
	free(r->cells);
	u64_map_free(&r->ranks);
	intern_free(&r->texts);
	intern_free(&r->fetches.names);
	free(r->fetches.counts);
	for (size_t i = 0; i < ARRAY_SIZE(r->cgroups); i++)
		u64_map_free(&r->cgroups[i]);
	free(r);
}

/* They are few: a call would cost more than the comparison. */
static bool same_words(const __u64 *a, const __u64 *b, unsigned int n)
{
	while (n && a[n - 1] == b[n - 1])
		n--;
	return !n;
}

static size_t row_of(struct report *r, const __u64 *words)
{
	__u64 hash = words_hash(words, r->words);
	__u32 row;

	u64_map_for_each(row, &r->row_of, hash) if (same_words(&r->keys[(size_t)row * r->words],
							       words, r->words)) return row;
	if (r->n == REPORT_MAX_ROWS)
		out_of_memory();
	array_reserve(r->keys, r->keys_room, (r->n + 1) * r->words);
	array_reserve(r->sums, r->room, r->n + 1);
	u64_map_add(&r->row_of, hash, r->n);
	memcpy(&r->keys[r->n * r->words], words, r->words * sizeof(*words));
	memset(&r->sums[r->n], 0, sizeof(*r->sums));
	return r->n++;
}

bool report_count(struct report *r, size_t row, enum cell_kind kind, __u32 value, __u64 n)
{
	__u64 key = cell_key(row, kind, value);
	__u32 i = u64_map_get(&r->cell_of, key);

	if (i == U64_MAP_NONE) {
		i = r->n_cells;
		if (i == U64_MAP_NONE - 1)
			out_of_memory();
		array_reserve(r->cells, r->cell_room, r->n_cells + 1);
		u64_map_add(&r->cell_of, key, i);
		r->cells[r->n_cells++] = (struct cell){ .key = key };
	}
	r->cells[i].count += n;
	return r->cells[i].count == n;
}

bool report_latency(enum ibs_metric metric, const struct ibs_op_sample *op, __u32 *lat)
{
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA3;
	__u64 data3 = op->reg[IBS_OP_DATA3];

	if ((op->present & need) != need || !ibs_op_metric_valid(metric, op->cpu.caps, data3))
		return false;
	*lat = ibs_op_metric(metric, op->reg, data3);
	return true;
}

bool report_wait(enum ibs_metric metric, const struct ibs_op_sample *op, __u64 period,
		 struct report_wait *out)
{
	if (!report_latency(metric, op, &out->lat))
		return false;
	/* without a period latencies stand for themselves: shares need none */
	out->cycles = out->lat * (period ?: 1);
	out->src = op->present >> IBS_OP_DATA2 & 1 ? ibs_op_src(op->cpu, op->reg) : IBS_SRC_NONE;
	out->known = out->src > IBS_SRC_NONE;
	return true;
}

static void add_latency(struct report *r, size_t row, const struct trace_event *ev, __u64 period)
{
	const struct ibs_op_sample *op = &ev->sample.op;
	struct sums *s = &r->sums[row];
	struct report_wait w;

	if (!report_wait(r->opts.metric, op, period, &w))
		return;
	s->valid++;
	s->sum += w.lat;
	if (w.lat > s->max)
		s->max = w.lat;
	s->cycles += w.cycles;
	s->known += w.known ? w.cycles : 0;
	if (w.known && ibs_op_data_src_is_cache(op->cpu.caps, op->reg[IBS_OP_DATA2]) &&
	    (op->reg[IBS_OP_DATA3] & IBS_OP_DATA3_L2_MISS)) {
		bool told = ibs_op_tells_state(op->cpu, op->reg[IBS_OP_DATA2]);

		s->cached++;
		s->stateful += told;
		s->hitm += told && !(op->reg[IBS_OP_DATA2] & IBS_OP_DATA2_OWNED) ? w.cycles : 0;
	}
	s->dram += table_is_dram(w.src) ? w.cycles : 0;
	s->remote += table_is_remote(w.src) ? w.cycles : 0;
	if (r->n_ranks)
		report_ranks_add(r, row, ev, w.cycles);
	if (r->opts.price)
		report_price_add(r, row, ev, w.cycles, period ?: 1);
	report_count(r, row, CELL_BUCKET, ibs_lat_bucket(w.lat), 1);
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
 * The registers say what a sample stands for if they are complete; else the event does, unless it
 * has a frequency, which says nothing of one sample.
 */
__u64 report_period(const struct trace_info *info, const struct trace_event *ev,
		    enum report_unit *unit)
{
	const struct trace_sample *s = &ev->sample;
	const struct trace_pmu *pmu = s->pmu < info->n_pmus ? &info->pmu[s->pmu] : NULL;
	bool known = !pmu || !pmu->filtered, fixed = pmu && !pmu->freq && pmu->period && known;
	__u64 ctl;

	if (ev->kind == TRACE_SAMPLE_FETCH) {
		*unit = REPORT_FETCHES;
		ctl = s->fetch.reg[IBS_FETCH_CTL];
		return fixed   ? pmu->period
		       : known ? ibs_field_bits(&ibs_fetch_fields[IBS_FETCH_FIELD_MAXCNT], &ctl)
					 << 4
			       : 0;
	}
	if (info->full_registers && s->op.present >> IBS_OP_CTL & 1) {
		ctl = ibs_field_bits(&ibs_op_fields[IBS_OP_FIELD_CNT_CTL], s->op.reg);
		*unit = ctl ? REPORT_OPS : REPORT_CYCLES;
		return fixed ? pmu->period : known ? ibs_op_period(&s->op) : 0;
	}
	*unit = pmu && strstr(pmu->name, "cnt_ctl=1") ? REPORT_OPS : REPORT_CYCLES;
	return fixed ? pmu->period : 0;
}

/* CPUs and threads of several recordings are different ones; their numbers are below 2^22. */
static __u32 of_part(const struct report *r, __u32 number)
{
	return r->part << 22 ^ number;
}

int report_add(struct report *r, const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	__u64 words[REPORT_WORDS], period;
	struct sums *s;
	enum report_unit unit;
	size_t row;

	if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
		return 0;
	if (!report_key_of(r, ev, words))
		return 0;
	row = row_of(r, words);
	s = &r->sums[row];
	s->samples++;
	period = report_period(r->opts.info, ev, &unit);
	s->estimated += period;
	s->units |= unit;
	s->no_estimate |= !period;
	if (ev->kind == TRACE_SAMPLE_OP) {
		add_access(r, s, &t->op);
		add_latency(r, row, ev, period);
	} else {
		report_fetches_add(r, ev);
	}
	if (r->opts.cpus && t->has_cpu)
		s->cpus += report_count(r, row, CELL_CPU, of_part(r, t->cpu), 1);
	if (r->opts.threads && t->has_task)
		s->threads += report_count(r, row, CELL_THREAD, of_part(r, t->tid), 1);
	return 0;
}

static void add_field(const char *path, __u64 offset, __u64 size, void *arg)
{
	struct report *r = arg;
	const struct type_access field = { .kind = TYPE_POINTER,
					   .type = r->opts.type,
					   .field = *path ? path : NULL,
					   .field_offset = offset,
					   .field_size = *path ? size : 0 };
	__u64 words[REPORT_WORDS];

	report_key_of_field(r, &field, words);
	row_of(r, words);
}

bool report_add_fields(struct report *r)
{
	return symbols_type_layout(r->opts.symbols, r->opts.type, add_field, r);
}
