// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lists of functions and variables. Symbols are taken from libdwfl once and searched here: its own search goes
 * through all of them for every address.
 */
#include "elf_file.h"
#include "elf_file_private.h"

#include "mini_debug.h"

#define SYMBOLS_MAX 2000000 /* of a file that is named: 64 MB of memory */
#define RANK_OTHER  2

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

static void list_go(struct names *l, const struct go_table *t)
{
	struct go_function f;

	for (__u64 i = 0; i < t->n; i++)
		if (go_table_function(t, i, &f))
			l->v[l->n++] = (struct named){ f.start, f.size, f.name, RANK_OTHER };
}

static void list_names(struct elf_file *o, struct names *l)
{
	const struct go_table none = {}, *go = l == &o->functions ? elf_file_go_table(o) : NULL;
	int n = count_symbols(o);
	size_t kept = 0;

	l->listed = true;
	if (!go || has_symtab(o->elf))
		go = &none;
	if (go->n > SYMBOLS_MAX) {
		snprintf(o->problem, sizeof(o->problem), "it has %llu functions; the limit is %d",
			 (unsigned long long)go->n, SYMBOLS_MAX);
		go = &none;
	}
	l->v = xcalloc(n + go->n + 1, sizeof(*l->v));
	list_symbols(o, l, n);
	list_go(l, go);
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
