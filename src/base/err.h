/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An error that explains itself: what was asked, what is wrong with it, what to do. */
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
 * Unprintable characters in the text, as names of files and cgroups may have them, are escaped.
 *
 * Return: @code, so that a function can end with `return err_set(...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which does not know that an errno is not 0 */
#define err_set(...)                              \
	({                                        \
		int ret_ = err_set(__VA_ARGS__);  \
		if (ret_ >= 0)                    \
			__builtin_unreachable();  \
		ret_;                             \
	})
#endif

/* Put "WHERE: " in front of the text, when a caller knows which CPU or file it was about. */
void err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Messages for people, on stderr with the program's name; never on stdout. Each is one line:
 * unprintable characters are escaped, newlines too.
 */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Shown only after log_set_verbose(true). */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_set_verbose(_Bool on);
/* Begin lines with the priority that journald reads, instead of our name. */
void log_set_journal(_Bool on);
_Bool log_is_verbose(void);
/* Warnings and infos are written to @f, too, a line each; NULL: no more. */
void log_copy_to(FILE *f);
/* All messages are written to @f instead of stderr; NULL: to stderr again. */
void log_to(FILE *f);

#endif
