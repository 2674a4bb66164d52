/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of what accessed lines: functions, threads, containers. Private to lines_*.c. */
#ifndef IBSCOPE_LINES_NAMES_H
#define IBSCOPE_LINES_NAMES_H

#include "base/intern.h"
#include "lines.h"
#include "report/report.h"
#include "symbols/chain.h"

/*
 * A variable has no offset, a field has: "stats+8". Both are the site of an allocation where one is known, "[heap]" and
 * the like elsewhere.
 */
enum line_name {
	LINE_FIELD,
	LINE_FUNCTION,
	LINE_COMM,
	LINE_CONTAINER,
	LINE_ACCESS_NAMES, /* those before are of each access that is shown */
	LINE_VARIABLE = LINE_ACCESS_NAMES
};

/* Names and how many samples have them, most first once line_tally_sort() was called. */
struct line_tally {
	struct line_tallied {
		const char *name;
		const char *mangled; /* NULL: the name is not demangled */
		__u64 samples;
	} * v;
	size_t n, room;
};

struct line_namer {
	const struct tasks *tasks;
	struct symbols *symbols;
	struct intern texts;
	struct u64_map containers; /* by cgroup */
	struct u64_map sites;	   /* of allocations, by stack and maps */
	struct chain_memo named;   /* code whose function has a name */
};

/* What lies at the address of an access. */
void line_namer_place(const struct line_namer *n, const struct line_access *a,
		      struct data_place *out);

struct heap_block;

/* The allocation that most samples of one access to a line are in, and its site. Return: false if none is known. */
bool line_namer_block(struct line_namer *n, const struct line *l, struct heap_block *out,
		      const char **site);

/* How far the function of an access is known. */
enum code_kind line_namer_code(struct line_namer *n, const struct line_access *a);

/* Begin to load what the two above will need for an access; @near: some calls later, to continue. */
void line_namer_expect(const struct line_namer *n, const struct line_access *a, bool near);

/*
 * Equal names are one pointer, which lives as long as @n and its symbols. NULL: not known.
 * @mangled: set to the name as the linker has it, or NULL if that is the same
 */
const char *line_namer_of(struct line_namer *n, enum line_name what, const struct line_access *a,
			  const char **mangled);
void line_namer_free(struct line_namer *n);

/**
 * line_tally() - what the accesses of a line are called
 * @kinds: LINE_* bits, of which an access has one
 * @slots: the same of slots; ~0 for all, also those of which no slot is known
 * @out:   sorted; the caller frees out->v
 */
void line_tally(struct line_namer *n, const struct line *l, enum line_name what, unsigned int kinds,
		unsigned int slots, struct line_tally *out);

/* What most samples of a slot access. */
struct line_field {
	const char *variable, *type, *field; /* NULL: not known */
	bool element;			     /* of an array, but not the first one */
};

/* Return: false if no sample is of the slot. */
bool line_slot_field(struct line_namer *n, const struct line *l, unsigned int slot,
		     struct line_field *out);

/* A line of advice, or NULL if there is nothing to do. The caller frees it. */
char *line_advice(struct line_namer *n, const struct line *l);

#endif
