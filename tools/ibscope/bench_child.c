// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench_child.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_S	  600
#define END_S	  10
#define SAID_MAX  512 /* of a line */
#define NOT_FOUND 127

static void __attribute__((noreturn))
run(const struct bench *b, char *const *argv, int out_fd, int said, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(out_fd < 0 ? null : out_fd, STDOUT_FILENO) >= 0 &&
	    dup2(said, STDERR_FILENO) >= 0) {
		quiet_bind(b->reader_cpu, NULL);
		execvp(argv[0], argv);
		dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	}
	_exit(NOT_FOUND);
}

int bench_child_start(const struct bench *b, char *const *argv, int out_fd,
		      struct bench_child *child, struct err *err)
{
	pid_t parent = getpid();
	int said = bench_tmpfile(err);

	if (said < 0)
		return said;
	fflush(stdout);
	child->pid = fork();
	if (child->pid < 0) {
		int ret = err_set(err, -errno, "cannot make a process: %s", strerror(errno));

		child->pid = 0;
		close(said);
		return ret;
	}
	if (!child->pid)
		run(b, argv, out_fd, said, parent);
	setpgid(child->pid, child->pid); /* whoever is first */
	child->said = said;
	return 0;
}

double bench_child_cpu_ns(const struct bench_child *child)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", child->pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

int bench_child_end(struct bench_child *child, int sig, double *cpu_ns)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	double deadline = now_s() + (sig ? END_S : RUN_S);
	bool killed = false;
	struct rusage u;
	int status;

	if (child->pid <= 0)
		return -1;
	if (sig)
		kill(sig == SIGKILL ? -child->pid : child->pid, sig);
	for (;;) {
		pid_t pid = wait4(child->pid, &status, WNOHANG, &u);

		if (pid == child->pid)
			break;
		if (pid < 0 && errno != EINTR) {
			child->pid = 0;
			return -1;
		}
		if (!killed && (now_s() > deadline || (bench_stop && !sig))) {
			kill(-child->pid, SIGKILL);
			killed = true;
		}
		nanosleep(&pause, NULL);
	}
	child->pid = 0;
	if (cpu_ns)
		*cpu_ns = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 +
			  (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
	return status;
}

void bench_child_said(const struct bench_child *child, char *buf, size_t size)
{
	char path[48], line[SAID_MAX];
	FILE *f;

	*buf = 0;
	/* opened anew: what reads the descriptor itself moves where the program writes */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", child->said);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, " Usage:", 7)) {
			if (!*buf)
				snprintf(buf, size, "it only shows its usage");
			break;
		}
		if (strspn(line, " \t[]-.") < strlen(line))
			snprintf(buf, size, "%s", line);
	}
	if (f)
		fclose(f);
}

bool bench_in_path(const char *name)
{
	const char *dir = getenv("PATH");
	char path[512];

	while (dir && *dir) {
		size_t len = strcspn(dir, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name);
		if (!access(path, X_OK))
			return true;
		dir += len + (dir[len] == ':');
	}
	return false;
}
