// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session.h"
#include "session_private.h"

#include "base/exit_status.h"
#include "cgroup/container.h"
#include "machine/pmu.h"
#include "select/select_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The processor that the simulation models: Zen 4, no errata. */
#define SIM_CAPS 0xbffu

/* Shortest software clock period that is worth a timer interrupt. */
#define SIM_MIN_PERIOD_NS 10000
#define SIM_MIN_FAULTS	  16
#define SIM_FAULTS_PERIOD 16 /* a starting process has some hundred */

void sampling_init(struct sampling *s)
{
	memset(s, 0, sizeof(*s));
	event_parse(EVENT_DEFAULT, &s->event, NULL);
	command_signals_get(&s->signals);
	s->labels = LABELS_DEFAULT;
	s->metric = IBS_METRIC_N;
	s->stages = PLAN_DEFAULT;
	s->opts.sim_seed = 1;
	s->opts.tlb = true;
}

void sampling_use_options(struct sampling *s)
{
	const struct selection old = s->opts.sel;
	struct selection *sel = &s->opts.sel;

	*sel = s->select.sel;
	sel->cgroups = old.cgroups;
	sel->n_cgroups = old.n_cgroups;
	sel->live = old.live;
	sel->filter = s->select.filter.n_parts ? &s->select.filter.prog : NULL;
	if (!s->n_command_pids)
		return;
	sel->processes = (struct selected_pids){ .pids = s->command_pids, .n = s->n_command_pids };
	sel->follow = true;
}

/* Check the options that depend on the event, and set their defaults. */
static int check_event(struct sampling *s, struct err *err)
{
	const bool fetch = sampling_of_fetch(s);
	const struct selection *sel = &s->select.sel;

	if (s->metric == IBS_METRIC_N) {
		s->opts.metric = fetch ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
	} else {
		s->opts.metric = s->metric;
		if (ibs_metric_of_fetch(s->metric) != fetch && s->n_events == 2)
			s->opts.metric = fetch ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
		else if (ibs_metric_of_fetch(s->metric) != fetch)
			return err_set(err, -EINVAL,
				       "--metric %s: samples of %s do not have that; use %s",
				       metric_name(s->metric), s->event.pmu,
				       fetch ? "fetch_lat or itlb_refill_lat"
					     : "-e ibs_fetch//, or another metric");
	}
	if (s->n_periods > (s->n_events ?: 1))
		return err_set(err, -EINVAL, "-c: %u periods, but %u event%s", s->n_periods,
			       s->n_events ?: 1, s->n_events == 2 ? "s" : "");
	/* with two events each groups by the keys that it has, and both share the memory limit */
	if (s->labels == LABELS_SERVED)
		s->labels = labels_of_event(s->labels, fetch);
	if (s->n_events == 2) {
		s->labels &= fetch ? ~LABELS_OP : ~LABELS_FETCH;
		s->opts.max_memory_bytes /= 2;
	}
	s->opts.tlb = !fetch;
	s->select.filter_options.fetch = fetch;
	if (fetch && (sel->src_mask || sel->op_mask))
		return err_set(
			err, -EINVAL,
			"--%s: samples of ibs_fetch do not have that; use --filter 'fetch == "
			"..'",
			sel->src_mask ? "src" : "op");
	return 0;
}

int sampling_filter(struct sampling *s, struct err *err)
{
	int ret = check_event(s, err) ?: select_options_check(&s->select, err);

	if (!ret)
		sampling_use_options(s);
	return ret;
}

int sampling_usage_error(struct sampling *s, int ret)
{
	s->usage = ret == -EINVAL || ret == -ERANGE || ret == -E2BIG;
	return ret;
}

/* Prepare the event for the IBS driver. */
static int prepare_ibs(struct sampling *s, struct err *err)
{
	struct event_spec event;
	struct pmu *pmu;
	int ret = pmu_open("", s->event.pmu, &s->cpu, &pmu, err);

	if (ret) {
		size_t n = strlen(err->text);

		snprintf(err->text + n, sizeof(err->text) - n,
			 "; see `ibscope doctor`; --source sim shows SIMULATED samples");
		return ret;
	}
	sampling_plan(s, pmu, &event);
	ret = event_attr(&event, pmu, &s->cpu, &s->rate, &s->opts.attr, err);
	pmu_close(pmu);
	if (ret)
		return sampling_usage_error(s, ret);
	if (s->opts.stacks)
		s->opts.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	s->opts.source = SAMPLER_IBS;
	s->opts.ibs = (struct ibs_cpu){ .caps = s->cpu.caps, .quirks = s->cpu.quirks };
	s->info.source = "ibs";
	return 0;
}

/* The model takes one nanosecond per op. */
static int prepare_sim(struct sampling *s, struct err *err)
{
	const struct event_rate *rate;
	struct event_spec event;
	struct perf_event_attr *attr = &s->opts.attr;
	const unsigned int min = s->sim_faults ? SIM_MIN_FAULTS : SIM_MIN_PERIOD_NS;

	for (unsigned int i = 0; i < s->event.n_terms; i++)
		if (strcmp(s->event.terms[i].name, sampling_of_fetch(s) ? "rand_en" : "cnt_ctl"))
			return sampling_usage_error(
				s, err_set(err, -EINVAL,
					   "the simulation has no '%s': leave the term out, "
					   "or sample with --source ibs",
					   s->event.terms[i].name));
	if (s->event.user || s->event.kernel)
		return sampling_usage_error(s, err_set(err, -EINVAL,
						       "the simulation has no modifiers: leave "
						       "them out, or sample with --source ibs"));
	if (s->stages_given && s->stages)
		return sampling_usage_error(s, err_set(err, -EINVAL,
						       "--plan: the simulation has only the "
						       "program: use --plan off"));
	sampling_plan(s, NULL, &event);
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = s->sim_faults ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (event_rate_choose(&s->event, &s->rate, &rate, err))
		return sampling_usage_error(s, -EINVAL);
	if (rate->has_freq) {
		attr->freq = 1;
		attr->sample_freq = rate->freq;
	} else {
		attr->sample_period = rate->has_period ? rate->period
				      : s->sim_faults  ? SIM_FAULTS_PERIOD
						       : EVENT_DEFAULT_PERIOD;
	}
	if (attr->freq
		    ? attr->sample_freq == 0 || attr->sample_freq > 1000000000 / SIM_MIN_PERIOD_NS
		    : attr->sample_period < min || attr->sample_period > 1ULL << 40)
		return sampling_usage_error(
			s, err_set(err, -ERANGE,
				   "invalid period or frequency: the simulation needs %u to 2^40 "
				   "(%s), or 1 to %d Hz",
				   min, s->sim_faults ? "page faults" : "ns",
				   1000000000 / SIM_MIN_PERIOD_NS));
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

	/* offline CPUs are sampled when they come online */
	if (!ret && !s->has_cpus)
		ret = cpulist_read("", "possible", &s->cpus, err);
	if (ret)
		return ret;
	cpu = s->has_cpus ? cpulist_outside(&s->cpus, &online) : -1;
	if (cpu >= 0) {
		char list[256];

		cpulist_print(&online, list, sizeof(list));
		return sampling_usage_error(s, err_set(err, -EINVAL,
						       "-C: cpu %d is not online; online CPUs: %s",
						       cpu, list));
	}
	free(s->cpu_array);
	s->cpu_array = xcalloc(cpulist_count(&s->cpus), sizeof(*s->cpu_array));
	cpulist_for_each (cpu, &s->cpus)
		s->cpu_array[n++] = cpu;
	s->opts.cpus = s->cpu_array;
	s->opts.n_cpus = n;
	return 0;
}

static void announce(const struct sampling *s)
{
	const struct sampler_memory *m = sampler_memory_used(s->sampler);
	char of[64] = "";

	if (s->opts.output != SAMPLER_SERIES) {
		log_info("%s%s on %zu CPUs, %.1f MiB of kernel memory with a ring of %u KiB for "
			 "each CPU, %s",
			 s->info.simulated ? "SIMULATED " : "", s->event_text,
			 sampler_n_cpus(s->sampler), m->total / 1048576.0, m->ring_bytes >> 10,
			 sampler_reads_direct(s->sampler) ? "registers read in place"
							  : "registers read by copy");
		return;
	}
	if (m->shards < m->complexes)
		snprintf(of, sizeof(of), " (of %u core complexes)", m->complexes);
	log_info("%s%s on %zu CPUs, %.1f MiB of kernel memory for %u groups in %u shard%s%s, %s",
		 s->info.simulated ? "SIMULATED " : "", s->event_text, sampler_n_cpus(s->sampler),
		 m->total / 1048576.0, config_max_slots(s->opts.max_groups) - 1, m->shards,
		 m->shards == 1 ? "" : "s", of,
		 sampler_reads_direct(s->sampler) ? "registers read in place"
						  : "registers read by copy");
}

int sampling_prepare(struct sampling *s, struct err *err)
{
	int ret;

	ret = labels_counted(s->labels, sampling_of_fetch(s), err);
	if (ret)
		return sampling_usage_error(s, ret);
	cpu_info_read(&s->cpu);
	ret = s->source == SOURCE_SIM ? prepare_sim(s, err) : prepare_ibs(s, err);
	if (ret)
		return ret;
	s->opts.event = s->event_text;
	s->opts.by = labels_by(s->labels);
	s->opts.slabs |= !!(s->opts.by & IBS_BY_SLAB);
	s->info.event = s->event_text;
	s->info.period = s->opts.attr.freq ? 0 : s->opts.attr.sample_period;
	s->opts.count_ops |= s->opts.attr.freq;
	s->opts.count_ops &= s->opts.filter != EVENT_FILTER_HARDWARE || s->opts.pins;
	s->info.metric = s->opts.metric;
	return choose_cpus(s, err);
}

int sampling_open(struct sampling *s, struct err *err)
{
	const char *notice;
	int ret = sampling_prepare(s, err);

	if (ret)
		return ret;
	notice = s->info.simulated ? NULL : event_notice(&s->event, &s->cpu);
	if (notice)
		log_info("%s", notice);
	if (s->opts.pins && s->opts.filter == EVENT_FILTER_HARDWARE && !s->plan.tags)
		log_warn("%s: estimates exclude ops that the hardware drops, so estimated ops are "
			 "too low",
			 s->event_text);
	ret = sampling_prepare_command(s, err);
	ret = ret ?: sampling_open_tree(s, err);
	if (!ret)
		sampling_select_command(s);
	ret = ret ?: sampling_select_cgroups(s, err);
	if (ret)
		return ret;
	s->opts.cgroup = sampling_plan_cgroup(s);
	ret = sampler_open(&s->opts, &s->sampler, err);
	if (s->opts.cgroup)
		close(s->opts.cgroup);
	s->unbindable = !ret && s->bound && !sampler_has_cgroup(s->sampler);
	if (!ret)
		announce(s);
	return ret;
}

void sampling_warn(struct sampling *s, const struct snapshot *interval)
{
	if (interval->pmu.throttled && !s->warned_throttled) {
		s->warned_throttled = true;
		log_warn("the kernel throttled sampling: use a longer period (-c) or a higher "
			 "kernel.perf_event_max_sample_rate");
	}
	if (interval->pmu.running_ns < interval->pmu.enabled_ns && !s->warned_shared) {
		s->warned_shared = true;
		log_warn(
			"the event was on the PMU %.1f%% of the time: another user of %s shares it "
			"(perf, another ibscope); the number of missed samples is unknown",
			100.0 * interval->pmu.running_ns / interval->pmu.enabled_ns, s->event.pmu);
	}
	if (interval->n_groups && interval->groups[0].other && !s->warned_other) {
		s->warned_other = true;
		log_warn("more groups than --max-groups: the rest is counted as 'other'");
	}
}

void sampling_moved(struct sampling *s)
{
	sampling_use_options(s);
	s->opts.event = s->event_text;
	s->info.event = s->event_text;
}

void sampling_release(struct sampling *s)
{
	sampler_close(s->sampler);
	command_close(s->command);
	cgroup_tree_close(s->tree);
	cgroup_select_close(s->cgroups);
	container_names_close(s->names);
	free(s->cpu_array);
	s->sampler = NULL;
	s->command = NULL;
	s->tree = NULL;
	s->cgroups = NULL;
	s->names = NULL;
	s->unbindable = false;
	s->opts.sel.cgroups = NULL;
	s->opts.sel.n_cgroups = 0;
	s->cpu_array = NULL;
}

void sampling_close(struct sampling *s)
{
	sampling_release(s);
	free(s->command_pids);
	select_options_free(&s->select);
	memset(s, 0, sizeof(*s));
}

#define SWAP(a, b)                     \
	do {                           \
		typeof(a) swap_ = (a); \
		(a) = (b);             \
		(b) = swap_;           \
	} while (0)

static void exchange(struct sampling *a, struct sampling *b, unsigned int what)
{
	struct select_options *sa = &a->select, *sb = &b->select;

	if (what & SAMPLING_LATENCY) {
		SWAP(sa->sel.min_lat, sb->sel.min_lat);
		SWAP(sa->sel.max_lat, sb->sel.max_lat);
	}
	if (what & SAMPLING_PROCESSES) {
		SWAP(sa->pids, sb->pids);
		SWAP(sa->sel.processes, sb->sel.processes);
	}
	if (what & SAMPLING_CGROUPS) {
		SWAP(sa->cgroups, sb->cgroups);
		SWAP(sa->n_cgroups, sb->n_cgroups);
		SWAP(sa->containers, sb->containers);
		SWAP(sa->n_containers, sb->n_containers);
		SWAP(a->plan, b->plan);
	}
	sampling_use_options(a);
	sampling_use_options(b);
	if (what & SAMPLING_PERIOD) {
		SWAP(a->rate, b->rate);
		SWAP(a->opts.attr.sample_period, b->opts.attr.sample_period);
		SWAP(a->info.period, b->info.period);
	}
}

/* Apply the options to the sampler. Changes that can fail for more reasons come first. */
static int apply(struct sampling *s, unsigned int what, struct err *err)
{
	const struct selection *sel = &s->opts.sel;
	int ret = 0;

	if (what & SAMPLING_CGROUPS)
		ret = sampling_reselect_cgroups(s, err);
	if (!ret && what & SAMPLING_PROCESSES)
		ret = sampler_set_processes(s->sampler, &sel->processes, err);
	if (!ret && what & SAMPLING_LATENCY)
		ret = sampler_set_latency(s->sampler, sel->min_lat, sel->max_lat, err);
	if (!ret && what & SAMPLING_PERIOD)
		ret = sampler_set_period(s->sampler, s->info.period, err);
	return ret;
}

unsigned int sampling_change_needs(unsigned int what)
{
	unsigned int live = 0;

	if (what & SAMPLING_LATENCY)
		live |= SAMPLER_LIVE_LATENCY;
	if (what & SAMPLING_PROCESSES)
		live |= SAMPLER_LIVE_PROCESSES;
	if (what & SAMPLING_CGROUPS)
		live |= SAMPLER_LIVE_CGROUPS;
	return live;
}

static bool is_ready(const struct sampling *s, const struct sampling *fresh, unsigned int what)
{
	if (what & SAMPLING_PERIOD && (!s->info.period || !fresh->info.period))
		return false;
	/* with other terms the event must be reopened */
	return !(sampling_change_needs(what) & ~s->opts.sel.live) &&
	       !strcmp(s->event_text, fresh->event_text);
}

int sampling_change(struct sampling *s, struct sampling *fresh, unsigned int what, struct err *err)
{
	struct err again = { "" };
	int ret;

	if (!is_ready(s, fresh, what))
		return 1;
	exchange(s, fresh, what);
	ret = apply(s, what, err);
	if (!ret)
		return 0;
	exchange(s, fresh, what);
	if (ret > 0)
		return ret; /* the first change failed: nothing was changed */
	if (apply(s, what, &again))
		log_error("cannot restore the previous selection: %s", again.text);
	s->usage = false;
	return sampling_usage_error(fresh, ret);
}

int sampling_open_both(struct sampling *s, struct sampling *second, struct err *err)
{
	int ret = sampling_open(s, err);

	if (ret || !second)
		return ret;
	second->command = s->command; /* to be selected */
	second->ranks = s->ranks;
	second->n_ranks = s->n_ranks;
	ret = sampling_open(second, err);
	s->usage |= second->usage;
	return ret;
}

void sampling_close_both(struct sampling *s, struct sampling *second)
{
	if (second) {
		second->command = NULL;
		sampling_close(second);
	}
	sampling_close(s);
}
