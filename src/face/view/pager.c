// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pager.h"

#include "base/output_file.h"
#include "base/std.h"
#include "base/utf8.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *command(void)
{
	const char *name = getenv("IBSCOPE_PAGER") ?: getenv("PAGER") ?: "less";

	return *name && strcmp(name, "cat") ? name : NULL;
}

FILE *pager_open(struct pager *p, FILE *to)
{
	*p = (struct pager){ .to = to };
	/* in the background a pager would stop at its first read of the keyboard */
	if (tcgetpgrp(fileno(to)) == getpgrp() && command())
		p->f = xmemopen(&p->text, &p->size);
	p->f = p->f ?: to;
	return p->f;
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
	f = popen(command(), "we"); /* NOLINT(cert-env33-c): the user's own choice */
	/* ^C is a key of the pager, and the pager may exit before it has read everything */
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &ignore, &before[i]);
	if (f)
		fwrite(p->text, 1, p->size, f);
	status = f ? pclose(f) : -1;
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &before[i], NULL);
	return !status;
}

int pager_close(struct pager *p, struct err *err)
{
	if (p->f != p->to) {
		xmemclose(p->f);
		if (fflush(p->to) || fits(p) || !show(p))
			fwrite(p->text, 1, p->size, p->to);
		free(p->text);
	}
	return output_stream_flush(p->to, err);
}
