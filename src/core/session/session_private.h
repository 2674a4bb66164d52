/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of this room. */
#ifndef IBSCOPE_SAMPLING_PRIVATE_H
#define IBSCOPE_SAMPLING_PRIVATE_H

struct err;
struct sampling;

/* Open the hierarchy of --cgroup-hierarchy as s->tree. */
int sampling_open_tree(struct sampling *s, struct err *err);

/* Resolve --cgroup, --container and --filter to s->opts.sel; the tree must be open. */
int sampling_select_cgroups(struct sampling *s, struct err *err);
/* The same while sampling. Return: also 1 if the program lacks the tests. */
int sampling_reselect_cgroups(struct sampling *s, struct err *err);

/* Copy the selection of the options, or of the command. */
void sampling_use_options(struct sampling *s);

/* Create the process for the command, before any cgroup is read. */
int sampling_prepare_command(struct sampling *s, struct err *err);
/* Select the command, if nothing else is selected. */
void sampling_select_command(struct sampling *s);

struct event_spec;
struct pmu;

/* Make s->plan, for the machine with this ibs_op PMU (NULL: none), and the planned event. */
void sampling_plan(struct sampling *s, const struct pmu *pmu, struct event_spec *event);
/* fd of the directory of the cgroup to bind events to, as in struct sampler_opts. */
int sampling_plan_cgroup(struct sampling *s);
/* Update the running sampler after cgroups have changed. */
void sampling_plan_again(struct sampling *s);

/* True if options rather than the command decide what is measured. */
bool sampling_measures_others(const struct sampling *s);

/* Record whether user input caused @ret, and return it. */
int sampling_usage_error(struct sampling *s, int ret);

#endif
