// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * omp_load THREADS: an OpenMP program in two parallel regions, of which the first is in a region of its own.
 * Prints the number of each thread in its team, with its number in the system.
 */
#include <ibscope/region.h>

#include <omp.h>

/* CPU time: the machine may be busy. */
static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void spin(double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		;
}

static __attribute__((noinline)) void solve(int threads)
{
	(void)threads; /* without -fopenmp */
#pragma omp parallel num_threads(threads)
	{
		spin(0.1);
#pragma omp critical
		printf("%d %d\n", omp_get_thread_num(), (int)syscall(SYS_gettid));
	}
}

static __attribute__((noinline)) void smooth(int threads)
{
	(void)threads;
#pragma omp parallel num_threads(threads)
	spin(0.1);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;

	ibscope_region_begin("solver");
	solve(threads);
	ibscope_region_end();
	smooth(threads);
	return 0;
}
