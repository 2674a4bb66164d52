// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_each OUT WORD... -- FILE...: run ibscope with these words, of which '@' is the file, once for each FILE, and
 * print the exit status and FILE. What the runs print is in OUT/0, OUT/1 and so on, or nowhere if OUT is '-'. All
 * runs are in this process: starting an instrumented program takes a hundred times as long as it takes to read a
 * small file. The sanitizer looks for leaks of all runs when this process exits.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORDS	32
#define LIMIT_S 60 /* of one run: beside other tests */

/* tools/ibscope/main.c */
int ibscope_main(int argc, char **argv);

static int run(char **words, int n, char *file)
{
	static char name[] = "ibscope";
	char *argv[WORDS + 2] = { name };
	int status;

	for (int i = 0; i < n; i++)
		argv[i + 1] = strcmp(words[i], "@") ? words[i] : file;
	alarm(LIMIT_S);
	status = ibscope_main(n + 1, argv);
	alarm(0);
	return status;
}

/* Stdout of run number @n. */
static int redirect(const char *out, int n)
{
	char path[4096];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%d", out, n);
	fd = open(strcmp(out, "-") ? path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		  0600);
	ret = dup2(fd, STDOUT_FILENO);
	close(fd);
	return ret;
}

int main(int argc, char **argv)
{
	int n = 0, out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	while (2 + n < argc && strcmp(argv[2 + n], "--"))
		n++;
	if (n > WORDS || 2 + n >= argc || out < 0)
		return 2;
	for (int i = n + 3; i < argc; i++) {
		int status;

		if (redirect(argv[1], i - n - 3) < 0)
			return 2;
		status = run(argv + 2, n, argv[i]);

		/* after the messages of this run */
		fflush(stderr);
		if (dprintf(out, "%d %s\n", status, argv[i]) < 0)
			return 2;
	}
	return 0;
}
