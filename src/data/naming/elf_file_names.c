// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lists of functions and variables. Symbols are taken from libdwfl once and searched here: its own search goes
 * through all of them for every address.
 */
#include "elf_file.h"
#include "elf_file_private.h"

#include "elf_section.h"
#include "go_table.h"
#include "mini_debug.h"

#define SYMBOLS_MAX  2000000 /* of a file that is named: 64 MB of memory */
#define RANK_OTHER   2
#define GO_ALIGNMENT 16

static int compare(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	return strcmp(a->name, b->name);
}

static unsigned char rank_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return RANK_OTHER;
	}
}

/* Only with a size is it known which addresses are a variable's. */
static bool is_wanted(const struct elf_file *o, const struct names *l, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (l == &o->variables)
		return (type == STT_OBJECT || type == STT_COMMON) && sym->st_size;
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* Does the file have a table of all its symbols? */
static bool has_symtab(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr sh;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &sh) && sh.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

/* Return: how many symbols there are; 0 if they exceed a limit, with o->problem. */
static int count_symbols(struct elf_file *o)
{
	int n;

	if (!has_symtab(o->elf) && !mini_debug_check(o->elf, o->problem, sizeof(o->problem)))
		return 0;
	n = dwfl_module_getsymtab(o->module);
	if (n <= SYMBOLS_MAX)
		return n < 0 ? 0 : n;
	snprintf(o->problem, sizeof(o->problem), "it has %d symbols; the limit is %d", n,
		 SYMBOLS_MAX);
	return 0;
}

static void list_symbols(struct elf_file *o, struct names *l, int n)
{
	for (int i = 0; i < n; i++) {
		GElf_Word section;
		GElf_Addr addr;
		GElf_Sym sym;
		const char *name =
			dwfl_module_getsym_info(o->module, i, &sym, &addr, &section, NULL, NULL);

		if (name && *name && section != SHN_UNDEF && is_wanted(o, l, &sym))
			l->v[l->n++] =
				(struct named){ addr - o->bias, sym.st_size, name, rank_of(&sym) };
	}
}

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

/* What a program of Go has even without symbols. Return: false if there is none that can be used. */
static bool open_go_table(struct elf_file *o, struct go_table *t)
{
	/* of position-independent programs by Go's linker, and by others, which put more into it */
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						".data.rel.ro" };
	Elf_Scn *section;
	Elf_Data *data;
	GElf_Shdr sh;
	size_t at;

	for (size_t i = 0; i < ARRAY_SIZE(sections) && !has_symtab(o->elf); i++) {
		section = elf_section(o->elf, sections[i], &sh);
		data = section ? elf_rawdata(section, NULL) : NULL;
		at = data && data->d_buf ? find_go_table(data, t) : 0;
		if (!data || at >= data->d_size)
			continue;
		if (t->n <= SYMBOLS_MAX)
			return find_text(o, t, sh.sh_addr + at);
		snprintf(o->problem, sizeof(o->problem), "it has %llu functions; the limit is %d",
			 (unsigned long long)t->n, SYMBOLS_MAX);
		break;
	}
	return false;
}

static void list_go(struct names *l, const struct go_table *t)
{
	struct go_function f;

	for (__u64 i = 0; i < t->n; i++)
		if (go_table_function(t, i, &f))
			l->v[l->n++] = (struct named){ f.start, f.size, f.name, RANK_OTHER };
}

static void list_names(struct elf_file *o, struct names *l)
{
	struct go_table go = {};
	int n = count_symbols(o);
	size_t kept = 0;

	l->listed = true;
	if (l != &o->functions || !open_go_table(o, &go))
		go.n = 0;
	l->v = xcalloc(n + go.n + 1, sizeof(*l->v));
	list_symbols(o, l, n);
	list_go(l, &go);
	qsort(l->v, l->n, sizeof(*l->v), compare);
	for (size_t i = 0; i < l->n; i++)
		if (!kept || l->v[kept - 1].addr != l->v[i].addr)
			l->v[kept++] = l->v[i];
	l->n = kept;
}

const struct named *elf_file_find(struct elf_file *o, struct names *l, __u64 addr,
				  struct addr_span *span)
{
	const struct named *f;
	size_t lo = 0, hi;

	if (!l->listed)
		list_names(o, l);
	for (hi = l->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < l->n)
		addr_span_cut(span, addr, l->v[lo].addr);
	if (!lo)
		return NULL;
	f = &l->v[lo - 1];
	addr_span_cut(span, addr, f->addr);
	if (f->size && f->size <= ~0ULL - f->addr)
		addr_span_cut(span, addr, f->addr + f->size);
	/* of assembly some have no size: then up to the next */
	return !f->size || addr - f->addr < f->size ? f : NULL;
}
