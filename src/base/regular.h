/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening files named by others. */
#ifndef IBSCOPE_REGULAR_H
#define IBSCOPE_REGULAR_H

#include "err.h"

#include <sys/stat.h>

/**
 * regular_open() - open a regular file for reading
 *
 * Opening a device or a pipe can have side effects or block forever, so the type of the file is
 * checked before opening it (O_PATH).
 *
 * Return: an fd that the caller closes, or a negative errno; -EINVAL if it is not a regular file.
 */
int regular_open(const char *path);

/**
 * regular_chroot() - change this process's root directory to one where /proc may be anything
 *
 * On failure only the working directory may have changed.
 *
 * Return: 0 or a negative errno.
 */
int regular_chroot(int dir);

/**
 * regular_check_secret() - refuse a secret that other users can read or replace
 * @what: noun for messages, such as "key"
 *
 * Return: 0, or -EINVAL with @err.
 */
int regular_check_secret(const char *path, const struct stat *st, const char *what,
			 struct err *err);

#endif
