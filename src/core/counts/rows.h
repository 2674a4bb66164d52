/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A snapshot as a table: one row per combination of the --by labels. All formatters print it. */
#ifndef IBSCOPE_ROWS_H
#define IBSCOPE_ROWS_H

#include "snapshot.h"
#include "machine/memory.h"

/*
 * X(NAME, "name", required group bits, "meaning"). Each group has counters by op and src, or by
 * itlb and fetch for ibs_fetch; without these labels they are summed.
 */
#define LABEL_TABLE(X)                                                                       \
	X(CGROUP, "cgroup", IBS_BY_CGROUP, "path of the cgroup")                             \
	X(CONTAINER, "container", IBS_BY_CGROUP, "name of the container")                    \
	X(POD, "pod", IBS_BY_CGROUP, "namespace and name of the pod")                        \
	X(PID, "pid", IBS_BY_PID, "process")                                                 \
	X(TID, "tid", IBS_BY_TID, "thread")                                                  \
	X(COMM, "comm", IBS_BY_COMM, "name of the thread")                                   \
	X(CPU, "cpu", IBS_BY_CPU, "logical CPU")                                             \
	X(CCX, "ccx", IBS_BY_COMPLEX, "cores that share an L3")                              \
	X(NODE, "node", IBS_BY_NODE, "NUMA node of the CPU")                                 \
	X(MEM_NODE, "mem_node", IBS_BY_MEM_NODE, "NUMA node of the data's physical address") \
	X(DISTANCE, "distance", IBS_BY_NODE | IBS_BY_MEM_NODE,                               \
	  "distance of CPU and memory node, by ACPI's SLIT; 10 is the same node")            \
	X(MODE, "mode", IBS_BY_MODE, "user or kernel")                                       \
	X(SLAB, "slab", IBS_BY_SLAB, "slab cache of the kernel's data")                      \
	X(SYMBOL, "symbol", BY_SYMBOL, "function of the op's address")                       \
	X(SRC, "src", 0, "where the data came from")                                         \
	X(OP, "op", 0, "kind of op")                                                         \
	X(FETCH, "fetch", 0, "outcome of the fetch")                                         \
	X(ITLB, "itlb", 0, "translation of the fetch's address")

/* Not in enum ibs_by: only user space uses it, for samples of recordings. */
#define BY_SYMBOL (1U << 31)

enum label {
#define LABEL_ENUM(name, ...) LABEL_##name,
	LABEL_TABLE(LABEL_ENUM)
#undef LABEL_ENUM
		LABEL_N
};

#define LABELS_DEFAULT (1U << LABEL_CGROUP | 1U << LABEL_SRC | 1U << LABEL_OP)
/* The default of `serve`: without cgroup, since each new container would make new series. */
#define LABELS_SERVED \
	((LABELS_DEFAULT & ~(1U << LABEL_CGROUP)) | 1U << LABEL_CONTAINER | 1U << LABEL_POD)
/* Labels of series rather than of groups, by event. */
#define LABELS_OP    (1U << LABEL_SRC | 1U << LABEL_OP)
#define LABELS_FETCH (1U << LABEL_FETCH | 1U << LABEL_ITLB)
#define LABELS_PAIR  (LABELS_OP | LABELS_FETCH)

const char *label_name(enum label l);

struct series;

/* The name of a series under one of LABELS_PAIR. */
const char *series_label(const struct series *s, enum label l);

struct err;

/* Order in which labels are shown; zeros: that of the table. */
struct label_order {
	unsigned char at[LABEL_N];
};

/* The @i-th of all labels. */
static inline enum label label_at(const struct label_order *o, int i)
{
	return o->at[0] == o->at[1] ? (enum label)i : (enum label)o->at[i];
}

/**
 * labels_parse() - parse "cgroup,src" to 1 << enum label bits, and their order
 *
 * Return: 0, or -EINVAL with @err naming the valid labels.
 */
int labels_parse(const char *text, unsigned int *labels, struct label_order *order,
		 struct err *err);

/* The enum ibs_by bits that the labels need, or BY_SYMBOL. */
__u32 labels_by(unsigned int labels);

/*
 * Check labels for counters. Return: 0, or -EINVAL with @err if a label exists only for samples of
 * recordings, or only for the other event.
 */
int labels_counted(unsigned int labels, bool fetch, struct err *err);

/* Labels of groups counted by these enum ibs_by bits; container and pod count as cgroup. */
unsigned int labels_of_by(__u32 by);

/*
 * Check whether groups counted by these enum ibs_by bits can be shown by @labels. Return: 0, or
 * -EINVAL with @err naming the available keys.
 */
int labels_known(unsigned int labels, __u32 by, struct err *err);

/* Translate labels of one event to those of the other. */
static inline unsigned int labels_of_event(unsigned int labels, bool fetch)
{
	const unsigned int shift = LABEL_FETCH - LABEL_SRC;

	if (fetch)
		return (labels & ~LABELS_OP) | (labels & LABELS_OP) << shift;
	return (labels & ~LABELS_FETCH) | (labels & LABELS_FETCH) >> shift;
}

struct row {
	char *label[LABEL_N]; /* NULL: not asked for */
	struct series series; /* op and src are valid only if among the labels */
};

struct rows {
	size_t n;
	struct row *row; /* groups with most samples first; in a group by source, then op */
};

/*
 * Name of a cgroup; @l is LABEL_CGROUP, LABEL_CONTAINER or LABEL_POD. "" if it is in none, NULL if
 * the cgroup is unknown; valid until the next call. With BY_SYMBOL also the name of group.symbol,
 * LABEL_SYMBOL, and with IBS_BY_SLAB that of a slab cache, LABEL_SLAB.
 */
typedef const char *(*cgroup_namer)(void *arg, __u64 id, enum label l);

/* Use the distances of a recording, rather than this machine's, for the label `distance`. */
void rows_distances(const struct node_distances *d);

/* A label of a group, not one of LABELS_PAIR; the caller frees it. */
char *group_label(const struct group *g, enum label l, cgroup_namer name, void *arg);

/**
 * rows_build() - name, sum up and sort the groups of a snapshot
 * @labels: 1 << enum label bits
 * @name:   finds the names of a cgroup; unknown ones are shown as "#ID"
 * @out:    the caller frees it with rows_free()
 *
 * Samples that found no slot have "other" for every label of the group. Groups with the same labels
 * become one row: cgroups of one container, or a cgroup that was removed and created again.
 */
void rows_build(const struct snapshot *s, unsigned int labels, cgroup_namer name, void *arg,
		struct rows *out);

void rows_free(struct rows *r);

#endif
