// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of recordings. The keys of report find their cause and their row. */
#include "diff_private.h"

#include "base/text.h"

/* The texts of a few keys as a number of compare.h, looked up by their words. */
struct finder {
	struct report *report;
	struct report_opts opts;
	struct u64_map of; /* by hash */
	__u64 *words;
	__u32 *number;
	size_t n, words_room, room;
};

static void finder_start(struct finder *f, const struct diff *d, const enum label *by,
			 unsigned int n_by, const struct recorded *in)
{
	struct err err;

	f->opts = (struct report_opts){ .n_by = n_by,
					.metric = d->metric,
					.info = in->head.info,
					.tasks = in->tasks,
					.symbols = in->symbols };
	memcpy(f->opts.by, by, n_by * sizeof(*by));
	report_new(&f->opts, &f->report, &err);
}

static void finder_end(struct finder *f)
{
	report_free(f->report);
	u64_map_free(&f->of);
	free(f->words);
	free(f->number);
}

/* The causes are joined to one name, "dram load". */
static __u32 number_cause(struct compare *c, const char *const *text, unsigned int n)
{
	char name[256] = "";
	size_t at = 0;

	for (unsigned int k = 0; k < n; k++)
		at = text_at(name, sizeof(name), at, "%s%s", k ? " " : "",
			     text[k] && *text[k] ? text[k] : DIFF_NO_CAUSE);
	return compare_cause(c, name);
}

static __u32 find(struct finder *f, struct compare *c, const struct trace_event *ev, bool cause)
{
	const unsigned int n = f->opts.n_by, size = n + 1;
	__u64 words[REPORT_WORDS], hash;
	char buf[LABEL_ALL][64];
	const char *text[LABEL_ALL];
	__u32 i;

	report_key_of(f->report, ev, words);
	hash = words_hash(words, size);
	u64_map_for_each(i, &f->of, hash) if (!memcmp(&f->words[i * size], words,
						      size * sizeof(*words))) return f->number[i];
	for (unsigned int k = 0; k < n; k++)
		text[k] = report_label(f->report, words, k, buf[k], sizeof(buf[k]));
	array_reserve(f->words, f->words_room, (f->n + 1) * size);
	array_reserve(f->number, f->room, f->n + 1);
	memcpy(&f->words[f->n * size], words, size * sizeof(*words));
	f->number[f->n] = cause ? number_cause(c, text, n) : compare_row(c, text, n);
	u64_map_add(&f->of, hash, f->n);
	return f->number[f->n++];
}

static void describe(struct diff_about *a, const struct trace_info *info, enum trace_kind kind)
{
	unsigned int pmu = trace_event_of(info, kind == TRACE_SAMPLE_OP);

	snprintf(a->host, sizeof(a->host), "%s", info->host);
	snprintf(a->release, sizeof(a->release), "%s", info->release);
	snprintf(a->source, sizeof(a->source), "%s", info->source ?: "");
	snprintf(a->filter, sizeof(a->filter), "%s", info->filter);
	if (info->has_cpu)
		snprintf(a->cpu, sizeof(a->cpu), "%s", cpu_generation(&info->cpu));
	a->simulated = info->simulated;
	if (pmu == info->n_pmus)
		return;
	snprintf(a->event, sizeof(a->event), "%s", info->pmu[pmu].name);
	a->hardware_filter = info->pmu[pmu].filtered;
}

static void start_chains(struct diff *d, enum compare_side side, const struct recorded *in)
{
	const struct folded_opts opts = { .weight = FOLDED_TOTAL,
					  .strata = trace_has_strata(in->head.info),
					  .metric = d->metric,
					  .tasks = in->tasks,
					  .symbols = in->symbols };

	if (d->html && in->symbols && in->tasks && trace_has_chains(in->head.info))
		d->folded[side] = folded_new(&opts);
}

/*
 * Blocks of a recording with strata: estimates of a part of a window vary with how much of it each stratum had, which those
 * of the whole window make up for.
 */
struct blocks {
	const struct trace_slice *slice; /* NULL: blocks of time */
	size_t n, per_block;		 /* slices */
	__u64 first, width;
};

#define WINDOWS_MIN 12 /* fewer blocks say less than pairs of slices do */

static struct blocks start_blocks(struct diff *d, enum compare_side side, const struct trace *t)
{
	struct blocks b = {};
	size_t n_blocks;

	if (!trace_has_strata(trace_info(t)))
		return b;
	b.slice = trace_slices(t, &b.n);
	b.per_block = b.n / STRATA_WINDOW < WINDOWS_MIN ? STRATUM_N : STRATA_WINDOW;
	n_blocks = b.n / b.per_block ?: 1;
	b.first = b.slice->end;
	b.width = (b.slice[b.n - 1].end - b.first) / n_blocks ?: 1;
	compare_width(d->compare, side, b.width);
	compare_seconds(d->compare, side,
			(b.slice[b.n - 1].end - b.first) / 1e9 + b.slice->counts.seconds);
	return b;
}

/* When a sample counts: all of a block at once. The last block has the rest of the slices, as the last window does. */
static __u64 time_of(const struct blocks *b, const struct trace_event *ev)
{
	const struct trace_slice *slice = ev->sample.slice;
	const size_t n_blocks = b->slice ? b->n / b->per_block ?: 1 : 0;
	size_t block = b->slice && slice ? (slice - b->slice) / b->per_block : 0;

	if (!b->slice)
		return ev->sample.has_time ? ev->time : 0;
	return b->first + (block < n_blocks ? block : n_blocks - 1) * b->width;
}

/* Ops that a sample represents for the comparison. Return: 0: unknown */
static __u64 ops_of(const struct diff *d, const struct trace_info *info,
		    const struct trace_event *ev, unsigned int *units)
{
	enum report_unit unit;
	const __u64 period = report_period(info, ev, &unit);

	*units |= unit;
	return d->per == DIFF_PER_ACCESS && !trace_has_strata(info) ? 1 : period;
}

int diff_add_recording(struct diff *d, enum compare_side side, struct recorded *in, struct err *err)
{
	struct diff_about *about = &d->about[side];
	struct finder cause = {}, row = {};
	const bool strata = trace_has_strata(in->head.info);
	const struct blocks blocks = start_blocks(d, side, in->trace);
	struct trace_event ev;
	int ret;

	describe(about, in->head.info, in->kind);
	snprintf(about->metric, sizeof(about->metric), "%s", metric_name(d->metric));
	start_chains(d, side, in);
	finder_start(&cause, d, d->causes, d->n_causes, in);
	finder_start(&row, d, d->by, d->n_by, in);
	while ((ret = recorded_next(in, &ev, err)) > 0) {
		struct compare_amount a = { .samples = 1 };
		const __u64 period = ops_of(d, in->head.info, &ev, &about->units);
		__u32 lat, k;

		if (!period && !strata) {
			ret = -EAGAIN;
			break;
		}
		compare_at(d->compare, side, time_of(&blocks, &ev));
		k = find(&cause, d->compare, &ev, true);
		if (period && report_latency(d->metric, &ev.sample, &lat)) {
			a.valid = 1;
			a.ops = period;
			a.cycles = (double)lat * period;
			compare_latency(d->compare, k, ibs_lat_bucket(lat), period);
		}
		a.base = d->per == DIFF_PER_ACCESS && !a.valid ? 0 : period;
		compare_add(d->compare, find(&row, d->compare, &ev, false), k, &a);
		diff_heat_add(d, side, ev.sample.has_time ? ev.time : 0,
			      a.valid ? ibs_lat_bucket(lat) : 0, &a);
		if (d->folded[side])
			folded_add(d->folded[side], &ev);
	}
	finder_end(&cause);
	finder_end(&row);
	return ret;
}
