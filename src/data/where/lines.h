/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cache lines and who shares them. Samples of a line are summed up as accesses. The line's slots and its
 * verdict are computed from these accesses, whether they come from a recording or from the kernel's tables.
 */
#ifndef IBSCOPE_LINES_H
#define IBSCOPE_LINES_H

#include "trace/trace.h"

#include <ibscope/hot_lines.h>

#define LINE_BYTES	  64
#define LINE_SLOTS	  8
#define SLOT_BYTES	  (LINE_BYTES / LINE_SLOTS)
#define LINE_SPACE_KERNEL (1ull << 32) /* in place of a pid */

/* X(NAME, "name") */
#define LINE_VERDICT_TABLE(X)     \
	X(UNKNOWN, "unknown")     \
	X(PRIVATE, "private")     \
	X(READ_ONLY, "read-only") \
	X(SHARED, "shared")       \
	X(FALSE, "false sharing") \
	X(TRUE, "true sharing")   \
	X(MIXED, "true and false sharing")

enum line_verdict {
#define LINE_VERDICT_ENUM(name, ...) LINE_VERDICT_##name,
	LINE_VERDICT_TABLE(LINE_VERDICT_ENUM)
#undef LINE_VERDICT_ENUM
		LINE_VERDICT_N
};

const char *line_verdict_name(enum line_verdict v);

/* Names in LINE_FEED_TABLE, and their bits of ibs_config.line_feed. NULL and 0 after the last. */
const char *line_feed_name(unsigned int i);
__u32 line_feed_bits(unsigned int i);

/* Samples of one instruction, thread, address, CPU and source of the answer. */
struct line_access {
	__u64 phys, addr; /* of the first byte; 0: not recorded */
	__u64 ip;	  /* 0: not known */
	__u64 cgroup_id;  /* 0: not known */
	__u32 tgid, tid, cpu;
	__u8 width; /* bytes, 0: not known */
	__u8 kind;  /* LINE_* bits */
	__u8 from;  /* enum line_from */
	__u8 has;   /* LINE_HAS_* bits */
	/* sums; cycles are latencies, each times the ops of its sample (1 if unknown) */
	__u64 samples, valid, sum, cycles;
	__u64 first, last; /* time */
	/* of the samples' cycles, as in struct estimate; NAN: unknown */
	float squares, largest;
};
enum { LINE_HAS_TASK = 1, LINE_HAS_CPU = 2, LINE_HAS_IP = 4, LINE_KERNEL = 8 };

/*
 * Two accesses share a line if both their threads and their CPUs differ. This keeps few of the users that
 * were added: enough that an access shares with one of them if it shares with any user that was added.
 */
#define LINE_USERS 6
struct line_users {
	unsigned int n;
	struct {
		__u64 thread, cpu;
	} user[LINE_USERS];
};

/* Does each set have a user so that the two differ in both thread and CPU? */
bool line_users_share(const struct line_users *a, const struct line_users *b);

struct line_slot {
	__u64 loads, stores, hitm;
	struct line_users all, writers;
	bool shared; /* it has several users, and one of them writes */
};

struct line {
	__u64 address; /* of its first byte; 0 with neither bit below: not recorded */
	bool physical, virtual;
	__u64 space; /* of virtual ones: pid, or LINE_SPACE_KERNEL */
	bool moved;  /* several physical lines, joined by the virtual address */
	enum line_verdict verdict;
	bool likely; /* the hardware did not report states, so the verdict is not proved */
	__u64 samples, loads, stores, valid, sum, cycles, known, hitm_cycles;
	float squares, largest; /* as in struct line_access */
	__u64 from[LINE_FROM_N];
	__u32 cpus, threads;
	const struct line_access *access;
	size_t n_access;
};

/* Fill LINE_SLOTS @slots from the accesses of a line. Prefetches do not count in any slot. */
void line_slots(const struct line *l, struct line_slot *slots);

/* '.' unused, 'r' read, 'w' written, 'W' written and shared */
static inline char line_slot_mark(const struct line_slot *s)
{
	return s->shared ? 'W' : s->stores ? 'w' : s->loads ? 'r' : '.';
}

/* Bit k: slot k is accessed. 0 if the address of the access is unknown. */
unsigned int line_access_slots(const struct line_access *a);
/* The address space of a virtual address. */
static inline __u64 line_space(const struct line_access *a)
{
	return a->addr >> 63 ? LINE_SPACE_KERNEL : a->tgid;
}

/* Offset of the first accessed byte in its line. */
static inline unsigned int line_access_offset(const struct line_access *a)
{
	return (a->addr ?: a->phys) % LINE_BYTES;
}

/**
 * line_judge() - set totals and verdict from the accesses
 * @stores: the recording has stores; without them sharing is not judged
 */
void line_judge(struct line *l, bool stores);

/* --- from a recording --- */

struct lines_opts {
	const struct trace_info *info; /* outlives the lines */
	enum ibs_metric metric;
	/*
	 * If there are so many accesses, forget those of the coldest lines, half of them or more. A line that comes
	 * back lacks what it had before. 0: no limit.
	 */
	size_t most;
};

struct lines {
	struct line *line;
	size_t n;
	const struct line_access *end; /* of those of all lines, which are one array */
	struct line total;	       /* its slots and users are meaningless */
	struct ibs_cpu cpu;	       /* processor that took the samples */
	bool strata;	 /* samples have different weights, so the sums of latencies say nothing */
	bool has_period; /* the period of all samples is known: cycles are miss cycles */
	__u64 physical, only_virtual, no_address; /* samples that load or store */
	__u64 other;				  /* other samples */
	__u64 moved;				  /* pages */
	__u64 trimmed;				  /* samples, by lines_opts.most */
	__u64 trimmed_cycles, trimmed_hitm; /* of these, as cycles and hitm_cycles of a line */
	/* samples of lines_add_window() */
	struct lines_hot {
		__u64 tables;
		__u64 fed;	/* seen by the tables */
		__u64 kept;	/* counted in lines */
		__u64 lack;	/* upper bound of what a line lacks */
		__u64 replaced; /* not samples: lines that lost their place */
		__u64 any;	/* as `lack`, of any line, with details in each window or not */
		__u64 windows;
		__u64 cpus; /* CPUs with samples in their tables */
		__u64 feed; /* as in hot_tables */
	} hot;
};

struct line_set;

struct line_set *lines_new(const struct lines_opts *opts);
/* Add a sample of ibs_op. */
void lines_add(struct line_set *s, const struct trace_event *ev);
/* Tables of hot lines, one for each sampled CPU. */
struct hot_tables {
	const struct hot_table {
		const struct ibs_lines *lines;
		__u32 cpu;
	} * table; /* by CPU */
	size_t n;
	__u32 sets;
	__u64 period; /* of all samples; 0: not known */
	bool weighed; /* latencies are multiplied by it already */
	__u32 feed;   /* ibs_config.line_feed */
	__u64 time;   /* CLOCK_MONOTONIC of the exchange */
	struct ibs_cpu ibs;
};

/* A copy of what tables of hot lines counted. Processes exchange it as bytes. */
struct hot_window {
	__u64 tables, fed, no_address, replaced; /* sums of the tables */
	__u64 cpus;				 /* tables with samples */
	__u64 period, weighed, feed, time;	 /* as of hot_tables */
	struct ibs_cpu ibs;
	__u64 lack;   /* samples: upper bound of what the details of a line lack */
	__u64 hidden; /* upper bound of a line without details */
	__u64 lines;  /* with details */
	__u64 n;
	struct hot_detail {
		struct ibs_line_detail d;
		__u32 cpu, pad;
	} detail[]; /* grouped by line */
};

/**
 * hot_window_new() - read tables of hot lines (ibscope/hot_lines.h) that programs no longer use
 * @most: number of details to keep, of the lines with most samples
 *
 * Return: the caller frees it with free().
 */
struct hot_window *hot_window_new(const struct hot_tables *t, size_t most);

/**
 * lines_add_window() - add the counts of tables of hot lines
 *
 * Samples, kinds of access and sources of a line are exact, and so are the HITM counts of a slot, but not
 * the other sources of a slot. For each CPU a table has one reader and one writer of a line, 5 bits of the
 * tid of other threads, and one virtual address. Accesses get the time of their window.
 */
void lines_add_window(struct line_set *s, const struct hot_window *w);
/* All lines, unsorted. They live as long as @s; nothing can be added to @s after this call. */
const struct lines *lines_finish(struct line_set *s);
void lines_free(struct line_set *s); /* accepts NULL */

/* Options that select samples by other things than tasks and cgroups. */
struct lines_selection {
	__u32 src_mask, op_mask, min_lat, max_lat; /* 0: any, as in struct selection */
	const char *filter;			   /* NULL or "": none */
};

/**
 * lines_hidden() - whether a selection drops stores or cache hits, so that sharing cannot be judged
 *
 * Return: true, with the option and what it drops in @err; or false.
 */
bool lines_hidden(const struct lines_selection *sel, struct err *err);
/* The same for the events and the selection of a recording. */
bool lines_hidden_in(const struct trace_info *info, struct err *err);

#endif
