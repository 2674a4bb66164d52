/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers: parsing user input and one-line files of sysfs and proc, and printing. */
#ifndef IBSCOPE_NUM_H
#define IBSCOPE_NUM_H

#include "std.h"
#include <sys/types.h>

struct err;

/* The number to parse: names for the message, and the range. */
struct num_arg {
	const char *name; /* as the user wrote it: "-c", "ldlat" */
	const char *unit; /* "ops", "Hz", "cycles"; NULL for a bare number */
	uint64_t min, max; /* inclusive */
};

/**
 * num_parse() - parse an unsigned number
 * @arg:  name, unit and range
 * @text: decimal, or hexadecimal after 0x; a decimal number may end in K, M or G for 1e3, 1e6 or
 *        1e9 (periods and rates are counts, so not powers of 1,024). Leading zeros do not mean
 *        octal. Blanks, signs and fractions are not allowed.
 * @out:  written only on success
 *
 * Return: 0, or with @e set: -EINVAL not a number, -ERANGE outside the range.
 */
int num_parse(const struct num_arg *arg, const char *text, uint64_t *out, struct err *e);

struct duration_arg {
	const char *name;
	double bare_s;	     /* unit of a bare number; 0: seconds */
	double min_s, max_s; /* inclusive */
};

/**
 * num_parse_duration() - parse "5m", "1.5s" or "250ms" to seconds
 * @text:    digits with an optional point, then ns, us, ms, s, m, h, d or nothing
 * @seconds: written only on success
 *
 * Return: 0, or with @e set: -EINVAL not a duration, -ERANGE outside the range.
 */
int num_parse_duration(const struct duration_arg *arg, const char *text, double *seconds,
		       struct err *e);

/* "5m" for 300, "1.5s" for 1.5: num_parse_duration() accepts it. */
void num_format_duration(double seconds, char *buf, size_t size);

struct size_arg {
	const char *name;
	uint64_t bare;	   /* unit of a bare number: 1 << 20 for MiB; 0: bytes */
	uint64_t min, max; /* bytes, inclusive */
};

/**
 * num_parse_size() - parse "256K" or "64MiB" to bytes
 * @text:  decimal digits, then K, M, G (or KiB, MiB, GiB: the same, powers of 1,024) or nothing
 * @bytes: written only on success
 *
 * Return: 0, or with @e set: -EINVAL not a size, -ERANGE outside the range.
 */
int num_parse_size(const struct size_arg *arg, const char *text, uint64_t *bytes, struct err *e);

/**
 * num_parse_percent() - parse "0.5%" to 0.005
 * @name: of the option, for messages
 * @min:  like @max in percent, inclusive
 *
 * The percent sign is required after digits with an optional point.
 *
 * Return: 0, or with @e set: -EINVAL, -ERANGE.
 */
int num_parse_percent(const char *name, const char *text, double min, double max, double *ratio,
		      struct err *e);

/**
 * num_parse_mode() - parse a file mode such as "0640"
 * @name: of the option, for messages
 *
 * Octal digits for the permissions of owner, group and others.
 *
 * Return: 0, or -EINVAL with @err.
 */
int num_parse_mode(const char *name, const char *text, mode_t *mode, struct err *e);

/**
 * num_read_line() - read the first line of a small file, without its newline
 * @root: prefix of the file system, "" for the real one
 * @path: absolute, relative to @root
 * @buf:  gets the line; "" if the file is empty
 *
 * Return: 0, or with @e set: -ENOENT and other errors of open and read, -EMSGSIZE if the line does
 * not fit.
 */
int num_read_line(const char *root, const char *path, char *buf, size_t size, struct err *e);

/**
 * num_read() - read a file with one decimal number, which may be negative
 *
 * Return: 0, or with @e set: errors of num_read_line(), -EINVAL not a number.
 */
int num_read(const char *root, const char *path, int64_t *out, struct err *e);

/* Print the digits of @v to a stream that no other thread uses; @base: 10 or 16 */
void num_put(FILE *f, uint64_t v, unsigned int base);

#endif
