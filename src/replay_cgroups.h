/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Selections of cgroups for recordings: by the paths that a recording tells, not by those of this
 * machine.
 */
#ifndef IBSCOPE_REPLAY_CGROUPS_H
#define IBSCOPE_REPLAY_CGROUPS_H

#include "err.h"
#include "filter.h"
#include "key_map.h"
#include "sampler.h"

/* The zero value knows none. */
struct replay_cgroups {
	struct key_map ids;
	char **paths; /* by number in `ids`; NULL: not told */
	size_t room;
};

/* A cgroup of a recording; @path may be NULL if it is not told yet. Return: 0 or -ENOMEM. */
int replay_cgroups_add(struct replay_cgroups *c, __u64 id, const char *path);

/* NULL if not told. */
const char *replay_cgroups_path(const struct replay_cgroups *c, __u64 id);

/**
 * replay_cgroups_select() - what each cgroup of a recording comes to
 * @args:   of --cgroup, one an option: [!]PATH|PATTERN|ID[:MIN],..
 * @containers: of --container: [!]ID|PATTERN[:MIN],..; names of containers are not told
 * @filter: its questions about cgroups are answered too; NULL: none
 * @other:  an id that stands for samples whose cgroup is not told: never selected
 * @out:    for struct selection: an entry for every id whose fate is decided, none for those below
 *          others; the caller frees it
 *
 * As while sampling, what is named holds for all below, until a deeper one is named.
 *
 * Return: 0, or with @err -ENOENT where nothing in the recording has that name, -EINVAL, -ERANGE,
 * -ENOMEM.
 */
int replay_cgroups_select(const struct replay_cgroups *c, char *const *args, size_t n_args,
			  char *const *containers, size_t n_containers, const struct filter *filter,
			  __u64 other, struct selected_cgroup **out, size_t *n_out,
			  struct err *err);

void replay_cgroups_free(struct replay_cgroups *c);

#endif
