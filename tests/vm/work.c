// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// work CGROUP CPU [NAME [UID [KIND]]]: two threads, NAME and NAME.t, busy on one CPU in a cgroup v2
//	directory that exists, as that user. They go in circles half of the time (KIND spin), or a
//	twentieth of it (pulse), call the kernel (kernel), or one of them starts a process after the other
//	(fork), of which each gets a line "parent child" in /tmp/out/children.
// work -hop N SEED: busy on N CPUs in turn, for 0.1 to 0.5 s each if the host has nothing else to do; prints its pid.
// work -bpf SECONDS: busy changing a BPF map on each CPU, when the kernel runs no BPF program.
// work -duty CPU PERCENT SECONDS: busy for a part of each 20 ms.
// work -l3 N: sysfs says from now on that there are N L3 caches, each of as many CPUs in a row.
// work -loop N: go round N times.
// work -fault N: from now on the emulated processor is wrong: 1 sources, 2 latencies, 4 ops of the handler,
//	8 lost samples, or a sum of these; only with --icount.
// work -loud COMMAND...: run it, and do not sleep meanwhile; see -quiet.
// work -quiet FILE COMMAND...: run it; what else this program keeps busy sleeps until FILE says that it
//	samples. Not so where there is no /tmp/quiet.
// work -time COMMAND...: run it; on stderr, last, the CPU time that it and its children took, in us,
//	and that of all tasks meanwhile, in ns, or 0 where the kernel does not tell.
// work -u UID COMMAND...: run COMMAND as that user, without capabilities.
#define _GNU_SOURCE
#include "busy.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN "/tmp/out/children"
#define QUIET	 "/tmp/quiet" /* a byte, 1: be quiet */

static const char *name = "work";
static volatile char *quiet;

static volatile char *map_quiet(void)
{
	static char none;
	int fd = open(QUIET, O_RDWR);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? &none : p;
}

static void be_quiet(void)
{
	while (*quiet)
		usleep(10000);
}

/* Leaves its CPU, and that of the host, to others. */
static void in_circles(int rounds, useconds_t pause)
{
	for (;;) {
		for (volatile int i = 0; i < rounds; i++)
			;
		usleep(pause);
		be_quiet();
	}
}

static void *spin(void *unused)
{
	in_circles(200000, 4000);
	return unused;
}

static void *pulse(void *unused)
{
	in_circles(20000, 2000);
	return unused;
}

static void *call_kernel(void *unused)
{
	static char buf[1 << 16];
	int fd = open("/dev/zero", O_RDONLY);

	while (read(fd, buf, sizeof(buf)) > 0)
		be_quiet();
	return unused;
}

static void *start_processes(void *unused)
{
	char line[64];
	int fd = open(CHILDREN, O_WRONLY | O_APPEND | O_CREAT, 0666);

	for (;;) {
		pid_t parent = getpid(), child = fork();

		if (!child) {
			/* not by the parent, which may be killed before it comes to it */
			snprintf(line, sizeof(line), "%d %d\n", parent, getpid());
			if (write(fd, line, strlen(line)) < 0)
				perror(CHILDREN), _exit(1);
			spin_until(now() + 0.004);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		usleep(20000);
		be_quiet();
	}
	return unused;
}

static const struct kind {
	const char *name;
	void *(*run)(void *), *(*second)(void *); /* of the two threads */
} kinds[] = {
	{ "spin", spin, spin },
	{ "pulse", pulse, pulse },
	{ "kernel", call_kernel, call_kernel },
	{ "fork", start_processes, spin },
};

static const struct kind *find_kind(const char *of)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, of))
			return &kinds[i];
	return NULL;
}

static void *second_thread(void *run)
{
	char second[16];

	snprintf(second, sizeof(second), "%.12s.t", name);
	prctl(PR_SET_NAME, second);
	return ((void *(*)(void *))run)(NULL);
}

static int set_faults(unsigned int faults)
{
	/* nopl (0x1b5c1f0 | faults)(%rdi); ret */
	const unsigned char code[] = { 0x0f, 0x1f, 0x87, 0xf0 | (faults & 15),
				       0xc1, 0xb5, 0x01, 0xc3 };
	void *p = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return perror("mmap"), 1;
	memcpy(p, code, sizeof(code));
	((void (*)(void))p)();
	return 0;
}

/* By rounds, not by time: how many samples each CPU has does not depend on what else the host does. */
static int hop(int times, unsigned int seed)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	printf("%d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < times; i++) {
		int rounds = 14000000 + rand_r(&seed) % 57000000;

		if (pin(i % cpus))
			return perror("work"), 1;
		for (volatile int n = 0; n < rounds; n++)
			;
	}
	return 0;
}

static int work_in_part(int cpu, double percent, double seconds)
{
	double end = now() + seconds;

	if (pin(cpu))
		return perror("work"), 1;
	for (double next = now(); next < end; next += 0.02) {
		spin_until(next + percent / 100 * 0.02);
		if (percent < 100 && next + 0.02 > now())
			usleep((next + 0.02 - now()) * 1e6);
	}
	return 0;
}

static int change_map(double seconds)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 4096, .max_entries = 16
	};
	static char value[4096];
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY }; /* v5.10 counts maps */
	double end = now() + seconds;
	int key = 0, fd;

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	fd = syscall(__NR_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0 || (!fork() && pin(1)) || nice(19) < 0)
		return perror("work"), 1;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	while (now() < end)
		for (int i = 0; i < 100; i++)
			if (syscall(__NR_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)))
				return perror("work"), 1;
	return 0;
}

static int go_round(unsigned long n)
{
	for (volatile unsigned long i = 0; i < n; i++)
		;
	return 0;
}

/* What tasks of any kind ran for, on all CPUs. */
static unsigned long long busy_ns(void)
{
	unsigned long long sum = 0, ns;
	FILE *f = fopen("/proc/schedstat", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%*u %*s %*s %*s %*s %*s %*s %llu", &ns) == 1)
			sum += ns;
	if (f)
		fclose(f);
	return sum;
}

static int show_l3(long n)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char id[64], path[128];

	for (long i = 0; i < cpus; i++) {
		FILE *f;

		snprintf(id, sizeof(id), "/tmp/l3.%ld", i);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/cache/index3/id", i);
		f = fopen(id, "w");
		if (!f || fprintf(f, "%ld\n", i * n / cpus) < 0 || fclose(f) ||
		    mount(id, path, NULL, MS_BIND, NULL))
			return perror(path), 1;
	}
	return 0;
}

static bool says_that_it_samples(const char *path)
{
	char text[4096];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return strstr(text, " CPUs, ") || strstr(text, " CPU, ");
}

static pid_t start(char **argv)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], argv);
	_exit(127);
}

static int exit_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_quietly(const char *file, char **argv)
{
	pid_t child;
	int status;

	*quiet = 1;
	child = start(argv);
	while (!waitpid(child, &status, *quiet ? WNOHANG : 0)) {
		usleep(5000);
		*quiet = !says_that_it_samples(file);
	}
	*quiet = 1;
	return exit_of(status);
}

static int run_loudly(char **argv)
{
	int status;

	*quiet = 0;
	waitpid(start(argv), &status, 0);
	*quiet = 1;
	return exit_of(status);
}

static int run_timed(char **argv)
{
	unsigned long long before = busy_ns();
	struct rusage u;
	int status;

	waitpid(start(argv), &status, 0);
	getrusage(RUSAGE_CHILDREN, &u);
	fprintf(stderr, "%ld %llu\n",
		(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
			u.ru_stime.tv_usec,
		busy_ns() - before);
	return exit_of(status);
}

static int become(uid_t uid)
{
	return setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? perror("work"), -1 : 0;
}

int main(int argc, char **argv)
{
	const struct kind *kind;
	char ready[64];
	pthread_t t;

	quiet = map_quiet();
	/* "work" are those alone of which the test keeps account */
	if (argc > 1 && argv[1][0] == '-')
		prctl(PR_SET_NAME, argv[1]);
	if (argc > 3 && !strcmp(argv[1], "-quiet"))
		return run_quietly(argv[2], argv + 3);
	if (argc > 2 && !strcmp(argv[1], "-loud"))
		return run_loudly(argv + 2);
	if (argc > 3 && !strcmp(argv[1], "-u")) {
		if (become(atoi(argv[2])))
			return 125;
		execvp(argv[3], argv + 3);
		return perror(argv[3]), 125;
	}
	if (argc == 5 && !strcmp(argv[1], "-duty"))
		return work_in_part(atoi(argv[2]), atof(argv[3]), atof(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "-hop"))
		return hop(atoi(argv[2]), atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "-bpf"))
		return change_map(atof(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "-l3"))
		return show_l3(atol(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "-fault"))
		return set_faults(strtoul(argv[2], NULL, 0));
	if (argc == 3 && !strcmp(argv[1], "-loop"))
		return go_round(strtoul(argv[2], NULL, 0));
	if (argc > 2 && !strcmp(argv[1], "-time"))
		return run_timed(argv + 2);
	if (argc < 3 || argc > 6)
		return fprintf(stderr, "work: see its source\n"), 125;
	if (argc > 3)
		name = argv[3];
	kind = find_kind(argc > 5 ? argv[5] : "spin");
	if (!kind)
		return fprintf(stderr, "work: there is no KIND '%s'\n", argv[5]), 125;
	/* what is tested should not wait for us */
	if (join(argv[1]) || pin(atoi(argv[2])) || nice(19) < 0 || prctl(PR_SET_NAME, name) ||
	    pthread_create(&t, NULL, second_thread, kind->second))
		return perror("work"), 1;
	if (argc > 4 && become(atoi(argv[4])))
		return 1;
	snprintf(ready, sizeof(ready), "/tmp/ready.%d", getpid());
	close(open(ready, O_WRONLY | O_CREAT, 0666));
	kind->run(NULL);
	return 0;
}
