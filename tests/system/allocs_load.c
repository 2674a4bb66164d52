// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Allocations that are known. Prints "alloc KIND PID ADDRESS SIZE FUNCTION" for each one that must be recorded, "free PID
 * ADDRESS" for each that is freed, and "small BYTES N" for the sum and number of the small ones.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N	50
#define SMALL_N 200000
#ifdef __clang__
#define FAR static __attribute__((noinline))
#else
#define FAR static __attribute__((noipa))
#endif

static void say(const char *kind, const void *p, size_t size, const char *function)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "alloc %s %d %p %zu %s\n", kind, getpid(), p, size,
			 function);

	if (!p || p == MAP_FAILED || write(1, line, n) != n)
		abort();
}

static void say_free(const void *p)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "free %d %p\n", getpid(), p);

	if (write(1, line, n) != n)
		abort();
}

static void say_dir(void)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "dir %s\n", getenv("IBSCOPE_REGIONS"));

	if (write(1, line, n) != n)
		abort();
}

/* Functions without frame pointers, of different frames: a variable array, and an aligned variable. */
FAR void *by_malloc(size_t size)
{
	void *p = malloc(size);

	say("malloc", p, size, "by_malloc");
	return p;
}

FAR void *with_array(size_t size)
{
	volatile char *array = __builtin_alloca(size % 100 + 1);
	void *p = malloc(size);

	array[0] = 1;
	say("malloc", p, size, "with_array");
	return p + array[0] - 1;
}

FAR void *with_alignment(size_t size)
{
	volatile _Alignas(64) char line[64];
	volatile char *array = __builtin_alloca(size % 50 + 1);
	void *p = malloc(size);

	line[0] = array[0] = 1;
	say("malloc", p, size, "with_alignment");
	return p + line[0] - array[0];
}

FAR void release(void *p)
{
	say_free(p);
	free(p);
}

FAR void by_others(void)
{
	void *p = calloc(10, 1000), *q;

	say("malloc", p, 10000, "by_others");
	for (size_t size = 20000; size < 400000; size *= 2) {
		say_free(p);
		q = realloc(p, size);
		say("malloc", q, size, "by_others");
		p = q;
	}
	say_free(p);
	q = reallocarray(p, 7, 1000);
	say("malloc", q, 7000, "by_others");
	say_free(q);
	if (realloc(q, 10) == NULL) /* not noted any more */
		abort();
	p = memalign(128, 5001);
	say("malloc", p, 5001, "by_others");
	release(p);
	p = aligned_alloc(64, 6400);
	say("malloc", p, 6400, "by_others");
	release(p);
	p = valloc(5002);
	say("malloc", p, 5002, "by_others");
	release(p);
#ifndef JEMALLOC /* it leaves pvalloc() to the C library */
	p = pvalloc(5003);
	say("malloc", p, 5003, "by_others");
	release(p);
#endif
	if (posix_memalign(&p, 256, 5004))
		abort();
	say("malloc", p, 5004, "by_others");
	release(p);
	if (malloc((size_t)-1 / 4) || calloc((size_t)-1, 2) || reallocarray(NULL, (size_t)-1, 2))
		abort();
}

#ifdef JEMALLOC
void *mallocx(size_t size, int flags);
void *rallocx(void *p, size_t size, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t size, int flags);

FAR void by_jemalloc(void)
{
	void *p = mallocx(5005, 0), *q;

	say("malloc", p, 5005, "by_jemalloc");
	say_free(p);
	q = rallocx(p, 50050, 0);
	say("malloc", q, 50050, "by_jemalloc");
	say_free(q);
	sdallocx(q, 50050, 0);
	p = mallocx(5006, 6); /* aligned to 64 bytes */
	say("malloc", p, 5006, "by_jemalloc");
	say_free(p);
	dallocx(p, 0);
}
#endif

FAR void by_mmap(void)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = open("/proc/self/exe", O_RDONLY);
	char *p = mmap(NULL, 1 << 20, prot, flags, -1, 0), *q;

	say("mmap", p, 1 << 20, "by_mmap");
	say_free(p);
	q = mremap(p, 1 << 20, 4 << 20, MREMAP_MAYMOVE);
	say("mmap", q, 4 << 20, "by_mmap");
	say_free(q + 4096);
	munmap(q + 4096, 8192);
	p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	say("mmap", p, 8192, "by_mmap");
	close(fd);
}

static void *thread(void *arg)
{
	for (int i = 0; i < N; i++)
		release((i % 3 == 0   ? by_malloc
			 : i % 3 == 1 ? with_array
				      : with_alignment)(5000 + i));
	return arg;
}

FAR void *small(size_t size)
{
	void *volatile p = malloc(size);

	return p;
}

static void smalls(void)
{
	unsigned long long sum = 0;

	for (int i = 0; i < SMALL_N; i++) {
		size_t size = i * 2654435761u % 4000;

		sum += size;
		free(small(size));
	}
	printf("small %llu %d\n", sum, SMALL_N);
	fflush(stdout);
}

/* Allocate, and wait until record has opened this process's file. */
static void seen(void)
{
	char path[300];

	by_malloc(7000);
	snprintf(path, sizeof(path), "%s/alloc.%d.0", getenv("IBSCOPE_REGIONS"), getpid());
	while (!access(path, F_OK))
		usleep(1000);
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	void *p;

	say_dir();
	if (argc > 1 && !strcmp(argv[1], "again")) {
		release(by_malloc(7000));
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "seen")) {
		seen();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "killed")) {
		for (int i = 0; i < 1000; i++)
			by_malloc(9000);
		kill(getpid(), SIGKILL);
	}
	by_others();
#ifdef JEMALLOC
	by_jemalloc();
#endif
	by_mmap();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	p = by_malloc(12345);
	if (!fork()) {
		release(p); /* of its own copy */
		release(with_alignment(54321));
		_exit(0);
	}
	wait(NULL);
	release(p);
	smalls();
	execl(argv[0], argv[0], "again", NULL);
	return 1;
}
