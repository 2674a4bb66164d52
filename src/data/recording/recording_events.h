/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file format of events. */
#ifndef IBSCOPE_RECORDING_EVENTS_H
#define IBSCOPE_RECORDING_EVENTS_H

#include "recording_format.h"
#include "trace/trace.h"

#define RECORDING_STRINGS 4 /* most strings of an event */

/**
 * recording_event_encode() - make the fixed part of an event
 * @out:    the caller sets its `bytes`
 * @strings: the strings that follow, each with its final 0
 * @n:	     their number
 *
 * The stack of an allocation, out->alloc.n_stack addresses, follows the fixed part, too.
 *
 * Return: size of the fixed part, 0 for samples.
 */
size_t recording_event_encode(const struct trace_event *ev, struct recording_event *out,
			      const char *strings[RECORDING_STRINGS], unsigned int *n);

/**
 * recording_event_decode() - read the event at the start of a buffer
 * @out: strings and a stack point into @in, where a stack may not be aligned
 * @bytes: length of the event
 *
 * Return: 1, 0 for an unknown kind, or -EINVAL: the buffer is damaged.
 */
int recording_event_decode(const unsigned char *in, size_t n, struct trace_event *out,
			   size_t *bytes);

/* Check all events of a block, before any is used. */
bool recording_events_ok(const unsigned char *data, size_t bytes);

/* The length of an event that was checked, if it is an allocation or a free; else 0. */
size_t recording_event_skips_alloc(const unsigned char *in);

#endif
