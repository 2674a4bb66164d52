// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pager.h"

#include "base/output_file.h"
#include "base/screen.h"
#include "base/std.h"
#include "base/utf8.h"

#include <ctype.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LABEL 10 /* columns of the word that begins a line, as in "samples   1,234" */

/* NULL: no pager; in the background it would stop at its first read of the keyboard. */
static const char *command(const struct pager *p)
{
	const char *name = getenv("IBSCOPE_PAGER") ?: getenv("PAGER") ?: "less";

	return *name && strcmp(name, "cat") && tcgetpgrp(fileno(p->to)) == getpgrp() ? name : NULL;
}

FILE *pager_open(struct pager *p, FILE *to)
{
	*p = (struct pager){ .to = to };
	if (isatty(fileno(to)))
		p->f = xmemopen(&p->text, &p->size);
	p->f = p->f ?: to;
	return p->f;
}

/* A line of words, not of a table, code or a command to be copied. */
static bool is_prose(const char *line)
{
	const char *after = line + strspn(line, "0123456789,");

	if (after > line && !(*after == 'x' || (*after == ' ' && islower((unsigned char)after[1]))))
		return false; /* code, behind its figures */
	return isgraph((unsigned char)*line) && strncmp(line, "Next: ", 6) != 0 &&
	       !strchr(line, '\033');
}

/* Break lines of words that are wider than the terminal between words. A label before them stays alone. */
static void wrap_prose(struct pager *p)
{
	struct screen screen;
	char *text, *rest = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	screen_of(p->to, &screen);
	for (char *line = p->text, *end; *line; line = rest) {
		unsigned int indent = 2;

		end = strchrnul(line, '\n');
		rest = end + !!*end;
		*end = 0;
		if (screen_columns(line) <= screen.width || !is_prose(line)) {
			fprintf(f, "%s%s", line, rest > end ? "\n" : "");
			continue;
		}
		if (strlen(line) > LABEL && line[LABEL] != ' ' &&
		    !strncmp(line + LABEL - 2, "  ", 2))
			indent = LABEL;
		fprintf(f, "%.*s", indent, line);
		screen_wrap(f, line + indent, indent, screen.width);
	}
	xmemclose(f);
	free(p->text);
	p->text = text;
	p->size = size;
}

static bool fits(const struct pager *p)
{
	struct winsize ws = {};
	size_t lines = 1, width, columns = 0; /* the first is for the prompt */

	ioctl(fileno(p->to), TIOCGWINSZ, &ws);
	width = ws.ws_col ?: 80;
	for (const char *c = p->text; *c; c += utf8_len(c) ?: 1) {
		if (*c == '\033') {
			c += strcspn(c, "m"); /* colours are all that views emit */
			if (!*c)
				break;
		} else if (*c == '\n') {
			lines += columns > width ? (columns + width - 1) / width : 1;
			columns = 0;
		} else {
			columns += utf8_width(c);
		}
	}
	return lines <= (ws.ws_row ?: 24u);
}

/* Return: false if the pager failed to show it. */
static bool show(const struct pager *p)
{
	static const int signals[] = { SIGINT, SIGQUIT, SIGPIPE };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before[3];
	int status;
	FILE *f;

	setenv("LESS", "FRX", false);
	/* a user whom sudo allows to run this program must not get a root shell from the pager */
	if (getenv("SUDO_UID"))
		setenv("LESSSECURE", "1", true);
	f = popen(command(p), "we"); /* NOLINT(cert-env33-c): the user's own choice */
	/* ^C is a key of the pager, and the pager may exit before it has read everything */
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &ignore, &before[i]);
	if (f) {
		/* without a buffer: what the pager does not read must not make pclose() fail */
		setvbuf(f, NULL, _IONBF, 0);
		fwrite(p->text, 1, p->size, f);
	}
	status = f ? pclose(f) : -1;
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &before[i], NULL);
	return !status;
}

int pager_close(struct pager *p, struct err *err)
{
	if (p->f != p->to) {
		xmemclose(p->f);
		wrap_prose(p);
		if (fflush(p->to) || !command(p) || fits(p) || !show(p))
			fwrite(p->text, 1, p->size, p->to);
		free(p->text);
	}
	return output_stream_flush(p->to, err);
}
