/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether other users could put something else in the place of a file. */
#ifndef IBSCOPE_TRUSTED_DIR_H
#define IBSCOPE_TRUSTED_DIR_H

#include "std.h"

/**
 * trusted_dir_check() - refuse a directory whose entries other users can add or replace
 * @path:	absolute; exists
 * @sticky_ok:	the directories above it may be like /tmp, where users cannot touch what is not theirs
 *
 * Every component, also of the targets of symbolic links, must belong to root or to the user of this
 * process, and be closed to writing by others. The group may write if it is root's.
 *
 * Return: 0; or a negative errno with @err, which names the component: -EPERM if it is not safe.
 */
int trusted_dir_check(const char *path, bool sticky_ok, struct err *err);

#endif
