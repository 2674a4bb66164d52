/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits of this process that large machines run into. */
#ifndef IBSCOPE_RLIMIT_H
#define IBSCOPE_RLIMIT_H

#include <stddef.h>

/* Allow @more open files than are open now, as far as the hard limit and privileges go. */
void rlimit_files(size_t more);

#endif
