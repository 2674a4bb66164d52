// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope report: a recording in summary. */
#include "cmd.h"
#include "base/output_file.h"
#include "html/html_report.h"
#include "recorded.h"
#include "report/report_folded.h"
#include "report/report_pprof.h"
#include "report/report_print.h"
#include "view/pager.h"
#include "view/screen.h"

#include <getopt.h>
#include <unistd.h>
#include <sys/stat.h>

#define PIPE_ROWS      20
#define MIN_ROWS       5
#define HEAD_LINES     14 /* of the text, with the prompt after it */
#define PROBLEMS_SHOWN 10 /* files without symbols that are named, unless -v */

struct cmd {
	struct sampling sampling;
	struct report_opts opts;
	struct report_order order;
	enum report_column columns[REPORT_COLUMN_N];
	unsigned int n_columns;
	enum report_format format;
	bool has_format, folds;
	enum folded_weight weight;
	struct symbols_opts symbols_opts;
	char *options; /* as given, for the head */

	struct recorded_input input;
	struct trace *trace;
	struct replay *replay; /* NULL: all samples are wanted */
	struct tasks *tasks;
	struct symbols *symbols;
	struct report *report;
	struct folded *folded;
	const char *html_path; /* NULL: no HTML */
	struct html_report *html;
	const char *pprof_path; /* NULL: no profile */
	struct pprof *pprof;
	struct report_head head;
	struct screen screen;
	bool usage;
	size_t problems;
};

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	return report_keys_parse(arg, c->opts.by, &c->opts.n_by, err);
}

static int set_sort(void *ctx, const char *arg, struct err *err)
{
	enum report_column columns[REPORT_COLUMN_N];
	struct cmd *c = ctx;
	unsigned int n;
	int ret = report_columns_parse("--sort", arg, columns, &n, err);

	if (!ret && n > 1)
		return err_set(err, -EINVAL, "--sort: one column at a time, not '%s'", arg);
	if (!ret)
		c->order.sort = columns[0];
	return ret;
}

static int set_columns(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	return report_columns_parse("--columns", arg, c->columns, &c->n_columns, err);
}

static int set_format(struct cmd *c, enum report_format format, struct err *err)
{
	if (c->has_format)
		return err_set(err, -EINVAL,
			       "--csv, --json, --folded, --html and --pprof exclude each other");
	c->has_format = true;
	c->format = format;
	return 0;
}

static int set_csv(void *ctx, const char *arg, struct err *err)
{
	(void)arg;
	return set_format(ctx, REPORT_CSV, err);
}

static int set_json(void *ctx, const char *arg, struct err *err)
{
	(void)arg;
	return set_format(ctx, REPORT_JSON, err);
}

static int set_folded(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	if (!strcmp(arg, "samples"))
		c->weight = FOLDED_SAMPLES;
	else if (!strcmp(arg, "total"))
		c->weight = FOLDED_TOTAL;
	else
		return err_set(err, -EINVAL, "--folded: '%s' must be samples or total", arg);
	c->folds = true;
	return set_format(c, REPORT_TEXT, err);
}

static int set_html(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	c->html_path = arg;
	return set_format(c, REPORT_TEXT, err);
}

static int set_pprof(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;

	c->pprof_path = arg;
	return set_format(c, REPORT_TEXT, err);
}

static int set_debug_dir(void *ctx, const char *arg, struct err *err)
{
	struct cmd *c = ctx;
	struct stat st;

	if (stat(arg, &st))
		return err_set(err, -errno, "--debug-dir: cannot use %s: %s", arg, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "--debug-dir: %s is not a directory", arg);
	c->symbols_opts.debug_dir = arg;
	return 0;
}

/* clang-format off: a row is a row */
static const struct option_row report_options[] = {
	{ "by", 0, "KEY,..", "a row for each combination of these; default src", set_by },
	{ "sort", 0, "COLUMN", "rows by this column, greatest first; default miss_cycles",
	  set_sort },
	{ "columns", 0, "COLUMN,..",
	  "what is shown, in this order; by default as many as fit, as in hist", set_columns },
	{ "top", 0, "N",
	  "only the first N rows, and the sum of the others; by default as many as fit the "
	  "terminal, 20 in a pipe; --csv and --json: all",
	  OPTION_NUMBER(struct cmd, order.top, 1, SIZE_MAX), .what = "rows" },
	{ "limit", 0, "N", "the same", OPTION_NUMBER(struct cmd, order.top, 1, SIZE_MAX),
	  .what = "rows" },
	{ "min-samples", 0, "N", "only rows of at least so many samples",
	  OPTION_NUMBER(struct cmd, order.min_samples, 0, UINT64_MAX) },
	{ "phys", 0, NULL, "pages and lines of physical addresses",
	  OPTION_FLAG(struct cmd, opts.phys) },
	{ "csv", 0, NULL, "a table for programs; what is not known is empty", set_csv },
	{ "json", 0, NULL, "one JSON object; what is not known is null", set_json },
	{ "folded", 0, "samples|total", "call chains for flame graphs, weighted by that",
	  set_folded },
	{ "html", 0, "FILE", "one self-contained HTML file with linked views", set_html },
	{ "pprof", 0, "FILE", "a profile for pprof, with the keys of --by as labels", set_pprof },
	{ "kallsyms", 0, "FILE", "the kernel's symbols, as of /proc/kallsyms",
	  OPTION_WORD(struct cmd, symbols_opts.kallsyms) },
	{ "debug-dir", 0, "DIR", "debug files by build-id, beside /usr/lib/debug", set_debug_dir },
	{ "debuginfod", 0, NULL, "ask the servers of DEBUGINFOD_URLS for debug files",
	  OPTION_FLAG(struct cmd, symbols_opts.debuginfod) },
};
/* clang-format on */

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope report [options] [FILE]\n\n"
		"Add up the samples of a recording, of `ibscope record` or of `perf record "
		"--raw-samples`, by what\nthey have in common, and show how long they waited. '-' "
		"is standard input.\n\n"
		"  ibscope report --src dram FILE             the latency of DRAM: mean and "
		"percentiles\n"
		"  ibscope report --by symbol,src --top 20 FILE\n"
		"  ibscope report --by line --sort threads FILE   cache lines that threads "
		"share\n");
	options_help(f, sets, n);
	report_terms(f);
	fprintf(f,
		"\nPercentiles are upper edges of their buckets, at most 1/8 too high; '-' where "
		"the samples are\ntoo few, or a thing is not known. Exit status: 0 done, 1 "
		"failed or the recording is incomplete;\n2 wrong usage.\n");
}

static bool by(const struct cmd *c, enum report_key key)
{
	for (unsigned int i = 0; i < c->opts.n_by; i++)
		if (c->opts.by[i] == key)
			return true;
	return false;
}

/* What is shown if nothing else is asked for. */
static void default_columns(struct cmd *c)
{
	bool data = by(c, REPORT_KEY_PAGE) || by(c, REPORT_KEY_LINE);

	if (c->n_columns)
		return;
	c->opts.cpus = c->opts.threads = data;
	if (c->format == REPORT_TEXT) /* as many as fit */
		return;
	/* programs get all; the last ones are costly, and of data */
	c->n_columns = data ? REPORT_COLUMN_N : REPORT_COLUMN_OFFSETS;
	for (unsigned int i = 0; i < c->n_columns; i++)
		c->columns[i] = i;
}

static void count_what_is_shown(struct cmd *c)
{
	for (unsigned int i = 0; i <= c->n_columns; i++) {
		enum report_column column = i < c->n_columns ? c->columns[i] : c->order.sort;

		c->opts.cpus |= column == REPORT_COLUMN_CPUS;
		c->opts.threads |= column == REPORT_COLUMN_THREADS;
	}
}

static size_t rows_that_fit(const struct screen *screen)
{
	if (!screen->height)
		return PIPE_ROWS;
	return screen->height > HEAD_LINES + MIN_ROWS ? screen->height - HEAD_LINES : MIN_ROWS;
}

static void prepare(struct cmd *c)
{
	struct err err;

	screen_of(stdout, &c->screen);
	if (c->format == REPORT_TEXT && !c->order.top)
		c->order.top = rows_that_fit(&c->screen);

	if (!c->opts.n_by && c->pprof_path)
		report_keys_parse(PPROF_LABELS, c->opts.by, &c->opts.n_by, &err);
	else if (!c->opts.n_by)
		c->opts.by[c->opts.n_by++] = REPORT_KEY_SRC;
	/* an address means something in its address space only */
	if (!c->opts.phys && (by(c, REPORT_KEY_PAGE) || by(c, REPORT_KEY_LINE)) &&
	    !by(c, REPORT_KEY_PID) && !by(c, REPORT_KEY_TID) && !by(c, REPORT_KEY_SPACE))
		c->opts.by[c->opts.n_by++] = REPORT_KEY_SPACE;
	default_columns(c);
	count_what_is_shown(c);
	c->opts.metric = c->sampling.opts.metric;
	c->head.options = c->options;
	c->head.file = recorded_name(&c->input);
}

/* How many words name the input, from this one on: "-i FILE", "-iFILE", "--input=FILE" or "FILE". */
static int input_words(const struct cmd *c, const char *word)
{
	if (!c->input.from_option)
		return word == c->input.file;
	if (!strcmp(word, "-i") || !strcmp(word, "--input"))
		return 2;
	return !strncmp(word, "-i", 2) || !strncmp(word, "--input=", 8);
}

/* All words but the input, which the head names. */
static void keep_options(struct cmd *c, int argc, char **argv)
{
	size_t len = 1;

	for (int i = 1; i < argc; i++)
		len += strlen(argv[i]) + 1;
	c->options = xcalloc(1, len);
	for (int i = 1; i < argc; i++) {
		int skip = input_words(c, argv[i]);

		if (skip)
			i += skip - 1;
		else
			strcat(strcat(c->options, *c->options ? " " : ""), argv[i]);
	}
}

static int open_selection(struct cmd *c, struct err *err)
{
	struct replay_opts opts;
	int ret;

	recorded_selection(&c->sampling, &opts);
	opts.by = 0;
	if (!replay_selects(&opts))
		return 0;
	ret = replay_open(c->trace, &opts, &c->replay, err);
	c->usage = ret == -EINVAL || ret == -ERANGE;
	return ret;
}

static bool has_chains(const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++)
		if (info->pmu[i].stacks)
			return true;
	return false;
}

static int open_all(struct cmd *c, struct err *err)
{
	const struct trace_info *info;
	bool chains = c->folds || c->html_path || c->pprof_path;
	bool symbols = chains || report_needs_symbols(c->opts.by, c->opts.n_by);
	bool tasks = chains || report_needs_tasks(c->opts.by, c->opts.n_by);
	int ret = recorded_open(&c->input, &c->trace, err);

	if (ret)
		return ret;
	info = trace_info(c->trace);
	c->opts.info = c->head.info = c->symbols_opts.info = info;
	if (c->folds && !has_chains(info))
		return err_set(err, -ENODATA,
			       "--folded: %s has no call chains; they are kept only if asked for "
			       "while recording",
			       recorded_name(&c->input));
	ret = tasks_new(&c->tasks, err);
	if (!ret && tasks)
		ret = tasks_read(c->tasks, c->trace, err);
	if (!ret && symbols)
		ret = symbols_new(&c->symbols_opts, &c->symbols, err);
	ret = ret ?: open_selection(c, err);
	if (ret)
		return ret;
	c->opts.tasks = c->tasks;
	c->opts.symbols = c->symbols;
	if (c->folds) {
		struct folded_opts opts = {
			.weight = c->weight,
			.metric = c->opts.metric,
			.simulated = info->simulated,
			.tasks = c->tasks,
			.symbols = c->symbols,
		};

		c->folded = folded_new(&opts);
		return 0;
	}
	if (c->html_path) {
		const struct html_report_opts opts = {
			.info = info,
			.tasks = c->tasks,
			.symbols = c->symbols,
			.file = recorded_name(&c->input),
			.options = c->options,
		};

		return html_report_new(&opts, &c->html, err);
	}
	if (c->pprof_path)
		c->pprof = pprof_new(&c->opts);
	return c->pprof_path ? 0 : report_new(&c->opts, &c->report, err);
}

static int add_html(struct cmd *c, const struct trace_event *ev, struct err *err)
{
	enum report_unit unit;
	int ret = html_report_add(c->html, ev, report_period(c->head.info, ev, &unit));

	if (ret == -E2BIG)
		return err_set(
			err, ret,
			"--html: too many different samples for one page (more than %u rows); "
			"select fewer",
			HTML_ROWS_MAX);
	return ret ? err_set(err, ret, "out of memory") : 0;
}

static int add_sample(struct cmd *c, const struct trace_event *ev, struct err *err)
{
	int ret;

	if (ev->kind == TRACE_SAMPLE_OP)
		c->head.op_samples++;
	else
		c->head.fetch_samples++;
	if (c->replay) {
		ret = replay_judge(c->replay, ev, err);
		if (ret <= 0)
			return ret;
	}
	c->head.selected++;
	if (c->html)
		return add_html(c, ev, err);
	if (c->pprof)
		pprof_add(c->pprof, ev);
	else if (c->folds)
		folded_add(c->folded, ev);
	else
		report_add(c->report, ev);
	return 0;
}

static int read_all(struct cmd *c, struct err *err)
{
	struct trace_event ev;
	int ret;

	while ((ret = trace_next(c->trace, &ev, err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH) {
			ret = add_sample(c, &ev, err);
			if (ret)
				return ret;
		} else if (ev.kind == TRACE_LOST) {
			*(ev.lost.samples ? &c->head.lost_samples : &c->head.lost_records) +=
				ev.lost.n;
		}
	}
	c->head.end = trace_end(c->trace);
	return ret;
}

static int write_html(struct cmd *c, struct err *err)
{
	int fd = output_file_open_binary("--html", c->html_path, err), ret;
	FILE *f;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f)
		out_of_memory();
	ret = html_report_write(c->html, c->head.end, f);
	if (ferror(f) || fclose(f) || ret)
		return err_set(err, -EIO, "cannot write %s: %s", c->html_path, strerror(errno));
	return 0;
}

static int write_pprof(struct cmd *c, struct err *err)
{
	int fd = output_file_open_binary("--pprof", c->pprof_path, err), ret;

	if (fd < 0)
		return fd;
	ret = pprof_write(c->pprof, &c->head, fd, err);
	if (close(fd) && !ret)
		ret = err_set(err, -errno, "cannot write %s: %s", c->pprof_path, strerror(errno));
	return ret;
}

static int print(struct cmd *c, struct err *err)
{
	struct report_table table;
	struct pager pager = { .f = stdout, .to = stdout };

	if (c->pprof)
		return write_pprof(c, err);
	if (c->html)
		return write_html(c, err);
	if (c->folds) {
		folded_print(stdout, c->folded);
	} else {
		report_table(c->report, &c->order, &table);
		if (c->format == REPORT_TEXT)
			pager_open(&pager, stdout);
		report_print(pager.f, &c->screen, c->format, &c->head, &table, c->columns,
			     c->n_columns);
		report_table_free(&table);
	}
	return pager_close(&pager, err);
}

static void show_problem(const char *text, void *arg)
{
	struct cmd *c = arg;

	if (c->problems++ < PROBLEMS_SHOWN || log_is_verbose())
		log_warn("no symbols of %s", text);
}

static void show_problems(struct cmd *c)
{
	if (!c->symbols)
		return;
	symbols_problems(c->symbols, show_problem, c);
	if (c->problems > PROBLEMS_SHOWN && !log_is_verbose())
		log_warn("and of %zu more files; -v names them", c->problems - PROBLEMS_SHOWN);
}

/* Formats without a head say here what it would have said. */
static void show_losses(const struct cmd *c)
{
	const struct report_head *h = &c->head;
	__u64 lost = h->lost_samples;

	if (!c->folds && !c->pprof && c->format != REPORT_CSV)
		return;
	if (h->end->has_ledger && ledger_sum(&h->end->ledger, IBS_OUTCOME_KIND_LOST) > lost)
		lost = ledger_sum(&h->end->ledger, IBS_OUTCOME_KIND_LOST);
	if (lost)
		log_warn("%llu samples were lost while recording", (unsigned long long)lost);
	if (h->lost_records)
		log_warn("%llu records, of what is not known, were lost while recording",
			 (unsigned long long)h->lost_records);
}

static int run(struct cmd *c)
{
	struct err err = { "" };
	int ret = open_all(c, &err);

	ret = ret ?: read_all(c, &err);
	ret = ret ?: print(c, &err);
	if (ret) {
		recorded_fail(ret, &err);
		return c->usage ? EXIT_USAGE : EXIT_FAILED;
	}
	if (!c->head.selected)
		recorded_nothing(c->replay);
	show_problems(c);
	show_losses(c);
	return recorded_complete(&c->input, c->trace) ? EXIT_DONE : EXIT_FAILED;
}

static void close_all(struct cmd *c)
{
	report_free(c->report);
	folded_free(c->folded);
	html_report_free(c->html);
	pprof_free(c->pprof);
	replay_close(c->replay);
	symbols_free(c->symbols);
	tasks_free(c->tasks);
	trace_close(c->trace);
	sampling_close(&c->sampling);
	free(c->options);
}

int cmd_report(int argc, char **argv)
{
	struct recorded_options rows;
	struct err err = { "" };
	struct cmd c = { .order.sort = REPORT_COLUMN_CYCLES };
	int ret, status;

	recorded_options(&rows, false);
	const struct option_set sets[] = {
		{ "Report", report_options, ARRAY_SIZE(report_options), &c },
		{ "Selection", rows.select, rows.n_select, &c.sampling.select },
		{ "Measurement", rows.other, rows.n_other, &c.sampling },
		{ "Input", recorded_input_rows, RECORDED_INPUT_ROWS, &c.input },
	};

	sampling_init(&c.sampling);
	ret = recorded_parse(&c.sampling, argc, argv, sets, 4, &c.input, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP)
			usage(stdout, sets, 4);
		status = EXIT_DONE;
	} else if (ret) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (c.sampling.select.explain) {
		filter_explain(stdout, &c.sampling.select.filter);
		status = fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
	} else {
		keep_options(&c, argc, argv);
		prepare(&c);
		status = run(&c);
	}
	close_all(&c);
	return status;
}
