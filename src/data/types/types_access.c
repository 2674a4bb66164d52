// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "types_private.h"
#include "base/choice.h"

#include "disasm/disasm.h"

#define PATH_BYTES 512

CHOICE_NAMES(type_kind_name, enum type_kind, TYPE_KIND_TABLE)

struct types *types_new(Dwfl_Module *module, GElf_Addr bias)
{
	struct types *t = xcalloc(1, sizeof(*t));

	t->module = module;
	t->bias = bias;
	return t;
}

void types_free(struct types *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		types_steps_free(t->function[i]->steps);
		free(t->function[i]->held);
		free(t->function[i]->calls);
		free(t->function[i]);
	}
	free(t->function);
	free(t->units.v);
	free(t->functions.v);
	free(t->fixed);
	free(t->access);
	free(t->layout);
	u64_map_free(&t->listed);
	u64_map_free(&t->function_of);
	u64_map_free(&t->names);
	u64_map_free(&t->code_of);
	u64_map_free(&t->data_of);
	types_inlinings_free(&t->inlined);
	u64_map_free(&t->scope_of);
	intern_free(&t->texts);
	disasm_free(t->disasm);
	free(t);
}

/* The name of a type, by which types_layout() finds it. */
static const char *keep_layout(struct types *t, Dwarf_Die *type)
{
	const char *name = shape_name(t, type);
	__u32 id = intern_get(&t->texts, name);

	array_reserve_zero(t->layout, t->layout_room, id + 1);
	if (!t->layout[id].addr)
		t->layout[id] = *type;
	return name;
}

bool types_layout(struct types *t, const char *name, types_field_cb *cb, void *arg)
{
	__u32 id = intern_find(&t->texts, name);

	if (id == INTERN_NONE || id >= t->layout_room || !t->layout[id].addr)
		return false;
	shape_walk(&t->layout[id], cb, arg);
	return true;
}

/* The names of a place; without a definition, only the name of the type. */
static void name_place(struct types *t, struct place *p, struct type_access *out)
{
	char path[PATH_BYTES];
	struct leaf leaf;
	bool found;

	*out = (struct type_access){ .kind = p->kind };
	if (!TYPE_FOUND(p->kind))
		return;
	/* name an array by its elements; limited, since a hostile array can contain itself */
	for (int depth = 0; depth < TYPES_DEPTH; depth++) {
		Dwarf_Die array = p->type;
		__u64 size;

		if (!shape_peel(&array) || dwarf_tag(&array) != DW_TAG_array_type ||
		    !shape_type_of(&array, &p->type))
			break;
		size = shape_size(&p->type);
		p->off %= size ?: 1;
	}
	out->type = keep_layout(t, &p->type);
	out->offset = p->off;
	found = shape_leaf(&p->type, p->off, p->size, &leaf, path, sizeof(path));
	if (!found)
		out->field = "[padding]";
	else if (*path)
		out->field = intern_text(&t->texts, intern_get(&t->texts, path));
	if (found && *path) {
		out->field_offset = leaf.begin;
		out->field_size = leaf.size;
	} else if (!found) {
		out->field_offset = p->off;
		out->field_size = p->size;
	}
}

static __u32 add_access(struct types *t, struct u64_map *of, __u64 key, struct place *place)
{
	array_reserve(t->access, t->access_room, t->n_access + 1);
	name_place(t, place, &t->access[t->n_access]);
	u64_map_put(of, key, t->n_access);
	return t->n_access++;
}

void types_of_code(struct types *t, __u64 addr, struct type_access *out)
{
	__u32 id = u64_map_get(&t->code_of, addr);
	struct place place = { 0 };
	struct function *f;

	if (id == U64_MAP_NONE) {
		f = types_function(t, addr, &place.kind);
		if (f)
			types_address(t, f, addr, &place);
		id = add_access(t, &t->code_of, addr, &place);
	}
	*out = t->access[id];
}

void types_of_data(struct types *t, __u64 addr, unsigned int size, struct type_access *out)
{
	struct place place = { .kind = TYPE_NO_VARIABLE, .size = size };
	__u64 key = addr | (__u64)size << 56; /* addresses of programs are smaller */
	__u32 id = u64_map_get(&t->data_of, key);
	const struct fixed *f;

	if (id == U64_MAP_NONE) {
		f = types_fixed(t, addr);
		if (f) {
			place.kind = TYPE_VARIABLE;
			place.type = f->type;
			place.off = addr - f->addr;
		}
		id = add_access(t, &t->data_of, key, &place);
	}
	*out = t->access[id];
}
