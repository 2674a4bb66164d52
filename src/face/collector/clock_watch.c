// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock_watch.h"

#include "base/clock.h"

#include <stdlib.h>

#define TRIES 3

void clock_read(struct clock_reading *out)
{
	for (int i = 0; i < TRIES; i++) {
		struct clock_reading r;

		r.monotonic = clock_ns(CLOCK_MONOTONIC);
		r.boottime = clock_ns(CLOCK_BOOTTIME);
		r.realtime = clock_ns(CLOCK_REALTIME);
		r.width = (int64_t)clock_ns(CLOCK_MONOTONIC) - r.monotonic;
		if (!i || r.width < out->width)
			*out = r;
	}
}

void clock_watch_start(struct clock_watch *w, const struct clock_reading *now)
{
	w->last = *now;
}

bool clock_watch_check(struct clock_watch *w, const struct clock_reading *now,
		       struct clock_change *out)
{
	const struct clock_reading *last = &w->last;
	int64_t least = CLOCK_CHANGE_MIN_NS + last->width + now->width;
	int64_t step = (now->realtime - now->boottime) - (last->realtime - last->boottime);
	int64_t slept = (now->boottime - now->monotonic) - (last->boottime - last->monotonic);

	*out = (struct clock_change){ .step_ns = llabs(step) >= least ? step : 0,
				      .slept_ns = slept >= least ? slept : 0 };
	if (!out->step_ns && !out->slept_ns)
		return false;
	w->last = *now;
	return true;
}
