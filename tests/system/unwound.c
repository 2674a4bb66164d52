// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * unwound MS: frames of many kinds, without frame pointers. Each kind is a function between main() and leaf(); in turn each
 * runs for a while. deep() is called 32 times by itself, with a KiB on the stack each time.
 */
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AWAY __attribute__((noinline))

static volatile unsigned long block[1 << 12];
static volatile unsigned long sum;

AWAY static unsigned long leaf(unsigned long at)
{
	unsigned long n = 0;

	for (int i = 0; i < 64; i++)
		n += block[(at + i * 8) % (1 << 12)];
	return n;
}

AWAY static unsigned long scan(unsigned long at)
{
	return leaf(at) + leaf(at + 1) + leaf(at + 2) + 1;
}

AWAY static unsigned long query(unsigned long at)
{
	return leaf(at) + 1;
}

AWAY static unsigned long plain(unsigned long at)
{
	return scan(at) + query(at);
}

/* Its frame is found through a register that it saves. */
AWAY static unsigned long aligned(unsigned long at)
{
	volatile char *room = alloca(at % 3 + 1);
	volatile char line[64] __attribute__((aligned(64)));

	room[0] = line[at % 64] = 1;
	return leaf(at) + room[0] + line[at % 64];
}

AWAY static unsigned long sized(unsigned long at)
{
	volatile char *room = alloca(at % 64 + 16);

	room[at % 16] = 1;
	return leaf(at) + room[at % 16];
}

AWAY static int compare(const void *a, const void *b)
{
	sum += leaf(*(const char *)a);
	return *(const char *)a - *(const char *)b;
}

/* A function of a library calls back. */
AWAY static unsigned long sorted(unsigned long at)
{
	char some[] = "unwound";

	qsort(some, sizeof(some), 1, compare);
	return some[at % sizeof(some)];
}

AWAY static void on_signal(int number)
{
	for (int i = 0; i < 100; i++)
		sum += leaf(number);
}

AWAY static unsigned long signalled(unsigned long at)
{
	raise(SIGUSR1);
	return at;
}

AWAY static unsigned long deep(unsigned long at, int left)
{
	volatile char room[1024];

	room[at % sizeof(room)] = 1;
	return (left ? deep(at, left - 1) : leaf(at)) + room[at % sizeof(room)];
}

/* Of CPU time: as many samples on a busy machine. */
static long ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	unsigned long (*const kinds[])(unsigned long) = { plain, aligned, sized, sorted,
							  signalled };
	const long each = argc > 1 ? atol(argv[1]) : 100;

	signal(SIGUSR1, on_signal);
	for (size_t i = 0; i <= sizeof(kinds) / sizeof(*kinds); i++)
		for (long end = ms() + each; ms() < end;)
			for (unsigned long n = 0; n < 100; n++)
				sum += i < sizeof(kinds) / sizeof(*kinds) ? kinds[i](n)
									  : deep(n, 31);
	return 0;
}
