/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The symbols of a stripped program that it carries compressed in its section .gnu_debugdata. */
#ifndef IBSCOPE_MINI_DEBUG_H
#define IBSCOPE_MINI_DEBUG_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

#define MINI_DEBUG_BYTES   (64u << 20)	/* once expanded; that of a large program has 10 MiB */
#define MINI_DEBUG_DECODER (128u << 20) /* memory that expanding it takes; xz -9 wants 65 MiB */

/**
 * mini_debug_check() - may libdwfl read this section?
 * @why: if not, the reason for people, at most @size bytes
 *
 * libdwfl expands it without a limit of its own. One that is damaged it ignores.
 */
bool mini_debug_check(Elf *elf, char *why, size_t size);

#endif
