/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cache lines and who shares them. What threads did to a line are accesses, added up; a line, its slots
 * and the verdict follow from accesses alone, wherever these were counted.
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

/* Names in LINE_FEED_TABLE, and their bits of ibs_config.line_feed. NULL and 0 behind the last. */
const char *line_feed_name(unsigned int i);
__u32 line_feed_bits(unsigned int i);

/* What one instruction of one thread did to one address on one CPU, with one kind of answer. */
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
};
enum { LINE_HAS_TASK = 1, LINE_HAS_CPU = 2, LINE_HAS_IP = 4, LINE_KERNEL = 8 };

/*
 * Threads and CPUs as far as sharing needs them: two accesses are shared if both thread and CPU differ.
 * Whatever was added, for each access that shares with some of it one of these is left to share with.
 */
#define LINE_USERS 6
struct line_users {
	unsigned int n;
	struct {
		__u64 thread, cpu;
	} user[LINE_USERS];
};

void line_users_add(struct line_users *u, const struct line_access *a);
/* Is there one of each whose threads and CPUs differ? */
bool line_users_share(const struct line_users *a, const struct line_users *b);

struct line_slot {
	__u64 loads, stores, hitm;
	struct line_users all, writers;
	bool shared; /* several use it, and one of them writes */
};

struct line {
	__u64 address; /* of its first byte; 0 with neither bit below: not recorded */
	bool physical, virtual;
	__u64 space; /* of virtual ones: pid, or LINE_SPACE_KERNEL */
	bool moved;  /* several physical lines, joined by the virtual address */
	enum line_verdict verdict;
	bool likely; /* the hardware did not report states, so the verdict is not proved */
	__u64 samples, loads, stores, valid, sum, cycles, known, hitm_cycles;
	__u64 from[LINE_FROM_N];
	__u32 cpus, threads;
	const struct line_access *access;
	size_t n_access;
};

/* Fill @slots of LINE_SLOTS from the accesses of a line. Prefetches are not in any slot. */
void line_slots(const struct line *l, struct line_slot *slots);

/* '.' not used, 'r' read, 'w' written, 'W' written and used by several */
static inline char line_slot_mark(const struct line_slot *s)
{
	return s->shared ? 'W' : s->stores ? 'w' : s->loads ? 'r' : '.';
}

/* Bit k: slot k is touched. 0 where the address of the access is not known. */
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
 * @stores: the recording has stores; else nothing is said of sharing
 */
void line_judge(struct line *l, bool stores);

/* --- from a recording --- */

struct lines_opts {
	const struct trace_info *info; /* outlives the lines */
	enum ibs_metric metric;
};

struct lines {
	struct line *line;
	size_t n;
	struct line total;  /* its slots and users mean nothing */
	struct ibs_cpu cpu; /* that took the samples */
	bool has_period;    /* of all samples, so that cycles are miss cycles */
	__u64 physical, only_virtual, no_address; /* samples that load or store */
	__u64 other;				  /* that do not */
	__u64 moved;				  /* pages */
	/* of lines_add_window(), without tables of none: samples */
	struct lines_hot {
		__u64 tables;
		__u64 fed;	/* that the tables were made of, */
		__u64 kept;	/* and that the lines have */
		__u64 lack;	/* that none of the lines lacks more of */
		__u64 replaced; /* not samples: lines that lost their place */
		__u64 any;	/* as `lack`, of any line, with details in each window or not */
		__u64 windows;
		__u64 cpus; /* whose tables have samples */
		__u64 feed; /* as in hot_tables */
	} hot;
};

struct line_set;

struct line_set *lines_new(const struct lines_opts *opts);
/* Add a sample of ibs_op. */
void lines_add(struct line_set *s, const struct trace_event *ev);
/* The tables of the CPUs that samples were taken on. */
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

/* What tables of hot lines know, after these have been cleared. Copied as it is between processes. */
struct hot_window {
	__u64 tables, fed, no_address, replaced; /* sums of the tables */
	__u64 cpus;				 /* tables with samples */
	__u64 period, weighed, feed, time;	 /* as of hot_tables */
	struct ibs_cpu ibs;
	__u64 lack;   /* samples: no line lacks more in its details here */
	__u64 hidden; /* and no line without details here has had more */
	__u64 lines;  /* with details */
	__u64 n;
	struct hot_detail {
		struct ibs_line_detail d;
		__u32 cpu, pad;
	} detail[]; /* those of a line follow each other */
};

/**
 * hot_window_new() - read tables of hot lines (ibscope/hot_lines.h), which are in use no more
 * @most: details that are kept, of the lines with most samples
 *
 * Return: to be freed with free().
 */
struct hot_window *hot_window_new(const struct hot_tables *t, size_t most);

/**
 * lines_add_window() - add what tables of hot lines know
 *
 * Samples, kinds of access and sources of a line are exact, and so are modified lines of a slot; the other
 * sources of a slot are not. A CPU knows one reader and one writer of a line by name, other threads by 5
 * bits of their number, and one virtual address. Accesses have the time of their window.
 */
void lines_add_window(struct line_set *s, const struct hot_window *w);
/* All lines, in no order; they live as long as @s, to which nothing can be added any more. */
const struct lines *lines_finish(struct line_set *s);
void lines_free(struct line_set *s); /* accepts NULL */

/* What selects samples, beside tasks and cgroups. */
struct lines_selection {
	__u32 src_mask, op_mask, min_lat, max_lat; /* 0: any, as in struct selection */
	const char *filter;			   /* NULL or "": none */
};

/**
 * lines_hidden() - does a selection drop stores, or hits in caches, so that sharing cannot be judged?
 *
 * Return: false; or true with the option and what it drops in @err.
 */
bool lines_hidden(const struct lines_selection *sel, struct err *err);
/* The same of the events and the selection that a recording was made with. */
bool lines_hidden_in(const struct trace_info *info, struct err *err);

#endif
