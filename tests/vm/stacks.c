// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stacks FILE STEPS: threads that use their stacks, each other's, and a block of memory, until each has made so many
 * steps. FILE gets "stack TID FIRST LAST" of each thread, the address of a variable there as "local TID ADDRESS", and
 * "block FIRST LAST". Accesses are marked for the rig, as in sharing.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define BLOCK	(8 << 20)
#define MARK	"\n\tnopl 0x1b5c0de(%rdi)\n\t"

typedef void access_fn(volatile uint64_t *at);
access_fn load, store, push, top;
asm("load:\tmov (%rdi), %rax" MARK "ret");
asm("store:\tmov %rax, (%rdi)" MARK "ret");
asm("push:\tpush %rax" MARK "pop %rax\n\tret");
asm("top:\tmov (%rsp), %rax" MARK "ret");
/* Samples are taken where a translation block begins, mostly after indirect calls. */
static access_fn *volatile accesses[] = { push, top, store, load, store };

static volatile uint64_t *block;
static struct thread {
	volatile uint64_t *local;
	volatile unsigned long steps;
	pid_t tid;
	char *first, *last;
} threads[THREADS];
static pthread_barrier_t all_run;

static void *run(void *arg)
{
	volatile uint64_t local[2] = { 0 };
	struct thread *t = arg, *next = &threads[(t - threads + 1) % THREADS];
	pthread_attr_t attr;
	void *stack;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &stack, &size);
	t->first = stack;
	t->last = (char *)stack + size - 1;
	t->tid = gettid();
	t->local = local;
	pthread_barrier_wait(&all_run);
	for (;; t->steps++) {
		volatile uint64_t *at[] = { NULL, NULL, local, next->local + 1,
					    block + (t - threads) * 512 };

		for (int i = 0; i < 5; i++)
			accesses[i](at[i]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	FILE *f = argc == 3 ? fopen(argv[1], "w") : NULL;
	pthread_t thread;

	if (!f)
		return 2;
	/* it lies right above the first stack, and is of the same kind: before 6.7 the kernel makes them one mapping */
	block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED || pthread_barrier_init(&all_run, NULL, THREADS + 1))
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, &threads[i]))
			return 1;
	pthread_barrier_wait(&all_run);
	fprintf(f, "block %p %p\n", (void *)block, (char *)block + BLOCK - 1);
	for (int i = 0; i < THREADS; i++)
		fprintf(f, "stack %d %p %p\nlocal %d %p\n", threads[i].tid, threads[i].first,
			threads[i].last, threads[i].tid, (void *)threads[i].local);
	fclose(f);
	for (int i = 0; i < THREADS; i++)
		while (threads[i].steps < strtoul(argv[2], NULL, 10))
			usleep(10000);
	return 0;
}
