/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two kinds of files with symbols: objects, and the list of the kernel. */
#ifndef IBSCOPE_SYMBOLS_PRIVATE_H
#define IBSCOPE_SYMBOLS_PRIVATE_H

#include "symbols.h"

/* --- objects: symbols_object.c --- */

struct object;

struct object_opts {
	const char *debug_dir;
	bool trusted; /* the path is of this machine, so a file without a build-id is believed */
};

/**
 * object_open() - open what a map was of
 * @build_id: NULL: not told
 * @why:      on failure, the reason for people, at most @size bytes
 *
 * Return: NULL if there is no such file, or it is another one.
 */
struct object *object_open(const char *path, const unsigned char *build_id,
			   unsigned int build_id_len, const struct object_opts *opts, char *why,
			   size_t size);
void object_close(struct object *o); /* accepts NULL */

/* The name at an offset in the file, or NULL; it lives as long as @o. */
const char *object_symbol(struct object *o, __u64 offset);

/* "file:line" in @buf. Return: false if not known. */
bool object_srcline(struct object *o, __u64 offset, char *buf, size_t size);

/* --- the kernel: symbols_kernel.c --- */

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

/* The address of a symbol. Return: false if there is none of that name. */
bool kernel_symbols_address(const struct kernel_symbols *k, const char *name, __u64 *addr);

#endif
