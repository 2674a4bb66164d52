// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why: what a container waits for now that it did not before, by the counters of a running collector. */
#include "cmd.h"
#include "cmd_why.h"
#include "base/array.h"
#include "base/choice.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/num.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/utf8.h"
#include "collector/control.h"
#include "flight/flight_dir.h"
#include "neighbours/neighbours.h"
#include "pins/pinned.h"
#include "status/reading.h"

#include <math.h>
#include <poll.h>
#include <unistd.h>

#define WINDOW_S  1.
#define DEFAULT_S 30.
#define CHOOSE	  5 /* windows that tell which container waits most */

/* Keys of rows, if they are counted; the first that is says where in the container it changed. */
static const enum label rows_by[] = { LABEL_COMM, LABEL_MEM_NODE, LABEL_NODE, LABEL_CCX,
				      LABEL_MODE };

struct why {
	const struct why_now *of;

	struct pinned *pins;
	struct ibs_meta meta;
	struct snapshot before;	       /* everything that was counted until now */
	struct snapshot first[CHOOSE]; /* windows until the container is chosen */
	size_t n_first, n_windows;
	__u32 name;	     /* of the container; INTERN_NONE: not chosen yet */
	struct intern names; /* of containers */
	struct diff diff;
	struct compare_result result;
	struct neighbours *neighbours; /* NULL: not grouped by complex */
	struct totals {
		double *of,
			all; /* miss cycles by the number of a name; latencies if no estimate is known */
		size_t n;
	} totals_before, totals_now;
	struct screen screen;
	int sigfd;
};

/* --- groups --- */

/*
 * The number of "namespace/pod/container", or of the path of the cgroup; INTERN_NONE: the samples of groups that found
 * no counters of their own.
 */
static __u32 name_of(struct why *w, const struct group *g)
{
	struct ibs_slot_name n;
	char text[sizeof(n.name_space) + sizeof(n.pod) + sizeof(n.container) + sizeof(n.cgroup)];

	pinned_name(w->pins, g, &n);
	if (g->other)
		return INTERN_NONE;
	if (!*n.container && !*n.pod && !*n.cgroup)
		snprintf(text, sizeof(text), "#%llu", g->key.cgroup_id);
	else if (!*n.container && !*n.pod)
		snprintf(text, sizeof(text), "%s", n.cgroup);
	else
		snprintf(text, sizeof(text), "%s%s%s%s%s", n.name_space, *n.name_space ? "/" : "",
			 n.pod, *n.pod && *n.container ? "/" : "", n.container);
	return intern_get(&w->names, text);
}

static const char *text_of(const struct why *w, __u32 id)
{
	return intern_text(&w->names, id);
}

static void add_totals(struct why *w, const struct snapshot *s, struct totals *t)
{
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];
		__u32 id = name_of(w, g);
		double cycles = 0;

		for (size_t j = 0; j < g->n_series; j++)
			cycles += g->series[j].cycles ?: g->series[j].sum;
		t->all += cycles;
		if (id == INTERN_NONE)
			continue;
		array_reserve_zero(t->of, t->n, id + 1);
		t->of[id] += cycles;
	}
}

static double share_of(const struct totals *t, __u32 id)
{
	return id < t->n && t->all > 0 ? t->of[id] / t->all : 0;
}

static int open_pins(struct why *w, struct err *err)
{
	int ret = pinned_open(w->of->pin_dir, &w->pins, err);

	if (ret)
		return ret;
	pinned_meta(w->pins, &w->meta);
	if (!collector_alive(&w->meta))
		return err_set(err, -ESRCH,
			       "no collector is running with pins in %s: start `ibscope serve`",
			       w->of->pin_dir);
	if (ibs_metric_of_fetch(reading_metric(&w->meta)))
		return err_set(err, -EINVAL, "the collector in %s samples instruction fetches only",
			       w->of->pin_dir);
	if (!(w->meta.layout.by & IBS_BY_CGROUP))
		return err_set(err, -EINVAL,
			       "the collector does not group by container: start it with --by "
			       "container,src");
	return 0;
}

/* --- which container --- */

/* Return: INTERN_NONE if several or none match, with @err. */
static __u32 find_wanted(const struct why *w, struct err *err)
{
	struct suggestion near;
	__u32 found = INTERN_NONE;

	suggestion_start(&near, w->of->wanted, strlen(w->of->wanted));
	for (__u32 id = 0; id < w->names.n; id++) {
		const char *name = text_of(w, id), *part = strrchr(name, '/');

		suggestion_offer(&near, part && *name != '/' ? part + 1 : name);
		if (!why_is_wanted(name, w->of->wanted))
			continue;
		if (found != INTERN_NONE) {
			err_set(err, -ENOTUNIQ, "several containers are called '%s': give %s or %s",
				w->of->wanted, text_of(w, found), name);
			return INTERN_NONE;
		}
		found = id;
	}
	if (found == INTERN_NONE)
		err_set(err, -ENOENT,
			"the collector has counted nothing of '%s'%s; `ibscope top` shows all",
			w->of->wanted, suggestion_text(&near));
	return found;
}

static __u32 find_worst(const struct why *w, struct err *err)
{
	__u32 worst = INTERN_NONE;
	double most = 0;

	for (__u32 id = 0; id < w->totals_now.n; id++)
		if (w->totals_now.of[id] > most) {
			most = w->totals_now.of[id];
			worst = id;
		}
	if (worst == INTERN_NONE)
		err_set(err, -ENODATA, "no container has missed a cache in %zu s", w->n_windows);
	return worst;
}

/* --- comparing --- */

static struct compare_amount amount_of(const struct diff *d, const struct series *s)
{
	const double valid_share = s->samples ? (double)s->valid / s->samples : 0;

	if (d->per == DIFF_PER_ACCESS)
		return (struct compare_amount){ s->samples, s->valid, s->valid, s->valid, s->sum };
	return (struct compare_amount){ s->samples, s->valid, s->ops, s->ops * valid_share,
					s->cycles };
}

static void add_group(struct why *w, enum compare_side side, const struct group *g, size_t window)
{
	static const __u64 none[IBS_LAT_BUCKETS];
	struct compare *c = w->diff.compare;
	char *label = w->diff.n_by ? group_label(g, w->diff.by[0], NULL, NULL) : NULL;
	const char *name[1] = { label };
	__u32 row = compare_row(c, name, w->diff.n_by);

	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		struct compare_amount a = amount_of(&w->diff, s);
		unsigned int cause = compare_cause(c, src_name(s->src));

		if (side == COMPARE_A) {
			compare_spread(c, side, row, cause, &a, s->buckets ?: none);
			continue;
		}
		compare_at(c, side, 1 + window * COMPARE_SECOND);
		compare_add(c, row, cause, &a);
		for (unsigned int b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++)
			if (s->buckets[b])
				compare_latency(c, cause, b, s->buckets[b] * (a.ops / a.valid));
	}
	free(label);
}

static void add_counts(struct why *w, enum compare_side side, const struct snapshot *s,
		       size_t window)
{
	for (size_t i = 0; i < s->n_groups; i++)
		if (name_of(w, &s->groups[i]) == w->name)
			add_group(w, side, &s->groups[i], window);
}

static bool estimates_known(const struct snapshot *s)
{
	for (size_t i = 0; i < s->n_groups; i++)
		for (size_t j = 0; j < s->groups[i].n_series; j++) {
			const struct series *x = &s->groups[i].series[j];

			if (!x->ops || (x->sum && !x->cycles))
				return false;
		}
	return true;
}

static void choose_unit(struct why *w)
{
	struct diff_about *a = &w->diff.about[COMPARE_A];
	bool known = estimates_known(&w->before);

	for (size_t i = 0; i < w->n_first; i++)
		known &= estimates_known(&w->first[i]);
	w->diff.per = known ? DIFF_PER_OPS : DIFF_PER_ACCESS;
	a->units = strstr(w->meta.event, "cnt_ctl=1") ? REPORT_OPS : REPORT_CYCLES;
	w->diff.about[COMPARE_B] = *a;
	for (size_t i = 0; i < ARRAY_SIZE(rows_by) && !w->diff.n_by; i++)
		if ((label_info[rows_by[i]].by & w->meta.layout.by) == label_info[rows_by[i]].by)
			w->diff.by[w->diff.n_by++] = rows_by[i];
}

/* Choose the container, unless it was given, and begin to compare. Return: 0 or a negative errno with @err. */
static int begin(struct why *w, struct err *err)
{
	if (w->name == INTERN_NONE)
		w->name = find_worst(w, err);
	if (w->name == INTERN_NONE)
		return -ENODATA;
	choose_unit(w);
	w->diff.compare = compare_new(false, COMPARE_ROUNDS);
	for (int side = 0; side < COMPARE_SIDES; side++)
		compare_width(w->diff.compare, side, COMPARE_SECOND);
	add_counts(w, COMPARE_A, &w->before, 0);
	for (size_t i = 0; i < w->n_first; i++)
		add_counts(w, COMPARE_B, &w->first[i], i);
	return 0;
}

static int finish_comparing(struct why *w, struct err *err)
{
	int ret = compare_finish(w->diff.compare, &w->result, err);

	if (ret != -ENODATA)
		return ret;
	return why_too_few(
		err, text_of(w, w->name), &w->result,
		"use a longer --duration, or a shorter period (`ibscope ctl set period=N`)");
}

/* --- neighbours --- */

static void add_neighbours(struct why *w, const struct snapshot *s)
{
	if (!(w->meta.layout.by & IBS_BY_COMPLEX))
		return;
	if (!w->neighbours)
		w->neighbours = neighbours_new(true);
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];
		struct neighbours_activity a;

		if (neighbours_activity_of(g, &a))
			neighbours_add(w->neighbours, g->key.complex, name_of(w, g), &a);
	}
	neighbours_end_window(w->neighbours, s->time_ns > WINDOW_S * 5e8);
}

static void put_neighbours(const struct why *w)
{
	if (!w->neighbours)
		printf("Neighbours: unknown, as the collector does not group by ccx\n");
	else
		why_put_neighbours(w->neighbours, w->name, &w->names, "--duration 60s");
}

/* --- the answer --- */

static void put_head(const struct why *w)
{
	const struct compare_side_sum *s = w->result.side;
	const struct pmu_state *pmu = &w->before.pmu;
	const double age_s = (clock_ns(CLOCK_REALTIME) - w->meta.start_realtime_ns) / 1e9 -
			     w->n_windows * WINDOW_S;
	char before[32], now[32], sampled[WHY_SAMPLED], *times;

	why_format_sampled(pmu->cpus ? pmu->enabled_ns / 1e9 / pmu->cpus : 0, age_s, sampled);
	screen_percent(&w->screen, share_of(&w->totals_before, w->name), before, sizeof(before));
	screen_percent(&w->screen, share_of(&w->totals_now, w->name), now, sizeof(now));
	if (w->meta.layout.simulated)
		printf("SIMULATED samples, not measurements\n");
	why_put_name(text_of(w, w->name));
	times = xasprintf("Now: %zu s, %s samples; before: %s, %s samples", w->n_windows,
			  TEXT_COUNT(s[COMPARE_B].samples), sampled,
			  TEXT_COUNT(s[COMPARE_A].samples));
	putchar('\n');
	screen_wrap(stdout, times, 2, w->screen.width);
	free(times);
	printf("Its share of all miss cycles: %s now, %s before\n", now, before);
}

/* What shows more of the largest cause. */
static void put_next(const struct why *w)
{
	const char *name = text_of(w, w->name);
	const struct compare_result *r = &w->result;
	const char *cause =
		r->n_findings ? compare_cause_name(w->diff.compare, r->term[0].cause) : "";
	const bool slower = r->n_findings && r->term[0].kind == COMPARE_COST;
	const char *base = strrchr(name, '/');
	const char *selects = *name == '/' ? "--cgroup" : "--container";
	const char *what = *name == '/' ? name : base ? base + 1 : name;
	char *pins = strcmp(w->of->pin_dir, IBS_PIN_DIR) ? xasprintf("--pin-dir=%s", w->of->pin_dir)
							 : xstrdup("");

	if (strstr(cause, "cache") && w->meta.status.lines.on && *w->meta.control)
		screen_next(stdout, &w->screen, "c2c", "--control", w->meta.control, NULL);
	if (w->meta.status.flight_on)
		screen_next(stdout, &w->screen, "ctl", pins, "dump", NULL);
	else if (r->n_findings)
		screen_next(stdout, &w->screen, "record", selects, what, "--", "sleep", "10", NULL);
	if (strstr(cause, "remote"))
		screen_next(stdout, &w->screen, "numa", NULL);
	else if (slower && strstr(cause, "dram") && !w->neighbours)
		screen_next(stdout, &w->screen, "neighbours", "--own", NULL);
	else
		screen_next(stdout, &w->screen, "top", pins, NULL);
	free(pins);
}

/* What the text has no use for. */
static void describe(const struct why *w, struct diff_about *a)
{
	a->file = w->of->pin_dir;
	a->simulated = w->meta.layout.simulated;
	snprintf(a->event, sizeof(a->event), "%.127s", w->meta.event);
	snprintf(a->metric, sizeof(a->metric), "%s", metric_name(reading_metric(&w->meta)));
}

static void put_answer(struct why *w)
{
	screen_of(stdout, &w->screen);
	if (w->of->json) {
		describe(w, &w->diff.about[COMPARE_A]);
		describe(w, &w->diff.about[COMPARE_B]);
		why_put_json(&w->screen, &w->diff, &w->result, text_of(w, w->name), "before", "now",
			     NULL);
		return;
	}
	put_head(w);
	diff_put_answer(stdout, &w->screen, &w->diff, &w->result);
	why_put_where(&w->diff, &w->result);
	why_put_advice(&w->screen, &w->diff, &w->result);
	diff_put_notes(stdout, &w->screen, &w->diff, &w->result);
	put_neighbours(w);
	put_next(w);
}

/* --- reading --- */

static bool wait_until(const struct why *w, double due)
{
	struct pollfd fd = { .fd = w->sigfd, .events = POLLIN };

	while (now_s() < due)
		if (poll(&fd, 1, (int)ceil((due - now_s()) * 1000)) > 0)
			return false;
	return true;
}

/* Takes over @s. Return: 0 or a negative errno with @err. */
static int take_window(struct why *w, struct snapshot *s, struct err *err)
{
	int ret = 0;

	add_totals(w, s, &w->totals_now);
	add_neighbours(w, s);
	w->n_windows++;
	if (!w->diff.compare) {
		w->first[w->n_first++] = *s;
		return w->name != INTERN_NONE || w->n_first == CHOOSE ? begin(w, err) : 0;
	}
	if (w->diff.per == DIFF_PER_OPS && !estimates_known(s))
		ret = err_set(err, -EAGAIN,
			      "the collector has lost its estimates meanwhile; try again");
	add_counts(w, COMPARE_B, s, w->n_windows - 1);
	snapshot_free(s);
	return ret;
}

/* @last: everything that was counted until now; freed */
static int read_windows(struct why *w, struct snapshot *last, struct err *err)
{
	const size_t n = floor((w->of->duration_s ?: DEFAULT_S) / WINDOW_S);
	const double start = now_s();
	int ret = 0;

	while (!ret && w->n_windows < n && wait_until(w, start + (w->n_windows + 1) * WINDOW_S)) {
		struct snapshot now, window;

		ret = pinned_snapshot(w->pins, &now, err);
		if (ret)
			break;
		snapshot_diff(&now, last, &window);
		snapshot_free(last);
		*last = now;
		pinned_meta(w->pins, &w->meta);
		ret = take_window(w, &window, err);
		if (!ret && !collector_alive(&w->meta))
			ret = err_set(err, -ESRCH, "the collector with pins in %s has stopped",
				      w->of->pin_dir);
	}
	snapshot_free(last);
	if (!ret && !w->n_windows)
		ret = err_set(err, -EINTR, "interrupted before a second had passed");
	if (!ret && !w->diff.compare)
		ret = begin(w, err);
	return ret;
}

static int run(struct why *w, struct err *err)
{
	struct snapshot all;
	int ret;

	w->sigfd = signals_open(false, err);
	if (w->sigfd < 0)
		return w->sigfd;
	ret = open_pins(w, err) ?: pinned_snapshot(w->pins, &all, err);
	if (ret)
		return ret;
	snapshot_diff(&all, NULL, &w->before); /* with estimates by tags, if only these are known */
	add_totals(w, &w->before, &w->totals_before);
	if (w->of->wanted)
		w->name = find_wanted(w, err);
	if (w->of->wanted && w->name == INTERN_NONE) {
		snapshot_free(&all);
		return -ENOENT;
	}
	ret = read_windows(w, &all, err) ?: finish_comparing(w, err);
	if (!ret)
		put_answer(w);
	return ret;
}

static void finish(struct why *w)
{
	compare_result_free(&w->result);
	compare_free(w->diff.compare);
	neighbours_free(w->neighbours);
	for (size_t i = 0; i < w->n_first; i++)
		snapshot_free(&w->first[i]);
	free(w->totals_before.of);
	free(w->totals_now.of);
	snapshot_free(&w->before);
	intern_free(&w->names);
	pinned_close(w->pins);
	if (w->sigfd >= 0)
		close(w->sigfd);
}

int why_now_answer(const struct why_now *of, struct err *err)
{
	struct why w = { .of = of, .name = INTERN_NONE, .sigfd = -1 };
	const int ret = run(&w, err);

	finish(&w);
	return ret;
}
