/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events of a recording between the samples, as they lie in the file. */
#ifndef IBSCOPE_RECORDING_EVENTS_H
#define IBSCOPE_RECORDING_EVENTS_H

#include "recording_format.h"
#include "trace.h"

/**
 * recording_event_encode() - the fixed part of an event
 * @out:    its `bytes` is left to the caller
 * @string: what is to follow with its final 0; NULL if nothing is
 *
 * Return: size of the fixed part, 0 for a kind that is no such event.
 */
size_t recording_event_encode(const struct trace_event *ev, struct recording_event *out,
			      const char **string);

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
