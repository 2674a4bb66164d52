// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why --at: what a container waited for at a time that has passed, by the history of an exporter or what Prometheus scraped. */
#include "cmd_why.h"
#include "base/array.h"
#include "base/choice.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/screen.h"
#include "base/std.h"
#include "base/text.h"
#include "base/utf8.h"
#include "flight/flight_dir.h"

#include <math.h>

#define EXPORTER   "http://localhost:9950"
#define PROMETHEUS "http://localhost:9090"
#define THEN_S	   120
#define BEFORE_S   600
/* a server scrapes each minute at most, usually */
#define SCRAPED_THEN_S	 300
#define SCRAPED_BEFORE_S 1800
#define OTHER		 "other" /* the groups that had no row of their own */
#define FLIGHT_S \
	60 /* a recording of then is written so long after, at most, as then may be shorter */

/* What names a container in a history; namespace and pod are one key. */
enum { CGROUP, POD, CONTAINER, KEYS };
static const enum label keys[KEYS] = { LABEL_CGROUP, LABEL_POD, LABEL_CONTAINER };

struct moment {
	const struct why_moment *of;
	const char *url;
	double then_s, before_s;
	char *history; /* as received */
	size_t history_n;
	double now_s; /* when that was */
	struct diff all, own;
	struct compare_result of_all, of_own;
	const struct compare_where *row; /* of_all's, of the container */
	char *name;
	struct diff_label label[KEYS + 1];
	char *space; /* labels' memory */
	char *match; /* of Prometheus: the same labels */
	struct screen screen;
};

static int check_url(const char *option, const char *url, const char *example, struct err *err)
{
	if (!url || !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8))
		return 0;
	return err_set(err, -EINVAL, "%s: invalid URL '%s': must be as in %s", option, url,
		       example);
}

int why_moment_check(const struct why_moment *m, struct err *err)
{
	const char *option = m->exporter     ? "--exporter"
			     : m->prometheus ? "--prometheus"
			     : m->match	     ? "--match"
			     : m->flight_dir ? "--flight-dir"
					     : NULL;

	if (!m->at_s && option)
		return err_set(err, -EINVAL, "%s needs --at TIME", option);
	if (m->prometheus && m->exporter)
		return err_set(err, -EINVAL, "--prometheus excludes --exporter");
	if (m->match && !m->prometheus)
		return err_set(err, -EINVAL, "--match needs --prometheus URL");
	return check_url("--exporter", m->exporter, EXPORTER, err)
		       ?: check_url("--prometheus", m->prometheus, PROMETHEUS, err);
}

static const char *server_option(const struct moment *m)
{
	return m->of->prometheus ? "--prometheus" : "--exporter";
}

/* --- reading --- */

static int read_sides(struct moment *m, struct diff *d, struct err *err)
{
	static const char *const said[] = { "before the time of --at", "from the time of --at on" };
	int ret = 0;

	diff_reset(d);
	d->compare = compare_new(false, COMPARE_ROUNDS);
	d->metric = IBS_METRIC_DC_MISS_LAT;
	for (int side = 0; side < COMPARE_SIDES && !ret; side++) {
		const bool then = side == COMPARE_B;
		const struct diff_window w = {
			.url = m->url,
			.match = (d == &m->own ? m->match : m->of->match) ?: "",
			.from_s = m->of->at_s - (then ? 0 : m->before_s),
			.seconds = then ? m->then_s : m->before_s,
			.labels = d == &m->own ? m->label : NULL,
			.n_labels = d == &m->own ? ARRAY_SIZE(m->label) : 0,
			.option = "--duration",
			.percentile = d == &m->own,
		};

		d->about[side] = (struct diff_about){ .file = m->url, .selection = said[side] };
		ret = m->of->prometheus ? diff_add_window(d, side, &w, err)
					: diff_add_history_answer(d, side, &w, m->history,
								  m->history_n, m->now_s, err);
	}
	return ret;
}

static int compare(struct moment *m, struct diff *d, struct compare_result *r, struct err *err)
{
	int ret;

	d->per = DIFF_PER_OPS;
	ret = read_sides(m, d, err);
	if (ret == -EAGAIN) {
		d->per = DIFF_PER_ACCESS;
		ret = read_sides(m, d, err);
	}
	return ret ?: diff_check(d, err) ?: compare_finish(d->compare, r, err);
}

/* --- which container --- */

/* Groups without a row of their own have no pod, in a history not even an empty one, which Prometheus leaves out. */
static bool is_group(const struct moment *m, const struct compare_where *row)
{
	const char *container = row->name[CONTAINER] ?: "";

	if (!m->of->prometheus || row->name[POD])
		return row->name[POD];
	return *container ? strcmp(container, OTHER) != 0 : row->name[CGROUP] != NULL;
}

static char *name_of(const struct compare_where *row)
{
	const char *pod = row->name[POD] ?: "", *container = row->name[CONTAINER] ?: "";

	if (!*pod && !*container)
		return xstrdup(row->name[CGROUP] ?: "unknown");
	return xasprintf("%s%s%s", pod, *pod && *container ? "/" : "", container);
}

static int take_row(struct moment *m, const struct compare_where *row, char *name, struct err *err)
{
	int ret = 0;

	if (m->row && m->of->wanted)
		ret = err_set(err, -ENOTUNIQ, "several containers are called '%s': give %s or %s",
			      m->of->wanted, m->name, name);
	free(m->name);
	m->row = row;
	m->name = name;
	return ret;
}

static int choose(struct moment *m, struct err *err)
{
	const struct compare_result *r = &m->of_all;
	struct suggestion near;
	char **names = xcalloc(r->n_rows + 1, sizeof(*names)), stamp[WHY_STAMP];
	int ret = 0;

	suggestion_start(&near, m->of->wanted ?: "", strlen(m->of->wanted ?: ""));
	for (size_t i = 0; i < r->n_rows && !ret; i++) {
		const struct compare_where *row = &r->row[i];
		const char *part;

		if (!is_group(m, row))
			continue;
		names[i] = name_of(row);
		part = strrchr(names[i], '/');
		suggestion_offer(&near, part && *names[i] != '/' ? part + 1 : names[i]);
		if (m->of->wanted ? why_is_wanted(names[i], m->of->wanted)
				  : row->b > (m->row ? m->row->b : 0))
			ret = take_row(m, row, xstrdup(names[i]), err);
	}
	if (!ret && !m->row && m->of->wanted)
		ret = err_set(err, -ENOENT,
			      "%s: the history has nothing of '%s' around %s%s; `ibscope diff "
			      "%s` shows all",
			      m->url, m->of->wanted, why_stamp(m->of->at_s, stamp),
			      suggestion_text(&near), server_option(m));
	else if (!ret && !m->row)
		ret = err_set(err, -ENODATA, "%s: no container missed a cache around %s", m->url,
			      why_stamp(m->of->at_s, stamp));
	for (size_t i = 0; i < r->n_rows; i++)
		free(names[i]);
	free(names);
	return ret;
}

/* A string of PromQL. */
static void put_quoted(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		if (*text == '\n')
			fputs("\\n", f);
		else
			putc(*text, f);
	}
	putc('"', f);
}

/* The labels as matchers, of which an empty one is met by series without the label; and those that were given. */
static char *match_of(const struct moment *m)
{
	const bool given = m->of->match && *m->of->match;
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	for (size_t i = 0; i < ARRAY_SIZE(m->label); i++) {
		fprintf(f, "%s%s=", i ? "," : "", m->label[i].key);
		put_quoted(f, m->label[i].value);
	}
	fprintf(f, "%s%s", given ? "," : "", given ? m->of->match : "");
	xmemclose(f);
	return text;
}

/* Select what the row sums. */
static void set_labels(struct moment *m)
{
	const char *const *name = m->row->name;
	char *slash;

	m->space = xstrdup(name[POD] ?: "");
	slash = strchr(m->space, '/');
	if (slash)
		*slash = '\0';
	m->label[0] = (struct diff_label){ "cgroup", name[CGROUP] ?: "" };
	m->label[1] = (struct diff_label){ "namespace", slash ? m->space : "" };
	m->label[2] = (struct diff_label){ "pod", slash ? slash + 1 : m->space };
	m->label[3] = (struct diff_label){ "container", name[CONTAINER] ?: "" };
	m->match = m->of->prometheus ? match_of(m) : NULL;
}

/* --- the answer --- */

static double share_of(const struct moment *m, enum compare_side side,
		       const struct compare_where *row)
{
	const double all = m->of_all.side[side].y;

	return all > 0 ? (side == COMPARE_A ? row->a : row->b) / all : 0;
}

static void put_share(const struct moment *m, const struct compare_where *row)
{
	char before[32], then[32];

	screen_percent(&m->screen, share_of(m, COMPARE_A, row), before, sizeof(before));
	screen_percent(&m->screen, share_of(m, COMPARE_B, row), then, sizeof(then));
	printf("%s then, %s before\n", then, before);
}

static void put_head(const struct moment *m)
{
	const struct compare_side_sum *s = m->of_own.side;
	char then[32], before[32], stamp[WHY_STAMP], *times;

	num_format_duration(round(s[COMPARE_B].seconds), then, sizeof(then));
	num_format_duration(round(s[COMPARE_A].seconds), before, sizeof(before));
	if (m->own.about[COMPARE_B].simulated)
		printf("SIMULATED samples, not measurements\n");
	why_put_name(m->name);
	putchar('\n');
	times = xasprintf("Then: %s from %s, %s samples; before: %s, %s samples", then,
			  why_stamp(m->of->at_s, stamp), TEXT_COUNT(s[COMPARE_B].samples), before,
			  TEXT_COUNT(s[COMPARE_A].samples));
	screen_wrap(stdout, times, 2, m->screen.width);
	free(times);
	printf("Its share of all miss cycles: ");
	put_share(m, m->row);
}

/* The other container that began to wait most: it did something then, whether or not that was the cause. */
static void put_other(const struct moment *m)
{
	const struct compare_where *most = NULL;
	char *name;

	for (size_t i = 0; i < m->of_all.n_rows; i++) {
		const struct compare_where *row = &m->of_all.row[i];

		if (row != m->row && is_group(m, row) && row->change.finding &&
		    row->change.change > (most ? most->change.change : 0))
			most = row;
	}
	if (!most) {
		printf("Others: no other container waited more than before\n");
		return;
	}
	name = name_of(most);
	printf("Others: ");
	why_put_name(name);
	printf(" waited more, too: %s", m->screen.width < 80 ? "\n  " : "");
	put_share(m, most);
	free(name);
}

static bool find_recording(const struct moment *m, char path[PATH_MAX])
{
	const double until_s = m->of->at_s + fmax(m->then_s, FLIGHT_S);

	return flight_dir_find(m->of->flight_dir ?: FLIGHT_DIR_DEFAULT, m->of->at_s * 1e9,
			       until_s * 1e9, path);
}

static void put_next(const struct moment *m)
{
	char path[PATH_MAX], from[WHY_STAMP], until[WHY_STAMP], window[32];

	if (find_recording(m, path)) {
		printf("Flight recording of then: ");
		utf8_put(stdout, path);
		putchar('\n');
		screen_next(stdout, &m->screen, "report", path, "--by", "container,comm,symbol,src",
			    NULL);
	}
	snprintf(window, sizeof(window), "%.0fs", m->then_s);
	screen_next(stdout, &m->screen, "diff", server_option(m), m->url, "--at",
		    why_stamp(m->of->at_s, from), "--at", why_stamp(m->of->at_s + m->then_s, until),
		    "--window", window, NULL);
}

static void put_json(struct moment *m)
{
	char stamp[WHY_STAMP], *before, *from;

	why_stamp(m->of->at_s, stamp);
	before = xasprintf("before %s", stamp);
	from = xasprintf("from %s", stamp);
	why_put_json(&m->screen, &m->own, &m->of_own, m->name, before, from, NULL);
	free(before);
	free(from);
}

static void put_answer(struct moment *m)
{
	screen_of(stdout, &m->screen);
	if (m->of->json) {
		put_json(m);
		return;
	}
	put_head(m);
	diff_put_answer(stdout, &m->screen, &m->own, &m->of_own);
	why_put_advice(&m->screen, &m->own, &m->of_own);
	diff_put_notes(stdout, &m->screen, &m->own, &m->of_own);
	put_other(m);
	put_next(m);
}

/* --- all of it --- */

static int fetch(struct moment *m, struct err *err)
{
	struct err why = { "" };
	int ret;

	if (m->of->prometheus)
		return 0;
	ret = diff_fetch_history(m->url, &m->history, &m->history_n, &why);
	m->now_s = clock_ns(CLOCK_REALTIME) / 1e9;
	if (!ret)
		return 0;
	return err_set(
		err, ret,
		"%s; what has passed is kept by an ibscope-exporter that ran then (--history), "
		"and by a Prometheus server that scrapes it (--prometheus)",
		why.text);
}

/* Without a history, a recording can still be there. */
static void add_recording(const struct moment *m, struct err *err)
{
	struct err why = *err;
	char path[PATH_MAX];

	if (find_recording(m, path))
		err_set(err, -ENODATA, "%s; there is a flight recording of then: %s", why.text,
			path);
}

static void finish(struct moment *m)
{
	compare_result_free(&m->of_own);
	compare_result_free(&m->of_all);
	diff_reset(&m->own);
	diff_reset(&m->all);
	free(m->space);
	free(m->match);
	free(m->name);
	free(m->history);
}

int why_moment_answer(const struct why_moment *of, struct err *err)
{
	struct moment m = {
		.of = of,
		.url = of->prometheus ?: of->exporter ?: EXPORTER,
		.then_s = of->duration_s ?: (of->prometheus ? SCRAPED_THEN_S : THEN_S),
		.before_s = fmax(of->duration_s, of->prometheus ? SCRAPED_BEFORE_S : BEFORE_S),
	};
	int ret = fetch(&m, err);

	memcpy(m.all.by, keys, sizeof(keys));
	m.all.n_by = KEYS;
	ret = ret ?: compare(&m, &m.all, &m.of_all, err);
	ret = ret ?: choose(&m, err);
	if (!ret) {
		set_labels(&m);
		ret = compare(&m, &m.own, &m.of_own, err);
	}
	if (ret)
		add_recording(&m, err);
	else
		put_answer(&m);
	finish(&m);
	return ret;
}
