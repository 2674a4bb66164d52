// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which code allocated the memory that a sample accessed. */
#include "report_private.h"

#include "base/text.h"
#include "heap/heap_blocks.h"

#define NAME_BYTES 4200 /* of a function or a file, cut before */

/*
 * Functions that hand memory on and do not decide on its use, by how their names begin: as people read them, and as the
 * linker has them where templates have the type of a result in front.
 */
static const char *const allocators[] = {
	/* the family of malloc, and what calls it by another name */
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"aligned_alloc",
	"memalign",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"mmap",
	"mremap",
	"strdup",
	"strndup",
	"__libc_",
	"xmalloc",
	"xcalloc",
	"xrealloc",
	"xstrdup",
	"g_malloc",
	"g_realloc",
	"g_slice_",
	"g_strdup",
	"je_",
	"tc_",
	"mi_",
	"rallocx",
	"mallocx",
	"PyMem_",
	"PyObject_Malloc",
	"_PyObject_Malloc",
	"_PyMem_",
	/* C++: operator new, containers and smart pointers */
	"operator new",
	"std::",
	"__gnu_cxx::",
	"_Znw",
	"_Zna",
	"_ZNSt",
	"_ZNKSt",
	"_ZSt",
	"_ZN9__gnu_cxx",
	"_ZNK9__gnu_cxx",
	/* Rust: its allocator, collections and boxes */
	"__rust_",
	"__rdl_",
	"__rg_",
	"alloc::",
	"<alloc::",
	"core::",
	"<core::",
	"<std::",
	"hashbrown::",
	"<hashbrown::",
};

/* Libraries of which that is true as a whole, by how their files begin. */
static const char *const allocator_files[] = {
	"libc.so",   "libc-",	    "ld-linux",	   "ld-musl",	  "libstdc++.so",
	"libc++.so", "libjemalloc", "libtcmalloc", "libmimalloc", "libibscope-alloc",
};

static bool begins(const char *const *with, size_t n, const char *text)
{
	for (size_t i = 0; text && i < n; i++)
		if (!strncmp(text, with[i], strlen(with[i])))
			return true;
	return false;
}

static bool is_allocator(const struct object_name *f)
{
	return begins(allocators, ARRAY_SIZE(allocators), f->name) ||
	       begins(allocators, ARRAY_SIZE(allocators), f->mangled);
}

struct site {
	struct object_name function; /* name NULL: not found */
	char line[NAME_BYTES];	     /* "file:12"; "": unknown */
};

static void set_site(struct site *s, struct object_name function, const char *file, int line)
{
	s->function = function;
	*s->line = 0;
	if (file && line)
		snprintf(s->line, sizeof(s->line), "%s:%d", text_last_part(file), line);
	else if (file)
		snprintf(s->line, sizeof(s->line), "%s", text_last_part(file));
}

/* The first function at a return address, from the inlined ones on, that is no allocator. Return: false if all are. */
static bool site_at(struct symbols *symbols, const struct tasks *tasks, __u32 tgid, __u64 time,
		    __u64 ret, struct site *out)
{
	const struct inlined *f;
	const char *file;
	int line = 0;
	struct symbol sym;

	/* the call is before the address, which may be of the next line or function */
	symbols_find(symbols, tasks, tgid, ret - 1, time, false, true, &sym);
	file = sym.srcline;
	for (f = symbols_inlined(symbols, &sym); f; f = f->into) {
		set_site(out, f->function, file, line);
		if (!is_allocator(&f->function))
			return true;
		file = f->file;
		line = f->line;
	}
	set_site(out, (struct object_name){ sym.name, sym.mangled }, file, line);
	return !is_allocator(&out->function) &&
	       !begins(allocator_files, ARRAY_SIZE(allocator_files),
		       sym.dso ? text_last_part(sym.dso) : NULL);
}

/* Without any other function it is the innermost one. */
static void find_site(struct symbols *symbols, const struct tasks *tasks,
		      const struct heap_block *b, struct site *out)
{
	set_site(out, (struct object_name){ NULL }, NULL, 0);
	for (unsigned int i = 0; i < b->n_stack; i++)
		if (site_at(symbols, tasks, b->tgid, b->time, b->stack[i], out))
			return;
	if (b->n_stack)
		site_at(symbols, tasks, b->tgid, b->time, b->stack[0], out);
}

void report_site(struct symbols *symbols, const struct tasks *tasks, const struct heap_block *b,
		 char *buf, size_t size)
{
	struct site site;

	find_site(symbols, tasks, b, &site);
	snprintf(buf, size, "%.*s%s%s", NAME_BYTES, site.function.name ?: "[no stack]",
		 *site.line ? " " : "", site.line);
}

void report_place(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		  struct data_place *out)
{
	const struct trace_sample *s = &ev->sample;
	__u64 addr;

	*out = (struct data_place){ .kind = DATA_NO_ADDRESS };
	if (ev->kind == TRACE_SAMPLE_OP && ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr) &&
	    (s->has_task || addr >> 63)) /* the kernel's are of all */
		symbols_data(symbols, tasks, s->tgid, addr, ev->time, out);
}

bool report_block(const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  const struct data_place *place, struct heap_block *out)
{
	const struct heap *heap = tasks_heap(tasks);

	if (!heap || place->kind == DATA_VARIABLE || place->kind == DATA_KERNEL ||
	    place->kind == DATA_NO_ADDRESS || !heap_find(heap, tgid, addr, time, out))
		return false;
	/* a file that was mapped where a block was whose end was missed */
	return out->mapped || (place->kind != DATA_NO_SYMBOL && place->kind != DATA_NO_OBJECT &&
			       place->kind != DATA_FILE);
}

static const char *unknown_site(const struct data_place *place, char *buf, size_t size)
{
	switch (place->kind) {
	case DATA_VARIABLE:
		return place->mapping && *place->mapping == '[' ? "[kernel]" : "[global data]";
	case DATA_STACK:
		return "[stack]";
	case DATA_HEAP:
		return "[heap, not noted]";
	case DATA_ANONYMOUS:
		return "[anon, not noted]";
	default:
		return data_place_label(place, buf, size);
	}
}

/* One word for all blocks of a stack, as long as the maps of its process are the same. */
static __u32 site_word(struct report *r, const struct heap_block *b)
{
	const __u64 key = words_hash(
		(const __u64[]){ (uintptr_t)b->stack, tasks_maps(r->opts.tasks, b->tgid, b->time) },
		2);
	__u32 word = u64_map_get(&r->site_of, key);
	char text[REPORT_SITE];

	if (word != U64_MAP_NONE)
		return word;
	report_site(r->opts.symbols, r->opts.tasks, b, text, sizeof(text));
	word = intern_get(&r->texts, text);
	u64_map_put(&r->site_of, key, word);
	return word;
}

bool report_sample_block(struct symbols *symbols, const struct tasks *tasks,
			 const struct trace_event *ev, struct heap_block *out, char *text,
			 size_t size)
{
	struct data_place place;
	char label[NAME_BYTES];
	__u64 addr;

	report_place(symbols, tasks, ev, &place);
	if (ev->kind == TRACE_SAMPLE_OP &&
	    ibs_op_field(&ev->sample.op, IBS_OP_FIELD_DC_LIN_AD, &addr) &&
	    report_block(tasks, ev->sample.tgid, addr, ev->time, &place, out))
		return true;
	snprintf(text, size, "%s", unknown_site(&place, label, sizeof(label)) ?: "");
	return false;
}

bool report_allocation_word(struct report *r, const struct trace_event *ev,
			    const struct data_place *place, __u64 *word)
{
	char text[NAME_BYTES];
	const char *site;
	struct heap_block b;
	__u64 addr;

	if (ev->kind == TRACE_SAMPLE_OP &&
	    ibs_op_field(&ev->sample.op, IBS_OP_FIELD_DC_LIN_AD, &addr) &&
	    report_block(r->opts.tasks, ev->sample.tgid, addr, ev->time, place, &b)) {
		*word = site_word(r, &b);
		return true;
	}
	site = unknown_site(place, text, sizeof(text));
	*word = site ? intern_get(&r->texts, site) : 0;
	return site;
}
