// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of groups, for readers that could not find them out themselves. */
#include "serve.h"

#include "container_names.h"
#include "counts.h"

#include <stdio.h>
#include <string.h>

#define ID_SHORT 12 /* digits of a container's id, as docker shows them */

/* What is known now; a name that is not known yet has its id in its place. */
static bool find_texts(struct serve *s, __u64 id, struct ibs_slot_name *out)
{
	const char *path = cgroup_tree_path(s->opts.sampling.tree, id);
	const struct container_name *name;
	struct container c;

	memset(out, 0, sizeof(*out));
	if (!path)
		return false;
	out->cgroup_id = id;
	snprintf(out->cgroup, sizeof(out->cgroup), "%s", path);
	if (!container_of_path(path, &c))
		return true;
	name = container_names_find(s->opts.sampling.names, path, &c);
	snprintf(out->name_space, sizeof(out->name_space), "%s", name->ns);
	snprintf(out->pod, sizeof(out->pod), "%s", *name->pod ? name->pod : c.pod_uid);
	if (*name->container)
		snprintf(out->container, sizeof(out->container), "%s", name->container);
	else
		snprintf(out->container, sizeof(out->container), "%.*s", ID_SHORT, c.id);
	return true;
}

static bool same_texts(const struct ibs_slot_name *a, const struct ibs_slot_name *b)
{
	return a->cgroup_id == b->cgroup_id && !strcmp(a->cgroup, b->cgroup) &&
	       !strcmp(a->name_space, b->name_space) && !strcmp(a->pod, b->pod) &&
	       !strcmp(a->container, b->container);
}

static void name_slot(struct serve *s, __u64 id, struct ibs_slot_name *n)
{
	struct ibs_slot_name now;

	if (!find_texts(s, id, &now) || same_texts(n, &now))
		return;
	now.seq = n->seq;
	pins_write_begin(&n->seq);
	memcpy((char *)n + sizeof(n->seq), (char *)&now + sizeof(n->seq),
	       sizeof(*n) - sizeof(n->seq));
	pins_write_end(&n->seq);
}

void serve_names_update(struct serve *s)
{
	const struct counts *c = sampler_counts(s->opts.sampling.sampler);
	struct ibs_slot_name *names = pins_names(s->pins);

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < c->max_slots; slot++) {
		__u64 id = c->owners[slot].key.cgroup_id;

		/* also those that have names: a runtime may write its files late, or rename */
		if (__atomic_load_n(&c->owners[slot].used, __ATOMIC_ACQUIRE) && id)
			name_slot(s, id, &names[slot]);
	}
}
