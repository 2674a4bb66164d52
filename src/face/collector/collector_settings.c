// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_settings.h"

#include "control.h"
#include "base/num.h"
#include "perf/sample_cost.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_S	     300
#define LEASE_S	     600
#define LEASE_MIN_S  5 /* renewed every second, unless the machine is busy */
#define LEASE_MAX_S  (7 * 86400)
#define MAX_OVERHEAD 0.005
#define MAX_BPF_NS   2500
/* Without a budget the period cannot be raised, and a neighbour that empties the caches must not end sampling. */
#define MAX_BPF_UNGOVERNED_NS 25000

#define PIN_MODE_DEFAULT ((mode_t)-1)

/* --- rows --- */

static int set_socket(const char *option, const char *arg, char *path, struct err *err)
{
	if ((*arg != '/' && strcmp(arg, "none")) || strlen(arg) > CONTROL_PATH_MAX)
		return err_set(err, -EINVAL,
			       "%s: invalid path '%.200s': must be an absolute path of at "
			       "most %d characters, or none",
			       option, arg, CONTROL_PATH_MAX);
	strcpy(path, arg);
	return 0;
}

static int set_control(void *ctx, const char *arg, struct err *err)
{
	struct collector_settings *s = ctx;

	s->control_given = true;
	return set_socket("--control", arg, s->control, err);
}

static int set_user_socket(void *ctx, const char *arg, struct err *err)
{
	return set_socket("--user-socket", arg, ((struct collector_settings *)ctx)->user_socket,
			  err);
}

static int set_user_jobs(void *ctx, const char *arg, struct err *err)
{
	struct collector_settings *s = ctx;

	if (*arg != '/' || !arg[1] || strstr(arg, "//") || strlen(arg) >= sizeof(s->user_jobs))
		return err_set(
			err, -EINVAL,
			"--user-jobs: invalid pattern '%.200s': must be the path of a cgroup "
			"below '/', of at most %zu bytes, such as "
			"'/system.slice/slurmstepd.scope/job_*'",
			arg, sizeof(s->user_jobs) - 1);
	strcpy(s->user_jobs, arg);
	return 0;
}

static int set_overhead(void *ctx, const char *arg, struct err *err)
{
	struct collector_settings *s = ctx;

	s->overhead_given = true;
	s->max_overhead = 0;
	if (!strcmp(arg, "off"))
		return 0;
	if (num_parse_percent("--max-overhead", arg, 0.001, 50, &s->max_overhead, err))
		return err_set(
			err, -EINVAL,
			"--max-overhead: invalid share '%.40s': must be from 0.001%% to 50%% "
			"of the CPUs' time, such as 0.5%%, or off",
			arg);
	return 0;
}

/* @word: accepted in place of 0 */
static int parse_ns(const char *option, const char *word, const char *arg, double *out,
		    struct err *err)
{
	const struct duration_arg time = { .name = option,
					   .bare_s = 1e-9,
					   .min_s = SAMPLE_COST_MIN_NS * 1e-9,
					   .max_s = SAMPLE_COST_MAX_NS * 1e-9 };
	double seconds;

	*out = 0;
	if (!strcmp(arg, word))
		return 0;
	if (num_parse_duration(&time, arg, &seconds, err))
		return err_set(err, -EINVAL,
			       "%s: invalid duration '%.40s': must be from %dns to %dus, or %s",
			       option, arg, SAMPLE_COST_MIN_NS, SAMPLE_COST_MAX_NS / 1000, word);
	*out = seconds * 1e9;
	return 0;
}

static int set_lease(void *ctx, const char *arg, struct err *err)
{
	static const struct duration_arg time = {
		.name = "--lease", .bare_s = 1, .min_s = LEASE_MIN_S, .max_s = LEASE_MAX_S
	};
	struct collector_settings *s = ctx;

	s->lease_s = 0;
	if (!strcmp(arg, "never"))
		return 0;
	if (num_parse_duration(&time, arg, &s->lease_s, err))
		return err_set(err, -EINVAL,
			       "--lease: invalid duration '%.40s': must be from %ds to %dd, such "
			       "as 10m, or never",
			       arg, LEASE_MIN_S, LEASE_MAX_S / 86400);
	return 0;
}

static int set_nmi_cost(void *ctx, const char *arg, struct err *err)
{
	return parse_ns("--nmi-cost", "auto", arg, &((struct collector_settings *)ctx)->nmi_ns,
			err);
}

static int set_bpf_time(void *ctx, const char *arg, struct err *err)
{
	struct collector_settings *s = ctx;

	s->bpf_time_given = true;
	return parse_ns("--max-bpf-time", "off", arg, &s->max_bpf_ns, err);
}

#define ROWS(rows) rows, sizeof(rows) / sizeof(rows[0])

static const struct option_row operation_rows[] = {
	{ "config", 0, "FILE",
	  "read options from FILE, one a line: name = value; SIGHUP reads it again",
	  OPTION_WORD(struct collector_settings, config) },
	{ "config-check", 0, NULL, "check the options and exit",
	  OPTION_FLAG(struct collector_settings, config_check) },
	{ "pin-dir", 0, "DIR", "pin counters in DIR of a bpffs; default " IBS_PIN_DIR,
	  OPTION_PATH(struct collector_settings, pin_dir) },
	{ "pin-mode", 0, "MODE",
	  "mode of the pins that readers open; default 0644, or 0600 with --user-socket",
	  OPTION_MODE(struct collector_settings, pin_mode) },
	{ "grace", 0, "TIME",
	  "keep the series of a removed cgroup for TIME, such as 10m; default 5m",
	  OPTION_DURATION(struct collector_settings, grace_s, 1, 86400) },
	{ "lease", 0, "TIME|never",
	  "end sampling if the collector is killed and none is started for TIME; default 10m",
	  set_lease },
	{ "strata", 0, "off|auto|on",
	  "alternate between all ops and, at a shorter period, only those that miss the L3, for "
	  "more "
	  "samples of what comes from memory; auto: where the machine can; default off",
	  OPTION_CHOICE(struct collector_settings, sampling.strata, "choice", strata_option_name,
			STRATA_OPTIONS) },
	{ "unpin", 0, NULL, "remove the pins, and with them the counters, on exit",
	  OPTION_FLAG(struct collector_settings, unpin) },
};

static const struct option_row control_rows[] = {
	{ "control", 0, "PATH", "socket of `ibscope ctl`, or none; default " CONTROL_PATH,
	  set_control },
	{ "control-mode", 0, "MODE",
	  "mode of that socket: whoever may write to it may change options; default 0600",
	  OPTION_MODE(struct collector_settings, control_mode) },
	{ "user-socket", 0, "PATH",
	  "socket where any user may ask for the counters of the cgroups that belong to them, such "
	  "as " USERS_PATH "; default none",
	  set_user_socket },
	{ "user-jobs", 0, "PATTERN",
	  "cgroups of jobs: a process in one of them may also see the counters of that cgroup and "
	  "its descendants",
	  set_user_jobs },
};

static const struct option_row limit_rows[] = {
	{ "max-overhead", 0, "N%|off",
	  "share of the CPUs' time for sampling: above it the period is raised, or sampling stops; "
	  "default 0.5%",
	  set_overhead },
	{ "nmi-cost", 0, "TIME|auto",
	  "CPU time of a sample without BPF, such as 2us; auto (default): measured at the start, "
	  "if possible",
	  set_nmi_cost },
	{ "max-bpf-time", 0, "TIME|off",
	  "raise the period, or stop sampling, if the BPF program takes longer on average; default "
	  "2.5us",
	  set_bpf_time },
	{ "max-rss", 0, "SIZE",
	  "exit cleanly if resident memory exceeds SIZE, such as 128M; default: --max-memory and "
	  "64M",
	  OPTION_SIZE(struct collector_settings, max_rss_bytes, 1 << 20, 16 << 20, 1ULL << 40) },
};

#define SETS_MAX 7

static size_t option_sets(const struct settings_source *src, struct collector_settings *s,
			  struct option_set *out)
{
	const struct option_set own[] = {
		{ "Sampling", sampling_options, sampling_n_options, &s->sampling },
		{ "Selection", select_option_rows, select_option_n_rows, &s->sampling.select },
		{ "Operation", ROWS(operation_rows), s },
		{ "Control socket", ROWS(control_rows), s },
		{ "Resource limits", ROWS(limit_rows), s },
		{ "Flight recorder", flight_options, flight_n_options, &s->flight },
	};
	size_t n = sizeof(own) / sizeof(own[0]);

	memcpy(out, own, sizeof(own));
	if (src->extra)
		out[n++] = (struct option_set){ src->extra->title, src->extra->rows, src->extra->n,
						s->extra };
	return n;
}

/* --- parsing --- */

int settings_read_config(struct settings_source *src, struct err *err)
{
	const char *path = options_config(src->argc, src->argv);

	src->config_text = NULL;
	src->config_size = 0;
	return path ? options_read(path, &src->config_text, &src->config_size, err) : 0;
}

/* With -F the kernel chooses the period: there is nothing to govern. */
static int check_budget(struct collector_settings *s, struct err *err)
{
	const struct sampling_event *e = s->sampling.event;
	bool has_freq = e->rate.has_freq;

	for (unsigned int i = 0; i < s->sampling.n_events; i++)
		has_freq |= e[i].spec.rate.has_freq;
	if (!has_freq)
		return 0;
	if (s->overhead_given && s->max_overhead)
		return err_set(err, -EINVAL,
			       "--max-overhead changes the period, but with -F the kernel chooses "
			       "it: use -c, or --max-overhead off");
	s->max_overhead = 0;
	return 0;
}

/* Counters are pinned for other readers, so they must not hold kernel addresses. */
static int check_slabs(const struct collector_settings *s, struct err *err)
{
	if (!(s->sampling.labels >> LABEL_SLAB & 1))
		return 0;
	return err_set(err, -EINVAL,
		       "--by slab: counters that other users can read must not have kernel "
		       "addresses, which identify slab caches: use ibscope hist, top or record "
		       "--slabs");
}

/* Users must not bypass their socket, which needs counters by cgroup. */
static int check_users(struct collector_settings *s, struct err *err)
{
	bool users = strcmp(s->user_socket, "none");

	if (s->pin_mode == PIN_MODE_DEFAULT)
		s->pin_mode = users ? 0600 : 0644;
	if (!users && *s->user_jobs)
		return err_set(err, -EINVAL, "--user-jobs needs --user-socket");
	if (users && (s->pin_mode & 0007))
		return err_set(err, -EINVAL,
			       "--pin-mode %04o lets all users read all counters, so --user-socket "
			       "protects nothing: use 0600, or 0640 for a group",
			       s->pin_mode);
	if (users && !(labels_by(s->sampling.labels) & IBS_BY_CGROUP))
		return err_set(err, -EINVAL,
			       "--user-socket needs counters of cgroups: add cgroup, container or "
			       "pod to --by");
	return 0;
}

static void set_defaults(struct collector_settings *s)
{
	memset(s, 0, sizeof(*s));
	sampling_init(&s->sampling);
	s->sampling.labels = LABELS_SERVED;
	s->sampling.wait_for_names = true;
	s->sampling.takes_two = true;
	s->sampling.strata_counters = true;
	s->sampling.sampler.count_ops = true;
	s->pin_mode = PIN_MODE_DEFAULT;
	s->grace_s = GRACE_S;
	s->lease_s = LEASE_S;
	s->max_overhead = MAX_OVERHEAD;
	s->max_bpf_ns = MAX_BPF_NS;
	strcpy(s->pin_dir, IBS_PIN_DIR);
	strcpy(s->control, CONTROL_PATH);
	strcpy(s->user_socket, "none");
	s->control_mode = 0600;
	log_set_verbose(false);
}

/* The pins of the first event are found in the same place whether there are two or not. */
static void put_op_first(struct sampling_opts *o)
{
	const struct sampling_event first = o->event[0];

	if (o->n_events == 1 || !sampling_of_fetch(o))
		return;
	o->event[0] = o->event[1];
	o->event[1] = first;
}

static int check(struct collector_settings *s, struct err *err)
{
	int ret = check_slabs(s, err) ?: check_users(s, err) ?: check_budget(s, err);

	if (!s->max_overhead && !s->bpf_time_given)
		s->max_bpf_ns = MAX_BPF_UNGOVERNED_NS;
	ret = ret ?: sampling_check(&s->sampling, err);
	return ret ?: flight_check(&s->flight, &s->sampling, err);
}

int settings_parse(const struct settings_source *src, const struct live_options *live,
		   struct collector_settings *s, struct err *err)
{
	struct option_set sets[SETS_MAX];
	size_t n;
	int ret = 0;

	set_defaults(s);
	s->extra = src->extra ? xcalloc(1, src->extra->size) : NULL;
	n = option_sets(src, s, sets);
	for (size_t i = 0; i < n; i++) {
		sets[i].skip = live_options_hide;
		sets[i].skip_arg = (void *)live;
	}
	s->config = options_config(src->argc, src->argv);
	if (s->config)
		ret = options_text(s->config, src->config_text, src->config_size, sets, n, err);
	s->sampling.events[0] = 0; /* -e on the command line replaces -e in the file */
	ret = ret ?: options_parse(src->argc, src->argv, sets, n, err);
	if (!ret && optind < src->argc)
		ret = err_set(err, -EINVAL,
			      "unexpected argument '%.200s': serve takes options only",
			      src->argv[optind]);
	for (size_t i = 0; i < n; i++)
		sets[i].skip = NULL;
	ret = ret ?: live_options_apply(live, sets, n, err);
	ret = ret ?: check(s, err);
	put_op_first(&s->sampling);
	if (!ret && src->extra && src->extra->check)
		ret = src->extra->check(s, err);
	return ret;
}

const struct option_row *settings_find_option(const struct settings_source *src, const char *name,
					      struct suggestion *near)
{
	struct collector_settings none = {};
	struct option_set sets[SETS_MAX];
	const size_t n = option_sets(src, &none, sets);
	const struct option_row *found = options_find(name, sets, n);

	suggestion_start(near, name, strlen(name));
	for (size_t i = 0; !found && i < n; i++)
		for (size_t k = 0; k < sets[i].n; k++)
			suggestion_offer(near, sets[i].rows[k].name);
	return found;
}

void settings_help(const struct settings_source *src, FILE *f)
{
	struct collector_settings none = {};
	struct option_set sets[SETS_MAX];

	options_help(f, sets, option_sets(src, &none, sets));
}

void settings_command_line(const struct settings_source *src, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (int i = 1; i < src->argc && n < size; i++)
		n += snprintf(out + n, size - n, "%s%s", i > 1 ? " " : "", src->argv[i]);
}

void settings_close(struct collector_settings *s)
{
	sampling_free(&s->sampling);
	free(s->extra);
	s->extra = NULL;
}
