// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// spin CGROUP CPU: two threads busy on one CPU in a cgroup v2 directory made
// here; says which tids and which cgroup id that is.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void *spin(void *tid)
{
	if (tid)
		*(volatile int *)tid = gettid();
	for (volatile int on = 1; on; )
		;
	return NULL;
}

int main(int argc, char **argv)
{
	volatile int tid = 0;
	char procs[4096];
	struct stat st;
	pthread_t t;
	cpu_set_t set;
	FILE *f;

	if (argc != 3 || mkdir(argv[1], 0755) || stat(argv[1], &st))
		return perror("spin"), 1;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", argv[1]);
	f = fopen(procs, "w");
	if (!f || fprintf(f, "0") < 0 || fclose(f))
		return perror(procs), 1;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[2]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    pthread_create(&t, NULL, spin, (void *)&tid))
		return perror("spin"), 1;
	while (!tid)
		sched_yield();
	printf("spin tids=%d,%d tgid=%d cgroup=%llu\n", getpid(), tid, getpid(),
	       (unsigned long long)st.st_ino);
	fflush(stdout);
	spin(NULL);
	return 0;
}
