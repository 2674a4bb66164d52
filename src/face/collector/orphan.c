// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "orphan.h"
#include "control.h"

#include "base/child.h"
#include "base/clock.h"
#include "pins/pins.h"
#include "pmu_hold.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Of a process that ends links: far more than 768 of them take. It holds the PMU no longer, whatever happens, and the
 * next collector waits a little longer than this (pins_dir.c).
 */
#define ENDER_S	     20
#define ENDER_MEMORY (256 << 20)

/* Hold the PMU, note the counts of the events, and end the links. */
static void end_links(struct pins *const pins[ORPHAN_EVENTS])
{
	static const char *const pmus[] = { "ibs_op", "ibs_fetch" };
	const __u64 since_ns = clock_ns(CLOCK_MONOTONIC);
	struct pmu_hold *hold = pmu_hold(pmus, sizeof(pmus) / sizeof(pmus[0]));

	for (int i = 0; i < ORPHAN_EVENTS; i++) {
		if (!pins[i])
			continue;
		pins_count_links(pins[i], since_ns);
		pins_end_links(pins[i]);
	}
	pmu_release(hold);
}

static void ender_main(struct pins *const pins[ORPHAN_EVENTS], pid_t parent)
{
	const int lock = pins_lock_fd(pins[0]);

	child_enter(parent, lock, pins[1] ? pins_lock_fd(pins[1]) : lock, ENDER_MEMORY);
	prctl(PR_SET_PDEATHSIG, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	alarm(ENDER_S);
	end_links(pins);
	_exit(0);
}

/*
 * Of a process that is killed meanwhile, nobody would know which links are left and what their events have counted;
 * and the kernel detaches its programs before it closes its last events. So a child does it, which goes on if its
 * parent is killed; the directory stays locked until it is done.
 */
static void end_links_in_child(struct pins *const pins[ORPHAN_EVENTS])
{
	const pid_t parent = getpid(), child = fork();
	int status = -1;

	if (!child)
		ender_main(pins, parent);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!status)
		return;
	log_debug("ending the links of the killed collector failed in a child process");
	end_links(pins);
}

int orphan_open(const char *dir, mode_t mode, struct pins *out[ORPHAN_EVENTS], struct err *err)
{
	char second[PATH_MAX];
	bool orphaned = false;
	int ret = pins_open(dir, mode, &out[0], err);

	snprintf(second, sizeof(second), "%s/" IBS_PIN_SECOND, dir);
	if (!ret && !access(second, F_OK))
		ret = pins_open(second, mode, &out[1], err);
	for (int i = 0; !ret && i < ORPHAN_EVENTS; i++)
		orphaned |= out[i] && pins_have_links(out[i]);
	if (!ret && orphaned)
		end_links_in_child(out);
	return ret;
}

int orphan_stop(const char *dir, bool remove, struct err *err)
{
	struct pins *pins[ORPHAN_EVENTS] = {};
	int ret;

	if (access(dir, F_OK))
		return err_set(err, -errno, "no collector has pinned anything in %s: %s", dir,
			       strerror(errno));
	ret = orphan_open(dir, 0644, pins, err);
	for (int i = ORPHAN_EVENTS - 1; i >= 0; i--) {
		if (!ret && pins[i] && remove)
			pins_remove(pins[i]);
		else if (!ret && pins[i])
			pins_set_stopped(pins[i]);
		pins_close(pins[i]);
	}
	if (!ret && remove && !access(dir, F_OK))
		return err_set(err, -ENOTEMPTY,
			       "%s has files of others: remove them, and then the directory", dir);
	return ret;
}
