// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "orphan.h"
#include "control.h"

#include "base/clock.h"
#include "pins/pins.h"
#include "pmu_hold.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int orphan_open(const char *dir, mode_t mode, struct pins *out[ORPHAN_EVENTS], struct err *err)
{
	static const char *const pmus[] = { "ibs_op", "ibs_fetch" };
	struct pmu_hold *hold;
	char second[PATH_MAX];
	bool orphaned = false;
	__u64 since_ns;
	int ret = pins_open(dir, mode, &out[0], err);

	snprintf(second, sizeof(second), "%s/" IBS_PIN_SECOND, dir);
	if (!ret && !access(second, F_OK))
		ret = pins_open(second, mode, &out[1], err);
	for (int i = 0; !ret && i < ORPHAN_EVENTS; i++)
		orphaned |= out[i] && pins_have_links(out[i]);
	if (ret || !orphaned)
		return ret;
	since_ns = clock_ns(CLOCK_MONOTONIC);
	hold = pmu_hold(pmus, sizeof(pmus) / sizeof(pmus[0]));
	for (int i = 0; i < ORPHAN_EVENTS; i++) {
		if (!out[i])
			continue;
		pins_count_links(out[i], since_ns);
		pins_end_links(out[i]);
	}
	pmu_release(hold);
	return 0;
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
