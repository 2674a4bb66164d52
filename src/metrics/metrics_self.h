/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the process that serves metrics measures of itself. */
#ifndef IBSCOPE_METRICS_SELF_H
#define IBSCOPE_METRICS_SELF_H

#include <linux/types.h>
#include <stdbool.h>

struct metrics_self {
	double read_s; /* duration of the reading; set by metrics_read() */
	__u64 scrapes, reads, read_errors;
	__u64 connections, crowded_out;
	__u64 passwords_checked, passwords_wrong;
	__u64 config_errors; /* failed reloads of certificates and passwords */
	bool mapped;
	bool failing; /* the last attempt to read counters failed */
};

/* As the client libraries of Prometheus report it; NAN where unknown. */
struct process_stats {
	double cpu_s, rss_bytes, virtual_bytes, open_fds, max_fds, start_s;
};

void process_stats_read(struct process_stats *out);

#endif
