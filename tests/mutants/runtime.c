// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What programs with mutants share: MUTANT is the number of the active one; the file MUTANT_REACHED has a byte for
 * each, which is set when its place is reached, by any process.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MUTANTS_MAX /* mutants.py sets it */
#define MUTANTS_MAX 1
#endif

extern int mutant_number;
extern unsigned char *mutant_reached;

static unsigned char nobody_asks[MUTANTS_MAX];
int mutant_number;
unsigned char *mutant_reached = nobody_asks;

__attribute__((constructor(101))) static void begin(void)
{
	const char *number = getenv("MUTANT"), *path = getenv("MUTANT_REACHED");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	mutant_number = number ? atoi(number) : 0;
	if (fd < 0)
		return;
	map = mmap(NULL, MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		mutant_reached = map;
	close(fd);
}

#define ENV_MAX 64

/* The process that reads names gets few variables: these as well. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
		const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	static const char *const ours[] = { "MUTANT=", "MUTANT_REACHED=" };
	__typeof__(&posix_spawn) real = (__typeof__(real))dlsym(RTLD_NEXT, "posix_spawn");
	char *all[ENV_MAX + 3];
	int n = 0;

	for (; n < ENV_MAX && env[n]; n++)
		all[n] = env[n];
	if (env[n])
		return real(pid, path, files, attr, argv, env);
	for (char **e = environ; *e; e++)
		for (int i = 0; i < 2; i++)
			if (!strncmp(*e, ours[i], strlen(ours[i])))
				all[n++] = *e;
	all[n] = NULL;
	return real(pid, path, files, attr, argv, all);
}
