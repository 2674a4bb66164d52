/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_ELF_SECTION_H
#define IBSCOPE_ELF_SECTION_H

#include <gelf.h>
#include <string.h>

/* The first section with a name, and its header in @out, which may be NULL. Return: NULL if there is none. */
static inline Elf_Scn *elf_section(Elf *elf, const char *name, GElf_Shdr *out)
{
	Elf_Scn *section = NULL;
	const char *has;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		has = gelf_getshdr(section, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!has || strcmp(has, name) != 0)
			continue;
		if (out)
			*out = sh;
		return section;
	}
	return NULL;
}

#endif
