/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon: samples within a budget, pins counters for readers, answers `ibscope ctl`, and resumes
 * the counters of an earlier collector. The program runs the main loop:
 *
 *	collector_new(), collector_open()
 *	loop: collector_prepare(), poll(), collector_run()
 *	collector_finish(), collector_free()
 */
#ifndef IBSCOPE_COLLECTOR_H
#define IBSCOPE_COLLECTOR_H

#include "collector_settings.h"

#include <poll.h>

struct collector;
struct reading_push;

/**
 * collector_new() - parse the options
 *
 * Return: 0, OPTIONS_HELP, or a negative errno with @err; call collector_free() in any case.
 */
int collector_new(const struct collector_opts *opts, struct collector **out, struct err *err);
void collector_free(struct collector *c); /* accepts NULL */

struct session *collector_session(const struct collector *c);
const struct collector_settings *collector_settings(const struct collector *c);
void collector_help(const struct collector *c, FILE *f);

/* Lock the pin directory, listen for requests, sample. Return: 0 or a negative errno with @err. */
int collector_open(struct collector *c, struct err *err);

#define COLLECTOR_FDS 3

/* Set the descriptors to poll. Return: timeout in ms; -1: none. */
int collector_prepare(struct collector *c, struct pollfd fds[COLLECTOR_FDS]);

/* Call after poll(). Return: 0; or a negative errno with @err if the collector must exit. */
int collector_run(struct collector *c, const struct pollfd fds[COLLECTOR_FDS], struct err *err);

/**
 * collector_check_set() - would a collector without other options take these?
 * @text: @n bytes and a NUL, a request "set" of control.h; modified
 *
 * What depends on the machine is not checked. Return: 0, or a negative errno with @err.
 */
int collector_check_set(const struct collector_extra *extra, char *text, size_t n, struct err *err);

/* Read the options again. If they are invalid, log that and keep the old ones. */
void collector_reload(struct collector *c);

/* Let the flight recorder write its last samples, as on SIGUSR2. */
void collector_dump_flight(struct collector *c);

/* Charge the CPU time between the two calls to @kind; the rest counts as IBS_WORK_COUNTERS. */
__u64 collector_work_begin(void);
void collector_work_end(struct collector *c, enum ibs_work kind, __u64 began);

/* Seconds until work of that kind may continue; 0: now. */
double collector_work_wait(struct collector *c, enum ibs_work kind);

/* Counts of --push since the collector started. The caller adds to them. */
struct ibs_push_counts *collector_push_counts(struct collector *c);

/* What `ctl status` prints of --push besides the counts; @now->failure must stay valid. */
void collector_set_push(struct collector *c, const struct reading_push *now);

/* True if invalid user input caused the failure. */
bool collector_usage_error(const struct collector *c);

/**
 * collector_finish() - stop sampling, write the last status and remove the socket
 * @ret: result of collector_open() or collector_run()
 *
 * Return: @ret, or if it was 0 an error of this function, with @err.
 */
int collector_finish(struct collector *c, int ret, struct err *err);

#endif
