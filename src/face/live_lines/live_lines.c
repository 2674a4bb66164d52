// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The hot lines of a running sampler, as the tables of c2c. */
#include "live_lines.h"

#include "base/choice.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "capture/record_info.h"
#include "trace/tasks.h"

#include <math.h>

int live_lines_check_selection(const struct select_options *o, struct err *err)
{
	const struct selection *sel = &o->sel;
	const struct lines_selection hides = {
		.src_mask = sel->src_mask,
		.op_mask = sel->op_mask,
		.min_lat = sel->min_lat,
		.max_lat = sel->max_lat,
		.filter = o->filter[o->filter_options.fetch].text,
	};
	struct err why;

	if (!lines_hidden(&hides, &why))
		return 0;
	return err_set(err, -EINVAL,
		       "%s: sharing cannot be judged; `ibscope report --by line --phys` prints the "
		       "lines of such a selection",
		       why.text);
}

int live_lines_feed(const char *arg, __u32 *feed, struct err *err)
{
	struct choices c = { "--feed", "kind of sample", line_feed_name, 0 };
	unsigned int list[32], n = 0;
	int ret;

	while (line_feed_name(c.n))
		c.n++;
	ret = choice_list_parse(&c, arg, list, &n, err);
	for (*feed = 0; n--;)
		*feed |= line_feed_bits(list[n]);
	if (!ret && (*feed & IBS_LINE_FEED_SHARING) != IBS_LINE_FEED_SHARING)
		ret = err_set(err, -EINVAL,
			      "--feed: invalid list '%s': sharing cannot be judged without stores "
			      "and caches; add them",
			      arg);
	return ret;
}

int live_lines_prepare(struct sampling_opts *s, __u32 feed, struct err *err)
{
	struct trace_pmu pmu = { .op = true };
	const struct trace_info info = { .format = "ibscope", .pmu = &pmu, .n_pmus = 1 };
	struct err why;
	int ret = live_lines_check_selection(&s->select, err);

	if (ret)
		return ret;
	if (sampling_of_fetch(s))
		return err_set(err, -EINVAL, "-e %s: samples of ibs_fetch have no data addresses",
			       s->events);
	/* s->events may name a second event */
	pmu.config = event_term(&s->event[0].spec, "l3missonly") << 16;
	pmu.config1 = event_term(&s->event[0].spec, "ldlat") |
		      event_term(&s->event[0].spec, "strmst") << 12;
	if (lines_hidden_in(&info, &why))
		return err_set(err, -EINVAL, "-e %s: %s: sharing cannot be judged", s->events,
			       why.text);
	s->sampler.line_sets = IBS_LINE_SETS;
	s->sampler.line_feed = feed ?: IBS_LINE_FEED_SHARING;
	return 0;
}

static int add_task(const struct trace_event *ev, void *arg, struct err *err)
{
	(void)err;
	tasks_add(arg, ev);
	return 0;
}

int live_lines_names(struct tasks *tasks, struct session *s, const struct hot_window *w,
		     struct err *err)
{
	struct task_choice choice = { 0 };
	int ret = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct ibs_line_detail *d = &w->detail[i].d;

		for (int k = 0; k < 2; k++) {
			const struct ibs_line_user *u = k ? &d->writer : &d->reader;
			struct trace_event ev = { .kind = TRACE_CGROUP, .time = 1 };

			if (!u->ip && !u->tid)
				continue;
			if (!choice.pids)
				ret = task_choice_init(&choice, &u->tgid, 1, false);
			task_choice_add(&choice, u->tgid);
			if (s) {
				capture_name_cgroup(s, u->cgroup_id, &ev);
				ret = ret ?: add_task(&ev, tasks, err);
			}
		}
	}
	if (choice.pids)
		ret = ret ?: task_events_now("", &choice, true, 1, add_task, tasks, err);
	task_choice_free(&choice);
	return ret;
}

static int print_window(const struct lines_print *like, struct session *s,
			const struct hot_window *window, const struct ledger *ledger,
			struct err *err)
{
	const struct trace_end end = { .whole = true, .has_ledger = true, .ledger = *ledger };
	struct trace_info info = { 0 };
	struct trace_pmu pmu = { 0 };
	const struct lines_opts opts = { .info = &info, .metric = IBS_METRIC_DC_MISS_LAT };
	const struct symbols_opts of = { .info = &info };
	struct report_head head = { .file = "",
				    .info = &info,
				    .end = &end,
				    .options = "",
				    .op_samples = ledger->seen,
				    .selected = ledger->outcome[IBS_OUTCOME_AGGREGATED] };
	struct lines_print print = *like;
	struct symbols *symbols = NULL;
	struct tasks *tasks = NULL;
	struct line_set *set;
	struct screen screen;
	int ret;

	record_info(&info, &pmu, s, 1);
	set = lines_new(&opts);
	lines_add_window(set, window);
	tasks = tasks_new();
	ret = live_lines_names(tasks, s, window, err);
	ret = ret ?: symbols_new(&of, &symbols, err);
	screen_of(stdout, &screen);
	print.screen = &screen;
	print.sampled = true;
	print.metric = opts.metric;
	print.head = &head;
	print.tasks = tasks;
	print.symbols = symbols;
	if (!ret)
		ret = lines_print(stdout, &print, lines_finish(set), err) ? 1 : 0;
	fflush(stdout);
	symbols_free(symbols);
	tasks_free(tasks);
	lines_free(set);
	return ret;
}

struct hot_window *live_lines_window(struct session *s, size_t most, double share)
{
	const struct session_event *e = session_event(s, 0);
	struct hot_table *table = xcalloc(e->opts.n_cpus, sizeof(*table));
	const struct hot_tables tables = {
		.table = table,
		.n = e->opts.n_cpus,
		.sets = e->opts.line_sets,
		.period = e->opts.count_ops ? 0 : llround(sampler_period(e->sampler) / share),
		.weighed = e->opts.count_ops,
		.feed = e->opts.line_feed,
		.time = clock_ns(CLOCK_MONOTONIC),
		.ibs = e->opts.ibs
	};
	struct hot_window *out;

	sampler_lines_next(e->sampler);
	for (size_t i = 0; i < tables.n; i++)
		table[i] =
			(struct hot_table){ sampler_lines(e->sampler, i, false), e->opts.cpus[i] };
	out = hot_window_new(&tables, most);
	free(table);
	return out;
}

int live_lines_print(const struct lines_print *print, struct session *s,
		     const struct snapshot *interval, struct err *err)
{
	/* as hist, which scales by CPU: what happened while another user had the PMU was like the rest */
	struct hot_window *window = live_lines_window(s, SIZE_MAX, 1 / pmu_scale(&interval->pmu));
	int ret = print_window(print, s, window, &interval->ledger, err);

	free(window);
	return ret;
}
