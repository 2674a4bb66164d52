// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// load SECONDS [MIB]: on each CPU a thread that follows pointers through MIB (64) of memory, stores, computes, and calls
//	the kernel, by turns and always alike.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEPS 100000 /* of each part, then comes the next */

static size_t lines;
static atomic_bool over;

struct line {
	struct line *next;
	uint64_t stored[7];
};

/* One circle through all lines, in an order that no prefetcher follows (Sattolo). */
static struct line *make_circle(uint64_t seed)
{
	struct line *all = aligned_alloc(64, lines * sizeof(*all));

	for (size_t i = 0; all && i < lines; i++)
		all[i].next = &all[i];
	for (size_t i = lines - 1; all && i; i--) {
		size_t k = (seed = seed * 6364136223846793005u + 1442695040888963407u) % i;
		struct line *next = all[i].next;

		all[i].next = all[k].next;
		all[k].next = next;
	}
	return all;
}

static void *run(void *arg)
{
	volatile struct line *at = make_circle((uintptr_t)arg + 1);
	volatile uint64_t sum = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((uintptr_t)arg, &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (at && !over) {
		for (int i = 0; i < STEPS && !over; i++) {
			at = at->next;
			at->stored[i % 7] = i;
		}
		for (int i = 0; i < 10 * STEPS && !over; i++)
			sum += i % 3 ? i : sum >> 1;
		for (int i = 0; i < STEPS / 100 && !over; i++)
			getppid();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	pthread_t thread;

	if (argc < 2) {
		fprintf(stderr, "usage: load SECONDS [MIB]\n");
		return 2;
	}
	lines = (size_t)(argc > 2 ? atoi(argv[2]) : 64) * 1024 * 1024 / sizeof(struct line);
	for (long i = 0; i < cpus; i++)
		if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)i))
			return 1;
	for (double left = atof(argv[1]); left > 0; left -= 0.1)
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	over = true;
	return 0;
}
