// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options that select, one function and one row each. */
#include "sampling_private.h"

#include "num.h"

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

static int add_text(char ***list, size_t *n, const char *arg, struct err *err)
{
	char **more = realloc(*list, (*n + 1) * sizeof(*more));

	if (!more)
		return err_set(err, -ENOMEM, "out of memory");
	*list = more;
	more[*n] = strdup(arg);
	if (!more[*n])
		return err_set(err, -ENOMEM, "out of memory");
	++*n;
	return 0;
}

static int set_cgroup(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return add_text(&s->cgroups, &s->n_cgroups, arg, err);
}

static int set_container(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return add_text(&s->containers, &s->n_containers, arg, err);
}

static int set_hierarchy(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	free(s->hierarchy);
	s->hierarchy = strdup(arg);
	return s->hierarchy ? 0 : err_set(err, -ENOMEM, "out of memory");
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

	return filter_options_add(&s->filter_options, FILTER_OPTION_EXPR, arg, err);
}

static int set_tlb(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return filter_options_add(&s->filter_options, FILTER_OPTION_TLB, arg, err);
}

static int set_page_size(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return filter_options_add(&s->filter_options, FILTER_OPTION_PAGE_SIZE, arg, err);
}

static int set_remote_node(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return filter_options_add(&s->filter_options, FILTER_OPTION_RMT_NODE, arg, err);
}

static int set_addr(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return filter_options_add(&s->filter_options, FILTER_OPTION_ADDR, arg, err);
}

static int set_ip(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return filter_options_add(&s->filter_options, FILTER_OPTION_IP, arg, err);
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

int sampling_parse_latency(const char *option, const char *arg, __u32 *out, struct err *err)
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

	return sampling_parse_latency("--min-lat", arg, &s->opts.sel.min_lat, err);
}

static int set_max_lat(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return sampling_parse_latency("--max-lat", arg, &s->opts.sel.max_lat, err);
}

static int set_min_tlb_lat(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return sampling_parse_latency("--min-tlb-lat", arg, &s->filter_options.min_tlb_lat, err);
}

static int set_max_tlb_lat(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	return sampling_parse_latency("--max-tlb-lat", arg, &s->filter_options.max_tlb_lat, err);
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

static int set_sim_event(void *ctx, const char *arg, struct err *err)
{
	struct sampling *s = ctx;

	s->sim_faults = !strcmp(arg, "faults");
	if (!s->sim_faults && strcmp(arg, "clock"))
		return err_set(err, -EINVAL, "--sim-event: '%s' is neither clock nor faults", arg);
	return 0;
}

/* clang-format off: a row is a row */
const struct option_row sampling_options[] = {
	{ "event", 'e', "EVENT", "what to sample, in perf's syntax; default " EVENT_DEFAULT,
	  set_event },
	{ "period", 'c', "N", "ops (or cycles) between samples, a multiple of 16", set_period },
	{ "freq", 'F', "HZ", "samples a second and CPU, instead of -c", set_freq },
	{ "cpu", 'C', "LIST", "only these CPUs, as in 0-3,8", set_cpus },
	{ "all-cpus", 'a', NULL, "all online CPUs (default), and everything that runs there",
	  set_all },
	{ "pid", 'p', "PID,..", "only these processes", set_pid },
	{ "tid", 't', "TID,..", "only these threads", set_tid },
	{ "follow", 0, NULL, "and the children of those of -p and -t",
	  OPTION_FLAG(struct sampling, opts.sel.follow) },
	{ "comm", 0, "NAME,..", "only threads of these names", set_comm },
	{ "cgroup", 0, "PATH[:MIN],..",
	  "only these cgroups (patterns too) and those below;\n"
	  "                            MIN: a least latency of their own",
	  set_cgroup },
	{ "container", 0, "NAME[:MIN],..",
	  "only these containers: name, first digits of the id, pattern,\n"
	  "                            NAMESPACE/POD or NAMESPACE/POD/CONTAINER",
	  set_container },
	{ "cgroup-hierarchy", 0, "NAME",
	  "where cgroups are: v2, a controller of v1 as memory, or auto (default)", set_hierarchy },
	{ "src", 0, "NAME,..", "only data from these sources", set_src },
	{ "op", 0, "NAME,..", "only these kinds of op", set_op },
	{ "min-lat", 0, "CYCLES", "only with at least this latency", set_min_lat },
	{ "max-lat", 0, "CYCLES", "only with at most this latency", set_max_lat },
	{ "user", 0, NULL, "only ops of user space",
	  OPTION_FLAG(struct sampling, filter_options.user) },
	{ "kernel", 0, NULL, "only ops of the kernel",
	  OPTION_FLAG(struct sampling, filter_options.kernel) },
	{ "tlb", 0, "LEVEL,..", "only translations from these: l1, l2 (dTLB), walk", set_tlb },
	{ "min-tlb-lat", 0, "CYCLES", "only with at least this latency of the dTLB's refill",
	  set_min_tlb_lat },
	{ "max-tlb-lat", 0, "CYCLES", "only with at most this latency of the dTLB's refill",
	  set_max_tlb_lat },
	{ "page-size", 0, "SIZE,..", "only data in pages of these sizes: 4k, 2m, 1g",
	  set_page_size },
	{ "remote-node", 0, "yes|no", "only loads from memory of another (or the own) node",
	  set_remote_node },
	{ "addr", 0, "LO-HI,..",
	  "only data at these addresses: hexadecimal, HI excluded as in\n"
	  "                            /proc/PID/maps; also LO+LENGTH, or one alone",
	  set_addr },
	{ "ip", 0, "LO-HI,..", "only ops at these addresses", set_ip },
	{ "filter", 0, "EXPR", "only where this holds, as in 'mem_lvl == ram && weight1 > 300'",
	  set_filter },
	{ "explain", 0, NULL, "say what --filter and the like test in the kernel, and end",
	  OPTION_FLAG(struct sampling, explain) },
	{ "metric", 0, "NAME",
	  "latency to histogram: dc_miss_lat (default), tlb_refill_lat,\n"
	  "                            tag_to_ret, comp_to_ret",
	  set_metric },
	{ "by", 0, "LABEL,..",
	  "keep apart by cgroup, container, pod, pid, tid, comm, cpu,\n"
	  "                            ccx, node, mode (user, kernel), src, op; default "
	  "cgroup,src,op",
	  set_by },
	{ "source", 0, "auto|ibs|sim", "sim: SIMULATED samples, for machines without IBS",
	  set_source },
	{ "seed", 0, "N", "of the simulation's model; default 1", set_seed },
	{ "sim-event", 0, "clock|faults",
	  "what the simulation counts: ns (default), or page faults,\n"
	  "                            whose rate follows what runs",
	  set_sim_event },
	{ "max-groups", 0, "N", "cgroups (or what --by says) kept apart; default 1024",
	  set_max_groups },
	{ "max-memory", 0, "MIB", "bound of the kernel memory; default 64", set_max_memory },
	{ "verbose", 'v', NULL, "more messages, the verifier's too", set_verbose },
};
/* clang-format on */
const size_t sampling_n_options = sizeof(sampling_options) / sizeof(sampling_options[0]);
