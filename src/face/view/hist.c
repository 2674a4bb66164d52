// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hist.h"
#include "base/std.h"

#include "table/table.h"
#include "pager.h"
#include "base/text.h"

#include <math.h>
#include <time.h>

#define BAR_WIDTH 40
#define MAX_LINES 20
#define MIN_LINES 4

#define PIPE_ROWS      20
#define MIN_ROWS       5
#define OTHER_LINES    13 /* with what to do next and the prompt */
#define RECORDED_LINES 2

static const struct {
	const char *name;
	double q;
} percentiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 } };
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static void print_percentiles(FILE *f, const struct series *s)
{
	fprintf(f, "  mean %.0f", series_mean(s));
	for (size_t i = 0; i < PERCENTILES; i++) {
		long p = series_percentile(s, percentiles[i].q);

		if (p < 0)
			fprintf(f, "  %s -", percentiles[i].name);
		else
			fprintf(f, "  %s %ld", percentiles[i].name, p);
	}
	fprintf(f, "  of %s\n", TEXT_COUNT(s->valid));
}

static void print_bar(FILE *f, __u64 n, __u64 most)
{
	int width = (n * BAR_WIDTH + most - 1) / most;

	for (int i = 0; i < BAR_WIDTH; i++)
		fputc(i < width ? '*' : ' ', f);
}

/* Join buckets, 1, 2, 4 or more per line, to limit the number of lines. */
static void print_bars(FILE *f, const struct series *s)
{
	int first = 0, last = IBS_LAT_BUCKETS - 1, join = 1, lines = MAX_LINES;
	const __u64 *n_of = s->buckets;
	__u64 most = 0;

	if (s->strata && s->valid)
		n_of = s->strata->buckets;
	/* few samples show no shape: do not spread them out */
	if (s->valid < MAX_LINES)
		lines = s->valid < MIN_LINES ? MIN_LINES : s->valid;

	while (!n_of[first])
		first++;
	while (!n_of[last])
		last--;
	/* bucket 0 has its own line, so that lines end at multiples of the step: 8, 16, 32, ... */
	while ((last + join - 1) / join - (first + join - 1) / join >= lines)
		join *= 2;
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			fprintf(f, "  %16s : %-10s |%-*s|\n", "cycles",
				s->strata ? "est. ops" : "samples", BAR_WIDTH, "distribution");
		for (int line = (first + join - 1) / join; line <= (last + join - 1) / join;
		     line++) {
			int from = line ? (line - 1) * join + 1 : 0, to = line * join;
			__u64 n = 0;

			for (int i = from; i <= to && i < IBS_LAT_BUCKETS; i++)
				n += n_of[i];
			if (!pass) {
				most = n > most ? n : most;
				continue;
			}
			if (to >= IBS_LAT_BUCKETS)
				to = IBS_LAT_BUCKETS - 1;
			fprintf(f, "  %6u .. %-6u : %-10s |", from ? ibs_lat_le(from - 1) + 1 : 0,
				ibs_lat_le(to), TEXT_COUNT(n));
			print_bar(f, n, most);
			fprintf(f, "|\n");
		}
	}
}

/* Half the 95 % interval of estimates, relative to them, because another user had the PMU; NAN: unknown. */
static double running_error(const struct pmu_state *pmu)
{
	return ESTIMATE_Z * pmu_share_error(pmu);
}

static void print_pmu(FILE *f, const struct pmu_state *pmu)
{
	const double error = running_error(pmu);

	if (pmu->throttled)
		fprintf(f, "throttled by the kernel: %s time%s\n", TEXT_COUNT(pmu->throttled),
			text_plural(pmu->throttled));
	if (pmu->went || pmu->came)
		fprintf(f, "CPUs: %s went offline, %s came online\n", TEXT_COUNT(pmu->went),
			TEXT_COUNT(pmu->came));
	if (pmu->running_ns < pmu->enabled_ns) {
		fprintf(f,
			"PMU share: %.1f %% of the time; another user has the rest, and estimates "
			"are scaled up",
			100.0 * pmu->running_ns / pmu->enabled_ns);
		if (!isnan(error))
			fprintf(f, ", which makes them uncertain by %.1f %%", 100 * error);
		fputc('\n', f);
	}
}

/* Below the ledger, which is the sum: those of the strata. */
static void print_strata(FILE *f, const struct strata_report *r)
{
	const struct strata_slice all = strata_total(&r->design, STRATUM_N);

	for (enum stratum of = 0; of < STRATUM_N; of++) {
		const struct strata_slice s = strata_total(&r->design, of);

		fprintf(f, "%s stratum, %.0f %% of the time, %s, period %llu: ", stratum_name(of),
			all.seconds > 0 ? 100 * s.seconds / all.seconds : 0, r->event[of],
			r->period[of]);
		ledger_print(f, &r->ledger[of]);
		fputc('\n', f);
	}
}

static void print_recorded(FILE *f, const struct hist_recorded *r)
{
	if (r->ledger) {
		fprintf(f, "while recording: ");
		ledger_print(f, r->ledger);
		fputc('\n', f);
	}
	if (r->lost)
		fprintf(f, "%s records were lost while recording\n", TEXT_COUNT(r->lost));
	if (!r->whole)
		fprintf(f, "the recording is incomplete\n");
}

void hist_print_row(FILE *f, const struct hist_info *info, const struct label_order *order,
		    const struct table_row *r)
{
	const struct series *s = &r->all;
	const char *sep = "";

	for (int i = 0; i < TABLE_NAMES; i++) {
		int l = label_at(order, i);

		if (!r->name[l])
			continue;
		fprintf(f, "%s%s", sep, r->name[l]);
		sep = ", ";
	}
	fprintf(f, ": %s samples", TEXT_COUNT(s->samples));
	if (s->valid < s->samples)
		fprintf(f, ", %s without %s", TEXT_COUNT(s->samples - s->valid),
			metric_name(info->metric));
	fputc('\n', f);
	if (!s->valid)
		return;
	print_percentiles(f, s);
	print_bars(f, s);
}

static void print_header(FILE *f, const struct screen *screen, const struct hist_info *info,
			 struct snapshot *interval)
{
	char period[32];

	if (info->simulated)
		fprintf(f, "SIMULATED samples, not measurements\n");
	fprintf(f, "%.1f s on %u CPU%s, %s", interval->time_ns / 1e9, interval->pmu.cpus,
		text_plural(interval->pmu.cpus), info->event);
	if (info->period) {
		screen_count(screen, info->period, period, sizeof(period));
		fprintf(f, ", period %s", period);
	}
	if (info->metric != IBS_METRIC_DC_MISS_LAT && info->metric != IBS_METRIC_FETCH_LAT)
		fprintf(f, ", latency is %s", metric_name(info->metric));
	fputs("\n\n", f);
}

/* Number of rows that leaves room for header, rest, total, ledger and prompt. */
static size_t rows_that_fit(const struct screen *screen, const struct hist_info *info)
{
	unsigned int other = OTHER_LINES + (info->recorded ? RECORDED_LINES : 0);

	if (!screen->height)
		return PIPE_ROWS;
	return screen->height > other + MIN_ROWS ? screen->height - other : MIN_ROWS;
}

/* The lines below the table. */
static void print_below(FILE *f, const struct screen *screen, const struct hist_view *v,
			const struct hist_info *info, struct snapshot *interval,
			const struct table *t, cgroup_namer name, void *arg)
{
	for (size_t i = 0; v->histograms && i < t->n; i++) {
		fputc('\n', f);
		hist_print_row(f, info, &t->order, &t->row[i]);
	}
	fetch_verdict(f, screen, interval, info->metric, name, arg);
	fputc('\n', f);
	ledger_print(f, &interval->ledger);
	fputc('\n', f);
	if (interval->strata)
		print_strata(f, interval->strata);
	table_print_trust(f, screen, t);
	print_pmu(f, &interval->pmu);
	if (info->recorded)
		print_recorded(f, info->recorded);
}

/* The option that selects the samples of the first row, or "". */
static const char *option_of(const struct table *t, const char **name)
{
	const struct table_row *r = t->n ? &t->row[0] : &t->total;

	*name = r->name[0];
	if (t->joined)
		return !table_is_selectable(*name) ? ""
		       : **name == '/'		   ? "--cgroup"
						   : "--container";
	for (size_t i = 0; i < TABLE_OPTIONS; i++) {
		*name = r->name[table_options[i].label];
		if (table_is_selectable(*name))
			return table_options[i].option;
	}
	return "";
}

/* Suggest what shows more of the first row. */
static void print_next(FILE *f, const struct screen *screen, const struct hist_info *info,
		       const struct table *t)
{
	const bool fetch = ibs_metric_of_fetch(info->metric);
	const char *event = fetch ? "--event=ibs_fetch//" : "";
	const char *sim = info->simulated ? "--source=sim" : "";
	const char *name, *option = option_of(t, &name);

	if (!*option)
		name = "";
	if (info->recorded) {
		screen_next(f, screen, "report", info->recorded->file, event, "--by",
			    fetch ? "symbol,fetch" : "symbol,src", option, name, NULL);
		return;
	}
	if (table_groups_by(t, fetch ? LABEL_FETCH : LABEL_SRC))
		screen_next(f, screen, "record", sim, event, "-a", "--", "sleep", "10", NULL);
	else
		screen_next(f, screen, "hist", sim, event, option, name, "--by",
			    fetch     ? "fetch"
			    : *option ? "src"
				      : "comm,src",
			    "10", "1", NULL);
	screen_next(f, screen, "top", sim, event, NULL);
}

void hist_print_text(FILE *f, const struct screen *screen, const struct hist_view *v,
		     const struct hist_info *info, struct snapshot *interval, unsigned int labels,
		     cgroup_namer name, void *arg)
{
	struct table t;
	char *above, *below;
	size_t size;
	FILE *lines = xmemopen(&above, &size);

	print_header(lines, screen, info, interval);
	xmemclose(lines);
	table_build(interval, info->metric, labels ?: TABLE_LABELS,
		    v->opts.has_sort ? v->opts.sort : TABLE_CURRENCY, 0, name, arg, &t);
	table_rank_weak(&t, v->opts.top ?: rows_that_fit(screen, info), !v->opts.top);
	t.order = v->order;
	format_lines(f, v->opts.format, above);
	if (t.n)
		format_table(f, v->opts.format, screen, &t,
			     v->opts.n_columns ? v->opts.columns : NULL, v->opts.n_columns);
	lines = xmemopen(&below, &size);
	fputs(t.n ? "" : "no samples\n", lines);
	print_below(lines, screen, v, info, interval, &t, name, arg);
	xmemclose(lines);
	format_lines(f, v->opts.format, below);
	if (!v->opts.format && !v->goes_on)
		print_next(f, screen, info, &t);
	table_free(&t);
	free(above);
	free(below);
}

static void print_csv(FILE *f, struct hist_view *v, const struct hist_info *info,
		      struct snapshot *interval, unsigned int labels, cgroup_namer name, void *arg)
{
	struct table t;

	table_build(interval, info->metric, labels ?: TABLE_LABELS,
		    v->opts.has_sort ? v->opts.sort : TABLE_CURRENCY, v->opts.top, name, arg, &t);
	t.order = v->order;
	table_print_csv(f, &t, info->simulated, !v->header_printed);
	v->header_printed = true;
	table_free(&t);
}

static void put_interval(struct json_writer *w, const char *key, bool known, double low,
			 double high)
{
	if (!known) {
		json_put_null(w, key);
		return;
	}
	json_begin_object(w, key);
	json_put_double(w, "low", rint(low));
	json_put_double(w, "high", rint(high));
	json_end(w);
}

static void put_percentiles(struct json_writer *w, const struct series *s)
{
	for (size_t i = 0; i < PERCENTILES; i++) {
		long p = series_percentile(s, percentiles[i].q);

		json_put_known(w, percentiles[i].name, p >= 0, p);
	}
	for (size_t i = 0; i < PERCENTILES; i++) {
		char key[32];
		long low = 0, high = 0;
		const bool known = series_percentile_interval(s, percentiles[i].q, &low, &high);

		snprintf(key, sizeof(key), "%s_interval", percentiles[i].name);
		put_interval(w, key, known, low, high);
	}
}

/* What a row of strata has in addition. */
static void put_weighted(struct json_writer *w, const struct series *s)
{
	double low = 0, high = 0;
	const bool known = series_ops_interval(s, &low, &high);

	put_interval(w, "estimated_ops_interval", known, low, high);
	json_begin_array(w, "ops_buckets");
	for (int i = 0; i < IBS_LAT_BUCKETS; i++) {
		if (!s->strata->buckets[i])
			continue;
		json_begin_array(w, NULL);
		json_put_u64(w, NULL, ibs_lat_le(i));
		json_put_u64(w, NULL, s->strata->buckets[i]);
		json_end(w);
	}
	json_end(w);
}

static void put_row(struct json_writer *w, const struct row *r, const struct label_order *order,
		    double drawn)
{
	const struct series *s = &r->series;
	const double cycles = series_miss_cycles(s);
	const struct bounds b = series_interval(s, drawn);

	json_begin_object(w, NULL);
	json_begin_object(w, "labels");
	for (int i = 0; i < LABEL_N; i++)
		if (r->label[label_at(order, i)])
			json_put_text(w, label_name(label_at(order, i)),
				      r->label[label_at(order, i)]);
	json_end(w);
	json_put_u64(w, "samples", s->samples);
	json_put_u64(w, "valid", s->valid);
	json_put_u64(w, "sum", s->sum);
	json_put_known(w, "estimated_ops", s->ops, s->ops);
	json_put_double(w, "miss_cycles", cycles);
	json_put_double(w, "low", isnan(cycles) ? cycles : b.low);
	json_put_double(w, "high", isnan(cycles) ? cycles : b.high);
	json_put_double(w, "remote_price", rint(s->price) + 0.0);
	if (s->open_n) {
		json_begin_object(w, "open_requests");
		json_put_u64(w, "samples", s->open_n);
		json_put_u64(w, "sum", s->open);
		json_end(w);
	} else {
		json_put_null(w, "open_requests");
	}
	json_put_known(w, "hitm_cycles", s->state_n && !isnan(cycles), s->hitm);
	json_put_known(w, "exposed_cycles", !isnan(series_exposed(s)), s->exposed);
	put_percentiles(w, s);
	series_put_buckets(w, s);
	if (s->strata)
		put_weighted(w, s);
	json_end(w);
}

static void put_strata(struct json_writer *w, const struct strata_report *r)
{
	json_begin_array(w, "strata");
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		const struct strata_slice s = strata_total(&r->design, of);

		json_begin_object(w, NULL);
		json_put_text(w, "name", stratum_name(of));
		json_put_text(w, "event", r->event[of]);
		json_put_u64(w, "period", r->period[of]);
		json_put_u64(w, "slices", strata_slices(&r->design, of));
		json_put_double(w, "seconds", s.seconds);
		json_put_double(w, "ops", s.ops);
		json_put_double(w, "tagged", s.tags);
		ledger_put(w, &r->ledger[of]);
		json_end(w);
	}
	json_end(w);
}

static void put_recorded(struct json_writer *w, const struct hist_recorded *r)
{
	json_begin_object(w, "recorded");
	json_put_bool(w, "whole", r->whole);
	json_put_u64(w, "lost", r->lost);
	if (r->ledger)
		ledger_put(w, r->ledger);
	else
		json_put_null(w, "ledger");
	json_end(w);
}

static void put_time(struct json_writer *w, const char *key, __u64 ns)
{
	time_t s = ns / 1000000000;
	char text[64];
	size_t n = strftime(text, sizeof(text), "%FT%T", gmtime(&s));

	snprintf(text + n, sizeof(text) - n, ".%03uZ", (unsigned int)(ns / 1000000 % 1000));
	json_put_text(w, key, text);
}

static void print_json(FILE *f, const struct hist_info *info, struct snapshot *interval,
		       const struct rows *rows, const struct label_order *order)
{
	const struct pmu_state *pmu = &interval->pmu;
	struct json_writer w = { .f = f, .precision = 9 };

	json_begin_object(&w, NULL);
	json_put_text(&w, "event", info->event);
	json_put_text(&w, "source", info->source);
	json_put_bool(&w, "simulated", info->simulated);
	json_put_known(&w, "period", info->period, info->period);
	json_put_double(&w, "interval_s", interval->time_ns / 1e9);
	json_put_text(&w, "metric", metric_name(info->metric));
	json_put_u64(&w, "cpus", pmu->cpus);
	json_put_u64(&w, "cpus_went_offline", pmu->went);
	json_put_u64(&w, "cpus_came_online", pmu->came);
	json_put_u64(&w, "throttled", pmu->throttled);
	json_put_double(&w, "running",
			pmu->enabled_ns ? (double)pmu->running_ns / pmu->enabled_ns : (double)NAN);
	json_put_double(&w, "running_error", pmu->enabled_ns ? running_error(pmu) : (double)NAN);
	ledger_put(&w, &interval->ledger);
	if (interval->strata)
		put_strata(&w, interval->strata);
	if (info->end_ns)
		put_time(&w, "end", info->end_ns);
	if (info->since_ns)
		put_time(&w, "counted_since", info->since_ns);
	if (info->recorded)
		put_recorded(&w, info->recorded);
	json_begin_array(&w, "series");
	for (size_t i = 0; i < rows->n; i++)
		put_row(&w, &rows->row[i], order,
			interval->ledger.pmu_exact ? interval->ledger.pmu_samples : 0);
	json_finish(&w);
}

int hist_print(FILE *f, struct hist_view *v, const struct hist_info *info,
	       struct snapshot *interval, unsigned int labels, cgroup_namer name, void *arg,
	       struct err *err)
{
	const unsigned int usual =
		labels_of_event(LABELS_DEFAULT, ibs_metric_of_fetch(info->metric));
	struct pager pager = { .f = f, .to = f };
	struct screen screen;
	struct rows rows;

	snapshot_prices(interval, info->metric);
	for (size_t i = 0; i < interval->n_groups; i++)
		group_weigh_series(&interval->groups[i]); /* not yet done for totals */
	if (v->opts.format == FORMAT_CSV) {
		print_csv(f, v, info, interval, labels, name, arg);
	} else if (format_is_text(v->opts.format)) {
		screen_of(f, &screen);
		hist_print_text(v->goes_on ? f : pager_open(&pager, f), &screen, v, info, interval,
				labels, name, arg);
	} else {
		rows_build(interval, labels ?: usual, name, arg, &rows);
		print_json(f, info, interval, &rows, &v->order);
		rows_free(&rows);
	}
	return pager_close(&pager, err);
}
