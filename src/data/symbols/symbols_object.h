/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols and source lines of one ELF file. */
#ifndef IBSCOPE_SYMBOLS_OBJECT_H
#define IBSCOPE_SYMBOLS_OBJECT_H

#include "base/std.h"
#include "source_place.h"
#include "types/data_types.h"

struct object;

struct object_opts {
	const char *debug_dir;
	bool trusted;	 /* the path is of this machine: a file without a build-id is believed */
	bool debuginfod; /* servers may be asked */
};

/**
 * object_open() - open the file that was mapped
 * @build_id: NULL: unknown
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

/**
 * object_variable() - the variable at an address that belongs to a map of the file
 * @pgoff:  of the map in the file
 * @exec:   it is of code: then addresses of all segments count from it, else those of its own
 * @offset: of the address from the map's first byte, plus @pgoff; behind the map it may be in .bss
 * @name:   NULL: no symbol has a size that covers the address
 * @at:     how far behind the first byte of the variable
 *
 * Return: false if the address is in no segment of the file.
 */
bool object_variable(struct object *o, __u64 pgoff, bool exec, __u64 offset, const char **name,
		     __u64 *at);

/* The type and field that the instruction at an address accesses, as the linker gave it. */
void object_code_type(struct object *o, __u64 addr, struct type_access *out);
/* The same at an offset in the file. */
void object_type(struct object *o, __u64 offset, struct type_access *out);
/* The type and field of the variable at an address, as for object_variable(); @size: bytes accessed, 0: unknown. */
void object_variable_type(struct object *o, __u64 pgoff, bool exec, __u64 offset, unsigned int size,
			  struct type_access *out);

/* A function and its first byte; addresses are those that the linker gave. */
struct object_function {
	const char *name;
	__u64 start, size;
};

/**
 * object_function() - the function at an offset in the file
 * @at: its address
 *
 * One without a size ends where the next begins. Return: false if there is none.
 */
bool object_function(struct object *o, __u64 offset, struct object_function *out, __u64 *at);

/* The name of the function that begins at an address, or NULL; it lives as long as @o. */
const char *object_name(struct object *o, __u64 addr);

/* Code from an address on. Return: how many bytes the file has of it, at most @size. */
size_t object_read(struct object *o, __u64 addr, unsigned char *buf, size_t size);

/* The same from an offset in the file on. */
size_t object_code(struct object *o, __u64 offset, unsigned char *buf, size_t size);

/* Is it a program of Go, by its sections? */
bool object_is_go(struct object *o);

/* The source line of an address. Return: false if not known. */
bool object_line(struct object *o, __u64 addr, struct source_place *out);

/* What has been asked for by object_type(), or NULL. */
struct types *object_types(struct object *o);

/* "file:line" in @buf. Return: false if not known. */
bool object_srcline(struct object *o, __u64 offset, char *buf, size_t size);

#endif
