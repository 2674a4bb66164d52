// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts that hist --json and ctl snapshot --json print: an object for each interval. The format is
 * described in ibscope-hist(1). Files may be damaged or made up.
 */
#include "diff_private.h"

#include "base/rlimit.h"
#include "base/text.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>

#define MEMORY	    (1ULL << 30) /* as for recordings */
#define INTERVALS   8	 /* with fewer, samples are taken as independent: a block is an interval */
#define COUNT_MAX   1e15 /* of samples: beyond it doubles are not exact */
#define BIG_MAX	    1e24 /* of ops and cycles */
#define SECONDS_MAX 1e9

struct counts {
	FILE *f;
	const char *file;
	size_t n;	/* objects read, those of other events included */
	char event[16]; /* of those that are wanted, "" until the first */
	json_t *object;
};

bool diff_is_counts(const char *file)
{
	FILE *f = strcmp(file, "-") ? fopen(file, "re") : NULL;
	int c;

	if (!f)
		return false;
	while ((c = fgetc(f)) != EOF && isspace(c))
		;
	fclose(f);
	return c == '{';
}

static int open_counts(const struct diff *d, struct counts *c, const char *file, struct err *err)
{
	*c = (struct counts){ .f = fopen(file, "re"), .file = file };
	snprintf(c->event, sizeof(c->event), "%s", d->event ?: "");
	rlimit_memory(d->max_memory ?: MEMORY);
	return c->f ? 0 : err_set(err, -errno, "cannot open %s: %s", file, strerror(errno));
}

static void close_counts(struct counts *c)
{
	json_decref(c->object);
	if (c->f)
		fclose(c->f);
}

/* Return: 1 and c->object; 0 at the end; or a negative errno with @err. */
static int any_object(struct counts *c, struct err *err)
{
	json_error_t why;
	int at;

	json_decref(c->object);
	c->object = NULL;
	while ((at = fgetc(c->f)) != EOF && isspace(at))
		;
	if (at == EOF)
		return 0;
	ungetc(at, c->f);
	c->object = json_loadf(c->f, JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &why);
	if (!json_is_object(c->object) || !json_is_array(json_object_get(c->object, "series")))
		return err_set(err, -EBADMSG,
			       "%s: object %zu is not output of `hist --json` or `ctl snapshot "
			       "--json`: %s",
			       c->file, c->n + 1, c->object ? "it has no 'series'" : why.text);
	c->n++;
	return 1;
}

static const char *text_of(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key)) ?: "";
}

/* The same for the objects of one event: hist and ctl print those of both in turn. */
static int next_object(struct counts *c, struct err *err)
{
	int ret;

	while ((ret = any_object(c, err)) > 0) {
		const char *event = text_of(c->object, "event");
		const size_t n = strcspn(event, "/");

		if (!*c->event)
			snprintf(c->event, sizeof(c->event), "%.*s", (int)n, event);
		if (strlen(c->event) == n && !memcmp(c->event, event, n))
			break;
	}
	return ret;
}

static int nothing(const struct counts *c, struct err *err)
{
	return err_set(err, -ENODATA, "%s has no intervals of %s", c->file,
		       *c->event ? c->event : "any event");
}

static int describe(struct diff_about *a, const struct counts *c, struct err *err)
{
	const char *metric = text_of(c->object, "metric");

	if (*a->metric && strcmp(a->metric, metric))
		return err_set(err, -EINVAL,
			       "%s: object %zu has the metric '%s', those before it '%s'", c->file,
			       c->n, metric, a->metric);
	snprintf(a->source, sizeof(a->source), "%s", text_of(c->object, "source"));
	snprintf(a->event, sizeof(a->event), "%s", text_of(c->object, "event"));
	snprintf(a->metric, sizeof(a->metric), "%s", text_of(c->object, "metric"));
	a->simulated = json_is_true(json_object_get(c->object, "simulated"));
	a->units |= strncmp(a->event, "ibs_op", 6)  ? REPORT_FETCHES
		    : strstr(a->event, "cnt_ctl=1") ? REPORT_OPS
						    : REPORT_CYCLES;
	return 0;
}

int diff_keys_of_counts(struct diff *d, const char *file, struct err *err)
{
	static const char *const none[] = { "op", "itlb" };
	struct counts c;
	const json_t *labels;
	bool fetch;
	int ret = open_counts(d, &c, file, err);

	ret = ret ?: next_object(&c, err);
	if (!ret)
		ret = nothing(&c, err);
	labels = json_object_get(json_array_get(json_object_get(c.object, "series"), 0), "labels");
	fetch = !strncmp(text_of(c.object, "event"), "ibs_fetch", 9);
	if (ret > 0 && d->causes_by_default)
		d->causes[0] = fetch ? LABEL_FETCH : LABEL_SRC;
	if (ret > 0 && d->by_default)
		d->n_by = 0;
	for (unsigned int l = 0; ret > 0 && d->by_default && l < LABEL_ALL; l++) {
		bool other = json_object_get(labels, label_name(l));

		for (size_t i = 0; i < ARRAY_SIZE(none); i++)
			other &= strcmp(label_name(l), none[i]) != 0;
		for (unsigned int k = 0; k < d->n_causes; k++)
			other &= l != d->causes[k];
		if (other)
			d->by[d->n_by++] = l;
	}
	close_counts(&c);
	return ret < 0 ? ret : 0;
}

bool diff_add_bucket(__u64 *buckets, const json_t *edge, const json_t *n, double most, double *sum)
{
	const double le = json_real_value(edge), count = json_real_value(n);
	const __u32 b = le > 0 && le <= IBS_LAT_MAX ? ibs_lat_bucket(le) : 0;

	if (!json_is_real(edge) || !json_is_real(n) || ibs_lat_le(b) != le ||
	    !(count >= 0 && count <= COUNT_MAX) || count != floor(count))
		return false;
	*sum += count;
	if (*sum > most)
		return false;
	buckets[b] += count;
	return true;
}

static bool read_buckets(const json_t *list, __u64 *buckets, double valid)
{
	double sum = 0;

	memset(buckets, 0, IBS_LAT_BUCKETS * sizeof(*buckets));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);

		if (!diff_add_bucket(buckets, json_array_get(pair, 0), json_array_get(pair, 1),
				     valid, &sum))
			return false;
	}
	return sum == valid;
}

static bool is_count(double v)
{
	return v >= 0 && v <= COUNT_MAX && v == floor(v);
}

bool diff_numbers_good(const struct diff_numbers *n)
{
	return is_count(n->samples) && is_count(n->valid) && n->valid <= n->samples &&
	       n->sum >= 0 && n->sum <= BIG_MAX && n->ops >= 0 && n->ops <= BIG_MAX &&
	       n->ops == floor(n->ops) && n->cycles >= 0 && n->cycles <= BIG_MAX;
}

struct compare_amount diff_amount(const struct diff *d, const struct diff_numbers *n)
{
	const bool each = d->per == DIFF_PER_ACCESS;

	return (struct compare_amount){
		.samples = n->samples,
		.valid = n->valid,
		.base = each ? n->valid : n->ops,
		.ops = each		? n->valid
		       : n->samples > 0 ? n->ops * n->valid / n->samples
					: 0,
		.cycles = each ? n->sum : n->cycles,
	};
}

/* A count or a sum. Return: false if it is neither, nor, with @unknown, null. */
static bool number(const json_t *j, const char *key, double *out, bool *unknown)
{
	const json_t *v = json_object_get(j, key);

	*out = json_number_value(v);
	if (unknown)
		*unknown |= json_is_null(v);
	return json_is_number(v) || (unknown && json_is_null(v));
}

static bool read_numbers(const json_t *series, struct diff_numbers *n, __u64 *buckets)
{
	*n = (struct diff_numbers){};
	return number(series, "samples", &n->samples, NULL) &&
	       number(series, "valid", &n->valid, NULL) && number(series, "sum", &n->sum, NULL) &&
	       number(series, "estimated_ops", &n->ops, &n->no_ops) &&
	       number(series, "miss_cycles", &n->cycles, &n->no_ops) && diff_numbers_good(n) &&
	       read_buckets(json_object_get(series, "buckets"), buckets, n->valid);
}

static __u32 cause_of(struct diff *d, const json_t *labels)
{
	char name[256] = "";
	size_t at = 0;

	for (unsigned int k = 0; k < d->n_causes; k++) {
		const char *text = text_of(labels, label_name(d->causes[k]));

		at = text_at(name, sizeof(name), at, "%s%s", k ? " " : "",
			     *text ? text : DIFF_NO_CAUSE);
	}
	return compare_cause(d->compare, name);
}

/* --- snapshots of the same counters */

/* The series of an earlier snapshot by their labels. */
static char *labels_text(const json_t *series)
{
	return json_dumps(json_object_get(series, "labels"), JSON_SORT_KEYS | JSON_COMPACT);
}

/* The only object of a file. Return: 0 and *out, which the caller frees; NULL: there are more; or a negative errno with @err. */
static int read_only_object(const struct diff *d, const char *file, json_t **out, struct err *err)
{
	struct counts c;
	int ret = open_counts(d, &c, file, err);

	*out = NULL;
	ret = ret ?: next_object(&c, err);
	if (ret > 0) {
		*out = json_incref(c.object);
		ret = next_object(&c, err);
	}
	if (ret && *out) {
		json_decref(*out);
		*out = NULL;
	}
	close_counts(&c);
	return ret < 0 ? ret : 0;
}

static double seen(const json_t *object)
{
	return json_number_value(json_object_get(json_object_get(object, "ledger"), "seen"));
}

static bool same_counters(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "counted_since", "event", "metric", "source" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!*text_of(a, keys[i]) || strcmp(text_of(a, keys[i]), text_of(b, keys[i])) != 0)
			return false;
	return true;
}

int diff_find_overlap(struct diff *d, const char *a, const char *b, struct err *err)
{
	json_t *of_a, *of_b = NULL;
	int ret = read_only_object(d, a, &of_a, err) ?: read_only_object(d, b, &of_b, err);

	memset(d->earlier, 0, sizeof(d->earlier));
	if (!ret && of_a && of_b && same_counters(of_a, of_b)) {
		d->earlier[COMPARE_A] = seen(of_a) > seen(of_b) ? b : NULL;
		d->earlier[COMPARE_B] = seen(of_a) < seen(of_b) ? a : NULL;
	}
	json_decref(of_a);
	json_decref(of_b);
	return ret;
}

/* Return: an object of series by their labels; NULL: nothing is to be subtracted, or *ret is an error. */
static json_t *read_earlier(struct diff *d, enum compare_side side, double *seconds, int *ret,
			    struct err *err)
{
	json_t *object = NULL, *series, *out;
	size_t i;

	if (!d->earlier[side])
		return NULL;
	*ret = read_only_object(d, d->earlier[side], &object, err);
	if (!object)
		return NULL;
	d->about[side].selection = side == COMPARE_A ? "since B" : "since A";
	*seconds -= json_number_value(json_object_get(object, "interval_s"));
	out = json_object();
	json_array_foreach(json_object_get(object, "series"), i, series)
	{
		char *key = labels_text(series);

		if (key)
			json_object_set(out, key, series);
		free(key);
	}
	json_decref(object);
	return out;
}

/* Subtract what the series had earlier. Return: false if it had more. */
static bool subtract(json_t *earlier, const json_t *series, struct diff_numbers *n, __u64 *buckets)
{
	char *key = labels_text(series);
	const json_t *old = key ? json_object_get(earlier, key) : NULL;
	struct diff_numbers was;
	__u64 had[IBS_LAT_BUCKETS];
	bool good = true;

	if (old) {
		good = read_numbers(old, &was, had);
		n->samples -= was.samples;
		n->valid -= was.valid;
		n->sum -= was.sum;
		n->ops -= was.ops;
		n->cycles -= was.cycles;
		n->no_ops |= was.no_ops;
		for (unsigned int b = 0; good && b < IBS_LAT_BUCKETS; b++) {
			good = buckets[b] >= had[b];
			buckets[b] -= had[b];
		}
		json_object_del(earlier, key);
	}
	free(key);
	return good && diff_numbers_good(n);
}

/* Groups that ended, of which the later snapshot has other rows. */
static void warn_of_ended(const struct diff *d, enum compare_side side, json_t *earlier)
{
	const char *key;
	const json_t *series;
	double samples = 0;

	json_object_foreach(earlier, key, series) samples +=
		json_number_value(json_object_get(series, "samples"));
	if (samples > 0)
		log_warn("%s: %s samples that %s has of groups that ended count once more, in rows "
			 "that have them now",
			 d->about[side].file, TEXT_COUNT((unsigned long long)samples),
			 d->earlier[side]);
}

/* --- series */

/* @at: the number of the interval; -1: times are not known well enough */
static int add_series(struct diff *d, enum compare_side side, const struct counts *c,
		      const json_t *series, json_t *earlier, long at, struct err *err)
{
	const json_t *labels = json_object_get(series, "labels");
	const char *text[LABEL_ALL];
	struct diff_numbers n;
	struct compare_amount a;
	__u64 buckets[IBS_LAT_BUCKETS];
	__u32 cause, row;

	if (!json_is_object(labels) || !read_numbers(series, &n, buckets))
		return err_set(err, -EBADMSG,
			       "%s: object %zu has a series that hist does not print: counts and "
			       "buckets must be whole, not negative, and add up",
			       c->file, c->n);
	if (earlier && !subtract(earlier, series, &n, buckets))
		return err_set(err, -EINVAL,
			       "%s and %s are snapshots of the same counters, but a counter "
			       "decreased: groups ended meanwhile; compare `hist --json 10 6` of "
			       "both times",
			       c->file, d->earlier[side]);
	if (n.no_ops && d->per != DIFF_PER_ACCESS)
		return -EAGAIN;
	for (unsigned int k = 0; k < d->n_by; k++)
		text[k] = json_string_value(json_object_get(labels, label_name(d->by[k])));
	a = diff_amount(d, &n);
	cause = cause_of(d, labels);
	row = compare_row(d->compare, text, d->n_by);
	diff_heat_spread(d, side, at < 0 ? 0 : 1 + at * COMPARE_SECOND, buckets, &a);
	if (at < 0) {
		compare_spread(d->compare, side, row, cause, &a, buckets);
		return 0;
	}
	compare_at(d->compare, side, 1 + at * COMPARE_SECOND);
	compare_add(d->compare, row, cause, &a);
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
		if (buckets[b])
			compare_latency(d->compare, cause, b, buckets[b] * (a.ops / a.valid));
	return 0;
}

int diff_add_counts(struct diff *d, enum compare_side side, const char *file, struct err *err)
{
	struct diff_about *about = &d->about[side];
	struct counts c;
	double seconds = 0, interval;
	bool unknown = false, several;
	long n = 0;
	json_t *earlier;
	int ret = open_counts(d, &c, file, err);

	earlier = ret ? NULL : read_earlier(d, side, &seconds, &ret, err);
	about->counts = true;
	compare_width(d->compare, side, COMPARE_SECOND);
	while (!ret && (ret = next_object(&c, err)) > 0) {
		ret = 0;
		n++;
	}
	several = n >= INTERVALS;
	if (!ret && !n)
		ret = nothing(&c, err);
	c.n = n = 0;
	if (!ret)
		rewind(c.f);
	while (!ret && (ret = next_object(&c, err)) > 0) {
		const json_t *list = json_object_get(c.object, "series"), *series;
		size_t i;

		ret = describe(about, &c, err);
		if (number(c.object, "interval_s", &interval, &unknown) && interval >= 0 &&
		    interval <= SECONDS_MAX)
			seconds += interval;
		json_array_foreach(list, i, series) if (!ret) ret =
			add_series(d, side, &c, series, earlier, several ? n : -1, err);
		n++;
	}
	compare_seconds(d->compare, side, seconds);
	if (!ret && earlier)
		warn_of_ended(d, side, earlier);
	json_decref(earlier);
	close_counts(&c);
	return ret;
}
