/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks whether other users could replace a file. */
#ifndef IBSCOPE_TRUSTED_DIR_H
#define IBSCOPE_TRUSTED_DIR_H

#include "std.h"

/**
 * trusted_dir_check() - refuse a directory whose entries other users can add or replace
 * @path:	absolute; exists
 * @sticky_ok:	parent directories may be sticky like /tmp, where users cannot touch files of others
 *
 * Every component, including those of symbolic link targets, must belong to root or to the user of
 * this process, and must not be writable by others. The group may write if it is root's.
 *
 * Return: 0; or a negative errno with @err, which names the component: -EPERM if it is not safe.
 */
int trusted_dir_check(const char *path, bool sticky_ok, struct err *err);

#endif
