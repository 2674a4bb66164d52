// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The decoder of the simulation against libcapstone, over the code of this process: its own, that of
 * libc, and of libraries with vector code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disasm/disasm.h"

#define FS_BASE 0x7f1234560000ull
#define LOADED	0x5555666677778888ull

#define sim_insn_fs_base(state)		     FS_BASE
#define sim_insn_load(state, address, value) (*(value) = LOADED, true)
#include <ibscope/sim_insn.h>

/* DWARF's number of a general register to that of ModRM */
static const int number[16] = { 0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };

static void look(const unsigned char *code, size_t n, __u64 ip, struct sim_insn_state *regs,
		 struct sim_insn_access *a, __u64 *next)
{
	struct sim_insn_head h = { 0 };

	memcpy(&h.rest.low, code, n < 8 ? n : 8);
	if (n > 8)
		memcpy(&h.rest.high, code + 8, n < 16 ? n - 8 : 8);
	sim_insn_access(&h, regs, ip, a);
	sim_insn_execute(&h, regs, a);
	*next = ip;
	if (!sim_insn_next(&h, next))
		*next = 0;
}

static __u64 value(const struct sim_insn_state *regs, int reg, __u64 next)
{
	return reg == INSN_NO_REG ? 0 : reg == INSN_RIP ? next : regs->reg[number[reg]];
}

/* The operand that sim_insn_access() describes: the one that is read first; NULL: none */
static const struct insn_mem *operand(const struct insn *in)
{
	const struct insn_mem *m = in->n_mem ? &in->mem[0] : NULL;

	if (in->n_mem == 2 && !(m->access & INSN_READ))
		m = &in->mem[1];
	return m;
}

/* libcapstone 4 reports these as reading what they write, or as not reading what they exchange. */
static bool misreported(const struct insn *in)
{
	static const char *const prefixes[] = { "movups",	"movupd",  "movq", "rep stos",
						"lock cmpxchg", "cmpxchg", NULL };

	for (size_t i = 0; prefixes[i]; i++)
		if (!strncmp(in->text, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Return: what differs, or NULL. */
static const char *difference(const struct insn *in, const struct sim_insn_access *a,
			      const struct sim_insn_state *regs, __u64 ip)
{
	const struct insn_mem *m = operand(in);
	__u32 does = a->does & (SIM_INSN_DOES_READ | SIM_INSN_DOES_WRITE);
	__u64 at;

	if (!m && !in->stack)
		return does ? "an access where there is none" : NULL;
	if (m && in->n_mem == 1 && m->access != does && !misreported(in))
		return "read or written";
	if (!m)
		return does != in->stack ? "the stack" : NULL;
	if (!a->located)
		return NULL;
	at = value(regs, m->base, ip + in->len) + value(regs, m->index, 0) * m->scale +
	     m->displacement + (m->segment == 'f' ? FS_BASE : 0);
	if (at != a->address)
		return "the address";
	if (a->width && m->size && a->width != m->size)
		return "the width";
	return NULL;
}

/* The value that a register gets. Return: false if libcapstone does not say. */
static bool effect(const struct insn *in, const struct sim_insn_state *before, __u64 next,
		   __u64 *to)
{
	const struct insn_mem *m = &in->mem[0];
	const __u64 at = value(before, m->base, next) + value(before, m->index, 0) * m->scale +
			 m->displacement;

	switch (in->effect) {
	case INSN_MOVE:
		*to = value(before, in->from, next);
		return true;
	case INSN_LOAD:
		*to = LOADED;
		return m->size == 8;
	case INSN_ADDRESS:
		*to = at;
		return true;
	case INSN_ADD:
		*to = value(before, in->to, next) + in->value;
		return !in->n_mem && in->from == INSN_NO_REG;
	case INSN_SET:
		*to = in->value;
		return true;
	default:
		return false;
	}
}

/* Return: what is wrong about the registers behind the instruction, or NULL. */
static const char *difference_in_registers(const struct insn *in, __u64 next,
					   const struct sim_insn_state *before,
					   const struct sim_insn_state *after, size_t *known)
{
	for (int r = 0; r < 16; r++) {
		const int n = number[r];
		__u64 want = before->reg[n];

		if (after->unknown >> n & 1)
			continue;
		if (!(in->writes >> r & 1)) {
			if (after->reg[n] != want)
				return "a register that it does not write";
			continue;
		}
		++*known;
		if (in->stack && r == INSN_RSP) {
			if (after->reg[n] != want + (in->stack & INSN_WRITE ? -8 : 8))
				return "the stack pointer";
		} else if (r == in->to && effect(in, before, next, &want) &&
			   after->reg[n] != want && after->reg[n] != (__u32)want) {
			return "the value of a register";
		}
	}
	return NULL;
}

/* Return: what differs about the instruction behind it, or NULL. @next: 0: not known */
static const char *difference_behind(const struct insn *in, __u64 ip, __u64 next)
{
	if (!next)
		return NULL;
	if (in->flow == INSN_RETURN || (in->flow != INSN_NEXT && !in->has_target))
		return "where it goes";
	if (next != ip + in->len && !(in->has_target && next == in->target))
		return "the next one";
	if (next == ip + in->len && (in->flow == INSN_JUMP || in->flow == INSN_CALL))
		return in->target == next ? NULL : "the target";
	return NULL;
}

struct tally {
	size_t n, wrong, located, accesses, steps, known;
};

static void scan(struct disasm *d, const unsigned char *code, size_t size, struct tally *t)
{
	struct sim_insn_state regs = { 0 };
	struct sim_insn_access a;
	struct insn in;

	for (size_t i = 0; i < 16; i++)
		regs.reg[i] = 0x100000000000ull * (i + 1) + 0x1110 * i;
	for (size_t i = 0; i < size;) {
		struct sim_insn_state after = regs;
		const char *what;
		__u64 next;

		if (!disasm_decode(d, code + i, size - i, (__u64)(code + i), &in)) {
			i++;
			continue;
		}
		look(code + i, size - i, (__u64)(code + i), &after, &a, &next);
		what = difference(&in, &a, &regs, (__u64)(code + i)) ?:
			       difference_behind(&in, (__u64)(code + i), next) ?:
			       difference_in_registers(&in, (__u64)(code + i) + in.len, &regs, &after,
						       &t->known);
		t->steps += next != 0;
		t->n++;
		t->accesses += in.n_mem || in.stack;
		t->located += (in.n_mem || in.stack) && a.located;
		if (what && t->wrong++ < 40) {
			printf("%s: %s: ", what, in.text);
			for (unsigned int k = 0; k < in.len; k++)
				printf("%02x ", code[i + k]);
			printf(" does %x located %d width %u\n", a.does, a.located, a.width);
		}
		i += in.len;
	}
}

static void test_equals_libcapstone(void **state)
{
	struct disasm *d = disasm_new(false);
	FILE *f = fopen("/proc/self/maps", "r");
	struct tally t = { 0 };
	char line[512];

	(void)state;
	assert_non_null(d);
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char mode[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[2] != 'x' ||
		    mode[0] != 'r' || strchr(line, '['))
			continue;
		if (to - from > 400000)
			to = from + 400000;
		scan(d, (const unsigned char *)from, to - from, &t);
	}
	fclose(f);
	disasm_free(d);
	printf("%zu instructions, %zu differ, %zu with a next one, %zu registers followed; of %zu "
	       "accesses %zu have an address\n",
	       t.n, t.wrong, t.steps, t.known, t.accesses, t.located);
	assert_true(t.n > 100000);
	/* the two disagree about instructions that neither is sure of: data in code, prefetches */
	assert_true(t.wrong * 1000 < t.n);
	assert_true(t.located * 100 > t.accesses * 97);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_libcapstone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
