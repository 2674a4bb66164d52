/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The JSON parts of a recording: description and ledger. */
#ifndef IBSCOPE_RECORDING_META_H
#define IBSCOPE_RECORDING_META_H

#include "trace/trace.h"

/**
 * recording_meta_encode() - write the description of a recording
 *
 * Bytes that are not UTF-8 become question marks.
 *
 * Return: malloc()ed text.
 */
char *recording_meta_encode(const struct trace_info *info);

/**
 * recording_meta_decode() - read the description of a recording
 * @pmu:	array of TRACE_EVENTS; becomes info->pmu
 * @topology:	becomes info->topology, if there is one
 * @memory:	array of MEMORY_RANGES; becomes info->memory
 *
 * Members that are missing or have an unexpected type stay empty.
 *
 * Return: NULL, or the reason why it is invalid.
 */
const char *recording_meta_decode(const char *text, size_t bytes, struct trace_info *info,
				  struct trace_pmu *pmu, struct trace_topology *topology,
				  struct memory_range *memory);

/**
 * recording_ledger_encode() - write ledgers
 * @ledgers:	 one for each of @n events, or NULL
 * @unwritten:	 blocks that could not be written
 * @lost_allocs: allocations and frees that could not be recorded
 *
 * Return: malloc()ed text.
 */
char *recording_ledger_encode(const struct ledger *ledgers, unsigned int n, __u64 unwritten,
			      __u64 lost_allocs);

/**
 * recording_ledger_decode() - read ledgers
 * @end: gets the ledgers and lost_allocs
 *
 * Return: 1; 0 without a ledger, or with outcomes that this program does not know, so that it would not
 * balance; -EINVAL if the text is invalid.
 */
int recording_ledger_decode(const char *text, size_t bytes, struct trace_end *end,
			    __u64 *unwritten);

#endif
