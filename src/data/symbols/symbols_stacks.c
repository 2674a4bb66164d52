// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ops that access memory through the stack pointer, by the code of the program. */
#include "symbols.h"
#include "symbols_private.h"

#include "disasm/disasm.h"

#include <ibscope/op_fields.h>

/* Go keeps its stacks among other data, and uses their memory for that later. */
static bool proves(struct symbols *s, const struct task_map *map, struct dso *d)
{
	if (!d->stacks_asked) {
		d->stacks_asked = true;
		d->no_stacks = data_kind_of(map->path) != DATA_NO_SYMBOL;
		if (!d->no_stacks && !d->opened)
			dso_open(s, d);
		d->no_stacks |= !d->object || object_is_go(d->object);
	}
	return !d->no_stacks;
}

static unsigned int decode(struct symbols *s, struct object *o, __u64 offset)
{
	unsigned char code[INSN_BYTES_MAX];
	size_t n = object_code(o, offset, code, sizeof(code));
	struct insn in;

	s->disasm = s->disasm ?: disasm_new(false);
	if (!n || !s->disasm || !disasm_decode(s->disasm, code, n, 0, &in))
		return 0;
	return insn_stack_access(&in);
}

/* insn_stack_access() of what was executed; 0 if the code is not known. */
static unsigned int stack_access(struct symbols *s, const struct tasks *tasks,
				 const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	struct task_map map;
	struct dso *d;
	__u64 offset;
	__u32 known;

	if (!tasks_map(tasks, t->tgid, t->ip, ev->time, false, &map))
		return 0;
	d = dso_here(s, t->tgid, &map);
	if (!proves(s, &map, d))
		return 0;
	offset = t->ip - map.start + map.pgoff;
	known = u64_map_get(&d->stack_access, offset);
	if (known == U64_MAP_NONE) {
		known = decode(s, d->object, offset);
		u64_map_put(&d->stack_access, offset, known);
	}
	return known;
}

void symbols_learn_stack(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	unsigned int how;
	struct task_map map;
	__u64 addr, data3;

	/* the stack of the first thread has a name: see stack_pages_add() */
	if (!trace_accesses_memory(ev) || t->kernel || !t->has_task || t->tid == t->tgid ||
	    !trace_sample_is_exact(t) || !ibs_op_field(&t->op, IBS_OP_FIELD_DC_LIN_AD, &addr))
		return;
	data3 = t->op.reg[IBS_OP_DATA3];
	if (data3 & IBS_OP_DATA3_SW_PF || !tasks_map(tasks, t->tgid, addr, ev->time, false, &map) ||
	    !is_unnamed(map.path))
		return;
	how = (data3 & IBS_OP_DATA3_LD_OP ? INSN_READ : 0) |
	      (data3 & IBS_OP_DATA3_ST_OP ? INSN_WRITE : 0);
	if (!(how & ~stack_access(s, tasks, ev)))
		stack_pages_add(&s->stacks, t->tgid, t->tid, addr, ev->time);
}

int symbols_read_stacks(struct symbols *s, const struct tasks *tasks, struct trace *trace,
			struct err *err)
{
	struct trace_event ev;
	int ret = trace_rewind(trace, err);

	trace_skip_first_threads(trace);
	while (!ret && (ret = trace_next(trace, &ev, err)) > 0) {
		symbols_learn_stack(s, tasks, &ev);
		ret = 0;
	}
	return ret ?: trace_rewind(trace, err);
}
