/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An error message: what is wrong, where, and what to do. */
#ifndef IBSCOPE_ERR_H
#define IBSCOPE_ERR_H

#include <stdio.h>

struct err {
	char text[768]; /* one printable line; empty when there is no error */
};

/**
 * err_set() - describe a failure
 * @e:    may be NULL
 * @code: negative errno
 *
 * Unprintable characters in the text, such as in names of files and cgroups, are escaped.
 *
 * Return: @code, so that a function can end with `return err_set(...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which does not know that errno is not 0 */
#define err_set(...)                              \
	({                                        \
		int ret_ = err_set(__VA_ARGS__);  \
		if (ret_ >= 0)                    \
			__builtin_unreachable();  \
		ret_;                             \
	})
#endif

/* Prefix the text with "WHERE: ", if the caller knows which CPU or file it concerns. */
void err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Messages on stderr, with the program's name; never on stdout. Each is one line: unprintable
 * characters are escaped, including newlines.
 */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Shown only after log_set_verbose(true). */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_set_verbose(_Bool on);
/* Start lines with the name of another program than ibscope. */
void log_set_program(const char *name);
/* Start lines with the priority that journald parses, instead of the program's name. */
void log_set_journal(_Bool on);
/*
 * For processes that must go on: messages that stderr does not take within a tenth of a second, such as a pipe that
 * nobody reads, are dropped. Their number comes before the next message.
 */
void log_never_wait(void);
_Bool log_is_verbose(void);
/* Also write warnings and infos to @f, one per line; NULL: stop. */
void log_copy_to(FILE *f);
/* Write all messages to @f instead of stderr; NULL: to stderr again. */
void log_to(FILE *f);

#endif
