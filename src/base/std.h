/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Included by nearly every file: common headers of the C library, errors, and memory. */
#ifndef IBSCOPE_STD_H
#define IBSCOPE_STD_H

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "err.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
