/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A snapshot as a table: one row per combination of the --by labels. All formatters print it. */
#ifndef IBSCOPE_ROWS_H
#define IBSCOPE_ROWS_H

#include "counts/snapshot.h"
#include "machine/machine.h"

/* What a key depends on; see struct label_info. */
enum {
	KEY_OF_OP = 1 << 0,    /* only samples of ibs_op have it */
	KEY_OF_FETCH = 1 << 1, /* only samples of ibs_fetch have it */
	KEY_OF_HOST = 1 << 2,  /* means something else on another machine */
	KEY_ADDRESS = 1 << 3,  /* a part of the data's address */
	KEY_TASKS = 1 << 4,    /* needs the tasks of a recording */
	KEY_SYMBOLS = 1 << 5,  /* needs symbols; so do the next two */
	KEY_DATA = 1 << 6,     /* needs what lies at the data's address */
	KEY_TYPES = 1 << 7,    /* needs the type of the data */
	KEY_NODES = 1 << 8,    /* needs the node of the data */
	KEY_CHAINS = 1 << 9,   /* needs call chains */
	KEY_HEAP = 1 << 10,    /* needs allocations */
};

/*
 * The keys of --by, a row each:
 * X(NAME, "name", required group bits, label of a group, KEY_*, value of a sample, text of a value,
 *   "meaning")
 *
 * The label of a group is made by a function of rows.c, value and text by functions of
 * report_key.c. Each group has counters by op and src, or by itlb and fetch for ibs_fetch; without
 * these keys they are summed.
 */
#define LABEL_TABLE(X)                                                                          \
	X(CGROUP, "cgroup", IBS_BY_CGROUP, cgroup_label, KEY_TASKS, cgroup_word, text_of,       \
	  "path of the cgroup")                                                                 \
	X(CONTAINER, "container", IBS_BY_CGROUP, cgroup_label, KEY_TASKS, cgroup_word, text_of, \
	  "name or id of the container")                                                        \
	X(POD, "pod", IBS_BY_CGROUP, cgroup_label, KEY_TASKS, cgroup_word, text_of,             \
	  "namespace and name of the pod, or its uid")                                          \
	X(PID, "pid", IBS_BY_PID, pid_label, KEY_OF_HOST, task_word, number_of, "process")      \
	X(TID, "tid", IBS_BY_TID, tid_label, KEY_OF_HOST, task_word, number_of, "thread")       \
	X(COMM, "comm", IBS_BY_COMM, comm_label, KEY_TASKS, comm_word, text_of,                 \
	  "name of the thread")                                                                 \
	X(CPU, "cpu", IBS_BY_CPU, cpu_label, KEY_OF_HOST, cpu_word, number_of, "logical CPU")   \
	X(CCX, "ccx", IBS_BY_COMPLEX, ccx_label, KEY_OF_HOST, topology_word, number_of,         \
	  "cores that share an L3")                                                             \
	X(NODE, "node", IBS_BY_NODE, node_label, KEY_OF_HOST, topology_word, number_of,         \
	  "NUMA node of the CPU")                                                               \
	X(MEM_NODE, "mem_node", IBS_BY_MEM_NODE, mem_node_label,                                \
	  KEY_OF_OP | KEY_OF_HOST | KEY_NODES, mem_node_word, number_of,                        \
	  "NUMA node of the data's physical address")                                           \
	X(DISTANCE, "distance", IBS_BY_NODE | IBS_BY_MEM_NODE, distance_label,                  \
	  KEY_OF_OP | KEY_NODES, distance_word, number_of,                                      \
	  "distance of CPU and memory node, by ACPI's SLIT; 10 is the same node")               \
	X(MODE, "mode", IBS_BY_MODE, mode_label, 0, mode_word, mode_of, "user or kernel")       \
	X(SLAB, "slab", IBS_BY_SLAB, slab_label, KEY_OF_OP | KEY_TASKS, slab_word, text_of,     \
	  "slab cache of the kernel's data; needs record --slabs")                              \
	X(SYMBOL, "symbol", BY_SYMBOL, symbol_label, KEY_SYMBOLS, symbol_word, name_of,         \
	  "function of the op's address")                                                       \
	X(SRC, "src", 0, NULL, KEY_OF_OP, op_word, kind_of, "where the data came from")         \
	X(OP, "op", 0, NULL, KEY_OF_OP, op_word, kind_of, "kind of op")                         \
	X(FETCH, "fetch", 0, NULL, KEY_OF_FETCH, fetch_word, kind_of,                           \
	  "ibs_fetch: outcome of the fetch")                                                    \
	X(ITLB, "itlb", 0, NULL, KEY_OF_FETCH, fetch_word, kind_of,                             \
	  "ibs_fetch: how its address was translated")

/* Keys that only samples of recordings have: X(NAME, "name", KEY_*, value, text, "meaning") */
#define RECORDED_KEY_TABLE(X)                                                                     \
	X(DSO, "dso", KEY_SYMBOLS, symbol_word, text_of, "file of the op's address")              \
	X(SRCLINE, "srcline", KEY_SYMBOLS, symbol_word, text_of,                                  \
	  "source file and line of the op's address")                                             \
	X(CALLER, "caller", KEY_SYMBOLS | KEY_CHAINS, caller_word, name_of,                       \
	  "function that called the one of the op; needs record -g")                              \
	X(STACK, "stack", KEY_SYMBOLS | KEY_CHAINS, stack_word, text_of,                          \
	  "call chain, from the outermost function on; needs record -g")                          \
	X(IP, "ip", 0, ip_word, address_of, "address of the op")                                  \
	X(PAGE, "page", KEY_OF_OP | KEY_OF_HOST | KEY_ADDRESS, block_word, address_of,            \
	  "4 KiB page of the data's virtual address, or with --phys physical")                    \
	X(PHYS_PAGE, "phys_page", KEY_OF_OP, block_word, address_of,                              \
	  "4 KiB page of the data's physical address")                                            \
	X(LINE, "line", KEY_OF_OP | KEY_OF_HOST | KEY_ADDRESS, block_word, address_of,            \
	  "cache line (64 bytes) of the data, as page")                                           \
	X(MAPPING, "mapping", KEY_OF_OP | KEY_DATA, mapping_word, text_of,                        \
	  "file of the data's address, or [heap], [stack] ...")                                   \
	X(RANGE, "range", KEY_OF_OP | KEY_OF_HOST | KEY_DATA, range_word, text_of,                \
	  "addresses of that mapping")                                                            \
	X(VARIABLE, "variable", KEY_OF_OP | KEY_DATA, variable_word, name_of,                     \
	  "variable at the data's address")                                                       \
	X(OFFSET, "offset", KEY_OF_OP | KEY_DATA, offset_word, number_of,                         \
	  "offset of the data in its variable, or in its file")                                   \
	X(ALLOCATION, "allocation", KEY_OF_OP | KEY_DATA | KEY_HEAP, allocation_word, text_of,    \
	  "code that allocated the data; needs record --allocs")                                  \
	X(TYPE, "type", KEY_OF_OP | KEY_TYPES, type_word, text_of,                                \
	  "type of the data, by debug information, or why it is unknown")                         \
	X(FIELD, "field", KEY_OF_OP | KEY_TYPES, field_word, text_of, "field of the type")        \
	X(FIELD_OFFSET, "field_offset", KEY_OF_OP | KEY_TYPES, field_place_word, number_of,       \
	  "offset of the field in its type, bytes")                                               \
	X(FIELD_SIZE, "field_size", KEY_OF_OP | KEY_TYPES, field_place_word, number_of,           \
	  "size of the field, bytes")                                                             \
	X(SPACE, "space", KEY_OF_OP | KEY_OF_HOST, space_word, space_of,                          \
	  "address space of page and line: a pid or kernel")                                      \
	X(PAGE_SIZE, "page_size", 0, page_size_word, number_of, "size of the data's page, bytes") \
	X(PREFETCH, "prefetch", KEY_OF_OP, prefetch_word, prefetch_of,                            \
	  "software prefetch, or none; hardware prefetches are not ops, thus not sampled")        \
	X(MISS, "miss", KEY_OF_OP, miss_word, miss_of,                                            \
	  "primary: missed the L1 cache; secondary: joined a miss that was under way")            \
	X(RANK, "rank", KEY_TASKS, rank_word, number_of, "MPI rank of the process")               \
	X(HOST, "host", 0, host_word, text_of, "machine that recorded")                           \
	X(REGION, "region", KEY_TASKS, region_word, text_of, "regions that the program named")    \
	X(OMP_REGION, "omp_region", KEY_SYMBOLS, omp_region_word, text_of,                        \
	  "function and line of OpenMP's region")                                                 \
	X(THREAD_ROLE, "thread_role", KEY_TASKS, role_word, text_of,                              \
	  "number in the OpenMP team, or order of start")                                         \
	X(EVENT, "event", 0, event_word, text_of, "event that took the sample")

/* Not in enum ibs_by: only user space uses it, for samples of recordings. */
#define BY_SYMBOL (1U << 31)

/* Those of counters, then those of recordings only. */
enum label {
#define LABEL_ENUM(name, ...) LABEL_##name,
	LABEL_TABLE(LABEL_ENUM) LABEL_N,
	LABEL_LAST_COUNTED = LABEL_N - 1,
	RECORDED_KEY_TABLE(LABEL_ENUM)
#undef LABEL_ENUM
		LABEL_ALL
};

#define LABELS_DEFAULT (1U << LABEL_CGROUP | 1U << LABEL_SRC | 1U << LABEL_OP)
/* The default of `serve`: without cgroup, since each new container would make new series. */
#define LABELS_SERVED \
	((LABELS_DEFAULT & ~(1U << LABEL_CGROUP)) | 1U << LABEL_CONTAINER | 1U << LABEL_POD)
/* Labels of series rather than of groups, by event. */
#define LABELS_OP    (1U << LABEL_SRC | 1U << LABEL_OP)
#define LABELS_FETCH (1U << LABEL_FETCH | 1U << LABEL_ITLB)
#define LABELS_PAIR  (LABELS_OP | LABELS_FETCH)

struct err;

/* What all programs share of a row. */
struct label_info {
	const char *name;
	__u32 by;	    /* enum ibs_by bits that counters need, or BY_SYMBOL */
	unsigned int flags; /* KEY_* */
	const char *meaning;
};

extern const struct label_info label_info[LABEL_ALL];

const char *label_name(enum label l);

/* Return: 0, or -EINVAL with @err if samples of the event do not have the key. */
int label_check_event(enum label l, bool fetch, struct err *err);

struct series;

/* The name of a series under one of LABELS_PAIR. */
const char *series_label(const struct series *s, enum label l);

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
