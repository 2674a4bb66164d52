/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flight recorder of a collector: programs keep copies of the last samples in memory, and nothing
 * reads them until somebody asks for a recording. A separate process writes it, so that neither names
 * nor a slow disk delay the collector.
 */
#ifndef IBSCOPE_FLIGHT_H
#define IBSCOPE_FLIGHT_H

#include "flight_slow.h"
#include "flight_when.h"

#include "session/session.h"

#include <ibscope/pin_layout.h>

struct flight_opts {
	double seconds; /* 0: no flight recorder */
	__u64 bytes;	/* of all rings */
	/* recordings that it writes by itself */
	struct flight_condition on[FLIGHT_CONDITIONS];
	unsigned int n_on;
	char dir[256];		/* "": the default */
	double every_s;		/* least time between the starts of two; 0: the default */
	__u64 files, dir_bytes; /* to keep; 0: the default */
};

/* The context is a struct flight_opts. */
extern const struct option_row flight_options[];
extern const size_t flight_n_options;

/* Make the sampler keep copies of samples, if there is a recorder. Return: 0, or -EINVAL with @err. */
int flight_check(const struct flight_opts *opts, struct sampling_opts *s, struct err *err);

struct flight;

struct flight *flight_new(void);

/* Ends a recording that is not complete. Accepts NULL. */
void flight_free(struct flight *f);

/*
 * Start with empty rings, or turn the recorder off. Call it after each session_open(), before sampling
 * starts. @s: must outlive @f, or be followed by another. Return: 0; or a negative errno with @err if its
 * directory cannot be used.
 */
int flight_begin(struct flight *f, const struct flight_opts *opts, struct session *s,
		 struct err *err);

/* Call once a second: also checks the conditions. */
void flight_tick(struct flight *f);

/* Write a recording into the directory, as on SIGUSR2. Problems are logged. */
void flight_signal(struct flight *f);

/* What became of recordings since the last call, by enum ibs_flight_outcome. Return: whether there is a recorder. */
bool flight_counts(struct flight *f, __u64 out[IBS_FLIGHT_N]);

/* The slowest samples in the newest recording of the directory; NULL: they are those of the last call. */
const struct flight_slowest *flight_new_slowest(struct flight *f);

/* A recording for somebody. */
struct flight_request {
	int file;		   /* open for writing; the caller closes it */
	int connection;		   /* gets the answer, as control.h describes; -1: nobody waits */
	char by[FLIGHT_TEXT + 64]; /* for the log: "uid 0, process 17" */
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
