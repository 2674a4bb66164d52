// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// contend CGROUP CPU KIND DELAY SEED: busy on one CPU in a cgroup v2 directory that exists: steady, two thirds of the time;
//	cached or memory in bursts of random length after DELAY seconds, the same for a SEED. The stores of memory
//	bypass caches, which slows others in the rig's model (rig/contention.patch).
// contend -count N: so much work, whatever the host gives: samples depend on it, not on time.
// contend -dram PERCENT PERMILLE: from now on DRAM takes so long, and answers so many of what L3 did.
#define _GNU_SOURCE
#include "busy.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PORT	  0x1b50
#define WORDS	  8192
#define BURST_MIN 0.8 /* seconds of a burst, and of a pause: up to twice that */
#define PAUSE_MIN 1.2
#define REST_US	  1500 /* behind each part of a burst: leaves the host's CPU to others */
#define PART_S	  0.003

static uint64_t word[WORDS];

static double uniform(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (double)((x ^ x >> 31) >> 11) / 9007199254740992.;
}

static void store_past_caches(void)
{
	for (int i = 0; i < WORDS; i++)
		__asm__ volatile("movnti %1, %0" : "=m"(word[i]) : "r"((uint64_t)i));
}

static void store(void)
{
	for (int i = 0; i < WORDS; i++)
		((volatile uint64_t *)word)[i] = (uint64_t)i;
}

static void busy_until(double end, void (*work)(void))
{
	while (now() < end) {
		for (double part = now() + PART_S; now() < part;)
			work();
		usleep(REST_US);
	}
}

static void in_bursts(double delay, uint64_t seed, void (*work)(void))
{
	double at = now() + delay;

	for (;;) {
		if (at > now())
			usleep((useconds_t)((at - now()) * 1e6));
		at += BURST_MIN * (1 + uniform(&seed));
		busy_until(at, work);
		at += PAUSE_MIN * (1 + uniform(&seed));
	}
}

static int model(unsigned long percent, unsigned long permille)
{
	if (percent > 0xffff || permille > 1000 || ioperm(PORT, 4, 1))
		return perror("contend -dram"), 1;
	outl((unsigned int)(percent | permille << 16), PORT);
	return inl(PORT) != (percent | permille << 16);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "-dram"))
		return model(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "-count")) {
		for (unsigned long n = strtoul(argv[2], NULL, 10); n; n--)
			store();
		return 0;
	}
	if (argc != 6)
		return fprintf(stderr, "usage: contend CGROUP CPU KIND DELAY SEED\n"), 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (join(argv[1]) || pin(atoi(argv[2])))
		return 1;
	if (!strcmp(argv[3], "steady"))
		busy_until(1e18, store);
	in_bursts(strtod(argv[4], NULL), strtoull(argv[5], NULL, 10),
		  strcmp(argv[3], "memory") ? store : store_past_caches);
}
