/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of logical CPUs, in the kernel's list syntax: "0-3,8". */
#ifndef IBSCOPE_CPULIST_H
#define IBSCOPE_CPULIST_H

#include "std.h"

struct err;

/* Linux arch/x86/Kconfig, NR_CPUS with MAXSMP: no x86 kernel numbers CPUs higher. */
#define CPULIST_MAX 8192u

/* A plain value of 1 KiB without pointers: copy, compare and initialise it with = { 0 }. */
struct cpulist {
	uint64_t bits[CPULIST_MAX / 64];
};

/**
 * cpulist_parse() - read a list such as "0-3,8" or "5"
 * @what: name for messages: the option or the file
 * @text: numbers and ascending ranges separated by commas; a trailing newline is allowed
 * @out:  written only on success
 *
 * Return: 0, or with @e set: -EINVAL syntax or an empty list, -ERANGE a CPU number of CPULIST_MAX
 * or more.
 */
int cpulist_parse(const char *what, const char *text, struct cpulist *out, struct err *e);

/**
 * cpulist_read() - read one of the kernel's lists
 * @root: prefix of the file system, "" for the real one
 * @name: "online", "possible" or "present"
 *
 * Return: 0, or a negative errno of open, read or cpulist_parse() with @e set.
 */
int cpulist_read(const char *root, const char *name, struct cpulist *out, struct err *e);

bool cpulist_has(const struct cpulist *l, unsigned int cpu);
void cpulist_add(struct cpulist *l, unsigned int cpu);
unsigned int cpulist_count(const struct cpulist *l);

/* The lowest CPU of the set that is at least @from, or -1. */
int cpulist_next(const struct cpulist *l, unsigned int from);

/* Loop over the set: int cpu; cpulist_for_each(cpu, &list) ... */
#define cpulist_for_each(cpu, l) \
	for ((cpu) = cpulist_next(l, 0); (cpu) >= 0; (cpu) = cpulist_next(l, (cpu) + 1))

/* The lowest CPU of @l that is not in @of, or -1 if @l is a subset. */
int cpulist_outside(const struct cpulist *l, const struct cpulist *of);

/**
 * cpulist_print() - print the set in the kernel's syntax
 *
 * Return: length without the NUL; @size or more means that the text was cut.
 */
size_t cpulist_print(const struct cpulist *l, char *buf, size_t size);

/* Bind the calling thread to one CPU. Return: 0, or a negative errno with @e. */
int cpulist_bind(unsigned int cpu, struct err *e);

#endif
