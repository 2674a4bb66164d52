/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Configuration of the decision core: constants for the BPF program, so that the verifier drops the
 * code that a selection does not need; plain memory in user space (src/core/select/select_config.c).
 */
#ifndef IBSCOPE_CONFIG_H
#define IBSCOPE_CONFIG_H

#include <ibscope/maps.h>
#include <ibscope/predicate.h>

/* Whether to estimate ops, and how many ops each sample counts for. */
enum ibs_weigh {
	IBS_WEIGH_NO,	  /* the period does not vary */
	IBS_WEIGH_PERIOD, /* the sample's period */
	IBS_WEIGH_TAG,	  /* ibs_control.tag_ops */
	IBS_WEIGH_STRATA, /* that, or ibs_control.reach_ops; 0: the stratum does not count the sample */
};

struct ibs_config {
	struct ibs_cpu ibs; /* processor that took the samples */
	__u32 cpu_mask;	    /* applied to CPU numbers */
	__u32 by;	    /* enum ibs_by bits */
	__u32 max_slots;    /* per shard */
	__u32 slot_words;
	__u32 metric; /* enum ibs_metric */
	__u32 n_comms;
	__u8 task_select;   /* enum ibs_task_select bits */
	__u8 cgroup_v1;	    /* cgroups are those of a v1 hierarchy */
	__u8 cgroup_filter; /* the filter has cgroup terms */
	__u8 comm_but;	    /* `comms` lists the names to reject */
	__u8 lat_select;
	__u8 kind_select; /* `layout` rejects some pairs */
	__u8 weigh;	  /* enum ibs_weigh */
	__u8 tlb;	  /* count TLB misses */
	/* shares a cache line of .rodata with the members above (ibs_op.bpf.c) */
	struct ibs_filter filter;
	__u16 layout[IBS_LAYOUT_ENTRIES];
	__u64 comms[IBS_COMMS_MAX][2]; /* 16 bytes each, padded with zeros */
	__u32 line_sets;	       /* sets per hot-line table, a power of two; 0: no tables */
	__u32 line_feed; /* 1 << enum ibs_src of the loads to feed; IBS_LINE_FEED_WALKS */
	__u32 reach;	 /* with IBS_WEIGH_STRATA: 1 << enum ibs_src of what both strata sample */
	__u32 exposed; /* count exposed cycles; needs IBS_METRIC_DC_MISS_LAT and an event of ops */
};
_Static_assert(__builtin_offsetof(struct ibs_config, filter.terms) + 16 <= 64,
	       "what each sample reads must fit one line, after 16 bytes of other constants");
_Static_assert((__builtin_offsetof(struct ibs_config, layout) + 16) % 64 == 0,
	       "the entries of the usual sources must share a line");

#endif
