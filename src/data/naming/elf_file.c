// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "elf_file.h"
#include "elf_file_private.h"

#include "base/clock.h"
#include "base/regular.h"
#include "demangle.h"
#include "naming_wire.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <limits.h>
#include <unistd.h>

#define DEBUG_DIR NAMING_DEBUG_DIR
#define MAP_PAGE  4096 /* maps begin at multiples */

static int find_no_elf(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr base, char **file,
		       Elf **elf)
{
	(void)m;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

/* Paths of a recording, and links in files that they name, may name anything. */
static int open_regular(const char *path, char *why, size_t size)
{
	int fd = regular_open(path);

	if (fd < 0)
		snprintf(why, size, "%s",
			 fd == -EINVAL	  ? "not a regular file"
			 : fd == -ENOEXEC ? "not a readable ELF file"
			 : fd == -EFBIG	  ? "larger than 2 GiB"
					  : strerror(-fd));
	return fd;
}

static bool has_build_id(int fd, const unsigned char *build_id, int len)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *has;
	bool same;

	same = elf && dwelf_elf_gnu_build_id(elf, &has) == len && !memcmp(has, build_id, len);
	elf_end(elf);
	return same;
}

/* A debug file that fits the module. @build_id NULL: any does. Return: an fd, or -1. */
static int open_debug(const char *path, const unsigned char *build_id, int len, char **found)
{
	int fd = regular_open(path);

	if (fd < 0)
		return -1;
	if (!build_id || has_build_id(fd, build_id, len)) {
		*found = xstrdup(path);
		return fd;
	}
	close(fd);
	return -1;
}

/* @id in hexadecimal between two texts. Return: false if it is too long. */
static bool hex_path(char *path, size_t size, const char *before, const unsigned char *id, int len,
		     const char *behind)
{
	size_t n = snprintf(path, size, "%s", before);

	for (int i = 0; i < len && n < size; i++)
		n += snprintf(path + n, size - n, "%02x", id[i]);
	if (n < size)
		n += snprintf(path + n, size - n, "%s", behind);
	return n < size;
}

/* The name of a file in a debug directory. Return: false if it is too long. */
static bool build_id_path(char *path, size_t size, const char *dir, const unsigned char *build_id,
			  int len, const char *suffix)
{
	char before[PATH_MAX];

	return (size_t)snprintf(before, sizeof(before), "%s/.build-id/%02x/", dir, build_id[0]) <
		       sizeof(before) &&
	       hex_path(path, size, before, build_id + 1, len - 1, suffix);
}

/* As gdb looks for a debug link: beside the file, in its .debug, and below the debug directory. */
static int find_link(const char *file, const char *link, const unsigned char *build_id, int len,
		     char **found)
{
	static const char *const forms[] = { "%.*s/%s", "%.*s/.debug/%s", DEBUG_DIR "%.*s/%s" };
	const char *slash = strrchr(file, '/');
	char path[PATH_MAX];
	int fd = -1;

	for (size_t i = 0; slash && fd < 0 && i < ARRAY_SIZE(forms); i++)
		if ((size_t)snprintf(path, sizeof(path), forms[i], (int)(slash - file), file,
				     link) < sizeof(path))
			fd = open_debug(path, build_id, len, found);
	return fd;
}

/* A file that debug files share (dwz). */
static int find_shared(struct elf_file *o, const char *file, const char *name, char **found)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	char path[PATH_MAX];
	int fd = -1;

	if (*name == '/')
		fd = open_debug(name, NULL, 0, found);
	else if (slash && (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - file), file,
					   name) < sizeof(path))
		fd = open_debug(path, NULL, 0, found);
	/* libdw would look for it itself, and open whatever has that name */
	o->no_lines = fd < 0;
	return fd;
}

/*
 * dwfl_standard_find_debuginfo() opens what it finds before it looks at the kind of file, and asks servers itself. A
 * checksum of 0 is how libdwfl asks for a shared file.
 */
static int find_debug(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr base,
		      const char *file, const char *link, GElf_Word crc, char **found)
{
	struct elf_file *o = *user;
	const char *const dirs[] = { DEBUG_DIR, o->opts.debug_dir };
	const unsigned char *build_id = NULL;
	char path[PATH_MAX];
	GElf_Addr at;
	int fd = -1, len = dwfl_module_build_id(m, &build_id, &at);

	(void)name;
	(void)base;
	if (link && !crc)
		return find_shared(o, file, link, found);
	if (len <= 0)
		build_id = NULL;
	for (int i = 0; build_id && i < 2 && fd < 0; i++)
		if (dirs[i] && build_id_path(path, sizeof(path), dirs[i], build_id, len, ".debug"))
			fd = open_debug(path, build_id, len, found);
	if (fd < 0 && link && file)
		fd = find_link(file, link, build_id, len, found);
	if (fd < 0 && build_id && o->opts.debuginfod &&
	    hex_path(path, sizeof(path), NAMING_FROM_NET, build_id, len, ""))
		fd = open_debug(path, build_id, len, found);
	return fd;
}

void elf_file_close(struct elf_file *o)
{
	if (!o)
		return;
	if (o->dwfl)
		dwfl_end(o->dwfl);
	types_free(o->types);
	free(o->functions.v);
	free(o->variables.v);
	intern_free(&o->demangled);
	u64_map_free(&o->demangled_of);
	free(o);
}

static struct elf_file *load(int fd, const char *path, const struct elf_file_opts *opts, char *why,
			     size_t size)
{
	static char no_dir[] = "/nonexistent";
	struct elf_file *o = xcalloc(1, sizeof(*o));
	void **user;

	o->opts = *opts;
	o->debug_path = no_dir;
	o->callbacks = (Dwfl_Callbacks){
		.find_elf = find_no_elf,
		.find_debuginfo = find_debug,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &o->debug_path,
	};
	o->dwfl = dwfl_begin(&o->callbacks);
	if (o->dwfl)
		o->module = dwfl_report_elf(o->dwfl, path, path, fd, 0, true);
	if (!o->module) {
		snprintf(why, size, "not a readable ELF file: %s", dwfl_errmsg(-1));
		close(fd);
		elf_file_close(o);
		return NULL;
	}
	dwfl_module_info(o->module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
	*user = o;
	dwfl_report_end(o->dwfl, NULL, NULL);
	o->elf = dwfl_module_getelf(o->module, &o->bias);
	if (o->elf)
		return o;
	snprintf(why, size, "not a readable ELF file: %s", dwfl_errmsg(-1));
	elf_file_close(o);
	return NULL;
}

static bool is_recorded(struct elf_file *o, const unsigned char *build_id, unsigned int len,
			const struct elf_file_opts *opts, char *why, size_t size)
{
	const unsigned char *has;
	GElf_Addr at;
	int n = dwfl_module_build_id(o->module, &has, &at);

	if (!build_id && opts->trusted)
		return true;
	if (!build_id)
		snprintf(why, size, "no build-id was recorded, and the machine was another");
	else if (n <= 0)
		snprintf(why, size, "it has no build-id, the recorded file had one");
	else if ((unsigned int)n == len && !memcmp(has, build_id, len))
		return true;
	else
		snprintf(why, size,
			 "its build-id %02x%02x%02x%02x.. is not the recorded "
			 "%02x%02x%02x%02x..",
			 has[0], n > 1 ? has[1] : 0, n > 2 ? has[2] : 0, n > 3 ? has[3] : 0,
			 build_id[0], len > 1 ? build_id[1] : 0, len > 2 ? build_id[2] : 0,
			 len > 3 ? build_id[3] : 0);
	return false;
}

static struct elf_file *try_file(const char *path, const unsigned char *build_id, unsigned int len,
				 const struct elf_file_opts *opts, char *why, size_t size)
{
	struct elf_file *o;
	int fd = open_regular(path, why, size);

	if (fd < 0)
		return NULL;
	o = load(fd, path, opts, why, size);
	if (o && !is_recorded(o, build_id, len, opts, why, size)) {
		elf_file_close(o);
		o = NULL;
	}
	return o;
}

/* Debug directories may hold the file itself, by its build-id. */
static struct elf_file *try_build_id(const char *dir, const unsigned char *build_id,
				     unsigned int len, const struct elf_file_opts *opts)
{
	char path[PATH_MAX], unused[128];

	if (!build_id_path(path, sizeof(path), dir, build_id, len, ""))
		return NULL;
	return try_file(path, build_id, len, opts, unused, sizeof(unused));
}

struct elf_file *elf_file_open(const char *path, const unsigned char *build_id,
			       unsigned int build_id_len, const struct elf_file_opts *opts,
			       char *why, size_t size)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);
	struct elf_file *o = NULL;

	if (len >= strlen(deleted) && !strcmp(path + len - strlen(deleted), deleted))
		snprintf(why, size, "deleted before it was recorded");
	else if (strcmp(path, "[vdso]") && (path[0] != '/' || path[1] == '/'))
		snprintf(why, size, "not a file");
	else
		o = try_file(path, build_id, build_id_len, opts, why, size);
	if (!o && build_id)
		o = try_build_id(DEBUG_DIR, build_id, build_id_len, opts);
	if (!o && build_id && opts->debug_dir)
		o = try_build_id(opts->debug_dir, build_id, build_id_len, opts);
	return o;
}

/* Where the linker put what is at an offset in the file. */
bool elf_file_address(const struct elf_file *o, __u64 offset, __u64 *addr)
{
	size_t n;

	if (elf_getphdrnum(o->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(o->elf, i, &ph) || ph.p_type != PT_LOAD || offset < ph.p_offset ||
		    offset - ph.p_offset >= ph.p_filesz)
			continue;
		*addr = offset - ph.p_offset + ph.p_vaddr;
		/* no span has the last address */
		return *addr != ADDR_SPAN_ALL.until;
	}
	return false;
}

const char *elf_file_problem(const struct elf_file *o)
{
	return *o->problem ? o->problem : NULL;
}

const char *elf_file_demangled(struct elf_file *o, const char *name)
{
	__u32 known = u64_map_get(&o->demangled_of, (uintptr_t)name);
	char text[NAMING_TEXT_MAX];
	const char *out;

	if (o->opts.mangled)
		return NULL;
	if (known == U64_MAP_NONE) {
		known = intern_get(&o->demangled, demangle(name, text, sizeof(text)) ? text : "");
		u64_map_put(&o->demangled_of, (uintptr_t)name, known);
	}
	out = intern_text(&o->demangled, known);
	return *out ? out : NULL;
}

/* Narrow a span of offsets to those to which elf_file_address() adds the same number. */
static void narrow_to_segment(const struct elf_file *o, __u64 offset, struct addr_span *span)
{
	GElf_Phdr ph;
	size_t n;

	for (size_t i = 0; !elf_getphdrnum(o->elf, &n) && i < n; i++) {
		if (!gelf_getphdr(o->elf, i, &ph) || ph.p_type != PT_LOAD)
			continue;
		addr_span_cut(span, offset, ph.p_offset);
		addr_span_cut(span, offset, ph.p_offset + ph.p_filesz);
	}
}

/* Edges of addresses may lie before offset 0. */
static void narrow_by_addresses(struct addr_span *span, __u64 offset, __u64 addr,
				const struct addr_span *of)
{
	if (addr - of->from < offset - span->from)
		span->from = offset - (addr - of->from);
	if (of->until - addr < span->until - offset)
		span->until = offset + (of->until - addr);
}

const char *elf_file_symbol(struct elf_file *o, __u64 offset, struct addr_span *span)
{
	struct addr_span around = ADDR_SPAN_ALL;
	const struct named *f = NULL;
	__u64 addr;

	*span = ADDR_SPAN_ALL;
	narrow_to_segment(o, offset, span);
	if (!elf_file_address(o, offset, &addr))
		return NULL;
	f = elf_file_find(o, &o->functions, addr, &around);
	narrow_by_addresses(span, offset, addr, &around);
	return f ? f->name : NULL;
}

bool elf_file_function(struct elf_file *o, __u64 offset, struct elf_file_function *out, __u64 *at)
{
	const struct named *f = elf_file_address(o, offset, at)
					? elf_file_find(o, &o->functions, *at, ANY_ADDRESS)
					: NULL;

	if (!f)
		return false;
	*out = (struct elf_file_function){ f->name, f->addr, f->size };
	if (!f->size && f + 1 < o->functions.v + o->functions.n)
		out->size = f[1].addr - f->addr;
	else if (!f->size)
		out->size = *at - f->addr + 1;
	return true;
}

const char *elf_file_name(struct elf_file *o, __u64 addr)
{
	const struct named *f = elf_file_find(o, &o->functions, addr, ANY_ADDRESS);

	return f && f->addr == addr ? f->name : NULL;
}

/* Is an address in a segment's memory, which may be more than the file has of it? */
static bool in_memory(const GElf_Phdr *ph, __u64 addr)
{
	return addr >= ph->p_vaddr && addr - ph->p_vaddr < ph->p_memsz;
}

static bool is_loaded(const struct elf_file *o, size_t n, __u64 addr)
{
	GElf_Phdr ph;

	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(o->elf, i, &ph) && ph.p_type == PT_LOAD && in_memory(&ph, addr))
			return true;
	return false;
}

/*
 * The last page of one segment and the first of the next may be the same page of the file, mapped
 * twice at different distances: a map of data speaks for the segment that has the address, one of
 * code for the code, from where the distance to all segments is fixed.
 */
static bool variable_address(const struct elf_file *o, __u64 pgoff, bool exec, __u64 offset,
			     __u64 *addr)
{
	bool found = false;
	size_t n;

	if (elf_getphdrnum(o->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		__u64 at, end;
		GElf_Phdr ph;

		if (!gelf_getphdr(o->elf, i, &ph) || ph.p_type != PT_LOAD ||
		    (exec && !(ph.p_flags & PF_X)))
			continue;
		at = offset - ph.p_offset + ph.p_vaddr;
		end = ph.p_offset + ph.p_filesz;
		/* the map begins in one of its pages */
		if (pgoff + MAP_PAGE <= ph.p_offset || pgoff >= end ||
		    !(exec ? is_loaded(o, n, at) : in_memory(&ph, at)))
			continue;
		*addr = at;
		found = true;
		if (offset < end)
			break;
	}
	return found;
}

bool elf_file_variable(struct elf_file *o, __u64 pgoff, bool exec, __u64 offset, const char **name,
		       __u64 *at)
{
	const struct named *v;
	__u64 addr;

	if (!variable_address(o, pgoff, exec, offset, &addr))
		return false;
	v = elf_file_find(o, &o->variables, addr, ANY_ADDRESS);
	*name = v ? v->name : NULL;
	*at = v ? addr - v->addr : 0;
	return true;
}

/* Return: NULL without debug information, or where libdw would open what it names itself. */
static struct types *types_of(struct elf_file *o)
{
	Dwarf_Addr unused;

	if (!o->types && dwfl_module_getdwarf(o->module, &unused) && !o->no_lines)
		o->types = types_new(o->module, o->bias);
	return o->types;
}

struct types *elf_file_types(struct elf_file *o)
{
	return o->types;
}

void elf_file_code_type(struct elf_file *o, __u64 addr, struct type_access *out)
{
	struct types *types = types_of(o);

	*out = (struct type_access){ .kind = TYPE_NO_DEBUG };
	if (types)
		types_of_code(types, addr, out);
}

void elf_file_type(struct elf_file *o, __u64 offset, struct type_access *out)
{
	__u64 addr;

	*out = (struct type_access){ .kind = types_of(o) ? TYPE_NO_FUNCTION : TYPE_NO_DEBUG };
	if (elf_file_address(o, offset, &addr))
		elf_file_code_type(o, addr, out);
}

/* A file that takes longer keeps its other names. */
#define INLINED_CPU_S 4

static bool has_inlined_time(struct elf_file *o)
{
	if (o->inlined_ns <= INLINED_CPU_S * 1000000000ULL)
		return true;
	if (!*o->problem)
		snprintf(o->problem, sizeof(o->problem),
			 "its inlined functions take more than %d s of CPU time", INLINED_CPU_S);
	return false;
}

bool elf_file_inlined(struct elf_file *o, __u64 at, bool is_address, unsigned int level,
		      struct types_inlined *out)
{
	__u64 began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bool found = has_inlined_time(o) && (is_address || elf_file_address(o, at, &at)) &&
		     types_of(o) && types_inlined(o->types, at, level, out);

	if (o->types && types_is_exhausted(o->types) && !*o->problem)
		snprintf(o->problem, sizeof(o->problem),
			 "its debug information exceeds a limit; inlined functions are missing");
	o->inlined_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
	return found;
}

void elf_file_inlined_span(struct elf_file *o, __u64 offset, struct addr_span *span)
{
	struct addr_span around = ADDR_SPAN_ALL;
	__u64 addr;

	if (!has_inlined_time(o) || !types_of(o) || !elf_file_address(o, offset, &addr))
		return;
	types_inlined_span(o->types, addr, &around);
	narrow_by_addresses(span, offset, addr, &around);
}

void elf_file_variable_type(struct elf_file *o, __u64 pgoff, bool exec, __u64 offset,
			    unsigned int size, struct type_access *out)
{
	__u64 addr;

	*out = (struct type_access){ .kind = TYPE_NO_VARIABLE };
	if (types_of(o) && variable_address(o, pgoff, exec, offset, &addr))
		types_of_data(o->types, addr, size, out);
}
