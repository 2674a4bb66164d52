/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading numbers: what a person typed, or a one-line file of sysfs or proc. */
#ifndef IBSCOPE_NUM_H
#define IBSCOPE_NUM_H

#include "std.h"
#include <sys/types.h>

struct err;

/* What is being read: names for the message, and the range. */
struct num_arg {
	const char *name; /* as the user wrote it: "-c", "ldlat" */
	const char *unit; /* "ops", "Hz", "cycles"; NULL for a bare number */
	uint64_t min, max; /* inclusive */
};

/**
 * num_parse() - read an unsigned number
 * @arg:  name, unit and range
 * @text: decimal, or hexadecimal after 0x; a decimal number may end in K, M or G for 1e3, 1e6 or 1e9
 *        (periods and rates are counts, so not powers of 1,024). Leading zeros do not mean octal.
 * @out:  written only on success
 *
 * No blanks, signs or fractions.
 *
 * Return: 0, or with @e set: -EINVAL not a number, -ERANGE outside the range.
 */
int num_parse(const struct num_arg *arg, const char *text, uint64_t *out, struct err *e);

struct duration_arg {
	const char *name;
	double bare_s;	     /* what a number without a unit counts; 0: seconds */
	double min_s, max_s; /* inclusive */
};

/**
 * num_parse_duration() - "5m", "1.5s", "250ms" in seconds
 * @text:    digits with an optional point, then ns, us, ms, s, m, h, d or nothing
 * @seconds: written only on success
 *
 * Return: 0, or with @e set: -EINVAL not a duration, -ERANGE outside the range.
 */
int num_parse_duration(const struct duration_arg *arg, const char *text, double *seconds,
		       struct err *e);

/* "5m" for 300, "1.5s" for 1.5: what num_parse_duration() reads back. */
void num_format_duration(double seconds, char *buf, size_t size);

struct size_arg {
	const char *name;
	uint64_t bare;	   /* what a number without a unit counts: 1 << 20 for MiB; 0: bytes */
	uint64_t min, max; /* bytes, inclusive */
};

/**
 * num_parse_size() - "256K", "64MiB" in bytes
 * @text:  decimal digits, then K, M, G (or KiB, MiB, GiB: the same, powers of 1,024) or nothing
 * @bytes: written only on success
 *
 * Return: 0, or with @e set: -EINVAL not a size, -ERANGE outside the range.
 */
int num_parse_size(const struct size_arg *arg, const char *text, uint64_t *bytes, struct err *e);

/**
 * num_parse_percent() - "0.5%" as 0.005
 * @name: of the option, for messages
 * @min:  like @max in percent, inclusive
 *
 * Digits with an optional point, then the percent sign, which is required.
 *
 * Return: 0, or with @e set: -EINVAL, -ERANGE.
 */
int num_parse_percent(const char *name, const char *text, double min, double max, double *ratio,
		      struct err *e);

/**
 * num_parse_mode() - "0640", of a file
 * @name: of the option, for messages
 *
 * Octal digits for the permissions of owner, group and others.
 *
 * Return: 0, or -EINVAL with @e.
 */
int num_parse_mode(const char *name, const char *text, mode_t *mode, struct err *e);

/**
 * num_read_line() - first line of a small file, without its newline
 * @root: prefix of the file system, "" for the real one
 * @path: absolute, behind @root
 * @buf:  gets the line; a file that is empty gives ""
 *
 * Return: 0, or with @e set: -ENOENT and other errors of open and read, -EMSGSIZE when the line
 * does not fit.
 */
int num_read_line(const char *root, const char *path, char *buf, size_t size, struct err *e);

/**
 * num_read() - a file that holds one decimal number, which may be negative
 *
 * Return: 0, or with @e set: what num_read_line() returns, -EINVAL not a number.
 */
int num_read(const char *root, const char *path, int64_t *out, struct err *e);

#endif
