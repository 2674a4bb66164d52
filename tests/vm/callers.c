// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * callers N: a leaf function without a frame of its own, called three times by one function and once by another, N thousand
 * times. Built with frame pointers.
 */
#include <stdlib.h>

static volatile unsigned long block[1 << 12];

__attribute__((noinline)) unsigned long leaf(unsigned long at)
{
	unsigned long sum = 0;

	for (int i = 0; i < 64; i++)
		sum += block[(at + i * 8) % (1 << 12)];
	return sum;
}

__attribute__((noinline)) unsigned long scan(unsigned long at)
{
	return leaf(at) + leaf(at + 1) + leaf(at + 2) + 1;
}

__attribute__((noinline)) unsigned long query(unsigned long at)
{
	return leaf(at) + 1;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) * 1000 : 0, sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum += scan(i) + query(i);
	return sum == 1;
}
