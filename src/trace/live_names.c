// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COMM 16

struct cgroup_name {
	__u64 id; /* 0: free */
	char *path;
};

struct live_names {
	char (*comm)[COMM]; /* by tid; "" is not known */
	struct cgroup_name *cgroups;
	size_t n_cgroups, room; /* a power of two, more than n_cgroups */
};

#define FIRST_ROOM 64

int live_names_new(struct live_names **out, struct err *err)
{
	struct live_names *n = calloc(1, sizeof(*n));
	void *comm;

	if (!n)
		return err_set(err, -ENOMEM, "out of memory");
	comm = mmap(NULL, (size_t)IBS_PID_MAX * COMM, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	n->comm = comm == MAP_FAILED ? NULL : comm;
	n->room = FIRST_ROOM;
	n->cgroups = calloc(n->room, sizeof(*n->cgroups));
	if (!n->comm || !n->cgroups) {
		live_names_free(n);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*out = n;
	return 0;
}

void live_names_forget_cgroups(struct live_names *n)
{
	for (size_t i = 0; i < n->room; i++) {
		free(n->cgroups[i].path);
		n->cgroups[i] = (struct cgroup_name){};
	}
	n->n_cgroups = 0;
}

void live_names_free(struct live_names *n)
{
	if (!n)
		return;
	if (n->comm)
		munmap(n->comm, (size_t)IBS_PID_MAX * COMM);
	if (n->cgroups)
		live_names_forget_cgroups(n);
	free(n->cgroups);
	free(n);
}

/* The place of an id, or the free one where it belongs. */
static struct cgroup_name *find(const struct live_names *n, __u64 id)
{
	size_t i = (id * 0x9e3779b97f4a7c15ULL >> 32) & (n->room - 1);

	while (n->cgroups[i].id && n->cgroups[i].id != id)
		i = (i + 1) & (n->room - 1);
	return &n->cgroups[i];
}

static int grow(struct live_names *n)
{
	struct live_names bigger = *n;

	bigger.room *= 2;
	bigger.cgroups = calloc(bigger.room, sizeof(*bigger.cgroups));
	if (!bigger.cgroups)
		return -ENOMEM;
	for (size_t i = 0; i < n->room; i++)
		if (n->cgroups[i].id)
			*find(&bigger, n->cgroups[i].id) = n->cgroups[i];
	free(n->cgroups);
	*n = bigger;
	return 0;
}

static int add_cgroup(struct live_names *n, __u64 id, const char *path)
{
	struct cgroup_name *c;
	char *copy;

	if (!id)
		return 0;
	if (2 * n->n_cgroups >= n->room && grow(n))
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	c = find(n, id);
	n->n_cgroups += !c->id;
	free(c->path);
	c->id = id;
	c->path = copy;
	return 0;
}

int live_names_add(struct live_names *n, const struct trace_event *ev)
{
	if (ev->kind == TRACE_COMM && ev->comm.tid < IBS_PID_MAX)
		strncpy(n->comm[ev->comm.tid], ev->comm.name, COMM - 1);
	else if (ev->kind == TRACE_FORK && ev->fork.tid < IBS_PID_MAX &&
		 ev->fork.parent_tid < IBS_PID_MAX)
		memmove(n->comm[ev->fork.tid], n->comm[ev->fork.parent_tid], COMM);
	else if (ev->kind == TRACE_CGROUP)
		return add_cgroup(n, ev->cgroup.id, ev->cgroup.path);
	return 0;
}

const char *live_names_comm(const struct live_names *n, __u32 tid)
{
	return tid < IBS_PID_MAX && n->comm[tid][0] ? n->comm[tid] : NULL;
}

const char *live_names_cgroup(const struct live_names *n, __u64 id)
{
	const char *path = id ? find(n, id)->path : NULL;

	return path && *path ? path : NULL;
}

bool live_names_has_cgroup(const struct live_names *n, __u64 id)
{
	return id && find(n, id)->id;
}
