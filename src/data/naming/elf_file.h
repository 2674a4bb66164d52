/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols and source lines of one ELF file, read in this process. */
#ifndef IBSCOPE_ELF_FILE_H
#define IBSCOPE_ELF_FILE_H

#include "base/addr_span.h"
#include "base/std.h"
#include "frame_row.h"
#include "source_place.h"
#include "types/data_types.h"

struct elf_file;

struct elf_file_opts {
	const char *debug_dir;
	bool trusted;	 /* the path is of this machine: a file without a build-id is believed */
	bool debuginfod; /* servers may be asked */
	bool mangled;	 /* names stay as the linker has them */
};

/**
 * elf_file_open() - open the file that was mapped
 * @build_id: NULL: unknown
 * @why:      on failure, the reason for people, at most @size bytes
 *
 * Return: NULL if there is no such file, or it is another one.
 */
struct elf_file *elf_file_open(const char *path, const unsigned char *build_id,
			       unsigned int build_id_len, const struct elf_file_opts *opts,
			       char *why, size_t size);
void elf_file_close(struct elf_file *o); /* accepts NULL */

/* Why names are missing, or NULL if none are, as far as has been asked. */
const char *elf_file_problem(const struct elf_file *o);

/* A name of the file as people write it, or NULL if that is the same; it lives as long as @o. */
const char *elf_file_demangled(struct elf_file *o, const char *name);

/**
 * elf_file_symbol() - the name at an offset in the file
 * @span: set to offsets around it that have the same one
 *
 * Return: NULL if none is known; else it lives as long as @o.
 */
const char *elf_file_symbol(struct elf_file *o, __u64 offset, struct addr_span *span);

/**
 * elf_file_variable() - the variable at an address that belongs to a map of the file
 * @pgoff:  of the map in the file
 * @exec:   it is of code: then addresses of all segments count from it, else those of its own
 * @offset: of the address from the map's first byte, plus @pgoff; behind the map it may be in .bss
 * @name:   NULL: no symbol has a size that covers the address
 * @at:     how far behind the first byte of the variable
 *
 * Return: false if the address is in no segment of the file.
 */
bool elf_file_variable(struct elf_file *o, __u64 pgoff, bool exec, __u64 offset, const char **name,
		       __u64 *at);

/* The type and field that the instruction at an address accesses, as the linker gave it. */
void elf_file_code_type(struct elf_file *o, __u64 addr, struct type_access *out);
/* The same at an offset in the file. */
void elf_file_type(struct elf_file *o, __u64 offset, struct type_access *out);
/* The type and field of the variable at an address, as for elf_file_variable(); @size: bytes accessed, 0: unknown. */
void elf_file_variable_type(struct elf_file *o, __u64 pgoff, bool exec, __u64 offset,
			    unsigned int size, struct type_access *out);

/**
 * elf_file_inlined() - one of the functions that the compiler inlined at an address
 * @at:    an offset in the file, or the linker's address if @is_address
 * @level: as for types_inlined()
 *
 * Return: false if there is none, or nothing is known.
 */
bool elf_file_inlined(struct elf_file *o, __u64 at, bool is_address, unsigned int level,
		      struct types_inlined *out);

/* A function and its first byte; addresses are those that the linker gave. */
struct elf_file_function {
	const char *name;
	__u64 start, size;
};

/* Narrow a span around an offset to offsets for which elf_file_inlined() gives the same answer. */
void elf_file_inlined_span(struct elf_file *o, __u64 offset, struct addr_span *span);

/**
 * elf_file_function() - the function at an offset in the file
 * @at: its address
 *
 * One without a size ends where the next begins. Return: false if there is none.
 */
bool elf_file_function(struct elf_file *o, __u64 offset, struct elf_file_function *out, __u64 *at);

/* The name of the function that begins at an address, or NULL; it lives as long as @o. */
const char *elf_file_name(struct elf_file *o, __u64 addr);

/* Code from an address on. Return: how many bytes the file has of it, at most @size. */
size_t elf_file_read(struct elf_file *o, __u64 addr, unsigned char *buf, size_t size);

/* The same from an offset in the file on. */
size_t elf_file_code(struct elf_file *o, __u64 offset, unsigned char *buf, size_t size);

/* How to find the caller at an offset in the file. Return: false if the file does not say. */
bool elf_file_frame(struct elf_file *o, __u64 offset, struct frame_row *out);

/* Is it a program of Go, by its sections? */
bool elf_file_is_go(struct elf_file *o);

/* The source line of an address. Return: false if not known. */
bool elf_file_line(struct elf_file *o, __u64 addr, struct source_place *out);

/* What has been asked for by elf_file_type(), or NULL. */
struct types *elf_file_types(struct elf_file *o);

/* "file:line" in @buf. Return: false if not known. */
bool elf_file_srcline(struct elf_file *o, __u64 offset, char *buf, size_t size);

#endif
