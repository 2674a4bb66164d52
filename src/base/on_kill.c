// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "on_kill.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEAN_MAX 4

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ };

static void (*volatile cleans[CLEAN_MAX])(void);
static pid_t owner;

static void clean_up(int sig)
{
	for (int i = 0; i < CLEAN_MAX && cleans[i] && getpid() == owner; i++)
		cleans[i]();
	raise(sig); /* with the default action, once this handler returns */
}

void on_kill(void (*clean)(void))
{
	const struct sigaction act = { .sa_handler = clean_up, .sa_flags = (int)SA_RESETHAND };
	struct sigaction old;
	int i = 0;

	while (i < CLEAN_MAX && cleans[i] && cleans[i] != clean)
		i++;
	if (i == CLEAN_MAX)
		abort();
	owner = getpid();
	cleans[i] = clean;
	for (size_t k = 0; k < sizeof(deadly) / sizeof(deadly[0]); k++)
		if (!sigaction(deadly[k], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(deadly[k], &act, NULL);
}
