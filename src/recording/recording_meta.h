/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of a recording that are JSON: what it is of, and the ledger. */
#ifndef IBSCOPE_RECORDING_META_H
#define IBSCOPE_RECORDING_META_H

#include "trace/trace.h"

/**
 * recording_meta_encode() - the description of a recording
 *
 * Bytes that are not UTF-8 become question marks.
 *
 * Return: malloc()ed text.
 */
char *recording_meta_encode(const struct trace_info *info);

/**
 * recording_meta_decode() - the same back
 * @pmu:	of TRACE_EVENTS; becomes info->pmu
 * @topology:	becomes info->topology, if there is one
 * @memory:	of MEMORY_RANGES; becomes info->memory
 *
 * What is missing, or has another type than expected, is left empty.
 *
 * Return: NULL, or what is wrong with it.
 */
const char *recording_meta_decode(const char *text, size_t bytes, struct trace_info *info,
				  struct trace_pmu *pmu, struct trace_topology *topology,
				  struct memory_range *memory);

/* @ledgers: @n of them, one for each event, or NULL; @unwritten: blocks that could not be. Return: malloc()ed text. */
char *recording_ledger_encode(const struct ledger *ledgers, unsigned int n, __u64 unwritten);

/**
 * recording_ledger_decode() - the same back
 * @end: gets what there is of ledgers
 *
 * Return: 1; 0 without a ledger, or with one that has outcomes this program does not know, and so
 * would not balance; -EINVAL if the text is no such thing.
 */
int recording_ledger_decode(const char *text, size_t bytes, struct trace_end *end,
			    __u64 *unwritten);

#endif
