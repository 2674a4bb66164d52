/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flight recorder of a collector: programs keep copies of the last samples in memory, and nothing
 * reads them until somebody asks for a recording. A separate process writes it, so that neither names
 * nor a slow disk delay the collector.
 */
#ifndef IBSCOPE_FLIGHT_H
#define IBSCOPE_FLIGHT_H

#include "session/session.h"

struct flight_opts {
	double seconds; /* 0: no flight recorder */
	__u64 bytes;	/* of all rings */
};

/* Parse the argument of --flight: TIME[:SIZE]. Return: 0, or -EINVAL with @err. */
int flight_parse(const char *arg, struct flight_opts *out, struct err *err);

/* Make the sampler keep copies of samples, if there is a recorder. Return: 0, or -EINVAL with @err. */
int flight_check(const struct flight_opts *opts, struct sampling_opts *s, struct err *err);

struct flight;

struct flight *flight_new(void);

/* Ends a dump that is not complete. Accepts NULL. */
void flight_free(struct flight *f);

/*
 * Start with empty rings, or turn the recorder off. Call it after each session_open(), before sampling
 * starts. @s: must outlive @f, or be followed by another
 */
void flight_begin(struct flight *f, const struct flight_opts *opts, struct session *s);

/* Call once a second. */
void flight_tick(struct flight *f);

/* A dump for somebody. */
struct flight_request {
	int file;	/* open for writing; the caller closes it */
	int connection; /* gets the answer, as control.h describes; -1: nobody waits */
	char by[64];	/* for the log: "uid 0, process 17" */
};

/**
 * flight_dump() - write the last seconds as a recording
 *
 * Returns at once: another process writes the file, answers, and exits.
 *
 * Return: 0, or a negative errno with @err: -ENODATA no flight recorder; -EBUSY a dump is being
 * written; -EBADF @r->file is not open for writing.
 */
int flight_dump(struct flight *f, const struct flight_request *r, struct err *err);

#endif
