// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope serve: collect for ever; counters are pinned, where readers find them. */
#include "cmd.h"
#include "num.h"
#include "serve.h"
#include "clock.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#define TICK_S	     1
#define FOLD_EVERY_S 10
#define GRACE_S	     300

static int set_config(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	(void)err;
	o->config = arg; /* was found before: see parse() */
	return 0;
}

static int set_pin_dir(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	if (*arg != '/' || strlen(arg) >= sizeof(o->pin_dir))
		return err_set(err, -EINVAL,
			       "--pin-dir: '%s' is no absolute path of at most %zu "
			       "characters",
			       arg, sizeof(o->pin_dir) - 1);
	snprintf(o->pin_dir, sizeof(o->pin_dir), "%s", arg);
	return 0;
}

static int set_pin_mode(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;
	char *end;
	unsigned long mode = strtoul(arg, &end, 8);

	if (end == arg || *end || mode > 0777)
		return err_set(err, -EINVAL,
			       "--pin-mode: '%s' is no file mode; give an octal "
			       "one, as 0644 or 0640",
			       arg);
	o->pin_mode = mode;
	return 0;
}

static int set_grace(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;
	const struct num_arg num = { .name = "--grace", .unit = "s", .min = 1, .max = 86400 };
	uint64_t v;
	int ret = num_parse(&num, arg, &v, err);

	o->grace_s = v;
	return ret;
}

static const struct option_row serve_rows[] = {
	{ "config", 0, "FILE", "more options, a line each: name = value; read again on SIGHUP",
	  set_config },
	{ "config-check", 0, NULL, "only say whether the options are right",
	  OPTION_FLAG(struct serve_options, config_check) },
	{ "pin-dir", 0, "DIR", "where counters are pinned; default " IBS_PIN_DIR, set_pin_dir },
	{ "pin-mode", 0, "MODE", "of what readers need; default 0644", set_pin_mode },
	{ "grace", 0, "S", "how long the series of a dead cgroup stay; default 300", set_grace },
	{ "unpin", 0, NULL, "remove the pins at the end, and the counters with them",
	  OPTION_FLAG(struct serve_options, unpin) },
};

static void usage(FILE *f, const struct option_set *sets, size_t n)
{
	fprintf(f,
		"usage: ibscope serve [options]\n\n"
		"Collect until SIGTERM. Counters are pinned in bpffs, where ibscope-exporter and "
		"the next\ncollector find them: they go on across restarts.\n");
	options_help(f, sets, n);
	fprintf(f, "\nSIGHUP reads the options again. Exit status: 0 done, 1 failed, 2 wrong "
		   "usage.\n");
}

/* The command line comes after the file, so that it has the last word. */
static const char *find_config(int argc, char **argv)
{
	const char *found = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--config=", 9))
			found = argv[i] + 9;
		else if (!strcmp(argv[i], "--config") && i + 1 < argc)
			found = argv[++i];
	}
	return found;
}

/* Return: 0, OPTIONS_HELP, or a negative errno with @err; @o is to be closed in any case. */
static int parse(int argc, char **argv, struct serve_options *o, struct err *err)
{
	const struct option_set sets[] = {
		{ "What is sampled", sampling_options, sampling_n_options, &o->sampling },
		{ "How it runs", serve_rows, sizeof(serve_rows) / sizeof(serve_rows[0]), o },
		{ "How it is read", serve_web_rows, serve_web_n_rows, o },
	};
	const size_t n_sets = sizeof(sets) / sizeof(sets[0]);
	int ret = 0;

	memset(o, 0, sizeof(*o));
	sampling_init(&o->sampling);
	o->sampling.patient = true;
	o->pin_mode = 0644;
	o->grace_s = GRACE_S;
	strcpy(o->pin_dir, IBS_PIN_DIR);
	o->config = find_config(argc, argv);
	if (o->config)
		ret = options_file(o->config, sets, n_sets, err);
	ret = ret ?: options_parse(argc, argv, sets, n_sets, err);
	if (ret == OPTIONS_HELP) {
		usage(stdout, sets, n_sets);
		return ret;
	}
	if (!ret && optind < argc)
		ret = err_set(err, -EINVAL, "'%s': serve takes options only", argv[optind]);
	return ret ?: serve_web_check(o, err) ?: sampling_filter(&o->sampling, err);
}

/* What was asked for, as one text for readers. */
static void selection_text(int argc, char **argv, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (int i = 1; i < argc && n < size; i++)
		n += snprintf(out + n, size - n, "%s%s", i > 1 ? " " : "", argv[i]);
}

static int begin(struct serve *s, int argc, char **argv, struct err *err)
{
	struct sampling *sampling = &s->opts.sampling;
	char text[1024];
	int ret;

	sampling->opts.pins = s->pins;
	sampling->opts.weigh = true;
	sampling->opts.tlb = true;
	ret = sampling_open(sampling, err);
	if (ret)
		return ret;
	selection_text(argc, argv, text, sizeof(text));
	serve_status_texts(s, text);
	if (sampler_adopted(sampling->sampler))
		log_info("going on with the counters that are pinned in %s", s->opts.pin_dir);
	ret = sampler_start(sampling->sampler, err);
	return ret ?: serve_status_update(s, now_s(), err);
}

static bool is_dead(void *arg, __u64 cgroup_id)
{
	struct serve *s = arg;

	return cgroup_tree_died(s->opts.sampling.tree, cgroup_id, s->opts.grace_s * 1e9);
}

static int fold(struct serve *s, struct err *err)
{
	int n = sampler_fold(s->opts.sampling.sampler, is_dead, s, err);

	if (n < 0)
		return n;
	s->status.folded += n;
	n = sampler_make_room(s->opts.sampling.sampler, err);
	if (n < 0)
		return n;
	s->status.displaced += n;
	cgroup_tree_forget_dead(s->opts.sampling.tree, 2 * s->opts.grace_s * 1e9);
	return 0;
}

static int tick(struct serve *s, struct err *err)
{
	double now = now_s();
	int ret = 0;

	sampler_tick(s->opts.sampling.sampler);
	serve_names_update(s);
	if (now >= s->next_fold_s) {
		s->next_fold_s = now + fmin(FOLD_EVERY_S, s->opts.grace_s);
		ret = fold(s, err);
	}
	ret = ret ?: serve_status_update(s, now, err);
	sd_notify(0, "WATCHDOG=1");
	return ret;
}

/*
 * The new options take the place of the old ones, and the counters are gone on with. If sampling
 * cannot begin with them, it does with the old ones.
 */
static int reload(struct serve *s, int argc, char **argv, struct err *err)
{
	struct serve_options fresh, old;
	int ret;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_s() * 1e6));
	ret = parse(argc, argv, &fresh, err);
	if (!ret && strcmp(fresh.pin_dir, s->opts.pin_dir))
		ret = err_set(err, -EINVAL, "--pin-dir cannot be changed without a restart");
	if (ret) {
		log_error("the options are left as they were: %s", err->text);
		s->status.config_errors++;
		sampling_close(&fresh.sampling);
		sd_notify(0, "READY=1");
		return 0;
	}
	sampler_stop(s->opts.sampling.sampler);
	serve_status_update(s, now_s(), err);
	sampling_release(&s->opts.sampling);
	old = s->opts;
	s->opts = fresh;
	ret = begin(s, argc, argv, err);
	if (ret) {
		log_error("the options are left as they were: %s", err->text);
		sampling_close(&s->opts.sampling);
		s->opts = old;
		ret = begin(s, argc, argv, err);
		s->status.config_errors++;
	} else {
		sampling_close(&old.sampling);
		s->status.reloads++;
		log_info("the options were read again");
	}
	sd_notify(0, "READY=1");
	return ret;
}

static int open_signals(struct err *err)
{
	sigset_t set;
	int fd;

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

static int run(struct serve *s, int argc, char **argv, int sigfd, struct err *err)
{
	double next = now_s(), follow = 0;
	int ret = 0;

	while (!ret) {
		struct pollfd fds[] = {
			{ .fd = sigfd, .events = POLLIN },
			{ .fd = cgroup_tree_fd(s->opts.sampling.tree), .events = POLLIN },
			{ .fd = s->web ? web_fd(s->web) : -1, .events = POLLIN },
		};
		double ms = fmin(fmax(next - now_s(), 0), follow) * 1000;
		int web_ms = s->web ? web_timeout_ms(s->web) : -1;
		struct signalfd_siginfo sig;

		poll(fds, 3, web_ms >= 0 && web_ms < ms ? web_ms : ceil(ms));
		if (s->web)
			web_run(s->web);
		if (read(sigfd, &sig, sizeof(sig)) == sizeof(sig)) {
			if (sig.ssi_signo != SIGHUP)
				break;
			ret = reload(s, argc, argv, err);
			continue;
		}
		if (fds[1].revents)
			cgroup_tree_update(s->opts.sampling.tree);
		follow = sampling_follow(&s->opts.sampling);
		if (now_s() >= next) {
			ret = tick(s, err);
			next = fmax(next + TICK_S, now_s());
		}
	}
	return ret;
}

static int serve(struct serve *s, int argc, char **argv, struct err *err)
{
	int ret, sigfd = open_signals(err);

	if (sigfd < 0)
		return sigfd;
	ret = pins_open(s->opts.pin_dir, s->opts.pin_mode, &s->pins, err);
	ret = ret ?: begin(s, argc, argv, err);
	ret = ret ?: serve_web_start(s, err);
	if (!ret) {
		sd_notifyf(0, "READY=1\nSTATUS=%s%s",
			   s->opts.sampling.info.simulated ? "SIMULATED " : "",
			   s->opts.sampling.event_text);
		ret = run(s, argc, argv, sigfd, err);
		sd_notify(0, "STOPPING=1");
		sampler_stop(s->opts.sampling.sampler);
		ret = ret ?: serve_status_update(s, now_s(), err);
	}
	web_close(s->web);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	sampling_release(&s->opts.sampling);
	if (s->pins && s->opts.unpin)
		pins_remove(s->pins);
	pins_close(s->pins);
	close(sigfd);
	return ret;
}

int cmd_serve(int argc, char **argv)
{
	struct serve s = { .stats_fd = -1 };
	struct err err = { "" };
	int ret = parse(argc, argv, &s.opts, &err);
	int status = EXIT_DONE;

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	if (ret && ret != OPTIONS_HELP) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (!ret && s.opts.config_check) {
		log_info("the options are right");
	} else if (!ret) {
		ret = serve(&s, argc, argv, &err);
		if (ret) {
			log_error("%s", err.text);
			status = s.opts.sampling.usage ? EXIT_USAGE : EXIT_FAILED;
		}
	}
	sampling_close(&s.opts.sampling);
	return status;
}
