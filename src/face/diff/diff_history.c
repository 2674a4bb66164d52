// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A window of the history that an ibscope-exporter keeps: what was counted in each interval, as /api/history.json has it.
 * The answer may be anything.
 */
#include "diff_http.h"
#include "diff_private.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/rlimit.h"

#include <curl/curl.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

#define ID_MAX 1e15
#define OTHER  "other" /* the groups that had no row of their own */

/* Members of a source, in this order. */
enum { SAMPLES, VALID, SUM, OPS, CYCLES, BUCKETS, MEMBERS };

struct history {
	struct diff *d;
	enum compare_side side;
	const struct diff_window *w;
	double boot_s;		/* since 1970 */
	const json_t *about;	/* of the intervals from here on */
	struct u64_map name_of; /* ids of groups: index in names */
	const json_t **names;
	json_t *match; /* the value that each of these labels must have */
	size_t n_names, names_room;
	long n;				 /* intervals in the window */
	double seconds, first_s, last_s; /* of all: what there is */
	bool coarse;
};

static int bad(const struct history *h, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG,
		       "%s: the answer is not the history of an ibscope-exporter: %s", h->w->url,
		       what);
}

static const char *option_of(const struct history *h)
{
	return h->w->option ?: "--window";
}

/* --- what was counted */

static const json_t *member(const json_t *j, const char *key)
{
	return json_object_get(j, key);
}

static bool is_fetch(const struct history *h)
{
	return ibs_metric_of_fetch(h->d->metric);
}

/* Counts that are not comparable are refused by diff_check(); within a side they must be the same. */
static int describe(struct history *h, struct err *err)
{
	struct diff_about *a = &h->d->about[h->side];
	const json_t *event = NULL, *of;
	size_t i;
	const char *text, *metric;

	json_array_foreach(h->about, i, of)
	{
		text = json_string_value(member(of, "event"));
		if (text && !strncmp(text, "ibs_fetch", 9) == is_fetch(h))
			event = of;
	}
	if (!event)
		return err_set(err, -ENODATA, "%s: the collector did not sample %s %s", h->w->url,
			       is_fetch(h) ? "ibs_fetch" : "ibs_op", a->selection);
	text = json_string_value(member(event, "event"));
	metric = json_string_value(member(event, "metric")) ?: "";
	if (*a->event && (strcmp(a->event, text) || strcmp(a->metric, metric)))
		return err_set(
			err, -EINVAL,
			"%s: %s of %s was sampled in one part of the time %s, and %s of %s in "
			"another: choose a shorter %s",
			h->w->url, a->metric, a->event, a->selection, metric, text, option_of(h));
	snprintf(a->event, sizeof(a->event), "%s", text);
	snprintf(a->metric, sizeof(a->metric), "%s", metric);
	a->simulated = json_is_true(member(event, "simulated"));
	h->coarse = json_is_true(member(event, "coarse_histograms"));
	a->units |= is_fetch(h)			    ? REPORT_FETCHES
		    : strstr(a->event, "cnt_ctl=1") ? REPORT_OPS
						    : REPORT_CYCLES;
	return 0;
}

static bool read_buckets(const json_t *list, double valid, __u64 *buckets)
{
	double sum = 0;

	memset(buckets, 0, IBS_LAT_BUCKETS * sizeof(*buckets));
	for (size_t i = 0; i + 1 < json_array_size(list); i += 2)
		if (!diff_add_bucket(buckets, json_array_get(list, i), json_array_get(list, i + 1),
				     valid, &sum))
			return false;
	return json_array_size(list) % 2 == 0 && sum == valid;
}

static int add_source(struct history *h, __u32 row, const char *name, const json_t *source,
		      struct err *err)
{
	struct compare *c = h->d->compare;
	struct diff_numbers n = {};
	double *const to[] = { &n.samples, &n.valid, &n.sum, &n.ops, &n.cycles };
	__u64 buckets[IBS_LAT_BUCKETS];
	struct compare_amount a;
	unsigned int cause;
	bool good = json_array_size(source) == MEMBERS;

	for (int i = SAMPLES; good && i < BUCKETS; i++) {
		const json_t *v = json_array_get(source, i);

		*to[i] = json_number_value(v);
		n.no_ops |= i == CYCLES && json_is_null(v);
		good = json_is_number(v) || (i == CYCLES && json_is_null(v));
	}
	n.no_ops |= n.samples > 0 && !n.ops;
	if (!good || !diff_numbers_good(&n) ||
	    !read_buckets(json_array_get(source, BUCKETS), n.valid, buckets))
		return bad(h, "counts must be whole, not negative, and add up", err);
	if (n.no_ops && h->d->per != DIFF_PER_ACCESS)
		return -EAGAIN;
	a = diff_amount(h->d, &n);
	cause = compare_cause(c, name);
	compare_at(c, h->side, 1 + h->n * COMPARE_SECOND);
	compare_add(c, row, cause, &a);
	diff_heat_spread(h->d, h->side, 1 + h->n * COMPARE_SECOND, buckets, &a);
	for (unsigned int b = 0; !h->coarse && b < IBS_LAT_BUCKETS; b++)
		if (buckets[b])
			compare_latency(c, cause, b, buckets[b] * (a.ops / a.valid));
	return 0;
}

/* The labels of a group; NULL: it had no row of its own. */
static const json_t *name_of(const struct history *h, const json_t *group)
{
	const double id = json_number_value(member(group, "id"));
	const __u32 at =
		id >= 1 && id < ID_MAX ? u64_map_get(&h->name_of, (__u64)id) : U64_MAP_NONE;

	return at == U64_MAP_NONE ? NULL : h->names[at];
}

char *diff_pod_name(const json_t *name)
{
	const char *pod = json_string_value(member(name, "pod")),
		   *space = json_string_value(member(name, "namespace")) ?: "";

	return pod ? xasprintf("%s%s%s", space, *space && *pod ? "/" : "", pod) : NULL;
}

static __u32 row_of(struct history *h, const json_t *name)
{
	const struct diff *d = h->d;
	const char *text[LABEL_ALL];
	char *pod = diff_pod_name(name);
	__u32 row;

	for (unsigned int k = 0; k < d->n_by; k++) {
		text[k] = json_string_value(member(name, label_name(d->by[k])));
		/* of what has the name of a container, the path is not told */
		if (d->by[k] == LABEL_CGROUP && text[k] && !*text[k])
			text[k] = NULL;
		if (!name && d->by[k] == LABEL_CONTAINER)
			text[k] = OTHER;
		if (d->by[k] == LABEL_POD)
			text[k] = pod;
	}
	row = compare_row(d->compare, text, d->n_by);
	free(pod);
	return row;
}

/* Is it one of those that --match selects? */
static bool matches(const struct history *h, const json_t *name)
{
	const char *of, *key;
	const json_t *want;

	json_object_foreach(h->match, key, want)
	{
		of = json_string_value(member(name, key)) ?: "";
		if (strcmp(of, json_string_value(want)) != 0)
			return false;
	}
	for (size_t i = 0; i < h->w->n_labels; i++) {
		of = json_string_value(member(name, h->w->labels[i].key)) ?: "";
		if (strcmp(of, h->w->labels[i].value) != 0)
			return false;
	}
	return !h->w->n_labels || name;
}

/* A list of LABEL="VALUE", as in PromQL. Return: NULL with @err if it is none. */
static json_t *parse_match(const char *text, struct err *err)
{
	json_t *out = json_object();
	char key[32], value[256];
	int n;

	while (*text) {
		n = 0;
		if (sscanf(text, " %31[a-z_] = \"%255[^\"]\" %n", key, value, &n) != 2 || !n ||
		    (text[n] && text[n] != ',')) {
			json_decref(out);
			err_set(err, -EINVAL,
				"--match: invalid '%.200s': must be as in "
				"container=\"web\",pod=\"web-5\", "
				"without other operators",
				text);
			return NULL;
		}
		json_object_set_new(out, key, json_string(value));
		text += n + (text[n] == ',');
	}
	return out;
}

int diff_history_match(const char *match, struct err *err)
{
	json_t *j = parse_match(match, err);

	json_decref(j);
	return j ? 0 : -EINVAL;
}

static int add_groups(struct history *h, const json_t *groups, struct err *err)
{
	const json_t *group, *source;
	const char *name;
	size_t i;
	int ret = json_is_array(groups) ? 0 : bad(h, "an interval has no groups", err);

	json_array_foreach(groups, i, group)
	{
		json_t *sources = json_object_get(group, is_fetch(h) ? "fetches" : "sources");
		const json_t *of = name_of(h, group);
		__u32 row;

		if (!matches(h, of))
			continue;
		row = row_of(h, of);
		json_object_foreach(sources, name, source) if (!ret) ret =
			add_source(h, row, name, source, err);
	}
	return ret;
}

/* --- intervals */

static void keep_names(struct history *h, const json_t *interval)
{
	const json_t *name;
	size_t i;

	json_array_foreach(member(interval, "names"), i, name)
	{
		const json_t *id = member(name, "id");

		if (!json_is_number(id) ||
		    !(json_number_value(id) >= 1 && json_number_value(id) < ID_MAX))
			continue;
		array_reserve(h->names, h->names_room, h->n_names + 1);
		h->names[h->n_names] = name;
		u64_map_put(&h->name_of, (__u64)json_number_value(id), h->n_names++);
	}
}

static bool in_window(const struct history *h, double begin_s, double end_s)
{
	const double middle = h->boot_s + (begin_s + end_s) / 2;

	return middle >= h->w->from_s && middle < h->w->from_s + h->w->seconds;
}

static int add_interval(struct history *h, const json_t *in, struct err *err)
{
	const json_t *begin = member(in, "begin_s"), *end = member(in, "end_s"), *of;
	const double begin_s = json_number_value(begin), end_s = json_number_value(end);
	int ret;

	if (!json_is_number(begin) || !json_is_number(end) || !(end_s >= begin_s))
		return bad(h, "an interval has no times", err);
	if (member(in, "gap"))
		return 0;
	if (member(in, "collector"))
		h->about = member(in, "collector");
	keep_names(h, in);
	h->first_s = isnan(h->first_s) ? begin_s : h->first_s;
	h->last_s = end_s;
	if (!in_window(h, begin_s, end_s))
		return 0;
	ret = describe(h, err);
	of = is_fetch(h) && member(in, "fetch") ? member(in, "fetch") : in;
	ret = ret ?: add_groups(h, member(of, "groups"), err);
	h->n++;
	h->seconds += end_s - begin_s;
	return ret;
}

static void put_time(double s, char text[32])
{
	time_t t = s;
	struct tm tm;

	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
}

/* There are too few intervals in the window to know what is noise. */
static int too_few(const struct history *h, double length_s, struct err *err)
{
	const char *what = h->d->about[h->side].selection;
	char first[32], last[32];

	if (isnan(h->first_s))
		return err_set(err, -ENODATA,
			       length_s > 0
				       ? "%s: the history is still empty; it has one more interval "
					 "every few seconds while a collector runs"
				       : "%s: the exporter keeps no history: start it with "
					 "--history 1h",
			       h->w->url);
	put_time(h->boot_s + h->first_s, first);
	put_time(h->boot_s + h->last_s, last);
	return err_set(err, -ENODATA,
		       "%s: %ld intervals %s, at least %d are needed: choose a longer %s, or "
		       "another time; there are intervals from %s to %s, and a longer --history of "
		       "the exporter keeps more",
		       h->w->url, h->n, what, COMPARE_FEW, option_of(h), first, last);
}

static int read_history(struct history *h, const char *text, size_t size, double now_s,
			struct err *err)
{
	json_error_t why;
	json_t *j = json_loadb(text ?: "", size, JSON_DECODE_INT_AS_REAL, &why);
	const json_t *list = member(j, "intervals"), *now = member(j, "now_s"), *in;
	const double length_s = json_number_value(member(j, "length_s"));
	size_t i;
	int ret = 0;

	if (!json_is_array(list) || !json_is_number(now))
		ret = bad(h, j ? "it has no intervals" : why.text, err);
	h->boot_s = now_s - json_number_value(now);
	json_array_foreach(list, i, in) ret = ret ?: add_interval(h, in, err);
	if (!ret && h->n < COMPARE_FEW)
		ret = too_few(h, length_s, err);
	compare_seconds(h->d->compare, h->side, h->seconds);
	json_decref(j);
	return ret;
}

int diff_add_history_answer(struct diff *d, enum compare_side side, const struct diff_window *w,
			    const char *text, size_t n, double now_s, struct err *err)
{
	struct history h = { .d = d, .side = side, .w = w, .first_s = NAN };
	int ret;

	h.match = parse_match(w->match, err);
	if (!h.match)
		return -EINVAL;
	d->about[side].counts = true;
	compare_width(d->compare, side, COMPARE_SECOND);
	ret = read_history(&h, text, n, now_s, err);
	json_decref(h.match);
	u64_map_free(&h.name_of);
	free(h.names);
	return ret;
}

int diff_fetch_history(const char *server, char **text, size_t *n, struct err *err)
{
	struct diff_answer a = {};
	char *url = xasprintf("%s/api/history.json", server);
	int ret;

	rlimit_memory(DIFF_ANSWER_MEMORY);
	ret = diff_http(url, NULL, "a shorter --history of the exporter", &a, err);
	free(url);
	*text = a.text;
	*n = a.n;
	return ret;
}

int diff_add_history(struct diff *d, enum compare_side side, const struct diff_window *w,
		     struct err *err)
{
	char *text;
	size_t n;
	int ret = diff_fetch_history(w->url, &text, &n, err);

	ret = ret
		      ?: diff_add_history_answer(d, side, w, text, n,
						 clock_ns(CLOCK_REALTIME) / 1e9, err);
	free(text);
	return ret;
}
