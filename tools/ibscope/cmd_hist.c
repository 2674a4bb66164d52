// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope hist: latency histograms, once or at intervals. */
#include "cmd.h"
#include "cmd_hist.h"
#include "base/array.h"
#include "base/output_file.h"
#include "base/signals.h"
#include "base/status_line.h"
#include "html/html_report.h"
#include "capture/record_info.h"
#include "session/session.h"
#include "view/hist.h"
#include "base/num.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MAX_S (10 * 86400.0)
#define INTERVAL_MIN_S 0.01

struct hist {
	struct sampling_opts sampling;
	struct session *session;
	bool timestamp, live;
	struct hist_view view;
	double interval_s;		     /* 0: until interrupted */
	uint64_t count;			     /* 0: no limit */
	unsigned int labels[SESSION_EVENTS]; /* of --by; 0: not given */
	const char *html_path;		     /* NULL: no HTML */
	struct html_report *html;
	struct trace_info info;
	struct trace_pmu pmu;
	struct ledger ledger;			/* of all intervals */
	const struct interval_printer *printer; /* NULL: hist_print() */
};

static const struct option_row own_options[] = {
	{ "timestamp", 'T', NULL, "print the time of day before each interval",
	  OPTION_FLAG(struct hist, timestamp) },
	{ "html", 0, "FILE", "write one HTML file about all intervals instead of tables",
	  OPTION_WORD(struct hist, html_path) },
	{ "strata", 0, STRATA_OPTION_CHOICES, STRATA_OPTION_HELP,
	  OPTION_CHOICE(struct hist, sampling.strata, "choice", strata_option_name,
			STRATA_OPTIONS) },
	/* only for numa and c2c, which have evaluated it already */
	{ "live", 0, NULL, "sample now instead of reading a recording",
	  OPTION_FLAG(struct hist, live) },
};

static void printer_usage(FILE *f, const struct interval_printer *p, const struct option_set *sets,
			  size_t n)
{
	fputs(p->usage, f);
	options_help(f, sets, n);
	columns_help(f, p->of);
}

static void numa_usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope numa --live [OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ...]\n\n"
		   "Sample loads and stores with AMD IBS and print, by the NUMA nodes of CPU and "
		   "memory, what\nremote memory costs compared with local memory. The options are "
		   "those of ibscope hist.\n");
	options_help(f, sets, n);
	columns_help(f, &hist_columns);
}

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope hist [OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ...]\n\n"
		   "Sample memory accesses with AMD IBS and print how many cycles each container "
		   "spent on\nmisses, and where its data came from: every INTERVAL, COUNT times; "
		   "without INTERVAL\nonce, when interrupted or when COMMAND exits.\n");
	options_help(f, sets, n);
	columns_help(f, &hist_columns);
	fprintf(f,
		"\nINTERVAL is in seconds, or has a unit as in 500ms or 5m. `ibscope help filter` "
		"lists the\nterms of --filter. Exit status: 0 done, 1 failed, 2 wrong usage; with "
		"COMMAND, that of COMMAND.\n");
}

/* A word in place of the interval is probably the command to measure. */
static int unexpected(const char *arg, struct err *err)
{
	return err_set(err, -EINVAL,
		       "unexpected argument '%s'; to measure a command, put it after '--': "
		       "ibscope hist [OPTIONS] -- %s",
		       arg, arg);
}

static int parse_interval(struct hist *h, int argc, char **argv, struct err *err)
{
	for (int i = 0; i < argc; i++)
		if (i > 1 || !strchr("0123456789.+-", *argv[i]))
			return unexpected(argv[i], err);
	if (argc > 0) {
		const struct duration_arg interval = { .name = "interval",
						       .min_s = INTERVAL_MIN_S,
						       .max_s = INTERVAL_MAX_S };
		int ret = num_parse_duration(&interval, argv[0], &h->interval_s, err);

		if (ret)
			return ret;
	}
	if (argc > 1) {
		const struct num_arg count = { .name = "count", .min = 1, .max = UINT64_MAX };

		return num_parse(&count, argv[1], &h->count, err);
	}
	return 0;
}

static struct session_signals signals;

static void interrupt(int sig, siginfo_t *info, void *context)
{
	(void)context;
	session_signal(&signals, sig, info->si_code > 0);
}

/* Return: as signals_open(). */
static int catch_signals(struct err *err)
{
	/* no SA_RESTART: see allow_signals() */
	const struct sigaction act = { .sa_sigaction = interrupt, .sa_flags = SA_SIGINFO };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return signals_open(false, err);
}

/*
 * The reader of the output may stall, so signals must interrupt writing: the handler makes write()
 * fail. Without a stall, the signal is handled a moment later.
 */
static void allow_signals(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

static int print(struct hist *h, unsigned int n, struct snapshot *interval, struct err *err)
{
	struct session *s = h->session;
	int ret;

	allow_signals(true);
	if (h->timestamp) {
		time_t now = time(NULL);
		char text[64];

		strftime(text, sizeof(text), "%F %T", localtime(&now));
		printf("%s\n", text);
	}
	if (h->printer)
		ret = h->printer->print(h->printer->arg, s, interval, err);
	else
		ret = hist_print(stdout, &h->view, &session_event(s, n)->info, interval,
				 h->labels[n], session_cgroup_name, s, err);
	allow_signals(false);
	return ret;
}

static void open_html(struct hist *h)
{
	const struct html_report_opts opts = { .info = &h->info, .file = "", .options = "" };

	if (!h->html_path)
		return;
	record_info(&h->info, &h->pmu, h->session, 1);
	h->info.format = "";
	h->html = html_report_new(&opts);
}

static int add_html(struct hist *h, struct snapshot *interval, __u64 end_ns, struct err *err)
{
	struct rows rows;
	int ret;

	rows_build(interval, HTML_LABELS, session_cgroup_name, h->session, &rows);
	ret = html_report_interval(h->html, &rows, end_ns, interval->time_ns);
	rows_free(&rows);
	return ret ? err_set(err, ret, "--html: too much for one page; make fewer intervals") : 0;
}

static int write_html(struct hist *h, struct err *err)
{
	const struct trace_end end = { .whole = true, .has_ledger = true, .ledger = h->ledger };
	struct output_file out;
	int ret = output_file_begin(&out, "--html", h->html_path, err);

	if (ret)
		return ret;
	ret = html_report_write(h->html, &end, 0, output_file_stream(&out));
	return output_file_end(&out, ret, err);
}

static int end_interval(void *arg, unsigned int n, struct snapshot *interval,
			const struct snapshot *now, struct err *err)
{
	struct hist *h = arg;

	status_line_end();
	if (n && format_is_text(h->view.opts.format))
		putchar('\n');
	h->ledger = now->ledger;
	return h->html ? add_html(h, interval, now->time_ns, err) : print(h, n, interval, err);
}

/* On a terminal, until the first interval ends. A command has the terminal to itself. */
static void show_waiting(const struct hist *h)
{
	if (h->sampling.argv || !status_line_possible())
		return;
	if (h->interval_s)
		status_line_show("sampling, result in %g s; Ctrl-C prints what there is by then",
				 h->interval_s);
	else
		status_line_show("sampling; Ctrl-C ends it and prints the result");
}

static int run(struct hist *h, int sigfd, struct err *err)
{
	const struct session_intervals intervals = { .interval_s = h->interval_s,
						     .count = h->count,
						     .sigfd = sigfd,
						     .signals = &signals,
						     .print = end_interval,
						     .arg = h };
	int ret;

	open_html(h);
	show_waiting(h);
	ret = session_run_intervals(h->session, &intervals, err);
	ret = ret || !h->html ? ret : write_html(h, err);
	html_report_free(h->html);
	status_line_end();
	return ret;
}

/* Set the default accesses, rows and columns of numa. */
static void prepare_numa(struct hist *h)
{
	static const enum table_column columns[] = { TABLE_CYCLES, TABLE_PRICE, TABLE_MEAN,
						     TABLE_SAMPLES, TABLE_SHARE };
	struct selection *sel = &h->sampling.select.sel;

	h->sampling.labels |= 1U << LABEL_NODE | 1U << LABEL_MEM_NODE;
	if (!sel->op_mask)
		sel->op_mask = 1U << IBS_OP_KIND_LOAD | 1U << IBS_OP_KIND_STORE |
			       1U << IBS_OP_KIND_LOCKED | 1U << IBS_OP_KIND_PREFETCH;
	if (h->view.opts.n_columns || !format_is_text(h->view.opts.format))
		return;
	memcpy(h->view.opts.columns, columns, sizeof(columns));
	h->view.opts.n_columns = ARRAY_SIZE(columns);
}

#define SETS 5

static int check_options(struct hist *h, struct err *err)
{
	const bool two = h->sampling.n_events == 2;
	int ret = 0;

	if (h->timestamp && !format_is_text(h->view.opts.format))
		ret = err_set(err, -EINVAL, "-T: works with tables only, not with --json or --csv");
	if (!ret && h->html_path && (h->view.opts.format || h->sampling.labels || h->timestamp))
		ret = err_set(err, -EINVAL, "--html excludes other formats, --by and -T");
	if (!ret && h->html_path && (two || sampling_of_fetch(&h->sampling)))
		ret = err_set(err, -EINVAL, "--html: the page shows samples of ibs_op only");
	if (!ret && h->sampling.strata && two)
		ret = err_set(err, -EINVAL,
			      "--strata: works with one event: run hist once for each event");
	if (!ret && h->sampling.strata && h->html_path)
		ret = err_set(
			err, -EINVAL,
			"--strata and --html exclude each other: use `ibscope record --strata "
			"%s -o FILE`, then `ibscope report --html PAGE FILE`",
			strata_option_name(h->sampling.strata));
	if (!ret && two && h->view.opts.format == FORMAT_CSV)
		ret = err_set(err, -EINVAL,
			      "--csv: two events have different columns: use --json, or one event");
	ret = ret ?: hist_view_check(&h->view, err) ?: sampling_check(&h->sampling, err);
	h->view.order = h->sampling.order;
	h->view.goes_on = two || (h->interval_s && h->count != 1);
	for (unsigned int i = 0; i < h->sampling.n_events; i++) {
		struct sampling_event *e = &h->sampling.event[i];
		const bool fetch = event_of_fetch(&e->spec);

		h->labels[i] = e->labels;
		/* the keys that the kernel groups by, and the names to look up */
		if (!e->labels)
			e->labels = h->view.opts.format == FORMAT_JSON
					    ? labels_of_event(LABELS_DEFAULT, fetch)
					    : TABLE_LABELS & ~TABLE_JOINED;
	}
	return ret;
}

static void hist_close(struct hist *h)
{
	session_free(h->session);
	sampling_free(&h->sampling);
}

int hist_run(int argc, char **argv, bool numa, const struct interval_printer *printer)
{
	struct hist h = { .printer = printer, .session = session_new() };
	struct option_row rows[VIEW_OPTIONS_MAX];
	const struct option_set sets[] = {
		{ "Sampling", sampling_options, sampling_n_options, &h.sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &h.sampling.select },
		printer ? printer->own : hist_options("Output", &h.view),
		view_options(rows, printer ? printer->formats : VIEW_OPTIONS_ALL,
			     printer ? printer->of : &hist_columns,
			     printer ? printer->view : &h.view.opts),
		{ "Intervals", own_options, printer ? 1 : ARRAY_SIZE(own_options) - !numa, &h },
	};
	struct err err = { "" };
	int sigfd, ret;

	sampling_init(&h.sampling);
	h.sampling.labels = 0;
	h.sampling.takes_two = !numa && !printer; /* they need data accesses */
	ret = argc = sampling_cut_command(&h.sampling, argc, argv, &err);
	if (argc > 0)
		ret = options_parse(argc, argv, sets, SETS, &err);
	if (ret > 0) {
		if (ret == OPTIONS_HELP && printer)
			printer_usage(stdout, printer, sets, SETS);
		else if (ret == OPTIONS_HELP)
			(numa ? numa_usage : usage)(stdout, sets, SETS);
		hist_close(&h);
		return EXIT_DONE;
	}
	ret = ret ?: parse_interval(&h, argc - optind, argv + optind, &err);
	if (numa)
		prepare_numa(&h);
	ret = ret ?: check_options(&h, &err);
	if (!ret && printer)
		ret = printer->prepare(printer->arg, &h.sampling, &err);
	if (ret) {
		log_error("%s", err.text);
		hist_close(&h);
		return EXIT_USAGE;
	}
	if (h.sampling.select.explain) {
		ret = sampling_explain(&h.sampling, h.view.opts.format == FORMAT_JSON);
		hist_close(&h);
		return ret;
	}
	/* before loading the programs, which takes a while: an early ^C gives an empty interval */
	sigfd = catch_signals(&err);
	ret = sigfd < 0 ? sigfd : h.html_path ? output_file_check(h.html_path, &err) : 0;
	ret = ret ?: session_open(h.session, &h.sampling, &err);
	if (!ret)
		ret = run(&h, sigfd, &err);
	if (sigfd >= 0)
		close(sigfd);
	if (ret)
		log_error("%s", err.text);
	ret = session_end(h.session, &signals, ret);
	hist_close(&h);
	return ret;
}

int cmd_hist(int argc, char **argv)
{
	return hist_run(argc, argv, false, NULL);
}
