/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that sampling is made of. */
#ifndef IBSCOPE_SAMPLING_PRIVATE_H
#define IBSCOPE_SAMPLING_PRIVATE_H

struct err;
struct sampling;

/* The cgroups of the hierarchy that --cgroup-hierarchy says, as s->tree. */
int sampling_open_tree(struct sampling *s, struct err *err);

/* What --cgroup, --container and --filter name, with the tree open, to s->opts.sel. */
int sampling_select_cgroups(struct sampling *s, struct err *err);
/* The same while it is open. Return: also 1 if the program does not test for what they say. */
int sampling_reselect_cgroups(struct sampling *s, struct err *err);

/* Take over what is selected by options, or by the command. */
void sampling_use_options(struct sampling *s);

/* Make the process that will be the command, before any cgroup is read. */
int sampling_prepare_command(struct sampling *s, struct err *err);
/* Select it, if nothing else is selected. */
void sampling_select_command(struct sampling *s);

struct event_spec;
struct pmu;

/* Make s->plan, for the machine with this PMU of ibs_op (NULL: none), and the event of it. */
void sampling_plan(struct sampling *s, const struct pmu *pmu, struct event_spec *event);
/* The directory of the cgroup to bind events to, as in struct sampler_opts. */
int sampling_plan_cgroup(struct sampling *s);
/* The same once cgroups have changed, for the running sampler. */
void sampling_plan_again(struct sampling *s);

/* Does something else than the command say what is measured? */
bool sampling_measures_others(const struct sampling *s);

/* Notes whose fault @ret is, and returns it. */
int sampling_usage_error(struct sampling *s, int ret);

#endif
