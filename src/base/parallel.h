/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on an array by several threads. */
#ifndef IBSCOPE_PARALLEL_H
#define IBSCOPE_PARALLEL_H

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

#endif
