/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_CMD_SERVE_H
#define IBSCOPE_CMD_SERVE_H

#include "base/err.h"

#include <stddef.h>

/* As collector_check_set(), with the options of serve. */
int serve_check_set(char *text, size_t n, struct err *err);

#endif
