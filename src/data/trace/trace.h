/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stream of samples and events in time order, and facts about the machine that they come from. */
#ifndef IBSCOPE_TRACE_H
#define IBSCOPE_TRACE_H

#include "base/std.h"
#include "counts/snapshot.h"
#include "event/cpu.h"
#include "machine/machine.h"
#include "parts.h"
#include "weights.h"

#include <ibscope/fetch_fields.h>
#include <ibscope/op_fields.h>
#include <ibscope/record.h>

/* Contents of a recording: facts about the machine, samples, events, and its end. */

#define TRACE_STACK_MAX IBS_STACK_MAX

/* One event (as of -e) that samples were taken with. */
struct trace_pmu {
	char name[128]; /* as the user wrote it: "ibs_op/cnt_ctl=1/" */
	bool op;	/* samples are of ibs_op; else of ibs_fetch */
	bool freq;	/* `period` is a frequency in Hz */
	bool filtered;	/* in hardware: a sample represents more than a period */
	__u32 reach; /* of two strata (strata/strata.h): 1 << enum ibs_src of samples that both take */
	bool physical;	  /* physical addresses were recorded */
	bool stacks;	  /* call chains were */
	__u32 copy_bytes; /* stacks of user space were, up to so many bytes, to be unwound; 0: no */
	__u64 period;	  /* 0: unknown */
	__u64 config, config1; /* perf.data only: terms that `name` may lack */
};

#define TRACE_EVENTS 2 /* of a recording of ours: ibs_op and ibs_fetch, or two strata of ibs_op */
#define TRACE_CPUS   8192

/* The core complex (cores that share an L3), NUMA node and socket of each CPU, and distances between nodes. */
struct trace_topology {
	unsigned int n; /* CPUs */
	bool has_sockets;
	__u16 ccx[TRACE_CPUS], node[TRACE_CPUS], socket[TRACE_CPUS];
	struct node_distances distance;
};

/* L3 complexes; 0 if @t is NULL. */
static inline unsigned int trace_complexes(const struct trace_topology *t)
{
	unsigned int n = 0;

	for (unsigned int cpu = 0; t && cpu < t->n; cpu++)
		n = t->ccx[cpu] >= n ? t->ccx[cpu] + 1U : n;
	return n;
}

/* Facts known before the first event. Empty strings and zeros: unknown. */
struct trace_info {
	const char *format; /* "ibscope 1" or "perf.data" */
	const char *source; /* "ibs", "sim" or "replay", as in hist --json */
	bool simulated;
	char host[65], release[65], command[1024];
	struct cpu_info cpu; /* of the machine that recorded */
	bool has_cpu;	     /* otherwise only the caps in samples are known */
	unsigned int n_cpus;
	const struct trace_topology *topology; /* NULL: unknown */
	const struct memory_range *memory;     /* sorted, n_memory of them; 0: unknown */
	size_t n_memory;
	__u32 job_ranks; /* number of ranks in the whole MPI job; 0: no MPI job */
	char job[64];	 /* id of the job; "": unknown */
	const struct trace_pmu *pmu;
	unsigned int n_pmus;
	char filter[1024];   /* selection in force while recording, "" for all */
	bool full_registers; /* samples have all registers: --raw, perf */
	__u64 alloc_bytes; /* allocations of so many bytes were recorded, and a sample of smaller ones; 0: none */
	bool alloc_probes; /* instead, those that programs report by probes, whatever their size */
	__u64 realtime_ns; /* time of day at `monotonic_ns`, 0 if unknown */
	__u64 monotonic_ns;
};

enum trace_kind {
	TRACE_SAMPLE_OP,
	TRACE_SAMPLE_FETCH,
	TRACE_COMM,
	TRACE_MMAP,
	TRACE_FORK,
	TRACE_EXIT,
	TRACE_CGROUP,
	TRACE_LOST,
	TRACE_RANK,
	TRACE_REGION,
	TRACE_SLAB,
	TRACE_ALLOC,
	TRACE_FREE,
	TRACE_SLICE,
	TRACE_KIND_N,
};

/* The kind of samples that have the metric. */
static inline enum trace_kind trace_kind_of(enum ibs_metric m)
{
	return ibs_metric_of_fetch(m) ? TRACE_SAMPLE_FETCH : TRACE_SAMPLE_OP;
}

/* What a task had in user space, for a reader that unwinds its stack. */
struct trace_copy {
	const __u64 *regs;	   /* IBS_USER_REGS */
	const unsigned char *data; /* from the stack pointer up */
	__u32 bytes;
	bool cut; /* the stack goes on */
};

struct trace_sample {
	unsigned int pmu; /* index in trace_info.pmu */
	__u32 tgid, tid, cpu;
	bool has_task, has_cpu, has_time; /* perf may leave them out */
	__u64 cgroup_id;		  /* 0: unknown */
	__u64 ip;			  /* perf's, or the one of the registers */
	bool has_ip;			  /* false if RipInvalid and there is no other source */
	bool kernel;			  /* taken in kernel mode, by `ip` */
	union {
		struct ibs_op_sample op;
		struct ibs_fetch_sample fetch;
	};
	double weight;			 /* of a stratum: ops that it represents; 0: unknown */
	const struct trace_slice *slice; /* of a stratum; NULL: unknown */
	__u64 slab;			 /* of struct ibs_record_extra */
	const __u64 *stack; /* from the innermost on, perf's PERF_CONTEXT_* marks included */
	unsigned int n_stack;
	bool chain_lost; /* there was a chain, but no room for it */
	const __u64 *
		top; /* IBS_STACK_TOP words of the user stack, as in struct ibs_record_extra; or NULL */
	const struct trace_copy *copy; /* NULL: none */
};

/* Is there more of its chain than the op itself? */
static inline bool trace_has_chain(const struct trace_sample *s)
{
	return s->n_stack || s->copy;
}

/* Is `ip` the address of the op? perf replaces an invalid one by that of the interrupt. */
static inline bool trace_sample_is_exact(const struct trace_sample *s)
{
	return s->has_ip && (!(s->op.present >> IBS_OP_DATA & 1) || ibs_op_valid_rip(&s->op));
}

struct trace_mmap {
	__u32 tgid, tid;
	bool kernel; /* the kernel or a module, mapped in every process */
	bool exec;
	__u64 start, len, pgoff;
	const char *path;
	unsigned char build_id[20];
	unsigned int build_id_len; /* 0: unknown */
};

/*
 * Memory that a process got. `weight`: how many bytes of allocations it represents: its own if it was certain to be
 * recorded, more if it is one of the sampled small ones.
 */
struct trace_alloc {
	__u32 tgid, tid;
	__u64 addr, size, weight;
	const __u64 *
		stack; /* return addresses, innermost first, without those of the recording library */
	unsigned int n_stack; /* at most TRACE_STACK_MAX; 0: unknown */
	bool mapped;	      /* by mmap; else by malloc and its family */
};

/* All pointers live until the next call. */
struct trace_event {
	enum trace_kind kind;
	__u64 time;   /* ns, CLOCK_MONOTONIC or perf's own; 0 if unknown */
	__u64 offset; /* in the file, for messages */
	union {
		struct trace_sample sample;
		struct {
			__u32 tgid, tid;
			bool exec;
			const char *name;
		} comm;
		struct trace_mmap mmap;
		struct {
			__u32 tgid, tid, parent_tgid, parent_tid;
		} fork; /* also of TRACE_EXIT */
		struct {
			__u64 id;
			const char *path;
			const char *container, *pod, *ns; /* runtime's names; NULL or "": unknown */
		} cgroup;
		struct {
			__u64 n;      /* samples or other records that never came */
			bool samples; /* `n` is known to count samples */
			__u32 cpu;    /* ~0: unknown */
		} lost;
		struct {
			__u32 tgid, rank; /* rank of the process and its children */
			bool ended;	  /* it exited with this wait status: see waitpid(2) */
			int status;
		} rank;
		struct {
			__u32 tid;
			bool omp, end; /* OpenMP parallel region; the last region ends */
			__u16 number;  /* of the thread in its team */
			__u32 team;    /* the thread that began the team */
			__u64 addr;    /* in the function with an OpenMP region; 0: none begins */
			const char *name; /* of a region that begins and is not OpenMP's, else "" */
		} region;
		struct ibs_slab slab;
		struct trace_alloc alloc;
		struct {
			__u32 tgid, tid;
			__u64 addr,
				size; /* size: of a range that was unmapped; 0: what malloc gave there */
		} free;
		struct {
			__u32 of; /* enum stratum: only it sampled from `start` to `end` */
			__u64 start, end;
			__u64 ops, tags; /* counted in it on all CPUs */
			__u64 period;
		} slice;
	};
};

/* Were the samples taken in strata? Then trace_info.pmu are the full and the miss stratum, as enum stratum. */
static inline bool trace_has_strata(const struct trace_info *info)
{
	return info->n_pmus == STRATUM_N && info->pmu[STRATUM_FULL].reach;
}

static inline bool trace_copies_stacks(const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++)
		if (info->pmu[i].copy_bytes)
			return true;
	return false;
}

static inline bool trace_accesses_memory(const struct trace_event *ev)
{
	const struct ibs_op_sample *op = &ev->sample.op;

	return ev->kind == TRACE_SAMPLE_OP && (op->present & 1u << IBS_OP_DATA3) &&
	       (op->reg[IBS_OP_DATA3] & IBS_OP_DATA3_MEM);
}

/* The first event of this kind in @info; without one, info->n_pmus. */
static inline unsigned int trace_event_of(const struct trace_info *info, bool op)
{
	unsigned int i = 0;

	while (i < info->n_pmus && info->pmu[i].op != op)
		i++;
	return i;
}

/* Were call chains recorded? */
static inline bool trace_has_chains(const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++)
		if (info->pmu[i].stacks)
			return true;
	return false;
}

/* The node of the memory at a physical address, or -1. */
static inline int trace_memory_node(const struct trace_info *info, __u64 phys)
{
	return memory_node(info->memory, info->n_memory, phys);
}

/* Facts known at the end of the file. */
struct trace_end {
	bool whole;	   /* the writer ended cleanly, and all blocks were read */
	char missing[256]; /* otherwise what is missing and why, for messages */
	__u64 skipped_blocks, skipped_bytes; /* damaged */
	__u64 other_samples;		     /* of events that are not IBS, or without registers */
	__u64 lost_allocs;		     /* allocations and frees that could not be recorded */
	bool has_ledger;
	struct ledger ledger; /* of all events */
	unsigned int
		n_ledgers; /* of the events of trace_info.pmu, in that order; 0: not known apart */
	struct ledger event_ledger[TRACE_EVENTS];
};

/*
 * A recording as a sequence of events, written by ibscope (recording.h) or perf (perf_data.h). All commands
 * read recordings through this interface.
 */

/* Filled in by formats; everybody else reads it through the functions below. */
struct trace {
	const struct trace_format *format;
	struct trace_info info;
	struct trace_end end;
	__u64 done, total;	      /* bytes read so far, and of the whole file */
	bool skips_samples;	      /* by trace_skip_samples(); formats may ignore it */
	bool skips_allocs;	      /* by trace_skip_allocs(); likewise */
	bool skips_first_threads;     /* by trace_skip_first_threads(); likewise */
	struct trace_weights weights; /* of strata */
};

/**
 * trace_open() - open a recording of any known format
 * @path: "-" is standard input, which need not be seekable; FILE#2 is the second recording of a merged file;
 *	   FILE alone works if it has only one
 *
 * Return: 0; or a negative errno with offset and reason in @err: -EINVAL for an unknown format, or if
 * damage leaves nothing to read.
 */
int trace_open(const char *path, struct trace **out, struct err *err);

/* Set the memory limit of a process that reads recordings, in bytes; 0: 1 GiB. Call before the first one is opened. */
void trace_limit_memory(__u64 bytes);

/* The same for one of several recordings. */
int trace_part_open(const struct trace_part *p, struct trace **out, struct err *err);

/* Does this event, in perf's syntax, drop ops in hardware? For trace_pmu.filtered. */
bool trace_event_filtered(const char *event);

static inline const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

/**
 * trace_next() - the next event
 *
 * Events of one CPU are sorted by time; those of several CPUs nearly, as far as the writer sorted them.
 * Damaged parts are skipped if the format allows it, and reported by trace_end().
 *
 * Return: 1 and *ev; 0 at the end; or a negative errno with @err if nothing more can be read.
 */
int trace_next(struct trace *t, struct trace_event *ev, struct err *err);

/* What lookups for a sample to come will need, to have the processor load that early. */
struct trace_hint {
	__u64 ip;
	__u32 tgid, tid;
};

/*
 * Look at the sample that comes after @n others, if the format has it at hand. It may come in another order: use it for
 * nothing but prefetching. Return: whether *out is set.
 */
static inline bool trace_ahead(const struct trace *t, unsigned int n, struct trace_hint *out);

/*
 * Is it known what the samples represent? A recording with strata that was cut in its first slice, or whose slices are
 * damaged, does not say.
 */
bool trace_weights_known(const struct trace *t);

/* All slices of a recording with strata, in order of time. Return: NULL: none */
const struct trace_slice *trace_slices(const struct trace *t, size_t *n);

/*
 * From now on samples are not wanted: formats that can skip them unread do so. trace_rewind() ends that.
 * Damage inside of skipped samples is not noticed.
 */
static inline void trace_skip_samples(struct trace *t)
{
	t->skips_samples = true;
}

/* From now on samples of the first threads of processes, or of unknown ones, are not wanted; likewise. */
static inline void trace_skip_first_threads(struct trace *t)
{
	t->skips_first_threads = true;
}

/* From now on, also after trace_rewind(), allocations and frees are not wanted: formats that can skip them do so. */
static inline void trace_skip_allocs(struct trace *t)
{
	t->skips_allocs = true;
}

/*
 * Show on a terminal at standard error how far the recording is read, in each pass that takes long. The line is
 * erased at the end of the pass. For commands that print nothing before they have read everything.
 */
void trace_show_progress(const struct trace *t);

/* Return to the first event. Return: 0 */
int trace_rewind(struct trace *t, struct err *err);

/* Valid after trace_next() returned 0. */
static inline const struct trace_end *trace_end(const struct trace *t)
{
	return &t->end;
}

void trace_close(struct trace *t); /* accepts NULL */

/*
 * What records are that a TRACE_LOST counts and that may not be samples. Of our own recordings it is known: samples are in
 * the ledger.
 */
const char *trace_lost_kind(const struct trace_info *info);
/* A sentence without a full stop that @n of them were lost. */
void trace_lost_text(const struct trace_info *info, __u64 n, char *buf, size_t size);

/* --- interface of a file format; a new one is a row in trace.c --- */

#define TRACE_MAGIC_BYTES 32

/*
 * Recordings expand to at most 20 times their size when they are read. Refuse what expands much further, since
 * its reader would take gigabytes or minutes for a small file.
 */
#define TRACE_EXPANSION	     100
#define TRACE_EXPANSION_FREE (16ULL << 20)

/* Return: 0, or -EBADMSG with @err if @bytes of a file expanded to too many. */
int trace_check_expansion(__u64 bytes, __u64 expanded, struct err *err);

struct trace_format {
	/* Do the first bytes of a file look like it? */
	bool (*magic)(const unsigned char *bytes, size_t n);
	/*
	 * @fd is seekable, and owned by the format from then on, also on failure. The recording begins at @offset
	 * and has @bytes, 0: up to the end of the file; other formats than our own always fill the file. *t is the
	 * first member of the format's struct.
	 */
	int (*open)(int fd, __u64 offset, __u64 bytes, struct trace **t, struct err *err);
	int (*next)(struct trace *t, struct trace_event *ev, struct err *err);
	/* See trace_ahead(). NULL: nothing is known of samples to come. */
	bool (*ahead)(const struct trace *t, unsigned int n, struct trace_hint *out);
	void (*rewind)(struct trace *t);
	void (*close)(struct trace *t);
};

static inline bool trace_ahead(const struct trace *t, unsigned int n, struct trace_hint *out)
{
	return t->format->ahead && t->format->ahead(t, n, out);
}

extern const struct trace_format recording_format; /* recording_read.c */
extern const struct trace_format perf_data_format; /* perf_data.c */

#endif
