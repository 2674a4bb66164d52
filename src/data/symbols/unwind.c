// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind.h"

#include "callers.h"
#include "symbols_private.h"

#define STACK_SPAN (1ull << 30) /* what is farther from the stack pointer is not of the stack */

/* Of registers with the numbers of DWARF, the place in struct pt_regs. */
static const unsigned char place_of[FRAME_REGS] = { 10, 12, 11, 5, 13, 14, 4, 19, 9,
						    8,	7,  6,	3, 2,  1,  0, 16 };

enum outcome { HAS_CALLER, HAS_NONE, IS_CUT, IS_LOST };

struct frame {
	const struct trace_copy *copy;
	__u64 reg[FRAME_REGS];
	__u32 known; /* bits of registers */
	bool exact;  /* it was interrupted, and did not call the frame before it */
	bool cut;    /* a word was wanted that lies behind the copy */
};

static bool get_word(struct frame *f, __u64 addr, __u64 *out)
{
	const struct trace_copy *c = f->copy;
	const __u64 at = addr - c->regs[IBS_USER_RSP];

	if (at > c->bytes || c->bytes - at < sizeof(*out)) {
		f->cut |= c->cut && at < STACK_SPAN;
		return false;
	}
	memcpy(out, c->data + at, sizeof(*out));
	return true;
}

/* The row may hold any numbers. @cfa: NULL: it is what is computed */
static bool compute(struct frame *f, const struct frame_rule *r, const __u64 *cfa, __u64 *out)
{
	__u64 base;

	if (r->base == FRAME_CFA && cfa)
		base = *cfa;
	else if (r->base < FRAME_REGS && f->known >> r->base & 1)
		base = f->reg[r->base];
	else
		return false;
	*out = base + r->offset;
	if (r->kind == FRAME_VALUE)
		return true;
	if ((r->kind != FRAME_AT && r->kind != FRAME_AT_AT) || !get_word(f, *out, out))
		return false;
	*out += r->more;
	return true;
}

static enum outcome failed(const struct frame *f)
{
	return f->cut ? IS_CUT : IS_LOST;
}

/* Replace the registers by those of the caller. */
static enum outcome step(struct frame *f, const struct frame_row *row)
{
	struct frame next = { .copy = f->copy, .exact = row->of_signal };
	__u64 cfa;

	if (row->reg[FRAME_RIP].kind == FRAME_LOST)
		return HAS_NONE;
	if (!compute(f, &row->cfa, NULL, &cfa))
		return failed(f);
	/* stacks grow down, but a signal may have another one */
	if (cfa <= f->reg[FRAME_RSP] && !row->of_signal)
		return IS_LOST;
	for (int i = 0; i < FRAME_REGS; i++) {
		const struct frame_rule *r = &row->reg[i];

		if (r->kind == FRAME_SAME)
			next.reg[i] = f->reg[i];
		if (r->kind == FRAME_SAME ? f->known >> i & 1 : compute(f, r, &cfa, &next.reg[i]))
			next.known |= 1u << i;
	}
	next.cut = f->cut;
	*f = next;
	if (!(f->known >> FRAME_RIP & 1) || !(f->known >> FRAME_RSP & 1))
		return failed(f);
	return f->reg[FRAME_RIP] ? HAS_CALLER : HAS_NONE;
}

/*
 * Code that a process generates has no tables. V8 keeps frame pointers there, and OpenJDK and CPython do with an option.
 * Where code does not, a caller is hardly found: there must be a call.
 */
static enum outcome step_by_pointer(struct symbols *s, const struct tasks *tasks,
				    const struct trace_event *ev, struct frame *f)
{
	static const struct frame_row row = {
		.cfa = { FRAME_VALUE, FRAME_RBP, .offset = 16 },
		.reg = { [FRAME_RBP] = { FRAME_AT, FRAME_CFA, .offset = -16 },
			 [FRAME_RSP] = { FRAME_VALUE, FRAME_CFA },
			 [FRAME_RIP] = { FRAME_AT, FRAME_CFA, .offset = -8 } },
	};
	enum outcome outcome = step(f, &row);

	if (outcome == HAS_CALLER && symbols_may_return_to(s, tasks, ev, f->reg[FRAME_RIP]))
		return HAS_CALLER;
	return outcome == IS_CUT ? IS_CUT : IS_LOST;
}

static enum outcome find_caller(struct symbols *s, const struct tasks *tasks,
				const struct trace_event *ev, struct frame *f)
{
	/* before the return address, as the call may be the last instruction of its function */
	const __u64 addr = f->reg[FRAME_RIP] - !f->exact;
	const struct frame_row *row = NULL;
	struct object *object;
	__u64 offset;

	if (symbols_locate(s, tasks, ev, addr, &object, &offset))
		row = object_frame(object, offset);
	if (row)
		return step(f, row);
	return symbols_has_frame_pointers(s, tasks, ev, addr) ? step_by_pointer(s, tasks, ev, f)
							      : IS_LOST;
}

unsigned int unwind(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
		    struct chain_frame *frames, unsigned int most)
{
	struct frame f = { .copy = ev->sample.copy,
			   .known = (1u << FRAME_REGS) - 1,
			   .exact = true };
	enum outcome outcome = HAS_CALLER;
	unsigned int n = 0;

	for (int i = 0; i < FRAME_REGS; i++)
		f.reg[i] = f.copy->regs[place_of[i]];
	while (outcome == HAS_CALLER && n < most) {
		frames[n++] = (struct chain_frame){ f.reg[FRAME_RIP] - !f.exact, false };
		outcome = find_caller(s, tasks, ev, &f);
	}
	if (outcome > HAS_NONE && n < most)
		frames[n++] = (struct chain_frame){ outcome == IS_CUT ? SYMBOLS_CUT : 0, false };
	symbols_count_chain(s, ev, outcome == IS_CUT);
	return n;
}
