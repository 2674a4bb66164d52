/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of a recording between the samples, as they lie in the file. */
#ifndef IBSCOPE_RECORDING_EVENTS_H
#define IBSCOPE_RECORDING_EVENTS_H

#include "recording_format.h"
#include "trace/trace.h"

#define RECORDING_STRINGS 4 /* most strings of an event */

/**
 * recording_event_encode() - the fixed part of an event
 * @out:    its `bytes` is left to the caller
 * @strings: what follows, each with its final 0
 * @n:	     how many of them
 *
 * Return: size of the fixed part, 0 for a kind that is no such event.
 */
size_t recording_event_encode(const struct trace_event *ev, struct recording_event *out,
			      const char *strings[RECORDING_STRINGS], unsigned int *n);

/**
 * recording_event_decode() - the event at the start of a buffer
 * @out: strings point into @in
 * @bytes: how long the event is
 *
 * Return: 1, 0 for a kind that is not known, or -EINVAL: the buffer is damaged.
 */
int recording_event_decode(const unsigned char *in, size_t n, struct trace_event *out,
			   size_t *bytes);

#endif
