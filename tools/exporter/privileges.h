/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_EXPORTER_PRIVILEGES_H
#define IBSCOPE_EXPORTER_PRIVILEGES_H

#include "base/err.h"

/**
 * privileges_drop() - drop user, groups, capabilities and dangerous system calls, for good
 * @user: user to switch to when started as root; other users keep their uid
 *
 * Open files stay open. Return: 0, or a negative errno with @err: then the program must exit.
 */
int privileges_drop(const char *user, struct err *err);

#endif
