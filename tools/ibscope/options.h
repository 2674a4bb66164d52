/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines as tables: parsing and help come from the same rows. */
#ifndef IBSCOPE_OPTIONS_H
#define IBSCOPE_OPTIONS_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct option_row {
	const char *name;
	char letter; /* 0: none */
	const char *arg; /* NULL: takes none */
	const char *help;
	/* Return: 0, or a negative errno with @err. @arg is NULL for options without one. */
	int (*set)(void *ctx, const char *arg, struct err *err);
	size_t flag; /* with set NULL: offset in ctx of the bool that becomes true */
};

/* The last two members of a row that takes no value and only sets a flag. */
#define OPTION_FLAG(type, member)                                                       \
	NULL, offsetof(type, member) +                                                  \
		      0 * sizeof(char[_Generic(((type *)0)->member, _Bool: 1, default: -1)])

struct option_set {
	const char *title; /* of the paragraph in the help */
	const struct option_row *rows;
	size_t n;
	void *ctx; /* what the rows set */
	/* Of options that are as if they were not given; NULL: none is. */
	bool (*skip)(void *arg, const char *name);
	void *skip_arg;
};

#define OPTIONS_HELP 1

/**
 * options_parse() - parse all options of a command; what follows them begins at optind
 *
 * Return: 0; OPTIONS_HELP if help was asked for; or -EINVAL with @err.
 */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct err *err);

/**
 * options_file() - the same options from a file
 *
 * A line is "name = value", or "name" for options that take none; "#" begins a comment. Each line
 * counts as the option of that long name given at that place.
 *
 * Return: 0, or a negative errno with @err telling file and line.
 */
int options_file(const char *path, const struct option_set *sets, size_t n_sets, struct err *err);

/**
 * options_read() - only read such a file, of at most 1 MiB
 *
 * Return: 0, the caller frees *text; or a negative errno with @err.
 */
int options_read(const char *path, char **text, size_t *size, struct err *err);

/* The options in such a text; @where is what messages call it. */
int options_text(const char *where, const char *text, size_t size, const struct option_set *sets,
		 size_t n_sets, struct err *err);

/* The row of a long name; NULL: there is none. */
const struct option_row *options_find(const char *name, const struct option_set *sets,
				      size_t n_sets);

/**
 * options_one() - one option, as a line of the file would give it
 * @value: NULL if none was given
 */
int options_one(const char *name, const char *value, const struct option_set *sets, size_t n_sets,
		struct err *err);

/* The options as they stand in the tables. */
void options_help(FILE *f, const struct option_set *sets, size_t n_sets);

#endif
