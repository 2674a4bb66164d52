// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "callers.h"
#include "symbols_private.h"

#include <ibscope/record.h>

#define CALL_BITS 12
#define CALL_MIN  2 /* bytes of a call instruction */
#define CALL_MAX  8
#define SKID	  4 /* instructions from the op to the interrupt */

/* What calls lead to. */
enum call {
	CALL_NONE,     /* there is none */
	CALL_INDIRECT, /* to an address that the code does not have */
	CALL_DIRECT,
};

/* The instruction before a return address, by its offset in a file. */
struct call_memo {
	struct known_call {
		const struct object *object; /* NULL: none */
		__u64 offset;
		__u64 to; /* of a direct call: from the return address on */
		enum call kind;
	} call[1 << CALL_BITS];
};

/* The function that the task was in. */
struct function {
	const struct object *object;
	const struct frame_code *code;
	__u64 at;    /* address that the linker gave */
	__u64 shift; /* of such addresses from offsets in the file */
};

/* --- the instruction before a return address --- */

static enum call decode_call(struct symbols *s, struct object *o, __u64 offset, __u64 *to)
{
	unsigned char code[CALL_MAX];
	struct insn in;

	s->disasm = s->disasm ?: disasm_new(false);
	if (offset < CALL_MAX || !s->disasm ||
	    object_code(o, offset - CALL_MAX, code, CALL_MAX) != CALL_MAX)
		return CALL_NONE;
	for (unsigned int n = CALL_MIN; n <= CALL_MAX; n++) {
		if (!disasm_decode(s->disasm, code + CALL_MAX - n, n, -(__u64)n, &in) ||
		    in.len != n || in.flow != INSN_CALL)
			continue;
		*to = in.target;
		return in.has_target ? CALL_DIRECT : CALL_INDIRECT;
	}
	return CALL_NONE;
}

bool symbols_locate(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
		    __u64 addr, struct object **object, __u64 *offset)
{
	struct symbol sym;

	symbols_find(s, tasks, ev->sample.tgid, addr, ev->time, false, false, &sym);
	*object = sym.object;
	*offset = sym.offset;
	return sym.object;
}

static const struct known_call *call_before(struct symbols *s, struct object *o, __u64 offset)
{
	struct known_call *k;

	if (!s->calls)
		s->calls = xcalloc(1, sizeof(*s->calls));
	k = &s->calls->call[u64_hash(offset ^ (uintptr_t)o << 20) >> (64 - CALL_BITS)];
	if (k->object != o || k->offset != offset) {
		*k = (struct known_call){ .object = o, .offset = offset };
		k->kind = decode_call(s, o, offset, &k->to);
	}
	return k;
}

static bool in_generated(const struct symbol *sym)
{
	return !sym->object && sym->dso &&
	       (is_generated(sym->dso) || sym->dso == symbols_generated_dso);
}

bool symbols_has_frame_pointers(struct symbols *s, const struct tasks *tasks,
				const struct trace_event *ev, __u64 addr)
{
	static const char builtin[] =
		"Builtins_"; /* V8's name for what it generates when it is built */
	struct symbol sym;

	symbols_find(s, tasks, ev->sample.tgid, addr, ev->time, false, false, &sym);
	return in_generated(&sym) || !strncmp(sym.name, builtin, sizeof(builtin) - 1);
}

bool symbols_may_return_to(struct symbols *s, const struct tasks *tasks,
			   const struct trace_event *ev, __u64 addr)
{
	struct symbol sym;

	symbols_find(s, tasks, ev->sample.tgid, addr - 1, ev->time, false, false, &sym);
	return in_generated(&sym) ||
	       (sym.object && call_before(s, sym.object, sym.offset + 1)->kind != CALL_NONE);
}

/* How well a return address fits a call of the function. */
enum fit {
	FIT_NONE,
	FIT_TAIL,   /* the call is of another function of the file, which may have jumped here */
	FIT_MAYBE,  /* the call does not say of what, or is in another file */
	FIT_DIRECT, /* the call is of this function */
};

static enum fit fits(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
		     const struct function *f, __u64 ret)
{
	const struct known_call *call;
	struct object *object;
	__u64 offset;

	/* before the address, as the call may be the last instruction of its mapping */
	if (!ret || !symbols_locate(s, tasks, ev, ret - 1, &object, &offset))
		return FIT_NONE;
	call = call_before(s, object, offset + 1);
	if (call->kind == CALL_NONE)
		return FIT_NONE;
	if (call->kind == CALL_INDIRECT || object != f->object)
		return FIT_MAYBE;
	return offset + 1 + f->shift + call->to - f->code->start < f->code->size ? FIT_DIRECT
										 : FIT_TAIL;
}

/* --- the function --- */

static const struct frame_code *follow(struct symbols *s, const struct symbol_code *code)
{
	const struct frame_code *known;
	unsigned char *bytes = NULL;
	struct err err;

	s->disasm = s->disasm ?: disasm_new(false);
	/* parts of a function that are rarely run begin with its frame, or without */
	if (!strstr(code->mangled ?: code->name, ".cold") &&
	    frame_codes_affords(&s->codes, code->size)) {
		bytes = xcalloc(1, code->size);
		if (symbols_code_read(s, code, bytes, &err)) {
			free(bytes);
			bytes = NULL;
		}
	}
	known = frame_codes_add(&s->codes, code->object, code->start, code->size, bytes, s->disasm);
	free(bytes);
	return known;
}

static bool function_at(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
			__u64 addr, struct function *out)
{
	struct symbol_code code;
	struct object *object;
	__u64 offset;

	if (!symbols_locate(s, tasks, ev, addr, &object, &offset) ||
	    !symbols_code(s, tasks, ev->sample.tgid, addr, ev->time, false, &code))
		return false;
	*out = (struct function){ code.object, frame_codes_find(&s->codes, code.object, code.start),
				  code.at, code.at - offset };
	out->code = out->code ?: follow(s, &code);
	return true;
}

bool symbols_same_function(struct symbols *s, const struct tasks *tasks,
			   const struct trace_event *ev, __u64 a, __u64 b)
{
	const __u32 tgid = ev->sample.tgid;
	struct symbol_code of_a, of_b;

	return symbols_code(s, tasks, tgid, a, ev->time, false, &of_a) &&
	       symbols_code(s, tasks, tgid, b, ev->time, false, &of_b) &&
	       of_a.object == of_b.object && of_a.start == of_b.start;
}

/* The return address that a state says is in the words; 0: it is not in them, or unknown. */
static __u64 word_of(const struct frame_state *st, const __u64 *top)
{
	return top && st->depth >= 0 && st->depth / 8 < IBS_STACK_TOP ? top[st->depth / 8] : 0;
}

struct caller symbols_caller(struct symbols *s, const struct tasks *tasks,
			     const struct trace_event *ev, __u64 addr, __u64 next, const __u64 *top,
			     bool exact)
{
	struct caller best = { CALLER_WALKED, 0 };
	enum fit most = FIT_NONE, fit;
	struct frame_state st;
	struct function f;

	if (!function_at(s, tasks, ev, addr, &f))
		return best;
	st = frame_state_at(f.code, f.at);
	if (!st.known)
		return best;
	if (!st.framed)
		best.kind = st.foreign ? CALLER_LAST : CALLER_MISSING;
	/* after the op itself, another state must fit better, and not as a mere tail call */
	for (int i = 0; i <= (exact ? 0 : SKID) && most < FIT_DIRECT && st.known; i++) {
		fit = fits(s, tasks, ev, &f, st.framed ? next : word_of(&st, top));
		if (fit > most && (!i || fit > FIT_TAIL)) {
			most = fit;
			best = st.framed ? (struct caller){ CALLER_WALKED, 0 }
					 : (struct caller){ CALLER_FOUND, word_of(&st, top) };
		}
		f.at = frame_state_next(f.code, f.at);
		st = frame_state_at(f.code, f.at);
	}
	/* the frame was made after the op, and the walk has found the same */
	if (best.kind == CALLER_FOUND && best.addr == next)
		best.kind = CALLER_WALKED;
	return best;
}
