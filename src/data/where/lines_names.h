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

/*
 * What an access is called. Equal names are one pointer, which lives as long as the namer and its symbols. A function is the
 * one that the source says: if it was inlined, `into` is where, and `code` the function that has its code.
 */
struct line_label {
	const char *name;    /* NULL: not known */
	const char *mangled; /* NULL: the name is not demangled */
	const char *into, *into_mangled, *code;
};

/* Names and how many samples have them, most first. */
struct line_tally {
	struct line_tallied {
		struct line_label label;
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

void line_namer_of(struct line_namer *n, enum line_name what, const struct line_access *a,
		   struct line_label *out);

/* "get (inlined into find)", or the name alone; @mangled: as the linker has them */
const char *line_label_text(struct line_namer *n, const struct line_label *l, bool mangled);

/* The order of names; 0: the same one */
int line_label_compare(const struct line_label *a, const struct line_label *b);

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
