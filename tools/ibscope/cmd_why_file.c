// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why FILE: what a container waits for at the end of a recording that it did not before. */
#include "cmd.h"
#include "cmd_neighbours.h"
#include "cmd_why.h"
#include "base/array.h"
#include "base/choice.h"
#include "base/exit_status.h"
#include "base/num.h"
#include "base/text.h"
#include "input/recorded.h"
#include "top/source.h"

#include <math.h>

#define NOW_S	 30.
#define WINDOW_S 1.
#define SECOND	 1000000000ULL

struct of_file {
	const struct why_file *of;
	struct sampling_opts sampling; /* everything is selected */
	struct diff_split split;
	__u64 first_ns, last_ns; /* of all samples */
	__u64 realtime_ns;	 /* of a time of 0; 0: unknown */
	struct diff all, own;
	struct compare_result of_all, of_own;
	const struct compare_where *row; /* of_all's, of the container */
	struct why_places *places;	 /* of the container; NULL: not read yet */
	struct neighbours *neighbours;	 /* NULL: complexes are unknown */
	struct intern names;
	struct screen screen;
	bool incomplete;
};

/* --- reading --- */

/* What reads the recording that in->input names. Return: as recorded_next() at the end. */
typedef int reader(struct of_file *f, struct recorded *in, struct err *err);

static int read_file(struct of_file *f, bool names, bool symbols, reader *read, struct err *err)
{
	/* names are of code and of data: that of the hottest line, which is known when all has been read */
	struct recorded in = { .input = { .file = f->of->file },
			       .heap = symbols,
			       .places = symbols,
			       .places_last = symbols };
	int ret = recorded_start(&in, &f->sampling, names, symbols, err) ?: read(f, &in, err);

	if (!ret && symbols) { /* once is enough */
		recorded_losses(&in.head);
		f->incomplete = recorded_status(&in, 0, err) != EXIT_DONE;
	}
	recorded_close(&in);
	return ret;
}

static int read_times(struct of_file *f, struct recorded *in, struct err *err)
{
	const struct trace_info *info = in->head.info;
	struct trace_event ev;
	int ret;

	while ((ret = recorded_next(in, &ev, err)) > 0) {
		if (!ev.sample.has_time)
			return err_set(err, -ENODATA,
				       "%s: samples have no times: nothing says what was before",
				       f->of->file);
		f->first_ns = f->first_ns ?: ev.time;
		f->last_ns = ev.time > f->last_ns ? ev.time : f->last_ns;
	}
	if (!ret && !f->last_ns)
		return err_set(err, -ENODATA, "%s has no samples of ibs_op", f->of->file);
	if (!ret && f->of->at_s && !info->realtime_ns)
		return err_set(err, -EINVAL,
			       "--at: %s does not say when it was recorded; leave out --at, so "
			       "that its end is compared with what was before",
			       f->of->file);
	f->realtime_ns = info->realtime_ns ? info->realtime_ns - info->monotonic_ns : 0;
	if (!ret && f->of->at_s) /* a time before the recording has no samples before it */
		f->split.from_ns = fmax(f->of->at_s * 1e9 - (double)f->realtime_ns, 0);
	return ret;
}

/* Now is the end, but not more than half, of the recording; or from --at on. */
static void choose_split(struct of_file *f)
{
	const double length = (f->last_ns - f->first_ns) / 1e9;
	const double now_s = f->of->duration_s ?: NOW_S;

	f->split.until_ns = f->last_ns + 1;
	if (!f->of->at_s)
		f->split.from_ns = f->last_ns - (__u64)(fmin(now_s, length / 2) * 1e9);
	else if (f->of->duration_s)
		f->split.until_ns = f->split.from_ns + (__u64)(now_s * 1e9);
}

static int read_all(struct of_file *f, struct recorded *in, struct err *err)
{
	return diff_add_split(&f->all, &f->split, in, err);
}

static int read_own(struct of_file *f, struct recorded *in, struct err *err)
{
	int ret;

	why_places_free(f->places);
	f->places = why_places_new(in);
	f->split.now = why_places_add;
	f->split.ctx = f->places;
	ret = diff_add_split(&f->own, &f->split, in, err);
	if (!ret)
		why_places_finish(f->places, in, &f->screen);
	return ret;
}

static int compare(struct of_file *f, struct diff *d, struct compare_result *r, struct err *err)
{
	const bool own = d == &f->own;
	int ret = -EAGAIN;

	/* samples without a period stand for one access each */
	for (d->per = DIFF_PER_OPS; ret == -EAGAIN; d->per = DIFF_PER_ACCESS) {
		diff_reset(d);
		d->compare = compare_new(false, COMPARE_ROUNDS);
		ret = read_file(f, true, own, own ? read_own : read_all, err);
		if (ret != -EAGAIN || d->per == DIFF_PER_ACCESS)
			break;
	}
	ret = ret ?: diff_check(d, err);
	if (ret)
		return ret;
	ret = compare_finish(d->compare, r, err);
	return ret != -ENODATA ? ret
			       : why_too_few(err, f->of->file, r,
					     "record longer, or with a shorter period (-c)");
}

static const char *worst_cause(const struct of_file *f)
{
	const struct compare_term *worst = why_worst(&f->of_own);

	return worst ? compare_cause_name(f->own.compare, worst->cause) : "";
}

static int read_neighbours(struct of_file *f, struct recorded *in, struct err *err)
{
	struct replay_opts opts;
	struct top_source *source;
	int ret;

	if (!in->head.info->topology)
		return 0;
	recorded_selection(&f->sampling, &opts);
	source = source_recording(in->trace, &opts, f->of->file, 1, false);
	f->neighbours = neighbours_new(true);
	ret = source->open(source, NEIGHBOURS_LABELS, err);
	while (!ret)
		ret = neighbours_read_window(source, WINDOW_S, f->neighbours, &f->names, err);
	source_close(source);
	return ret < 0 ? ret : 0;
}

/* --- which container --- */

static int choose(struct of_file *f, struct err *err)
{
	const struct compare_result *r = &f->of_all;
	const char *wanted = f->of->wanted;
	struct suggestion near;

	suggestion_start(&near, wanted ?: "", strlen(wanted ?: ""));
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct compare_where *row = &r->row[i];
		const char *name = row->name[0], *part = strrchr(name, '/');

		suggestion_offer(&near, part && *name != '/' ? part + 1 : name);
		if (wanted ? !why_is_wanted(name, wanted) : row->b <= (f->row ? f->row->b : 0))
			continue;
		if (wanted && f->row)
			return err_set(err, -ENOTUNIQ,
				       "several containers are called '%s': give %s or %s", wanted,
				       f->row->name[0], name);
		f->row = row;
	}
	if (f->row)
		return 0;
	if (wanted)
		return err_set(err, -ENOENT,
			       "%s has no samples of '%s'%s; `ibscope report --by container %s` "
			       "shows all",
			       f->of->file, wanted, suggestion_text(&near), f->of->file);
	return err_set(err, -ENODATA, "%s: no container missed a cache in the part that is 'now'",
		       f->of->file);
}

/* --- the answer --- */

static void put_share(const struct of_file *f, const struct compare_where *row)
{
	const struct compare_side_sum *s = f->of_all.side;
	char before[32], now[32];

	screen_percent(&f->screen, s[COMPARE_A].y > 0 ? row->a / s[COMPARE_A].y : 0, before,
		       sizeof(before));
	screen_percent(&f->screen, s[COMPARE_B].y > 0 ? row->b / s[COMPARE_B].y : 0, now,
		       sizeof(now));
	printf("%s now, %s before\n", now, before);
}

/* Times of the recording's parts rather than of the container's first and last sample. */
static void put_head(const struct of_file *f)
{
	const struct compare_side_sum *s = f->of_own.side;
	const __u64 until = f->split.until_ns < f->last_ns ? f->split.until_ns : f->last_ns;
	char now[32], before[32];

	num_format_duration(fmax(round((until - f->split.from_ns) / 1e9), 1), now, sizeof(now));
	num_format_duration(fmax(round((f->split.from_ns - f->first_ns) / 1e9), 1), before,
			    sizeof(before));
	if (f->own.about[COMPARE_B].simulated)
		printf("SIMULATED samples, not measurements\n");
	why_put_name(f->row->name[0]);
	printf("\nNow: %s, %s samples; before: %s, %s samples\n", now,
	       TEXT_COUNT(s[COMPARE_B].samples), before, TEXT_COUNT(s[COMPARE_A].samples));
	printf("Its share of all miss cycles: ");
	put_share(f, f->row);
}

static void put_neighbours(const struct of_file *f)
{
	if (!f->neighbours)
		printf("Neighbours: unknown, as the recording has no topology\n");
	else
		why_put_neighbours(f->neighbours, intern_find(&f->names, f->row->name[0]),
				   &f->names, "a longer recording");
}

/* What shows more of the largest cause. */
static void put_next(const struct of_file *f)
{
	const struct compare_result *r = &f->of_own;
	const char *file = f->of->file, *cause = worst_cause(f);
	const char *symbol = r->n_row_findings ? r->row[0].name[0] : NULL;
	const char *name = f->row->name[0], *base = strrchr(name, '/');
	bool other = true;

	if (symbol && !strchr("[-", *symbol) && !strstr(symbol, SCREEN_INLINED))
		screen_next(stdout, &f->screen, "annotate", "-i", file, symbol, NULL);
	if (why_places_remote(f->places) || (strstr(cause, "remote") && !strstr(cause, "cache"))) {
		screen_next(stdout, &f->screen, "numa", file, NULL);
		other = false;
	}
	if (why_places_line(f->places) || strstr(cause, "cache")) {
		screen_next(stdout, &f->screen, "c2c", file, NULL);
		other = false;
	}
	if (other)
		screen_next(stdout, &f->screen, "report", *name == '/' ? "--cgroup" : "--container",
			    *name == '/' || !base ? name : base + 1, "--by", "comm,symbol,src",
			    file, NULL);
}

static void put_answer(struct of_file *f)
{
	struct diff *d = &f->own;
	const struct compare_result *r = &f->of_own;

	for (int side = 0; side < COMPARE_SIDES; side++)
		d->about[side].file = f->of->file;
	if (f->of->json) {
		why_put_json(&f->screen, d, r, f->row->name[0], "before", "now", f->places);
		return;
	}
	put_head(f);
	diff_put_answer(stdout, &f->screen, d, r);
	why_put_where(d, r);
	why_places_put(f->places, &f->screen);
	why_put_advice(&f->screen, d, r);
	diff_put_notes(stdout, &f->screen, d, r);
	put_neighbours(f);
	put_next(f);
}

/* --- all of it --- */

static void finish(struct of_file *f)
{
	compare_result_free(&f->of_own);
	compare_result_free(&f->of_all);
	diff_reset(&f->own);
	diff_reset(&f->all);
	neighbours_free(f->neighbours);
	why_places_free(f->places);
	intern_free(&f->names);
}

static int check_split(const struct of_file *f, struct err *err)
{
	char first[WHY_STAMP], last[WHY_STAMP];

	if (f->split.from_ns > f->first_ns && f->split.from_ns <= f->last_ns)
		return 0;
	why_stamp((f->realtime_ns + f->first_ns) / 1e9, first);
	why_stamp((f->realtime_ns + f->last_ns) / 1e9, last);
	return err_set(err, -EINVAL,
		       f->of->at_s ? "--at: %s has samples from %s to %s: give a time in between"
				   : "%s has samples from %s to %s only: nothing was before",
		       f->of->file, first, last);
}

int why_file_answer(const struct why_file *of, struct err *err)
{
	struct of_file f = {
		.of = of,
		.all = { .by_container = true, .causes = { LABEL_SRC }, .n_causes = 1 },
		.own = { .by = { LABEL_SYMBOL },
			 .n_by = 1,
			 .causes = { LABEL_SRC },
			 .n_causes = 1 },
	};
	int ret;

	if (!strcmp(of->file, "-"))
		return err_set(err, -EINVAL,
			       "-i -: the recording is read several times: give a file");
	screen_of(stdout, &f.screen);
	ret = read_file(&f, false, false, read_times, err);
	if (!ret)
		choose_split(&f);
	ret = ret ?: check_split(&f, err);
	ret = ret ?: compare(&f, &f.all, &f.of_all, err);
	ret = ret ?: choose(&f, err);
	if (!ret) {
		f.split.of = &f.all;
		f.split.row = compare_row(f.all.compare, f.row->name, 1);
		ret = compare(&f, &f.own, &f.of_own, err);
	}
	if (!ret && !of->json)
		ret = read_file(&f, false, false, read_neighbours, err);
	if (!ret)
		put_answer(&f);
	finish(&f);
	return !ret && f.incomplete ? -EIO : ret;
}
