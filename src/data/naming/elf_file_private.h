/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What elf_file*.c share; elf_file.h goes before it. */
#ifndef IBSCOPE_ELF_FILE_PRIVATE_H
#define IBSCOPE_ELF_FILE_PRIVATE_H

#include "base/intern.h"
#include "go_table.h"
#include "types/data_types.h"

#include <elfutils/libdwfl.h>

struct named {
	__u64 addr, size;
	const char *name;
	unsigned char rank; /* of several at an address the lowest is shown */
};

struct names {
	struct named *v; /* by address */
	size_t n;
	bool listed;
};

struct elf_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias;
	Elf *elf;
	struct names functions, variables;
	struct intern demangled;     /* "" for names that stay */
	struct u64_map demangled_of; /* by address of the name */
	bool no_lines;
	bool go_tried, has_go;
	struct go_table go;
	struct types *types;
	__u64 inlined_ns; /* CPU time for inlined functions */
	Dwfl_Callbacks callbacks;
	struct elf_file_opts opts;
	char *debug_path;
	char problem[80];
};

/* What covers an address, or NULL. @span is narrowed to addresses around it with the same answer. */
const struct named *elf_file_find(struct elf_file *o, struct names *l, __u64 addr,
				  struct addr_span *span);

#define ANY_ADDRESS (&ADDR_SPAN_ALL) /* for callers without a span to narrow */

/* What programs of Go have even without symbols, or NULL. */
const struct go_table *elf_file_go_table(struct elf_file *o);

/* Where the linker put what is at an offset in the file. Return: false if nowhere. */
bool elf_file_address(const struct elf_file *o, __u64 offset, __u64 *addr);

#endif
