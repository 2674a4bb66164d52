/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files for output, in directories where others may have put something under their name. */
#ifndef IBSCOPE_OUTPUT_FILE_H
#define IBSCOPE_OUTPUT_FILE_H

#include "std.h"

#include <signal.h>

/**
 * output_file_open() - create a file, in whose place the name may have had another one
 * @stop: when set, waiting for the reader of a FIFO ends; may be NULL
 *
 * The file is always a new one of ours, with mode 0600: it is created under a temporary name in the
 * same directory and renamed at once, so that neither a symbolic link nor a file with another owner,
 * mode or a second name is ever written to.
 *
 * A FIFO or a character device of ours or root's is opened as it is; a FIFO once it has a reader.
 * Symbolic links, other people's FIFOs and devices, and everything else are refused.
 *
 * Return: a file descriptor, blocking and closed on exec, or a negative errno with @err: -EINTR if
 * @stop was set.
 */
int output_file_open(const char *path, const volatile sig_atomic_t *stop, struct err *err);

/* The same for what is not for terminals; "-" is standard output, unless that is one. */
int output_file_open_binary(const char *option, const char *path, struct err *err);

#endif
