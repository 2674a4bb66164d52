/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What record takes from a command line and tells of itself in the head of a recording. */
#ifndef IBSCOPE_RECORD_TEXT_H
#define IBSCOPE_RECORD_TEXT_H

#include "sampling.h"
#include "trace.h"

/**
 * parse_size() - bytes
 * @text: decimal; K, M or G behind it multiply by 1024 and so on, as with perf
 *
 * Return: 0, or with @err -EINVAL or -ERANGE.
 */
int parse_size(const char *option, const char *text, __u64 min, __u64 max, __u64 *out,
	       struct err *err);

/* The command line as one can paste it, cut to what there is room for. */
void record_command(struct trace_info *info, int argc, char **argv);

/* All else, from a sampling that is open. @pmu lives as long as @info. */
void record_info(struct trace_info *info, struct trace_pmu *pmu, const struct sampling *s);

#endif
