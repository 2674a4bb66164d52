/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_EXPORTER_PRIVILEGES_H
#define IBSCOPE_EXPORTER_PRIVILEGES_H

#include "err.h"

/**
 * privileges_drop() - for good: user, groups, capabilities, and that a program could bring any back
 * @user: whom root becomes; others stay who they are
 *
 * Files that are open stay open. Return: 0, or a negative errno with @err; then it must not go on.
 */
int privileges_drop(const char *user, struct err *err);

#endif
