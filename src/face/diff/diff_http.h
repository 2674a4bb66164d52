/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers of servers, which may be anything. */
#ifndef IBSCOPE_DIFF_HTTP_H
#define IBSCOPE_DIFF_HTTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define DIFF_ANSWER_MEMORY (2ULL << 30) /* to read an answer in; see rlimit_memory() */

/* Zero at first; the caller frees `text`, which ends with a zero. */
struct diff_answer {
	char *text;
	size_t n, room;
	bool too_long;
};

/**
 * diff_http() - ask a server
 * @fields: to be posted; NULL: just get
 * @shorter: what makes the answer shorter, for a message
 *
 * A password is taken from ~/.netrc.
 *
 * Return: 0, also for an answer of the states 400 and 422, which say why in JSON; or a negative errno with @err.
 */
int diff_http(const char *url, const char *fields, const char *shorter, struct diff_answer *a,
	      struct err *err);

#endif
