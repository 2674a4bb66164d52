/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* c2c of samples that are being taken. */
#ifndef IBSCOPE_LIVE_LINES_H
#define IBSCOPE_LIVE_LINES_H

#include "trace/tasks.h"
#include "session/session.h"
#include "where/lines_print.h"

/* Does a selection drop what the verdict on sharing needs? Return: 0, or -EINVAL with @err. */
int live_lines_check_selection(const struct select_options *o, struct err *err);

/* Value of --feed, to @feed of live_lines_prepare(). Return: 0, or -EINVAL with @err. */
int live_lines_feed(const char *arg, __u32 *feed, struct err *err);

/*
 * Have hot lines kept by the sampler that is about to be opened. @feed: 0: the default. Return: 0, or
 * -EINVAL with @err.
 */
int live_lines_prepare(struct sampling_opts *s, __u32 feed, struct err *err);

#define LIVE_LINES_FEED_HELP                                                                  \
	"samples that are added to hot lines: stores,caches (default), and dram (loads from " \
	"memory) or walks (loads that missed the L2 dTLB)"

/*
 * Exchange the tables of hot lines. @most: as of hot_window_new(), which gives what is returned. @share: of the time, in
 * which the event had the PMU; where the program counts ops, it has made up for it
 */
struct hot_window *live_lines_window(struct session *s, size_t most, double share);

/* Add names of those who access its lines, as of now; @s: of cgroups, too, or NULL. Return: 0 or a negative errno. */
int live_lines_names(struct tasks *tasks, struct session *s, const struct hot_window *w,
		     struct err *err);

/*
 * Print the samples since the last call. Return: 0; 1 with @err if the line of @print is not in it; or a negative
 * errno with @err.
 */
int live_lines_print(const struct lines_print *print, struct session *s,
		     const struct snapshot *interval, struct err *err);

#endif
