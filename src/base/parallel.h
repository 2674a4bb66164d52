/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on an array by several threads. */
#ifndef IBSCOPE_PARALLEL_H
#define IBSCOPE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

#define PARALLEL_MAX 8

/* Number of threads; 0, as at first: one for each CPU that the process may use, PARALLEL_MAX at most. */
extern unsigned int parallel_threads;

/* The number of threads that parallel_for() uses. */
unsigned int parallel_count(void);

/**
 * parallel_for() - do @work for [0, n), in parts of @part elements
 * @work: called with each part once, by any thread; it touches only what belongs to the part
 *
 * What cannot get a thread is done by the caller. Return: when all is done.
 */
void parallel_for(size_t n, size_t part, void (*work)(void *ctx, size_t from, size_t to),
		  void *ctx);

/*
 * A thread that does one job at a time while its owner goes on. Jobs are done in the order in which they were begun.
 */
struct parallel_worker;

/* Return: NULL if there is no second CPU, or no thread to be had; then jobs are done at once. */
struct parallel_worker *parallel_worker_new(void);

/* Begin a job, once the last one is done. */
void parallel_begin(struct parallel_worker *w, void (*job)(void *arg), void *arg);

/* Wait until the last job is done; what it wrote can be read then. */
void parallel_wait(struct parallel_worker *w);

void parallel_worker_free(struct parallel_worker *w); /* after its last job */

/*
 * Items that another thread works on in batches, while their owner adds the next ones. Set `item`, `room`, `work` and
 * `ctx` first; what @work writes belongs to that thread until parallel_queue_wait() returns.
 */
struct parallel_queue {
	size_t item; /* bytes of one */
	size_t room; /* items of a batch */
	void (*work)(void *ctx, const void *items, size_t n);
	void *ctx;

	/* private */
	unsigned char *waiting, *batch; /* added, and in work */
	size_t n_waiting, n_batch;
	struct parallel_worker *worker; /* from the first full batch on */
};

/* Add copies of @n items. Full batches are begun, each once the one before is done. */
void parallel_queue_put(struct parallel_queue *q, const void *items, size_t n);

/* Will the next item begin a batch? */
bool parallel_queue_is_filled_by_next(const struct parallel_queue *q);

/* Wait for the batch in work. */
void parallel_queue_wait(struct parallel_queue *q);

/* Have all items worked on. Return: when that is done. */
void parallel_queue_flush(struct parallel_queue *q);

void parallel_queue_free(struct parallel_queue *q); /* items that wait are dropped */

#endif
