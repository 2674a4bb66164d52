/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of C++ and Rust as people write them. */
#ifndef IBSCOPE_DEMANGLE_H
#define IBSCOPE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX 4096 /* bytes of a mangled name; longer ones stay as they are */

/**
 * demangle() - print a name of the Itanium C++ ABI or of Rust (legacy and v0) without parameters and hashes
 *
 * The name may come from a stranger: the depth of recursion is limited, and so is the output, but not the time. Call
 * it in a confined process.
 *
 * Return: false if the name is not mangled, or its readable form does not fit @buf.
 */
bool demangle(const char *name, char *buf, size_t size);

#endif
