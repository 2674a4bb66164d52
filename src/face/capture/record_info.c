// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record_info.h"
#include "base/clock.h"

#include "machine/machine.h"

#include <stdarg.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* A text buffer; text that does not fit is dropped. */
struct text {
	char *at;
	size_t left; /* with the final zero */
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->left)
		n = t->left - 1;
	t->at += n;
	t->left -= n;
}

/* Quoted if a shell would interpret it. */
static void add_word(struct text *t, const char *word)
{
	if (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_-+=./:,@%^")]) {
		add(t, " %s", word);
		return;
	}
	add(t, " '");
	for (; *word; word++)
		if (*word == '\'')
			add(t, "'\\''");
		else
			add(t, "%c", *word);
	add(t, "'");
}

void record_command(struct trace_info *info, int argc, char **argv)
{
	struct text t = { info->command, sizeof(info->command) };

	add(&t, "ibscope");
	for (int i = 0; i < argc; i++)
		add_word(&t, argv[i]);
}

static void add_pids(struct text *t, const char *option, const struct selected_pids *p)
{
	if (p->n)
		add(t, " %s %s", option, p->but ? "!" : "");
	for (size_t i = 0; i < p->n; i++)
		add(t, i ? ",%u" : "%u", p->pids[i]);
}

static void add_names(struct text *t, const char *option, __u32 bits,
		      const char *(*name)(unsigned int))
{
	const char *sep = "";

	if (!bits)
		return;
	add(t, " %s ", option);
	for (unsigned int i = 0; bits; i++, bits >>= 1) {
		if (!(bits & 1))
			continue;
		add(t, "%s%s", sep, name(i));
		sep = ",";
	}
}

/* The selection as options. */
static void selection_text(char *out, size_t size, const struct session *s)
{
	const struct select_options *o = &session_options(s)->select;
	const struct session_event *e = session_event(s, 0);
	const struct selection *sel = &e->opts.sel;
	const char *filter = o->filter[event_of_fetch(e->spec)].text;
	struct text t = { out, size };

	*out = 0;
	add_pids(&t, "-p", &sel->processes);
	add_pids(&t, "-t", &sel->threads);
	if (sel->follow)
		add(&t, " --follow");
	for (size_t i = 0; i < sel->n_comms; i++)
		add(&t, "%s%s", i ? "," : sel->comms_but ? " --comm !" : " --comm ", sel->comms[i]);
	for (size_t i = 0; i < o->n_cgroups; i++) {
		add(&t, " --cgroup");
		add_word(&t, o->cgroups[i]);
	}
	for (size_t i = 0; i < o->n_containers; i++) {
		add(&t, " --container");
		add_word(&t, o->containers[i]);
	}
	if (session_command(s) && command_cgroup_id(session_command(s)) && !o->n_cgroups &&
	    !o->n_containers)
		add(&t, " -- %s", session_options(s)->argv[0]);
	add_names(&t, "--src", sel->src_mask, src_name);
	add_names(&t, "--op", sel->op_mask, op_kind_name);
	if (sel->min_lat)
		add(&t, " --min-lat %u", sel->min_lat);
	if (sel->max_lat)
		add(&t, " --max-lat %u", sel->max_lat);
	if ((sel->min_lat || sel->max_lat) && e->opts.metric)
		add(&t, " --metric %s", metric_name(e->opts.metric));
	/* includes --user, --tlb and so on */
	if (filter) {
		add(&t, " --filter");
		add_word(&t, filter);
	}
	if (*out == ' ')
		memmove(out, out + 1, strlen(out));
}

static void event_info(struct trace_pmu *pmu, const struct session_event *e)
{
	const struct perf_event_attr *attr = &e->opts.attr;

	snprintf(pmu->name, sizeof(pmu->name), "%.127s", e->text);
	pmu->op = !event_of_fetch(e->spec);
	pmu->filtered = e->opts.filter == EVENT_FILTER_HARDWARE;
	pmu->freq = attr->freq;
	pmu->period = attr->freq ? attr->sample_freq : attr->sample_period;
	pmu->physical = true;
	pmu->stacks = e->opts.stacks;
	pmu->copy_bytes = e->opts.copy_bytes;
}

void record_info(struct trace_info *info, struct trace_pmu *pmu, const struct session *s,
		 unsigned int n_events)
{
	const struct session_event *first = session_event(s, 0);
	struct utsname uts;

	info->format = "ibscope 1";
	info->source = first->info.source;
	info->simulated = first->info.simulated;
	if (!uname(&uts)) {
		snprintf(info->host, sizeof(info->host), "%s", uts.nodename);
		snprintf(info->release, sizeof(info->release), "%s", uts.release);
	}
	/* the simulation models its own processor */
	if (first->info.simulated) {
		cpu_info_set(&info->cpu, "AuthenticAMD", 0x19, 0x11, first->opts.ibs.caps);
		snprintf(info->cpu.name, sizeof(info->cpu.name), "SIMULATED Zen 4");
	} else {
		info->cpu = *session_cpu(s);
	}
	info->cpu.caps = first->opts.ibs.caps;
	info->cpu.quirks = first->opts.ibs.quirks;
	info->has_cpu = true;
	info->n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (unsigned int i = 0; i < n_events; i++)
		event_info(pmu + i, session_event(s, i));
	info->pmu = pmu;
	info->n_pmus = n_events;
	selection_text(info->filter, sizeof(info->filter), s);
	/* records of ibs_fetch always have all registers */
	info->full_registers = first->opts.output == SAMPLER_RECORDS_RAW ||
			       (event_of_fetch(first->spec) && n_events == 1);
	info->realtime_ns = clock_ns(CLOCK_REALTIME);
	info->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
}

void record_strata(struct trace_info *info, struct trace_pmu pmu[STRATUM_N],
		   const struct session *s)
{
	struct trace_pmu *miss = &pmu[STRATUM_MISS];

	if (!session_strata_reach(s))
		return;
	pmu[STRATUM_FULL].reach = session_strata_reach(s);
	*miss = pmu[STRATUM_FULL];
	snprintf(miss->name, sizeof(miss->name), "%.127s", session_event(s, 0)->miss_text);
	miss->filtered = true;
	miss->period = 0; /* each slice has its own */
	info->n_pmus = STRATUM_N;
}

void record_topology(struct trace_info *info, struct trace_topology *topology,
		     struct memory_range *memory)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct topology *t;

	topology->n = cpus < TRACE_CPUS ? cpus : TRACE_CPUS;
	t = topology_open("", topology->n);
	for (unsigned int cpu = 0; cpu < topology->n; cpu++) {
		topology->ccx[cpu] = topology_complex(t, cpu);
		topology->node[cpu] = topology_node(t, cpu);
		topology->socket[cpu] = topology_socket(t, cpu);
	}
	topology->has_sockets = true;
	node_distances_read("", &topology->distance);
	topology_close(t);
	info->topology = topology;
	info->memory = memory;
	info->n_memory = memory_ranges_read("", memory);
}
