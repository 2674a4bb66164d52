/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines as tables: parsing, help, completion and error messages come from the same rows. */
#ifndef IBSCOPE_OPTIONS_H
#define IBSCOPE_OPTIONS_H

#include "std.h"

struct option_row {
	const char *name;
	char letter;	  /* 0: none */
	const char *arg;  /* NULL: takes none; "[=ARG]": optional, NULL if not given */
	const char *help; /* one paragraph; options_help() breaks the lines */
	/* Return: 0, or a negative errno with @err. @arg is NULL for options without one. */
	int (*set)(void *ctx, const char *arg, struct err *err);
	/* If `set` is NULL: type and place in ctx of the value. */
	enum option_kind {
		OPTION_KIND_FLAG,     /* bool */
		OPTION_KIND_NUMBER,   /* integer of 32 or 64 bits */
		OPTION_KIND_SIZE,     /* the same, in bytes */
		OPTION_KIND_DURATION, /* double, in seconds; min and max in ns */
		OPTION_KIND_MODE,     /* mode_t, of a file */
		OPTION_KIND_CHOICE,   /* enum, or unsigned int */
		OPTION_KIND_TEXT,     /* char[] */
		OPTION_KIND_PATH,     /* the same, an absolute path */
		OPTION_KIND_WORD,     /* const char *, which points into argv; refused in files */
	} kind;
	size_t at, bytes;
	uint64_t min, max; /* inclusive; choices: max is their number */
	uint64_t bare;	   /* sizes: unit of a bare number; 0: bytes */
	const char *what;  /* numbers: unit or NULL; choices: singular noun such as "metric" */
	const char *(*choice)(unsigned int i);
	/* Like `set`, shared by several rows: @which is their `min`. */
	int (*set_which)(void *ctx, unsigned int which, const char *arg, struct err *err);
};

/* clang-format off */
/* The last members of a row that stores its value in @member of the context, of type @type. */
#define OPTION_AT(type, member, kind_)                                 \
	NULL, .kind = OPTION_KIND_##kind_, .at = offsetof(type, member), \
		      .bytes = sizeof(((type *)0)->member)
#define OPTION_FLAG(type, member)                                                       \
	NULL, .at = offsetof(type, member) +                                            \
		    0 * sizeof(char[_Generic(((type *)0)->member, _Bool: 1, default: -1)])
#define OPTION_WHICH(fn, which) NULL, .set_which = (fn), .min = (which)
#define OPTION_NUMBER(type, member, min_, max_) \
	OPTION_AT(type, member, NUMBER), .min = (min_), .max = (max_)
#define OPTION_SIZE(type, member, bare_, min_, max_) \
	OPTION_AT(type, member, SIZE), .bare = (bare_), .min = (min_), .max = (max_)
#define OPTION_DURATION(type, member, min_s, max_s)                        \
	OPTION_AT(type, member, DURATION), .min = (uint64_t)((min_s) * 1e9), \
					   .max = (uint64_t)((max_s) * 1e9)
#define OPTION_MODE(type, member) OPTION_AT(type, member, MODE)
#define OPTION_CHOICE(type, member, what_, choice_, n) \
	OPTION_AT(type, member, CHOICE), .what = (what_), .choice = (choice_), .max = (n)
#define OPTION_TEXT(type, member) OPTION_AT(type, member, TEXT)
#define OPTION_PATH(type, member) OPTION_AT(type, member, PATH)
#define OPTION_WORD(type, member) OPTION_AT(type, member, WORD)

/* clang-format on */

struct option_set {
	const char *title; /* of the section in the help; NULL: continues the one before */
	const struct option_row *rows;
	size_t n;
	void *ctx; /* target of the rows */
	/* True for options to ignore; NULL: none. */
	bool (*skip)(void *arg, const char *name);
	void *skip_arg;
};

#define OPTIONS_HELP	1
#define OPTIONS_VERSION 2

/**
 * options_parse() - parse all options of a command; its arguments start at optind
 *
 * Every command has --help and --version in addition to its rows.
 *
 * Return: 0; OPTIONS_HELP if the caller should print its help and exit; OPTIONS_VERSION if the
 * version has been printed and the caller should exit; or -EINVAL with @err.
 */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct err *err);

/**
 * options_file() - parse the same options from a file
 *
 * A line is "name = value", or "name" for options without a value; "#" starts a comment.
 *
 * Return: 0, or a negative errno with @err naming file and line.
 */
int options_file(const char *path, const struct option_set *sets, size_t n_sets, struct err *err);

/* The argument of --config, which must be read before other options are parsed; NULL: none. */
const char *options_config(int argc, char **argv);

/**
 * options_read() - read a configuration file of at most 1 MiB, without parsing it
 *
 * Return: 0, the caller frees *text; or a negative errno with @err.
 */
int options_read(const char *path, char **text, size_t *size, struct err *err);

/* Parse the text of a configuration file; messages start with @where. */
int options_text(const char *where, const char *text, size_t size, const struct option_set *sets,
		 size_t n_sets, struct err *err);

/* The row with that long name, or NULL. */
const struct option_row *options_find(const char *name, const struct option_set *sets,
				      size_t n_sets);

/**
 * options_one() - set one option, like a line of a file
 * @value: NULL if there is none
 */
int options_one(const char *name, const char *value, const struct option_set *sets, size_t n_sets,
		struct err *err);

/* What the shell completes: "1", or "set" or "unset" for options of `ctl`; NULL: nothing. */
const char *complete_mode(void);

/* Offer @name if it begins with @word, with the first clause of @help. */
void complete_offer(const char *word, const char *name, const char *help);

/* Print candidates for the last argument; called by options_parse(). */
void complete_options(int argc, char **argv, const struct option_set *sets, size_t n_sets);

/* Print the rows of all sets, one section per set. */
void options_help(FILE *f, const struct option_set *sets, size_t n_sets);

#endif
