// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "disasm.h"

#include <capstone/capstone.h>

struct disasm {
	csh handle;
	cs_insn *insn;
	bool intel;
};

/* Each general register under all its names, in DWARF's order. X(64, 32, 16, 8 high or INVALID, 8) */
#define REG_TABLE(X)                      \
	X(RAX, EAX, AX, AH, AL)           \
	X(RDX, EDX, DX, DH, DL)           \
	X(RCX, ECX, CX, CH, CL)           \
	X(RBX, EBX, BX, BH, BL)           \
	X(RSI, ESI, SI, INVALID, SIL)     \
	X(RDI, EDI, DI, INVALID, DIL)     \
	X(RBP, EBP, BP, INVALID, BPL)     \
	X(RSP, ESP, SP, INVALID, SPL)     \
	X(R8, R8D, R8W, INVALID, R8B)     \
	X(R9, R9D, R9W, INVALID, R9B)     \
	X(R10, R10D, R10W, INVALID, R10B) \
	X(R11, R11D, R11W, INVALID, R11B) \
	X(R12, R12D, R12W, INVALID, R12B) \
	X(R13, R13D, R13W, INVALID, R13B) \
	X(R14, R14D, R14W, INVALID, R14B) \
	X(R15, R15D, R15W, INVALID, R15B) \
	X(RIP, EIP, IP, INVALID, INVALID)

static int reg_of(unsigned int reg)
{
#define REG_ROW(...)		 { REG_NAMES(__VA_ARGS__) },
#define REG_NAMES(a, b, c, d, e) X86_REG_##a, X86_REG_##b, X86_REG_##c, X86_REG_##d, X86_REG_##e
	static const unsigned short names[][5] = { REG_TABLE(REG_ROW) };

	for (size_t i = 0; reg != X86_REG_INVALID && i < ARRAY_SIZE(names); i++)
		for (size_t k = 0; k < ARRAY_SIZE(names[i]); k++)
			if (names[i][k] == reg)
				return i;
	return INSN_NO_REG;
}

static void *disasm_malloc(size_t bytes)
{
	return xrealloc(NULL, bytes);
}

struct disasm *disasm_new(bool intel)
{
	/* capstone 4 uses memory without looking whether it got any */
	static cs_opt_mem memory = { disasm_malloc, xcalloc, xrealloc, free, vsnprintf };
	struct disasm *d = xcalloc(1, sizeof(*d));

	d->intel = intel;
	cs_option(0, CS_OPT_MEM, (size_t)&memory);
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) == CS_ERR_OK) {
		cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
		cs_option(d->handle, CS_OPT_SYNTAX,
			  intel ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
		d->insn = cs_malloc(d->handle);
	}
	if (d->insn)
		return d;
	disasm_free(d);
	return NULL;
}

void disasm_free(struct disasm *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	if (d->handle)
		cs_close(&d->handle);
	free(d);
}

static bool in_group(const cs_insn *in, unsigned int group)
{
	for (unsigned int i = 0; i < in->detail->groups_count; i++)
		if (in->detail->groups[i] == group)
			return true;
	return false;
}

static enum insn_flow flow_of(const cs_insn *in)
{
	switch (in->id) {
	case X86_INS_JMP:
	case X86_INS_LJMP:
		return INSN_JUMP;
	case X86_INS_CALL:
	case X86_INS_LCALL:
		return INSN_CALL;
	}
	if (in_group(in, X86_GRP_RET) || in_group(in, X86_GRP_IRET))
		return INSN_RETURN;
	return in_group(in, X86_GRP_JUMP) ? INSN_BRANCH : INSN_NEXT;
}

static unsigned char stack_of(const cs_insn *in)
{
	switch (in->id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHF:
	case X86_INS_PUSHFQ:
	case X86_INS_CALL:
		return INSN_WRITE;
	case X86_INS_POP:
	case X86_INS_POPF:
	case X86_INS_POPFQ:
	case X86_INS_LEAVE:
	case X86_INS_RET:
		return INSN_READ;
	}
	return 0;
}

/* Instructions that compute an address without accessing it. */
static bool is_address_only(const cs_insn *in)
{
	return in->id == X86_INS_LEA || in->id == X86_INS_NOP;
}

/* Capstone 4 reports non-temporal stores as loads, TEST as a store, and prefetches as loads. */
static unsigned char access_of(const cs_insn *in, const cs_x86_op *op)
{
	static const struct {
		unsigned short id, access;
	} known[] = {
		{ X86_INS_TEST, INSN_READ },	  { X86_INS_MOVNTI, INSN_WRITE },
		{ X86_INS_MOVNTPS, INSN_WRITE },  { X86_INS_MOVNTPD, INSN_WRITE },
		{ X86_INS_MOVNTDQ, INSN_WRITE },  { X86_INS_MOVNTQ, INSN_WRITE },
		{ X86_INS_VMOVNTPS, INSN_WRITE }, { X86_INS_VMOVNTPD, INSN_WRITE },
		{ X86_INS_VMOVNTDQ, INSN_WRITE }, { X86_INS_PREFETCH, 0 },
		{ X86_INS_PREFETCHW, 0 },	  { X86_INS_PREFETCHNTA, 0 },
		{ X86_INS_PREFETCHT0, 0 },	  { X86_INS_PREFETCHT1, 0 },
		{ X86_INS_PREFETCHT2, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].id == in->id)
			return known[i].access;
	return (op->access & CS_AC_READ ? INSN_READ : 0) |
	       (op->access & CS_AC_WRITE ? INSN_WRITE : 0);
}

static void put_mem(const cs_x86_op *op, struct insn_mem *mem)
{
	unsigned int segment = op->mem.segment;

	*mem = (struct insn_mem){
		.base = reg_of(op->mem.base),
		.index = reg_of(op->mem.index),
		.scale = op->mem.scale,
		.size = op->size,
		.segment = segment == X86_REG_FS   ? 'f'
			   : segment == X86_REG_GS ? 'g'
						   : 0,
		.displacement = op->mem.disp,
	};
}

static void add_mem(const cs_insn *in, const cs_x86_op *op, struct insn *out)
{
	if (is_address_only(in) || out->n_mem == INSN_MEM_MAX)
		return;
	put_mem(op, &out->mem[out->n_mem]);
	out->mem[out->n_mem++].access = access_of(in, op);
}

static void add_writes(const cs_insn *in, struct insn *out)
{
	const cs_detail *detail = in->detail;

	for (unsigned int i = 0; i < detail->regs_write_count; i++) {
		int reg = reg_of(detail->regs_write[i]);

		out->writes |= reg >= 0 && reg < INSN_RIP ? 1u << reg : 0;
	}
}

/* Operands in Intel's order, the destination first; capstone lists them as they are printed. */
static const cs_x86_op *operand(const struct disasm *d, unsigned int i)
{
	const cs_x86 *x86 = &d->insn->detail->x86;

	return &x86->operands[d->intel ? i : x86->op_count - 1u - i];
}

/* The effect of an instruction with two operands, the first one a register that it writes. */
static void set_effect(const struct disasm *d, struct insn *out)
{
	const cs_x86_op *source = operand(d, 1);
	bool whole = operand(d, 0)->size == 8, reg = source->type == X86_OP_REG,
	     imm = source->type == X86_OP_IMM, mem = source->type == X86_OP_MEM;
	unsigned int id = d->insn->id;

	out->from = reg && whole ? reg_of(source->reg) : INSN_NO_REG;
	out->value = imm ? source->imm : 0;
	if ((id == X86_INS_MOV || id == X86_INS_MOVABS) && imm) {
		out->effect = INSN_SET;
	} else if (id == X86_INS_MOV && whole) {
		out->effect = mem ? INSN_LOAD : out->from >= 0 ? INSN_MOVE : INSN_OTHER;
	} else if (id == X86_INS_LEA && whole) {
		put_mem(source, &out->mem[0]);
		out->effect = INSN_ADDRESS;
	} else if ((id == X86_INS_ADD || (id == X86_INS_SUB && imm)) && whole) {
		out->effect = INSN_ADD;
		out->value *= id == X86_INS_SUB ? -1 : 1;
	}
	if (out->effect != INSN_MOVE && out->effect != INSN_ADD)
		out->from = INSN_NO_REG;
}

static void add_operands(const struct disasm *d, struct insn *out)
{
	unsigned int n = d->insn->detail->x86.op_count, written = 0;

	for (unsigned int i = 0; i < n; i++) {
		const cs_x86_op *op = operand(d, i);
		int reg = op->type == X86_OP_REG ? reg_of(op->reg) : INSN_NO_REG;

		if (op->type == X86_OP_MEM)
			add_mem(d->insn, op, out);
		if (reg < 0 || reg == INSN_RIP || !(op->access & CS_AC_WRITE))
			continue;
		out->writes |= 1u << reg;
		out->to = written++ ? INSN_NO_REG : reg;
	}
	if (n == 2 && out->to >= 0)
		set_effect(d, out);
}

/*
 * Capstone 4 lacks many instructions of AVX-512, which libraries use wherever the CPU has them. Vector
 * encodings are regular, so decoding can continue after them. Return: length, 0 if it is not a vector instruction.
 */
static unsigned int vector_length(const unsigned char *b, size_t n)
{
	unsigned int map, prefix, opcode, len, mod, rm;
	bool sib;

	if (n < 4 || (*b != 0x62 && *b != 0xc4 && *b != 0xc5))
		return 0;
	prefix = *b == 0x62 ? 4 : *b == 0xc4 ? 3 : 2;
	map = *b == 0x62 ? b[1] & 7 : *b == 0xc4 ? b[1] & 31 : 1;
	if (n < prefix + 2 || map < 1 || map > 6 || map == 4)
		return 0;
	opcode = b[prefix];
	mod = b[prefix + 1] >> 6;
	rm = b[prefix + 1] & 7;
	sib = mod != 3 && rm == 4;
	len = prefix + 2 + sib;
	if (sib && n < len)
		return 0;
	if (mod == 1)
		len += 1;
	else if (mod == 2 || (!mod && (rm == 5 || (sib && (b[prefix + 2] & 7) == 5))))
		len += 4;
	if (map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
				      (opcode >= 0xc4 && opcode <= 0xc6))))
		len++;
	return len <= n && len <= INSN_BYTES_MAX ? len : 0;
}

static bool decode_vector(const unsigned char *bytes, size_t n, struct insn *out)
{
	int at = snprintf(out->text, sizeof(out->text), "(vector)");

	out->len = vector_length(bytes, n);
	for (unsigned int i = 0; i < out->len; i++)
		at += snprintf(out->text + at, sizeof(out->text) - at, " %02x", bytes[i]);
	if (!out->len)
		*out = (struct insn){ 0 };
	return out->len;
}

bool disasm_decode(struct disasm *d, const unsigned char *bytes, size_t n, __u64 addr,
		   struct insn *out)
{
	const cs_insn *in = d->insn;
	const cs_x86_op *op;
	const unsigned char *code = bytes;
	uint64_t next = addr;
	size_t left = n;

	*out = (struct insn){ .from = INSN_NO_REG, .to = INSN_NO_REG };
	if (!cs_disasm_iter(d->handle, &code, &left, &next, d->insn))
		return decode_vector(bytes, n, out);
	out->len = in->size;
	snprintf(out->text, sizeof(out->text), "%.31s%s%.62s", in->mnemonic, *in->op_str ? " " : "",
		 in->op_str);
	out->flow = flow_of(in);
	out->stack = stack_of(in);
	op = in->detail->x86.operands;
	if (out->flow != INSN_NEXT && out->flow != INSN_RETURN && op->type == X86_OP_IMM) {
		out->has_target = true;
		out->target = op->imm;
	}
	add_writes(in, out);
	add_operands(d, out);
	return true;
}

unsigned int insn_stack_access(const struct insn *in)
{
	unsigned int ours = in->stack, others = 0;

	for (unsigned int i = 0; i < in->n_mem; i++) {
		const struct insn_mem *m = &in->mem[i];

		if (m->base == INSN_RSP && !m->segment)
			ours |= m->access;
		else
			others |= m->access;
	}
	return ours & ~others;
}
