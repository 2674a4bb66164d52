/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the files of this room. Addresses are those of the linker. Debug information may be damaged, so all
 * loops over it are bounded.
 */
#ifndef IBSCOPE_TYPES_PRIVATE_H
#define IBSCOPE_TYPES_PRIVATE_H

#include "base/intern.h"
#include "data_types.h"

#include <dwarf.h>

#define TYPES_DEPTH 48 /* of scopes, and of types in types */
#define REG_N	    16 /* registers have the numbers of DWARF */
#define REG_BP	    6
#define REG_SP	    7

/* The location of a variable, or of a part of it, in a range of code. */
enum held_in {
	HELD_REGISTER, /* the register is the value minus `off` */
	HELD_MEMORY,   /* at the register plus `off` */
	HELD_FRAME,    /* at the canonical frame address plus `off` */
};

struct held {
	__u64 lo, hi;
	enum held_in in;
	unsigned int reg;
	__s64 off;
	__u64 at; /* the part's offset in the variable */
	Dwarf_Die type;
};

struct fixed {
	__u64 addr, size;
	Dwarf_Die type;
};

/* Code from `lo` up to `hi` of a unit or a function. */
struct span {
	__u64 lo, hi;
	Dwarf_Die die;
};

struct spans {
	struct span *v; /* by address */
	size_t n, room;
};

struct steps;

/* One piece of a function: its variables and instructions. */
struct function {
	struct span span;
	struct held *held;
	size_t n, room;
	struct span *calls; /* `lo`: where a call returns to; the function that was called */
	size_t n_calls, calls_room;
	struct held frame; /* base of DW_OP_fbreg; lo 0: none */
	__u16 call_writes; /* registers that its callees may overwrite: 1 << number */
	struct steps *steps;
};

struct inlining;
struct inlined_span;

/* What was inlined into all functions that were asked for: types_inlined.c. */
struct inlinings {
	struct inlining *v;
	struct inlined_span *span; /* of one function next to each other, outer ones first */
	size_t n, n_spans, room, spans_room;
	struct inlined_code *code;
	size_t n_code, code_room;
	struct u64_map code_of; /* by the address of the function's DIE */
	bool is_full;
};

struct types {
	Dwfl_Module *module;
	GElf_Addr bias;
	Dwarf *dwarf;
	Dwarf_Addr dwarf_bias;
	bool opened;
	int package;	  /* 0: there is a package of split files next to the file */
	size_t work_left; /* see types_work() */
	struct spans units, functions;
	struct u64_map listed; /* units with listed functions, by the address of their DIE */
	struct function **function;
	size_t n, room;
	struct u64_map function_of; /* by the start of its span */
	struct fixed *fixed;	    /* by address, once sorted */
	size_t n_fixed, fixed_room;
	bool fixed_listed, fixed_sorted;
	struct intern texts;
	Dwarf_Die *layout; /* types that were accessed, by number in `texts` */
	size_t layout_room;
	struct u64_map names; /* of types, by the address of their DIE */
	struct disasm *disasm;
	struct u64_map code_of, data_of; /* to `access`, by address */
	struct type_access *access;
	size_t n_access, access_room;
	struct inlinings inlined;
	struct u64_map scope_of; /* texts of scopes, by the address of a function's DIE */
};

/* --- types_units.c: locations --- */

#define WORK_KEPT 16 /* cost of an entry that takes memory */

/*
 * Damaged debug information may lead to the same entries again and again: limit the work on a file by its size.
 * Return: false if the limit is reached.
 */
bool types_work(struct types *t, unsigned int cost);

/* The next entry of the same scope. Return: false behind the last, or at the limit. */
bool types_next(struct types *t, Dwarf_Die *die);
/* Add the code of an entry, which may be several pieces. */
void types_ranges(struct types *t, struct spans *s, Dwarf_Die *die);
/* The piece of a function with an address of code, and its unit. Return: NULL if debug information has none; *why then. */
const struct span *types_code(struct types *t, __u64 addr, Dwarf_Die *unit, enum type_kind *why);

/* Narrow @span to addresses around @addr with the same one of @s, or with none. */
void types_narrow(const struct spans *s, __u64 addr, struct addr_span *span);

/* The function of an address of code. Return: NULL if debug information has none; *why then. */
struct function *types_function(struct types *t, __u64 addr, enum type_kind *why);
/* The variable with a fixed address, or NULL. */
const struct fixed *types_fixed(struct types *t, __u64 addr);
/* The canonical frame address as a register and an offset. */
bool types_frame(struct types *t, __u64 addr, unsigned int *reg, __s64 *off);

/* --- types_inlined.c --- */

void types_inlinings_free(struct inlinings *all);

/* --- types_shape.c: the structure of types --- */

/* Strip typedefs, const and volatile. Return: false for void. */
bool shape_peel(Dwarf_Die *type);
/* The type of a variable, a member or a pointer's target. Return: false for void. */
bool shape_type_of(Dwarf_Die *die, Dwarf_Die *type);
/* Bytes; 0 if unknown, as for arrays without a bound. */
__u64 shape_size(Dwarf_Die *type);
const char *shape_name(struct types *t, Dwarf_Die *type);

/* The innermost thing at an offset of a type. */
struct leaf {
	Dwarf_Die type;
	__u64 off, size; /* offset in the leaf; its size */
	__u64 begin;	 /* offset of the leaf in the outer type, in the first elements of arrays */
	bool ambiguous;	 /* several members, as in a union: `type` is unset */
	bool array, first; /* in an array; in the first element of the outermost array */
};

/**
 * shape_leaf() - find the innermost thing at an offset
 * @size:  bytes accessed, to select a member of a union; 0: unknown
 * @path:  its name in the type, "pos.x"; or NULL
 *
 * Return: false in padding or after the end.
 */
bool shape_leaf(Dwarf_Die *type, __u64 off, unsigned int size, struct leaf *leaf, char *path,
		size_t room);

/* Call @cb for all fields of a type, including those of nested structs; in arrays for the first element. */
void shape_walk(Dwarf_Die *type, types_field_cb *cb, void *arg);

/* The target of a pointer, a reference, or a struct with one as its only member. Return: false for other types. */
bool shape_target(Dwarf_Die *type, __u64 off, Dwarf_Die *target, bool *is_void);

/* --- types_follow.c: values of registers --- */

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_POINTER, /* to `type` at offset `off` */
	VALUE_ADDRESS, /* `off` is an address of data */
	VALUE_FRAME,   /* the canonical frame address plus `off` */
	VALUE_SAME,    /* the value at the start of a loop, plus `off` */
};

struct value {
	enum value_kind kind;
	enum type_kind why; /* reason if unknown */
	Dwarf_Die type;
	__s64 off;
	bool array; /* any element of an array of `type` */
	bool index; /* an unknown value was added */
};

/* Memory that is accessed; type and offset if TYPE_FOUND(kind). */
struct place {
	enum type_kind kind;
	Dwarf_Die type;
	__u64 off;
	unsigned int size; /* bytes accessed; 0: unknown */
};

void types_address(struct types *t, struct function *f, __u64 addr, struct place *out);
void types_steps_free(struct steps *s); /* accepts NULL */

#endif
