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

/* Notes whose fault @ret is, and returns it. */
int sampling_usage_error(struct sampling *s, int ret);

#endif
