// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How to sample, one function and one row an option. */
#include "session.h"
#include "session_private.h"

#include "base/choice.h"
#include "base/num.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int set_event(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	int ret = event_parse(arg, &s->event, err);

	if (ret)
		err_prefix(err, "-e %s", arg);
	return ret;
}

static int set_period(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct num_arg num = { .name = "-c", .max = UINT64_MAX };

	s->rate.has_period = true;
	return num_parse(&num, arg, &s->rate.period, err);
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

static int set_hierarchy(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	free(s->hierarchy);
	s->hierarchy = strdup(arg);
	return s->hierarchy ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static const char *metric_name_at(unsigned int i)
{
	return metric_name(i);
}

static int set_metric(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct choices metrics = { "--metric", "metric", metric_name_at, IBS_METRIC_N };
	unsigned int metric;
	int ret = choice_parse(&metrics, arg, &metric, err);

	if (!ret)
		s->opts.metric = metric;
	return ret;
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return labels_parse(arg, &s->labels, err);
}

static const char *source_name_at(unsigned int i)
{
	static const char *const names[] = { "auto", "ibs", "sim" };

	return names[i];
}

static int set_source(void *ctx, const char *arg, struct err *err)
{
	const struct choices sources = { "--source", "source of samples", source_name_at, 3 };
	struct sampling *s = ctx;
	unsigned int source;
	int ret = choice_parse(&sources, arg, &source, err);

	if (!ret)
		s->source = source;
	return ret;
}

static int set_seed(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct num_arg num = { .name = "--seed", .max = UINT64_MAX };

	return num_parse(&num, arg, (uint64_t *)&s->opts.sim_seed, err);
}

static int set_max_groups(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct num_arg num = { .name = "--max-groups", .min = 1, .max = 1 << 20 };
	uint64_t v;
	int ret = num_parse(&num, arg, &v, err);

	s->opts.max_groups = v;
	return ret;
}

static int set_max_memory(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	const struct size_arg size = {
		.name = "--max-memory", .bare = 1 << 20, .min = 1 << 20, .max = 1ULL << 40
	};

	return num_parse_size(&size, arg, (uint64_t *)&s->opts.max_memory_bytes, err);
}

static int set_verbose(void *ctx, const char *arg, struct err *err)
{
	(void)ctx;
	(void)arg;
	(void)err;
	log_set_verbose(true);
	return 0;
}

static int set_sim_event(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	s->sim_faults = !strcmp(arg, "faults");
	if (!s->sim_faults && strcmp(arg, "clock"))
		return err_set(err, -EINVAL, "--sim-event: '%s' must be clock or faults", arg);
	return 0;
}

/* clang-format off: a row is a row */
const struct option_row sampling_options[] = {
	{ "event", 'e', "EVENT", "what to sample, in perf's syntax; default " EVENT_DEFAULT,
	  set_event },
	{ "period", 'c', "N", "ops (or cycles) between samples, a multiple of 16", set_period },
	{ "freq", 'F', "HZ", "samples per second and CPU, instead of -c", set_freq },
	{ "cpu", 'C', "LIST", "only these CPUs, as in 0-3,8", set_cpus },
	{ "all-cpus", 'a', NULL, "all online CPUs (default); with a command, sample more than it",
	  set_all },
	{ "cgroup-hierarchy", 0, "NAME",
	  "cgroup hierarchy: v2, a v1 controller such as memory, or auto\n"
	  "                            (default)",
	  set_hierarchy },
	{ "metric", 0, "NAME",
	  "latency to measure: dc_miss_lat (default), tlb_refill_lat,\n"
	  "                            tag_to_ret, comp_to_ret",
	  set_metric },
	{ "by", 0, "KEY,..",
	  "group by cgroup, container, pod, pid, tid, comm, cpu, ccx, node, mode (user, kernel), "
	  "src, op; default cgroup,src,op, in tables the container",
	  set_by },
	{ "source", 0, "auto|ibs|sim", "sim: SIMULATED samples, for machines without IBS",
	  set_source },
	{ "seed", 0, "N", "seed of the simulation; default 1", set_seed },
	{ "sim-event", 0, "clock|faults",
	  "what the simulation counts: ns (default), or page faults,\n"
	  "                            which depend on what runs",
	  set_sim_event },
	{ "max-groups", 0, "N", "groups with counters of their own; default 1024", set_max_groups },
	{ "max-memory", 0, "SIZE", "kernel memory limit, in MiB or as in 1G; default 64M",
	  set_max_memory },
	{ "verbose", 'v', NULL, "verbose output, including the verifier log", set_verbose },
};
/* clang-format on */
const size_t sampling_n_options = sizeof(sampling_options) / sizeof(sampling_options[0]);
