// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions that the compiler inlined. A function is read at the first query for one of its addresses. */
#include "types_private.h"

#include <limits.h>

#define INLININGS_MAX 1000000 /* of a file, and pieces of their code: 64 MB of memory */
#define NOT_INLINED   (~0u)
#define NAME_BYTES    4096

struct inlining {
	Dwarf_Die die;
	__u32 into; /* index, or NOT_INLINED */
};

struct inlined_span {
	__u64 lo, hi;
	__u32 of; /* index of the inlining */
};

/* Where the spans of a function are. */
struct inlined_code {
	size_t from, end;
};

void types_inlinings_free(struct inlinings *all)
{
	free(all->v);
	free(all->span);
	free(all->code);
	u64_map_free(&all->code_of);
}

bool types_is_exhausted(const struct types *t)
{
	return t->inlined.is_full || (t->opened && !t->work_left);
}

/* Return: its index */
static __u32 add_inlining(struct types *t, Dwarf_Die *die, __u32 into)
{
	struct inlinings *all = &t->inlined;
	struct spans spans = { 0 };

	types_ranges(t, &spans, die);
	if (all->n >= INLININGS_MAX || spans.n > INLININGS_MAX - all->n_spans) {
		all->is_full = true;
		free(spans.v);
		return into;
	}
	array_reserve(all->v, all->room, all->n + 1);
	all->v[all->n] = (struct inlining){ *die, into };
	for (size_t i = 0; i < spans.n; i++) {
		array_reserve(all->span, all->spans_room, all->n_spans + 1);
		all->span[all->n_spans++] =
			(struct inlined_span){ spans.v[i].lo, spans.v[i].hi, all->n };
	}
	free(spans.v);
	return all->n++;
}

static void add_scope(struct types *t, Dwarf_Die *scope, __u32 into, int depth)
{
	Dwarf_Die child;

	if (!depth || dwarf_child(scope, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
			add_scope(t, &child, add_inlining(t, &child, into), depth - 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			add_scope(t, &child, into, depth - 1);
			break;
		}
	} while (!t->inlined.is_full && types_next(t, &child));
}

static const struct inlined_code *code_of(struct types *t, const struct span *function)
{
	struct inlinings *all = &t->inlined;
	Dwarf_Die die = function->die;
	__u32 id = u64_map_get(&all->code_of, (uintptr_t)die.addr);
	size_t from = all->n_spans;

	if (id != U64_MAP_NONE)
		return &all->code[id];
	add_scope(t, &die, NOT_INLINED, TYPES_INLINED_MAX);
	array_reserve(all->code, all->code_room, all->n_code + 1);
	u64_map_put(&all->code_of, (uintptr_t)die.addr, all->n_code);
	all->code[all->n_code] = (struct inlined_code){ from, all->n_spans };
	return &all->code[all->n_code++];
}

/* Outer ones come first, so that the last one is the innermost. */
static __u32 innermost(const struct inlinings *all, const struct inlined_code *code, __u64 addr)
{
	for (size_t i = code->end; i-- > code->from;)
		if (addr >= all->span[i].lo && addr < all->span[i].hi)
			return all->span[i].of;
	return NOT_INLINED;
}

/* "shop::": the scope of a function without a linker's name. */
static const char *scope_of(const struct types *t, const Dwarf_Die *inlined)
{
	static const unsigned int links[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Die die = *inlined;
	Dwarf_Attribute attr;
	__u32 scope = U64_MAP_NONE;

	for (size_t i = 0; i < ARRAY_SIZE(links) && scope == U64_MAP_NONE; i++)
		if (dwarf_attr(&die, links[i], &attr) && dwarf_formref_die(&attr, &die))
			scope = u64_map_get(&t->scope_of, (uintptr_t)die.addr);
	return scope == U64_MAP_NONE ? "" : intern_text(&t->texts, scope);
}

static const char *name_of(struct types *t, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL, *scope;
	char text[NAME_BYTES];

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (name && *name)
		return name;
	name = dwarf_diename(die);
	scope = name ? scope_of(t, die) : "";
	if (!*scope)
		return name;
	snprintf(text, sizeof(text), "%s%s", scope, name);
	return intern_text(&t->texts, intern_get(&t->texts, text));
}

static void find_call(Dwarf_Die *die, struct types_inlined *out)
{
	Dwarf_Word file, line;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t n;

	if (!dwarf_attr(die, DW_AT_call_file, &attr) || dwarf_formudata(&attr, &file) ||
	    !dwarf_attr(die, DW_AT_call_line, &attr) || dwarf_formudata(&attr, &line) ||
	    !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, &n) ||
	    file >= n || line > INT_MAX)
		return;
	out->file = dwarf_filesrc(files, file, NULL, NULL);
	out->dir = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attr));
	out->line = (int)line;
}

/* In split files offsets of entries begin anew: only with that of the unit they are unique. */
static bool find_id(Dwarf_Die *unit, Dwarf_Die *die, __u64 *id)
{
	Dwarf_Off of_unit = dwarf_dieoffset(unit), at = dwarf_dieoffset(die);

	*id = of_unit << 32 | at;
	return of_unit <= UINT_MAX && at <= UINT_MAX;
}

/* The first one with a name and an id, from one on. */
static __u32 named(struct types *t, Dwarf_Die *unit, __u32 i, const char **name, __u64 *id)
{
	const struct inlinings *all = &t->inlined;
	Dwarf_Die die;

	for (; i != NOT_INLINED; i = all->v[i].into) {
		die = all->v[i].die;
		*name = name_of(t, &die);
		if (*name && **name && find_id(unit, &die, id))
			break;
	}
	return i;
}

bool types_inlined(struct types *t, __u64 addr, unsigned int level, struct types_inlined *out)
{
	const struct inlinings *all = &t->inlined;
	enum type_kind why;
	Dwarf_Die unit, die;
	const struct span *function = types_code(t, addr, &unit, &why);
	__u32 i = function ? innermost(all, code_of(t, function), addr) : NOT_INLINED, next;
	const char *outer;

	*out = (struct types_inlined){ 0 };
	i = named(t, &unit, i, &out->name, &out->id);
	while (level-- && i != NOT_INLINED)
		i = named(t, &unit, all->v[i].into, &out->name, &out->id);
	if (i == NOT_INLINED)
		return false;
	die = all->v[i].die;
	find_call(&die, out);
	next = named(t, &unit, all->v[i].into, &outer, &out->into);
	if (next == NOT_INLINED)
		out->into = 0;
	return true;
}

void types_inlined_span(struct types *t, __u64 addr, struct addr_span *span)
{
	const struct inlinings *all = &t->inlined;
	const struct inlined_code *code;
	enum type_kind why;
	Dwarf_Die unit;
	const struct span *function = types_code(t, addr, &unit, &why);

	types_narrow(&t->units, addr, span);
	types_narrow(&t->functions, addr, span);
	if (!function)
		return;
	code = code_of(t, function);
	for (size_t i = code->from; i < code->end; i++) {
		addr_span_cut(span, addr, all->span[i].lo);
		addr_span_cut(span, addr, all->span[i].hi);
	}
}
