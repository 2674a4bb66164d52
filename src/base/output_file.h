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

#define OUTPUT_NAME_MAX 32

/* A result in writing. */
struct output_file {
	const char *path;
	int fd;			    /* to write to */
	int dir;		    /* -1: written directly */
	char name[OUTPUT_NAME_MAX]; /* temporary; "": none */
	FILE *f;		    /* or NULL */
};

/**
 * output_file_begin() - create a result, which gets its name when it is complete
 * @path: lives as long as @o; "-" is standard output
 * @option: standard output may not be a terminal, and the error names this option; NULL: it may
 *
 * Until output_file_end(), a regular file of that name stays as it is, also if the program is killed, and nothing else
 * is left then. A FIFO or character device is written to directly; what is accepted is as for output_file_open().
 *
 * Only one result can be written at a time.
 *
 * Return: 0, or a negative errno with @err.
 */
int output_file_begin(struct output_file *o, const char *option, const char *path, struct err *err);

/* A stream that writes to the file, once, and that output_file_end() closes. */
FILE *output_file_stream(struct output_file *o);

/**
 * output_file_end() - write what is buffered, replace the file of that name, and close
 * @ret: result of writing; unless 0, discard the new file instead
 *
 * Return: @ret, or a negative errno with @err if anything was not written.
 */
int output_file_end(struct output_file *o, int ret, struct err *err);

/*
 * Return: 0 if output_file_open() or output_file_begin() would probably succeed, without creating anything; or a
 * negative errno with @err.
 */
int output_file_check(const char *path, struct err *err);

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
