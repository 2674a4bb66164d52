// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

int signals_open(bool daemon, struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (daemon) {
		sigaddset(&set, SIGHUP);
		sigaddset(&set, SIGUSR2);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set(err, -errno, "cannot wait for signals: %s", strerror(errno)) : fd;
}
