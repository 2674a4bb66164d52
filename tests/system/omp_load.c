// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * omp_load THREADS: an OpenMP program in two parallel regions, of which the first is in a region of its own.
 * Prints, for each thread in each of them, its number in the team and in the system, the function, and
 * times between which it was in there, in ns. Threads change CPUs while they are.
 */
#include <ibscope/region.h>

#include <omp.h>
#include <sched.h>

static cpu_set_t cpus;

static uint64_t ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * CPU time, as the machine may be busy: a half on one CPU, a half on the next. An emulated CPU that has to
 * wait does not know it, so there is a least number of rounds, too.
 */
static void spin(const char *function)
{
	uint64_t begin = ns(CLOCK_MONOTONIC);
	int cpu = omp_get_thread_num();

	for (int half = 0; half < 2; half++) {
		uint64_t until = ns(CLOCK_THREAD_CPUTIME_ID) + 50000000;
		cpu_set_t one;

		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &cpus));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (int n = 0; n < 3000 || ns(CLOCK_THREAD_CPUTIME_ID) < until; n++)
			ns(CLOCK_THREAD_CPUTIME_ID);
	}
#pragma omp critical
	printf("%d %d %s %llu %llu\n", omp_get_thread_num(), (int)syscall(SYS_gettid), function,
	       (unsigned long long)begin, (unsigned long long)ns(CLOCK_MONOTONIC));
}

static __attribute__((noinline)) void solve(int threads)
{
	(void)threads; /* without -fopenmp */
#pragma omp parallel num_threads(threads)
	spin("solve");
}

static __attribute__((noinline)) void smooth(int threads)
{
	(void)threads;
#pragma omp parallel num_threads(threads)
	spin("smooth");
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	ibscope_region_begin("solver");
	solve(threads);
	ibscope_region_end();
	smooth(threads);
	return 0;
}
