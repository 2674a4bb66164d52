// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The code of functions and its source lines. */
#include "elf_file.h"
#include "elf_file_private.h"
#include "elf_section.h"

#include <dwarf.h>

/* Debug files have the same addresses, and no code. Empty data of threads has an address, but takes none. */
static bool has_code(const struct elf_file *o, __u64 addr)
{
	Elf_Scn *section = NULL;
	GElf_Shdr sh;

	while ((section = elf_nextscn(o->elf, section)))
		if (gelf_getshdr(section, &sh) && sh.sh_flags & SHF_ALLOC &&
		    !(sh.sh_flags & SHF_TLS) && addr >= sh.sh_addr &&
		    addr - sh.sh_addr < sh.sh_size && sh.sh_type == SHT_NOBITS)
			return false;
	return true;
}

size_t elf_file_read(struct elf_file *o, __u64 addr, unsigned char *buf, size_t size)
{
	size_t n, file_size;
	const char *file = elf_rawfile(o->elf, &file_size);

	if (!file || !has_code(o, addr) || elf_getphdrnum(o->elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		__u64 at;

		if (!gelf_getphdr(o->elf, i, &ph) || ph.p_type != PT_LOAD || addr < ph.p_vaddr ||
		    addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		at = addr - ph.p_vaddr + ph.p_offset;
		if (at < ph.p_offset || at >= file_size)
			return 0;
		if (size > ph.p_filesz - (addr - ph.p_vaddr))
			size = ph.p_filesz - (addr - ph.p_vaddr);
		if (size > file_size - at)
			size = file_size - at;
		memcpy(buf, file + at, size);
		return size;
	}
	return 0;
}

size_t elf_file_code(struct elf_file *o, __u64 offset, unsigned char *buf, size_t size)
{
	__u64 addr;

	return elf_file_address(o, offset, &addr) ? elf_file_read(o, addr, buf, size) : 0;
}

bool elf_file_is_go(struct elf_file *o)
{
	return elf_section(o->elf, ".go.buildinfo", NULL);
}

/*
 * Clang and rustc write no table of which unit has an address, and libdw before 0.191 knows no other way
 * than that table.
 */
static bool line_of_units(struct elf_file *o, __u64 addr, struct source_place *out)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Attribute dir;
	Dwarf_Addr bias;
	Dwarf_Line *line;

	while ((unit = dwfl_module_nextcu(o->module, unit, &bias))) {
		if (dwarf_haspc(unit, addr + o->bias - bias) <= 0)
			continue;
		line = dwarf_getsrc_die(unit, addr + o->bias - bias);
		out->file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
		out->dir = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &dir));
		return out->file && !dwarf_lineno(line, &out->line);
	}
	return false;
}

bool elf_file_line(struct elf_file *o, __u64 addr, struct source_place *out)
{
	Dwarf_Addr unused;
	Dwfl_Line *line;

	if (!dwfl_module_getdwarf(o->module, &unused) || o->no_lines)
		return false;
	line = dwfl_module_getsrc(o->module, addr + o->bias);
	out->file = line ? dwfl_lineinfo(line, NULL, &out->line, NULL, NULL, NULL) : NULL;
	out->dir = line ? dwfl_line_comp_dir(line) : NULL;
	return out->file || line_of_units(o, addr, out);
}

bool elf_file_srcline(struct elf_file *o, __u64 offset, char *buf, size_t size)
{
	struct source_place place;
	__u64 addr;

	if (!elf_file_address(o, offset, &addr) || !elf_file_line(o, addr, &place))
		return false;
	snprintf(buf, size, "%s:%d", place.file, place.line);
	return true;
}
