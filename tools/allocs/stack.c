// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stack.h"

#include "cfi.h"

#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define KEPT_BITS 12 /* rules that are kept */
#define OWN_MAX	  8  /* most frames of this library in a stack */

/* Rules by return address. A thread stores `pc` last, so that one that finds it has its rule. */
static struct {
	uintptr_t pc;
	uint64_t rule;
} kept[1u << KEPT_BITS];

/* Bounds of this library's code, from the linker. */
extern const char __ehdr_start[] /* NOLINT(bugprone-reserved-identifier): the linker's */
	__attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static union cfi_rule find_rule(uintptr_t pc)
{
	const size_t i = pc * 0x9e3779b97f4a7c15ull >> (64 - KEPT_BITS);
	union cfi_rule rule;

	if (__atomic_load_n(&kept[i].pc, __ATOMIC_ACQUIRE) == pc) {
		rule.word = __atomic_load_n(&kept[i].rule, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&kept[i].pc, __ATOMIC_RELAXED) == pc)
			return rule;
	}
	rule = cfi_find(pc);
	__atomic_store_n(&kept[i].pc, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&kept[i].rule, rule.word, __ATOMIC_RELEASE);
	__atomic_store_n(&kept[i].pc, pc, __ATOMIC_RELEASE);
	return rule;
}

void stack_forget(void)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		__atomic_store_n(&kept[i].pc, 0, __ATOMIC_RELEASE);
}

struct walk {
	uintptr_t pc, sp, bp;
	uintptr_t end; /* of the stack; 0: this is another one */
};

/* The word at an address of the stack. Whatever a file's .eh_frame says, this does not fault. */
static bool read_word(const struct walk *w, uintptr_t at, uintptr_t *out)
{
	struct iovec to = { out, sizeof(*out) }, from = { (void *)at, sizeof(*out) };

	if (at % sizeof(*out))
		return false;
	if (w->end) {
		if (at < w->sp - sizeof(*out) || at > w->end - sizeof(*out))
			return false;
		memcpy(out, (const void *)at, sizeof(*out));
		return true;
	}
	return syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == sizeof(*out);
}

static bool find_frame(const struct walk *w, union cfi_rule rule, uintptr_t *frame)
{
	switch (rule.frame) {
	case CFI_FRAME_SP:
		*frame = w->sp + rule.frame_offset;
		return true;
	case CFI_FRAME_BP:
		*frame = w->bp + rule.frame_offset;
		return true;
	case CFI_FRAME_AT_BP:
		return read_word(w, w->bp + rule.frame_offset, frame);
	default:
		return false;
	}
}

/* Go to the caller. Return: false at the end, or where nothing says how to go on. */
static bool step(struct walk *w)
{
	const union cfi_rule rule = find_rule(w->pc);
	uintptr_t frame, pc, bp = w->bp;

	if (!find_frame(w, rule, &frame) || frame <= w->sp || !read_word(w, frame - 8, &pc))
		return false;
	if (rule.bp == CFI_BP_AT_FRAME && !read_word(w, frame + rule.bp_offset, &bp))
		return false;
	if (rule.bp == CFI_BP_AT_BP && !read_word(w, w->bp + rule.bp_offset, &bp))
		return false;
	w->pc = pc;
	w->sp = frame;
	w->bp = bp;
	return pc != 0;
}

static bool is_own(uintptr_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc <= (uintptr_t)etext;
}

unsigned int stack_walk(const uintptr_t *frame, struct stack_bounds bounds, uint64_t *out,
			unsigned int max)
{
	struct walk w = { .pc = frame[1], .sp = (uintptr_t)(frame + 2), .bp = frame[0] };
	unsigned int n = 0, own = 0;

	if (w.sp >= bounds.start && w.sp < bounds.end)
		w.end = bounds.end;
	do {
		if (is_own(w.pc) && own++ < OWN_MAX)
			continue;
		out[n++] = w.pc;
	} while (n < max && step(&w));
	return n;
}
