// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * False sharing: each thread counts in a field of its own, and both fields are in one cache line.
 *
 *   cc -O1 -g -pthread -o false_sharing false_sharing.c
 *   ibscope record -- ./false_sharing 5 && ibscope c2c
 *
 * `./false_sharing SECONDS apart` puts the fields into lines of their own.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counters {
	unsigned long hits;
	unsigned long misses;
} __attribute__((aligned(64)));

struct counters counters, others;

static volatile int stop;

static __attribute__((noinline)) void count(volatile unsigned long *counter)
{
	while (!stop)
		++*counter;
}

/* Run on the n-th CPU that this process may use, so that the threads have caches of their own. */
static void pin(int n)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0)
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one))
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *count_hits(void *unused)
{
	pin(0);
	count(&counters.hits);
	return unused;
}

static void *count_misses(void *which)
{
	pin(1);
	count(which);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long *misses =
		argc > 2 && !strcmp(argv[2], "apart") ? &others.misses : &counters.misses;
	pthread_t a, b;

	if (pthread_create(&a, NULL, count_hits, NULL) ||
	    pthread_create(&b, NULL, count_misses, misses)) {
		perror("pthread_create");
		return 1;
	}
	sleep(argc > 1 ? atoi(argv[1]) : 5);
	stop = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%lu hits, %lu misses\n", counters.hits, *misses);
	return 0;
}
