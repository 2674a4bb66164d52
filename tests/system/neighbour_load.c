// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * neighbour_load KIB SHARE ON OFF: read the lines of KIB of memory one after the other, a SHARE of the time, for ON
 * seconds, sleep for OFF seconds, and so on. All processes with the same ON and OFF are busy at the same times.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINES 8 /* at once, so that most instructions are loads */
#define BLOCK 256
#define SLICE 0.01 /* seconds; SHARE is that of each */

struct line {
	volatile unsigned long long word[8];
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void sleep_s(double s)
{
	nanosleep(&(struct timespec){ (time_t)s, (long)(fmod(s, 1) * 1e9) }, NULL);
}

static void read_lines(const struct line *p, const struct line *end)
{
	for (; p < end; p += LINES) {
		(void)p[0].word[0], (void)p[1].word[0], (void)p[2].word[0], (void)p[3].word[0];
		(void)p[4].word[0], (void)p[5].word[0], (void)p[6].word[0], (void)p[7].word[0];
	}
}

int main(int argc, char **argv)
{
	const size_t lines =
		argc == 5 ? (strtoul(argv[1], NULL, 10) << 10) / sizeof(struct line) : 0;
	const double share = lines ? strtod(argv[2], NULL) : 0,
		     on = lines ? strtod(argv[3], NULL) : 0,
		     off = lines ? strtod(argv[4], NULL) : 0;
	struct line *line;

	if (lines % BLOCK || !(share > 0) || !(on > 0)) {
		fprintf(stderr, "usage: neighbour_load KIB SHARE ON OFF\n");
		return 2;
	}
	line = malloc(lines * sizeof(*line));
	if (!line)
		return 1;
	memset((void *)line, 1, lines * sizeof(*line));
	for (size_t at = 0;; at = (at + BLOCK) % lines) {
		double now = now_s(), phase = fmod(now, on + off), slice = fmod(now, SLICE);

		if (phase >= on)
			sleep_s(on + off - phase);
		else if (slice >= share * SLICE)
			sleep_s(SLICE - slice);
		else
			read_lines(line + at, line + at + BLOCK);
	}
}
