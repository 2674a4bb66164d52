// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_each WORD... -- FILE...: run ibscope with these words, of which '@' is the file, once for each FILE, and print
 * the exit status and FILE. All runs are in this process: starting an instrumented program takes a hundred times as
 * long as it takes to read a small file. The sanitizer looks for leaks of all runs when this process exits.
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

int main(int argc, char **argv)
{
	int n = 0, out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	while (1 + n < argc && strcmp(argv[1 + n], "--"))
		n++;
	if (n > WORDS || 1 + n == argc || out < 0 || dup2(null, STDOUT_FILENO) < 0)
		return 2;
	for (int i = n + 2; i < argc; i++) {
		int status = run(argv + 1, n, argv[i]);

		/* after the messages of this run */
		fflush(stderr);
		if (dprintf(out, "%d %s\n", status, argv[i]) < 0)
			return 2;
	}
	return 0;
}
