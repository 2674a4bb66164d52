// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope hist: latency histograms, once or at intervals. */
#include "cmd.h"
#include "sampling.h"
#include "clock.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MAX_S 1e6
#define INTERVAL_MIN_S 0.01
/* Notices of throttling wait in a small buffer. */
#define TICK_S 0.5

struct hist {
	struct sampling sampling;
	bool json, timestamp;
	double interval_s;   /* 0: until interrupted */
	unsigned long count; /* 0: no limit */
	struct snapshot last;
};

static const struct option_row hist_options[] = {
	{ "json", 0, NULL, "one JSON object a line and interval", OPTION_FLAG(struct hist, json) },
	{ "timestamp", 'T', NULL, "begin each interval with the time of day",
	  OPTION_FLAG(struct hist, timestamp) },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f, "usage: ibscope hist [options] [interval [count]] [-- COMMAND ...]\n\n"
		   "Sample memory accesses with AMD IBS and show how many cycles they waited, by "
		   "cgroup "
		   "and\ndata source. Every `interval` seconds, `count` times; without an interval "
		   "once, "
		   "when\ninterrupted.\n");
	options_help(f, sets, n);
	fprintf(f, "\nTerms of --filter:\n");
	filter_terms(f);
	fprintf(f, "\nPercentiles are upper edges of their buckets, at most 1/8 too high; '-' "
		   "where the "
		   "samples are\ntoo few. Exit status: 0 done, 1 failed, 2 wrong usage; with a "
		   "command that of the\ncommand, if it and we succeeded in running it.\n");
}

static int parse_interval(struct hist *h, int argc, char **argv, struct err *err)
{
	char *end;

	if (argc > 2)
		return err_set(err, -EINVAL, "'%s': only an interval and a count are expected",
			       argv[2]);
	if (argc > 0) {
		h->interval_s = strtod(argv[0], &end);
		if (end == argv[0] || *end || !(h->interval_s >= INTERVAL_MIN_S) ||
		    h->interval_s > INTERVAL_MAX_S)
			return err_set(err, -EINVAL,
				       "'%s' is no interval: give seconds, from %g to %g", argv[0],
				       INTERVAL_MIN_S, INTERVAL_MAX_S);
	}
	if (argc > 1) {
		errno = 0;
		h->count = strtoul(argv[1], &end, 10);
		if (argv[1][0] < '0' || argv[1][0] > '9' || *end || errno || !h->count)
			return err_set(err, -EINVAL, "'%s' is no count: give a number from 1 on",
				       argv[1]);
	}
	return 0;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/*
 * While output is written a signal must reach us: the reader may have stalled. The handler makes
 * write() fail; when nothing is stalled, it is as if the signal had come a moment later.
 */
static void allow_signals(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

static int print(struct hist *h, const struct snapshot *interval, struct err *err)
{
	struct sampling *s = &h->sampling;
	struct rows rows;
	int ret = 0;

	if (rows_build(interval, s->labels, sampling_cgroup_name, s, &rows))
		return err_set(err, -ENOMEM, "out of memory for the output");
	allow_signals(true);
	if (h->timestamp && !h->json) {
		time_t now = time(NULL);
		char text[64];

		strftime(text, sizeof(text), "%F %T", localtime(&now));
		printf("%s\n", text);
	}
	if (h->json)
		ret = hist_print_json(stdout, &s->info, interval, &rows, err);
	else
		hist_print_text(stdout, &s->info, interval, &rows);
	rows_free(&rows);
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_set(err, -EIO, "cannot write the output: %s", strerror(errno));
	allow_signals(false);
	return ret;
}

/* Show what came since the last time. */
static int end_interval(struct hist *h, struct err *err)
{
	struct snapshot now, interval;
	int ret = sampler_snapshot(h->sampling.sampler, &now, err);

	if (ret)
		return ret;
	if (snapshot_diff(&now, &h->last, &interval)) {
		snapshot_free(&now);
		return err_set(err, -ENOMEM, "out of memory for the output");
	}
	if (ledger_residual(&interval.ledger))
		ret = err_set(err, -EUCLEAN,
			      "the ledger does not balance by %lld samples; this is a "
			      "bug of ibscope, please report it",
			      ledger_residual(&interval.ledger));
	ret = ret ?: print(h, &interval, err);
	sampling_warn(&h->sampling, &interval);
	snapshot_free(&interval);
	snapshot_free(&h->last);
	h->last = now;
	return ret;
}

/*
 * Until @deadline: 0, or 1 if a signal came before, or the end of the command. Looks at signals and notices also when the
 * deadline has passed already, as it has where intervals take longer than they are.
 */
static int wait_until(struct hist *h, int sigfd, double deadline)
{
	struct pollfd fds[] = {
		{ .fd = sigfd, .events = POLLIN },
		{ .fd = cgroup_tree_fd(h->sampling.tree), .events = POLLIN },
		{ .fd = sampling_command_fd(&h->sampling), .events = POLLIN },
	};

	double follow = 0;

	do {
		double left = fmax(deadline - now_s(), 0);

		poll(fds, 3, ceil(fmin(left, fmin(TICK_S, follow)) * 1000));
		if (fds[0].revents || interrupted)
			return 1;
		if (fds[1].revents)
			cgroup_tree_update(h->sampling.tree);
		if (sampling_command_ended(&h->sampling))
			return 1;
		follow = sampling_follow(&h->sampling);
		sampler_tick(h->sampling.sampler);
	} while (now_s() < deadline);
	return 0;
}

/* Blocks SIGINT and SIGTERM, which end the collection in order. A file for poll(), or -errno. */
static int open_signals(struct err *err)
{
	const struct sigaction act = { .sa_handler = interrupt }; /* no SA_RESTART: see above */
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot wait for signals: %s", strerror(errno));
	return fd;
}

static int run(struct hist *h, int sigfd, struct err *err)
{
	struct sampling *s = &h->sampling;
	double next;
	int ret;

	ret = sampler_snapshot(s->sampler, &h->last, err);
	ret = ret ?: sampling_start(s, err);
	next = now_s();
	for (unsigned long i = 0; !ret; i++) {
		bool last;

		/* intervals that cannot be kept are made longer, not caught up with */
		next = fmax(next + h->interval_s, now_s());
		last = wait_until(h, sigfd, h->interval_s ? next : INFINITY);

		if (h->count && i + 1 == h->count)
			last = true;
		if (last)
			sampler_stop(s->sampler); /* the last snapshot is exact */
		ret = end_interval(h, err);
		if (last)
			break;
	}
	snapshot_free(&h->last);
	return ret;
}

int cmd_hist(int argc, char **argv)
{
	struct hist h = {};
	const struct option_set sets[] = {
		{ "What is sampled", sampling_options, sampling_n_options, &h.sampling },
		{ "How it is shown", hist_options, sizeof(hist_options) / sizeof(hist_options[0]),
		  &h },
	};
	struct err err = { "" };
	int sigfd, ret;

	sampling_init(&h.sampling);
	ret = argc = sampling_cut_command(&h.sampling, argc, argv, &err);
	if (argc > 0)
		ret = options_parse(argc, argv, sets, 2, &err);
	if (ret == OPTIONS_HELP) {
		usage(stdout, sets, 2);
		sampling_close(&h.sampling);
		return EXIT_DONE;
	}
	ret = ret ?: parse_interval(&h, argc - optind, argv + optind, &err);
	ret = ret ?: sampling_filter(&h.sampling, &err);
	if (ret) {
		log_error("%s", err.text);
		sampling_close(&h.sampling);
		return EXIT_USAGE;
	}
	if (h.sampling.explain) {
		filter_explain(stdout, &h.sampling.filter);
		sampling_close(&h.sampling);
		return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
	}
	/* before the programs are loaded, which takes a while: an early ^C is an empty interval */
	sigfd = open_signals(&err);
	ret = sigfd < 0 ? sigfd : sampling_open(&h.sampling, &err);
	if (!ret)
		ret = run(&h, sigfd, &err);
	if (sigfd >= 0)
		close(sigfd);
	if (ret)
		log_error("%s", err.text);
	ret = sampling_end(&h.sampling, ret);
	sampling_close(&h.sampling);
	return ret;
}
