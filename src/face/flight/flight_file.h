/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The recording of a flight recorder, written by a process of its own. */
#ifndef IBSCOPE_FLIGHT_FILE_H
#define IBSCOPE_FLIGHT_FILE_H

#include "flight_slow.h"

/* The samples to write: those since a mark. */
struct flight_window {
	struct session *session;
	__u64 since_ns; /* CLOCK_MONOTONIC of the mark */
	const __u32 *written;
	__u64 period;	    /* 0: it varied */
	__u64 recording_ns; /* see struct ibs_exemplar */
};

/* In memory shared with the collector. */
struct flight_result {
	__u64 samples, overwritten, bytes;
	double window_s, took_s, cpu_s;
	struct flight_slowest slowest;
	struct err err; /* if it failed */
};

#define FLIGHT_TEXT_MAX 256

/* A success in words. */
void flight_result_text(const struct flight_result *r, char text[FLIGHT_TEXT_MAX]);

/**
 * flight_write() - write the recording, with names and mappings as they are now
 * @file: stays open
 *
 * For a process without the descriptors of the session: names of cgroups are those that it remembers.
 *
 * Return: 0 with *out, or a negative errno with @err.
 */
int flight_write(const struct flight_window *w, int file, struct flight_result *out,
		 struct err *err);

#endif
