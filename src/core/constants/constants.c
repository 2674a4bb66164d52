// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steps 3 to 5: remove what is unused, and move the rest together. */
#include "constants.h"
#include "constants_private.h"

/* True if the only effect is to set a register. */
static bool only_sets(const struct bpf_insn *i)
{
	return is_alu(i) || is_load64(i) || is_load(i);
}

/* A helper without arguments; kfuncs have some. */
static bool takes_nothing(const struct bpf_insn *i)
{
	return !i->src_reg &&
	       (i->imm == BPF_FUNC_get_current_task_btf || i->imm == BPF_FUNC_get_current_pid_tgid);
}

static __u16 reads(const struct bpf_insn *i)
{
	const __u16 dst = 1 << i->dst_reg, src = 1 << i->src_reg;

	if (is_alu(i))
		return (BPF_OP(i->code) == BPF_MOV ? 0 : dst) | (from_register(i) ? src : 0);
	if (is_load64(i))
		return 0;
	if (is_call(i))
		return takes_nothing(i) ? 0 : ARGS;
	if (i->code == (BPF_JMP | BPF_EXIT))
		return 1 << BPF_REG_0;
	if (is_jump(i))
		return is_branch(i) ? dst | (from_register(i) ? src : 0) : 0;
	if (class_of(i) == BPF_ST)
		return dst;
	return class_of(i) == BPF_LDX ? src : dst | src | 1 << BPF_REG_0;
}

static __u16 sets(const struct bpf_insn *i)
{
	return is_call(i)				? SCRATCHED
	       : only_sets(i) || class_of(i) == BPF_LDX ? 1 << i->dst_reg
							: 0;
}

/* Registers that are read after an instruction. */
static __u16 live_after(const struct folder *f, size_t at)
{
	const struct bpf_insn *i = &f->insns[at];
	size_t next = at + 1 + is_load64(i);
	__u16 live = 0;

	if (f->gone[at])
		return f->live[next];
	if (is_jump(i))
		live = f->live[at + 1 + i->off];
	if ((!is_jump(i) || is_branch(i)) && i->code != (BPF_JMP | BPF_EXIT))
		live |= f->live[next];
	return live;
}

/*
 * Arguments that a called function reads. If the verifier checks the function separately, it
 * requires the first argument even if it is not read.
 */
static __u16 call_reads(const struct folder *f, size_t at)
{
	const struct bpf_insn *i = &f->insns[at];

	return is_call(i) && names_function(i)
		       ? (f->live[function_of(at, i)] & ARGS) | 1 << BPF_REG_1
		       : reads(i);
}

/* Iterate backwards until nothing changes: an instruction that only feeds unused registers is unused, too. */
static void find_live(struct folder *f)
{
	do {
		f->changed = false;
		for (size_t at = f->n; at-- > 0;) {
			const struct bpf_insn *i = &f->insns[at];
			__u16 live;

			if (!f->before[at].reached)
				continue;
			live = live_after(f, at);
			if (!f->gone[at] && (!only_sets(i) || (live & sets(i))))
				live = (live & ~sets(i)) | call_reads(f, at);
			f->changed |= live != f->live[at];
			f->live[at] = live;
		}
	} while (f->changed);
	for (size_t at = 0; at < f->n; at++)
		if (!f->gone[at] && only_sets(&f->insns[at]) &&
		    !(live_after(f, at) & sets(&f->insns[at]))) {
			f->gone[at] = true;
			if (is_load64(&f->insns[at]))
				f->gone[++at] = true;
		}
}

static void find_places(struct folder *f)
{
	__u32 left = 0;

	for (size_t at = 0; at < f->n; at++) {
		f->place[at] = left;
		left += !f->gone[at];
	}
	f->place[f->n] = left;
}

/* Drop jumps to the next instruction. */
static void drop_jumps(struct folder *f)
{
	do {
		f->changed = false;
		find_places(f);
		for (size_t at = 0; at < f->n; at++) {
			const struct bpf_insn *i = &f->insns[at];

			if (!f->gone[at] && is_jump(i) && !is_branch(i) &&
			    f->place[at + 1 + i->off] == f->place[at] + 1)
				f->changed = f->gone[at] = true;
			at += is_load64(i);
		}
	} while (f->changed);
}

static void compact(struct folder *f)
{
	for (size_t at = 0; at < f->n; at++) {
		struct bpf_insn i = f->insns[at];
		const __u32 to = f->place[at];

		if (f->gone[at])
			continue;
		if (is_jump(&i))
			i.off = f->place[at + 1 + i.off] - to - 1;
		if (names_function(&i))
			i.imm = f->place[function_of(at, &i)] - to - 1;
		f->insns[to] = i; /* half of a wide load, too: it is no instruction of its own */
	}
}

/*
 * Records begin with the offset of their instruction. Of several with the same new offset keep the
 * last: the others belong to removed instructions. Returns the number of records left.
 */
static __u32 move_records(const struct folder *f, const void *records, __u32 n, __u32 bytes)
{
	char *first = (char *)records, *to = first;

	for (__u32 k = 0; k < n; k++) {
		const char *from = first + (size_t)k * bytes;
		__u32 at, last;

		memcpy(&at, from, sizeof(at));
		at = f->place[at];
		if (at == f->place[f->n])
			break;
		if (to != first) {
			memcpy(&last, to - bytes, sizeof(last));
			if (last == at)
				to -= bytes;
		}
		memmove(to, from, bytes);
		memcpy(to, &at, sizeof(at));
		to += bytes;
	}
	return bytes ? (to - first) / bytes : 0;
}

long constants_fold(struct bpf_insn *insns, size_t n, struct bpf_prog_load_opts *opts,
		    const struct constants *known)
{
	struct folder f = { .insns = insns, .n = n, .known = known };
	long left;

	f.before = xcalloc(n + 1, sizeof(*f.before));
	f.live = xcalloc(n + 1, sizeof(*f.live));
	f.gone = xcalloc(n + 1, sizeof(*f.gone));
	f.place = xcalloc(n + 1, sizeof(*f.place));
	constants_find(&f);
	constants_rewrite(&f);
	find_live(&f);
	drop_jumps(&f);
	compact(&f);
	opts->func_info_cnt =
		move_records(&f, opts->func_info, opts->func_info_cnt, opts->func_info_rec_size);
	opts->line_info_cnt =
		move_records(&f, opts->line_info, opts->line_info_cnt, opts->line_info_rec_size);
	left = f.place[n];
	free(f.before);
	free(f.live);
	free(f.gone);
	free(f.place);
	return left;
}

void constants_place(struct bpf_insn *insns, size_t n, const struct constants *known)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(known->by_value); k++)
			if (is_load64(&insns[i]) && insns[i].src_reg == BPF_PSEUDO_MAP_FD &&
			    insns[i].imm == known->by_value[k].map_fd) {
				insns[i].src_reg = BPF_PSEUDO_MAP_VALUE;
				insns[i + 1].imm = known->by_value[k].at;
			}
}

int constants_use(struct bpf_program *prog, struct bpf_prog_load_opts *opts,
		  const struct constants *known)
{
	size_t n = bpf_program__insn_cnt(prog);
	struct bpf_insn *insns = xrealloc(NULL, n * sizeof(*insns));
	long left;

	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	constants_place(insns, n, known);
	left = known->unfolded ? (long)n : constants_fold(insns, n, opts, known);
	left = bpf_program__set_insns(prog, insns, left);
	free(insns);
	return left;
}
