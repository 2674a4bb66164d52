// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "parallel.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

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

bool parallel_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, before;
	bool started;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

void parallel_for(size_t n, size_t part, void (*cb)(void *ctx, size_t from, size_t to), void *ctx)
{
	struct parallel p = { .n = n, .part = part, .work = cb, .ctx = ctx };
	pthread_t thread[PARALLEL_MAX];
	unsigned int threads = 0, want = n > part ? parallel_count() - 1 : 0;

	while (threads < want && parallel_thread(&thread[threads], work, &p))
		threads++;
	work(&p);
	while (threads)
		pthread_join(thread[--threads], NULL);
}
