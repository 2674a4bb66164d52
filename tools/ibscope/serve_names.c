// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of groups, for readers that could not find them out themselves. */
#include "serve.h"

#include "counts.h"

#include <stdio.h>
#include <string.h>

static void name_slot(struct serve *s, __u32 slot, __u64 id, struct ibs_slot_name *n)
{
	const char *path = cgroup_tree_path(s->opts.sampling.tree, id);

	(void)slot;
	if (!path)
		return; /* asked again at the next tick */
	pins_write_begin(&n->seq);
	memset(n->cgroup, 0, sizeof(*n) - offsetof(struct ibs_slot_name, cgroup));
	n->cgroup_id = id;
	snprintf(n->cgroup, sizeof(n->cgroup), "%s", path);
	pins_write_end(&n->seq);
}

void serve_names_update(struct serve *s)
{
	const struct counts *c = sampler_counts(s->opts.sampling.sampler);
	struct ibs_slot_name *names = pins_names(s->pins);

	for (__u32 slot = IBS_SLOT_OTHER + 1; slot < c->max_slots; slot++) {
		__u64 id = c->owners[slot].key.cgroup_id;

		if (__atomic_load_n(&c->owners[slot].used, __ATOMIC_ACQUIRE) && id &&
		    names[slot].cgroup_id != id)
			name_slot(s, slot, id, &names[slot]);
	}
}
