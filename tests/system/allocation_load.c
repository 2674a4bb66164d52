// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * allocation_load ROUNDS [marked]: allocations of twelve functions that are read for known times, each freed after its use, so that
 * the same addresses belong to several of them. Prints "alloc PID TIME ADDRESS SIZE FUNCTION" and "free PID TIME
 * ADDRESS" with times of CLOCK_MONOTONIC in nanoseconds, and "fork PARENT TIME CHILD" before a child reads what it
 * inherited.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAR   __attribute__((noinline))
#define SITES 12

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#define SITE(n)                                                                        \
	FAR static void *site_##n(size_t size)                                         \
	{                                                                              \
		void *p = n % 4 == 3   ? calloc(1, size)                               \
			  : n % 4 == 2 ? mmap(NULL, size, PROT_READ | PROT_WRITE,      \
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)      \
				       : malloc(size);                                 \
                                                                                       \
		printf("alloc %d %llu %p %zu site_%d\n", getpid(), now(), p, size, n); \
		return p;                                                              \
	}
/* clang-format off */
SITE(0) SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7) SITE(8) SITE(9) SITE(10) SITE(11)
	/* clang-format on */

	static void *(*const sites[SITES])(size_t) = { site_0, site_1, site_2,	site_3,
						       site_4, site_5, site_6,	site_7,
						       site_8, site_9, site_10, site_11 };

/* Marked, so that the rig samples it with its own address, and after an indirect call, where it takes most samples. */
typedef void access_fn(const char *at);
access_fn load_at;
__asm__("load_at:\tmov (%rdi), %rax\n\tnopl 0x1b5c0de(%rdi)\n\tret");
static access_fn *volatile access_memory = load_at;

static int marked;

static void load_all(const char *p, size_t size)
{
	for (size_t at = 0; marked && at + 64 <= size; at += 64)
		access_memory(p + at);
	for (size_t at = 0; !marked && at + 256 <= size; at += 256)
		__asm__ volatile("mov (%0), %%rax\n mov 64(%0), %%rcx\n"
				 "mov 128(%0), %%rax\n mov 192(%0), %%rcx\n"
				 :
				 : "r"(p + at)
				 : "rax", "rcx");
}

static void use(const char *p, size_t size, unsigned int ms)
{
	const unsigned long long end = now() + ms * 1000000ull;

	do {
		for (int i = 0; i < 200; i++)
			load_all(p, size);
	} while (now() < end);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1;
	char *kept;
	pid_t child;

	marked = argc > 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < SITES; i++) {
			const size_t size = i % 3 ? 8192 : 200000;
			char *p = sites[i](size);

			memset(p, 1, size);
			use(p, size, 4 + 2 * i);
			printf("free %d %llu %p\n", getpid(), now(), p);
			if (i % 4 == 2)
				munmap(p, size);
			else
				free(p);
		}
	kept = sites[11](8192);
	memset(kept, 1, 8192);
	fflush(stdout);
	child = fork();
	if (!child) {
		use(kept, 8192, 30);
		return 0;
	}
	printf("fork %d %llu %d\n", getpid(), now(), child);
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}
