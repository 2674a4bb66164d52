// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope serve: the collector, and the metrics endpoint if it is to have one. */
#include "cmd.h"
#include "collector/collector.h"
#include "counts/snapshot.h"
#include "metrics/reading.h"
#include "web/web.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { FD_SIGNAL, FD_WEB, FD_COLLECTOR, FDS = FD_COLLECTOR + COLLECTOR_FDS };

static void usage(const struct collector *c)
{
	printf("usage: ibscope serve [options]\n\n"
	       "Collect continuously, until SIGTERM. Counters are pinned in bpffs for\n"
	       "ibscope-exporter; the next collector resumes them.\n");
	collector_help(c, stdout);
	printf("\nSIGHUP reads the options again. Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static int print_status(FILE *f, bool json, const struct ibs_meta *meta, const struct snapshot *now,
			struct err *err)
{
	struct reading r;
	size_t groups = 0;

	for (size_t i = 0; i < now->n_groups; i++)
		groups += !now->groups[i].other;
	reading_begin(&r, meta);
	reading_finish(&r, &now->ledger, groups);
	if (json)
		return collector_print_json(f, &r, err);
	collector_print(f, &r);
	return 0;
}

static const struct option_row web_rows[] = {
	{ "web.listen-address", 0, "ADDR",
	  "serve /metrics on HOST:PORT, [IPV6]:PORT or :PORT, as ibscope-exporter does without "
	  "privileges",
	  web_add_listen },
	{ "detail", 0, "LEVEL", "metrics of groups there: low (default), medium or full",
	  OPTION_CHOICE(struct web_opts, metrics.detail, "detail", metrics_detail_name,
			METRICS_DETAILS) },
	{ "web.config.file", 0, "FILE", "TLS and passwords of that endpoint",
	  OPTION_TEXT(struct web_opts, config_file) },
};

static int check_web(const void *extra, struct err *err)
{
	const struct web_opts *o = extra;

	if (!*o->config_file)
		return 0;
	if (!o->n_listen)
		return err_set(err, -EINVAL, "--web.config.file needs --web.listen-address");
	return web_check_config(o->config_file, err);
}

static const struct collector_extra web_extra = {
	.title = "Metrics endpoint",
	.rows = web_rows,
	.n = sizeof(web_rows) / sizeof(web_rows[0]),
	.size = sizeof(struct web_opts),
	.check = check_web,
};

/* *out is NULL if no address was given. */
static int open_web(const struct collector_settings *set, struct web **out, struct err *err)
{
	struct web_opts opts = *(const struct web_opts *)set->extra;

	if (!opts.n_listen)
		return 0;
	strcpy(opts.pin_dir, set->pin_dir);
	return web_listen_all(&opts, out, err) ?: web_start(*out, err);
}

static int open_signals(struct err *err)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN); /* readers of the log and HTTP clients may go away */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(err, -errno, "cannot wait for signals: %s", strerror(errno));
	return fd;
}

/* In ms; -1: no limit. */
static int shorter(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* A flood of requests is put off, so that it costs no samples. Return: as shorter(). */
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

		poll(fds, FDS, ms);
		if (fds[FD_WEB].fd >= 0)
			run_web(c, web);
		if (read(sigfd, &sig, sizeof(sig)) == sizeof(sig)) {
			if (sig.ssi_signo != SIGHUP)
				break;
			collector_reload(c);
		}
		ret = collector_run(c, fds + FD_COLLECTOR, err);
	}
	return ret;
}

static int serve(struct collector *c, struct err *err)
{
	struct web *web = NULL;
	int ret, sigfd = open_signals(err);

	if (sigfd < 0)
		return sigfd;
	ret = collector_open(c, err);
	ret = ret ?: open_web(collector_settings(c), &web, err);
	ret = ret ?: loop(c, web, sigfd, err);
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
		.extra = &web_extra,
		.print_status = print_status,
	};
	struct collector *c;
	struct err err = { "" };
	int status = EXIT_DONE, ret = collector_new(&opts, &c, &err);

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	if (ret < 0) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (ret == OPTIONS_HELP) {
		usage(c);
	} else if (!ret && collector_settings(c)->config_check) {
		log_info("configuration OK");
	} else if (!ret && collector_settings(c)->sampling.select.explain) {
		status = sampling_explain(&collector_settings(c)->sampling, false);
	} else if (!ret && serve(c, &err)) {
		log_error("%s", err.text);
		status = collector_usage_error(c) ? EXIT_USAGE : EXIT_FAILED;
	}
	collector_free(c);
	return status;
}
