// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pmu_hold.h"

#include "perf/perf.h"
#include "base/array.h"
#include "base/child.h"
#include "base/cpulist.h"
#include "base/num.h"
#include "base/rlimit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Far more than an event counts in the moments that a PMU is held. */
#define PERIOD (1ULL << 40)

/* A PMU is held no longer, whatever happens. */
#define HOLD_S 10

/* Within this the kernel closes the events of a process that was killed, and of pins that it removed. */
#define OUTLIVE_MS 100

#define HOLDER_MEMORY (16 << 20)

struct pmu_hold {
	int *fd; /* -1: not held */
	size_t n, room;
	pid_t holder; /* 0: this process */
	int holder_fd;
};

static void hold_cpu(struct pmu_hold *hold, const char *name, __u32 type, unsigned int cpu)
{
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.sample_period = PERIOD,
		.pinned = 1,
	};

	array_reserve(hold->fd, hold->room, hold->n + 1);
	hold->fd[hold->n] = perf_open(&attr, cpu);
	if (hold->fd[hold->n++] < 0)
		log_debug("cpu %u: cannot hold %s: %s", cpu, name, strerror(errno));
}

static void hold_all(struct pmu_hold *hold, const char *const *names, size_t n)
{
	struct cpulist online = {};
	char path[128];
	int64_t type;
	struct err err;
	int cpu;

	if (cpulist_read("", "online", &online, &err))
		log_debug("%s", err.text);
	rlimit_files(n * cpulist_count(&online));
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", names[i]);
		if (!num_read("", path, &type, &err))
			cpulist_for_each (cpu, &online)
				hold_cpu(hold, names[i], type, cpu);
	}
}

/*
 * A process that is killed closes its files in an order of the kernel's: programs are detached before the
 * last events are closed, and what these take in between is in no ledger. So a child holds the PMUs, and
 * for a moment longer than its parent lives.
 */
static void holder_main(struct pmu_hold *hold, const char *const *names, size_t n, pid_t parent,
			int fd)
{
	const struct timespec outlive = { .tv_nsec = OUTLIVE_MS * 1000000L };
	char byte = 0;

	child_enter(parent, fd, fd, HOLDER_MEMORY);
	prctl(PR_SET_PDEATHSIG, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	alarm(HOLD_S);
	hold_all(hold, names, n);
	if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
		nanosleep(&outlive, NULL);
	_exit(0);
}

/* Return: false if the child could not be started, or has died. */
static bool start_holder(struct pmu_hold *hold, const char *const *names, size_t n)
{
	const pid_t parent = getpid();
	char byte;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return false;
	hold->holder = fork();
	if (!hold->holder)
		holder_main(hold, names, n, parent, fds[1]);
	close(fds[1]);
	hold->holder_fd = fds[0];
	if (hold->holder > 0 && read(hold->holder_fd, &byte, 1) == 1)
		return true;
	close(hold->holder_fd);
	if (hold->holder > 0)
		waitpid(hold->holder, NULL, 0);
	hold->holder = 0;
	return false;
}

struct pmu_hold *pmu_hold(const char *const *names, size_t n)
{
	struct pmu_hold *hold = xcalloc(1, sizeof(*hold));

	if (!start_holder(hold, names, n))
		hold_all(hold, names, n);
	return hold;
}

void pmu_release(struct pmu_hold *hold)
{
	if (!hold)
		return;
	if (hold->holder) {
		send(hold->holder_fd, "", 1, MSG_NOSIGNAL);
		close(hold->holder_fd);
		waitpid(hold->holder, NULL, 0);
	}
	for (size_t i = 0; i < hold->n; i++)
		if (hold->fd[i] >= 0)
			close(hold->fd[i]);
	free(hold->fd);
	free(hold);
}
