// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * region_load THREADS ROUNDS [MS]: threads that change CPUs while they are in regions, "outer" and
 * "outer/inner", for MS milliseconds of CPU time each (default 15), and outside of any. When they are done each prints,
 * for each region, its number, the path, and four times in ns: before and after it began, before and after
 * it ended.
 */
#include <ibscope/region.h>

#include "base/clock.h"
#include "base/std.h"

#include <sched.h>

#define REGIONS_MAX 4096

struct interval {
	const char *path;
	__u64 t[4];
};

static int rounds, ms = 15;
static cpu_set_t cpus;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static __u64 now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void begin(struct interval *i, const char *path)
{
	i->path = path;
	i->t[0] = now();
	ibscope_region_begin(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	i->t[1] = now();
}

static void end(struct interval *i)
{
	i->t[2] = now();
	ibscope_region_end();
	i->t[3] = now();
}

/* Half of the time on one CPU, half on the next. */
static void work(unsigned int *cpu)
{
	for (int half = 0; half < 2; half++) {
		double until = thread_cpu_s() + ms / 2e3;
		cpu_set_t one;

		do
			*cpu = (*cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(*cpu, &cpus));
		CPU_ZERO(&one);
		CPU_SET(*cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		while (thread_cpu_s() < until)
			;
	}
}

static void *run(void *arg)
{
	struct interval *all = xcalloc(REGIONS_MAX, sizeof(*all)), *i = all;
	unsigned int cpu = (unsigned int)(uintptr_t)arg;

	for (int n = 0; n < rounds && i < all + REGIONS_MAX - 2; n++, i += 2) {
		begin(&i[0], "outer");
		work(&cpu);
		begin(&i[1], "outer/inner");
		work(&cpu);
		end(&i[1]);
		work(&cpu);
		end(&i[0]);
		work(&cpu);
	}
	pthread_mutex_lock(&printing);
	for (const struct interval *p = all; p < i; p++)
		printf("%d %s %llu %llu %llu %llu\n", (int)syscall(SYS_gettid), p->path, p->t[0],
		       p->t[1], p->t[2], p->t[3]);
	pthread_mutex_unlock(&printing);
	free(all);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n = argc > 2 ? atoi(argv[1]) : 0;

	if (n < 1 || n > 64)
		return 2;
	rounds = atoi(argv[2]);
	ms = argc > 3 ? atoi(argv[3]) : ms;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
