// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of functions of Go in a file: their names if it was stripped, and their frames, of which it has no other table. */
#include "elf_file.h"
#include "elf_file_private.h"

#include "elf_section.h"

#define GO_ALIGNMENT 16

/* What the dynamic linker puts at an address of the file. Return: false if nothing. */
static bool find_relocation(Elf *elf, __u64 addr, __u64 *value)
{
	Elf_Scn *section = NULL;
	Elf_Data *data;
	GElf_Rela rela;
	GElf_Shdr sh;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &sh) || sh.sh_type != SHT_RELA)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
			if (rela.r_offset != addr || GELF_R_TYPE(rela.r_info) != R_X86_64_RELATIVE)
				continue;
			*value = rela.r_addend;
			return true;
		}
	}
	return false;
}

/*
 * A table without the start of the code, as of Go 1.26. Go's own linker begins .text with that code; others put the code
 * of start-up files before it, which have an .init.
 */
static bool find_text(struct elf_file *o, struct go_table *t, __u64 table)
{
	GElf_Shdr sh;

	if (!t->has_text || t->text || find_relocation(o->elf, table + t->text_at, &t->text))
		return true;
	if (elf_section(o->elf, ".init", NULL) || !elf_section(o->elf, ".text", &sh))
		return false;
	t->text = sh.sh_addr;
	return true;
}

/* Return: where in the data a table begins; its size: nowhere. */
static size_t find_go_table(const Elf_Data *data, struct go_table *t)
{
	struct go_function first;

	for (size_t at = 0; at < data->d_size; at += GO_ALIGNMENT)
		if (go_table_open((const char *)data->d_buf + at, data->d_size - at, t) &&
		    go_table_function(t, 0, &first))
			return at;
	return data->d_size;
}

static bool open_go_table(struct elf_file *o, struct go_table *t)
{
	/* of position-independent programs by Go's linker, and by others, which put more into it */
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						".data.rel.ro" };
	Elf_Scn *section;
	Elf_Data *data;
	GElf_Shdr sh;
	size_t at;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		section = elf_section(o->elf, sections[i], &sh);
		data = section ? elf_rawdata(section, NULL) : NULL;
		at = data && data->d_buf ? find_go_table(data, t) : 0;
		if (data && at < data->d_size)
			return find_text(o, t, sh.sh_addr + at);
	}
	return false;
}

const struct go_table *elf_file_go_table(struct elf_file *o)
{
	if (!o->go_tried)
		o->has_go = open_go_table(o, &o->go);
	o->go_tried = true;
	return o->has_go ? &o->go : NULL;
}
