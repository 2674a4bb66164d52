// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sampling.h"

#include "num.h"
#include "pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The processor that the simulation models: Zen 4, no errata. */
#define SIM_CAPS 0xbffu

/* Shortest period of the software clock that is worth a timer interrupt. */
#define SIM_MIN_PERIOD_NS 10000

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
	return 0;
}

/* "1,2,3" behind what earlier options named; "!1,2" means all but those. */
static int add_pids(const char *option, const char *arg, __u32 *pids, struct selected_pids *set,
		    struct err *err)
{
	const struct num_arg num = { .name = option, .min = 1, .max = IBS_PID_MAX };
	bool but = *arg == '!';
	char one[32];

	if (set->n && but != set->but)
		return err_set(err, -EINVAL,
			       "%s: name those to keep or, with '!', those to leave "
			       "out, not both",
			       option);
	set->but = but;
	set->pids = pids;
	for (const char *p = arg + but;; p++) {
		size_t len = strcspn(p, ",");
		uint64_t pid;
		int ret;

		snprintf(one, sizeof(one), "%.*s", (int)len, p);
		ret = num_parse(&num, one, &pid, err);
		if (ret)
			return ret;
		if (set->n == SAMPLING_PIDS)
			return err_set(err, -E2BIG, "%s: at most %d can be named", option,
				       SAMPLING_PIDS);
		pids[set->n++] = pid;
		p += len;
		if (!*p)
			return 0;
	}
}

static int set_pid(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return add_pids("-p", arg, s->pids, &s->opts.sel.processes, err);
}

static int set_tid(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	if (*arg == '!')
		return err_set(err, -EINVAL,
			       "-t: threads to leave out cannot be named, only those "
			       "to keep");
	return add_pids("-t", arg, s->tids, &s->opts.sel.threads, err);
}

static int set_follow(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	(void)arg;
	(void)err;
	s->opts.sel.follow = true;
	return 0;
}

static int set_comm(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	struct selection *sel = &s->opts.sel;
	bool but = *arg == '!';

	if (sel->n_comms && but != sel->comms_but)
		return err_set(err, -EINVAL,
			       "--comm: name those to keep or, with '!', those to "
			       "leave out, not both");
	sel->comms_but = but;
	sel->comms = (const char *const *)s->comms;
	for (const char *p = arg + but;; p++) {
		size_t len = strcspn(p, ",");

		if (!len || len > 15)
			return err_set(err, -EINVAL,
				       "--comm: '%.*s': a name has 1 to 15 bytes; the "
				       "kernel cuts longer ones",
				       (int)len, p);
		if (sel->n_comms == IBS_COMMS_MAX)
			return err_set(err, -E2BIG, "--comm: at most %d names are possible",
				       IBS_COMMS_MAX);
		s->comms[sel->n_comms] = strndup(p, len);
		if (!s->comms[sel->n_comms])
			return err_set(err, -ENOMEM, "out of memory");
		sel->n_comms++;
		p += len;
		if (!*p)
			return 0;
	}
}

static int set_cgroup(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	char **more = realloc(s->cgroups, (s->n_cgroups + 1) * sizeof(*more));

	if (!more)
		return err_set(err, -ENOMEM, "out of memory");
	s->cgroups = more;
	more[s->n_cgroups] = strdup(arg);
	if (!more[s->n_cgroups])
		return err_set(err, -ENOMEM, "out of memory");
	s->n_cgroups++;
	return 0;
}

/* "a,b" against a table of names, to bits. */
static int parse_names(const char *option, const char *text, const char *(*name)(unsigned int),
		       unsigned int n, __u32 *bits, struct err *err)
{
	bool but = *text == '!'; /* all but those */
	char known[512] = "";

	for (unsigned int i = 0; i < n; i++) {
		strcat(known, i ? ", " : "");
		strcat(known, name(i));
	}
	*bits = 0;
	for (const char *p = text + but;; p++) {
		size_t len = strcspn(p, ",");
		unsigned int i = 0;

		while (i < n && !(strlen(name(i)) == len && !memcmp(name(i), p, len)))
			i++;
		if (i == n)
			return err_set(err, -EINVAL, "%s: column %td: '%.*s' is none of %s", option,
				       p - text + 1, (int)len, p, known);
		*bits |= 1U << i;
		p += len;
		if (!*p)
			break;
	}
	if (but)
		*bits = ~*bits & ((1U << n) - 1);
	if (!*bits)
		return err_set(err, -EINVAL, "%s: '%s' leaves nothing", option, text);
	return 0;
}

static const char *src_name_at(unsigned int i)
{
	return src_name(i);
}

static const char *op_name_at(unsigned int i)
{
	return op_kind_name(i);
}

static const char *metric_name_at(unsigned int i)
{
	return metric_name(i);
}

static int set_src(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return parse_names("--src", arg, src_name_at, IBS_SRC_N, &s->opts.sel.src_mask, err);
}

static int set_op(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return parse_names("--op", arg, op_name_at, IBS_OP_KIND_N, &s->opts.sel.op_mask, err);
}

static int set_filter(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	free(s->filter_text);
	s->filter_text = strdup(arg);
	return s->filter_text ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int set_user(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	(void)arg;
	(void)err;
	s->user = true;
	return 0;
}

static int set_kernel(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	(void)arg;
	(void)err;
	s->kernel = true;
	return 0;
}

static int set_explain(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	(void)arg;
	(void)err;
	s->explain = true;
	return 0;
}

static int set_metric(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;
	__u32 bits;
	int ret = parse_names("--metric", arg, metric_name_at, IBS_METRIC_N, &bits, err);

	if (ret)
		return ret;
	if (bits & (bits - 1))
		return err_set(err, -EINVAL, "--metric: one metric at a time, not '%s'", arg);
	s->opts.metric = __builtin_ctz(bits);
	return 0;
}

static int set_latency(const char *option, const char *arg, __u32 *out, struct err *err)
{
	const struct num_arg num = {
		.name = option, .unit = "cycles", .min = 1, .max = IBS_LAT_MAX
	};
	uint64_t v;
	int ret = num_parse(&num, arg, &v, err);

	*out = v;
	return ret;
}

static int set_min_lat(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return set_latency("--min-lat", arg, &s->opts.sel.min_lat, err);
}

static int set_max_lat(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return set_latency("--max-lat", arg, &s->opts.sel.max_lat, err);
}

static int set_by(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return labels_parse(arg, &s->labels, err);
}

static int set_source(void *ctx, const char *arg, struct err *err)
{
	static const char *const names[] = { "auto", "ibs", "sim" };
	struct sampling *s = ctx;

	for (int i = 0; i < 3; i++) {
		if (!strcmp(arg, names[i])) {
			s->source = i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "--source: '%s' is none of auto, ibs, sim", arg);
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
	const struct num_arg num = {
		.name = "--max-memory", .unit = "MiB", .min = 1, .max = 1 << 20
	};
	uint64_t v;
	int ret = num_parse(&num, arg, &v, err);

	s->opts.max_memory_bytes = v << 20;
	return ret;
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
	{ "event", 'e', "EVENT", "what to sample, in perf's syntax; default " EVENT_DEFAULT,
	  set_event },
	{ "period", 'c', "N", "ops (or cycles) between samples, a multiple of 16", set_period },
	{ "freq", 'F', "HZ", "samples a second and CPU, instead of -c", set_freq },
	{ "cpu", 'C', "LIST", "only these CPUs, as in 0-3,8", set_cpus },
	{ "all-cpus", 'a', NULL, "all online CPUs (default)", set_all },
	{ "pid", 'p', "PID,..", "only these processes", set_pid },
	{ "tid", 't', "TID,..", "only these threads", set_tid },
	{ "follow", 0, NULL, "and the children of those of -p and -t", set_follow },
	{ "comm", 0, "NAME,..", "only threads of these names", set_comm },
	{ "cgroup", 0, "PATH[:MIN],..",
	  "only these cgroups (patterns too) and those below;\n"
	  "                            MIN: a least latency of their own",
	  set_cgroup },
	{ "src", 0, "NAME,..", "only data from these sources", set_src },
	{ "op", 0, "NAME,..", "only these kinds of op", set_op },
	{ "min-lat", 0, "CYCLES", "only with at least this latency", set_min_lat },
	{ "max-lat", 0, "CYCLES", "only with at most this latency", set_max_lat },
	{ "user", 0, NULL, "only ops of user space", set_user },
	{ "kernel", 0, NULL, "only ops of the kernel", set_kernel },
	{ "filter", 0, "EXPR", "only where this holds, as in 'mem_lvl == ram && weight1 > 300'",
	  set_filter },
	{ "explain", 0, NULL, "say what --filter will test in the kernel, and end", set_explain },
	{ "metric", 0, "NAME",
	  "latency to histogram: dc_miss_lat (default), tlb_refill_lat,\n"
	  "                            tag_to_ret, comp_to_ret",
	  set_metric },
	{ "by", 0, "LABEL,..",
	  "keep apart by cgroup, pid, tid, comm, cpu, ccx, node,\n"
	  "                            src, op; default cgroup,src,op",
	  set_by },
	{ "source", 0, "auto|ibs|sim", "sim: SIMULATED samples, for machines without IBS",
	  set_source },
	{ "seed", 0, "N", "of the simulation's model; default 1", set_seed },
	{ "max-groups", 0, "N", "cgroups (or what --by says) kept apart; default 1024",
	  set_max_groups },
	{ "max-memory", 0, "MIB", "bound of the kernel memory; default 64", set_max_memory },
	{ "verbose", 'v', NULL, "more messages, the verifier's too", set_verbose },
};
/* clang-format on */
const size_t sampling_n_options = sizeof(sampling_options) / sizeof(sampling_options[0]);

void sampling_init(struct sampling *s)
{
	memset(s, 0, sizeof(*s));
	event_parse(EVENT_DEFAULT, &s->event, NULL);
	s->labels = LABELS_DEFAULT;
	s->opts.sim_seed = 1;
}

int sampling_filter(struct sampling *s, struct err *err)
{
	const char *mode = s->user == s->kernel ? NULL : s->user ? "user" : "kernel";
	const char *expr = s->filter_text;
	struct filter alone;
	char *both = NULL;
	int ret;

	if (!expr && !mode)
		return 0;
	/* parsed alone first: columns in messages are those that the user wrote */
	ret = expr ? filter_parse(expr, &alone, err) : 0;
	if (ret) {
		err_prefix(err, "--filter");
		return ret;
	}
	if (expr)
		filter_free(&alone);
	if (asprintf(&both, expr && mode ? "(%s) && %s" : "%s%s", expr ?: "", mode ?: "") < 0)
		return err_set(err, -ENOMEM, "out of memory");
	ret = filter_parse(both, &s->filter, err);
	free(both);
	if (!ret && s->filter.n_cgroups)
		ret = err_set(err, -EINVAL,
			      "cgroups and containers are selected by --cgroup, not here");
	if (ret)
		err_prefix(err, "--filter");
	else
		s->opts.sel.filter = &s->filter.prog;
	return ret;
}

static int usage_error(struct sampling *s, int ret)
{
	s->usage = ret == -EINVAL || ret == -ERANGE || ret == -E2BIG;
	return ret;
}

/* The event as the IBS driver is to get it. */
static int prepare_ibs(struct sampling *s, struct err *err)
{
	const char *notice;
	struct pmu *pmu;
	int ret = pmu_open("", s->event.pmu, &s->cpu, &pmu, err);

	if (ret) {
		size_t n = strlen(err->text);

		snprintf(err->text + n, sizeof(err->text) - n,
			 "; `ibscope doctor` tells more; --source sim shows SIMULATED samples");
		return ret;
	}
	ret = event_attr(&s->event, pmu, &s->cpu, &s->rate, &s->opts.attr, err);
	pmu_close(pmu);
	if (ret)
		return usage_error(s, ret);
	notice = event_notice(&s->event, &s->cpu);
	if (notice)
		log_info("%s", notice);
	s->opts.source = SAMPLER_IBS;
	s->opts.ibs = (struct ibs_cpu){ .caps = s->cpu.caps, .quirks = s->cpu.quirks };
	s->info.source = "ibs";
	return 0;
}

/* One op takes the model a nanosecond. */
static int prepare_sim(struct sampling *s, struct err *err)
{
	const struct event_rate *rate =
		s->event.rate.has_period || s->event.rate.has_freq ? &s->event.rate : &s->rate;
	struct perf_event_attr *attr = &s->opts.attr;

	for (unsigned int i = 0; i < s->event.n_terms; i++)
		if (strcmp(s->event.terms[i].name, "cnt_ctl"))
			return usage_error(
				s, err_set(err, -EINVAL,
					   "the simulation has no '%s': leave the term out, "
					   "or sample with --source ibs",
					   s->event.terms[i].name));
	if (s->event.user || s->event.kernel)
		return usage_error(s, err_set(err, -EINVAL,
					      "the simulation has no modifiers: leave "
					      "them out, or sample with --source ibs"));
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (rate->has_period && rate->has_freq)
		return usage_error(s,
				   err_set(err, -EINVAL, "-c and -F exclude each other: give one"));
	if (rate->has_freq) {
		attr->freq = 1;
		attr->sample_freq = rate->freq;
	} else {
		attr->sample_period = rate->has_period ? rate->period : EVENT_DEFAULT_PERIOD;
	}
	if (attr->freq
		    ? attr->sample_freq == 0 || attr->sample_freq > 1000000000 / SIM_MIN_PERIOD_NS
		    : attr->sample_period < SIM_MIN_PERIOD_NS || attr->sample_period > 1ULL << 40)
		return usage_error(
			s, err_set(err, -ERANGE,
				   "the simulation samples at a period of %d to 2^40 (ns), or "
				   "at 1 to %d Hz",
				   SIM_MIN_PERIOD_NS, 1000000000 / SIM_MIN_PERIOD_NS));
	s->opts.source = SAMPLER_SIM;
	s->opts.ibs = (struct ibs_cpu){ .caps = SIM_CAPS };
	s->info.source = "sim";
	s->info.simulated = true;
	return 0;
}

static int choose_cpus(struct sampling *s, struct err *err)
{
	struct cpulist online;
	size_t n = 0;
	int cpu, ret = cpulist_read("", "online", &online, err);

	if (ret)
		return ret;
	if (!s->has_cpus)
		s->cpus = online;
	cpu = cpulist_outside(&s->cpus, &online);
	if (cpu >= 0) {
		char list[256];

		cpulist_print(&online, list, sizeof(list));
		return usage_error(s,
				   err_set(err, -EINVAL, "-C: cpu %d is not online; online are %s",
					   cpu, list));
	}
	s->cpu_array = calloc(cpulist_count(&s->cpus), sizeof(*s->cpu_array));
	if (!s->cpu_array)
		return err_set(err, -ENOMEM, "out of memory");
	cpulist_for_each (cpu, &s->cpus)
		s->cpu_array[n++] = cpu;
	s->opts.cpus = s->cpu_array;
	s->opts.n_cpus = n;
	return 0;
}

/* What a path or pattern of --cgroup stands for. */
struct cgroup_arg {
	struct sampling *s;
	__u16 min_lat;
	bool out;
};

static int add_cgroup(uint64_t id, const char *path, void *arg)
{
	const struct cgroup_arg *a = arg;
	struct sampling *s = a->s;

	(void)path;
	if (s->n_selected == s->room_selected) {
		size_t room = s->room_selected ? 2 * s->room_selected : 64;
		struct selected_cgroup *more = realloc(s->selected, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->selected = more;
		s->room_selected = room;
	}
	s->selected[s->n_selected++] =
		(struct selected_cgroup){ .id = id, .min_lat = a->min_lat, .out = a->out };
	return 0;
}

/* One of --cgroup: PATH or PATTERN, with :MIN behind it perhaps. */
static int select_cgroup(struct cgroup_arg *a, char *text, struct err *err)
{
	struct cgroup_tree *tree = a->s->tree;
	char *colon = strrchr(text, ':');
	__u32 min_lat = 0;
	uint64_t id;
	int ret = cgroup_id_of_path(tree, text, &id, NULL);

	/* a path can hold a colon: ours is one behind which stands a number, in no such path */
	if (ret && colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		ret = set_latency("--cgroup", colon + 1, &min_lat, err);
		if (ret)
			return ret;
		*colon = 0;
	}
	a->min_lat = min_lat;
	if (strpbrk(text, "*?[")) {
		ret = cgroup_glob(tree, text, add_cgroup, a);
		if (!ret)
			return err_set(err, -ENOENT, "--cgroup: no cgroup matches '%s'", text);
		return ret < 0 ? err_set(err, ret, "--cgroup: %s", strerror(-ret)) : 0;
	}
	ret = cgroup_id_of_path(tree, text, &id, err);
	if (ret) {
		err_prefix(err, "--cgroup");
		return ret;
	}
	return add_cgroup(id, text, a);
}

static int select_cgroups(struct sampling *s, struct err *err)
{
	for (size_t i = 0; i < s->n_cgroups; i++) {
		char *save, *list = s->cgroups[i];
		struct cgroup_arg a = { .s = s, .out = *list == '!' };
		size_t before = s->n_selected;

		for (char *p = strtok_r(list + a.out, ",", &save); p;
		     p = strtok_r(NULL, ",", &save)) {
			int ret = select_cgroup(&a, p, err);

			if (ret)
				return usage_error(s, ret);
		}
		if (s->n_selected == before)
			return usage_error(s, err_set(err, -EINVAL, "--cgroup: no cgroup named"));
	}
	s->opts.sel.cgroups = s->selected;
	s->opts.sel.n_cgroups = s->n_selected;
	return 0;
}

static void announce(const struct sampling *s)
{
	const struct sampler_memory *m = sampler_memory_used(s->sampler);

	log_info("%s%s on %zu CPUs, %.1f MiB of kernel memory for %u groups in %u shard%s, %s",
		 s->info.simulated ? "SIMULATED " : "", s->event_text, sampler_n_cpus(s->sampler),
		 m->total / 1048576.0, s->opts.max_groups ?: SAMPLER_MAX_GROUPS, m->shards,
		 m->shards == 1 ? "" : "s",
		 sampler_reads_direct(s->sampler) ? "registers read in place"
						  : "registers read by copy");
}

int sampling_open(struct sampling *s, struct err *err)
{
	struct selection *sel = &s->opts.sel;
	int ret;

	if (sel->max_lat && sel->min_lat > sel->max_lat)
		return usage_error(s, err_set(err, -EINVAL, "--min-lat %u is above --max-lat %u",
					      sel->min_lat, sel->max_lat));
	if (strcmp(s->event.pmu, "ibs_op"))
		return usage_error(s, err_set(err, -EINVAL, "-e %s: only ibs_op is sampled here",
					      s->event.pmu));
	cpu_info_read(&s->cpu);
	ret = s->source == SOURCE_SIM ? prepare_sim(s, err) : prepare_ibs(s, err);
	if (ret)
		return ret;
	event_print(&s->event, s->event_text, sizeof(s->event_text));
	s->opts.event = s->event_text;
	s->opts.by = labels_by(s->labels);
	s->info.event = s->event_text;
	s->info.period = s->opts.attr.freq ? 0 : s->opts.attr.sample_period;
	s->info.metric = s->opts.metric;
	ret = choose_cpus(s, err);
	ret = ret ?: cgroup_tree_open("", &s->tree, err);
	if (!ret && (s->opts.by & IBS_BY_CGROUP) && !cgroup_tree_per_cgroup(s->tree))
		log_warn("no cgroup v2 hierarchy is mounted: all samples belong to '/'");
	ret = ret ?: select_cgroups(s, err);
	ret = ret ?: sampler_open(&s->opts, &s->sampler, err);
	if (!ret)
		announce(s);
	return ret;
}

void sampling_warn(struct sampling *s, const struct snapshot *interval)
{
	if (interval->pmu.throttled && !s->warned_throttled) {
		s->warned_throttled = true;
		log_warn("the kernel throttled sampling: a longer period (-c), or a higher "
			 "kernel.perf_event_max_sample_rate, loses less");
	}
	if (interval->pmu.running_ns < interval->pmu.enabled_ns && !s->warned_shared) {
		s->warned_shared = true;
		log_warn("the event was on the PMU %.1f%% of the time: another user of ibs_op "
			 "shares "
			 "it (perf, another ibscope); what it missed is not known",
			 100.0 * interval->pmu.running_ns / interval->pmu.enabled_ns);
	}
	if (interval->n_groups && interval->groups[0].other && !s->warned_other) {
		s->warned_other = true;
		log_warn("not every group has room of its own (--max-groups): the rest is added up "
			 "as "
			 "'other'");
	}
}

void sampling_close(struct sampling *s)
{
	sampler_close(s->sampler);
	cgroup_tree_close(s->tree);
	filter_free(&s->filter);
	free(s->filter_text);
	free(s->selected);
	free(s->cpu_array);
	for (size_t i = 0; i < s->n_cgroups; i++)
		free(s->cgroups[i]);
	free(s->cgroups);
	for (size_t i = 0; i < IBS_COMMS_MAX; i++)
		free(s->comms[i]);
	memset(s, 0, sizeof(*s));
}
