/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The list that a process keeps of code it generates: /tmp/perf-PID.map, a line "START SIZE NAME" each. */
#ifndef IBSCOPE_CODE_MAP_H
#define IBSCOPE_CODE_MAP_H

#include "base/std.h"

#define CODE_MAP_BYTES	 (64u << 20)
#define CODE_MAP_ENTRIES 1000000

struct code_map;

/**
 * code_map_read() - read such a list
 * @why: on failure, the reason for people, at most @size bytes
 *
 * Lines that are not like that are skipped, and so is a last one that is not complete. Code that is generated over
 * other code has the later name.
 *
 * Return: NULL on failure.
 */
struct code_map *code_map_read(int fd, char *why, size_t size);
void code_map_free(struct code_map *m); /* accepts NULL */

/* The name at an address, or NULL; it lives as long as @m. */
const char *code_map_find(const struct code_map *m, __u64 addr);

#endif
