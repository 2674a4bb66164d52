/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of others that `ibscope bench` runs: away from the loop, and never outliving it. */
#ifndef IBSCOPE_BENCH_CHILD_H
#define IBSCOPE_BENCH_CHILD_H

#include "bench.h"

#include <sys/types.h>

struct bench_child {
	pid_t pid; /* 0: none */
	int said;  /* a file with its standard error */
};

/**
 * bench_child_start() - run a program of PATH on the readers' CPU
 * @out_fd: its standard output; -1: /dev/null
 *
 * It is in a process group of its own, as ^C is for us alone to act on.
 *
 * Return: 0, or a negative errno with @err; a program that is not there ends with status 127.
 */
int bench_child_start(const struct bench *b, char *const *argv, int out_fd,
		      struct bench_child *child, struct err *err);

/* CPU time so far, of its main thread, in ns; 0 if the kernel does not tell. */
double bench_child_cpu_ns(const struct bench_child *child);

/**
 * bench_child_end() - signal it and wait, at most ten seconds; then it is killed
 * @sig:    0: it ends by itself, within ten minutes
 * @cpu_ns: of its whole life; may be NULL
 *
 * Return: its wait status, -1 without one.
 */
int bench_child_end(struct bench_child *child, int sig, double *cpu_ns);

/* The last line it said before an explanation of its usage, for messages; "" if none. */
void bench_child_said(const struct bench_child *child, char *buf, size_t size);

/* Is a program of that name in PATH? */
bool bench_in_path(const char *name);

#endif
