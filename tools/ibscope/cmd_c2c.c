// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope c2c: cache lines that threads share. */
#include "cmd.h"
#include "live_lines/live_lines.h"
#include "live_lines/served_lines.h"
#include "cmd_hist.h"
#include "base/num.h"
#include "collector/control.h"
#include "input/recorded.h"
#include "view/pager.h"
#include "where/lines_print.h"

#define FORMATS "top sort columns csv json"

struct cmd {
	struct sampling_opts sampling;
	struct recorded in;
	struct lines_print print;
	struct screen screen;
	bool live;	    /* for --help: cmd_c2c() looks for it */
	bool found, missed; /* --line, in any interval */
	__u32 feed;
	const char *control;
	struct line_set *lines;
};

static int set_feed(void *ctx, const char *arg, struct err *err)
{
	return live_lines_feed(arg, &((struct cmd *)ctx)->feed, err);
}

static int set_line(void *ctx, const char *arg, struct err *err)
{
	struct lines_print *p = &((struct cmd *)ctx)->print;
	char *end;

	errno = 0;
	p->line = strtoull(arg, &end, 16);
	p->has_line = true;
	/* a variable may be called "add" */
	p->variable = strncmp(arg, "0x", 2) ? arg : NULL;
	p->is_address = !errno && end > arg && !*end && !strchr("+- ", *arg);
	if (!p->is_address && (!p->variable || strchr("+- ", *arg)))
		return err_set(err, -EINVAL,
			       "--line: invalid address '%s': must be hexadecimal, as in "
			       "0x7f0012345640, or the name of a variable",
			       arg);
	return 0;
}

/* clang-format off: a row is a row */
static const struct option_row c2c_options[] = {
	{ "control", 0, "PATH",
	  "the lines of a collector with --hot-lines, such as that of " CONTROL_PATH "; root only",
	  OPTION_WORD(struct cmd, control) },
	{ "line", 0, "LINE",
	  "print one line, by address, variable or field in it: its bytes, and who accesses which",
	  set_line },
	{ "all", 0, NULL, "text: also list lines of one thread or CPU",
	  OPTION_FLAG(struct cmd, print.all) },
	{ "feed", 0, "LIST", "with --live, " LIVE_LINES_FEED_HELP, set_feed },
	{ "live", 0, NULL, "sample now rather than read a recording",
	  OPTION_FLAG(struct cmd, live) },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope c2c [options] [FILE]\n\n"
		"Find the cache lines of a recording, of `ibscope record` or of `perf record "
		"--raw-samples`, that\nthreads on several CPUs share, and whether they share data "
		"or only the line. '-' is standard input.\n\n"
		"  ibscope c2c FILE\n"
		"  ibscope c2c --line 0x12f4a3c40 FILE     who accesses which bytes of it\n"
		"  ibscope c2c --live 10                   the hottest lines now, every 10 s\n"
		"  ibscope c2c --control " CONTROL_PATH "\n"
		"                                          those of `serve --hot-lines`\n");
	options_help(f, sets, n);
	lines_terms(f);
	fprintf(f, "\nA recording that lacks stores or hits in caches is refused. Exit status: 0 "
		   "done, 1 failed or the\nrecording is incomplete; 2 wrong usage.\n");
}

static int check_recording(struct cmd *c, struct err *err)
{
	struct err why;

	if (!lines_hidden_in(c->in.head.info, &why))
		return 0;
	return err_set(err, -ENODATA,
		       "%s: sharing cannot be judged as it was recorded: %s; record without, or "
		       "use `ibscope report --by line --phys`",
		       c->in.head.file, why.text);
}

static int read_all(struct cmd *c, struct err *err)
{
	const struct lines_opts opts = { .info = c->in.head.info, .metric = c->print.metric };
	struct trace_event ev;
	int ret;

	c->lines = lines_new(&opts);
	while ((ret = recorded_next(&c->in, &ev, err)) > 0)
		lines_add(c->lines, &ev);
	return ret;
}

static int print(struct cmd *c, struct err *err)
{
	struct pager pager = { .f = stdout, .to = stdout };
	const struct lines *lines = lines_finish(c->lines);
	int ret;

	if (c->in.head.selected && !lines->hot.tables && !lines->physical && !lines->only_virtual)
		return err_set(err, -ENODATA, "%s: no sample has a data address", c->in.head.file);
	if (lines->total.samples && !lines->total.stores)
		log_warn("no sample stores: who writes to a line is not known, so sharing is not "
			 "judged");
	c->print.head = &c->in.head;
	c->print.tasks = c->in.tasks;
	c->print.symbols = c->in.symbols;
	if (c->print.view.format == FORMAT_TEXT)
		pager_open(&pager, stdout);
	ret = lines_print(pager.f, &c->print, lines, err);
	return pager_close(&pager, err) ?: ret;
}

static void prepare_print(struct cmd *c)
{
	screen_of(stdout, &c->screen);
	c->print.screen = &c->screen;
	if (c->print.view.format == FORMAT_TEXT && !c->print.view.top)
		c->print.view.top = recorded_rows(&c->screen);
}

static int run(void *cmd)
{
	struct cmd *c = cmd;
	struct err err = { "" };
	int ret;

	c->in.heap = c->in.places = c->in.places_last = true;
	c->print.file = recorded_again(&c->in.input);
	ret = recorded_start(&c->in, &c->sampling, true, true, &err);
	c->print.metric = c->sampling.event[0].metric;
	ret = ret ?: check_recording(c, &err);
	ret = ret ?: read_all(c, &err);
	prepare_print(c);
	if (!ret && !c->in.head.selected)
		recorded_nothing(c->in.replay, "ibs_op");
	ret = ret ?: print(c, &err);
	lines_free(c->lines);
	return recorded_status(&c->in, ret, &err);
}

static int check(void *cmd, struct err *err)
{
	const struct cmd *c = cmd;

	if (c->feed)
		return err_set(err, -EINVAL,
			       "--feed: a recording has all samples; it needs --live");
	return live_lines_check_selection(&c->sampling.select, err);
}

static const char live_usage[] =
	"usage: ibscope c2c --live [OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ...]\n\n"
	"Sample stores, and loads that other caches answer, and print the cache lines with most of "
	"them that\nthreads on several CPUs share: every INTERVAL, COUNT times; without INTERVAL "
	"once, "
	"when interrupted\nor when COMMAND exits. The lines are kept in the kernel, in tables of "
	"fixed "
	"size.\n";

static int prepare_live(void *arg, struct sampling_opts *s, struct err *err)
{
	struct cmd *c = arg;

	return live_lines_prepare(s, c->feed, err);
}

static int print_live(void *arg, struct session *s, const struct snapshot *interval,
		      struct err *err)
{
	struct cmd *c = arg;
	int ret;

	prepare_print(c);
	ret = live_lines_print(&c->print, s, interval, err);
	c->found |= !ret;
	c->missed |= ret > 0;
	if (ret > 0) /* it may come again */
		log_warn("%s", err->text);
	return ret < 0 ? ret : 0;
}

static int c2c_live(int argc, char **argv)
{
	struct cmd c = { .print.view.sort = TABLE_CYCLES };
	const struct interval_printer printer = {
		/* all but --control, which is the first */
		.own = { "Lines", c2c_options + 1, ARRAY_SIZE(c2c_options) - 1, &c },
		.formats = FORMATS,
		.of = &lines_columns,
		.view = &c.print.view,
		.usage = live_usage,
		.prepare = prepare_live,
		.print = print_live,
		.arg = &c,
	};
	int status;

	status = hist_run(argc, argv, false, &printer);
	return !status && c.missed && !c.found ? EXIT_FAILED : status;
}

static int ask(struct cmd *c, struct served_answer *a, struct err *err)
{
	static const char request[] = "hot-lines\n";
	struct control_answer answer;
	int ret = control_ask(c->control, request, sizeof(request) - 1, &answer, err);

	if (ret)
		return ret;
	a->text = answer.text;
	a->n = answer.n;
	if (answer.result != CONTROL_OK)
		ret = err_set(err, -EIO, "%.*s", (int)strcspn(answer.text, "\n"), answer.text);
	ret = ret ?: served_lines_read(a, &c->in, &c->lines, err) ?: print(c, err);
	free(answer.text);
	return ret;
}

/* Lines of a running collector. What selects samples was given to that. */
static int c2c_control(int argc, char **argv)
{
	struct cmd c = { .print = { .view.sort = TABLE_CYCLES, .metric = IBS_METRIC_DC_MISS_LAT } };
	struct option_row view[VIEW_OPTIONS_MAX];
	const struct option_set sets[] = {
		{ "Lines", c2c_options, ARRAY_SIZE(c2c_options) - 2,
		  &c }, /* all but --feed and --live */
		view_options(view, FORMATS, &lines_columns, &c.print.view),
		{ "Symbols", recorded_symbol_rows, RECORDED_SYMBOL_ROWS, &c.in.symbols_opts },
	};
	struct served_answer answer = { 0 };
	struct err err = { "" };
	int ret = options_parse(argc, argv, sets, ARRAY_SIZE(sets), &err), status = EXIT_USAGE;

	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			usage(stdout, sets, ARRAY_SIZE(sets));
		return EXIT_DONE;
	}
	if (!ret && optind < argc)
		ret = err_set(&err, -EINVAL, "--control and a recording exclude each other");
	if (!ret) {
		prepare_print(&c);
		answer.path = c.control;
		ret = ask(&c, &answer, &err);
		status = ret ? EXIT_FAILED : EXIT_DONE;
	}
	if (ret)
		log_error("%s", err.text);
	lines_free(c.lines);
	recorded_close(&c.in);
	return status;
}

int cmd_c2c(int argc, char **argv)
{
	struct cmd c = { .print.view.sort = TABLE_CYCLES, .in.input.strata = RECORDED_WEIGHTS };

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--live") || !strcmp(argv[i], "--"))
			return c2c_live(argc, argv);
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--control", 9) && strchr("=", argv[i][9]))
			return c2c_control(argc, argv);
	struct option_row view[VIEW_OPTIONS_MAX];
	const struct recorded_command command = {
		.sampling = &c.sampling,
		.in = &c.in,
		.own = { "Lines", c2c_options, ARRAY_SIZE(c2c_options), &c },
		.view = view_options(view, FORMATS, &lines_columns, &c.print.view),
		.cmd = &c,
		.symbols = true,
		.inlined = true,
		.usage = usage,
		.check = check,
		.run = run,
	};

	return recorded_command(&command, argc, argv);
}
