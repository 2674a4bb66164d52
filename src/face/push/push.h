/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pushes profiles of a running collector to a server: once per interval it copies the counted samples for a
 * while; the counts do not change. A separate process resolves names, makes a profile and posts it, so that
 * neither a slow server nor large symbol tables delay the collector.
 */
#ifndef IBSCOPE_PUSH_H
#define IBSCOPE_PUSH_H

#include "push_opts.h"
#include "session/session.h"

#include <ibscope/pin_layout.h>
#include <poll.h>

const char *push_format_name(unsigned int format);

/**
 * push_check() - check the options, fill in defaults, and make the sampler copy samples
 * @s: not open yet
 *
 * Return: 0, or a negative errno with @err.
 */
int push_check(struct push_opts *opts, struct sampling_opts *s, struct err *err);

struct push;

/*
 * @opts must have passed push_check(). @s: open; must outlive the push, and may be opened again after
 * push_closing().
 * @counts: updated
 */
struct push *push_new(const struct push_opts *opts, struct session *s,
		      struct ibs_push_counts *counts);

#define PUSH_FDS 2

/* What to poll for. Return: the longest time in ms; -1: no limit. */
int push_prepare(struct push *p, struct pollfd fds[PUSH_FDS]);

/**
 * push_run() - do what is due
 * @until_ns: CLOCK_MONOTONIC; samples up to this time have the period that was in force at the last call
 */
void push_run(struct push *p, __u64 until_ns);

/* The sampler is about to be closed: end the profile. */
void push_closing(struct push *p);

/* Is there a profile without an outcome yet? */
bool push_pending(const struct push *p);

/* The last failure; "" if a profile was delivered since. */
const char *push_failure(const struct push *p);

/* Number of files whose functions are not named, because reading them costs too much. */
unsigned int push_given_up(const struct push *p);

/* Cancel pending profiles, and log the undelivered samples. Accepts NULL. */
void push_free(struct push *p);

#endif
