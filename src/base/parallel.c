// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "parallel.h"

#include "array.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* Signals are for the first thread, which waits for them. Return: false if there is no thread. */
static bool start_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
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

	while (threads < want && start_thread(&thread[threads], work, &p))
		threads++;
	work(&p);
	while (threads)
		pthread_join(thread[--threads], NULL);
}

struct parallel_worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*job)(void *arg); /* NULL: the last one is done */
	void *arg;
	bool ends;
};

static void *do_jobs(void *arg)
{
	struct parallel_worker *w = arg;

	pthread_mutex_lock(&w->mutex);
	for (;;) {
		while (!w->job && !w->ends)
			pthread_cond_wait(&w->changed, &w->mutex);
		if (!w->job)
			break;
		pthread_mutex_unlock(&w->mutex);
		w->job(w->arg);
		pthread_mutex_lock(&w->mutex);
		w->job = NULL;
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

struct parallel_worker *parallel_worker_new(void)
{
	struct parallel_worker *w = parallel_count() < 2 ? NULL : calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (start_thread(&w->thread, do_jobs, w))
		return w;
	free(w);
	return NULL;
}

static void wait_locked(struct parallel_worker *w)
{
	while (w->job)
		pthread_cond_wait(&w->changed, &w->mutex);
}

void parallel_begin(struct parallel_worker *w, void (*job)(void *arg), void *arg)
{
	if (!w) {
		job(arg);
		return;
	}
	pthread_mutex_lock(&w->mutex);
	wait_locked(w);
	w->job = job;
	w->arg = arg;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->mutex);
}

void parallel_wait(struct parallel_worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->mutex);
	wait_locked(w);
	pthread_mutex_unlock(&w->mutex);
}

void parallel_worker_free(struct parallel_worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->mutex);
	wait_locked(w);
	w->ends = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->mutex);
	pthread_cond_destroy(&w->changed);
	free(w);
}

static void work_on_batch(void *arg)
{
	struct parallel_queue *q = arg;

	q->work(q->ctx, q->batch, q->n_batch);
}

static void begin_batch(struct parallel_queue *q)
{
	unsigned char *done;

	parallel_wait(q->worker);
	done = q->batch;
	q->batch = q->waiting;
	q->n_batch = q->n_waiting;
	q->waiting = done;
	q->n_waiting = 0;
	parallel_begin(q->worker, work_on_batch, q);
}

void parallel_queue_put(struct parallel_queue *q, const void *items, size_t n)
{
	const unsigned char *from = items;

	while (n) {
		size_t fits = q->room - q->n_waiting < n ? q->room - q->n_waiting : n;

		if (!q->waiting)
			q->waiting = xcalloc(q->room, q->item);
		memcpy(q->waiting + q->n_waiting * q->item, from, fits * q->item);
		q->n_waiting += fits;
		from += fits * q->item;
		n -= fits;
		if (q->n_waiting < q->room)
			continue;
		if (!q->batch)
			q->worker = parallel_worker_new();
		begin_batch(q);
	}
}

bool parallel_queue_is_filled_by_next(const struct parallel_queue *q)
{
	return q->n_waiting + 1 == q->room;
}

void parallel_queue_wait(struct parallel_queue *q)
{
	parallel_wait(q->worker);
}

void parallel_queue_flush(struct parallel_queue *q)
{
	if (q->n_waiting)
		begin_batch(q);
	parallel_wait(q->worker);
}

void parallel_queue_free(struct parallel_queue *q)
{
	parallel_worker_free(q->worker);
	free(q->waiting);
	free(q->batch);
}
