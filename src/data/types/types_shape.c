// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "types_private.h"

#include "base/text.h"

#define NAME_BYTES    512
#define MEMBERS_MAX   100000
#define FIELDS_MAX    4096
#define VARIANT_DEPTH 8 /* variants in variants */
#define ADDRESS_BYTES 8

static bool is_transparent(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type ||
	       tag == DW_TAG_immutable_type;
}

static bool is_aggregate(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

static bool flag(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	bool set = false;

	return dwarf_attr(die, name, &attr) && !dwarf_formflag(&attr, &set) && set;
}

static bool follow(Dwarf_Die *die, unsigned int name, Dwarf_Die *to)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) && dwarf_formref_die(&attr, to);
}

bool shape_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	return follow(die, DW_AT_type, type);
}

/* @name: of the last typedef, or NULL; @stop: at a typedef */
static bool peel(Dwarf_Die *type, const char **name)
{
	Dwarf_Die to;

	for (int i = 0; i < TYPES_DEPTH; i++) {
		if (!is_transparent(dwarf_tag(type))) {
			/* a type unit has the definition */
			if (is_aggregate(dwarf_tag(type)) && flag(type, DW_AT_declaration) &&
			    follow(type, DW_AT_signature, &to))
				*type = to;
			return true;
		}
		if (dwarf_tag(type) == DW_TAG_typedef)
			*name = dwarf_diename(type);
		if (!shape_type_of(type, &to))
			return false;
		*type = to;
	}
	return false;
}

bool shape_peel(Dwarf_Die *type)
{
	const char *unused;

	return peel(type, &unused);
}

static bool number(Dwarf_Die *die, unsigned int name, Dwarf_Word *value)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) && !dwarf_formudata(&attr, value);
}

/* The number of elements of an array; 0 if unknown. */
static __u64 elements(Dwarf_Die *array)
{
	__u64 n = 1;
	Dwarf_Die child;

	if (dwarf_child(array, &child))
		return 0;
	do {
		Dwarf_Word count, lower = 0;

		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		number(&child, DW_AT_lower_bound, &lower);
		if (!number(&child, DW_AT_count, &count) &&
		    (!number(&child, DW_AT_upper_bound, &count) ||
		     __builtin_sub_overflow(count + 1, lower, &count)))
			return 0;
		if (__builtin_mul_overflow(n, count, &n))
			return 0;
	} while (!dwarf_siblingof(&child, &child));
	return n;
}

/* dwarf_aggregate_size() would never return from a typedef of itself. */
__u64 shape_size(Dwarf_Die *type)
{
	Dwarf_Die t = *type;
	Dwarf_Word size;
	__u64 n = 1;

	for (int depth = 0; depth < TYPES_DEPTH && shape_peel(&t); depth++) {
		if (number(&t, DW_AT_byte_size, &size))
			return __builtin_mul_overflow(n, size, &n) ? 0 : n;
		if (is_pointer(dwarf_tag(&t)))
			return __builtin_mul_overflow(n, ADDRESS_BYTES, &n) ? 0 : n;
		if (dwarf_tag(&t) != DW_TAG_array_type ||
		    __builtin_mul_overflow(n, elements(&t), &n) || !shape_type_of(&t, &t))
			return 0;
	}
	return 0;
}

/* --- names --- */

static bool is_c(Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return false;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

/*
 * The namespaces and classes around a type. A DIE is followed by its children, and these by its siblings.
 * dwarf_getscopes_die() would walk the whole unit, and recurse as deep as damaged DIEs are nested.
 */
static void append_scopes(Dwarf_Die *type, char *buf, size_t size)
{
	Dwarf_Die scope, next;

	if (!dwarf_diecu(type, &scope, NULL, NULL))
		return;
	for (int depth = 0; depth < TYPES_DEPTH && !dwarf_child(&scope, &scope); depth++) {
		const char *name;

		while (!dwarf_siblingof(&scope, &next) && next.addr <= type->addr)
			scope = next;
		if (scope.addr >= type->addr)
			return;
		if (dwarf_tag(&scope) != DW_TAG_namespace && !is_aggregate(dwarf_tag(&scope)))
			continue;
		name = dwarf_diename(&scope);
		text_append(buf, size, "%s", name ?: "(anonymous)");
		text_append(buf, size, "::");
	}
}

static void put_name(Dwarf_Die *of, char *buf, size_t size, int depth)
{
	const char *alias = NULL, *name;
	Dwarf_Die type = *of, to;
	int tag;

	if (!depth || !peel(&type, &alias)) {
		text_append(buf, size, "void");
		return;
	}
	tag = dwarf_tag(&type);
	name = dwarf_diename(&type);
	/* Rust and Go have names for pointers, and Go for arrays: use these */
	if (name && (is_pointer(tag) || tag == DW_TAG_array_type)) {
		text_append(buf, size, "%s", name);
		return;
	}
	switch (tag) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_array_type:
		if (shape_type_of(&type, &to))
			put_name(&to, buf, size, depth - 1);
		else
			text_append(buf, size, "void");
		text_append(buf, size, "%s",
			    tag == DW_TAG_pointer_type ? "*"
			    : tag == DW_TAG_array_type ? "[]"
						       : "&");
		return;
	case DW_TAG_subroutine_type:
		text_append(buf, size, "function");
		return;
	}
	if (!name && alias) {
		text_append(buf, size, "%s", alias);
		return;
	}
	if ((is_aggregate(tag) || tag == DW_TAG_enumeration_type) && is_c(&type))
		text_append(buf, size, "%s",
			    tag == DW_TAG_union_type	   ? "union "
			    : tag == DW_TAG_structure_type ? "struct "
							   : "enum ");
	else if (tag != DW_TAG_base_type)
		append_scopes(&type, buf, size);
	text_append(buf, size, "%s", name ?: "(anonymous)");
}

const char *shape_name(struct types *t, Dwarf_Die *type)
{
	__u32 id = u64_map_get(&t->names, (uintptr_t)type->addr);
	char name[NAME_BYTES] = "";

	if (id == U64_MAP_NONE) {
		put_name(type, name, sizeof(name), TYPES_DEPTH);
		id = intern_get(&t->texts, name);
		u64_map_put(&t->names, (uintptr_t)type->addr, id);
	}
	return intern_text(&t->texts, id);
}

/* --- fields --- */

/* The offset and size of a member in bytes; for a bit field, the bytes that contain its bits. */
static bool member_place(Dwarf_Die *member, Dwarf_Die *type, __u64 *at, __u64 *size)
{
	Dwarf_Attribute attr;
	Dwarf_Word begin = 0, bits;
	Dwarf_Op *op;
	size_t n;

	*size = shape_size(type);
	if (dwarf_attr_integrate(member, DW_AT_data_bit_offset, &attr)) {
		if (dwarf_formudata(&attr, &begin) ||
		    !dwarf_attr_integrate(member, DW_AT_bit_size, &attr) ||
		    dwarf_formudata(&attr, &bits))
			return false;
		*at = begin / 8;
		*size = (begin + bits + 7) / 8 - *at;
		return true;
	}
	/* members of a union may have no offset */
	if (dwarf_attr_integrate(member, DW_AT_data_member_location, &attr) &&
	    dwarf_formudata(&attr, &begin)) {
		if (dwarf_getlocation(&attr, &op, &n) || n != 1 || op->atom != DW_OP_plus_uconst)
			return false;
		begin = op->number;
	}
	*at = begin;
	return true;
}

static bool is_member(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	/* static members are not part of the object */
	return tag == DW_TAG_inheritance || (tag == DW_TAG_member && !flag(die, DW_AT_external) &&
					     !flag(die, DW_AT_declaration));
}

/* Iterator over the members of a type, including those of the variants of Rust's enums. */
struct members {
	Dwarf_Die die[VARIANT_DEPTH];
	int n; /* levels of `die`; 0: at the end */
};

static Dwarf_Die *next_member(struct members *m)
{
	while (m->n) {
		Dwarf_Die *die = &m->die[m->n - 1];
		int tag = dwarf_tag(die);

		if ((tag == DW_TAG_variant_part || tag == DW_TAG_variant) && m->n < VARIANT_DEPTH &&
		    !dwarf_child(die, die + 1))
			m->n++;
		else
			while (m->n && dwarf_siblingof(&m->die[m->n - 1], &m->die[m->n - 1]))
				m->n--;
		if (m->n && is_member(&m->die[m->n - 1]))
			return &m->die[m->n - 1];
	}
	return NULL;
}

static Dwarf_Die *first_member(struct members *m, Dwarf_Die *of)
{
	m->n = !dwarf_child(of, m->die);
	return m->n && is_member(m->die) ? m->die : next_member(m);
}

/* The discriminant of the variants. */
static bool is_discriminant(struct members *m)
{
	return m->n > 1 && dwarf_tag(&m->die[m->n - 2]) == DW_TAG_variant_part;
}

static const char *member_name(struct members *m)
{
	Dwarf_Die *die = &m->die[m->n - 1];

	return is_discriminant(m)		 ? "[variant]"
	       : dwarf_tag(die) == DW_TAG_member ? dwarf_diename(die)
						 : NULL;
}

/* A path into a type. Damaged debug information may nest and overlap, so the number of members is limited. */
struct walk {
	unsigned int size; /* of the access */
	char *path;
	size_t room;
	int depth, members;
};

static bool descend(struct walk *w, Dwarf_Die *of, __u64 off, struct leaf *leaf);

static bool descend_array(struct walk *w, Dwarf_Die *array, __u64 off, struct leaf *leaf)
{
	__u64 bytes = shape_size(array), each;
	Dwarf_Die element;

	if (!shape_type_of(array, &element))
		return false;
	each = shape_size(&element);
	if (!each || (bytes && off >= bytes))
		return false;
	text_append(w->path, w->room, "[]");
	if (!descend(w, &element, off % each, leaf))
		return false;
	leaf->first = off < each;
	leaf->array = true;
	return true;
}

/*
 * Of several members at an offset, as in a union or bit fields, choose the one with the size of the access; if that is
 * ambiguous, choose none.
 */
static bool descend_members(struct walk *w, Dwarf_Die *of, __u64 off, struct leaf *leaf)
{
	size_t before = strlen(w->path);
	unsigned int found = 0, fitting = 0;
	char all[NAME_BYTES] = "", one[NAME_BYTES] = "";
	bool discriminant = false;
	struct members m;
	Dwarf_Die type;

	for (Dwarf_Die *die = first_member(&m, of); die && w->members-- > 0;
	     die = next_member(&m)) {
		const char *name = member_name(&m);
		struct leaf here = { 0 };
		__u64 at, bytes;

		if (!shape_type_of(die, &type) || !member_place(die, &type, &at, &bytes) ||
		    off < at || (bytes && off - at >= bytes))
			continue;
		if (name) {
			text_append(w->path, w->room, "%s", before ? "." : "");
			text_append(w->path, w->room, "%s", name);
		}
		if (descend(w, &type, off - at, &here)) {
			/* a bit field is smaller than its type */
			if (bytes && bytes < here.size)
				here.size = bytes;
			bool fits = !here.ambiguous && here.size == w->size;

			/* the discriminant may be encoded as values that a field cannot have */
			if (discriminant) {
				found = fitting = 0;
				*all = 0;
			}
			discriminant = is_discriminant(&m);
			here.begin += at;
			found++;
			fitting += fits;
			if (found == 1 || (fits && fitting == 1)) {
				*leaf = here;
				snprintf(one, sizeof(one), "%s", w->path + before);
			}
			text_append(all, sizeof(all), "%s", found > 1 ? "|" : "");
			text_append(all, sizeof(all), "%s",
				    w->path + before + (before && found > 1));
		}
		w->path[before] = 0;
	}
	leaf->ambiguous |= found > 1 && fitting != 1;
	text_append(w->path, w->room, "%s", found > 1 && fitting != 1 ? all : one);
	return found;
}

static bool descend(struct walk *w, Dwarf_Die *of, __u64 off, struct leaf *leaf)
{
	Dwarf_Die type = *of;
	bool found;

	if (w->depth == TYPES_DEPTH || !shape_peel(&type))
		return false;
	w->depth++;
	if (dwarf_tag(&type) == DW_TAG_array_type) {
		found = descend_array(w, &type, off, leaf);
	} else if (is_aggregate(dwarf_tag(&type))) {
		found = descend_members(w, &type, off, leaf);
	} else {
		*leaf = (struct leaf){ .type = type, .off = off, .size = shape_size(&type) };
		found = off < leaf->size;
	}
	w->depth--;
	return found;
}

bool shape_leaf(Dwarf_Die *type, __u64 off, unsigned int size, struct leaf *leaf, char *path,
		size_t room)
{
	char unused[NAME_BYTES];
	struct walk w = { .size = size,
			  .path = path ?: unused,
			  .room = path ? room : sizeof(unused),
			  .members = MEMBERS_MAX };

	*w.path = 0;
	*leaf = (struct leaf){ 0 };
	return descend(&w, type, off, leaf);
}

struct fields {
	char path[NAME_BYTES];
	types_field_cb *cb;
	void *arg;
	int left;
};

static void list_fields(struct fields *f, Dwarf_Die *of, __u64 at, __u64 bytes, int depth)
{
	size_t before = strlen(f->path);
	Dwarf_Die type = *of, child;
	struct members m;

	if (!depth || !shape_peel(&type) || f->left-- <= 0)
		return;
	if (dwarf_tag(&type) == DW_TAG_array_type) {
		text_append(f->path, sizeof(f->path), "[]");
		if (shape_type_of(&type, &child))
			list_fields(f, &child, at, shape_size(&child), depth - 1);
		f->path[before] = 0;
		return;
	}
	if (!is_aggregate(dwarf_tag(&type))) {
		f->cb(f->path, at, bytes, f->arg);
		return;
	}
	for (Dwarf_Die *die = first_member(&m, &type); die && f->left > 0; die = next_member(&m)) {
		const char *name = member_name(&m);
		__u64 off, size;

		if (!shape_type_of(die, &child) || !member_place(die, &child, &off, &size))
			continue;
		if (name) {
			text_append(f->path, sizeof(f->path), "%s", before ? "." : "");
			text_append(f->path, sizeof(f->path), "%s", name);
		}
		list_fields(f, &child, at + off, size, depth - 1);
		f->path[before] = 0;
	}
}

void shape_walk(Dwarf_Die *type, types_field_cb *cb, void *arg)
{
	struct fields f = { .cb = cb, .arg = arg, .left = FIELDS_MAX };

	list_fields(&f, type, 0, shape_size(type), TYPES_DEPTH);
}

bool shape_target(Dwarf_Die *type, __u64 off, Dwarf_Die *target, bool *is_void)
{
	struct leaf leaf;

	if (!shape_leaf(type, off, ADDRESS_BYTES, &leaf, NULL, 0) || leaf.ambiguous || leaf.off)
		return false;
	if (!is_pointer(dwarf_tag(&leaf.type)))
		return false;
	*is_void = !shape_type_of(&leaf.type, target) || !shape_peel(target);
	return true;
}
