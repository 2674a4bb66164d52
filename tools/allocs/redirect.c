// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "redirect.h"

#include "noting.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAME ((const uintptr_t *)__builtin_frame_address(0))

/* mallocx(), and new by its mangled names. What comes behind the size is in registers, and passed on whatever it is. */
#define ALLOCATE_TABLE(X)                     \
	X(mallocx)                            \
	X(_Znwm)                              \
	X(_Znam)                              \
	X(_ZnwmRKSt9nothrow_t)                \
	X(_ZnamRKSt9nothrow_t)                \
	X(_ZnwmSt11align_val_t)               \
	X(_ZnamSt11align_val_t)               \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t) \
	X(_ZnamSt11align_val_tRKSt9nothrow_t)

/* The same of what frees. */
#define FREE_TABLE(X)                          \
	X(dallocx)                             \
	X(sdallocx)                            \
	X(_ZdlPv)                              \
	X(_ZdaPv)                              \
	X(_ZdlPvm)                             \
	X(_ZdaPvm)                             \
	X(_ZdlPvRKSt9nothrow_t)                \
	X(_ZdaPvRKSt9nothrow_t)                \
	X(_ZdlPvSt11align_val_t)               \
	X(_ZdaPvSt11align_val_t)               \
	X(_ZdlPvmSt11align_val_t)              \
	X(_ZdaPvmSt11align_val_t)              \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t) \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

#define ALLOCATE(name)                                                   \
	static void *(*next_##name)(size_t, uintptr_t, uintptr_t);       \
	static void *our_##name(size_t size, uintptr_t a, uintptr_t b)   \
	{                                                                \
		const enum ibscope_alloc_kind kind = noting_begin(size); \
		void *p = next_##name(size, a, b);                       \
                                                                         \
		noting_end(kind, p, size, FRAME);                        \
		return p;                                                \
	}
ALLOCATE_TABLE(ALLOCATE)

#define FREE(name)                                                \
	static void (*next_##name)(void *, uintptr_t, uintptr_t); \
	static void our_##name(void *p, uintptr_t a, uintptr_t b) \
	{                                                         \
		noting_free(p);                                   \
		next_##name(p, a, b);                             \
	}
FREE_TABLE(FREE)

static void *(*next_rallocx)(void *, size_t, int);

static void *our_rallocx(void *old, size_t size, int flags)
{
	const struct noting_move m = noting_move_begin(old, noting_begin(size));
	void *p = next_rallocx(old, size, flags);

	noting_move_end(&m, old, p, size, FRAME);
	return p;
}

static struct function {
	const char *name;
	void *ours;
	void **next; /* NULL in there: it is not redirected */
} functions[] = {
#define FUNCTION(name) { #name, (void *)our_##name, (void **)&next_##name },
	ALLOCATE_TABLE(FUNCTION) FREE_TABLE(FUNCTION) FUNCTION(rallocx)
};

#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (*functions[i].next && !strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}

/* A loaded file. */
struct file {
	uintptr_t base;
	uintptr_t relro, relro_end; /* whole pages that are read-only since its relocation */
	const Elf64_Sym *symbols;
	const char *names;
};

static uintptr_t page_of(uintptr_t at)
{
	return at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static void set_word(const struct file *f, uintptr_t at, void *to)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)page_of(at);
	const bool locked = at >= f->relro && at < f->relro_end;

	if (locked && mprotect(page, size, PROT_READ | PROT_WRITE))
		return;
	__atomic_store_n((void **)at, to, __ATOMIC_RELEASE);
	if (locked)
		mprotect(page, size, PROT_READ);
}

static void redirect_words(const struct file *f, const Elf64_Rela *r, size_t bytes)
{
	for (const Elf64_Rela *end = r + bytes / sizeof(*r); r < end; r++) {
		const unsigned int type = ELF64_R_TYPE(r->r_info);
		const struct function *function;

		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
		     type != R_X86_64_64) ||
		    !ELF64_R_SYM(r->r_info) || (type == R_X86_64_64 && r->r_addend))
			continue;
		function = find_function(f->names + f->symbols[ELF64_R_SYM(r->r_info)].st_name);
		if (function)
			set_word(f, f->base + r->r_offset, function->ours);
	}
}

static bool is_of(const struct dl_phdr_info *info, uintptr_t code)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && code - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static void find_relro(const struct dl_phdr_info *info, struct file *f)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_GNU_RELRO)
			continue;
		f->relro = page_of(f->base + p->p_vaddr);
		f->relro_end = page_of(f->base + p->p_vaddr + p->p_memsz);
	}
}

/* The value of a tag of a file's dynamic section, where the loader made addresses of offsets; 0: it has none. */
static uintptr_t dynamic(const struct dl_phdr_info *info, Elf64_Sxword tag)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_DYNAMIC)
			continue;
		for (const Elf64_Dyn *d = (const void *)(info->dlpi_addr + p->p_vaddr);
		     d->d_tag != DT_NULL; d++)
			if (d->d_tag == tag)
				return d->d_un.d_val;
	}
	return 0;
}

static int redirect_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t *allocator = arg;
	struct file f = { .base = info->dlpi_addr,
			  .symbols = (const void *)dynamic(info, DT_SYMTAB),
			  .names = (const char *)dynamic(info, DT_STRTAB) };

	(void)size;
	/* what these call themselves stays as it is */
	if (is_of(info, *allocator) || is_of(info, (uintptr_t)redirect_file))
		return 0;
	find_relro(info, &f);
	if (!f.symbols || !f.names)
		return 0;
	redirect_words(&f, (const void *)dynamic(info, DT_RELA), dynamic(info, DT_RELASZ));
	redirect_words(&f, (const void *)dynamic(info, DT_JMPREL), dynamic(info, DT_PLTRELSZ));
	return 0;
}

void redirect_allocator(uintptr_t start, uintptr_t end)
{
	bool any = false;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		void *is = dlsym(RTLD_DEFAULT, functions[i].name);

		/* one of the program goes before the allocator's */
		if ((uintptr_t)is < start || (uintptr_t)is >= end)
			continue;
		*functions[i].next = is;
		any = true;
	}
	if (any)
		dl_iterate_phdr(redirect_file, &start);
}
