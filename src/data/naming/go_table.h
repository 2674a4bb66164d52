/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of functions that the runtime of Go needs, so that a stripped program still has it: .gopclntab, as Go
 * writes it since 1.16.
 */
#ifndef IBSCOPE_GO_TABLE_H
#define IBSCOPE_GO_TABLE_H

#include "base/std.h"

struct go_table {
	const unsigned char *data;
	size_t size;
	bool has_text;	/* addresses count from `text`, else they are complete */
	__u64 text;	/* start of the code; 0: the table does not say */
	size_t text_at; /* where in the table that is, for relocations */
	__u64 n;
	size_t names, values, functions; /* where in the table they begin */
};

/* Return: false if it is not such a table. The data may be anything, and outlives the table. */
bool go_table_open(const void *data, size_t size, struct go_table *out);

struct go_function {
	__u64 start, size;
	const char *name; /* in the data */
};

/* One function of @t->n. Return: false if it has no name or no code. */
bool go_table_function(const struct go_table *t, __u64 i, struct go_function *out);

struct go_frame {
	__u32 depth;	/* bytes from the stack pointer to the return address */
	bool outermost; /* nothing called it: a goroutine or a thread begins there */
	bool switches;	/* it changes to another stack, so that `depth` says nothing */
};

/* The frame at an instruction of Go's code. Return: false if there is none, or the table does not say. */
bool go_table_frame(const struct go_table *t, __u64 addr, struct go_frame *out);

#endif
