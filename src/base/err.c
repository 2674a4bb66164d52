// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "err.h"
#include "status_line.h"
#include "utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 4096 /* bytes; the rest is cut */
#define PATIENCE_MS 100	 /* for a reader that is only slow */

static bool verbose, journal, waits = true;
static unsigned int dropped; /* since the last message that was written */
static FILE *copy, *instead;
static const char *program = "ibscope";

/* Escape names here, so that callers can print the error as it is. */
static void set_text(struct err *e, const char *fmt, va_list ap)
{
	char raw[sizeof(e->text)];

	vsnprintf(raw, sizeof(raw), fmt, ap);
	utf8_escape(e->text, sizeof(e->text), raw);
}

#undef err_set /* defined for analyzers */
int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	set_text(e, fmt, ap);
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
	set_text(e, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", old);
}

/* Whether stderr takes PIPE_BUF bytes without blocking. A signal ends the wait; no write blocks after another error. */
static bool takes_message(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	const int n = poll(&p, 1, dropped ? 0 : PATIENCE_MS);

	return n > 0 || (n < 0 && errno != EINTR);
}

static void write_line(const char *priority, const char *level, const char *text)
{
	const char *erase = status_line_eraser();

	if (journal)
		fprintf(stderr, "%s%s%s\n", erase, priority, text);
	else
		fprintf(stderr, "%s%s: %s%s\n", erase, program, level, text);
}

static void write_or_drop(const char *priority, const char *level, char *text)
{
	char missing[100];

	if (!takes_message()) {
		dropped++;
		return;
	}
	if (dropped) {
		snprintf(missing, sizeof(missing),
			 "%u message%s before this one %s not written: nothing read the log",
			 dropped, dropped == 1 ? "" : "s", dropped == 1 ? "was" : "were");
		dropped = 0;
		write_line("<4>", "warning: ", missing);
		if (!takes_message()) {
			dropped++;
			return;
		}
	}
	if (strlen(text) > PIPE_BUF / 2)
		text[PIPE_BUF / 2] = 0;
	write_line(priority, level, text);
}

/* One write(), so that lines of several threads and processes do not mix. */
static void write_message(const char *priority, const char *level, const char *fmt, va_list ap)
{
	char raw[MESSAGE_MAX], text[4 * MESSAGE_MAX];
	int saved = errno;

	vsnprintf(raw, sizeof(raw), fmt, ap);
	utf8_escape(text, sizeof(text), raw);
	if (copy && priority[1] >= '4' && priority[1] < '7')
		fprintf(copy, "%s%s\n", level, text);
	if (instead)
		fprintf(instead, "%s%s\n", level, text);
	else if (waits)
		write_line(priority, level, text);
	else
		write_or_drop(priority, level, text);
	errno = saved;
}

#define SAY(priority, level)                             \
	do {                                             \
		va_list ap;                              \
		va_start(ap, fmt);                       \
		write_message(priority, level, fmt, ap); \
		va_end(ap);                              \
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

void log_set_program(const char *name)
{
	program = name;
}

void log_set_journal(_Bool on)
{
	journal = on;
}

void log_never_wait(void)
{
	waits = false;
}

void log_set_verbose(_Bool on)
{
	verbose = on;
}

void log_copy_to(FILE *f)
{
	copy = f;
}

void log_to(FILE *f)
{
	instead = f;
}

_Bool log_is_verbose(void)
{
	return verbose;
}
