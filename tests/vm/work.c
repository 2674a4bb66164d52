// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// work CGROUP CPU: two threads busy on one CPU in a cgroup v2 directory that exists.
// work -u UID COMMAND...: run COMMAND as that user, without capabilities.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *spin(void *unused)
{
	for (volatile int on = 1; on;)
		;
	return unused;
}

int main(int argc, char **argv)
{
	char procs[4096];
	pthread_t t;
	cpu_set_t set;
	FILE *f;

	if (argc > 3 && !strcmp(argv[1], "-u")) {
		uid_t uid = atoi(argv[2]);

		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			return perror("work"), 125;
		execvp(argv[3], argv + 3);
		return perror(argv[3]), 125;
	}
	if (argc != 3)
		return fprintf(stderr, "usage: work CGROUP CPU | work -u UID COMMAND...\n"), 125;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", argv[1]);
	f = fopen(procs, "w");
	if (!f || fprintf(f, "0") < 0 || fclose(f))
		return perror(procs), 1;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[2]), &set);
	/* what is tested should not wait for us */
	if (nice(19) < 0 || sched_setaffinity(0, sizeof(set), &set) ||
	    pthread_create(&t, NULL, spin, NULL))
		return perror("work"), 1;
	spin(NULL);
	return 0;
}
