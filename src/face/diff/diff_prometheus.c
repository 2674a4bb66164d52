// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A window of what a Prometheus server, or one that speaks its protocol, has scraped: counters at each step, as
 * /api/v1/query_range returns them. The answer may be anything.
 */
#include "diff_http.h"
#include "diff_private.h"

#include "base/array.h"
#include "base/err.h"
#include "base/rlimit.h"

#include <curl/curl.h>
#include <jansson.h>
#include <math.h>

#define STEPS	    30 /* of a window, at most */
#define STEP_MIN_S  1.0
#define COUNTER_MAX 1e18
#define SIMULATED   "ibscope_simulated"

/* The metrics of an event: latencies by `cause`, and what their samples stand for. */
static const struct source {
	const char *event, *metric, *latency, *samples, *ops, *cause;
	unsigned int units;
} sources[] = {
	{ "ibs_op", "dc_miss_lat", "ibscope_load_miss_latency_cycles", "ibscope_samples_total",
	  "ibscope_estimated_ops_total", "src", REPORT_OPS },
	{ "ibs_fetch", "fetch_lat", "ibscope_fetch_latency_cycles", "ibscope_fetch_samples_total",
	  "ibscope_estimated_fetches_total", "fetch", REPORT_FETCHES },
};

/* --- counters */

/* Increases of one series, by step. */
struct counter {
	double by[STEPS];
};

/* What samples of a row (and cause) add: `kind` is one of these. */
enum kind { SUM, COUNT, SAMPLES, OPS, COUNTERS, BUCKET = COUNTERS, IS_SIMULATED, KINDS };

/* All up to an edge, of so many series. */
struct bucket {
	struct counter counter;
	unsigned int series;
};
#define INFINITE IBS_LAT_BUCKETS /* no edge */

struct cell {
	__u32 row;
	int cause; /* -1: of all */
	struct counter *counter[COUNTERS];
	struct bucket **bucket; /* by number of the edge, and INFINITE; NULL: none at all */
	bool odd;		/* an edge is not one of ours */
};

struct counters {
	struct cell *cell;
	size_t n, room;
	struct u64_map of; /* by row and cause */
};

static struct cell *cell_of(struct counters *t, __u32 row, int cause)
{
	__u64 key = (__u64)row << 16 | (__u16)cause;
	__u32 i = u64_map_get(&t->of, key);

	if (i != U64_MAP_NONE)
		return &t->cell[i];
	array_reserve_zero(t->cell, t->room, t->n + 1);
	u64_map_put(&t->of, key, t->n);
	t->cell[t->n] = (struct cell){ .row = row, .cause = cause };
	return &t->cell[t->n++];
}

static void counters_free(struct counters *t)
{
	for (size_t i = 0; i < t->n; i++)
		for (unsigned int k = 0; k < COUNTERS; k++)
			free(t->cell[i].counter[k]);
	for (size_t i = 0; i < t->n; i++)
		for (unsigned int b = 0; t->cell[i].bucket && b <= INFINITE; b++)
			free(t->cell[i].bucket[b]);
	for (size_t i = 0; i < t->n; i++)
		free(t->cell[i].bucket);
	free(t->cell);
	u64_map_free(&t->of);
}

/* Which of the metrics is it? Return: KINDS for others. */
static enum kind kind_of(const struct source *s, const char *name)
{
	size_t n = strlen(s->latency);

	if (!strncmp(name, s->latency, n))
		return !strcmp(name + n, "_sum")      ? SUM
		       : !strcmp(name + n, "_count")  ? COUNT
		       : !strcmp(name + n, "_bucket") ? BUCKET
						      : KINDS;
	if (!strcmp(name, SIMULATED))
		return IS_SIMULATED;
	return !strcmp(name, s->samples) ? SAMPLES : !strcmp(name, s->ops) ? OPS : KINDS;
}

/* Add the increases of a series; a counter that falls began again at zero. */
static bool add_values(struct counter *c, const json_t *values, const struct diff_window *w,
		       double step)
{
	double last = NAN;
	size_t i;
	const json_t *pair;

	json_array_foreach(values, i, pair)
	{
		const char *text = json_string_value(json_array_get(pair, 1));
		double at = (json_number_value(json_array_get(pair, 0)) - w->from_s) / step, v;
		unsigned int n = at > -.5 && at < STEPS + .5 ? (unsigned int)(at + .5) : STEPS + 1;
		char *end;

		if (!text || n > STEPS)
			return false;
		v = strtod(text, &end);
		if (*end || !(v >= 0 && v <= COUNTER_MAX) || v != floor(v))
			return false;
		if (!isnan(last) && n > 0) {
			c->by[n - 1] += v < last ? v : v - last;
			/* of all series of a cell: an integer again later */
			if (c->by[n - 1] > COUNTER_MAX)
				return false;
		}
		last = v;
	}
	return true;
}

static int bad(const char *url, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "%s: the answer is not one of Prometheus: %s", url, what);
}

/* The counter of an edge; NULL: it is not one that the exporter can have. */
static struct counter *bucket_of(struct cell *cell, const char *le)
{
	unsigned int b = INFINITE;
	double edge;
	char *end;

	if (strcmp(le, "+Inf") != 0) {
		edge = strtod(le, &end);
		if (*end || !(edge > 0 && edge <= IBS_LAT_MAX))
			return NULL;
		b = ibs_lat_bucket(edge);
		if (ibs_lat_le(b) != edge)
			return NULL;
	}
	if (!cell->bucket)
		cell->bucket = xcalloc(INFINITE + 1, sizeof(struct bucket *));
	if (!cell->bucket[b])
		cell->bucket[b] = xcalloc(1, sizeof(*cell->bucket[b]));
	cell->bucket[b]->series++;
	return &cell->bucket[b]->counter;
}

/* Where the values of a series are added up; NULL: nowhere. */
static struct counter *counter_of(struct cell *cell, enum kind kind, const json_t *metric)
{
	struct counter *c;

	if (kind == BUCKET) {
		c = bucket_of(cell, json_string_value(json_object_get(metric, "le")) ?: "");
		cell->odd |= !c;
		return c;
	}
	if (!cell->counter[kind])
		cell->counter[kind] = xcalloc(1, sizeof(*cell->counter[kind]));
	return cell->counter[kind];
}

/* Is any value of a series 1? */
static bool is_ever_one(const json_t *values)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(values, i, pair)
	{
		const char *text = json_string_value(json_array_get(pair, 1));

		if (text && !strcmp(text, "1"))
			return true;
	}
	return false;
}

static int add_series(struct diff *d, enum compare_side side, struct counters *t,
		      const struct source *s, const json_t *series, const struct diff_window *w,
		      double step, struct err *err)
{
	const json_t *metric = json_object_get(series, "metric");
	const char *name = json_string_value(json_object_get(metric, "__name__"));
	const char *cause = json_string_value(json_object_get(metric, s->cause));
	const json_t *values = json_object_get(series, "values");
	const char *text[LABEL_ALL];
	char *pod = NULL;
	struct counter *counter;
	struct cell *cell;
	enum kind kind;
	bool of_all;

	if (!name)
		return bad(w->url, "a series has no name", err);
	kind = kind_of(s, name);
	if (kind == IS_SIMULATED)
		d->about[side].simulated |= is_ever_one(values);
	if (kind == KINDS || kind == IS_SIMULATED)
		return 0;
	for (unsigned int k = 0; k < d->n_by; k++) {
		const char *label = d->by[k] == LABEL_HOST ? "instance" : label_name(d->by[k]);

		text[k] = json_string_value(json_object_get(metric, label));
		if (d->by[k] == LABEL_POD && text[k] && !pod)
			text[k] = pod = diff_pod_name(metric);
	}
	of_all = kind == SAMPLES || kind == OPS;
	cell = cell_of(t, compare_row(d->compare, text, d->n_by),
		       of_all ? -1 : (int)compare_cause(d->compare, cause ?: DIFF_NO_CAUSE));
	free(pod);
	counter = counter_of(cell, kind, metric);
	return !counter || add_values(counter, values, w, step)
		       ? 0
		       : bad(w->url, "a value is not that of a counter", err);
}

/* --- latencies */

/* Series with other edges, added up, say nothing. */
static bool has_edges(const struct cell *c)
{
	const struct bucket *all = c->bucket ? c->bucket[INFINITE] : NULL;
	unsigned int edges = 0;

	for (unsigned int b = 0; all && b < INFINITE; b++) {
		if (c->bucket[b] && c->bucket[b]->series != all->series)
			return false;
		edges += c->bucket[b] != NULL;
	}
	return edges && !c->odd;
}

/* What is in the bucket that ends at edge @b, and not below @below, which becomes what is up to this edge. */
static double in_bucket(const struct cell *c, unsigned int b, unsigned int step, double *below)
{
	const double up_to = c->bucket[b]->counter.by[step], in = up_to - *below;

	*below = fmax(up_to, *below);
	/* counters that began again between two scrapes need not agree */
	return fmax(in, 0);
}

/* Divide the ops among the buckets as the samples are. */
static void add_latencies(struct diff *d, const struct cell *c, unsigned int step, double ops)
{
	double all = 0, below = 0;
	unsigned int from = 0;

	if (!has_edges(c)) {
		compare_no_latency(d->compare);
		return;
	}
	for (unsigned int b = 0; b <= INFINITE; b++)
		all += c->bucket[b] ? in_bucket(c, b, step, &below) : 0;
	if (!(all > 0))
		compare_no_latency(d->compare);
	below = 0;
	for (unsigned int b = 0; b <= INFINITE && all > 0; b++) {
		const unsigned int to = b == INFINITE ? IBS_LAT_BUCKETS - 1 : b;
		double in;

		if (!c->bucket[b])
			continue;
		in = in_bucket(c, b, step, &below);
		if (in > 0 && from <= to)
			compare_wide(d->compare, c->cause, from, to, ops * in / all);
		from = b + 1;
	}
}

static double value(const struct cell *c, enum kind kind, unsigned int step)
{
	return c && c->counter[kind] ? c->counter[kind]->by[step] : 0;
}

/* Of a row only the mean of ops per sample is known, for each step. */
static void add_step(struct diff *d, const struct counters *t, unsigned int step)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct cell *c = &t->cell[i], *all;
		__u32 of = u64_map_get(&t->of, (__u64)c->row << 16 | 0xffff);
		struct compare_amount a = {};
		double samples, ops;

		all = of == U64_MAP_NONE ? NULL : &t->cell[of];
		samples = value(all, SAMPLES, step);
		ops = d->per == DIFF_PER_ACCESS ? samples : value(all, OPS, step);
		if (c->cause < 0) {
			a.samples = samples;
			a.base = d->per == DIFF_PER_ACCESS ? 0 : ops;
		} else if (samples > 0) {
			a.valid = value(c, COUNT, step);
			a.base = d->per == DIFF_PER_ACCESS ? a.valid : 0;
			a.ops = a.valid * (ops / samples);
			a.cycles = value(c, SUM, step) * (ops / samples);
		}
		if (a.samples || a.valid)
			compare_add(d->compare, c->row, c->cause < 0 ? 0 : c->cause, &a);
		if (a.valid && a.ops > 0)
			add_latencies(d, c, step, a.ops);
	}
}

/* Prometheus keeps the counters of samples and ops as they are when it makes native histograms of the others. */
static bool has_latencies(const struct counters *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->cell[i].counter[COUNT])
			return true;
	return false;
}

static int read_answer(struct diff *d, enum compare_side side, const struct source *s,
		       const char *text, size_t n, const struct diff_window *w, double step,
		       unsigned int steps, struct err *err)
{
	json_error_t why;
	json_t *j = json_loadb(text ?: "", n, JSON_DECODE_INT_AS_REAL, &why);
	const json_t *list = json_object_get(json_object_get(j, "data"), "result"), *series;
	const char *problem = json_string_value(json_object_get(j, "error"));
	struct counters t = {};
	int ret = 0;
	size_t i;

	if (problem)
		ret = err_set(err, -EINVAL, "%s: %s", w->url, problem);
	else if (!json_is_array(list))
		ret = bad(w->url, j ? "it has no list of series" : why.text, err);
	json_array_foreach(list, i, series) ret =
		ret ?: add_series(d, side, &t, s, series, w, step, err);
	if (!ret && !has_latencies(&t))
		ret = err_set(
			err, -ENODATA,
			"%s: no series of %s_count%s%s%s %s: scrape ibscope-exporter, without "
			"conversion to native histograms",
			w->url, s->latency, *w->match ? "{" : "", w->match, *w->match ? "}" : "",
			d->about[side].selection);
	for (unsigned int at = 0; !ret && at < steps; at++) {
		compare_at(d->compare, side, 1 + at * COMPARE_SECOND);
		add_step(d, &t, at);
	}
	counters_free(&t);
	json_decref(j);
	return ret;
}

/* Of a window: seconds of a step, and their number. */
static unsigned int steps_of(const struct diff_window *w, double *step)
{
	*step = fmax(w->seconds / STEPS, STEP_MIN_S);
	return floor(w->seconds / *step + 1e-9);
}

int diff_add_answer(struct diff *d, enum compare_side side, const struct diff_window *w,
		    const char *text, size_t n, struct err *err)
{
	const struct source *s = &sources[ibs_metric_of_fetch(d->metric)];
	struct diff_about *about = &d->about[side];
	double step;
	unsigned int steps = steps_of(w, &step);

	compare_width(d->compare, side, COMPARE_SECOND);
	compare_seconds(d->compare, side, steps * step);
	snprintf(about->metric, sizeof(about->metric), "%s", s->metric);
	snprintf(about->event, sizeof(about->event), "%s", s->event);
	about->counts = true;
	about->units = s->units;
	return read_answer(d, side, s, text, n, w, step, steps, err);
}

/* Series, and whether their exporters simulate, which has other labels. */
static char *query_of(const struct source *s, const struct diff_window *w, bool buckets)
{
	const char *comma = *w->match ? "," : "";

	return xasprintf("{__name__=~\"%s_(sum|count%s)|%s|%s\"%s%s} or (" SIMULATED
			 " and on (instance, job) {__name__=\"%s_count\"%s%s})",
			 s->latency, buckets ? "|bucket" : "", s->samples, s->ops, comma, w->match,
			 s->latency, comma, w->match);
}

static int ask(struct diff *d, enum compare_side side, const struct diff_window *w, bool buckets,
	       struct err *err)
{
	const struct source *s = &sources[ibs_metric_of_fetch(d->metric)];
	struct diff_answer a = {};
	char *url, *fields, *query, *escaped, *advice;
	CURL *curl = curl_easy_init();
	double step;
	unsigned int steps = steps_of(w, &step);
	int ret;

	query = query_of(s, w, buckets);
	escaped = curl_easy_escape(curl, query, 0);
	fields = xasprintf("query=%s&start=%.3f&end=%.3f&step=%.3f", escaped, w->from_s,
			   w->from_s + steps * step, step);
	url = xasprintf("%s/api/v1/query_range", w->url);
	advice = xasprintf("a shorter %s, or fewer series with --match", w->option ?: "--window");
	ret = diff_http(url, fields, advice, &a, err)
		      ?: diff_add_answer(d, side, w, a.text, a.n, err);
	curl_free(escaped);
	curl_easy_cleanup(curl);
	free(query);
	free(fields);
	free(url);
	free(advice);
	free(a.text);
	return ret;
}

int diff_add_window(struct diff *d, enum compare_side side, const struct diff_window *w,
		    struct err *err)
{
	struct err why;
	int ret;

	rlimit_memory(DIFF_ANSWER_MEMORY);
	ret = ask(d, side, w, w->percentile, err);
	/* buckets are most of the series: an answer without them may be short enough */
	if (ret != -EFBIG && ret != -EINVAL)
		return ret;
	why = *err;
	ret = w->percentile ? ask(d, side, w, false, err) : ret;
	if (!ret)
		log_warn("%s; without buckets there is no p99", why.text);
	return ret;
}
