// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cfi.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

enum { REG_BP = 6, REG_SP = 7, REG_RIP = 16 }; /* DWARF's numbers on x86-64 */

/* Encodings of pointers: the low four bits are the format. */
enum { ENC_ABSOLUTE = 0x00, ENC_UDATA4 = 0x03, ENC_SDATA4 = 0x0b, ENC_TABLE = 0x3b };

#define REMEMBERED 8 /* most nested DW_CFA_remember_state */

/* Bytes that are read from the front; after an attempt to read too many it is empty and `bad`. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t get(struct reader *r, unsigned int bytes)
{
	uint64_t v = 0;

	if (bytes > (size_t)(r->end - r->at)) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&v, r->at, bytes);
	r->at += bytes;
	return v;
}

static uint64_t get_uleb(struct reader *r)
{
	uint64_t v = 0, byte = 0x80;

	for (unsigned int shift = 0; byte & 0x80 && shift < 64; shift += 7) {
		byte = get(r, 1);
		v |= (byte & 0x7f) << shift;
	}
	return v;
}

static int64_t get_sleb(struct reader *r)
{
	uint64_t v = 0, byte = 0x80;
	unsigned int shift = 0;

	for (; byte & 0x80 && shift < 64; shift += 7) {
		byte = get(r, 1);
		v |= (byte & 0x7f) << shift;
	}
	if (byte & 0x40 && shift < 64)
		v |= -1ull << shift;
	return (int64_t)v;
}

static void skip(struct reader *r, uint64_t bytes)
{
	if (bytes > (size_t)(r->end - r->at))
		r->bad = true;
	r->at = r->bad ? r->end : r->at + bytes;
}

/* Bytes of a pointer; 0: an unknown encoding. */
static unsigned int pointer_bytes(unsigned int encoding)
{
	switch (encoding & 0x0f) {
	case 0x02:
	case 0x0a:
		return 2;
	case ENC_UDATA4:
	case ENC_SDATA4:
		return 4;
	case ENC_ABSOLUTE:
	case 0x04:
	case 0x0c:
		return 8;
	default:
		return 0;
	}
}

/* An entry of .eh_frame, without its length. */
static bool get_entry(const unsigned char *at, struct reader *out)
{
	uint32_t length;

	memcpy(&length, at, sizeof(length));
	*out = (struct reader){ at + sizeof(length), at + sizeof(length) + length, false };
	return length && length < UINT32_MAX;
}

/* The common part of several descriptions. */
struct cie {
	uint64_t code_align;
	int64_t data_align;
	unsigned int pointer; /* encoding */
	bool augmented, signal;
	struct reader code;
};

static void parse_augmentation(const char *letters, struct reader *r, struct cie *out)
{
	struct reader data = { r->at, r->at, false };
	const uint64_t bytes = get_uleb(r);

	data.at = r->at;
	skip(r, bytes);
	data.end = r->at;
	for (letters++; *letters; letters++) {
		if (*letters == 'R')
			out->pointer = get(&data, 1);
		else if (*letters == 'P')
			skip(&data, pointer_bytes(get(&data, 1)));
		else if (*letters == 'L')
			get(&data, 1);
		else if (*letters == 'S')
			out->signal = true;
		else if (*letters != 'B')
			r->bad = true;
	}
	r->bad |= data.bad;
}

static bool parse_cie(const unsigned char *at, struct cie *out)
{
	const char *letters;
	unsigned int version;
	struct reader r;

	*out = (struct cie){ .pointer = ENC_ABSOLUTE };
	if (!get_entry(at, &r) || get(&r, 4) != 0)
		return false;
	version = get(&r, 1);
	letters = (const char *)r.at;
	while (get(&r, 1))
		;
	if (version != 1 && version != 3)
		return false;
	out->code_align = get_uleb(&r);
	out->data_align = get_sleb(&r);
	if ((version == 1 ? get(&r, 1) : get_uleb(&r)) != REG_RIP)
		return false;
	out->augmented = *letters == 'z';
	if (out->augmented)
		parse_augmentation(letters, &r, out);
	else if (*letters)
		return false;
	out->code = r;
	return !r.bad;
}

/* What is known at an address of the function. */
struct state {
	uint64_t frame_reg; /* of CFI_FRAME_SP and CFI_FRAME_BP: it follows from the register */
	bool at_bp;	    /* CFI_FRAME_AT_BP */
	bool unknown;	    /* the rule for the frame or the return address is not supported */
	enum cfi_bp bp;
	int64_t frame_offset, bp_offset;
};

struct machine {
	const struct cie *cie;
	struct state now, first, remembered[REMEMBERED];
	unsigned int depth;
	bool bad;
};

static void set_saved(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg == REG_BP) {
		m->now.bp = CFI_BP_AT_FRAME;
		m->now.bp_offset = offset;
	} else if (reg == REG_RIP) {
		m->now.unknown |= offset != -8;
	}
}

/* A register whose rule is not an offset. */
static void set_other(struct machine *m, uint64_t reg, bool same)
{
	if (reg == REG_BP && same)
		m->now.bp = CFI_BP_SAME;
	else if (reg == REG_BP || reg == REG_RIP)
		m->now.unknown = true;
}

static void restore(struct machine *m, uint64_t reg)
{
	if (reg != REG_BP)
		return;
	m->now.bp = m->first.bp;
	m->now.bp_offset = m->first.bp_offset;
}

/* "frame pointer + offset", and with @deref the word there. */
static bool get_at_bp(struct reader *r, bool deref, int64_t *offset)
{
	const uint64_t bytes = get_uleb(r);
	struct reader block = { r->at, r->at, false };
	bool ok;

	skip(r, bytes);
	block.end = r->at;
	ok = get(&block, 1) == 0x70 + REG_BP; /* DW_OP_breg6 */
	*offset = get_sleb(&block);
	if (deref)
		ok &= get(&block, 1) == 0x06; /* DW_OP_deref */
	return ok && !block.bad && block.at == block.end;
}

static void set_frame(struct machine *m, uint64_t reg, int64_t offset)
{
	m->now.frame_reg = reg;
	m->now.frame_offset = offset;
	m->now.at_bp = false;
}

static void set_expression(struct machine *m, struct reader *r)
{
	const uint64_t reg = get_uleb(r);
	int64_t offset;
	const bool ok = get_at_bp(r, false, &offset);

	if (reg == REG_BP && ok) {
		m->now.bp = CFI_BP_AT_BP;
		m->now.bp_offset = offset;
	} else {
		set_other(m, reg, false);
	}
}

static void keep_state(struct machine *m)
{
	if (m->depth == REMEMBERED)
		m->bad = true;
	else
		m->remembered[m->depth++] = m->now;
}

static void recall_state(struct machine *m)
{
	if (!m->depth)
		m->bad = true;
	else
		m->now = m->remembered[--m->depth];
}

/* Operations of DWARF's call frame instructions that say where the frame is. Return: false for another one. */
static bool execute_frame(struct machine *m, struct reader *r, unsigned int op)
{
	uint64_t reg;

	switch (op) {
	case 0x0c: /* def_cfa */
		reg = get_uleb(r);
		set_frame(m, reg, (int64_t)get_uleb(r));
		return true;
	case 0x12: /* def_cfa_sf */
		reg = get_uleb(r);
		set_frame(m, reg, get_sleb(r) * m->cie->data_align);
		return true;
	case 0x0d: /* def_cfa_register */
		set_frame(m, get_uleb(r), m->now.frame_offset);
		return true;
	case 0x0e: /* def_cfa_offset */
		m->now.frame_offset = (int64_t)get_uleb(r);
		return true;
	case 0x13: /* def_cfa_offset_sf */
		m->now.frame_offset = get_sleb(r) * m->cie->data_align;
		return true;
	case 0x0f:			    /* def_cfa_expression */
		m->now.frame_reg = REG_RIP; /* unknown, unless it is this one */
		m->now.at_bp = get_at_bp(r, true, &m->now.frame_offset);
		return true;
	default:
		return false;
	}
}

/* Those that say where registers are. */
static bool execute_register(struct machine *m, struct reader *r, unsigned int op)
{
	uint64_t reg;

	switch (op) {
	case 0x05: /* offset_extended */
		reg = get_uleb(r);
		set_saved(m, reg, (int64_t)get_uleb(r) * m->cie->data_align);
		return true;
	case 0x11: /* offset_extended_sf */
		reg = get_uleb(r);
		set_saved(m, reg, get_sleb(r) * m->cie->data_align);
		return true;
	case 0x06: /* restore_extended */
		restore(m, get_uleb(r));
		return true;
	case 0x07: /* undefined */
		set_other(m, get_uleb(r), false);
		return true;
	case 0x08: /* same_value */
		set_other(m, get_uleb(r), true);
		return true;
	case 0x09: /* register */
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf */
		set_other(m, get_uleb(r), false);
		get_uleb(r);
		return true;
	case 0x10: /* expression */
		set_expression(m, r);
		return true;
	case 0x16: /* val_expression */
		set_other(m, get_uleb(r), false);
		skip(r, get_uleb(r));
		return true;
	default:
		return false;
	}
}

/* The rest of those that do not advance the address. */
static void execute_other(struct machine *m, struct reader *r, unsigned int op)
{
	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x0a: /* remember_state */
		keep_state(m);
		break;
	case 0x0b: /* restore_state */
		recall_state(m);
		break;
	case 0x2e: /* GNU_args_size */
		get_uleb(r);
		break;
	default:
		m->bad = true;
	}
}

/* Run instructions up to the row of @offset, the distance from the begin of the function. */
static void run(struct machine *m, struct reader r, uint64_t offset)
{
	uint64_t at = 0;

	while (r.at < r.end && !m->bad && !r.bad) {
		const unsigned int op = get(&r, 1), low = op & 0x3f;

		if (op >> 6 == 1) /* advance_loc */
			at += low * m->cie->code_align;
		else if (op >> 6 == 2) /* offset */
			set_saved(m, low, (int64_t)get_uleb(&r) * m->cie->data_align);
		else if (op >> 6 == 3) /* restore */
			restore(m, low);
		else if (op >= 0x02 && op <= 0x04) /* advance_loc1, 2 and 4 */
			at += get(&r, 1u << (op - 0x02)) * m->cie->code_align;
		else if (!execute_frame(m, &r, op) && !execute_register(m, &r, op))
			execute_other(m, &r, op);
		if (at > offset)
			return;
	}
	m->bad |= r.bad;
}

static bool fits(int64_t offset)
{
	return offset > -(1 << 29) && offset < 1 << 29;
}

static union cfi_rule rule_of(const struct machine *m)
{
	const struct state *s = &m->now;
	union cfi_rule rule = { .word = 0 };

	if (m->bad || s->unknown || !fits(s->frame_offset) || !fits(s->bp_offset))
		return rule;
	rule.frame = s->at_bp		      ? CFI_FRAME_AT_BP
		     : s->frame_reg == REG_SP ? CFI_FRAME_SP
		     : s->frame_reg == REG_BP ? CFI_FRAME_BP
					      : CFI_FRAME_UNKNOWN;
	rule.bp = s->bp;
	rule.frame_offset = s->frame_offset;
	rule.bp_offset = s->bp_offset;
	return rule;
}

/* @offset: of the address in the function that the description @fde is of */
static union cfi_rule rule_at(const unsigned char *fde, uint64_t offset)
{
	struct machine m = { .bad = false };
	unsigned int bytes;
	struct cie cie;
	struct reader r;
	uint64_t back;

	if (!get_entry(fde, &r))
		return (union cfi_rule){ .word = 0 };
	back = get(&r, 4);
	if (!back || !parse_cie(r.at - 4 - back, &cie) || cie.signal)
		return (union cfi_rule){ .word = 0 };
	bytes = pointer_bytes(cie.pointer);
	skip(&r, bytes);
	if (!bytes || offset >= get(&r, bytes))
		return (union cfi_rule){ .word = 0 };
	if (cie.augmented)
		skip(&r, get_uleb(&r));
	m.cie = &cie;
	run(&m, cie.code, UINT64_MAX);
	m.first = m.now;
	m.bad |= r.bad;
	run(&m, r, offset);
	return rule_of(&m);
}

/* The sorted table of .eh_frame_hdr: offsets of functions and of their descriptions from its begin. */
struct table {
	unsigned char version, frame_encoding, count_encoding, encoding;
	int32_t frame;
	uint32_t n;
	struct {
		int32_t function, fde;
	} row[];
};

static union cfi_rule find_in_table(const struct table *t, uintptr_t pc)
{
	const uintptr_t base = (uintptr_t)t;
	uint32_t from = 0, to = t->n;

	if (t->version != 1 || pointer_bytes(t->frame_encoding) != 4 ||
	    t->count_encoding != ENC_UDATA4 || t->encoding != ENC_TABLE)
		return (union cfi_rule){ .word = 0 };
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;

		if (base + t->row[middle].function <= pc)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from)
		return (union cfi_rule){ .word = 0 };
	return rule_at((const unsigned char *)base + t->row[from - 1].fde,
		       pc - (base + t->row[from - 1].function));
}

struct search {
	uintptr_t pc;
	union cfi_rule rule;
};

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct table *table = NULL;
	struct search *s = arg;
	bool here = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && s->pc >= start && s->pc - start < p->p_memsz)
			here = true;
		if (p->p_type == PT_GNU_EH_FRAME)
			table = (const struct table *)start;
	}
	if (here && table)
		s->rule = find_in_table(table, s->pc);
	return here;
}

union cfi_rule cfi_find(uintptr_t pc)
{
	/* a return address may be behind the end of its function: the call is before it */
	struct search s = { .pc = pc - 1 };

	dl_iterate_phdr(search_object, &s);
	return s.rule;
}
