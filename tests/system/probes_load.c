// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program whose allocator has USDT probes, as <sys/sdt.h> makes them, with a semaphore: it allocates and frees, and
 * prints what. probes_load [fork] [wait]: in a child, too; when a line comes on stdin, until the end of stdin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "usdt_probe.h"

#define ALLOCATIONS 50
#define WEIGHT	    10 /* bytes that each byte represents */

SEMAPHORE(alloc);
SEMAPHORE(free);

/* The names are those of jemalloc, which reports skip. */
__attribute__((noinline)) static void *je_sampled(size_t size)
{
	void *p = malloc(size);

	if (otel_memory_alloc_semaphore)
		PROBE(alloc, "8@%0 8@%1 8@%2", "r"(p), "r"(size), "r"(size * WEIGHT));
	printf("alloc %d 0x%lx %zu\n", (int)getpid(), (unsigned long)p, size);
	return p;
}

__attribute__((noinline)) static void je_free_sampled(void *p)
{
	if (otel_memory_free_semaphore)
		PROBE(free, "8@%0", "r"(p));
	printf("free %d 0x%lx\n", (int)getpid(), (unsigned long)p);
	free(p);
}

__attribute__((noinline)) static void by_probe(void)
{
	void *p[ALLOCATIONS];

	for (size_t i = 0; i < ALLOCATIONS; i++)
		p[i] = je_sampled(1000 + 100 * i);
	for (size_t i = 0; i < ALLOCATIONS / 2; i++)
		je_free_sampled(p[i]);
	/* what is left is used */
	for (int round = 0; round < 400000; round++)
		for (size_t i = ALLOCATIONS / 2; i < ALLOCATIONS; i++)
			*(volatile char *)p[i] = 1;
}

static int is_asked(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char line[16];
	const int waits = is_asked(argc, argv, "wait");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (waits) {
		printf("ready\n");
		fgets(line, sizeof(line), stdin);
	}
	by_probe();
	if (is_asked(argc, argv, "fork")) {
		if (!fork()) {
			by_probe();
			return 0;
		}
		wait(NULL);
	}
	if (waits) {
		printf("done\n");
		while (fgets(line, sizeof(line), stdin))
			;
	}
	return 0;
}
