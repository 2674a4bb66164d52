// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The plan: which stages drop samples before the program, applied to this machine. */
#include "session.h"
#include "session_private.h"

#include "base/exit_status.h"
#include "machine/core_event.h"
#include "machine/pmu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct plan_context context(const struct sampling *s, const struct abilities *a)
{
	return (struct plan_context){
		.abilities = a,
		.stages = s->stages,
		.metric = s->opts.metric,
		.cpus = s->has_cpus,
		.core_counters = s->core_counters,
		.command = (s->argv || s->command) && !sampling_measures_others(s),
		.event = &s->event,
		.simulated = s->source == SOURCE_SIM,
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

void sampling_plan(struct sampling *s, const struct pmu *pmu, struct event_spec *event)
{
	struct plan_context c;
	struct tag_events tags;
	struct abilities a;

	abilities_of(&s->cpu, pmu, &a);
	c = context(s, &a);
	plan_make(&s->select, &c, &s->plan);
	plan_event(&s->plan, &c, event);
	event_print(event, s->event_text, sizeof(s->event_text));
	s->opts.filter = event_filter(event);
	memset(s->opts.tags, 0, sizeof(s->opts.tags));
	if (!s->plan.tags)
		return;
	tags = tag_events(&s->cpu, event);
	for (int i = 0; i < SAMPLER_TAGS; i++)
		if (i != SAMPLER_TAG_VALID ||
		    (s->core_counters && core_event_known(&s->cpu, tags.of[i])))
			s->opts.tags[i] = core_event_attr(tags.of[i]);
	s->opts.tags[SAMPLER_TAG_OPS].disabled = 0; /* enabled with the other */
	s->opts.tags_are_lost = tags.lost;
}

/* The only selected cgroup, or id 0 while it does not exist; false: there are others. */
static bool only_cgroup(const struct selection *sel, __u64 *id)
{
	size_t n = 0;

	for (size_t i = 0; i < sel->n_cgroups; i++) {
		const struct selected_cgroup *c = &sel->cgroups[i];

		if (c->out || c->filter_only)
			continue;
		*id = c->id;
		n++;
	}
	return n == 1;
}

int sampling_plan_cgroup(struct sampling *s)
{
	const char *path;
	char dir[4096 + 256];
	__u64 id = 0;
	int fd;

	s->bound = 0;
	if (!s->plan.cgroup || !only_cgroup(&s->opts.sel, &id) || !id)
		return 0;
	path = cgroup_tree_path(s->tree, id);
	if (!path || *path != '/' || *cgroup_tree_fs(s->tree)->controller)
		return 0;
	snprintf(dir, sizeof(dir), "%s%s", cgroup_tree_mount(s->tree), path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	s->bound = id;
	return fd;
}

void sampling_plan_again(struct sampling *s)
{
	const __u64 before = s->bound;
	struct err err = { "" };
	__u64 id = 0;
	int fd;

	/* while it is gone nothing is selected: events of the dead cgroup count nothing */
	if (s->unbindable || (s->plan.cgroup && only_cgroup(&s->opts.sel, &id) && !id))
		return;
	fd = sampling_plan_cgroup(s);
	if (s->bound != before && sampler_set_cgroup(s->sampler, fd, &err)) {
		log_info("%s", err.text);
		s->unbindable = fd;
	}
	if (fd)
		close(fd);
}

/* The machine of --explain, which must support the event at the configured rate. */
static int explained_machine(const struct sampling *s, struct abilities *a, struct err *err)
{
	struct cpu_info cpu;
	struct pmu *pmu = NULL;

	if (s->select.machine) {
		int ret = abilities_parse(s->select.machine, a, err);

		if (ret)
			return ret;
	} else {
		cpu_info_read(&cpu);
		if (pmu_open("", s->event.pmu, &cpu, &pmu, err))
			pmu = NULL;
		abilities_of(&cpu, pmu, a);
		pmu_close(pmu);
	}
	cpu = (struct cpu_info){ .caps = a->caps };
	return a->caps && s->source != SOURCE_SIM ? event_rate_check(&s->event, &cpu, &s->rate, err)
						  : 0;
}

static void explain(const struct sampling *s, const struct abilities *a, bool json)
{
	const struct plan_context c = context(s, a);
	struct plan plan;

	plan_make(&s->select, &c, &plan);
	if (json) {
		plan_print_json(stdout, &plan, &c);
		return;
	}
	plan_print(stdout, &plan, &c);
	if (s->select.filter.n_parts) {
		putchar('\n');
		filter_explain(stdout, &s->select.filter);
	}
}

int sampling_explain(const struct sampling *s, const struct sampling *second, bool json)
{
	struct abilities a, b;
	struct err err = { "" };

	if (explained_machine(s, &a, &err) || (second && explained_machine(second, &b, &err))) {
		log_error("--explain: %s", err.text);
		return EXIT_USAGE;
	}
	explain(s, &a, json);
	if (second && !json)
		putchar('\n');
	if (second)
		explain(second, &b, json);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
}
