// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rlimit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SPARE 64

/* New descriptors are the lowest free ones, so the next one tells how many are open, about. */
static size_t open_files(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	close(fd);
	return fd;
}

void rlimit_files(size_t more)
{
	struct rlimit rl;
	rlim_t want = SPARE + open_files() + more, old_max;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= want)
		return;
	old_max = rl.rlim_max;
	rl.rlim_cur = want;
	if (rl.rlim_max < want)
		rl.rlim_max = want;
	if (!setrlimit(RLIMIT_NOFILE, &rl))
		return;
	/* the hard limit is root's to raise: take what there is, opening tells if it is too little */
	rl.rlim_cur = rl.rlim_max = old_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}
