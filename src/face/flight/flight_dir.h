/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The directory of the recordings that a flight recorder writes by itself. */
#ifndef IBSCOPE_FLIGHT_DIR_H
#define IBSCOPE_FLIGHT_DIR_H

#include "base/output_file.h"

#include <limits.h>
#include <stdbool.h>

#define FLIGHT_DIR_DEFAULT "/var/lib/ibscope/flight"

/* A recording in writing. */
struct flight_file {
	char path[PATH_MAX];
	uint64_t time_ns; /* in its name, CLOCK_REALTIME */
	struct output_file out;
};

/**
 * flight_dir_check() - create the directory, unless it exists, and see that files can be written
 *
 * Return: 0, or a negative errno with @err.
 */
int flight_dir_check(const char *dir, struct err *err);

/* Begin a file that bears the time. Return: as output_file_begin(). */
int flight_dir_begin(const char *dir, struct flight_file *f, struct err *err);

/* The first recording that was begun between both times. Return: false if there is none, or it is unknown. */
bool flight_dir_find(const char *dir, uint64_t from_ns, uint64_t to_ns, char path[PATH_MAX]);

/**
 * flight_dir_prune() - remove the oldest recordings
 * @files, @bytes: keep no more than these, and the newest one in any case
 *
 * None that stays is older than one that is removed, even if it alone would fit.
 *
 * Only regular files with names as flight_dir_begin() gives them count and are removed.
 */
void flight_dir_prune(const char *dir, size_t files, uint64_t bytes);

#endif
