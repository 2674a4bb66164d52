// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define NS_PER_S 1000000000LL
/* CPU time for events: 2 % on average, after an initial second for machines that start up. */
#define SHARE	  50
#define BUDGET_NS NS_PER_S
#define PAUSE_NS  (NS_PER_S / 10)

/*
 * IN_DELETE: kernfs does not report the removal of a watched directory itself, and keeps the watch,
 * which counts against the limit, until it is removed explicitly (seen on 6.18).
 */
#define WATCH_MASK (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)

static void warn(struct cgroup_watch *w, const char *why, const char *remedy)
{
	if (!w->warned)
		log_warn("cgroups: cannot watch directories: %s; cgroups that live less than about "
			 "a "
			 "second may have no name; %s",
			 why, remedy);
	w->warned = true;
}

static int add_fd(struct cgroup_watch *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void cgroup_watch_open(struct cgroup_watch *w)
{
	int err;

	*w = (struct cgroup_watch){
		.epoll = -1,
		.timer = -1,
		.budget_ns = BUDGET_NS,
		.refilled_ns = clock_ns(CLOCK_MONOTONIC),
	};
	w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify >= 0)
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll >= 0)
		w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	err = w->timer < 0 ? -errno : add_fd(w, w->inotify) ?: add_fd(w, w->timer);
	if (!err)
		return;
	cgroup_watch_close(w);
	warn(w, strerror(-err),
	     err == -EMFILE
		     ? "raise sysctl fs.inotify.max_user_instances or the limit of open files"
		     : "see `ibscope doctor`");
}

void cgroup_watch_close(struct cgroup_watch *w)
{
	int *fds[] = { &w->inotify, &w->epoll, &w->timer };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int cgroup_watch_fd(const struct cgroup_watch *w)
{
	return w->epoll;
}

int cgroup_watch_add(struct cgroup_watch *w, int fd)
{
	char link[32];
	int wd;

	if (w->inotify < 0)
		return -EBADF;
	/* there is no inotify_add_watch_at() */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(w->inotify, link, WATCH_MASK);
	if (wd >= 0)
		return wd;
	wd = -errno;
	warn(w, strerror(errno),
	     errno == ENOSPC ? "raise sysctl fs.inotify.max_user_watches" : "see `ibscope doctor`");
	return wd;
}

void cgroup_watch_remove(struct cgroup_watch *w, int wd)
{
	inotify_rm_watch(w->inotify, wd); /* EINVAL if the kernel removed it */
}

size_t cgroup_watch_read(struct cgroup_watch *w, char *buf, size_t size)
{
	ssize_t n = w->inotify < 0 ? 0 : read(w->inotify, buf, size);

	return n < 0 ? 0 : n;
}

/* While paused the fd is not readable until the timer makes it so. */
static void set_paused(struct cgroup_watch *w, bool on)
{
	struct epoll_event ev = { .events = on ? 0 : EPOLLIN, .data.fd = w->inotify };
	struct itimerspec at = { 0 };

	if (w->epoll < 0 || (!on && !w->paused))
		return;
	if (on) {
		uint64_t ns = PAUSE_NS - w->budget_ns * SHARE;

		at.it_value.tv_sec = ns / NS_PER_S;
		at.it_value.tv_nsec = ns % NS_PER_S;
	}
	timerfd_settime(w->timer, 0, &at, NULL);
	if (on != w->paused)
		epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->inotify, &ev);
	w->paused = on;
}

bool cgroup_watch_begin(struct cgroup_watch *w)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool spent;

	w->budget_ns += (now - w->refilled_ns) / SHARE;
	w->refilled_ns = now;
	if (w->budget_ns > BUDGET_NS)
		w->budget_ns = BUDGET_NS;
	spent = w->budget_ns <= 0;
	set_paused(w, spent);
	if (spent)
		return false;
	w->started_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return true;
}

void cgroup_watch_end(struct cgroup_watch *w)
{
	w->budget_ns -= clock_ns(CLOCK_THREAD_CPUTIME_ID) - w->started_ns;
	if (w->budget_ns <= 0)
		set_paused(w, true);
}

bool cgroup_watch_spent(const struct cgroup_watch *w)
{
	return (int64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - w->started_ns) >= w->budget_ns;
}
