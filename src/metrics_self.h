/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the process that serves metrics says of itself. */
#ifndef IBSCOPE_METRICS_SELF_H
#define IBSCOPE_METRICS_SELF_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct metrics_self {
	double read_s; /* that the reading took; set by metrics_read() */
	__u64 scrapes, reads, read_errors;
	__u64 connections, crowded_out;
	bool mapped;
};

enum metrics_format;

/* With the process metrics that Prometheus' client libraries have. */
void metrics_self_print(FILE *f, enum metrics_format format, const struct metrics_self *self);

void metrics_self_list(FILE *f);

#endif
