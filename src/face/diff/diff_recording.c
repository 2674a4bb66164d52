// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of recordings. The keys of report find their cause and their row. */
#include "diff_private.h"

#include "base/text.h"

/* What a number of compare.h is made of. */
enum finds { FIND_CAUSE, FIND_ROW, FIND_CONTAINER };

/* Keys of FIND_CONTAINER, whose texts are joined to one. */
enum { CGROUP, POD, CONTAINER, CONTAINER_KEYS };
static const enum label container_keys[CONTAINER_KEYS] = { LABEL_CGROUP, LABEL_POD,
							   LABEL_CONTAINER };

/* The texts of a few keys as a number of compare.h, looked up by their words. */
struct finder {
	struct report *report; /* NULL: there is none */
	struct report_opts opts;
	struct compare *compare;
	enum finds what;
	struct u64_map of; /* by hash */
	__u64 *words;
	__u32 *number;
	size_t n, words_room, room;
};

static void finder_start(struct finder *f, const struct diff *d, enum finds what,
			 const struct recorded *in)
{
	const enum label *by = what == FIND_CAUSE	? d->causes
			       : what == FIND_CONTAINER ? container_keys
							: d->by;
	struct err err;

	f->what = what;
	f->compare = d->compare;
	f->opts = (struct report_opts){ .n_by = what == FIND_CAUSE	 ? d->n_causes
						: what == FIND_CONTAINER ? CONTAINER_KEYS
									 : d->n_by,
					.metric = d->metric,
					.info = in->head.info,
					.tasks = in->tasks,
					.symbols = in->symbols };
	memcpy(f->opts.by, by, f->opts.n_by * sizeof(*by));
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

/* "namespace/pod/container", or the path of a cgroup that is in none. */
static __u32 number_container(struct compare *c, const char *const *text)
{
	const char *pod = text[POD] ?: "", *container = text[CONTAINER] ?: "";
	const char *cgroup = text[CGROUP] && *text[CGROUP] ? text[CGROUP] : DIFF_NO_CAUSE;
	char *name = *pod || *container
			     ? xasprintf("%s%s%s", pod, *pod && *container ? "/" : "", container)
			     : xstrdup(cgroup);
	const __u32 row = compare_row(c, (const char *const *)&name, 1);

	free(name);
	return row;
}

static __u32 number(const struct finder *f, const char *const *text)
{
	if (f->what == FIND_CAUSE)
		return number_cause(f->compare, text, f->opts.n_by);
	if (f->what == FIND_CONTAINER)
		return number_container(f->compare, text);
	return compare_row(f->compare, text, f->opts.n_by);
}

static __u32 find(struct finder *f, const struct trace_event *ev)
{
	const unsigned int n = f->opts.n_by, size = n + 1;
	__u64 words[REPORT_WORDS], hash;
	char buf[LABEL_ALL][64];
	const char *text[LABEL_ALL];
	__u32 i;

	report_key_of(f->report, ev, words);
	hash = words_hash(words, size);
	u64_map_for_each(i, &f->of,
			 hash) if (i < f->n && !memcmp(&f->words[i * size], words,
						       size * sizeof(*words))) return f->number[i];
	for (unsigned int k = 0; k < n; k++)
		text[k] = report_label(f->report, words, k, buf[k], sizeof(buf[k]));
	array_reserve(f->words, f->words_room, (f->n + 1) * size);
	array_reserve(f->number, f->room, f->n + 1);
	memcpy(&f->words[f->n * size], words, size * sizeof(*words));
	f->number[f->n] = number(f, text);
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

struct finders {
	struct finder cause, row, container; /* container: of diff_split.of */
};

static void finders_start(struct finders *f, const struct diff *d, const struct diff_split *split,
			  const struct recorded *in)
{
	finder_start(&f->cause, d, FIND_CAUSE, in);
	finder_start(&f->row, d, d->by_container ? FIND_CONTAINER : FIND_ROW, in);
	if (split && split->of)
		finder_start(&f->container, split->of, FIND_CONTAINER, in);
}

static void finders_end(struct finders *f)
{
	finder_end(&f->cause);
	finder_end(&f->row);
	finder_end(&f->container);
}

/* The side that a sample belongs to. Return: false if it is of neither. */
static bool choose_side(struct finders *f, const struct diff_split *split,
			const struct trace_event *ev, enum compare_side *side)
{
	if (!split)
		return true;
	*side = ev->time < split->from_ns ? COMPARE_A : COMPARE_B;
	return ev->sample.has_time && ev->time < split->until_ns &&
	       (!split->of || find(&f->container, ev) == split->row);
}

/* @at: block of time; @period: 0: it has no weight */
static void add_sample(struct diff *d, enum compare_side side, struct finders *f,
		       const struct trace_event *ev, __u64 at, __u64 period)
{
	struct compare_amount a = { .samples = 1 };
	const __u32 k = find(&f->cause, ev);
	__u32 lat;

	compare_at(d->compare, side, at);
	if (period && report_latency(d->metric, &ev->sample, &lat)) {
		a.valid = 1;
		a.ops = period;
		a.cycles = (double)lat * period;
		compare_latency(d->compare, k, ibs_lat_bucket(lat), period);
	}
	a.base = d->per == DIFF_PER_ACCESS && !a.valid ? 0 : period;
	compare_add(d->compare, find(&f->row, ev), k, &a);
	diff_heat_add(d, side, ev->sample.has_time ? ev->time : 0,
		      a.valid ? ibs_lat_bucket(lat) : 0, &a);
	if (d->folded[side])
		folded_add(d->folded[side], ev);
}

/* @split: NULL: all is of @side */
static int add_samples(struct diff *d, enum compare_side side, const struct diff_split *split,
		       struct recorded *in, struct err *err)
{
	const bool strata = trace_has_strata(in->head.info);
	const struct blocks blocks = start_blocks(d, side, in->trace);
	struct finders f = {};
	struct trace_event ev;
	int ret;

	finders_start(&f, d, split, in);
	while ((ret = recorded_next(in, &ev, err)) > 0) {
		__u64 period;

		if (!choose_side(&f, split, &ev, &side))
			continue;
		if (split && split->now && side == COMPARE_B)
			split->now(split->ctx, &ev);
		period = ops_of(d, in->head.info, &ev, &d->about[side].units);
		if (!period && !strata) {
			ret = -EAGAIN;
			break;
		}
		add_sample(d, side, &f, &ev, time_of(&blocks, &ev), period);
	}
	finders_end(&f);
	return ret;
}

int diff_add_recording(struct diff *d, enum compare_side side, struct recorded *in, struct err *err)
{
	struct diff_about *about = &d->about[side];

	describe(about, in->head.info, in->kind);
	snprintf(about->metric, sizeof(about->metric), "%s", metric_name(d->metric));
	start_chains(d, side, in);
	return add_samples(d, side, NULL, in, err);
}

int diff_add_split(struct diff *d, const struct diff_split *split, struct recorded *in,
		   struct err *err)
{
	for (int side = 0; side < COMPARE_SIDES; side++) {
		describe(&d->about[side], in->head.info, in->kind);
		snprintf(d->about[side].metric, sizeof(d->about[side].metric), "%s",
			 metric_name(d->metric));
	}
	return add_samples(d, COMPARE_A, split, in, err);
}
