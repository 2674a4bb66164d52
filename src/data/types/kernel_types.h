/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Structs and fields of kernel objects, from the kernel's type information (BTF). */
#ifndef IBSCOPE_KERNEL_TYPES_H
#define IBSCOPE_KERNEL_TYPES_H

#include "base/err.h"
#include "data_types.h"

struct kernel_types;

/**
 * kernel_types_open() - open the types of a kernel
 * @path: file with BTF; NULL: the running kernel, with its modules
 *
 * Return: 0, or a negative errno with @err.
 */
int kernel_types_open(const char *path, struct kernel_types **out, struct err *err);
void kernel_types_close(struct kernel_types *k); /* accepts NULL */

/**
 * kernel_types_field() - find the field at an offset of an object in a slab cache
 * @cache: its name
 * @bytes: object size that the cache was created with
 * @size:  bytes accessed; 0: unknown
 *
 * A cache holds objects of the struct that it is named after, or of one from a table. This is used only if
 * exactly one struct has that name and that size.
 *
 * Return: false if the struct is unknown.
 */
bool kernel_types_field(struct kernel_types *k, const char *cache, __u64 bytes, __u64 offset,
			unsigned int size, struct type_access *out);

/* types_layout() for such a struct. */
bool kernel_types_layout(struct kernel_types *k, const char *name, types_field_cb *cb, void *arg);

#endif
