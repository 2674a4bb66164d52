// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope diff: what changed between two measurements, and why. */
#include "cmd.h"
#include "base/choice.h"
#include "base/exit_status.h"
#include "base/output_file.h"
#include "base/text.h"
#include "diff/diff.h"
#include "view/pager.h"

#include <math.h>
#include <time.h>

#define ROUNDS	      COMPARE_ROUNDS
#define WINDOW_S      600
#define EXPORTER_PORT 9950

struct cmd {
	struct sampling_opts sampling;
	struct recorded in;
	struct diff diff;
	struct diff_print print;
	struct view_opts view;
	struct screen screen;
	const char *expr[COMPARE_SIDES];
	bool has_per, incomplete;
	const char *prometheus, *exporter, *html;
	struct diff_window window[COMPARE_SIDES];
	unsigned int n_at;
	double window_s;
	char until[COMPARE_SIDES][48];
};

static int set_keys(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	c->diff.by_default = false;
	return report_keys_parse(arg, c->diff.by, &c->diff.n_by, err);
}

static int set_causes(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;
	int ret = report_keys_parse(arg, c->diff.causes, &c->diff.n_causes, err);

	c->diff.causes_by_default = false;
	if (ret)
		return ret;
	if (report_keys_flags(c->diff.causes, c->diff.n_causes) &
	    (KEY_ADDRESS | REPORT_NEEDS_TASKS))
		return err_set(
			err, -EINVAL,
			"--causes: takes keys of what the hardware did, as src, op, mem_node, "
			"distance; give names of programs with --by");
	return 0;
}

static int set_per(void *ctx, const char *arg, struct err *err)
{
	const struct choices per = { "--per", "unit", diff_per_name, DIFF_PER_N };
	struct cmd *c = ctx;
	unsigned int value = 0;
	int ret = choice_parse(&per, arg, &value, err);

	c->diff.per = value;
	c->has_per = !ret;
	return ret;
}

static int set_at(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;
	double at;
	int ret = cmd_time_parse(arg, &at, err);

	if (ret)
		return ret;
	if (c->n_at == COMPARE_SIDES)
		return err_set(err, -EINVAL, "--at: give two, for A and for B");
	c->window[c->n_at++].from_s = at;
	return 0;
}

/* clang-format off: a row is a row */
static const struct option_row diff_options[] = {
	{ "a", 0, "EXPR",
	  "A is what this filter selects of the recording; see `ibscope help filter`",
	  OPTION_WORD(struct cmd, expr[COMPARE_A]) },
	{ "b", 0, "EXPR", "B is what this filter selects",
	  OPTION_WORD(struct cmd, expr[COMPARE_B]) },
	{ "by", 0, "KEY,..",
	  "keys of the second table; default container,comm,symbol, or those that JSON has",
	  set_keys },
	{ "causes", 0, "KEY,..",
	  "keys of what a cause is, such as src,op; default src, of ibs_fetch fetch", set_causes },
	{ "prometheus", 0, "URL", "compare two windows of what a Prometheus server has scraped",
	  OPTION_WORD(struct cmd, prometheus) },
	{ "exporter", 0, "URL", "compare two windows of the history that an ibscope-exporter keeps",
	  OPTION_WORD(struct cmd, exporter) },
	{ "at", 0, "TIME",
	  "end of the window of A; the second one, of B: such as -1d, 03:11, 2026-11-24T03:11",
	  set_at },
	{ "window", 0, "TIME", "length of both windows; default 10m",
	  OPTION_DURATION(struct cmd, window_s, 10, 30 * 86400) },
	{ "match", 0, "LABELS", "only series with these labels, as in PromQL: 'container=\"web\"'",
	  OPTION_WORD(struct cmd, window[0].match) },
	{ "html", 0, "FILE", "write one page, with latencies over time and changes of callers",
	  OPTION_WORD(struct cmd, html) },
	{ "per", 0, "UNIT", "what the cycles are divided by: ops (default), access or second",
	  set_per },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope diff [options] A B\n"
		   "       ibscope diff [options] --a EXPR --b EXPR FILE\n"
		   "       ibscope diff [options] --prometheus URL | --exporter URL --at TIME --at "
		   "TIME\n\n"
		   "Say by how much B waits more than A, for which causes, and where. A and B are "
		   "recordings, or files\nof `hist --json` or `ctl snapshot --json`. The causes "
		   "add up "
		   "to the difference; '~' is noise.\n\n"
		   "  ibscope diff before.data after.data\n"
		   "  ibscope diff --a 'container == canary' --b 'container == stable' FILE\n"
		   "  ibscope diff --causes src,op --by comm before.data after.data\n\n");
	options_help(f, sets, n);
	fprintf(f, "\nExit status: 0 done, 1 failed, not comparable, too few samples or "
		   "incomplete;\n2 wrong "
		   "usage.\n");
}

/* The server that is asked for windows; NULL: none. */
static const char *server_of(const struct cmd *c)
{
	return c->prometheus ?: c->exporter;
}

static int check_server(const struct cmd *c, struct err *err)
{
	const char *option = c->prometheus ? "--prometheus" : "--exporter", *url = server_of(c);

	if (!url)
		return err_set(err, -EINVAL, "--at needs --prometheus URL or --exporter URL");
	if (c->prometheus && c->exporter)
		return err_set(err, -EINVAL, "--prometheus excludes --exporter");
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return err_set(err, -EINVAL,
			       "%s: invalid URL '%s': must be as in http://localhost:%d", option,
			       url, c->prometheus ? 9090 : EXPORTER_PORT);
	if (c->n_at != COMPARE_SIDES || c->in.input.n_files || c->expr[0] || c->expr[1])
		return err_set(
			err, -EINVAL,
			"%s: give --at twice, for A and for B, and neither files nor --a and "
			"--b",
			option);
	return c->exporter ? diff_history_match(c->window[0].match ?: "", err) : 0;
}

static int check_windows(struct cmd *c, struct err *err)
{
	/* containers last, as the last key has a column even if no row has it */
	static const enum label by[] = { LABEL_CGROUP, LABEL_CONTAINER };
	int ret = check_server(c, err);

	if (ret)
		return ret;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		c->window[s].url = server_of(c);
		c->window[s].seconds = c->window_s ?: WINDOW_S;
		c->window[s].from_s -= c->window[s].seconds;
		c->window[s].match = c->window[0].match ?: "";
		c->window[s].percentile = true;
	}
	if (c->diff.by_default) {
		memcpy(c->diff.by, by, sizeof(by));
		c->diff.n_by = ARRAY_SIZE(by);
	}
	if (!c->diff.causes_by_default)
		return err_set(err, -EINVAL, "--causes: windows have only data sources");
	return 0;
}

static int check(void *cmd, struct err *err)
{
	struct cmd *c = cmd;
	const bool exprs = c->expr[0] || c->expr[1];
	const int want = exprs && c->in.input.n_files < 2 ? 1 : 2;
	const bool fetch = sampling_of_fetch(&c->sampling);

	c->diff.html = c->html;
	if (c->html && (c->view.format || c->view.top))
		return err_set(err, -EINVAL, "--html excludes --csv, --json, --markdown and --top");
	if (server_of(c) || c->n_at)
		return check_windows(c, err);
	if (c->in.input.from_option && want == 2)
		return err_set(err, -EINVAL, "-i: diff takes two files as arguments, A and B");
	if (c->in.input.n_files != want && !(want == 1 && c->in.input.from_option))
		return err_set(
			err, -EINVAL,
			"%d file%s given: give two, A and B; or one, with --a EXPR and --b EXPR",
			c->in.input.n_files, text_plural(c->in.input.n_files));
	if (want == 1 && (!c->expr[0] || !c->expr[1]))
		return err_set(err, -EINVAL, "--a and --b belong together, for one recording");
	if (c->diff.causes_by_default)
		c->diff.causes[0] = fetch ? LABEL_FETCH : LABEL_SRC;
	return report_keys_check(c->diff.by, c->diff.n_by, fetch, err)
		       ?: report_keys_check(c->diff.causes, c->diff.n_causes, fetch, err);
}

static const char *file_of(const struct cmd *c, enum compare_side side)
{
	const struct recorded_input *in = &c->in.input;

	return in->n_files == 2 ? in->files[side] : in->file;
}

/* The selection of a side: that of both, and its own expression. */
static int select_side(struct cmd *c, enum compare_side side, struct sampling_opts *s,
		       struct err *err)
{
	struct filter *filter = &s->select.filter[sampling_of_fetch(s)], own;
	const char *both = filter->text;
	char *text;
	int ret;

	if (!c->expr[side])
		return 0;
	text = both ? xasprintf("(%s) && (%s)", both, c->expr[side]) : xstrdup(c->expr[side]);
	const struct filter_part part = { side ? "--b" : "--a", text, IBS_OUTCOME_FILTERED_EXPR,
					  sampling_of_fetch(s) };

	ret = filter_compile(&part, 1, &own, err);
	free(text);
	if (ret)
		c->in.usage = true;
	else
		*filter = own;
	return ret;
}

static int read_recording(struct cmd *c, enum compare_side side, struct err *err)
{
	struct recorded in = { .input = c->in.input,
			       .symbols_opts = c->in.symbols_opts,
			       .options = c->in.options };
	const unsigned int flags = report_keys_flags(c->diff.by, c->diff.n_by) |
				   (c->html ? REPORT_NEEDS_TASKS | REPORT_NEEDS_SYMBOLS : 0);
	struct sampling_opts s = c->sampling;
	int ret = select_side(c, side, &s, err);

	if (ret)
		return ret;
	in.input.file = file_of(c, side);
	in.places = flags & KEY_DATA;
	in.heap = flags & KEY_HEAP;
	ret = recorded_start(&in, &s, flags & REPORT_NEEDS_TASKS, flags & REPORT_NEEDS_SYMBOLS,
			     err);
	ret = ret
		      ?: report_check_recorded(c->diff.by, c->diff.n_by, in.head.info,
					       recorded_name(&in.input), err);
	ret = ret ?: diff_add_recording(&c->diff, side, &in, err);
	if (!ret) {
		recorded_losses(&in.head);
		c->incomplete |= recorded_status(&in, 0, err) != EXIT_DONE;
	}
	if (!ret && !in.head.selected)
		recorded_nothing(in.replay, NULL);
	c->in.usage |= in.usage;
	if (c->expr[side])
		filter_free(&s.select.filter[sampling_of_fetch(&s)]);
	in.options = NULL; /* borrowed */
	recorded_close(&in);
	return ret;
}

static int read_window(struct cmd *c, enum compare_side side, struct err *err)
{
	time_t end = c->window[side].from_s + c->window[side].seconds;
	struct tm tm;

	gmtime_r(&end, &tm);
	strftime(c->until[side], sizeof(c->until[side]), "until %Y-%m-%dT%H:%M:%SZ", &tm);
	c->diff.metric =
		sampling_of_fetch(&c->sampling) ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
	c->diff.about[side].file = server_of(c);
	c->diff.about[side].selection = c->until[side];
	return (c->exporter ? diff_add_history : diff_add_window)(&c->diff, side, &c->window[side],
								  err);
}

static int read_side(struct cmd *c, enum compare_side side, struct err *err)
{
	const char *file = file_of(c, side);
	struct replay_opts selection;

	c->diff.about[side].file = file;
	c->diff.about[side].selection = c->expr[side];
	if (server_of(c))
		return read_window(c, side, err);
	if (!diff_is_counts(file))
		return read_recording(c, side, err);
	recorded_selection(&c->sampling, &selection);
	if (replay_selects(&selection) || c->expr[side]) {
		c->in.usage = true;
		return err_set(err, -EINVAL,
			       "%s has counts, of which nothing can be selected: leave out the "
			       "selection, or give a recording",
			       file);
	}
	return diff_add_counts(&c->diff, side, file, err);
}

static int read_all(struct cmd *c, struct err *err)
{
	int ret = 0;

	diff_reset(&c->diff);
	c->diff.compare = compare_new(c->diff.per == DIFF_PER_SECOND, ROUNDS);
	for (unsigned int s = 0; s < COMPARE_SIDES && !ret; s++)
		ret = read_side(c, s, err);
	return ret;
}

/* Samples without a period stand for one access each. */
static int read_with_any_unit(struct cmd *c, struct err *err)
{
	int ret = read_all(c, err);

	if (ret != -EAGAIN)
		return ret;
	if (c->has_per)
		return err_set(err, -EINVAL,
			       "--per %s: a side does not say for how many ops its samples stand; "
			       "use --per access",
			       diff_per_name(c->diff.per));
	if (!server_of(c) && (!strcmp(file_of(c, 0), "-") || !strcmp(file_of(c, 1), "-")))
		return err_set(err, -EINVAL, "standard input has no periods; use --per access");
	c->diff.per = DIFF_PER_ACCESS;
	return read_all(c, err);
}

static int choose_keys(struct cmd *c, struct err *err)
{
	const char *a = file_of(c, COMPARE_A), *b = file_of(c, COMPARE_B);
	int ret = 0;

	if (server_of(c))
		return 0;
	if (diff_is_counts(a) && diff_is_counts(b))
		ret = diff_find_overlap(&c->diff, a, b, err);
	if (ret || diff_is_counts(a) || diff_is_counts(b))
		ret = ret ?: diff_keys_of_counts(&c->diff, diff_is_counts(a) ? a : b, err);
	return ret;
}

static void print_next(const struct cmd *c, const struct compare_result *r, FILE *f)
{
	const struct compare_where *w = r->row;
	const struct recorded_input a = { .file = file_of(c, COMPARE_A) },
				    b = { .file = file_of(c, COMPARE_B) };
	const char *file = recorded_again(&b);
	const char *cause =
		r->n_findings ? compare_cause_name(c->diff.compare, r->term[0].cause) : "";

	if (c->view.format || server_of(c) || !r->n_findings ||
	    diff_is_counts(file_of(c, COMPARE_A)) || diff_is_counts(file_of(c, COMPARE_B)))
		return;
	for (unsigned int k = 0; k < c->diff.n_by && r->n_row_findings; k++)
		if (c->diff.by[k] == LABEL_SYMBOL && w->name[k] && !strchr("[-", *w->name[k]) &&
		    !strstr(w->name[k], SCREEN_INLINED) && !sampling_of_fetch(&c->sampling))
			/* B need not have it at all */
			screen_next(f, &c->screen, "annotate", "-i",
				    w->a > w->b ? recorded_again(&a) : file, w->name[k], NULL);
	if (strstr(cause, "remote"))
		screen_next(f, &c->screen, "numa", file, NULL);
	else
		screen_next(f, &c->screen, "report", file,
			    sampling_of_fetch(&c->sampling) ? "--event=ibs_fetch//" : "", "--by",
			    sampling_of_fetch(&c->sampling) ? "comm,fetch" : "comm,src", NULL);
}

static int write_html(struct cmd *c, const struct compare_result *r, struct err *err)
{
	struct output_file out;
	int ret = output_file_begin(&out, "--html", c->html, err);

	if (ret)
		return ret;
	diff_put_html(output_file_stream(&out), &c->diff, r);
	return output_file_end(&out, 0, err);
}

static int show(struct cmd *c, const struct compare_result *r, struct err *err)
{
	struct pager pager = { .f = stdout, .to = stdout };

	if (c->html)
		return write_html(c, r, err);
	screen_of(stdout, &c->screen);
	c->print.screen = &c->screen;
	c->print.format = c->view.format;
	c->print.top = c->view.top;
	if (format_is_text(c->print.format))
		pager_open(&pager, stdout);
	diff_print(pager.f, &c->print, &c->diff, r);
	print_next(c, r, pager.f);
	return pager_close(&pager, err);
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct compare_result result = {};
	struct err err = { "" };
	int ret = c->html ? output_file_check(c->html, &err) : 0;

	c->diff.max_memory = c->in.input.max_memory;
	if (*c->sampling.events)
		c->diff.event = sampling_of_fetch(&c->sampling) ? "ibs_fetch" : "ibs_op";
	ret = ret ?: choose_keys(c, &err);
	ret = ret ?: read_with_any_unit(c, &err);
	ret = ret ?: diff_check(&c->diff, &err);
	ret = ret ?: compare_finish(c->diff.compare, &result, &err);
	ret = ret ?: show(c, &result, &err);
	if (ret)
		log_error("%s", err.text);
	compare_result_free(&result);
	diff_reset(&c->diff);
	if (ret)
		return c->in.usage ? EXIT_USAGE : EXIT_FAILED;
	return c->incomplete ? EXIT_FAILED : EXIT_DONE;
}

int cmd_diff(int argc, char **argv)
{
	struct cmd c = {
		.in.input = { .takes_several = true,
			      .takes_fetch = true,
			      .strata = RECORDED_WEIGHTS },
		.diff = { .by = { LABEL_CONTAINER, LABEL_COMM, LABEL_SYMBOL },
			  .n_by = 3,
			  .n_causes = 1,
			  .by_default = true,
			  .causes_by_default = true },
	};
	struct option_row view[VIEW_OPTIONS_MAX];
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = { "Comparison", diff_options, ARRAY_SIZE(diff_options), &c },
		.view = view_options(view, "top markdown csv json", NULL, &c.view),
		.cmd = &c,
		.symbols = true,
		.inlined = true,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
