// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool verbose, journal;
static FILE *copy;

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

void err_prefix(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->text)];
	va_list ap;
	size_t n;

	if (!e)
		return;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", old);
}

static void say(const char *priority, const char *level, const char *fmt, va_list ap)
{
	int saved = errno;

	if (copy && priority[1] >= '4' && priority[1] < '7') {
		va_list ap_copy;

		va_copy(ap_copy, ap);
		fprintf(copy, "%s", level);
		vfprintf(copy, fmt, ap_copy);
		fputc('\n', copy);
		va_end(ap_copy);
	}
	flockfile(stderr);
	if (journal)
		fputs(priority, stderr);
	else
		fprintf(stderr, "ibscope: %s", level);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	funlockfile(stderr);
	errno = saved;
}

#define SAY(priority, level)                   \
	do {                                   \
		va_list ap;                    \
		va_start(ap, fmt);             \
		say(priority, level, fmt, ap); \
		va_end(ap);                    \
	} while (0)

void log_error(const char *fmt, ...)
{
	SAY("<3>", "error: ");
}

void log_warn(const char *fmt, ...)
{
	SAY("<4>", "warning: ");
}

void log_info(const char *fmt, ...)
{
	SAY("<6>", "");
}

void log_debug(const char *fmt, ...)
{
	if (verbose)
		SAY("<7>", "debug: ");
}

void log_set_journal(_Bool on)
{
	journal = on;
}

void log_set_verbose(_Bool on)
{
	verbose = on;
}

void log_copy_to(FILE *f)
{
	copy = f;
}

_Bool log_is_verbose(void)
{
	return verbose;
}
