/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process notes of code as it generates it: jit-PID.dump, in the format of perf's jitdump-specification. */
#ifndef IBSCOPE_CODE_DUMP_H
#define IBSCOPE_CODE_DUMP_H

#include "base/std.h"

#define CODE_DUMP_MAGIC	  0x4a695444u
#define CODE_DUMP_RECORDS 8000000     /* of all kinds */
#define CODE_DUMP_EVENTS  1000000     /* code that was loaded or moved */
#define CODE_DUMP_NAMES	  (32u << 20) /* bytes of different names */
#define CODE_DUMP_PIECES \
	(16u << 20) /* references by code to the parts of the addresses that it had */

struct code_dump;

/**
 * code_dump_read() - read such a file, of which the code itself is skipped
 * @why: on failure, the reason for people, at most @size bytes
 *
 * A last record that is not complete is skipped: the process may be writing it.
 *
 * Return: NULL on failure.
 */
struct code_dump *code_dump_read(int fd, char *why, size_t size);
void code_dump_free(struct code_dump *d); /* accepts NULL */

/* What an address had from one time to another one, the end excluded. */
struct code_span {
	const char *name; /* NULL: none is known; it lives as long as the dump */
	__u64 from, until;
};

/* What an address had at a time, by CLOCK_MONOTONIC. */
void code_dump_find(const struct code_dump *d, __u64 addr, __u64 time, struct code_span *out);

#endif
