/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols of the kernel and its modules, from a list in the format of /proc/kallsyms. */
#ifndef IBSCOPE_SYMBOLS_KERNEL_H
#define IBSCOPE_SYMBOLS_KERNEL_H

#include "base/std.h"

struct kernel_symbols;

/**
 * kernel_symbols_open() - a list as of /proc/kallsyms
 * @shift: how much higher the recorded kernel was than the one of the list
 * @core:  the kernel itself only: modules were elsewhere
 *
 * Return: 0, or a negative errno with @err. -EPERM: all addresses are hidden.
 */
int kernel_symbols_open(const char *path, __u64 shift, bool core, struct kernel_symbols **out,
			struct err *err);
void kernel_symbols_close(struct kernel_symbols *k); /* accepts NULL */

/* The name at an address, and its module or NULL; they live as long as @k. NULL: none. */
const char *kernel_symbols_find(const struct kernel_symbols *k, __u64 addr, const char **module);

/**
 * kernel_symbols_variable() - the variable at an address
 * @at: how far behind its first byte
 *
 * The list has no sizes: a variable ends where the next symbol begins, and the last one of the kernel
 * or of a module is not known.
 *
 * Return: as kernel_symbols_find().
 */
const char *kernel_symbols_variable(const struct kernel_symbols *k, __u64 addr, __u64 *at,
				    const char **module);

/* Where the function at an address begins and ends: at the next symbol. Return: false if none is there. */
bool kernel_symbols_bounds(const struct kernel_symbols *k, __u64 addr, __u64 *start, __u64 *end);

/**
 * kernel_read() - memory of the kernel that runs, as /proc/kcore has it
 *
 * Return: 0, or a negative errno with @err.
 */
int kernel_read(__u64 addr, unsigned char *buf, size_t size, struct err *err);

/* The address of a function. Return: false if no symbol has that name. */
bool kernel_symbols_address(const struct kernel_symbols *k, const char *name, __u64 *addr);

#endif
