// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The value of a register at an instruction: a variable according to debug information, or the result of earlier
 * instructions from other registers and memory. Where control flow joins, all known values must agree.
 */
#include "types_private.h"

#include "disasm/disasm.h"

#include <gelf.h>

#define STEPS_MAX   200000 /* instructions of a function */
#define FOLLOW_MAX  2000   /* instructions that one query may follow */
#define FOLLOW_DEEP 24	   /* length of a chain of copies and loads */

struct step {
	__u64 addr, target;
	__s64 value;
	struct insn_mem mem;
	__u16 writes;
	signed char from, to;
	unsigned char effect, flow, n_mem, len;
	bool has_target;
	/* the first instruction that jumps here, and the next one with the same target: index + 1; 0: none */
	__u32 jump, next_jump;
};

struct steps {
	struct step *v;
	size_t n, room;
};

/* --- the instructions of a function --- */

static const unsigned char *code_at(const struct types *t, const struct span *span, size_t *n)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(t->module, &bias);
	size_t n_headers;
	GElf_Phdr ph;
	Elf_Data *data;

	if (!elf || elf_getphdrnum(elf, &n_headers))
		return NULL;
	for (size_t i = 0; i < n_headers; i++) {
		if (!gelf_getphdr(elf, i, &ph) || ph.p_type != PT_LOAD || span->lo < ph.p_vaddr ||
		    span->lo - ph.p_vaddr >= ph.p_filesz)
			continue;
		*n = span->hi - span->lo;
		if (*n > ph.p_filesz - (span->lo - ph.p_vaddr))
			*n = ph.p_filesz - (span->lo - ph.p_vaddr);
		data = elf_getdata_rawchunk(elf, ph.p_offset + (span->lo - ph.p_vaddr), *n,
					    ELF_T_BYTE);
		return data ? data->d_buf : NULL;
	}
	return NULL;
}

/* The instruction at an address, or -1. */
static long step_at(const struct steps *s, __u64 addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].addr == addr)
			return mid;
		if (s->v[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

static void add_step(struct steps *s, __u64 addr, const struct insn *in)
{
	array_reserve(s->v, s->room, s->n + 1);
	s->v[s->n++] = (struct step){
		.addr = addr,
		.target = in->target,
		.value = in->value,
		.mem = in->mem[0],
		/* unknown, too, for unknown vector instructions */
		.writes = *in->text == '(' ? 0xffff : in->writes,
		.from = in->from,
		.to = in->to,
		.effect = in->effect,
		.flow = in->flow,
		.n_mem = in->n_mem,
		.len = in->len,
		.has_target = in->has_target,
	};
}

static struct steps *steps_of(struct types *t, struct function *f)
{
	struct steps *s = f->steps;
	const unsigned char *code;
	struct insn in;
	size_t n = 0;

	if (s)
		return s;
	s = f->steps = xcalloc(1, sizeof(*s));
	if (!t->disasm)
		t->disasm = disasm_new(true);
	code = t->disasm ? code_at(t, &f->span, &n) : NULL;
	for (size_t at = 0; code && at < n && s->n < STEPS_MAX; at += in.len) {
		if (!types_work(t, WORK_KEPT) ||
		    !disasm_decode(t->disasm, code + at, n - at, f->span.lo + at, &in))
			break;
		add_step(s, f->span.lo + at, &in);
	}
	for (size_t i = s->n; i--;) {
		long to = s->v[i].has_target && s->v[i].flow != INSN_CALL
				  ? step_at(s, s->v[i].target)
				  : -1;

		if (to < 0)
			continue;
		s->v[i].next_jump = s->v[to].jump;
		s->v[to].jump = i + 1;
	}
	return s;
}

void types_steps_free(struct steps *s)
{
	if (s)
		free(s->v);
	free(s);
}

/* --- values --- */

/* A query, and its remaining work limit. */
struct query {
	struct types *t;
	struct function *f;
	struct steps *s;
	int left, depth;
	struct u64_map seen; /* instruction and register at joins of control flow */
};

static void unknown(struct value *v, enum type_kind why)
{
	*v = (struct value){ .why = why };
}

/* The target of a value of a pointer type. */
static void pointer_of(Dwarf_Die *type, __u64 at, struct value *out)
{
	bool is_void;

	unknown(out, TYPE_UNTYPED);
	if (!shape_target(type, at, &out->type, &is_void) || is_void)
		return;
	out->kind = VALUE_POINTER;
	/* all elements of an array have one type */
	for (int depth = 0; depth < TYPES_DEPTH && dwarf_tag(&out->type) == DW_TAG_array_type &&
			    shape_type_of(&out->type, &out->type) && shape_peel(&out->type);
	     depth++)
		out->array = true;
}

static bool is_struct(const struct value *v)
{
	int tag = v->kind == VALUE_POINTER ? dwarf_tag((Dwarf_Die *)&v->type) : 0;

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/*
 * From the variables in a register at an address of code: prefer pointers to structs, and of several the largest struct,
 * as for a class and its bases.
 */
static void held_value(const struct function *f, __u64 addr, unsigned int reg, struct value *out)
{
	struct value v;

	unknown(out, TYPE_REGISTER);
	for (size_t i = 0; i < f->n; i++) {
		const struct held *h = &f->held[i];
		Dwarf_Die type = h->type;

		if (h->in != HELD_REGISTER || h->reg != reg || addr < h->lo || addr >= h->hi)
			continue;
		pointer_of(&type, h->at, &v);
		v.off -= h->off;
		if (v.kind && (!out->kind ||
			       (is_struct(&v) &&
				(!is_struct(out) || shape_size(&v.type) > shape_size(&out->type)))))
			*out = v;
		else if (!out->kind)
			out->why = v.why;
	}
}

static void value_of(struct query *q, size_t step, int reg, struct value *out);

static void add_index(struct value *v)
{
	v->index = v->kind != VALUE_UNKNOWN;
}

/* Only a program that is not relocated has absolute addresses of variables in its instructions. */
static bool has_fixed_code(const struct types *t)
{
	GElf_Addr bias;
	GElf_Ehdr ehdr;

	return gelf_getehdr(dwfl_module_getelf(t->module, &bias), &ehdr) && ehdr.e_type == ET_EXEC;
}

/* The address of an operand. */
static void address_of(struct query *q, size_t step, const struct insn_mem *m, struct value *out)
{
	const struct step *s = &q->s->v[step];
	int base = m->base, index = m->index;

	if (m->segment) {
		unknown(out, TYPE_NO_VARIABLE);
		return;
	}
	if (base == INSN_NO_REG && index != INSN_NO_REG && m->scale == 1) {
		base = index;
		index = INSN_NO_REG;
	}
	if (base == INSN_RIP || base == INSN_NO_REG) {
		*out = (struct value){ .kind = VALUE_ADDRESS,
				       .off = m->displacement +
					      (base == INSN_RIP ? s->addr + s->len : 0),
				       .index = index != INSN_NO_REG };
		return;
	}
	value_of(q, step, base, out);
	if (index != INSN_NO_REG) {
		if (out->kind == VALUE_UNKNOWN && m->scale == 1)
			value_of(q, step, index, out);
		add_index(out);
	}
	if (out->kind == VALUE_UNKNOWN && has_fixed_code(q->t) &&
	    types_fixed(q->t, m->displacement))
		*out = (struct value){ .kind = VALUE_ADDRESS, .index = true };
	out->off += m->displacement;
}

/* The frame at an address of code: the canonical frame address is a register plus an offset. */
static bool frame_of(struct query *q, __u64 addr, struct held *frame)
{
	*frame = (struct held){ .in = HELD_MEMORY };
	return types_frame(q->t, addr, &frame->reg, &frame->off);
}

/*
 * Find the variable in memory at a register, or at the frame, plus an offset, and the offset in it; the largest of several.
 * Return: NULL if there is none.
 */
static const struct held *held_memory(struct query *q, __u64 addr, enum held_in in,
				      unsigned int reg, __s64 off, __u64 *at)
{
	const struct held *found = NULL;
	__u64 size, best = 0;
	struct held frame;

	if (in == HELD_FRAME && !frame_of(q, addr, &frame))
		return NULL;
	for (size_t i = 0; i < q->f->n; i++) {
		const struct held *h = &q->f->held[i];
		Dwarf_Die type = h->type;
		__s64 begin = h->off;

		if (addr < h->lo || addr >= h->hi)
			continue;
		if (in == HELD_FRAME && h->in == HELD_MEMORY && h->reg == frame.reg)
			begin -= frame.off;
		else if (h->in != in || (in == HELD_MEMORY && h->reg != reg))
			continue;
		size = shape_size(&type);
		if (off < begin || off - begin + h->at >= size || size <= best)
			continue;
		found = h;
		best = size;
		*at = off - begin + h->at;
	}
	return found;
}

/*
 * The type at the target of a value, and the offset in it. If the compiler folded a subtraction into a fixed address plus
 * an index, that address may be in another variable: accept only the first element of an array.
 */
static bool place_of(struct query *q, __u64 addr, const struct value *v, Dwarf_Die *type,
		     __u64 *off, enum type_kind *kind)
{
	const struct held *held;
	const struct fixed *fixed;
	struct leaf leaf;
	__u64 size;

	switch (v->kind) {
	case VALUE_UNKNOWN:
	case VALUE_SAME:
		*kind = v->why;
		return false;
	case VALUE_ADDRESS:
		fixed = types_fixed(q->t, v->off);
		*kind = fixed ? TYPE_VARIABLE : TYPE_NO_VARIABLE;
		if (!fixed)
			return false;
		*type = fixed->type;
		*off = v->off - fixed->addr;
		break;
	case VALUE_FRAME:
		held = held_memory(q, addr, HELD_FRAME, 0, v->off, off);
		*kind = held ? TYPE_STACK : TYPE_STACK_SLOT;
		if (!held)
			return false;
		*type = held->type;
		break;
	case VALUE_POINTER:
		*kind = TYPE_POINTER;
		*type = v->type;
		size = shape_size(type);
		*off = v->off;
		if (!size) {
			*kind = TYPE_UNTYPED;
			return false;
		}
		if ((v->array || !is_struct(v)) && (v->off < 0 || *off >= size))
			*off = v->off < 0 ? (size - -v->off % size) % size : *off % size;
		if (*off < size || shape_leaf(type, *off, 0, &leaf, NULL, 0))
			return true;
		*kind = TYPE_OUTSIDE;
		return false;
	}
	if (!v->index || (shape_leaf(type, *off, 0, &leaf, NULL, 0) && leaf.first))
		return true;
	*kind = TYPE_NO_VARIABLE;
	return false;
}

/* --- one instruction back --- */

/* Is a register the base of the frame? */
static bool frame_value(struct query *q, __u64 addr, int reg, struct value *out)
{
	struct held frame;

	if ((reg != REG_SP && reg != REG_BP) || !frame_of(q, addr, &frame) ||
	    frame.reg != (unsigned int)reg)
		return false;
	*out = (struct value){ .kind = VALUE_FRAME, .off = -frame.off };
	return true;
}

static void loaded(struct query *q, size_t step, const struct insn_mem *m, struct value *out)
{
	struct value at;
	enum type_kind why;
	Dwarf_Die type;
	__u64 off;

	address_of(q, step, m, &at);
	if (place_of(q, q->s->v[step].addr, &at, &type, &off, &why))
		pointer_of(&type, off, out);
	else
		unknown(out, why == TYPE_STACK_SLOT || why == TYPE_OUTSIDE ? TYPE_REGISTER : why);
}

static void returned(const struct query *q, const struct step *s, struct value *out)
{
	unknown(out, TYPE_REGISTER);
	for (size_t i = 0; i < q->f->n_calls; i++) {
		Dwarf_Die callee = q->f->calls[i].die, type;

		if (q->f->calls[i].lo == s->addr + s->len && shape_type_of(&callee, &type))
			pointer_of(&type, 0, out);
	}
}

/* The value that an instruction writes to a register. */
static void value_after(struct query *q, size_t step, int reg, struct value *out)
{
	const struct step *s = &q->s->v[step];

	unknown(out, TYPE_REGISTER);
	if (s->flow == INSN_CALL) {
		if (reg == 0)
			returned(q, s, out);
		return;
	}
	if (s->to != reg)
		return;
	switch (s->effect) {
	case INSN_MOVE:
		value_of(q, step, s->from, out);
		return;
	case INSN_LOAD:
		loaded(q, step, &s->mem, out);
		return;
	case INSN_ADDRESS:
		address_of(q, step, &s->mem, out);
		return;
	case INSN_SET:
		*out = (struct value){ .kind = VALUE_ADDRESS, .off = s->value };
		if (!types_fixed(q->t, s->value))
			unknown(out, TYPE_REGISTER);
		return;
	case INSN_ADD:
		value_of(q, step, reg, out);
		if (s->from == INSN_NO_REG && !s->n_mem) {
			out->off += s->value;
			return;
		}
		if (out->kind == VALUE_UNKNOWN && s->from >= 0)
			value_of(q, step, s->from, out);
		else if (out->kind == VALUE_UNKNOWN)
			loaded(q, step, &s->mem, out);
		add_index(out);
		return;
	}
}

/* @v on one path and @off more on another, in a loop over an array. Return: false unless both have one type. */
static bool add_stride(struct value *v, __s64 off)
{
	__s64 size = v->kind == VALUE_POINTER ? (__s64)shape_size(&v->type) : 0;

	if (!off)
		return true;
	if (v->kind == VALUE_POINTER && (!size || off % size))
		return false;
	v->array |= size;
	v->index |= !size;
	return true;
}

/* Merge the values of two paths to an instruction. Return: false if they contradict each other. */
static bool join(struct types *t, struct value *v, const struct value *other)
{
	struct value same = *v;

	if (other->kind == VALUE_UNKNOWN)
		return true;
	if (v->kind == VALUE_UNKNOWN || v->kind == VALUE_SAME) {
		*v = *other;
		other = &same;
	}
	if (other->kind == VALUE_UNKNOWN)
		return true;
	v->index |= other->index;
	v->array |= other->array;
	if (v->kind == VALUE_SAME || other->kind == VALUE_SAME)
		return add_stride(v, other->off);
	if (v->kind != other->kind ||
	    (v->kind == VALUE_POINTER &&
	     shape_name(t, &v->type) != shape_name(t, (Dwarf_Die *)&other->type)))
		return false;
	return add_stride(v, other->off - v->off);
}

static bool writes(const struct query *q, size_t step, int reg)
{
	const struct step *s = &q->s->v[step];

	return (s->writes | (s->flow == INSN_CALL ? q->f->call_writes : 0)) >> reg & 1;
}

/* Merge the values of all paths to a jump target. */
static void joined_value(struct query *q, size_t step, int reg, struct value *out)
{
	const struct step *s = q->s->v;
	__u64 key = (__u64)step << 4 | reg;
	bool falls = step && s[step - 1].flow != INSN_JUMP && s[step - 1].flow != INSN_RETURN;
	struct value v;

	*out = (struct value){ .kind = VALUE_SAME, .why = TYPE_REGISTER };
	if (u64_map_get(&q->seen, key) != U64_MAP_NONE)
		return;
	unknown(out, TYPE_REGISTER);
	u64_map_put(&q->seen, key, 0);
	/* in the order of addresses, including the instruction before it */
	for (size_t jump = s[step].jump, from; jump || falls;) {
		from = falls && (!jump || jump > step) ? step - 1 : jump - 1;
		if (from + 1 == jump)
			jump = s[from].next_jump;
		falls &= from + 1 != step;
		if (writes(q, from, reg))
			value_after(q, from, reg, &v);
		else
			value_of(q, from, reg, &v);
		if (!join(q->t, out, &v)) {
			q->left = 0;
			unknown(out, TYPE_REGISTER);
			return;
		}
	}
}

static void value_of(struct query *q, size_t step, int reg, struct value *out)
{
	const struct step *s = q->s->v;
	enum type_kind why = TYPE_REGISTER;

	unknown(out, TYPE_REGISTER);
	if (q->depth == FOLLOW_DEEP)
		return;
	q->depth++;
	for (size_t i = step; q->left-- > 0; i--) {
		held_value(q->f, s[i].addr, reg, out);
		if (out->kind || frame_value(q, s[i].addr, reg, out))
			break;
		if (why == TYPE_REGISTER)
			why = out->why;
		unknown(out, TYPE_REGISTER);
		if (s[i].jump) {
			joined_value(q, i, reg, out);
			break;
		}
		if (!i || s[i - 1].flow == INSN_JUMP || s[i - 1].flow == INSN_RETURN)
			break;
		if (writes(q, i - 1, reg)) {
			value_after(q, i - 1, reg, out);
			break;
		}
	}
	if (!out->kind && out->why == TYPE_REGISTER)
		out->why = why;
	q->depth--;
}

/* Does the code advance a pointer in a register by whole elements? Then it points into an array. */
static bool is_iterated(const struct query *q, __u64 addr, int reg, const struct value *v)
{
	Dwarf_Die type = v->type;
	__s64 size = shape_size(&type);

	for (size_t i = 0; i < q->f->n && size; i++) {
		const struct held *h = &q->f->held[i];

		if (h->in != HELD_REGISTER || (int)h->reg != reg || addr < h->lo || addr >= h->hi)
			continue;
		for (size_t k = 0; k < q->s->n; k++) {
			const struct step *s = &q->s->v[k];

			if (s->addr >= h->lo && s->addr <= h->hi && s->to == reg &&
			    s->effect == INSN_ADD && s->from == INSN_NO_REG && !s->n_mem &&
			    !(s->value % size))
				return true;
		}
	}
	return false;
}

void types_address(struct types *t, struct function *f, __u64 addr, struct place *out)
{
	struct query q = { .t = t, .f = f, .s = steps_of(t, f), .left = FOLLOW_MAX };
	long step = step_at(q.s, addr);
	const struct held *held;
	const struct step *s;
	struct value v;

	*out = (struct place){ .kind = TYPE_NO_CODE };
	if (step < 0)
		return;
	s = &q.s->v[step];
	out->size = s->mem.size;
	if (!s->n_mem) {
		out->kind =
			s->writes >> REG_SP & 1 || s->flow == INSN_CALL || s->flow == INSN_RETURN
				? TYPE_STACK_SLOT
				: TYPE_NO_CODE;
		return;
	}
	held = s->mem.base >= 0 && s->mem.base < REG_N && !s->mem.segment
		       ? held_memory(&q, addr, HELD_MEMORY, s->mem.base, s->mem.displacement,
				     &out->off)
		       : NULL;
	if (held && s->mem.index == INSN_NO_REG) {
		out->kind = TYPE_STACK;
		out->type = held->type;
		return;
	}
	address_of(&q, step, &s->mem, &v);
	place_of(&q, addr, &v, &out->type, &out->off, &out->kind);
	/* a variable is in its slot only after it was stored there */
	if (out->kind == TYPE_STACK_SLOT && s->mem.access & INSN_WRITE)
		place_of(&q, addr + s->len, &v, &out->type, &out->off, &out->kind);
	if (out->kind == TYPE_OUTSIDE && is_iterated(&q, addr, s->mem.base, &v)) {
		v.array = true;
		place_of(&q, addr, &v, &out->type, &out->off, &out->kind);
	}
	u64_map_free(&q.seen);
}
