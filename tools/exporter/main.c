// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope-exporter: serves the pinned counters of a collector to Prometheus, and on a page. */
#include "base/exit_status.h"
#include "base/options.h"
#include "base/num.h"
#include "base/output_file.h"
#include "base/signals.h"
#include "privileges.h"
#include "status/reading.h"
#include "web/web.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct exporter {
	struct web_opts web; /* first: web_add_listen() gets it */
	char user[64], config[256];
	bool once, check, list;
	enum metrics_format format;
};

static int set_path(void *ctx, const char *arg, struct err *err)
{
	struct exporter *e = ctx;
	int ret = web_check_telemetry_path(arg, err);

	if (ret)
		err_prefix(err, "--web.telemetry-path");
	else
		snprintf(e->web.telemetry_path, sizeof(e->web.telemetry_path), "%s", arg);
	return ret;
}

static int set_edges(void *ctx, const char *arg, struct err *err)
{
	struct exporter *e = ctx;
	int ret = metrics_edges_parse(arg, &e->web.metrics, err);

	if (ret)
		err_prefix(err, "--edges");
	return ret;
}

static int set_history(void *ctx, const char *arg, struct err *err)
{
	static const struct duration_arg range = { "--history", 0, 60, 86400 };
	struct exporter *e = ctx;

	if (strcmp(arg, "off"))
		return num_parse_duration(&range, arg, &e->web.history.length_s, err);
	e->web.history.length_s = 0;
	return 0;
}

static const char *format_name(unsigned int i)
{
	static const char *const names[] = { "text", "openmetrics", "openmetrics2", "json" };

	return names[i];
}

static const struct option_row rows[] = {
	{ "pin-dir", 0, "DIR", "directory of the collector's pins; default " IBS_PIN_DIR,
	  OPTION_PATH(struct exporter, web.pin_dir) },
	{ "web.listen-address", 0, "ADDR",
	  "listen on HOST:PORT, [IPV6]:PORT or :PORT; can be repeated; default 127.0.0.1:9950",
	  web_add_listen },
	{ "web.telemetry-path", 0, "PATH", "path of the metrics; default /metrics", set_path },
	{ "web.config.file", 0, "FILE", "TLS and passwords, in the format of exporter-toolkit",
	  OPTION_TEXT(struct exporter, web.config_file) },
	{ "detail", 0, "LEVEL",
	  "detail of the metrics of groups: low (default, at most 40 series per group), medium "
	  "(170) or full (400)",
	  OPTION_CHOICE(struct exporter, web.metrics.detail, "detail", metrics_detail_name,
			METRICS_DETAILS) },
	{ "edges", 0, "CYCLES,..",
	  "bucket edges to export; default 7 from 64 to 2048, or 13 from 32 to 4096 with detail "
	  "medium and full",
	  set_edges },
	{ "history", 0, "TIME",
	  "time that the page can look back, from 1 m to 24 h, or off; default 1 h; takes at most "
	  "9 MiB",
	  set_history },
	{ "history-interval", 0, "TIME",
	  "time between two readings for the history, from 1 s to 10 m; default 10 s",
	  OPTION_DURATION(struct exporter, web.history.interval_s, 1, 600) },
	{ "user", 0, "NAME", "user to switch to when started as root; default nobody",
	  OPTION_TEXT(struct exporter, user) },
	{ "once", 0, NULL, "print the metrics to stdout and exit",
	  OPTION_FLAG(struct exporter, once) },
	{ "format", 0, "NAME",
	  "format of --once: text (default), openmetrics, openmetrics2 or json",
	  OPTION_CHOICE(struct exporter, format, "format", format_name, METRICS_FORMATS) },
	{ "config", 0, "FILE", "read options from FILE, one `name = value` per line",
	  OPTION_TEXT(struct exporter, config) },
	{ "config-check", 0, NULL, "check options and files, and exit",
	  OPTION_FLAG(struct exporter, check) },
	{ "list-metrics", 0, NULL, "list all metrics with type and help, and exit",
	  OPTION_FLAG(struct exporter, list) },
};

static void usage(const struct option_set *set)
{
	printf("usage: ibscope-exporter [options]\n\n"
	       "Export the counters of a running `ibscope serve` to Prometheus at /metrics, and "
	       "show them on a\npage at /. Needs no privileges, and drops those it has.\n");
	options_help(stdout, set, 1);
	printf("\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static int parse(int argc, char **argv, struct exporter *e, struct err *err)
{
	const struct option_set set = { "Options", rows, sizeof(rows) / sizeof(rows[0]), e };
	const char *config = options_config(argc, argv);
	int ret = config ? options_file(config, &set, 1, err) : 0;

	ret = ret ?: options_parse(argc, argv, &set, 1, err);
	if (ret == OPTIONS_HELP)
		usage(&set);
	if (!ret && e->web.history.length_s / e->web.history.interval_s > HISTORY_INTERVALS_MAX)
		ret = err_set(
			err, -EINVAL,
			"--history, --history-interval: %.0f s in intervals of %g s are more than "
			"%d: shorten the first, or lengthen the second",
			e->web.history.length_s, e->web.history.interval_s, HISTORY_INTERVALS_MAX);
	if (!ret && optind < argc)
		ret = err_set(err, -EINVAL, "unexpected argument '%.200s': see --help",
			      argv[optind]);
	return ret;
}

static int print_once(const struct exporter *e, struct err *err)
{
	struct metrics_self self = { .reads = 1 };
	struct pinned *p = NULL;
	struct metrics *m;
	int ret = pinned_open(e->web.pin_dir, &p, err);

	if (ret)
		return ret;
	self.mapped = pinned_mapped(p);
	ret = privileges_drop(e->user, err)
		      ?: metrics_read_pinned(p, &e->web.metrics, &self, &m, err);
	pinned_close(p);
	if (ret)
		return ret;
	metrics_print(stdout, m, e->format);
	metrics_free(m);
	return 0;
}

static void run(struct web *w, int sigfd)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = sigfd, .events = POLLIN },
					{ .fd = web_fd(w), .events = POLLIN } };

		poll(fds, 2, web_timeout_ms(w));
		if (fds[0].revents)
			return;
		web_run(w);
	}
}

static int serve(const struct exporter *e, struct err *err)
{
	struct web *w = NULL;
	int sigfd = signals_open(false, err), ret;

	if (sigfd < 0)
		return sigfd;
	signal(SIGPIPE, SIG_IGN);
	ret = web_listen_all(&e->web, &w, err);
	ret = ret ?: privileges_drop(e->user, err);
	ret = ret ?: web_start(w, err);
	if (!ret)
		run(w, sigfd);
	web_close(w);
	close(sigfd);
	return ret;
}

/* Check the files that options name. */
static int check(const struct exporter *e, struct err *err)
{
	int ret = *e->web.config_file ? web_check_config(e->web.config_file, err) : 0;

	if (!ret)
		log_info("configuration OK");
	return ret;
}

static int run_exporter(int argc, char **argv)
{
	struct exporter e = { .web.pin_dir = IBS_PIN_DIR,
			      .user = "nobody",
			      .web.history = { .length_s = HISTORY_LENGTH_S,
					       .interval_s = HISTORY_INTERVAL_S } };
	struct err err = { "" };
	int ret = parse(argc, argv, &e, &err);
	int status = EXIT_USAGE;

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	log_never_wait();
	if (ret > 0)
		return EXIT_DONE;
	if (!ret && e.list) {
		metrics_list(stdout);
	} else if (!ret && e.check) {
		ret = check(&e, &err);
	} else if (!ret) {
		status = EXIT_FAILED;
		ret = e.once ? print_once(&e, &err) : serve(&e, &err);
	}
	if (ret)
		log_error("%s", err.text);
	return !ret ? EXIT_DONE : ret == -EINVAL ? EXIT_USAGE : status;
}

/*
 * Every reading frees the one before. Keep that memory for it: faulting in megabytes again and again takes more CPU
 * time than reading the counters.
 */
#define KEEP_FREE (16 << 20)

int main(int argc, char **argv)
{
	mallopt(M_TRIM_THRESHOLD, KEEP_FREE);
	mallopt(M_MMAP_THRESHOLD, 2 * KEEP_FREE);
	json_checked_memory();
	output_start();
	log_set_program("ibscope-exporter");
	return output_end(run_exporter(argc, argv));
}
