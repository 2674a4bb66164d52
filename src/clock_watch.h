/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Notices that the clock was set, and that the machine slept. */
#ifndef IBSCOPE_CLOCK_WATCH_H
#define IBSCOPE_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The three clocks, in ns, as near to one moment as they could be read. */
struct clock_reading {
	int64_t monotonic, boottime, realtime;
	int64_t width; /* between the first and the last of them */
};

struct clock_watch {
	struct clock_reading last;
};

struct clock_change {
	int64_t step_ns;  /* that the clock was set ahead (or back) by; 0: it was not */
	int64_t slept_ns; /* that the machine was suspended for; 0: it was not */
};

/* What is less than this is not told: a clock that is slewed takes CLOCK_BOOTTIME along. */
#define CLOCK_CHANGE_MIN_NS 10000000

void clock_read(struct clock_reading *out);
void clock_watch_start(struct clock_watch *w, const struct clock_reading *now);

/* What happened since the last change, or the start. Return: whether anything did. */
bool clock_watch_look(struct clock_watch *w, const struct clock_reading *now,
		      struct clock_change *out);

#endif
