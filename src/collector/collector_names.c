// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_names.h"

#include "cgroup/container_names.h"
#include "counts/counts.h"

#include <stdio.h>
#include <string.h>

/* A container without a known name is called by its id. Return: false if the cgroup is unknown. */
static bool find_texts(struct collector *c, __u64 id, struct ibs_slot_name *out)
{
	const char *path = cgroup_tree_path(c->set.sampling.tree, id);
	const struct container_name *name;
	struct container_owner owner;
	struct container container;

	memset(out, 0, sizeof(*out));
	if (!path)
		return false;
	out->cgroup_id = id;
	snprintf(out->cgroup, sizeof(out->cgroup), "%s", path);
	cgroup_tree_owner(c->set.sampling.tree, id, &owner);
	if (!container_of_path(path, &owner, &container))
		return true;
	name = container_names_find(c->set.sampling.names, &container);
	snprintf(out->name_space, sizeof(out->name_space), "%s", name->ns);
	snprintf(out->pod, sizeof(out->pod), "%s", *name->pod ? name->pod : container.pod_uid);
	snprintf(out->container, sizeof(out->container), "%s",
		 container_names_label(c->set.sampling.names, &container));
	return true;
}

static bool same_texts(const struct ibs_slot_name *a, const struct ibs_slot_name *b)
{
	return a->cgroup_id == b->cgroup_id && !strcmp(a->cgroup, b->cgroup) &&
	       !strcmp(a->name_space, b->name_space) && !strcmp(a->pod, b->pod) &&
	       !strcmp(a->container, b->container);
}

static void name_slot(struct collector *c, __u64 id, struct ibs_slot_name *n)
{
	struct ibs_slot_name now;

	if (!find_texts(c, id, &now) || same_texts(n, &now))
		return;
	now.seq = n->seq;
	pins_write_begin(&n->seq);
	memcpy((char *)n + sizeof(n->seq), (char *)&now + sizeof(n->seq),
	       sizeof(*n) - sizeof(n->seq));
	pins_write_end(&n->seq);
}

void collector_names_update(struct collector *c)
{
	const struct counts *counts = sampler_counts(c->set.sampling.sampler);
	struct ibs_slot_name *names = pins_names(c->pins);

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < counts->max_slots; slot++) {
		__u64 id = counts->owners[slot].key.cgroup_id;

		/* those with names, too: a runtime may write its files late, or rename */
		if (__atomic_load_n(&counts->owners[slot].used, __ATOMIC_ACQUIRE) && id)
			name_slot(c, id, &names[slot]);
	}
}
