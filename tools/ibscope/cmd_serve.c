// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope serve: the collector, with optional metrics endpoint, hot lines and profiles. */
#include "cmd.h"
#include "cmd_serve.h"
#include "live_lines/live_lines.h"
#include "live_lines/served_lines.h"
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

struct serve {
	struct collector *collector;
	struct web *web;
	struct push *push; /* NULL: no --push, or not started yet */
};

static void usage(const struct collector *c)
{
	printf("usage: ibscope serve [options]\n\n"
	       "Collect continuously, until SIGTERM. Counters are pinned in bpffs for\n"
	       "ibscope-exporter; the next collector resumes them.\n");
	collector_help(c, stdout);
	printf("\nSIGHUP reads the options again, SIGUSR2 writes a recording of --flight.\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

struct serve_opts {
	struct web_opts web; /* first: rows set it */
	struct push_opts push;
	bool hot_lines;
	__u32 feed;
};

static int set_feed(void *ctx, const char *arg, struct err *err)
{
	return live_lines_feed(arg, &((struct serve_opts *)ctx)->feed, err);
}

static const struct option_row serve_rows[] = {
	{ "hot-lines", 0, NULL,
	  "keep the cache lines with the most stores and cache hits, for `ibscope c2c --control`",
	  OPTION_FLAG(struct serve_opts, hot_lines) },
	{ "feed", 0, "LIST", "with --hot-lines, " LIVE_LINES_FEED_HELP, set_feed },
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
	{ "stacks", 0, NULL, "with --push, profiles have call chains, walked for copied samples",
	  OPTION_FLAG(struct serve_opts, push.stacks) },
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
		ret = live_lines_prepare(&set->sampling, o->feed, err);
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

int serve_check_set(char *text, size_t n, struct err *err)
{
	return collector_check_set(&extra, text, n, err);
}

static int open_web(struct serve *s, struct err *err)
{
	const struct collector_settings *set = collector_settings(s->collector);
	struct web_opts opts = ((const struct serve_opts *)set->extra)->web;

	if (!opts.n_listen)
		return 0;
	strcpy(opts.pin_dir, set->pin_dir);
	return web_listen_all(&opts, &s->web, err) ?: web_start(s->web, err);
}

static void open_push(struct serve *s)
{
	const struct serve_opts *o = collector_settings(s->collector)->extra;

	if (*o->push.url)
		s->push = push_new(&o->push, collector_session(s->collector),
				   collector_push_counts(s->collector));
}

static void closing(void *arg)
{
	const struct serve *s = arg;

	if (s->push)
		push_closing(s->push);
}

/* In ms; -1: no limit. */
static int shorter(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Delay a flood of requests, so that it costs no samples. Return: as shorter(). */
static int prepare_web(const struct serve *s, struct pollfd *fd)
{
	double wait_s = s->web ? collector_work_wait(s->collector, IBS_WORK_WEB) : 0;

	*fd = (struct pollfd){ .fd = s->web && wait_s <= 0 ? web_fd(s->web) : -1,
			       .events = POLLIN };
	if (wait_s > 0)
		return ceil(wait_s * 1000);
	return s->web ? web_timeout_ms(s->web) : -1;
}

static void run_web(const struct serve *s)
{
	__u64 began = collector_work_begin();

	web_run(s->web);
	collector_work_end(s->collector, IBS_WORK_WEB, began);
}

static int loop(const struct serve *s, int sigfd, struct err *err)
{
	int ret = 0;

	while (!ret) {
		struct pollfd fds[FDS] = { [FD_SIGNAL] = { .fd = sigfd, .events = POLLIN } };
		int ms = shorter(collector_prepare(s->collector, fds + FD_COLLECTOR),
				 prepare_web(s, &fds[FD_WEB]));
		struct signalfd_siginfo sig;
		__u64 woken_ns;

		if (s->push)
			ms = shorter(ms, push_prepare(s->push, fds + FD_PUSH));
		else
			fds[FD_PUSH].fd = fds[FD_PUSH + 1].fd = -1;
		poll(fds, FDS, ms);
		woken_ns = clock_ns(CLOCK_MONOTONIC);
		if (fds[FD_WEB].fd >= 0)
			run_web(s);
		if (read(sigfd, &sig, sizeof(sig)) == sizeof(sig)) {
			if (sig.ssi_signo == SIGHUP)
				collector_reload(s->collector);
			else if (sig.ssi_signo == SIGUSR2)
				collector_dump_flight(s->collector);
			else
				break;
		}
		if (s->push)
			collector_set_push(s->collector,
					   &(struct reading_push){ push_pending(s->push),
								   push_failure(s->push),
								   push_given_up(s->push) });
		ret = collector_run(s->collector, fds + FD_COLLECTOR, err);
		if (!ret && s->push)
			push_run(s->push, woken_ns);
	}
	return ret;
}

static int serve(struct serve *s, struct err *err)
{
	int ret, sigfd = signals_open(true, err);

	if (sigfd < 0)
		return sigfd;
	signal(SIGPIPE, SIG_IGN); /* readers of the log and HTTP clients may go away */
	ret = collector_open(s->collector, err);
	ret = ret ?: open_web(s, err);
	if (!ret)
		open_push(s);
	ret = ret ?: loop(s, sigfd, err);
	push_free(s->push);
	s->push = NULL;
	web_close(s->web);
	ret = collector_finish(s->collector, ret, err);
	close(sigfd);
	return ret;
}

int cmd_serve(int argc, char **argv)
{
	struct serve s = { 0 };
	const struct collector_opts opts = {
		.argc = argc,
		.argv = argv,
		.extra = &extra,
		.closing = closing,
		.arg = &s,
	};
	struct err err = { "" };
	int status = EXIT_DONE, ret = collector_new(&opts, &s.collector, &err);
	const struct collector_settings *set = ret < 0 ? NULL : collector_settings(s.collector);

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	log_never_wait();
	if (ret < 0) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (ret == OPTIONS_HELP) {
		usage(s.collector);
	} else if (!ret && set->config_check) {
		log_info("configuration OK");
	} else if (!ret && set->sampling.select.explain) {
		status = sampling_explain(&set->sampling, false);
	} else if (!ret && serve(&s, &err)) {
		log_error("%s", err.text);
		status = collector_usage_error(s.collector) ? EXIT_USAGE : EXIT_FAILED;
	}
	collector_free(s.collector);
	return status;
}
