// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What does not depend on time. */
#include "tasks.h"
#include "tasks_private.h"

bool tasks_have_data(const struct tasks *t)
{
	return t->has_data;
}

const struct slab_list *tasks_slabs(const struct tasks *t)
{
	return &t->slabs;
}

const struct task_rank *tasks_ranks(const struct tasks *t, size_t *n)
{
	*n = t->n_ranks;
	return t->ranks;
}

const char *tasks_code_dump(const struct tasks *t, __u32 tgid)
{
	__u32 id = u64_map_get(&t->dumps, tgid);

	return id == INTERN_NONE ? NULL : intern_text(&t->texts, id);
}
