/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on an array by several threads. */
#ifndef IBSCOPE_PARALLEL_H
#define IBSCOPE_PARALLEL_H

#include <pthread.h>
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

/* Start a thread that gets no signals: those are for the first one. Its stack has 256 KiB. Return: false if there is none. */
bool parallel_thread(pthread_t *thread, void *(*work)(void *arg), void *arg);

#endif
