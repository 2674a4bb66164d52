// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Units, functions and variables of a file. A unit is read at the first query for one of its functions. */
#include "types_private.h"

#include "base/regular.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define WORK_PER_BYTE 64 /* of the file with the debug information */
#define WORK_MIN      1000000
#define SCOPE_BYTES   1024
/* Registers that calls may change, by the System V ABI; Go functions preserve only the stack pointer. */
#define CALLER_SAVED \
	(1u << 0 | 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11)
#define GO_WRITES (0xffffu & ~(1u << REG_BP | 1u << REG_SP))

static __u64 linked(const struct types *t, Dwarf_Addr addr)
{
	return addr + t->dwarf_bias - t->bias;
}

bool types_work(struct types *t, unsigned int cost)
{
	t->work_left -= t->work_left > cost ? cost : t->work_left;
	return t->work_left;
}

bool types_next(struct types *t, Dwarf_Die *die)
{
	return types_work(t, 1) && !dwarf_siblingof(die, die);
}

/* --- spans --- */

static void add_span(struct spans *s, __u64 lo, __u64 hi, const Dwarf_Die *die)
{
	if (lo >= hi)
		return;
	array_reserve(s->v, s->room, s->n + 1);
	s->v[s->n++] = (struct span){ lo, hi, *die };
}

void types_ranges(struct types *t, struct spans *s, Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while (types_work(t, WORK_KEPT) && (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0)
		add_span(s, linked(t, lo), linked(t, hi), die);
}

static int compare_spans(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static void sort_spans(struct spans *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare_spans);
}

/* The number of spans that begin at or before an address. */
static size_t spans_before(const struct spans *s, __u64 addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The span of an address, or NULL; of several the one that begins last. */
static const struct span *find_span(const struct spans *s, __u64 addr)
{
	size_t n = spans_before(s, addr);

	return n && addr < s->v[n - 1].hi ? &s->v[n - 1] : NULL;
}

void types_narrow(const struct spans *s, __u64 addr, struct addr_span *span)
{
	size_t next = spans_before(s, addr);

	if (next < s->n)
		addr_span_cut(span, addr, s->v[next].lo);
	if (!next)
		return;
	addr_span_cut(span, addr, s->v[next - 1].lo);
	addr_span_cut(span, addr, s->v[next - 1].hi);
}

/* --- variables --- */

/*
 * Go writes blocks, which libdw accepts as locations only before DWARF 4. A short block has the same bytes as an expression.
 */
static bool location_of(Dwarf_Die *die, unsigned int name, Dwarf_Attribute *attr)
{
	Dwarf_Block block;

	if (!dwarf_attr_integrate(die, name, attr))
		return false;
	if (attr->form == DW_FORM_block1 && !dwarf_formblock(attr, &block) && block.length < 0x80)
		attr->form = DW_FORM_exprloc;
	return true;
}

static bool fixed_address(const struct types *t, Dwarf_Die *die, __u64 *addr)
{
	Dwarf_Attribute attr, operand;
	Dwarf_Addr at;
	Dwarf_Op *op;
	size_t n;

	if (!location_of(die, DW_AT_location, &attr) || dwarf_getlocation(&attr, &op, &n) || n != 1)
		return false;
	if (op->atom == DW_OP_addr)
		at = op->number;
	else if ((op->atom != DW_OP_addrx && op->atom != DW_OP_GNU_addr_index) ||
		 dwarf_getlocation_attr(&attr, op, &operand) || dwarf_formaddr(&operand, &at))
		return false;
	*addr = linked(t, at);
	return true;
}

static void add_fixed(struct types *t, Dwarf_Die *die)
{
	struct fixed f;

	if (!fixed_address(t, die, &f.addr) || !shape_type_of(die, &f.type))
		return;
	f.size = shape_size(&f.type);
	if (!f.size)
		return;
	array_reserve(t->fixed, t->fixed_room, t->n_fixed + 1);
	t->fixed[t->n_fixed++] = f;
	t->fixed_sorted = false;
}

/* List the variables outside of functions. */
static void list_fixed(struct types *t, Dwarf_Die *scope, int depth)
{
	Dwarf_Die child;

	if (!depth || dwarf_child(scope, &child))
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_variable)
			add_fixed(t, &child);
		else if (dwarf_tag(&child) == DW_TAG_namespace)
			list_fixed(t, &child, depth - 1);
	} while (types_next(t, &child));
}

/* --- units --- */

/* libdw would open anything with the name of a split file, even a pipe: accept only a regular file, or none. */
static int check_split(const char *path)
{
	int fd = regular_open(path);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* A package of split files, which libdw reads since 0.191. Return: 0, or a negative errno. */
static int check_package(const struct types *t)
{
	const char *file = NULL;
	char path[PATH_MAX];

	dwfl_module_info(t->module, NULL, NULL, NULL, NULL, NULL, &file, NULL);
	if (!file || (size_t)snprintf(path, sizeof(path), "%s.dwp", file) >= sizeof(path))
		return -ENOENT;
	return check_split(path);
}

/* Replace a skeleton unit by its split unit. Return: false if it was not found. */
static bool whole_unit(const struct types *t, Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die split;
	const char *dir, *name;
	char path[PATH_MAX];
	int dwo;

	if (!dwarf_attr(unit, DW_AT_dwo_name, &attr) &&
	    !dwarf_attr(unit, DW_AT_GNU_dwo_name, &attr))
		return true;
	name = dwarf_formstring(&attr);
	dir = dwarf_attr(unit, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
	if (name && *name == '/')
		dir = "";
	if (!name || !dir ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return false;
	dwo = check_split(path);
	if ((dwo && dwo != -ENOENT) || (t->package && t->package != -ENOENT))
		return false;
	if (dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) || !split.addr)
		return false;
	*unit = split;
	return true;
}

static void open_debug(struct types *t)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	size_t bytes = 0;
	__u8 type;

	t->opened = true;
	t->package = check_package(t);
	t->dwarf = dwfl_module_getdwarf(t->module, &t->dwarf_bias);
	if (t->dwarf)
		elf_rawfile(dwarf_getelf(t->dwarf), &bytes);
	t->work_left = WORK_MIN + WORK_PER_BYTE * bytes;
	while (t->dwarf && !dwarf_get_units(t->dwarf, cu, &cu, NULL, &type, &die, NULL))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			types_ranges(t, &t->units, &die);
	sort_spans(&t->units);
}

/* Scopes around functions of C++: only names of functions that other files see are known with them, as the linker's. */
static __u32 enter_scope(struct types *t, __u32 around, Dwarf_Die *scope)
{
	const char *name = dwarf_diename(scope);
	char text[SCOPE_BYTES];

	if (!name && dwarf_tag(scope) == DW_TAG_namespace)
		name = "(anonymous namespace)";
	if (!name || !*name)
		return around;
	snprintf(text, sizeof(text), "%s%s::", intern_text(&t->texts, around), name);
	return intern_get(&t->texts, text);
}

static void note_scope(struct types *t, __u32 scope, Dwarf_Die *function)
{
	if (*intern_text(&t->texts, scope) && !dwarf_hasattr(function, DW_AT_linkage_name) &&
	    types_work(t, WORK_KEPT))
		u64_map_put(&t->scope_of, (uintptr_t)function->addr, scope);
}

/* Functions may be in namespaces and, with some compilers, in classes and functions. @in: the text of the scope */
static void list_functions(struct types *t, Dwarf_Die *scope, __u32 in, int depth)
{
	Dwarf_Die child;

	if (!depth || dwarf_child(scope, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
			note_scope(t, in, &child);
			types_ranges(t, &t->functions, &child);
			list_functions(t, &child, in, depth - 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			list_functions(t, &child, enter_scope(t, in, &child), depth - 1);
			break;
		case DW_TAG_lexical_block:
			list_functions(t, &child, in, depth - 1);
			break;
		}
	} while (types_next(t, &child));
}

/* List the functions of a unit, once. Return: false if its split file is missing. */
static bool list_unit(struct types *t, Dwarf_Die unit)
{
	__u32 known = u64_map_get(&t->listed, (uintptr_t)unit.addr);
	void *key = unit.addr;
	bool whole;

	if (known != U64_MAP_NONE)
		return known;
	whole = whole_unit(t, &unit);
	u64_map_put(&t->listed, (uintptr_t)key, whole);
	if (whole)
		list_functions(t, &unit, intern_get(&t->texts, ""), TYPES_DEPTH);
	sort_spans(&t->functions);
	return whole;
}

/* --- locations of variables in functions --- */

static void add_held(struct function *f, const struct held *h)
{
	array_reserve(f->held, f->room, f->n + 1);
	f->held[f->n++] = *h;
}

/* Parse a register, or memory relative to one. Return: number of operations used, 0: not understood. */
static size_t place_of(const struct function *f, const Dwarf_Op *op, size_t n, struct held *h)
{
	bool value = n > 1 && op[1].atom == DW_OP_stack_value;

	h->off = 0;
	if (op->atom >= DW_OP_reg0 && op->atom < DW_OP_reg0 + REG_N) {
		h->in = HELD_REGISTER;
		h->reg = op->atom - DW_OP_reg0;
		return 1;
	}
	if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + REG_N) {
		h->in = value ? HELD_REGISTER : HELD_MEMORY;
		h->reg = op->atom - DW_OP_breg0;
		h->off = op->number;
		return 1 + value;
	}
	if (op->atom == DW_OP_fbreg && f->frame.lo && !value) {
		h->in = f->frame.in;
		h->reg = f->frame.reg;
		h->off = f->frame.off + (__s64)op->number;
		return 1;
	}
	if (op->atom == DW_OP_call_frame_cfa) {
		h->in = HELD_FRAME;
		return 1;
	}
	return 0;
}

/* Parse a location: one place, or one for each piece of the variable. */
static void add_places(struct function *f, struct held *h, const Dwarf_Op *op, size_t n)
{
	for (size_t i = 0, used; i < n; i++) {
		used = place_of(f, &op[i], n - i, h);
		i += used;
		if (used && (i == n || op[i].atom == DW_OP_piece))
			add_held(f, h);
		while (i < n && op[i].atom != DW_OP_piece)
			i++;
		if (i < n)
			h->at += op[i].number;
	}
}

static void add_variable(struct types *t, struct function *f, Dwarf_Die *die,
			 const struct spans *scope)
{
	Dwarf_Addr base, lo, hi;
	Dwarf_Attribute attr;
	Dwarf_Die type;
	ptrdiff_t at = 0;
	Dwarf_Op *op;
	size_t n;

	if (!location_of(die, DW_AT_location, &attr) || !shape_type_of(die, &type))
		return;
	while (types_work(t, WORK_KEPT)) {
		struct held h = { .type = type };

		at = dwarf_getlocations(&attr, at, &base, &lo, &hi, &op, &n);
		if (at <= 0)
			return;
		if (n == 1 && (op->atom == DW_OP_addr || op->atom == DW_OP_addrx)) {
			add_fixed(t, die);
			continue;
		}
		if (hi != (Dwarf_Addr)-1) {
			h.lo = linked(t, lo);
			h.hi = linked(t, hi);
			add_places(f, &h, op, n);
			continue;
		}
		for (size_t k = 0; k < scope->n; k++) {
			h.lo = scope->v[k].lo;
			h.hi = scope->v[k].hi;
			h.at = 0;
			add_places(f, &h, op, n);
		}
	}
}

/* The callee of a call, for its return type. */
static void add_call(struct types *t, struct function *f, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Addr at;
	Dwarf_Die callee;

	if (!dwarf_attr(die, DW_AT_call_return_pc, &attr) && !dwarf_attr(die, DW_AT_low_pc, &attr))
		return;
	if (dwarf_formaddr(&attr, &at))
		return;
	if (!dwarf_attr(die, DW_AT_call_origin, &attr) &&
	    !dwarf_attr(die, DW_AT_abstract_origin, &attr))
		return;
	if (!dwarf_formref_die(&attr, &callee))
		return;
	array_reserve(f->calls, f->calls_room, f->n_calls + 1);
	f->calls[f->n_calls++] = (struct span){ linked(t, at), 0, callee };
}

static void add_scope(struct types *t, struct function *f, Dwarf_Die *scope, int depth)
{
	struct spans spans = { 0 };
	Dwarf_Die child;

	if (!depth || dwarf_child(scope, &child))
		return;
	types_ranges(t, &spans, scope);
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_formal_parameter:
		case DW_TAG_variable:
			add_variable(t, f, &child, &spans);
			break;
		case DW_TAG_call_site:
		case DW_TAG_GNU_call_site:
			add_call(t, f, &child);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			add_scope(t, f, &child, depth - 1);
			break;
		}
	} while (types_next(t, &child));
	free(spans.v);
}

static struct function *new_function(struct types *t, const struct span *span)
{
	struct function *f = xcalloc(1, sizeof(*f));
	struct held frame = { .lo = 1 };
	Dwarf_Attribute attr;
	Dwarf_Die unit;
	Dwarf_Op *op;
	size_t n;

	f->span = *span;
	f->call_writes =
		dwarf_diecu(&f->span.die, &unit, NULL, NULL) && dwarf_srclang(&unit) == DW_LANG_Go
			? GO_WRITES
			: CALLER_SAVED;
	if (location_of(&f->span.die, DW_AT_frame_base, &attr) &&
	    !dwarf_getlocation(&attr, &op, &n) && n == 1 && place_of(f, op, n, &frame)) {
		/* the value is in the register */
		if (frame.in == HELD_REGISTER)
			frame.in = HELD_MEMORY;
		f->frame = frame;
	}
	add_scope(t, f, &f->span.die, TYPES_DEPTH);
	array_reserve(t->function, t->room, t->n + 1);
	u64_map_put(&t->function_of, span->lo, t->n);
	t->function[t->n++] = f;
	return f;
}

const struct span *types_code(struct types *t, __u64 addr, Dwarf_Die *unit, enum type_kind *why)
{
	const struct span *span;

	if (!t->opened)
		open_debug(t);
	*why = TYPE_NO_DEBUG;
	if (!t->units.n)
		return NULL;
	*why = TYPE_NO_FUNCTION;
	span = find_span(&t->units, addr);
	if (!span)
		return NULL;
	*unit = span->die;
	if (!list_unit(t, span->die)) {
		*why = t->package ? TYPE_NO_SPLIT : TYPE_PACKAGE;
		return NULL;
	}
	return find_span(&t->functions, addr);
}

struct function *types_function(struct types *t, __u64 addr, enum type_kind *why)
{
	Dwarf_Die unit;
	const struct span *span = types_code(t, addr, &unit, why);
	__u32 id = span ? u64_map_get(&t->function_of, span->lo) : U64_MAP_NONE;

	if (!span)
		return NULL;
	return id == U64_MAP_NONE ? new_function(t, span) : t->function[id];
}

/* --- variables with a fixed address, and the frame --- */

static int compare_fixed(const void *pa, const void *pb)
{
	const struct fixed *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

const struct fixed *types_fixed(struct types *t, __u64 addr)
{
	size_t lo = 0, hi;

	if (!t->opened)
		open_debug(t);
	if (!t->fixed_listed) {
		Dwarf_CU *cu = NULL;
		Dwarf_Die die;

		while (t->dwarf && !dwarf_get_units(t->dwarf, cu, &cu, NULL, NULL, &die, NULL))
			if (whole_unit(t, &die))
				list_fixed(t, &die, TYPES_DEPTH);
	}
	t->fixed_listed = true;
	if (!t->fixed_sorted && t->n_fixed)
		qsort(t->fixed, t->n_fixed, sizeof(*t->fixed), compare_fixed);
	t->fixed_sorted = true;
	for (hi = t->n_fixed; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->fixed[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - t->fixed[lo - 1].addr < t->fixed[lo - 1].size ? &t->fixed[lo - 1]
									  : NULL;
}

bool types_frame(struct types *t, __u64 addr, unsigned int *reg, __s64 *off)
{
	bool found = false;

	for (int eh = 1; eh >= 0 && !found; eh--) {
		Dwarf_Addr bias;
		Dwarf_CFI *cfi = eh ? dwfl_module_eh_cfi(t->module, &bias)
				    : dwfl_module_dwarf_cfi(t->module, &bias);
		Dwarf_Frame *frame;
		Dwarf_Op *op;
		size_t n;

		if (!cfi || dwarf_cfi_addrframe(cfi, addr + t->bias - bias, &frame))
			continue;
		if (!dwarf_frame_cfa(frame, &op, &n) && n == 1) {
			found = true;
			if (op->atom == DW_OP_bregx) {
				*reg = op->number;
				*off = op->number2;
			} else if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + REG_N) {
				*reg = op->atom - DW_OP_breg0;
				*off = op->number;
			} else {
				found = false;
			}
		}
		free(frame);
	}
	return found;
}
