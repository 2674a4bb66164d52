// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows are found by hashing the words of their key. What a row counts apart, buckets of latencies,
 * CPUs and threads, are cells of one table for all rows: most rows have few of them.
 */
#include "report_private.h"

#include "table/table.h"

#include <ibscope/exposed.h>
#include <math.h>

int report_new(const struct report_opts *opts, struct report **out, struct err *err)
{
	struct report *r = xcalloc(1, sizeof(*r));

	(void)err;
	r->opts = *opts;
	r->words = report_key_words(opts);
	r->flags = report_keys_flags(opts->by, opts->n_by) | (opts->type ? KEY_TYPES : 0);
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
	r->strata = info && trace_has_strata(info);
	r->part++;
	report_inlines_part(&r->inlined);
	u64_map_free(&r->word_of);
	u64_map_free(&r->site_of);
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
	free(r->spread);
	u64_map_free(&r->ranks);
	u64_map_free(&r->page_of);
	free(r->page_node);
	intern_free(&r->texts);
	u64_map_free(&r->demangled);
	u64_map_free(&r->word_of);
	u64_map_free(&r->site_of);
	report_inlines_free(&r->inlined);
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

static bool fetch_latency(enum ibs_metric metric, const struct ibs_fetch_sample *f, __u32 *lat)
{
	const __u32 need =
		1u << IBS_FETCH_CTL | (metric == IBS_METRIC_FETCH_LAT ? 0 : 1u << IBS_FETCH_EXTD);

	if ((f->present & need) != need ||
	    !ibs_fetch_metric_valid(metric, f->cpu, f->reg[IBS_FETCH_CTL]))
		return false;
	*lat = ibs_fetch_metric(metric, f->reg, f->reg[IBS_FETCH_CTL]);
	return true;
}

bool report_latency(enum ibs_metric metric, const struct trace_sample *s, __u32 *lat)
{
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA3;
	const struct ibs_op_sample *op = &s->op;
	__u64 data3 = op->reg[IBS_OP_DATA3];

	if (ibs_metric_of_fetch(metric))
		return fetch_latency(metric, &s->fetch, lat);
	if ((op->present & need) != need || !ibs_op_metric_valid(metric, op->cpu.caps, data3))
		return false;
	*lat = ibs_op_metric(metric, op->reg, data3);
	return true;
}

bool report_wait(enum ibs_metric metric, const struct trace_sample *s, __u64 period,
		 struct report_wait *out)
{
	const struct ibs_op_sample *op = &s->op;

	if (!report_latency(metric, s, &out->lat))
		return false;
	/* without a period latencies stand for themselves: shares need none */
	*out = (struct report_wait){ .lat = out->lat,
				     .cycles = out->lat * (period ?: 1),
				     .src = IBS_SRC_NONE };
	if (!ibs_metric_of_fetch(metric) && op->present >> IBS_OP_DATA2 & 1)
		out->src = ibs_op_src(op->cpu, op->reg);
	out->known = out->src > IBS_SRC_NONE;
	out->cached = table_is_other_cache(out->src);
	out->has_state = out->cached && ibs_op_reports_state(op->cpu, op->reg[IBS_OP_DATA2]);
	out->hitm = out->has_state && !(op->reg[IBS_OP_DATA2] & IBS_OP_DATA2_OWNED);
	return true;
}

/* Where the cycles of a sample were spent. */
static void add_place(struct sums *s, const struct report_wait *w)
{
	s->known += w->known ? w->cycles : 0;
	s->cached += w->cached;
	s->stateful += w->has_state;
	s->hitm += w->hitm ? w->cycles : 0;
	s->dram += table_is_dram(w->src) ? w->cycles : 0;
	s->remote += table_is_remote(w->src) ? w->cycles : 0;
}

static void add_fetch_place(struct sums *s, const struct ibs_fetch_sample *f, __u64 cycles)
{
	enum ibs_fetch_class class = ibs_fetch_class(f->cpu, f->reg[IBS_FETCH_CTL]);

	s->known += cycles;
	s->dram +=
		class == IBS_FETCH_CLASS_L2_MISS || class == IBS_FETCH_CLASS_L3_MISS ? cycles : 0;
}

static void add_latency(struct report *r, size_t row, const struct trace_event *ev, __u64 period)
{
	struct sums *s = &r->sums[row];
	struct report_wait w;

	if (!report_wait(r->opts.metric, &ev->sample, period, &w))
		return;
	s->valid++;
	s->sum += w.lat;
	if (w.lat > s->max)
		s->max = w.lat;
	s->cycles += w.cycles;
	estimate_add(&s->waits, w.cycles);
	report_strata_add(r, row, &ev->sample, w.cycles);
	if (ev->kind == TRACE_SAMPLE_FETCH)
		add_fetch_place(s, &ev->sample.fetch, w.cycles);
	else
		add_place(s, &w);
	if (r->n_ranks)
		report_ranks_add(r, row, ev, w.cycles);
	if (r->opts.price && ev->kind == TRACE_SAMPLE_OP)
		report_price_add(r, row, ev, w.cycles, period ?: 1);
	s->valid_ops += period;
	report_count(r, row, CELL_BUCKET, ibs_lat_bucket(w.lat), r->strata ? period : 1);
}

/* Whatever latency the report is of. Without a period, latencies stand for themselves. */
static void add_exposed(struct sums *s, const struct ibs_op_sample *op, __u64 period)
{
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA3;
	const __u64 data = op->reg[IBS_OP_DATA], data3 = op->reg[IBS_OP_DATA3], n = period ?: 1;
	__u64 cycles;

	if ((op->present & need) != need || !ibs_op_dc_miss_lat_valid(data3))
		return;
	cycles = n * ibs_op_metric(IBS_METRIC_DC_MISS_LAT, op->reg, data3);
	s->missed += cycles;
	s->blocking += ibs_op_blocked(data) ? cycles : 0;
	if (ibs_op_exposed_valid(op->cpu.quirks, data, data3))
		s->exposed += n * ibs_op_exposed(data, data3);
	else
		s->unexposed++;
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

static void add_fetch(struct report *r, struct sums *s, const struct trace_event *ev)
{
	const struct ibs_fetch_sample *f = &ev->sample.fetch;
	enum ibs_fetch_itlb itlb = ibs_fetch_itlb(f->cpu, f->reg[IBS_FETCH_CTL]);

	s->translated += itlb != IBS_FETCH_ITLB_UNKNOWN;
	s->walks += itlb >= IBS_FETCH_ITLB_WALK_4K;
	s->aborted += ibs_fetch_class(f->cpu, f->reg[IBS_FETCH_CTL]) >= IBS_FETCH_CLASS_ABORTED;
	report_fetches_add(r, ev);
}

/*
 * A sample of strata has a weight. Of others, the period is in the registers if they are complete,
 * or else that of the event, unless the event has a frequency: then it is unknown.
 */
__u64 report_period(const struct trace_info *info, const struct trace_event *ev,
		    enum report_unit *unit)
{
	const struct trace_sample *s = &ev->sample;
	const struct trace_pmu *pmu = s->pmu < info->n_pmus ? &info->pmu[s->pmu] : NULL;
	bool known = !pmu || !pmu->filtered, fixed = pmu && !pmu->freq && pmu->period && known;
	__u64 ctl;

	if (pmu && trace_has_strata(info)) {
		*unit = strstr(pmu->name, "cnt_ctl=1") ? REPORT_OPS : REPORT_CYCLES;
		return llround(s->weight);
	}
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

static __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

int report_add(struct report *r, const struct trace_event *ev)
{
	const struct trace_info *info = r->opts.info;
	const struct trace_sample *t = &ev->sample;
	__u64 words[REPORT_WORDS], period;
	struct sums *s;
	enum report_unit unit;
	size_t row;

	if (ev->kind != trace_kind_of(r->opts.metric))
		return 0;
	if (!report_key_of(r, ev, words))
		return 0;
	row = row_of(r, words);
	s = &r->sums[row];
	s->samples++;
	if (t->has_time && info->realtime_ns)
		s->last = later(s->last, info->realtime_ns + ev->time - info->monotonic_ns);
	period = report_period(r->opts.info, ev, &unit);
	s->estimated += period;
	s->units |= unit;
	s->no_estimate |= !period;
	if (r->strata)
		estimate_add(&r->weights, period);
	if (r->opts.pages && ev->kind == TRACE_SAMPLE_OP)
		report_pages_add(r, row, ev);
	if (ev->kind == TRACE_SAMPLE_OP) {
		add_access(r, s, &t->op);
		add_exposed(s, &t->op, period);
	} else {
		add_fetch(r, s, ev);
	}
	add_latency(r, row, ev, period);
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
