/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loops whose every instruction is known. Behind each access is a nop with a displacement that no compiler uses, by
 * which the emulated processor of tests/vm/rig knows it; others execute it as a nop.
 */
#ifndef IBSCOPE_LOOP_CODE_H
#define IBSCOPE_LOOP_CODE_H

#include <stddef.h>
#include <stdint.h>

#define LOOP_UNROLLED 8 /* accesses, or branches, a round */
#define LOOP_LINE     64

/* One loop: @run(at, rounds) does @unit of them a round, and returns where it got to. */
struct loop_code {
	void *(*run)(void *at, size_t rounds);
	const char *begin;
	size_t unit, offset; /* bytes of code for one access, and where in them it is */
	size_t accesses;     /* a round */
};

/* Loads, each of the address that the one before has read. */
extern const struct loop_code loop_chase;
/* Stores to one place. */
extern const struct loop_code loop_stores;
/* Branches that are taken. */
extern const struct loop_code loop_branches;
/* A load and a store of one place, then a pause in which another core may take the line. */
extern const struct loop_code loop_sharing;

/* Whether @ip is that of an access (or branch) of the loop. */
static inline int loop_code_has(const struct loop_code *c, uint64_t ip)
{
	const uint64_t at = ip - (uintptr_t)c->begin;

	return at < c->unit * c->accesses && at % c->unit == c->offset;
}

/* Time of a chain of @n instructions that take one core clock each. */
void loop_clocks(size_t n);

/*
 * Code of @lines lines, each of which jumps to the next in an order without pattern. Return: where it begins, to be
 * called as loop_code.run, or NULL with errno; unmapped by loop_jumps_free().
 */
void *loop_jumps_make(size_t lines);
void loop_jumps_free(void *code, size_t lines);

/* Connect the first words of @n nodes, @stride bytes apart, to one circle in an order without pattern. */
void loop_circle(char *at, size_t n, size_t stride);

#endif
