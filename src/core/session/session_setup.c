// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the options mean on this machine: the plan, attributes of the events, CPUs. */
#include "session_private.h"

#include "base/exit_status.h"
#include "base/screen.h"
#include "event/cpu.h"
#include "event/event.h"
#include "perf/perf.h"
#include "perf/sample_cost.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The processor that the simulation models: Zen 4, no errata. */
#define SIM_CAPS 0xbffu

#define SIM_CHEAP_NS	  100000 /* no measurement is needed: an interrupt takes less than half of it */
#define CLOCK_COST_S	  0.2
#define SIM_FAULTS_PERIOD 16 /* a starting process has some hundred */

/* --- the plan: which stages drop samples before the program --- */

/* See plan_context. */
static const char *no_weights(const struct sampling_opts *o, unsigned int n)
{
	if (o->sampler.output != SAMPLER_SERIES)
		return "a recording has no counts of tagged ops";
	return o->event[n].rate.has_freq ? "with -F the period varies" : NULL;
}

/* A recording has the counts of slices. */
static const char *no_slices(const struct sampling_opts *o, unsigned int n)
{
	return o->event[n].rate.has_freq ? "with -F the period varies" : NULL;
}

/* Why a collector cannot sample in strata. */
static const char *no_strata(const struct sampling_opts *o, unsigned int n)
{
	if (o->sampler.copies)
		return "--push and --flight keep samples, of which each must stand for as many ops";
	if (o->sampler.line_sets)
		return "--hot-lines counts samples, of which each must stand for as many ops";
	return o->event[n].rate.has_freq ? "with -F the period varies" : NULL;
}

/* Where samples may get lost on their way, tags tell how many. */
static bool checks_delivery(const struct sampling_opts *o, unsigned int n)
{
	const struct sampling_event *e = &o->event[n];
	const struct event_rate *rate;
	struct err ignored;

	/* a simulation loses none, and a collector's governor looks after its period */
	return o->source != SOURCE_SIM && !e->pins &&
	       !event_rate_choose(&e->spec, &e->rate, &rate, &ignored) && !rate->has_freq &&
	       rate->has_period && period_is_short(rate->period);
}

static struct plan_context context(const struct sampling_opts *o, unsigned int n,
				   const struct abilities *a)
{
	return (struct plan_context){
		.abilities = a,
		.stages = o->stages,
		.no_weights = no_weights(o, n),
		.no_slices = no_slices(o, n),
		.metric = o->event[n].metric,
		.cpus = o->has_cpus,
		.core_counters = o->core_counters || checks_delivery(o, n),
		.strata = o->strata != STRATA_OFF,
		.counters = o->strata_counters,
		.no_strata = o->strata_counters ? no_strata(o, n) : NULL,
		.command = o->argv && !sampling_measures_others(o),
		.event = &o->event[n].spec,
		.simulated = o->source == SOURCE_SIM,
	};
}

/* Core events to count in addition, by enum sampler_tag. */
struct tag_events {
	enum core_event of[SAMPLER_TAGS];
	bool lost; /* see sampler_opts.tags_are_lost */
};

static struct tag_events tag_events(const struct cpu_info *cpu, const struct event_spec *event)
{
	if (!event_of_fetch(event))
		return (struct tag_events){
			.of = { event_term(event, "cnt_ctl") ? CORE_EVENT_OPS : CORE_EVENT_CYCLES,
				CORE_EVENT_RETIRED, CORE_EVENT_VALID },
		};
	if (core_event_known(cpu, CORE_EVENT_FETCH_VALID))
		return (struct tag_events){
			.of = { CORE_EVENT_FETCH_TAGGED, CORE_EVENT_FETCH_KEPT,
				CORE_EVENT_FETCH_VALID },
		};
	return (struct tag_events){
		.of = { CORE_EVENT_FETCH_TAGGED, CORE_EVENT_FETCH_DISCARDED,
			CORE_EVENT_FETCH_LOST },
		.lost = true,
	};
}

/* Can the counters be opened? In a guest they may be missing. */
static bool can_count(const struct tag_events *tags)
{
	const int cpu = sched_getcpu();

	for (int i = SAMPLER_TAG_OPS; i <= SAMPLER_TAG_RETIRED; i++) {
		const struct perf_event_attr attr = core_event_attr(tags->of[i]);
		int fd = perf_open(&attr, cpu < 0 ? 0 : cpu);

		if (fd < 0)
			return false;
		close(fd);
	}
	return true;
}

/* Make the plan of an event, for the machine with this PMU (NULL: none), and the planned event. */
static void make_plan(struct setup *s, struct session_event *e, const struct pmu *pmu,
		      struct event_spec *event, struct event_spec *miss)
{
	const struct sampling_opts *o = &s->options;
	struct plan_context c;
	struct tag_events tags;
	struct abilities a;

	abilities_of(&s->cpu, pmu, &a);
	c = context(o, e - s->event, &a);
	tags = tag_events(&s->cpu, c.event);
	plan_make(&o->select, &c, &e->plan);
	if ((e->plan.chosen || e->plan.strata) && !c.simulated && !can_count(&tags)) {
		c.no_weights = c.no_slices = "the core counters of tagged ops cannot be opened";
		plan_make(&o->select, &c, &e->plan);
	}
	plan_event(&e->plan, &c, event);
	event_print(event, e->text, sizeof(e->text));
	plan_miss_event(&e->plan, &c, miss);
	event_print(miss, e->miss_text, sizeof(e->miss_text));
	e->opts.filter = event_filter(event);
	if (!e->plan.tags)
		return;
	for (int i = 0; i < SAMPLER_TAGS; i++)
		if (i != SAMPLER_TAG_VALID ||
		    (c.core_counters && core_event_known(&s->cpu, tags.of[i])))
			e->opts.tags[i] = core_event_attr(tags.of[i]);
	e->opts.tags[SAMPLER_TAG_OPS].disabled = 0; /* enabled with the other */
	e->opts.tags_are_lost = tags.lost;
}

/* --- the events --- */

/* Prepare the event for the IBS driver. */
static int prepare_ibs(struct setup *s, struct session_event *e, bool *usage, struct err *err)
{
	const struct event_rate *rate = &s->options.event[e - s->event].rate;
	struct cpu_info cpu = s->cpu;
	struct event_spec event, miss;
	struct pmu *pmu;
	int ret;

	/* without IBS, refuse what no processor takes, and report the missing PMU otherwise */
	cpu.caps |= cpu.ibs ? 0 : IBS_CAPS_OPCNTEXT;
	ret = event_rate_check(e->spec, &cpu, rate, err);
	if (ret)
		return usage_error(usage, ret);
	ret = pmu_open("", e->spec->pmu, &s->cpu, &pmu, err);
	if (ret) {
		size_t n = strlen(err->text);

		snprintf(err->text + n, sizeof(err->text) - n,
			 "; see `ibscope doctor`; --source sim shows SIMULATED samples");
		return ret;
	}
	make_plan(s, e, pmu, &event, &miss);
	ret = event_attr(&event, pmu, &s->cpu, rate, &e->opts.attr, err);
	if (!ret && e->plan.strata)
		ret = event_attr(&miss, pmu, &s->cpu, rate, &e->miss_attr, err);
	pmu_close(pmu);
	if (ret)
		return usage_error(usage, ret);
	if (e->opts.kernel_stacks)
		e->opts.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	e->opts.source = SAMPLER_IBS;
	e->opts.ibs = (struct ibs_cpu){ .caps = s->cpu.caps, .quirks = s->cpu.quirks };
	e->info.source = "ibs";
	return 0;
}

/* The simulation has neither terms, but for one, nor modifiers nor stages. */
static int check_sim(const struct sampling_opts *o, const struct event_spec *spec, struct err *err)
{
	for (unsigned int i = 0; i < spec->n_terms; i++)
		if (strcmp(spec->terms[i].name, event_of_fetch(spec) ? "rand_en" : "cnt_ctl"))
			return err_set(err, -EINVAL,
				       "the simulation has no '%s': leave the term out, "
				       "or sample with --source ibs",
				       spec->terms[i].name);
	if (spec->user || spec->kernel)
		return err_set(err, -EINVAL,
			       "the simulation has no modifiers: leave "
			       "them out, or sample with --source ibs");
	if (o->stages & ~PLAN_AUTO)
		return err_set(err, -EINVAL,
			       "--plan: the simulation has only the program: use --plan program");
	return 0;
}

static int check_sim_rate(const struct perf_event_attr *attr, bool faults, struct err *err)
{
	const unsigned int min = faults ? SIM_MIN_FAULTS : SIM_MIN_PERIOD_NS;
	const unsigned int max_freq = 1000000000 / SIM_MIN_PERIOD_NS;

	if (attr->freq && (!attr->sample_freq || attr->sample_freq > max_freq))
		return err_set(
			err, -ERANGE,
			EVENT_FREQ_OPTION
			": invalid frequency %llu: must be from 1 to %u Hz in the simulation",
			attr->sample_freq, max_freq);
	if (!attr->freq && (attr->sample_period < min || attr->sample_period > 1ULL << 40))
		return err_set(
			err, -ERANGE,
			EVENT_PERIOD_OPTION
			": invalid period %llu: must be from %u to 2^40 %s in the simulation",
			attr->sample_period, min, faults ? "page faults" : "ns");
	return 0;
}

/* The model takes one nanosecond per op. */
static int prepare_sim(struct setup *s, struct session_event *e, struct err *err)
{
	const struct sampling_opts *o = &s->options;
	const struct event_rate *rate;
	struct perf_event_attr *attr = &e->opts.attr;
	struct event_spec event, miss;
	int ret = check_sim(o, e->spec, err);

	if (ret)
		return ret;
	make_plan(s, e, NULL, &event, &miss);
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = o->sim_faults ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	ret = event_rate_choose(e->spec, &o->event[e - s->event].rate, &rate, err);
	if (ret)
		return ret;
	if (rate->has_freq) {
		attr->freq = 1;
		attr->sample_freq = rate->freq;
	} else {
		attr->sample_period = rate->has_period ? rate->period
				      : o->sim_faults  ? SIM_FAULTS_PERIOD
						       : EVENT_DEFAULT_PERIOD;
	}
	ret = check_sim_rate(attr, o->sim_faults, err);
	if (ret)
		return ret;
	e->miss_attr = *attr;
	e->opts.source = SAMPLER_SIM;
	e->opts.ibs = (struct ibs_cpu){ .caps = SIM_CAPS };
	e->info.source = "sim";
	e->info.simulated = true;
	return 0;
}

/* Ops are counted, so that samples can have weights, since another user may have the PMU of some CPUs. */
static bool weighs_shares(const struct session_event *e)
{
	return e->opts.source == SAMPLER_IBS && e->opts.output == SAMPLER_SERIES &&
	       !e->opts.line_sets && !e->plan.strata;
}

static int prepare_event(struct setup *s, unsigned int n, bool *usage, struct err *err)
{
	const struct sampling_opts *o = &s->options;
	struct session_event *e = &s->event[n];
	const bool fetch = event_of_fetch(&o->event[n].spec);
	int ret;

	e->spec = &o->event[n].spec;
	e->labels = o->event[n].labels;
	e->opts = o->sampler;
	e->opts.pins = o->event[n].pins;
	e->opts.metric = o->event[n].metric;
	e->opts.tlb = !fetch;
	e->opts.max_memory_bytes /= o->n_events; /* both share the limit */
	e->opts.sel = sampling_selection(o, n);
	ret = labels_counted(e->labels, fetch, err);
	if (ret)
		return usage_error(usage, ret);
	ret = o->source == SOURCE_SIM ? usage_error(usage, prepare_sim(s, e, err))
				      : prepare_ibs(s, e, usage, err);
	if (ret)
		return ret;
	if (o->strata == STRATA_ON && !e->plan.strata)
		return usage_error(usage, err_set(err, -EINVAL, "--strata: %s", e->plan.no_strata));
	if (e->plan.strata && o->strata_counters) {
		e->opts.miss_attr = e->miss_attr;
		e->opts.miss_event = e->miss_text;
		/* exporters merge accesses of near caches with others that no filter lets through */
		e->opts.reach = PLAN_L3_MISSES & ~(1U << IBS_SRC_NEAR_CACHE);
	} else if (e->plan.strata) /* both strata share the limit */
		e->opts.max_memory_bytes = (e->opts.max_memory_bytes ?: SAMPLER_MAX_MEMORY) / 2;
	e->opts.exposed = !fetch && event_term(e->spec, "cnt_ctl") &&
			  e->opts.metric == IBS_METRIC_DC_MISS_LAT &&
			  e->opts.filter != EVENT_FILTER_HARDWARE &&
			  (!e->plan.strata || o->strata_counters);
	e->opts.event = e->text;
	e->opts.by = labels_by(e->labels);
	e->opts.slabs |= !!(e->opts.by & IBS_BY_SLAB);
	e->opts.count_ops |= e->opts.attr.freq || weighs_shares(e);
	e->opts.count_ops &= e->opts.filter != EVENT_FILTER_HARDWARE || e->opts.pins;
	e->info.event = e->text;
	e->info.period = e->opts.attr.freq ? 0 : e->opts.attr.sample_period;
	e->info.metric = e->opts.metric;
	return 0;
}

static int choose_cpus(struct setup *s, bool *usage, struct err *err)
{
	struct sampling_opts *o = &s->options;
	struct cpulist online;
	size_t n = 0;
	int cpu, ret = cpulist_read("", "online", &online, err);

	/* offline CPUs are sampled when they come online */
	if (!ret && !o->has_cpus)
		ret = cpulist_read("", "possible", &o->cpus, err);
	if (ret)
		return ret;
	cpu = o->has_cpus ? cpulist_outside(&o->cpus, &online) : -1;
	if (cpu >= 0) {
		char list[256];

		cpulist_print(&online, list, sizeof(list));
		return usage_error(usage,
				   err_set(err, -EINVAL,
					   "-C: cpu %d is not online; online CPUs: %s", cpu, list));
	}
	s->cpus = xcalloc(cpulist_count(&o->cpus), sizeof(*s->cpus));
	cpulist_for_each (cpu, &o->cpus)
		s->cpus[n++] = cpu;
	for (unsigned int i = 0; i < o->n_events; i++) {
		s->event[i].opts.cpus = s->cpus;
		s->event[i].opts.n_cpus = n;
	}
	return 0;
}

/*
 * What an interrupt of the software clock costs, in ns; 0: unknown. On virtual machines it was
 * seen to be 45 us.
 */
static double clock_cost_ns(const struct setup *s)
{
	static double ns = -1;
	struct sample_cost cost;
	struct err ignored;

	if (ns < 0)
		ns = sample_cost_floor(&s->event[0].opts.attr, s->cpus[0], CLOCK_COST_S, &cost,
				       &ignored)
			     ? 0
			     : cost.ns;
	return ns;
}

/*
 * A simulation whose interrupts take all of the CPUs' time ends nothing that has to be done in user
 * space, its own end included: make them take half of it.
 */
static void lengthen_sim(struct setup *s)
{
	static bool told;
	double rate = 0, least;

	if (s->options.source != SOURCE_SIM || s->options.sim_faults)
		return;
	for (unsigned int i = 0; i < s->options.n_events; i++) {
		const struct perf_event_attr *attr = &s->event[i].opts.attr;

		rate += attr->freq ? attr->sample_freq / 1e9 : 1.0 / attr->sample_period;
	}
	if (rate <= 1.0 / SIM_CHEAP_NS || clock_cost_ns(s) * rate <= 0.5)
		return;
	least = ceil(2e-3 * s->options.n_events * clock_cost_ns(s)) * 1000;
	if (!told)
		log_warn("--source sim: a sample each %.0f ns instead of %.0f: an interrupt of the "
			 "clock takes %.0f ns here, and the rate would leave too little CPU time",
			 least / s->options.n_events, 1 / rate, clock_cost_ns(s));
	told = true;
	for (unsigned int i = 0; i < s->options.n_events; i++) {
		struct session_event *e = &s->event[i];

		e->opts.attr.freq = 0;
		e->opts.attr.sample_period = least;
		e->info.period = least;
	}
}

int setup_new(const struct sampling_opts *o, struct setup **out, bool *usage, struct err *err)
{
	struct setup *s = xcalloc(1, sizeof(*s));
	int ret = 0;

	*out = NULL;
	*usage = false;
	s->options = *o;
	cpu_info_read(&s->cpu);
	for (unsigned int i = 0; !ret && i < o->n_events; i++)
		ret = prepare_event(s, i, usage, err);
	ret = ret ?: choose_cpus(s, usage, err);
	if (ret) {
		setup_free(s);
		return ret;
	}
	lengthen_sim(s);
	*out = s;
	return 0;
}

void setup_free(struct setup *s)
{
	if (s)
		free(s->cpus);
	free(s);
}

int session_check(const struct sampling_opts *o, bool *usage, struct err *err)
{
	struct setup *s;
	int ret = setup_new(o, &s, usage, err);

	setup_free(s);
	return ret;
}

/* --- --explain --- */

/* The machine of --explain, which must support the event at the configured rate. */
static int explained_machine(const struct sampling_opts *o, unsigned int n, struct abilities *a,
			     struct err *err)
{
	const struct sampling_event *e = &o->event[n];
	struct cpu_info cpu;
	struct pmu *pmu = NULL;

	if (o->select.machine) {
		int ret = abilities_parse(o->select.machine, a, err);

		if (ret)
			return ret;
	} else {
		cpu_info_read(&cpu);
		if (pmu_open("", e->spec.pmu, &cpu, &pmu, err))
			pmu = NULL;
		abilities_of(&cpu, pmu, a);
		pmu_close(pmu);
	}
	cpu = (struct cpu_info){ .caps = a->caps };
	return a->caps && o->source != SOURCE_SIM ? event_rate_check(&e->spec, &cpu, &e->rate, err)
						  : 0;
}

static void explain(const struct sampling_opts *o, unsigned int n, const struct abilities *a,
		    bool json)
{
	const struct filter *filter = &o->select.filter[event_of_fetch(&o->event[n].spec)];
	const struct plan_context c = context(o, n, a);
	struct screen screen;
	struct plan plan;

	plan_make(&o->select, &c, &plan);
	if (json) {
		plan_print_json(stdout, &plan, &c);
		return;
	}
	if (n)
		putchar('\n');
	screen_of(stdout, &screen);
	plan_print(stdout, &plan, &c, screen.width);
	if (filter->n_parts) {
		putchar('\n');
		filter_explain(stdout, filter, screen.width);
	}
}

int sampling_explain(const struct sampling_opts *o, bool json)
{
	struct abilities a[SESSION_EVENTS];
	struct err err = { "" };

	for (unsigned int i = 0; i < o->n_events; i++) {
		if (!explained_machine(o, i, &a[i], &err))
			continue;
		log_error("--explain: %s", err.text);
		return EXIT_USAGE;
	}
	for (unsigned int i = 0; i < o->n_events; i++)
		explain(o, i, &a[i], json);
	return EXIT_DONE;
}
