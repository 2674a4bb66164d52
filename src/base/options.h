/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines as tables: parsing, help, completion and error messages come from the same rows. */
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
	const char *help; /* one paragraph; options_help() breaks the lines */
	/* Return: 0, or a negative errno with @err. @arg is NULL for options without one. */
	int (*set)(void *ctx, const char *arg, struct err *err);
	size_t flag; /* with set NULL: offset in ctx of the bool that becomes true */
};

/* The last two members of a row that takes no value and sets a flag. */
#define OPTION_FLAG(type, member)                                                       \
	NULL, offsetof(type, member) +                                                  \
		      0 * sizeof(char[_Generic(((type *)0)->member, _Bool: 1, default: -1)])

struct option_set {
	const char *title; /* of the section in the help */
	const struct option_row *rows;
	size_t n;
	void *ctx; /* what the rows set */
	/* True for options to ignore; NULL: none. */
	bool (*skip)(void *arg, const char *name);
	void *skip_arg;
};

#define OPTIONS_HELP	1
#define OPTIONS_VERSION 2

/**
 * options_parse() - parse all options of a command; its arguments start at optind
 *
 * Every command has --help and --version beside its rows.
 *
 * Return: 0; OPTIONS_HELP if the caller should print its help and exit; OPTIONS_VERSION if the version
 * has been printed and the caller should exit; or -EINVAL with @err.
 */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct err *err);

/**
 * options_file() - the same options from a file
 *
 * A line is "name = value", or "name" for options without a value; "#" starts a comment.
 *
 * Return: 0, or a negative errno with @err naming file and line.
 */
int options_file(const char *path, const struct option_set *sets, size_t n_sets, struct err *err);

/**
 * options_read() - read such a file, of at most 1 MiB, without parsing it
 *
 * Return: 0, the caller frees *text; or a negative errno with @err.
 */
int options_read(const char *path, char **text, size_t *size, struct err *err);

/* Parse such a text; messages start with @where. */
int options_text(const char *where, const char *text, size_t size, const struct option_set *sets,
		 size_t n_sets, struct err *err);

/* The row with that long name, or NULL. */
const struct option_row *options_find(const char *name, const struct option_set *sets,
				      size_t n_sets);

/**
 * options_one() - set one option, as a line of a file does
 * @value: NULL if there is none
 */
int options_one(const char *name, const char *value, const struct option_set *sets, size_t n_sets,
		struct err *err);

/* Print the rows of all sets, one section a set. */
void options_help(FILE *f, const struct option_set *sets, size_t n_sets);

#endif
