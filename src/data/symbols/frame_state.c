// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "frame_state.h"

#include "base/array.h"

#define RBP 6

/* A byte for each byte of code: INSIDE, or for the first one of an instruction its state. */
#define NOT_REACHED  0
#define INSIDE	     0xff
#define DEPTH_SHIFT  2
#define DEPTH_MAX    61 /* in words */
#define DEPTH_UNSURE 62

/* While a function is followed. */
struct state {
	bool framed, foreign;
	bool pushed_fp; /* by the instruction before */
	int depth;
};

struct place {
	size_t at;
	struct state state;
};

struct follower {
	struct disasm *d;
	const unsigned char *code;
	size_t n;
	__u64 start;
	unsigned char *states;
	struct place *todo;
	size_t n_todo, room;
	/* at a jump to an address of a table, where all that it leads to begin */
	struct state indirect;
	bool has_indirect;
};

static unsigned char encode(const struct state *s)
{
	const int words = s->depth < 0 || s->depth % 8 || s->depth / 8 > DEPTH_MAX ? DEPTH_UNSURE
										   : s->depth / 8;

	return 1 + (words << DEPTH_SHIFT | s->foreign << 1 | s->framed);
}

static bool is(const struct insn *in, const char *mnemonic)
{
	return !strncmp(in->text, mnemonic, strlen(mnemonic));
}

static bool is_stack_address(const struct insn *in)
{
	return in->effect == INSN_ADDRESS && in->mem[0].index == INSN_NO_REG && !in->mem[0].segment;
}

/* The stack pointer is written. */
static void move_stack(const struct insn *in, struct state *s)
{
	const struct insn_mem *m = &in->mem[0];

	if (in->effect == INSN_ADD && in->from == INSN_NO_REG && !in->n_mem && s->depth >= 0)
		s->depth -= in->value;
	else if (in->effect == INSN_MOVE && in->from == RBP && s->framed)
		s->depth = 8;
	else if (is_stack_address(in) && m->base == INSN_RSP && s->depth >= 0)
		s->depth -= m->displacement;
	else if (is_stack_address(in) && m->base == RBP && s->framed)
		s->depth = 8 - m->displacement;
	else
		s->depth = -1;
}

/* The frame pointer is written. The caller's, saved below the return address, makes a frame. */
static void set_frame(const struct insn *in, struct state *s)
{
	const struct insn_mem *m = &in->mem[0];

	if (in->effect == INSN_MOVE && in->from == INSN_RSP)
		s->framed = s->depth == 8 || (s->depth < 0 && s->pushed_fp);
	else
		s->framed = is_stack_address(in) && m->base == INSN_RSP && s->depth >= 8 &&
			    m->displacement == s->depth - 8;
	s->foreign = !s->framed;
}

static void execute(const struct insn *in, struct state *s)
{
	const bool push = is(in, "push"), pop = is(in, "pop") && in->stack, leave = is(in, "leave");
	const bool pushes_fp = push && !in->n_mem && strstr(in->text, "%rbp");

	if (push && s->depth >= 0)
		s->depth += 8;
	if (pop && s->depth >= 0)
		s->depth -= 8;
	if (leave)
		s->depth = s->framed ? 0 : -1;
	if (leave || (pop && in->to == RBP))
		s->framed = s->foreign = false;
	else if (in->writes >> RBP & 1)
		set_frame(in, s);
	if (!push && !pop && !leave && in->flow != INSN_CALL && (in->writes >> INSN_RSP & 1))
		move_stack(in, s);
	if (pop && in->to == INSN_RSP)
		s->depth = -1;
	if (s->depth < 0 || s->depth > (int)FRAME_CODE_MAX)
		s->depth = -1;
	s->pushed_fp = pushes_fp;
}

static void push_place(struct follower *f, __u64 target, const struct state *s)
{
	if (target - f->start >= f->n)
		return;
	array_reserve(f->todo, f->room, f->n_todo + 1);
	f->todo[f->n_todo++] = (struct place){ target - f->start, *s };
}

/* Until an instruction that was reached before, or that leads elsewhere. */
static void follow_from(struct follower *f, size_t at, struct state s)
{
	struct insn in;

	for (; at < f->n && !f->states[at]; at += in.len) {
		if (!disasm_decode(f->d, f->code + at, f->n - at, f->start + at, &in)) {
			f->states[at] = INSIDE;
			return;
		}
		memset(f->states + at, INSIDE, in.len);
		f->states[at] = encode(&s);
		execute(&in, &s);
		if ((in.flow == INSN_JUMP || in.flow == INSN_BRANCH) && in.has_target)
			push_place(f, in.target, &s);
		if (in.flow == INSN_JUMP && !in.has_target && !f->has_indirect) {
			f->has_indirect = true;
			f->indirect = s;
		}
		if (in.flow == INSN_JUMP || in.flow == INSN_RETURN)
			return;
	}
}

static void follow(struct follower *f)
{
	push_place(f, f->start, &(struct state){});
	for (size_t at = 0; at < f->n; at++) {
		while (f->n_todo) {
			const struct place p = f->todo[--f->n_todo];

			follow_from(f, p.at, p.state);
		}
		if (!f->states[at] && f->has_indirect)
			push_place(f, f->start + at, &f->indirect);
		if (f->n_todo)
			at--;
	}
	free(f->todo);
}

static __u64 key_of(const struct object *object, __u64 start)
{
	return u64_hash(start ^ (uintptr_t)object << 20);
}

const struct frame_code *frame_codes_find(const struct frame_codes *c, const struct object *object,
					  __u64 start)
{
	__u32 i = u64_map_get(&c->of, key_of(object, start));

	while (i != U64_MAP_NONE && (c->v[i].object != object || c->v[i].start != start))
		i = c->v[i].next;
	return i == U64_MAP_NONE ? NULL : &c->v[i];
}

bool frame_codes_affords(struct frame_codes *c, __u64 size)
{
	if (!size || size > FRAME_CODE_MAX)
		return false;
	c->full |= c->bytes + size > FRAME_CODE_TOTAL;
	return c->bytes + size <= FRAME_CODE_TOTAL;
}

const struct frame_code *frame_codes_add(struct frame_codes *c, const struct object *object,
					 __u64 start, __u64 size, const unsigned char *code,
					 struct disasm *d)
{
	const __u64 key = key_of(object, start);
	struct frame_code *f;

	array_reserve(c->v, c->room, c->n + 1);
	f = &c->v[c->n];
	*f = (struct frame_code){ object, start, size, .next = u64_map_get(&c->of, key) };
	u64_map_put(&c->of, key, c->n++);
	if (!code || !d)
		return f;
	c->bytes += size;
	f->states = xcalloc(size, 1);
	follow(&(struct follower){
		.d = d, .code = code, .n = size, .start = start, .states = f->states });
	return f;
}

void frame_codes_free(struct frame_codes *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].states);
	free(c->v);
	u64_map_free(&c->of);
	*c = (struct frame_codes){ .bytes = c->bytes, .full = c->full };
}

struct frame_state frame_state_at(const struct frame_code *f, __u64 addr)
{
	struct frame_state out = { .depth = -1 };
	unsigned int v, words;

	if (!f->states || addr - f->start >= f->size)
		return out;
	v = f->states[addr - f->start];
	if (v == NOT_REACHED || v == INSIDE)
		return out;
	v--;
	words = v >> DEPTH_SHIFT;
	return (struct frame_state){ true, v & 1, v >> 1 & 1,
				     words == DEPTH_UNSURE ? -1 : (int)words * 8 };
}

__u64 frame_state_next(const struct frame_code *f, __u64 addr)
{
	for (__u64 i = addr - f->start + 1; f->states && i < f->size; i++) {
		if (f->states[i] == NOT_REACHED)
			return 0;
		if (f->states[i] != INSIDE)
			return f->start + i;
	}
	return 0;
}
