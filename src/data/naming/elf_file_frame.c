// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules of unwinding, as libdw reads them, or from Go's table. */
#include "elf_file.h"
#include "elf_file_private.h"

#include <dwarf.h>

#define VALUES 8 /* of an expression at a time */

/* A value that an expression computes. */
struct value {
	enum {
		NUMBER,
		ADDRESS,
		WORD,
		CODE
	} kind; /* CODE: the address of the instruction, plus `offset` */
	__u8 base;
	__s64 offset, more; /* of WORD `more` is added to the word */
};

struct machine {
	struct value v[VALUES];
	unsigned int n;
	__u64 pc;
	bool is_value; /* what is computed is the value, not where it is */
	bool failed;
};

static void push(struct machine *m, struct value v)
{
	if (m->n == VALUES)
		m->failed = true;
	else
		m->v[m->n++] = v;
}

static struct value pop(struct machine *m)
{
	if (m->n)
		return m->v[--m->n];
	m->failed = true;
	return (struct value){};
}

static void push_number(struct machine *m, __s64 number)
{
	push(m, (struct value){ .kind = NUMBER, .offset = number });
}

static void push_register(struct machine *m, __u64 number, __s64 offset)
{
	if (number > FRAME_CFA)
		m->failed = true;
	else
		push(m, (struct value){ .kind = number == FRAME_RIP ? CODE : ADDRESS,
					.base = number,
					.offset = offset });
}

static void add(struct machine *m, struct value a, struct value b)
{
	struct value *big = a.kind == NUMBER ? &b : &a;
	const struct value *small = a.kind == NUMBER ? &a : &b;

	if (small->kind != NUMBER)
		m->failed = true;
	else if (big->kind == WORD)
		big->more = (__u64)big->more + small->offset;
	else
		big->offset = (__u64)big->offset + small->offset;
	push(m, *big);
}

static bool calculate(unsigned int op, __s64 a, __s64 b, __s64 *out)
{
	switch (op) {
	case DW_OP_and:
		*out = a & b;
		return true;
	case DW_OP_ge:
		*out = a >= b;
		return true;
	case DW_OP_shl:
		*out = (__u64)a << (b & 63);
		return b >= 0 && b < 64;
	default:
		return false;
	}
}

static void operate(struct machine *m, unsigned int op)
{
	const struct value b = pop(m), a = pop(m);
	const bool plain = a.kind == NUMBER && b.kind == NUMBER;
	/* pages have the same place in files: the lowest bits of an address are the linker's */
	const bool low = op == DW_OP_and && a.kind == CODE && b.kind == NUMBER && b.offset >= 0 &&
			 b.offset < 4096;
	__s64 number;

	if (op == DW_OP_plus)
		add(m, a, b);
	else if ((plain || low) &&
		 calculate(op, (__u64)a.offset + (low ? m->pc : 0), b.offset, &number))
		push_number(m, number);
	else
		m->failed = true;
}

static void deref(struct machine *m)
{
	struct value v = pop(m);

	if (v.kind == ADDRESS)
		v.kind = WORD;
	else
		m->failed = true;
	push(m, v);
}

/* Signal frames and the linker's stubs have such expressions, and code that aligns its stack. */
static void step(struct machine *m, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push_number(m, op->atom - DW_OP_lit0);
		return;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push_register(m, op->atom - DW_OP_breg0, op->number);
		return;
	}
	switch (op->atom) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_constu:
	case DW_OP_consts:
		push_number(m, op->number);
		break;
	case DW_OP_bregx:
		push_register(m, op->number, op->number2);
		break;
	case DW_OP_call_frame_cfa:
		push(m, (struct value){ .kind = ADDRESS, .base = FRAME_CFA });
		break;
	case DW_OP_plus_uconst:
		add(m, pop(m), (struct value){ .kind = NUMBER, .offset = op->number });
		break;
	case DW_OP_deref:
		deref(m);
		break;
	case DW_OP_stack_value:
		m->is_value = true;
		break;
	default:
		operate(m, op->atom);
	}
}

static bool is_small(__s64 number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

static struct frame_rule compute(const Dwarf_Op *ops, size_t n, __u64 pc, bool is_value)
{
	const struct frame_rule unreadable = { .kind = FRAME_UNREADABLE };
	struct machine m = { .pc = pc, .is_value = is_value };
	struct value v;

	if (n == 1 && ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg16)
		return (struct frame_rule){ .kind = FRAME_VALUE, .base = ops->atom - DW_OP_reg0 };
	if (n == 1 && ops->atom == DW_OP_regx && ops->number < FRAME_REGS)
		return (struct frame_rule){ .kind = FRAME_VALUE, .base = ops->number };
	for (size_t i = 0; i < n && !m.failed; i++)
		step(&m, &ops[i]);
	v = pop(&m);
	if (m.failed || !is_small(v.offset) || !is_small(v.more) ||
	    (v.kind != ADDRESS && v.kind != WORD))
		return unreadable;
	/* where a value is: a word deeper */
	if (v.kind == WORD && !m.is_value)
		return unreadable;
	return (struct frame_rule){ .kind = v.kind == WORD ? FRAME_AT_AT
					    : m.is_value   ? FRAME_VALUE
							   : FRAME_AT,
				    .base = v.base,
				    .offset = v.offset,
				    .more = v.more };
}

static void fill(Dwarf_Frame *frame, __u64 pc, struct frame_row *out)
{
	Dwarf_Op room[3], *ops;
	bool of_signal;
	size_t n;
	int ra = dwarf_frame_info(frame, NULL, NULL, &of_signal);

	out->of_signal = of_signal;
	out->cfa = (struct frame_rule){ .kind = FRAME_UNREADABLE };
	if (!dwarf_frame_cfa(frame, &ops, &n) && n)
		out->cfa = compute(ops, n, pc, true);
	for (int i = 0; i < FRAME_REGS; i++) {
		struct frame_rule *r = &out->reg[i];

		*r = (struct frame_rule){ .kind = FRAME_UNREADABLE };
		if (dwarf_frame_register(frame, i == FRAME_RIP && ra >= 0 ? ra : i, room, &ops, &n))
			continue;
		if (n)
			*r = compute(ops, n, pc, false);
		else
			r->kind = ops ? FRAME_LOST : FRAME_SAME;
	}
	/* of registers without a rule libdw 0.188 says that functions preserve rax, not rbx; the ABI has it the other way */
	if (out->reg[FRAME_RAX].kind == FRAME_SAME)
		out->reg[FRAME_RAX].kind = FRAME_LOST;
	if (out->reg[FRAME_RBX].kind == FRAME_LOST)
		out->reg[FRAME_RBX].kind = FRAME_SAME;
}

/* Registers that `pop` instructions will restore before the function returns, as bits; false if it does more than that. */
static bool pops_before_return(const unsigned char *code, size_t n, unsigned int *pops,
			       unsigned int *regs)
{
	static const unsigned char by_code[] = { FRAME_RAX, 2,	       1, FRAME_RBX,
						 FRAME_RSP, FRAME_RBP, 4, 5 };

	*pops = *regs = 0;
	for (size_t i = 0; i < n; i++) {
		const bool high = code[i] == 0x41; /* r8 to r15 */

		if (i + 1 < n && (high || code[i] == 0xf2 || code[i] == 0xf3))
			i++;
		if (code[i] == 0xc3 || code[i] == 0xc2)
			return !high;
		if (code[i] < 0x58 || code[i] > 0x5f)
			return false;
		++*pops;
		*regs |= 1U << (high ? code[i] - 0x50 : by_code[code[i] - 0x58]);
	}
	return false;
}

/*
 * Tables say of the last instructions of a function that registers are where they were saved. What has been restored lies
 * below the stack pointer, where no copy of the stack begins, and is in the registers by then.
 */
static void fill_return(struct elf_file *o, __u64 addr, struct frame_row *row)
{
	static const int preserved[] = { FRAME_RBX, FRAME_RBP, 12, 13, 14, 15 };
	unsigned char code[16];
	unsigned int pops, later;

	if (row->cfa.kind != FRAME_VALUE || row->cfa.base != FRAME_RSP)
		return;
	if (!pops_before_return(code, elf_file_read(o, addr, code, sizeof(code)), &pops, &later) ||
	    row->cfa.offset != 8 * ((int)pops + 1))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(preserved); i++)
		if (!(later & 1U << preserved[i]))
			row->reg[preserved[i]].kind = FRAME_SAME;
}

static bool find(struct elf_file *o, Dwarf_CFI *cfi, Dwarf_Addr bias, __u64 addr,
		 struct frame_row *out)
{
	Dwarf_Frame *frame = NULL;

	if (!cfi || dwarf_cfi_addrframe(cfi, addr + o->bias - bias, &frame))
		return false;
	fill(frame, addr, out);
	free(frame);
	return true;
}

/*
 * Go's own table, which its runtime unwinds with: the other ones go when a program is stripped. Functions of Go preserve
 * nothing but the frame pointer, which those with a frame save below the return address.
 */
static void fill_go(const struct go_frame *f, struct frame_row *out)
{
	*out = (struct frame_row){ .cfa = { FRAME_VALUE, FRAME_RSP, .offset = f->depth + 8 } };
	out->reg[FRAME_RSP] = (struct frame_rule){ FRAME_VALUE, FRAME_CFA };
	out->reg[FRAME_RBP] = f->depth >= 8
				      ? (struct frame_rule){ FRAME_AT, FRAME_CFA, .offset = -16 }
				      : (struct frame_rule){ .kind = FRAME_SAME };
	out->reg[FRAME_RIP] = (struct frame_rule){ FRAME_AT, FRAME_CFA, .offset = -8 };
}

/* Where chains of Go end: what its linker writes for debuggers goes on, with random words. */
static void end_go(const struct go_frame *f, struct frame_row *out)
{
	if (f->outermost)
		out->reg[FRAME_RIP] = (struct frame_rule){ .kind = FRAME_LOST };
	else if (f->switches)
		out->cfa = (struct frame_rule){ .kind = FRAME_UNREADABLE };
}

bool elf_file_frame(struct elf_file *o, __u64 offset, struct frame_row *out)
{
	const struct go_table *table;
	struct go_frame go;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;
	bool found;
	__u64 addr;

	if (!elf_file_address(o, offset, &addr))
		return false;
	cfi = dwfl_module_eh_cfi(o->module, &bias);
	found = find(o, cfi, bias, addr, out);
	if (!found) {
		cfi = dwfl_module_dwarf_cfi(o->module, &bias);
		found = find(o, cfi, bias, addr, out);
	}
	if (found)
		fill_return(o, addr, out);
	table = elf_file_go_table(o);
	if (!table || !go_table_frame(table, addr, &go))
		return found;
	if (!found)
		fill_go(&go, out);
	end_go(&go, out);
	return true;
}
