// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live_names.h"

#include "base/intern.h"

#include <sys/mman.h>

#define COMM 16

struct live_names {
	char (*comm)[COMM];	/* by tid; "": unknown */
	struct u64_map cgroups; /* by id, to texts */
	struct intern texts;
};

struct live_names *live_names_new(void)
{
	struct live_names *n = xcalloc(1, sizeof(*n));

	n->comm = mmap(NULL, (size_t)IBS_PID_MAX * COMM, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (n->comm == MAP_FAILED)
		out_of_memory();
	return n;
}

void live_names_forget_cgroups(struct live_names *n)
{
	u64_map_free(&n->cgroups);
	intern_free(&n->texts);
}

void live_names_free(struct live_names *n)
{
	if (!n)
		return;
	munmap(n->comm, (size_t)IBS_PID_MAX * COMM);
	live_names_forget_cgroups(n);
	free(n);
}

void live_names_add(struct live_names *n, const struct trace_event *ev)
{
	if (ev->kind == TRACE_COMM && ev->comm.tid < IBS_PID_MAX)
		strncpy(n->comm[ev->comm.tid], ev->comm.name, COMM - 1);
	else if (ev->kind == TRACE_FORK && ev->fork.tid < IBS_PID_MAX &&
		 ev->fork.parent_tid < IBS_PID_MAX)
		memmove(n->comm[ev->fork.tid], n->comm[ev->fork.parent_tid], COMM);
	else if (ev->kind == TRACE_CGROUP && ev->cgroup.id)
		u64_map_put(&n->cgroups, ev->cgroup.id, intern_get(&n->texts, ev->cgroup.path));
}

const char *live_names_comm(const struct live_names *n, __u32 tid)
{
	return tid < IBS_PID_MAX && n->comm[tid][0] ? n->comm[tid] : NULL;
}

const char *live_names_cgroup(const struct live_names *n, __u64 id)
{
	__u32 text = u64_map_get(&n->cgroups, id);

	return text != INTERN_NONE && *n->texts.text[text] ? n->texts.text[text] : NULL;
}

bool live_names_has_cgroup(const struct live_names *n, __u64 id)
{
	return u64_map_get(&n->cgroups, id) != INTERN_NONE;
}
