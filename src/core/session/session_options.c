// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options that control sampling, one function and one row per option. */
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

static int set_event(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	struct event_spec other;
	const char *part;
	char text[EVENT_TEXT_MAX];
	size_t len = strlen(s->events);
	int ret = 0;

	/* -e A -e B means -e A,B, as in perf */
	if (snprintf(s->events + len, sizeof(s->events) - len, "%s%s", len ? "," : "", arg) >=
	    (int)(sizeof(s->events) - len))
		return err_set(err, -E2BIG, "-e %s: list of events too long", arg);
	arg = s->events;
	s->n_events = cut_list(arg, s->nth_event, &part, &len);
	if (s->n_events > 2 || (s->n_events == 2 && !s->takes_two))
		return err_set(err, -EINVAL, "-e %s: at most %s", arg,
			       s->takes_two
				       ? "two events, ibs_op and ibs_fetch, are possible"
				       : "one event is possible: run the command once for each");
	for (unsigned int i = 0; !ret && i < s->n_events; i++) {
		cut_list(arg, i, &part, &len);
		snprintf(text, sizeof(text), "%.*s", (int)len, part);
		ret = event_parse(text, i == s->nth_event ? &s->event : &other, err);
	}
	if (!ret && s->n_events == 2 && !strcmp(s->event.pmu, other.pmu))
		ret = err_set(
			err, -EINVAL,
			"two events of %s, which supports only one: use one of ibs_op and one of "
			"ibs_fetch",
			other.pmu);
	if (ret)
		err_prefix(err, "-e %s", arg);
	return ret;
}

static int set_period(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct num_arg num = { .name = "-c", .max = UINT64_MAX };
	const char *part;
	char text[64];
	size_t len;

	s->rate.has_period = true;
	s->n_periods = cut_list(arg, s->nth_event, &part, &len);
	snprintf(text, sizeof(text), "%.*s", (int)len, part);
	return num_parse(&num, text, &s->rate.period, err);
}

static int set_freq(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct num_arg num = { .name = "-F", .unit = "Hz", .max = UINT64_MAX };

	s->rate.has_freq = true;
	return num_parse(&num, arg, &s->rate.freq, err);
}

static int set_cpus(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	s->has_cpus = true;
	return cpulist_parse("-C", arg, &s->cpus, err);
}

static int set_all(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	(void)arg;
	(void)err;
	s->has_cpus = false;
	s->all = true;
	return 0;
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return labels_parse(arg, &s->labels, &s->order, err);
}

static int set_plan(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	s->stages_given = true;
	return plan_parse(arg, &s->stages, err);
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
	return i ? "random" : "tasks";
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
	  "stages that may drop samples before the program: hw, sched, driver, or off; default "
	  "sched",
	  set_plan },
	{ "core-counters", 0, NULL,
	  "count tagged ops with counters of the core even if no estimate needs them, to report "
	  "what was tagged and not delivered",
	  OPTION_FLAG(struct sampling, core_counters) },
	{ "cgroup-hierarchy", 0, "NAME",
	  "cgroup hierarchy: v2, a v1 controller such as memory, or auto (default)",
	  OPTION_TEXT(struct sampling, hierarchy) },
	{ "metric", 0, "NAME",
	  "latency to measure: dc_miss_lat (default), tlb_refill_lat, tag_to_ret, comp_to_ret; for "
	  "ibs_fetch: fetch_lat (default), itlb_refill_lat",
	  OPTION_CHOICE(struct sampling, metric, "metric", metric_name, IBS_METRIC_N) },
	{ "by", 0, "KEY,..",
	  "group by cgroup, container, pod, pid, tid, comm, cpu, ccx, node, mem_node, distance, "
	  "slab, "
	  "mode (user, "
	  "kernel), "
	  "src, op; for ibs_fetch also fetch, itlb; for top -i also symbol; default cgroup,src,op "
	  "or cgroup,fetch,itlb; for tables and serve container",
	  set_by },
	{ "source", 0, "auto|ibs|sim", "sim: SIMULATED samples, for machines without IBS",
	  OPTION_CHOICE(struct sampling, source, "source of samples", source_name_at, 3) },
	{ "seed", 0, "N", "seed of the simulation; default 1",
	  OPTION_NUMBER(struct sampling, opts.sim_seed, 0, UINT64_MAX) },
	{ "sim-event", 0, "clock|faults",
	  "what the simulation counts: ns (default), or page faults, 16 per sample if no period is "
	  "given",
	  OPTION_CHOICE(struct sampling, sim_faults, "event", sim_event_name_at, 2) },
	{ "sim-ops", 0, "tasks|random",
	  "ops of the simulation: instructions of the interrupted tasks with their own addresses "
	  "(default), or drawn at random from the seed",
	  OPTION_CHOICE(struct sampling, opts.sim_random, "ops", sim_ops_name_at, 2) },
	{ "max-groups", 0, "N", "groups with counters of their own; default 1024",
	  OPTION_NUMBER(struct sampling, opts.max_groups, 1, 1 << 20) },
	{ "max-memory", 0, "SIZE", "kernel memory limit, in MiB or as in 1G; default 64M",
	  OPTION_SIZE(struct sampling, opts.max_memory_bytes, 1 << 20, 1 << 20, 1ULL << 40) },
	{ "verbose", 'v', NULL, "verbose output, including the verifier log", set_verbose },
};
/* clang-format on */
const size_t sampling_n_options = sizeof(sampling_options) / sizeof(sampling_options[0]);
