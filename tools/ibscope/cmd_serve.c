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
#define MAX_OVERHEAD 0.005
#define MAX_BPF_NS   2500
#define EARLY_S	     0.02 /* what is due so soon is done now, too */

static int set_config(void *ctx, const char *arg, struct err *err)
{
	(void)ctx;
	(void)arg;
	(void)err;
	return 0; /* was found before: see find_config() */
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

	return num_parse_mode("--pin-mode", arg, &o->pin_mode, err);
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

#define SETS 5

static void option_sets(struct serve_options *o, struct option_set *out)
{
	const struct option_set sets[SETS] = {
		{ "What is sampled", sampling_options, sampling_n_options, &o->sampling },
		{ "How it runs", serve_rows, sizeof(serve_rows) / sizeof(serve_rows[0]), o },
		{ "How it is told", serve_control_rows, serve_control_n_rows, o },
		{ "What it may take", serve_governor_rows, serve_governor_n_rows, o },
		{ "How it is read", serve_web_rows, serve_web_n_rows, o },
	};

	memcpy(out, sets, sizeof(sets));
}

const struct option_row *serve_find_option(struct serve *s, const char *name)
{
	struct option_set sets[SETS];

	option_sets(&s->opts, sets);
	return options_find(name, sets, SETS);
}

int serve_parse(const struct serve *s, const struct live_options *live, struct serve_options *o,
		struct err *err)
{
	struct option_set sets[SETS];
	int ret = 0;

	memset(o, 0, sizeof(*o));
	sampling_init(&o->sampling);
	o->sampling.patient = true;
	o->pin_mode = 0644;
	o->grace_s = GRACE_S;
	o->max_overhead = MAX_OVERHEAD;
	o->max_bpf_ns = MAX_BPF_NS;
	strcpy(o->pin_dir, IBS_PIN_DIR);
	strcpy(o->control, CONTROL_PATH);
	o->control_mode = 0600;
	log_set_verbose(false);
	option_sets(o, sets);
	for (size_t i = 0; i < SETS; i++) {
		sets[i].skip = live_options_hide;
		sets[i].skip_arg = (void *)live;
	}
	o->config = find_config(s->argc, s->argv);
	if (o->config)
		ret = options_text(o->config, s->config_text, s->config_size, sets, SETS, err);
	ret = ret ?: options_parse(s->argc, s->argv, sets, SETS, err);
	if (ret == OPTIONS_HELP) {
		usage(stdout, sets, SETS);
		return ret;
	}
	if (!ret && optind < s->argc)
		ret = err_set(err, -EINVAL, "'%s': serve takes options only", s->argv[optind]);
	for (size_t i = 0; i < SETS; i++)
		sets[i].skip = NULL;
	ret = ret ?: live_options_apply(live, sets, SETS, err);
	return ret	?: serve_web_check(o, err)
			?: serve_governor_settle(o, err)
			?: sampling_filter(&o->sampling, err);
}

/* The file of --config as it is now; what was read before is lost. */
static int read_config(struct serve *s, struct err *err)
{
	const char *path = find_config(s->argc, s->argv);

	s->config_text = NULL;
	s->config_size = 0;
	return path ? options_read(path, &s->config_text, &s->config_size, err) : 0;
}

/* What was asked for, as one text for readers. */
static void selection_text(int argc, char **argv, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (int i = 1; i < argc && n < size; i++)
		n += snprintf(out + n, size - n, "%s%s", i > 1 ? " " : "", argv[i]);
}

/*
 * What will be changed live: what was, and what costs nothing as it is tested for anyway. The rest
 * takes a few instructions a sample, which those who never use it need not pay.
 */
static unsigned int live_bits(const struct serve *s)
{
	const struct selection *sel = &s->opts.sampling.opts.sel;
	unsigned int bits = s->live_bits;

	if (sel->min_lat || sel->max_lat)
		bits |= SAMPLER_LIVE_LATENCY;
	if (sel->processes.n)
		bits |= SAMPLER_LIVE_PROCESSES;
	return bits;
}

/* Nothing samples now: what is counted here is all that collectors before this one counted. */
static int log_adopted(struct serve *s, struct err *err)
{
	struct sampler *sampler = s->opts.sampling.sampler;
	struct pmu_state pmu;
	struct ledger l;
	int ret;

	if (!sampler_adopted(sampler))
		return 0;
	ret = sampler_ledger(sampler, &l, &pmu, err);
	if (!ret)
		log_info("going on with the counters that are pinned in %s: %llu samples seen, "
			 "%llu unseen",
			 s->opts.pin_dir, (unsigned long long)l.seen, (unsigned long long)l.unseen);
	s->stats_seen = l.seen;
	return ret;
}

static int begin(struct serve *s, struct err *err)
{
	struct sampling *sampling = &s->opts.sampling;
	char text[1024];
	int ret;

	sampling->opts.pins = s->pins;
	sampling->opts.weigh = true;
	sampling->opts.tlb = true;
	sampling->opts.sel.live = live_bits(s);
	ret = sampling_open(sampling, err);
	if (ret)
		return ret;
	selection_text(s->argc, s->argv, text, sizeof(text));
	serve_status_texts(s, text);
	serve_status_live(s);
	serve_machine_start(s);
	ret = log_adopted(s, err);
	ret = ret ?: serve_governor_open(s, err);
	ret = ret ?: sampler_start(sampling->sampler, err);
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
	ret = ret ?: serve_status_tick(s, now, err);
	sd_notify(0, "WATCHDOG=1");
	return ret;
}

/*
 * The new options take the place of the old ones, and the counters are gone on with. If sampling
 * cannot begin with them, it does with the old ones.
 */
int serve_replace(struct serve *s, struct serve_options *fresh, bool *usage, struct err *err)
{
	struct serve_options old;
	int ret;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_s() * 1e6));
	sampler_stop(s->opts.sampling.sampler);
	serve_status_update(s, now_s(), err);
	sampling_release(&s->opts.sampling);
	old = s->opts;
	strcpy(fresh->control, old.control);
	s->opts = *fresh;
	sampling_moved(&s->opts.sampling);
	ret = begin(s, err);
	if (ret) {
		*usage = s->opts.sampling.usage;
		sampling_close(&s->opts.sampling);
		s->opts = old;
		sampling_moved(&s->opts.sampling);
		s->broken = begin(s, &s->broken_err);
	} else {
		sampling_close(&old.sampling);
	}
	sd_notify(0, "READY=1");
	return ret;
}

/* What is wrong is told before sampling stops for it. @out is to be closed in any case. */
static int parse_again(struct serve *s, struct serve_options *out, bool *usage, struct err *err)
{
	int ret = serve_parse(s, &s->live, out, err);

	if (ret)
		return ret;
	if (strcmp(out->pin_dir, s->opts.pin_dir))
		return err_set(err, -EINVAL, "--pin-dir cannot be changed without a restart");
	if (out->sampling.explain)
		return err_set(err, -EINVAL, "--explain is for starting only");
	ret = sampling_prepare(&out->sampling, err);
	*usage = out->sampling.usage;
	return ret;
}

int serve_reload(struct serve *s, bool *usage, struct err *err)
{
	const size_t old_size = s->config_size;
	const unsigned int bits = s->live_bits;
	const bool verbose = log_is_verbose();
	char *old_text = s->config_text;
	struct serve_options fresh;
	int ret = read_config(s, err);

	*usage = true;
	if (!ret) {
		ret = parse_again(s, &fresh, usage, err);
		s->live_bits = 0;
		if (ret)
			sampling_close(&fresh.sampling);
		else
			ret = serve_replace(s, &fresh, usage, err);
	}
	if (ret) {
		log_set_verbose(verbose);
		log_error("the options are left as they were: %s", err->text);
		s->status.config_errors++;
		s->live_bits = bits;
		free(s->config_text);
		s->config_text = old_text;
		s->config_size = old_size;
	} else {
		s->status.reloads++;
		free(old_text);
		log_info("the options were read again");
	}
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

/* In ms, of two; -1: for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int run(struct serve *s, int sigfd, struct err *err)
{
	double next = now_s(), follow = 0;
	int ret = 0;

	while (!ret) {
		struct pollfd fds[] = {
			{ .fd = sigfd, .events = POLLIN },
			{ .fd = cgroup_tree_fd(s->opts.sampling.tree), .events = POLLIN },
			{ .fd = s->web ? web_fd(s->web) : -1, .events = POLLIN },
			{ .fd = s->control ? control_fd(s->control) : -1, .events = POLLIN },
		};
		double due = fmin(next, s->governor.next_s);
		int ms = ceil(fmin(fmax(due - now_s(), 0), follow) * 1000);
		struct signalfd_siginfo sig;

		ms = sooner(ms, s->web ? web_timeout_ms(s->web) : -1);
		ms = sooner(ms, s->control ? control_timeout_ms(s->control) : -1);
		poll(fds, sizeof(fds) / sizeof(fds[0]), ms);
		if (s->web)
			web_run(s->web);
		if (read(sigfd, &sig, sizeof(sig)) == sizeof(sig)) {
			bool usage;

			if (sig.ssi_signo != SIGHUP)
				break;
			serve_reload(s, &usage, err);
		} else if (s->control) {
			control_run(s->control);
		}
		if (s->broken) {
			*err = s->broken_err;
			return s->broken;
		}
		if (fds[1].revents)
			cgroup_tree_update(s->opts.sampling.tree);
		follow = sampling_follow(&s->opts.sampling);
		s->governor.tick_s = next;
		if (now_s() >= s->governor.next_s - EARLY_S)
			ret = serve_governor_look(s, err);
		if (!ret && now_s() >= next - EARLY_S) {
			ret = tick(s, err);
			next = fmax(next + TICK_S, now_s());
		}
	}
	return ret;
}

static int serve(struct serve *s, struct err *err)
{
	int ret, sigfd = open_signals(err);

	if (sigfd < 0)
		return sigfd;
	ret = pins_open(s->opts.pin_dir, s->opts.pin_mode, &s->pins, err);
	ret = ret ?: serve_control_start(s, err);
	ret = ret ?: begin(s, err);
	ret = ret ?: serve_web_start(s, err);
	if (!ret) {
		sd_notifyf(0, "READY=1\nSTATUS=%s%s",
			   s->opts.sampling.info.simulated ? "SIMULATED " : "",
			   s->opts.sampling.event_text);
		ret = run(s, sigfd, err);
		sd_notify(0, "STOPPING=1");
		s->opts.sampling.usage = false; /* options that ran are not why it ends */
		if (s->opts.sampling.sampler) {
			sampler_stop(s->opts.sampling.sampler);
			serve_names_update(s); /* of what came since the last tick */
		}
		ret = ret ?: serve_status_update(s, now_s(), err);
	}
	web_close(s->web);
	control_close(s->control);
	serve_governor_close(s);
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
	struct serve s = { .stats_fd = -1, .argc = argc, .argv = argv };
	struct err err = { "" };
	int ret = read_config(&s, &err), status = EXIT_DONE;

	ret = ret ?: serve_parse(&s, &s.live, &s.opts, &err);

	log_set_journal(getenv("JOURNAL_STREAM") != NULL);
	if (ret && ret != OPTIONS_HELP) {
		log_error("%s", err.text);
		status = EXIT_USAGE;
	} else if (!ret && s.opts.config_check) {
		log_info("the options are right");
	} else if (!ret && s.opts.sampling.explain) {
		filter_explain(stdout, &s.opts.sampling.filter);
		status = fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
	} else if (!ret) {
		ret = serve(&s, &err);
		if (ret) {
			log_error("%s", err.text);
			status = s.opts.sampling.usage ? EXIT_USAGE : EXIT_FAILED;
		}
	}
	sampling_close(&s.opts.sampling);
	live_options_free(&s.live);
	free(s.config_text);
	return status;
}
