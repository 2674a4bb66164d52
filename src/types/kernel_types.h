/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The structs and fields of kernel objects, by the kernel's own type information (BTF). */
#ifndef IBSCOPE_KERNEL_TYPES_H
#define IBSCOPE_KERNEL_TYPES_H

#include "base/err.h"
#include "data_types.h"

struct kernel_types;

/**
 * kernel_types_open() - the types of a kernel
 * @path: file with BTF; NULL: the running kernel, with its modules
 *
 * Return: 0, or a negative errno with @err.
 */
int kernel_types_open(const char *path, struct kernel_types **out, struct err *err);
void kernel_types_close(struct kernel_types *k); /* accepts NULL */

/**
 * kernel_types_field() - what is at an offset of an object in a slab cache
 * @cache: its name
 * @bytes: of an object, as the maker of the cache asked for
 * @size:  bytes accessed; 0: unknown
 *
 * A cache has the objects of the struct that it is named after, or of one that a table names. That is believed
 * only if exactly one struct has that name and that size.
 *
 * Return: false if that struct is not known.
 */
bool kernel_types_field(struct kernel_types *k, const char *cache, __u64 bytes, __u64 offset,
			unsigned int size, struct type_access *out);

/* types_layout() of such a struct. */
bool kernel_types_layout(struct kernel_types *k, const char *name, types_field_cb *cb, void *arg);

#endif
