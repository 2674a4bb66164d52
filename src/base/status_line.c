// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "status_line.h"
#include "on_kill.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE "\r\033[K"

static volatile sig_atomic_t shown;

bool status_line_possible(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

static void erase_when_killed(void)
{
	if (shown && write(STDERR_FILENO, ERASE, sizeof(ERASE) - 1) < 0)
		shown = 0;
}

void status_line_show(const char *fmt, ...)
{
	struct winsize ws = {};
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* a line that wraps can no longer be erased */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) && ws.ws_col && ws.ws_col < sizeof(text))
		text[ws.ws_col - 1] = 0;
	on_kill(erase_when_killed);
	shown = 1;
	fprintf(stderr, ERASE "%s", text);
}

const char *status_line_eraser(void)
{
	const char *text = shown ? ERASE : "";

	shown = 0;
	return text;
}

void status_line_end(void)
{
	int saved = errno;

	if (shown)
		fputs(status_line_eraser(), stderr);
	errno = saved;
}
