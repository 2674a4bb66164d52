// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What programs with mutants share: MUTANT is the number of the active one; the file MUTANT_REACHED has a byte for
 * each, which is set when its place is reached, by any process.
 */
#include <fcntl.h>
#include <stdlib.h>
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
