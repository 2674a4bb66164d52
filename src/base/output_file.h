/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output files, in directories where others may have planted files of the same name. */
#ifndef IBSCOPE_OUTPUT_FILE_H
#define IBSCOPE_OUTPUT_FILE_H

#include "std.h"

#include <signal.h>
#include <stdio.h>

/**
 * output_file_open() - create an output file, replacing any file of that name
 * @stop: when set, stop waiting for the reader of a FIFO; may be NULL
 *
 * The file is always a new one with mode 0600: it is created under a temporary name in the same
 * directory and renamed at once, so that nothing is ever written to a symbolic link or to a file
 * with another owner, another mode or a second name.
 *
 * A FIFO or character device that belongs to this user or root is opened as it is; a FIFO once it
 * has a reader. Symbolic links, FIFOs and devices of others, and everything else are refused.
 *
 * Return: a file descriptor, blocking and closed on exec, or a negative errno with @err: -EINTR if
 * @stop was set.
 */
int output_file_open(const char *path, const volatile sig_atomic_t *stop, struct err *err);

/* The same for binary output; "-" is standard output, unless that is a terminal. */
int output_file_open_binary(const char *option, const char *path, struct err *err);

/* The same as a stream. Return: 0, or a negative errno with @err. */
int output_stream_open(const char *option, const char *path, FILE **out, struct err *err);

/*
 * Return: 0 if output_file_open() would probably succeed, without creating anything; or a negative errno with @err.
 */
int output_file_check(const char *path, struct err *err);

/* Write what is buffered, and close. Return: 0, or -EIO with @err if anything was not written. */
int output_stream_close(FILE *f, const char *path, struct err *err);

/*
 * The first call of a program: standard streams that are closed stay so, as far as reading and writing them is
 * concerned, but no file that is opened later gets their number.
 */
void output_start(void);

/* Write what is buffered. Return: 0, or -EIO with @err if anything was not written since the last call. */
int output_stream_flush(FILE *f, struct err *err);

/* The last call of a program: output_stream_flush() of standard output. Return: the exit status. */
int output_end(int status);

#endif
