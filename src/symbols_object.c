// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions are taken from libdwfl once and searched here: its own search goes through all of
 * them for every address.
 */
#include "symbols_private.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_DIR "/usr/lib/debug"

struct function {
	__u64 addr, size;
	const char *name;
	unsigned char rank; /* of several at an address the lowest is shown */
};

struct object {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias;
	Elf *elf;
	struct function *functions;
	size_t n;
	bool listed;
	Dwfl_Callbacks callbacks;
	char *debug_path;
};

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

/* Nothing that could block or act: paths of a recording may name anything. */
static int open_regular(const char *path, char *why, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		snprintf(why, size, "%s", strerror(errno));
		return -1;
	}
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	snprintf(why, size, "not a regular file");
	close(fd);
	return -1;
}

/* This process has the same as all others of this kernel. */
static int open_vdso(char *why, size_t size)
{
	const ElfW(Ehdr) *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t len;
	int fd;

	if (!vdso) {
		snprintf(why, size, "there is none here");
		return -1;
	}
	len = vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, vdso, len) == (ssize_t)len)
		return fd;
	snprintf(why, size, "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

void object_close(struct object *o)
{
	if (!o)
		return;
	if (o->dwfl)
		dwfl_end(o->dwfl);
	free(o->functions);
	free(o->debug_path);
	free(o);
}

static struct object *load(int fd, const char *path, const struct object_opts *opts, char *why,
			   size_t size)
{
	struct object *o = calloc(1, sizeof(*o));

	/* beside the file, in its .debug, and by build-id below the directories */
	if (!o || asprintf(&o->debug_path, "-:.debug:" DEBUG_DIR "%s%s", opts->debug_dir ? ":" : "",
			   opts->debug_dir ?: "") < 0) {
		snprintf(why, size, "out of memory");
		free(o);
		close(fd);
		return NULL;
	}
	o->callbacks = (Dwfl_Callbacks){
		.find_elf = find_no_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &o->debug_path,
	};
	o->dwfl = dwfl_begin(&o->callbacks);
	if (o->dwfl)
		o->module = dwfl_report_elf(o->dwfl, path, path, fd, 0, true);
	if (!o->module) {
		snprintf(why, size, "no ELF file that can be read: %s", dwfl_errmsg(-1));
		close(fd);
		object_close(o);
		return NULL;
	}
	dwfl_report_end(o->dwfl, NULL, NULL);
	o->elf = dwfl_module_getelf(o->module, &o->bias);
	if (o->elf)
		return o;
	snprintf(why, size, "no ELF file that can be read: %s", dwfl_errmsg(-1));
	object_close(o);
	return NULL;
}

static bool is_recorded(struct object *o, const unsigned char *build_id, unsigned int len,
			const struct object_opts *opts, char *why, size_t size)
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

static struct object *try_file(const char *path, const unsigned char *build_id, unsigned int len,
			       const struct object_opts *opts, char *why, size_t size)
{
	bool vdso = !strcmp(path, "[vdso]");
	struct object *o;
	int fd;

	fd = vdso ? open_vdso(why, size) : open_regular(path, why, size);
	if (fd < 0)
		return NULL;
	o = load(fd, path, opts, why, size);
	if (o && !is_recorded(o, build_id, len, opts, why, size)) {
		object_close(o);
		o = NULL;
	}
	return o;
}

/* Debug directories may hold the file itself, by its build-id. */
static struct object *try_build_id(const char *dir, const unsigned char *build_id, unsigned int len,
				   const struct object_opts *opts)
{
	char path[4096], unused[128];
	size_t n;

	n = snprintf(path, sizeof(path), "%s/.build-id/%02x/", dir, build_id[0]);
	for (unsigned int i = 1; i < len && n < sizeof(path); i++)
		n += snprintf(path + n, sizeof(path) - n, "%02x", build_id[i]);
	if (n >= sizeof(path))
		return NULL;
	return try_file(path, build_id, len, opts, unused, sizeof(unused));
}

struct object *object_open(const char *path, const unsigned char *build_id,
			   unsigned int build_id_len, const struct object_opts *opts, char *why,
			   size_t size)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);
	struct object *o = NULL;

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

static int compare(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

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
		return 2;
	}
}

/* Without memory for it there are no functions: addresses are shown. */
static void list_functions(struct object *o)
{
	int n = dwfl_module_getsymtab(o->module);
	size_t kept = 0;

	o->listed = true;
	if (n <= 0)
		return;
	o->functions = calloc(n, sizeof(*o->functions));
	for (int i = 0; o->functions && i < n; i++) {
		struct function *f = &o->functions[o->n];
		GElf_Word section;
		GElf_Addr addr;
		GElf_Sym sym;
		const char *name =
			dwfl_module_getsym_info(o->module, i, &sym, &addr, &section, NULL, NULL);
		int type = GELF_ST_TYPE(sym.st_info);

		if (!name || !*name || section == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC))
			continue;
		*f = (struct function){ addr - o->bias, sym.st_size, name, rank_of(&sym) };
		o->n++;
	}
	if (!o->n)
		return;
	qsort(o->functions, o->n, sizeof(*o->functions), compare);
	for (size_t i = 0; i < o->n; i++)
		if (!kept || o->functions[kept - 1].addr != o->functions[i].addr)
			o->functions[kept++] = o->functions[i];
	o->n = kept;
}

/* Where the linker put what is at an offset in the file. */
static bool address_of(const struct object *o, __u64 offset, __u64 *addr)
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
		return true;
	}
	return false;
}

const char *object_symbol(struct object *o, __u64 offset)
{
	const struct function *f;
	size_t lo = 0, hi;
	__u64 addr;

	if (!o->listed)
		list_functions(o);
	if (!address_of(o, offset, &addr))
		return NULL;
	for (hi = o->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (o->functions[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	f = &o->functions[lo - 1];
	/* of assembly some have no size: then up to the next */
	return !f->size || addr - f->addr < f->size ? f->name : NULL;
}

bool object_srcline(struct object *o, __u64 offset, char *buf, size_t size)
{
	const char *file;
	Dwfl_Line *line;
	__u64 addr;
	int n;

	if (!address_of(o, offset, &addr))
		return false;
	line = dwfl_module_getsrc(o->module, addr + o->bias);
	file = line ? dwfl_lineinfo(line, NULL, &n, NULL, NULL, NULL) : NULL;
	if (!file)
		return false;
	snprintf(buf, size, "%s:%d", file, n);
	return true;
}
