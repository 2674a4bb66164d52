// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "record_info.h"
#include "base/clock.h"

#include "machine/topology.h"

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

static const char *src_name_at(unsigned int i)
{
	return src_name(i);
}

static const char *op_name_at(unsigned int i)
{
	return op_kind_name(i);
}

/* The selection as options. */
static void selection_text(char *out, size_t size, const struct sampling *s)
{
	const struct selection *sel = &s->opts.sel;
	struct text t = { out, size };

	*out = 0;
	add_pids(&t, "-p", &sel->processes);
	add_pids(&t, "-t", &sel->threads);
	if (sel->follow)
		add(&t, " --follow");
	for (size_t i = 0; i < sel->n_comms; i++)
		add(&t, "%s%s", i ? "," : sel->comms_but ? " --comm !" : " --comm ", sel->comms[i]);
	for (size_t i = 0; i < s->select.n_cgroups; i++) {
		add(&t, " --cgroup");
		add_word(&t, s->select.cgroups[i]);
	}
	for (size_t i = 0; i < s->select.n_containers; i++) {
		add(&t, " --container");
		add_word(&t, s->select.containers[i]);
	}
	if (s->command && command_cgroup_id(s->command) && !s->select.n_cgroups &&
	    !s->select.n_containers)
		add(&t, " -- %s", s->argv[0]);
	add_names(&t, "--src", sel->src_mask, src_name_at);
	add_names(&t, "--op", sel->op_mask, op_name_at);
	if (sel->min_lat)
		add(&t, " --min-lat %u", sel->min_lat);
	if (sel->max_lat)
		add(&t, " --max-lat %u", sel->max_lat);
	if ((sel->min_lat || sel->max_lat) && s->opts.metric)
		add(&t, " --metric %s", metric_name(s->opts.metric));
	/* includes --user, --tlb and so on */
	if (s->select.filter.text) {
		add(&t, " --filter");
		add_word(&t, s->select.filter.text);
	}
	if (*out == ' ')
		memmove(out, out + 1, strlen(out));
}

static void event_info(struct trace_pmu *pmu, const struct sampling *s)
{
	const struct perf_event_attr *attr = &s->opts.attr;

	snprintf(pmu->name, sizeof(pmu->name), "%.127s", s->event_text);
	pmu->op = !sampling_of_fetch(s);
	pmu->filtered = s->opts.filter == EVENT_FILTER_HARDWARE;
	pmu->freq = attr->freq;
	pmu->period = attr->freq ? attr->sample_freq : attr->sample_period;
	pmu->physical = true;
	pmu->stacks = s->opts.stacks;
}

void record_info(struct trace_info *info, struct trace_pmu *pmu, const struct sampling *s,
		 const struct sampling *second)
{
	struct utsname uts;

	info->format = "ibscope 1";
	info->source = s->info.source;
	info->simulated = s->info.simulated;
	if (!uname(&uts)) {
		snprintf(info->host, sizeof(info->host), "%s", uts.nodename);
		snprintf(info->release, sizeof(info->release), "%s", uts.release);
	}
	/* the simulation models its own processor */
	if (s->info.simulated) {
		cpu_info_set(&info->cpu, "AuthenticAMD", 0x19, 0x11, s->opts.ibs.caps);
		snprintf(info->cpu.name, sizeof(info->cpu.name), "SIMULATED Zen 4");
	} else {
		info->cpu = s->cpu;
	}
	info->cpu.caps = s->opts.ibs.caps;
	info->cpu.quirks = s->opts.ibs.quirks;
	info->has_cpu = true;
	info->n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	event_info(pmu, s);
	if (second)
		event_info(pmu + 1, second);
	info->pmu = pmu;
	info->n_pmus = second ? 2 : 1;
	selection_text(info->filter, sizeof(info->filter), s);
	/* records of ibs_fetch always have all registers */
	info->full_registers =
		s->opts.output == SAMPLER_RECORDS_RAW || (sampling_of_fetch(s) && !second);
	info->realtime_ns = clock_ns(CLOCK_REALTIME);
	info->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
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
