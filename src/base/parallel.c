// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define STACK_BYTES (256 << 10)

unsigned int parallel_threads;

struct parallel {
	size_t n, part;
	void (*work)(void *ctx, size_t from, size_t to);
	void *ctx;
	atomic_size_t next;
};

unsigned int parallel_count(void)
{
	cpu_set_t cpus;
	unsigned int n = parallel_threads;

	if (!n && !sched_getaffinity(0, sizeof(cpus), &cpus))
		n = CPU_COUNT(&cpus);
	return !n ? 1 : n < PARALLEL_MAX ? n : PARALLEL_MAX;
}

static void *work(void *arg)
{
	struct parallel *p = arg;
	size_t from;

	while ((from = atomic_fetch_add(&p->next, p->part)) < p->n)
		p->work(p->ctx, from, p->n - from < p->part ? p->n : from + p->part);
	return NULL;
}

/* Signals are for the first thread, which waits for them. */
static unsigned int start(struct parallel *p, pthread_t *thread, unsigned int n)
{
	unsigned int started = 0;
	pthread_attr_t attr;
	sigset_t all, before;

	if (pthread_attr_init(&attr))
		return 0;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < n && !pthread_create(&thread[started], &attr, work, p))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

void parallel_for(size_t n, size_t part, void (*cb)(void *ctx, size_t from, size_t to), void *ctx)
{
	struct parallel p = { .n = n, .part = part, .work = cb, .ctx = ctx };
	pthread_t thread[PARALLEL_MAX];
	unsigned int threads = n > part ? start(&p, thread, parallel_count() - 1) : 0;

	work(&p);
	while (threads)
		pthread_join(thread[--threads], NULL);
}
