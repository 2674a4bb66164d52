/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening files whose names come from others. */
#ifndef IBSCOPE_REGULAR_H
#define IBSCOPE_REGULAR_H

#include "err.h"

#include <sys/stat.h>

/**
 * regular_open() - open a regular file for reading
 *
 * To open a device or a pipe can have effects or wait for ever, so the kind of file is checked
 * before it is opened (O_PATH).
 *
 * Return: an fd that the caller closes, or a negative errno; -EINVAL if it is not a regular file.
 */
int regular_open(const char *path);

/**
 * regular_chroot() - let this process have another root directory, where anything may be at /proc
 *
 * What fails leaves the process as it is, but for its working directory.
 *
 * Return: 0 or a negative errno.
 */
int regular_chroot(int dir);

/**
 * regular_check_secret() - refuse a secret that others can read or replace, which protects nothing
 * @what: "key"
 *
 * Return: 0, or -EINVAL with @err.
 */
int regular_check_secret(const char *path, const struct stat *st, const char *what,
			 struct err *err);

#endif
