/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Detect that the clock was set, or the machine was suspended. */
#ifndef IBSCOPE_CLOCK_WATCH_H
#define IBSCOPE_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The three clocks, in ns, read as close to one moment as possible. */
struct clock_reading {
	int64_t monotonic, boottime, realtime;
	int64_t width; /* between the first and the last of them */
};

struct clock_watch {
	struct clock_reading last;
};

struct clock_change {
	int64_t step_ns;  /* amount that the clock was set ahead, negative: back; 0: not set */
	int64_t slept_ns; /* time suspended; 0: none */
};

/* Smaller changes are not reported: slewing moves CLOCK_BOOTTIME along with the clock. */
#define CLOCK_CHANGE_MIN_NS 10000000

void clock_read(struct clock_reading *out);
void clock_watch_start(struct clock_watch *w, const struct clock_reading *now);

/* Compare with the last change, or the start. Return: true if anything changed. */
bool clock_watch_check(struct clock_watch *w, const struct clock_reading *now,
		       struct clock_change *out);

#endif
