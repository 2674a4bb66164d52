// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SPARE 64

/* A new descriptor is the lowest free one, so it approximates the number of open ones. */
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
	/* only root can raise the hard limit: use it all; opening fails if it is too low */
	rl.rlim_cur = rl.rlim_max = old_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

int rlimit_need_files(size_t more, struct err *err)
{
	size_t need = open_files() + more;
	struct rlimit rl;

	rlimit_files(more);
	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= need)
		return 0;
	return err_set(
		err, -EMFILE,
		"the limit of open files (nofile) is %llu; at least %zu are needed: raise it with "
		"`ulimit -n %zu`, or LimitNOFILE= of a unit",
		(unsigned long long)rl.rlim_cur, need, need + SPARE);
}

/* Data pages of the process, including reservations such as those of sanitizers. */
static uint64_t data_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages;
}

void rlimit_memory(uint64_t bytes)
{
	rlim_t want = data_pages() * sysconf(_SC_PAGESIZE) + bytes;
	struct rlimit rl;

	if (getrlimit(RLIMIT_DATA, &rl) || rl.rlim_cur <= want)
		return;
	rl.rlim_cur = want;
	setrlimit(RLIMIT_DATA, &rl);
}
