// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options that control sampling, one function and one row per option, and what they imply. */
#include "session.h"
#include "session_private.h"

#include "base/choice.h"
#include "base/num.h"

#include <errno.h>

/* Cut "A/x,y/,B//" at commas outside of slashes. Return: how many; *out: the @nth or the last. */
static unsigned int cut_list(const char *arg, unsigned int nth, const char **out, size_t *len)
{
	unsigned int n = 0;
	bool terms = false;

	*out = arg;
	*len = 0;
	for (const char *from = arg, *p = arg;; p++) {
		terms ^= *p == '/';
		if (*p && (*p != ',' || terms))
			continue;
		if (n++ <= nth) {
			*out = from;
			*len = p - from;
		}
		if (!*p)
			return n;
		from = p + 1;
	}
}

/* The @nth part, or the last, as text. Return: the number of parts. */
static unsigned int cut_text(const char *arg, unsigned int nth, char *text, size_t size)
{
	const char *part;
	size_t len;
	unsigned int n = cut_list(arg, nth, &part, &len);

	snprintf(text, size, "%.*s", (int)len, part);
	return n;
}

static int set_event(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;
	char text[EVENT_TEXT_MAX];
	size_t len = strlen(o->events);
	int ret = 0;

	/* -e A -e B means -e A,B, as in perf */
	if (snprintf(o->events + len, sizeof(o->events) - len, "%s%s", len ? "," : "", arg) >=
	    (int)(sizeof(o->events) - len))
		return err_set(err, -E2BIG, "-e %s: list of events too long", arg);
	arg = o->events;
	o->n_events = cut_text(arg, 0, text, sizeof(text));
	if (o->n_events > SESSION_EVENTS || (o->n_events == 2 && !o->takes_two))
		return err_set(err, -EINVAL, "-e %s: at most %s", arg,
			       o->takes_two
				       ? "two events, ibs_op and ibs_fetch, are possible"
				       : "one event is possible: run the command once for each");
	for (unsigned int i = 0; !ret && i < o->n_events; i++) {
		cut_text(arg, i, text, sizeof(text));
		ret = event_parse(text, &o->event[i].spec, err);
	}
	if (!ret && o->n_events == 2 && !strcmp(o->event[0].spec.pmu, o->event[1].spec.pmu))
		ret = err_set(
			err, -EINVAL,
			"two events of %s, which supports only one: use one of ibs_op and one of "
			"ibs_fetch",
			o->event[0].spec.pmu);
	if (ret)
		err_prefix(err, "-e %s", arg);
	return ret;
}

static int set_period(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;
	const struct num_arg num = { .max = UINT64_MAX };
	char text[64];

	for (unsigned int i = 0; i < SESSION_EVENTS; i++) {
		struct event_rate *rate = &o->event[i].rate;

		rate->has_period = true;
		o->n_periods = cut_text(arg, i, text, sizeof(text));
		if (!num_parse(&num, text, &rate->period, NULL) || o->has_bad_period)
			continue;
		snprintf(o->bad_period, sizeof(o->bad_period), "%.40s", text);
		o->has_bad_period = true;
	}
	(void)err;
	return 0;
}

const char *strata_option_name(unsigned int i)
{
	static const char *const names[STRATA_OPTIONS] = { "off", "auto", "on" };

	return names[i];
}

static int check_period(const struct sampling_opts *o, struct err *err)
{
	char rule[64] = "a multiple of 16 from 16 to 134217712";

	if (!o->has_bad_period)
		return 0;
	if (o->source == SOURCE_SIM)
		snprintf(rule, sizeof(rule), "from %u to 2^40 %s in the simulation",
			 o->sim_faults ? SIM_MIN_FAULTS : SIM_MIN_PERIOD_NS,
			 o->sim_faults ? "page faults" : "ns");
	return err_set(err, -EINVAL,
		       EVENT_PERIOD_OPTION
		       ": invalid number '%s': must be %s, decimal (K, M, G multiply by "
		       "1e3, 1e6, 1e9) or 0x hexadecimal",
		       o->bad_period, rule);
}

static int set_freq(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;
	const struct num_arg num = { .name = "-F", .unit = "Hz", .max = UINT64_MAX };
	int ret = 0;

	for (unsigned int i = 0; !ret && i < SESSION_EVENTS; i++) {
		o->event[i].rate.has_freq = true;
		ret = num_parse(&num, arg, &o->event[i].rate.freq, err);
	}
	return ret;
}

static int set_cpus(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;

	o->has_cpus = true;
	return cpulist_parse("-C", arg, &o->cpus, err);
}

static int set_all(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;

	(void)arg;
	(void)err;
	o->has_cpus = false;
	o->all = true;
	return 0;
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;

	return labels_parse(arg, &o->labels, &o->order, err);
}

static int set_plan(void *ctx, const char *arg, struct err *err)
{
	struct sampling_opts *o = ctx;

	return plan_parse(arg, &o->stages, err);
}

static const char *source_name_at(unsigned int i)
{
	static const char *const names[] = { "auto", "ibs", "sim" };

	return names[i];
}

static const char *sim_event_name_at(unsigned int i)
{
	return i ? "faults" : "clock";
}

static const char *sim_ops_name_at(unsigned int i)
{
	static const char *const names[] = { [SAMPLER_SIM_TASKS] = "tasks",
					     [SAMPLER_SIM_RANDOM] = "random",
					     [SAMPLER_SIM_CONTENDED] = "contended" };

	return names[i];
}

static int set_verbose(void *ctx, const char *arg, struct err *err)
{
	(void)ctx;
	(void)arg;
	(void)err;
	log_set_verbose(true);
	return 0;
}

/* clang-format off: a row is a row */
const struct option_row sampling_options[] = {
	{ "event", 'e', "EVENT",
	  "event to sample, in perf's syntax: " EVENT_DEFAULT
	  " (default) or ibs_fetch//; hist, record "
	  "and serve can sample both: ibs_op//,ibs_fetch//",
	  set_event },
	{ "period", 'c', "N",
	  "ops (or cycles) between samples, a multiple of 16; N,N for two events", set_period },
	{ "freq", 'F', "HZ", "samples per second and CPU, instead of -c", set_freq },
	{ "cpu", 'C', "LIST", "only these CPUs, as in 0-3,8", set_cpus },
	{ "all-cpus", 'a', NULL,
	  "all online CPUs (default); with COMMAND, sample the whole system and not only COMMAND",
	  set_all },
	{ "plan", 0, "STAGE,..",
	  "stages that may drop samples before the program: hw, sched, driver, or program for "
	  "none; default auto: those that keep estimates known",
	  set_plan },
	{ "core-counters", 0, NULL,
	  "count tagged ops with counters of the core even if no estimate needs them, to report "
	  "what was tagged and not delivered",
	  OPTION_FLAG(struct sampling_opts, core_counters) },
	{ "any-period", 0, NULL,
	  "sample even with a period or frequency at which samples take more than a quarter of a "
	  "busy CPU's time",
	  OPTION_FLAG(struct sampling_opts, any_period) },
	{ "cgroup-hierarchy", 0, "NAME",
	  "cgroup hierarchy: v2, a v1 controller such as memory, or auto (default)",
	  OPTION_TEXT(struct sampling_opts, hierarchy) },
	{ "metric", 0, "NAME",
	  "latency to measure: dc_miss_lat (default), tlb_refill_lat, tag_to_ret, comp_to_ret; for "
	  "ibs_fetch: fetch_lat (default), itlb_refill_lat",
	  OPTION_CHOICE(struct sampling_opts, metric, "metric", metric_name, IBS_METRIC_N) },
	{ "by", 0, "KEY,..",
	  "group by cgroup, container, pod, pid, tid, comm, cpu, ccx, node, mem_node, distance, "
	  "slab, "
	  "mode (user, "
	  "kernel), "
	  "src, op; for ibs_fetch also fetch, itlb; for top -i also symbol; default cgroup,src,op "
	  "or cgroup,fetch,itlb; for tables and serve container",
	  set_by },
	{ "source", 0, "auto|ibs|sim", "sim: SIMULATED samples, for machines without IBS",
	  OPTION_CHOICE(struct sampling_opts, source, "source of samples", source_name_at, 3) },
	{ "seed", 0, "N", "seed of the simulation; default 1",
	  OPTION_NUMBER(struct sampling_opts, sampler.sim_seed, 0, UINT64_MAX) },
	{ "sim-event", 0, "clock|faults",
	  "what the simulation counts: ns (default), or page faults, 16 per sample if no period is "
	  "given",
	  OPTION_CHOICE(struct sampling_opts, sim_faults, "event", sim_event_name_at, 2) },
	{ "sim-ops", 0, "tasks|random|contended",
	  "ops of the simulation: instructions of the interrupted tasks with their own addresses "
	  "(default), drawn at random from the seed, or those of tasks that slow each other on a "
	  "shared L3",
	  OPTION_CHOICE(struct sampling_opts, sampler.sim_ops, "ops", sim_ops_name_at, 3) },
	{ "max-groups", 0, "N", "groups with counters of their own; default 1024",
	  OPTION_NUMBER(struct sampling_opts, sampler.max_groups, 1, 1 << 20) },
	{ "max-memory", 0, "SIZE", "kernel memory limit, in MiB or as in 1G; default 64M",
	  OPTION_SIZE(struct sampling_opts, sampler.max_memory_bytes, 1 << 20, 1 << 20,
		      1ULL << 40) },
	{ "verbose", 'v', NULL, "verbose output, including the verifier log", set_verbose },
};
/* clang-format on */
const size_t sampling_n_options = sizeof(sampling_options) / sizeof(sampling_options[0]);

void sampling_init(struct sampling_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->n_events = 1;
	event_parse(EVENT_DEFAULT, &o->event[0].spec, NULL);
	command_signals_get(&o->signals);
	o->labels = LABELS_DEFAULT;
	o->metric = IBS_METRIC_N;
	o->stages = PLAN_AUTO;
	o->sampler.sim_seed = 1;
}

void sampling_free(struct sampling_opts *o)
{
	select_options_free(&o->select);
	memset(o, 0, sizeof(*o));
}

int sampling_cut_command(struct sampling_opts *o, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (i + 1 == argc)
			return err_set(err, -EINVAL, "missing command after '--'");
		o->argv = argv + i + 1;
		argv[i] = NULL;
		return i;
	}
	return argc;
}

/* Check the options that depend on the event, and set their defaults. */
static int check_event(struct sampling_opts *o, struct sampling_event *e, struct err *err)
{
	const bool fetch = event_of_fetch(&e->spec), both = o->n_events == 2;
	const struct selection *sel = &o->select.sel;

	e->metric = o->metric;
	if (o->metric == IBS_METRIC_N || (both && ibs_metric_of_fetch(o->metric) != fetch))
		e->metric = fetch ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
	if (ibs_metric_of_fetch(e->metric) != fetch)
		return err_set(err, -EINVAL, "--metric %s: samples of %s do not have that; use %s",
			       metric_name(o->metric), e->spec.pmu,
			       fetch ? "fetch_lat or itlb_refill_lat"
				     : "-e ibs_fetch//, or another metric");
	if (o->n_periods > o->n_events)
		return err_set(err, -EINVAL, "-c: %u periods, but %u event%s", o->n_periods,
			       o->n_events, both ? "s" : "");
	/* with two events each groups by the keys that it has */
	e->labels = o->labels == LABELS_SERVED ? labels_of_event(o->labels, fetch) : o->labels;
	if (both)
		e->labels &= fetch ? ~LABELS_OP : ~LABELS_FETCH;
	if (fetch && (sel->src_mask || sel->op_mask))
		return err_set(
			err, -EINVAL,
			"--%s: samples of ibs_fetch do not have that; use --filter 'fetch == "
			"..'",
			sel->src_mask ? "src" : "op");
	return select_options_check(&o->select, fetch, err);
}

int sampling_check(struct sampling_opts *o, struct err *err)
{
	int ret = check_period(o, err);

	for (unsigned int i = 0; !ret && i < o->n_events; i++)
		ret = check_event(o, &o->event[i], err);
	return ret;
}

struct selection sampling_selection(const struct sampling_opts *o, unsigned int n)
{
	const struct filter *filter = &o->select.filter[event_of_fetch(&o->event[n].spec)];
	struct selection sel = o->select.sel;

	sel.filter = filter->n_parts ? &filter->prog : NULL;
	sel.live = o->live;
	return sel;
}

bool sampling_measures_others(const struct sampling_opts *o)
{
	const struct selection *sel = &o->select.sel;

	return o->all || sel->processes.n || sel->threads.n || o->select.n_cgroups ||
	       o->select.n_containers;
}
