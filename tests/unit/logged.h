/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is logged, instead of standard error. After cmocka.h. */
#ifndef IBSCOPE_TESTS_LOGGED_H
#define IBSCOPE_TESTS_LOGGED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static char *said;
static size_t said_n, seen;
static FILE *log_file;

static inline void log_begin(void)
{
	seen = 0;
	log_file = open_memstream(&said, &said_n);
	log_to(log_file);
}

static inline void log_end(void)
{
	log_to(NULL);
	fclose(log_file);
	free(said);
}

/* What was logged since the last call. */
static inline const char *logged(void)
{
	static char text[2000];

	fflush(log_file);
	snprintf(text, sizeof(text), "%s", said + seen);
	seen = said_n;
	return text;
}

/* @want is in it; "": nothing was logged */
static inline void said_is(const char *want)
{
	const char *text = logged();

	if (!*want)
		assert_string_equal(text, "");
	else if (!strstr(text, want))
		fail_msg("'%s' rather than '%s'", text, want);
}

#endif
