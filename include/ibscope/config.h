/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a collection decides by: constants of the BPF program, of which the verifier leaves what one
 * selection needs, and plain memory in user space (src/select/select_config.c fills it for both).
 */
#ifndef IBSCOPE_CONFIG_H
#define IBSCOPE_CONFIG_H

#include <ibscope/maps.h>
#include <ibscope/predicate.h>

/* Whether the ops that each sample stands for are added up, and what they are. */
enum ibs_weigh {
	IBS_WEIGH_NO,	  /* the period does not vary */
	IBS_WEIGH_PERIOD, /* the period that the sample was taken with */
	IBS_WEIGH_TAG,	  /* ibs_control.tag_ops */
};

struct ibs_config {
	struct ibs_cpu ibs; /* that the samples are of */
	__u32 cpu_mask;	    /* of an index of CPUs */
	__u32 by;	    /* enum ibs_by bits */
	__u32 max_slots;    /* per shard */
	__u32 slot_words;
	__u32 metric; /* enum ibs_metric */
	__u32 n_comms;
	__u8 task_select;   /* enum ibs_task_select bits */
	__u8 cgroup_v1;	    /* cgroups are those of a v1 hierarchy */
	__u8 cgroup_filter; /* the filter asks for cgroups */
	__u8 comm_but;	    /* all but those names */
	__u8 lat_select;
	__u8 kind_select; /* `layout` refuses some */
	__u8 weigh;	  /* enum ibs_weigh */
	__u8 tlb;	  /* TLB misses are counted */
	/* its head is read with what is above, from one cache line of .rodata (ibs_op.bpf.c) */
	struct ibs_filter filter;
	__u16 layout[IBS_LAYOUT_ENTRIES];
	__u64 comms[IBS_COMMS_MAX][2]; /* 16 bytes each, padded with zeros */
	__u32 line_sets; /* of tables of hot lines, a power of two; 0: there are none */
	__u32 line_feed; /* 1 << enum ibs_src of the loads that are fed, IBS_LINE_FEED_WALKS */
};
_Static_assert(__builtin_offsetof(struct ibs_config, filter.terms) + 16 <= 64,
	       "what each sample reads is in one line, behind 16 bytes of other constants");
_Static_assert((__builtin_offsetof(struct ibs_config, layout) + 16) % 64 == 0,
	       "the entries of the usual sources are in one line");

#endif
