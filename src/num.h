/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one way to read a number: what a person typed, or a one-line file of sysfs or proc. */
#ifndef IBSCOPE_NUM_H
#define IBSCOPE_NUM_H

#include <stddef.h>
#include <stdint.h>
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
 * @text: decimal, or hexadecimal after 0x; K, M or G behind a decimal number multiply by 1e3, 1e6
 *        or 1e9 (periods and rates are counts, so not by 1024). Leading zeros do not mean octal.
 * @out:  written only on success
 *
 * No blanks, signs or fractions.
 *
 * Return: 0, or with @e set: -EINVAL not a number, -ERANGE outside the range.
 */
int num_parse(const struct num_arg *arg, const char *text, uint64_t *out, struct err *e);

/**
 * num_parse_percent() - "0.5%" as 0.005
 * @name: of the option, for messages
 * @min:  like @max in percent, inclusive
 *
 * Digits, perhaps a point, and the sign, which is not left out.
 *
 * Return: 0, or with @e set: -EINVAL, -ERANGE.
 */
int num_parse_percent(const char *name, const char *text, double min, double max, double *ratio,
		      struct err *e);

/**
 * num_parse_mode() - "0640", of a file
 * @name: of the option, for messages
 *
 * Octal digits only, of what owner, group and others may.
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
