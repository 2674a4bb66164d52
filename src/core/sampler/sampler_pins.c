// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters that outlive the sampler. */
#include "sampler_private.h"

#include "base/text.h"
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compare the shape of a map; the layouts match. Hashes may differ in size, arrays may not. */
static bool is_same_map(const struct bpf_map *map, int fd)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == bpf_map__type(map) &&
	       info.key_size == bpf_map__key_size(map) &&
	       info.value_size == bpf_map__value_size(map) &&
	       (info.type != BPF_MAP_TYPE_ARRAY || info.max_entries == bpf_map__max_entries(map));
}

/* Return: 1 resumed, 0 start from zero, or a negative errno with @err. */
static int reuse(struct sampler *s, const struct sampler_opts *opts,
		 const struct ibs_meta_layout *layout, const char **why, struct err *err)
{
	int ret;

	for (int pin = 0; pin < IBS_PIN_META; pin++)
		if (!is_same_map(sampler_map(s, pin), pins_fd(opts->pins, pin)))
			return pins_reject(opts->pins, pin, why, err);
	ret = pins_convert(opts->pins, err);
	if (ret)
		return ret;
	ret = pins_balance(opts->pins, layout, err);
	if (ret && ret != -EUCLEAN)
		return ret;
	if (ret) {
		*why = "they do not add up, since another program wrote to them";
		pins_disown(opts->pins);
		return 0;
	}
	for (int pin = 0; pin < IBS_PIN_META; pin++) {
		int e = bpf_map__reuse_fd(sampler_map(s, pin), pins_fd(opts->pins, pin));

		if (e)
			return err_set(err, e, "cannot resume the pinned map %s: %s",
				       bpf_map__name(sampler_map(s, pin)), strerror(-e));
	}
	return 1;
}

int sampler_pins_adopt(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct ibs_meta_layout layout;
	const char *why;
	int ret;

	if (!opts->pins)
		return 0;
	sampler_layout(s, opts, &layout);
	ret = pins_adopt(opts->pins, &layout, &why, err);
	if (ret > 0)
		ret = reuse(s, opts, &layout, &why, err);
	if (ret < 0)
		return ret;
	s->not_adopted = why;
	s->adopted = ret;
	return 0;
}

/* What is replaced now. */
static void warn_not_adopted(const struct sampler *s, const struct pins *pins)
{
	__u64 samples;

	if (pins_rejected(pins, &samples))
		log_warn("the pinned counters cannot be resumed; starting from zero: %s; their "
			 "%s samples are dropped",
			 s->not_adopted, TEXT_COUNT(samples));
	else
		log_warn("the pinned counters cannot be resumed; starting from zero: %s; their "
			 "samples are dropped, and their number is unknown",
			 s->not_adopted);
}

int sampler_pins_put(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct ibs_meta_layout layout;
	int maps[IBS_PIN_META], ret;

	if (!opts->pins)
		return 0;
	for (int pin = 0; pin < IBS_PIN_META; pin++)
		maps[pin] = bpf_map__fd(sampler_map(s, pin));
	sampler_layout(s, opts, &layout);
	ret = pins_finish(opts->pins, &layout, maps, err);
	if (!ret)
		s->state->control.exposed_starts = pins_meta(opts->pins)->starts;
	if (!ret && *s->not_adopted)
		warn_not_adopted(s, opts->pins);
	return ret;
}

/* Latencies of a slot in one shard; see add_series() of counts.c for those of 0 cycles. */
static __u64 count_latencies(const struct layout *l, const __u64 *words)
{
	__u64 n = 0;

	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		const __u64 *w = words + (l->entry[pair] & IBS_LAYOUT_WORD);

		if (!layout_has(l, pair) || !(l->entry[pair] & IBS_LAYOUT_HIST))
			continue;
		for (int b = 0; b < (w[IBS_HIST_SUM] ? IBS_LAT_BUCKETS : 1); b++)
			n += w[IBS_HIST_BUCKET + b];
	}
	return n;
}

/*
 * Exposed cycles are counted from now on, or no longer: see enum ibs_exposed_state. If a build counted that knows nothing of
 * them, or a change was interrupted, they are unknown of all latencies. Call it while nothing samples.
 */
static void change_exposed(struct sampler *s, const struct sampler_opts *opts)
{
	const __u64 starts = pins_meta(opts->pins)->starts;
	struct ibs_control *control = &s->state->control;
	const bool exposed = opts->exposed;
	const __u64 now = exposed ? IBS_EXPOSED_ON : IBS_EXPOSED_OFF;
	const bool known =
		control->exposed != IBS_EXPOSED_CHANGING && control->exposed_starts == starts;

	if (opts->metric != IBS_METRIC_DC_MISS_LAT || (known && control->exposed == now))
		return;
	__atomic_store_n(&control->exposed, IBS_EXPOSED_CHANGING, __ATOMIC_SEQ_CST);
	for (size_t slot = 0; slot < (size_t)s->memory.shards * s->max_slots; slot++) {
		__u64 *words = (__u64 *)s->series.addr + slot * s->layout.words;
		const __u64 n = count_latencies(&s->layout, words);
		const __u64 before = known ? words[IBS_EXPOSED_UNKNOWN] : exposed ? 0 : n;

		if (n)
			words[IBS_EXPOSED_UNKNOWN] = exposed ? before + n : before - n;
	}
	__atomic_store_n(&control->exposed, now, __ATOMIC_SEQ_CST);
}

int sampler_pins_resume(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	const struct ibs_control *control = &s->state->control;
	const struct ibs_meta_status *st;
	struct ledger now;
	int ret;

	if (!s->adopted)
		return 0;
	sampler_fold_repair(s);
	change_exposed(s, opts);
	ret = counts_ledger(&s->counts, &now, err);
	if (ret)
		return ret;
	/* decisions for the old selection are invalid */
	select_renew(&s->select);
	st = &pins_meta(opts->pins)->status;
	s->unseen = st->unseen;
	s->dropped_before = st->dropped;
	s->undelivered_before = st->undelivered;
	s->pmu_before = (struct pmu_state){ .enabled_ns = st->enabled_ns,
					    .running_ns = st->running_ns,
					    .counted = st->counted,
					    .throttled = st->throttled,
					    .went = st->cpus_went,
					    .came = st->cpus_came };
	/* what the PMU counted for a killed collector is unseen, if it is known */
	if (control->pmu_marked == IBS_PMU_ENDED && control->pmu_total > now.seen + s->unseen)
		s->unseen = control->pmu_total - now.seen;
	return 0;
}

int sampler_pins_start(struct sampler *s, struct err *err)
{
	struct ledger now;
	int ret = s->adopted ? counts_ledger(&s->counts, &now, err) : 0;

	if (!ret && s->adopted)
		s->pmu_samples_before = (s->seen_before = now.seen) + s->unseen;
	/* before events are enabled: whoever kills this collector, the next one knows */
	if (!ret)
		sampler_pins_mark(s);
	return ret;
}

void sampler_pins_unmark(struct sampler *s)
{
	if (s->pinned && s->state->control.pmu_marked == IBS_PMU_COUNTS)
		__atomic_store_n(&s->state->control.pmu_marked, IBS_PMU_UNKNOWN, __ATOMIC_RELEASE);
}

struct mark {
	__u32 link, rest;
};

static void set_mark(void *ctx, unsigned int cpu, __u32 link, __u32 rest)
{
	struct mark *marks = ctx;

	marks[cpu] = (struct mark){ link, rest };
}

void sampler_pins_mark(struct sampler *s)
{
	struct ibs_control *control = &s->state->control;
	struct mark *marks;
	__u64 samples;
	bool known;

	if (!s->pinned || !s->events || !s->counts_periods)
		return;
	marks = xcalloc(s->possible_cpus, sizeof(*marks));
	known = perf_events_mark(s->events, set_mark, marks, &samples);
	samples += s->pmu_samples_before;
	if (samples != control->pmu_samples)
		sampler_pins_unmark(s);
	/* before the links: until the last of them is noted, what was noted at the takeover holds */
	if (known)
		__atomic_store_n(&control->pmu_samples, samples, __ATOMIC_RELEASE);
	for (unsigned int cpu = 0; cpu < s->possible_cpus && known; cpu++) {
		struct ibs_cpu_state *st = &s->state->cpu[cpu];

		if (st->link == marks[cpu].link && st->link_rest == marks[cpu].rest)
			continue;
		sampler_pins_unmark(s);
		st->link = marks[cpu].link;
		st->link_rest = marks[cpu].rest;
	}
	free(marks);
	__atomic_store_n(&control->pmu_marked, known ? IBS_PMU_COUNTS : IBS_PMU_UNKNOWN,
			 __ATOMIC_RELEASE);
}

bool sampler_adopted(const struct sampler *s)
{
	return s->adopted;
}
