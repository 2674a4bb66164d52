/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the type and field that an instruction accesses, from the debug information of one ELF file: from the
 * variables in registers, on the stack and at fixed addresses, and from what earlier instructions loaded.
 * Uncertain results are discarded: the kind of each answer is how it was found or why not.
 *
 * Finds, too, which functions the compiler inlined at an address.
 */
#ifndef IBSCOPE_DATA_TYPES_H
#define IBSCOPE_DATA_TYPES_H

#include "base/addr_span.h"
#include "base/std.h"

#include <elfutils/libdwfl.h>

/* X(NAME, "name", "meaning"); the first four are found. */
#define TYPE_KIND_TABLE(X)                                                                        \
	X(POINTER, "pointer", "what a register points to")                                        \
	X(STACK, "stack", "a local variable in memory")                                           \
	X(VARIABLE, "variable", "a variable with an address of its own")                          \
	X(SLAB, "slab", "an object of the kernel's, by its slab cache")                           \
	X(NO_ACCESS, "no_access", "the op does not access memory")                                \
	X(KERNEL, "kernel", "code of the kernel, and no object of a slab cache")                  \
	X(SLAB_UNKNOWN, "slab_unknown",                                                           \
	  "a slab cache of objects that may be of several types, or whose type is not known")     \
	X(NO_ADDRESS, "no_address",                                                               \
	  "the sample has no address of an instruction, or the processor marks it as invalid")    \
	X(NO_FILE, "no_file", "code of no file: made at run time, or its map was not recorded")   \
	X(NO_OBJECT, "no_object", "the file of the code cannot be read, or is another one")       \
	X(NO_DEBUG, "no_debug_info", "the file has no debug information, or it cannot be read")   \
	X(NO_SPLIT, "no_split_file", "its .dwo file was not found")                               \
	X(PACKAGE, "split_package",                                                               \
	  "its .dwo file was not found, and the .dwp file cannot be read by this version of "     \
	  "libdw")                                                                                \
	X(NO_FUNCTION, "no_function", "debug information does not cover the code")                \
	X(NO_CODE, "no_instruction", "no instruction that accesses memory is at the address")     \
	X(STACK_SLOT, "stack_slot", "stack of no variable: saved registers, return addresses")    \
	X(NO_VARIABLE, "no_variable", "no variable with a type has the address")                  \
	X(REGISTER, "register", "no variable and no load before it says what the register holds") \
	X(UNTYPED, "untyped",                                                                     \
	  "a pointer without a type, a number, or a type without a definition")                   \
	X(OUTSIDE, "outside", "the offset is outside of the type")

enum type_kind {
#define TYPE_KIND_ENUM(name, ...) TYPE_##name,
	TYPE_KIND_TABLE(TYPE_KIND_ENUM)
#undef TYPE_KIND_ENUM
		TYPE_KIND_N
};

#define TYPE_FOUND(kind) ((kind) <= TYPE_SLAB)

const char *type_kind_name(enum type_kind k);

struct type_access {
	enum type_kind kind;
	const char *
		type; /* in the language's syntax; NULL: not found. Lives as long as struct types. */
	const char *field; /* "pos.x", "rows[].key", "[padding]"; NULL: the type has no fields */
	__u64 offset;	   /* of the access in the type, if it was found */
	/*
	 * Of the field, of the first of several, or of the accessed padding; in arrays, in the first element. size 0: none,
	 * or unknown.
	 */
	__u64 field_offset, field_size;
};

struct types;

/* Called for a field of a type. @path: as type_access.field. */
typedef void types_field_cb(const char *path, __u64 offset, __u64 size, void *arg);

/**
 * types_new() - debug information of a file
 * @module: of the file; must outlive the types
 * @bias:   difference between libdwfl's addresses and those of the linker
 *
 * Reads nothing before the first query.
 */
struct types *types_new(Dwfl_Module *module, GElf_Addr bias);
void types_free(struct types *t); /* accepts NULL */

/* The access of the instruction at an address of the linker. The answer is cached. */
void types_of_code(struct types *t, __u64 addr, struct type_access *out);

/* The variable at an address of the linker: VARIABLE or NO_VARIABLE. @size: bytes accessed, 0: unknown */
void types_of_data(struct types *t, __u64 addr, unsigned int size, struct type_access *out);

/* List all fields of a type. Return: false unless an access to the type was found before. */
bool types_layout(struct types *t, const char *name, types_field_cb *cb, void *arg);

#define TYPES_INLINED_MAX 128 /* functions inlined into each other; deeper ones are not found */

/* A function that was inlined. Texts live as long as the file. */
struct types_inlined {
	__u64 id; /* of this inlining: equal at all its addresses, and whenever the file is read */
	__u64 into;		/* id of the one around it; 0: there is none */
	const char *name;	/* as the linker would have it, where debug information says so */
	const char *file, *dir; /* of the call, and where a relative file begins; NULL: unknown */
	int line;
};

/**
 * types_inlined() - one of the functions that were inlined at an address of the linker
 * @level: 0: the innermost one, 1: the one that it was inlined into, and so on
 *
 * Return: false if there is none: the function that has the code of its own comes next.
 */
bool types_inlined(struct types *t, __u64 addr, unsigned int level, struct types_inlined *out);

/* Narrow a span with @addr to addresses for which types_inlined() gives the same answer. */
void types_inlined_span(struct types *t, __u64 addr, struct addr_span *span);

/* Did the file's debug information exceed a limit? Then answers may be missing. */
bool types_is_exhausted(const struct types *t);

#endif
