/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The IBS PMUs of a fake sysfs; include after cmocka.h. */
#ifndef IBSCOPE_TESTS_IBS_TREE_H
#define IBSCOPE_TESTS_IBS_TREE_H

#include "tree.h"

#include <ibscope/caps.h>

#define DEV "/sys/bus/event_source/devices/"

/* What 5.10, 6.1 and 7.2 show for a processor with these caps (Linux ibs.c, the *_attrs). */
enum kernel { V5_10, V6_1, V7_2 };

static inline void put_pmus(enum kernel v, __u32 caps)
{
	put_file(DEV "ibs_op/type", "11\n");
	put_file(DEV "ibs_fetch/type", "10\n");
	if (caps & IBS_CAPS_OPCNT)
		put_file(DEV "ibs_op/format/cnt_ctl", "config:19\n");
	put_file(DEV "ibs_fetch/format/rand_en", "config:57\n");
	put_file("/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	if (v >= V6_1 && (caps & IBS_CAPS_ZEN4)) {
		put_file(DEV "ibs_op/format/l3missonly", "config:16\n");
		put_file(DEV "ibs_fetch/format/l3missonly", "config:59\n");
		put_file(DEV "ibs_op/caps/zen4_ibs_extensions", "1\n");
		put_file(DEV "ibs_fetch/caps/zen4_ibs_extensions", "1\n");
	}
	if (v < V7_2)
		return;
	put_file(DEV "ibs_op/format/swfilt", "config2:0\n");
	put_file(DEV "ibs_fetch/format/swfilt", "config2:0\n");
	if (caps & IBS_CAPS_OPLDLAT) {
		put_file(DEV "ibs_op/format/ldlat", "config1:0-11\n");
		put_file(DEV "ibs_op/caps/ldlat", "1\n");
	}
	if (caps & IBS_CAPS_STRMST_RMTSOCKET) {
		put_file(DEV "ibs_op/format/strmst", "config1:12\n");
		put_file(DEV "ibs_op/caps/strmst", "1\n");
		put_file(DEV "ibs_op/caps/rmtsocket", "1\n");
	}
	if (caps & IBS_CAPS_FETCHLAT) {
		put_file(DEV "ibs_fetch/format/fetchlat", "config1:0-10\n");
		put_file(DEV "ibs_fetch/caps/fetchlat", "1\n");
	}
}

#endif
