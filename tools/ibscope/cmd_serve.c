// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope serve: the collector, with optional metrics endpoint, hot lines and profiles. */
#include "cmd.h"
#include "c2c_live.h"
#include "c2c_served.h"
#include "collector/collector.h"
#include "base/signals.h"
#include "counts/snapshot.h"
#include "base/clock.h"
#include "status/reading.h"
#include "push/push.h"
#include "web/web.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	FD_SIGNAL,
	FD_WEB,
	FD_PUSH,
	FD_COLLECTOR = FD_PUSH + PUSH_FDS,
	FDS = FD_COLLECTOR + COLLECTOR_FDS
};

static struct collector *collector;
static struct push *pushing; /* NULL: no --push, or not started yet */

static void usage(const struct collector *c)
{
	printf("usage: ibscope serve [options]\n\n"
	       "Collect continuously, until SIGTERM. Counters are pinned in bpffs for\n"
	       "ibscope-exporter; the next collector resumes them.\n");
	collector_help(c, stdout);
	printf("\nSIGHUP reads the options again. Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

struct serve_opts {
	struct web_opts web; /* first: rows set it */
	struct push_opts push;
	bool hot_lines;
	__u32 feed;
};

static int set_feed(void *ctx, const char *arg, struct err *err)
{
	return c2c_live_feed(arg, &((struct serve_opts *)ctx)->feed, err);
}

static const struct option_row serve_rows[] = {
	{ "hot-lines", 0, NULL,
	  "keep the cache lines with the most stores and cache hits, for `ibscope c2c --control`",
	  OPTION_FLAG(struct serve_opts, hot_lines) },
	{ "feed", 0, "LIST", "with --hot-lines, " C2C_FEED_HELP, set_feed },
	{ "web.listen-address", 0, "ADDR",
	  "serve /metrics on HOST:PORT, [IPV6]:PORT or :PORT, as ibscope-exporter does without "
	  "privileges",
	  web_add_listen },
	{ "detail", 0, "LEVEL",
	  "detail of the metrics of groups at that endpoint: low (default), medium or full",
	  OPTION_CHOICE(struct web_opts, metrics.detail, "detail", metrics_detail_name,
			METRICS_DETAILS) },
	{ "web.config.file", 0, "FILE", "TLS and passwords of that endpoint",
	  OPTION_TEXT(struct serve_opts, web.config_file) },
	{ "push", 0, "URL", "post profiles of the counted samples in pprof format to this server",
	  OPTION_TEXT(struct serve_opts, push.url) },
	{ "push-format", 0, "NAME", "kind of server: pyroscope (default) or parca",
	  OPTION_CHOICE(struct serve_opts, push.format, "server", push_format_name, PUSH_FORMATS) },
	{ "push-interval", 0, "TIME", "time between the starts of two profiles; default 60s",
	  OPTION_DURATION(struct serve_opts, push.interval_s, 1, 86400) },
	{ "push-duration", 0, "TIME", "time for which a profile collects samples; default 10s",
	  OPTION_DURATION(struct serve_opts, push.duration_s, 0.1, 3600) },
	{ "push-name", 0, "NAME", "name of the profiles; default ibscope",
	  OPTION_TEXT(struct serve_opts, push.name) },
	{ "push-credentials", 0, "FILE",
	  "file with USER:PASSWORD or 'Bearer TOKEN' for the server, unreadable for other users",
	  OPTION_PATH(struct serve_opts, push.credentials) },
	{ "push-ca", 0, "FILE", "certificates to trust instead of the system's",
	  OPTION_PATH(struct serve_opts, push.ca) },
};

static int check_extra(struct collector_settings *set, struct err *err)
{
	struct serve_opts *o = set->extra;
	int ret = push_check(&o->push, &set->sampling, err);

	if (!ret && o->feed && !o->hot_lines)
		ret = err_set(err, -EINVAL, "--feed needs --hot-lines");
	if (!ret && o->hot_lines) {
		ret = c2c_live_prepare(&set->sampling, o->feed, err);
		if (ret)
			err_prefix(err, "--hot-lines");
	}

	if (ret || !*o->web.config_file)
		return ret;
	if (!o->web.n_listen)
		return err_set(err, -EINVAL, "--web.config.file needs --web.listen-address");
	return web_check_config(o->web.config_file, err);
}

static const struct collector_extra extra = {
	.title = "Metrics endpoint, hot lines, profiles",
	.rows = serve_rows,
	.n = sizeof(serve_rows) / sizeof(serve_rows[0]),
	.size = sizeof(struct serve_opts),
	.check = check_extra,
};

/* *out stays NULL without an address. */
static int open_web(const struct collector_settings *set, struct web **out, struct err *err)
{
	struct web_opts opts = ((const struct serve_opts *)set->extra)->web;

	if (!opts.n_listen)
		return 0;
	strcpy(opts.pin_dir, set->pin_dir);
	return web_listen_all(&opts, out, err) ?: web_start(*out, err);
}

static void open_push(struct collector *c)
{
	const struct serve_opts *o = collector_settings(c)->extra;

	if (*o->push.url)
		pushing = push_new(&o->push, collector_session(c), collector_push_counts(c));
}

static int print_lines(FILE *f, struct err *err)
{
	return c2c_served_answer(collector, f, err);
}

static void closing(void)
{
	c2c_served_closing(collector);
	if (pushing)
		push_closing(pushing);
}

/* In ms; -1: no limit. */
static int shorter(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Delay a flood of requests, so that it costs no samples. Return: as shorter(). */
static int prepare_web(struct collector *c, const struct web *web, struct pollfd *fd)
{
	double wait_s = web ? collector_work_wait(c, IBS_WORK_WEB) : 0;

	*fd = (struct pollfd){ .fd = web && wait_s <= 0 ? web_fd(web) : -1, .events = POLLIN };
	if (wait_s > 0)
		return ceil(wait_s * 1000);
	return web ? web_timeout_ms(web) : -1;
}

static void run_web(struct collector *c, struct web *web)
{
	__u64 began = collector_work_begin();

	web_run(web);
	collector_work_end(c, IBS_WORK_WEB, began);
}

static int loop(struct collector *c, struct web *web, int sigfd, struct err *err)
{
	int ret = 0;

	while (!ret) {
		struct pollfd fds[FDS] = { [FD_SIGNAL] = { .fd = sigfd, .events = POLLIN } };
		int ms = shorter(collector_prepare(c, fds + FD_COLLECTOR),
				 prepare_web(c, web, &fds[FD_WEB]));
		struct signalfd_siginfo sig;
		__u64 woken_ns;

		ms = shorter(ms, c2c_served_run(c));
		if (pushing)
			ms = shorter(ms, push_prepare(pushing, fds + FD_PUSH));
		else
			fds[FD_PUSH].fd = fds[FD_PUSH + 1].fd = -1;
		poll(fds, FDS, ms);
		woken_ns = clock_ns(CLOCK_MONOTONIC);
		if (fds[FD_WEB].fd >= 0)
			run_web(c, web);
		if (read(sigfd, &sig, sizeof(sig)) == sizeof(sig)) {
			if (sig.ssi_signo != SIGHUP)
				break;
			collector_reload(c);
		}
		if (pushing)
			collector_set_push(c, &(struct reading_push){ push_pending(pushing),
								      push_failure(pushing),
								      push_given_up(pushing) });
		ret = collector_run(c, fds + FD_COLLECTOR, err);
		if (!ret && pushing)
			push_run(pushing, woken_ns);
	}
	return ret;
}

static int serve(struct collector *c, struct err *err)
{
	struct web *web = NULL;
	int ret, sigfd = signals_open(true, err);

	if (sigfd < 0)
		return sigfd;
	signal(SIGPIPE, SIG_IGN); /* readers of the log and HTTP clients may go away */
	collector = c;
	ret = collector_open(c, err);
	ret = ret ?: open_web(collector_settings(c), &web, err);
	if (!ret)
		open_push(c);
	ret = ret ?: loop(c, web, sigfd, err);
	push_free(pushing);
	pushing = NULL;
	web_close(web);
	ret = collector_finish(c, ret, err);
	close(sigfd);
	return ret;
}

int cmd_serve(int argc, char **argv)
{
	const struct collector_opts opts = {
		.argc = argc,
		.argv = argv,
		.extra = &extra,
		.print_lines = print_lines,
		.closing = closing,
	};
	struct collector *c;
	struct err err = { "" };
	int status = EXIT_DONE, ret = collector_new(&opts, &c, &err);
	const struct collector_settings *set = ret < 0 ? NULL : collector_settings(c);

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	if (ret < 0) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (ret == OPTIONS_HELP) {
		usage(c);
	} else if (!ret && set->config_check) {
		log_info("configuration OK");
	} else if (!ret && set->sampling.select.explain) {
		status = sampling_explain(&set->sampling, false);
	} else if (!ret && serve(c, &err)) {
		log_error("%s", err.text);
		status = collector_usage_error(c) ? EXIT_USAGE : EXIT_FAILED;
	}
	collector_free(c);
	return status;
}
