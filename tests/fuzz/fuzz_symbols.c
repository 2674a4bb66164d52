// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as what symbols are read from: an object file and, where its debug link and its build-id
 * name it, a debug file; or a list of the kernel's symbols, or of generated code; or a dump of generated code. No crash, and
 * every address has an answer.
 *
 * The first byte says which: 0 an object alone, 1 a list of the kernel's, 2 one of generated code, 254 a dump, 255 an object,
 * whose length is in the next two bytes, and the
 * split file d.dwo, else the length of the object in 32 bytes. Every other mutation is of debug information alone.
 */
#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disasm/disasm.h"
#include "symbols/symbols_kernel.h"
#include "naming/code_dump.h"
#include "naming/code_map.h"
#include "naming/elf_file.h"

#define OFFSETS_MAX 5120
#define KERNEL	    0xffffffff81000000ull

/* Those of the corpus. */
#define LINK	 "/.debug/d"
#define BY_ID	 "/.build-id/01/02030405060708.debug"
#define N_IDS	 8
#define OBJECT	 "/o"
#define KALLSYMS "/k"
#define SPLIT	 "/d.dwo"
#define CODE_MAP "/m"
#define DUMP	 "/jit"

static char dir[] = "/tmp/ibscope-fuzz-XXXXXX";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
const char *__lsan_default_suppressions(void);

/* libdwfl forgets the name of a debug file that is no ELF file. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw";
}

static void need(int condition)
{
	if (!condition)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
	static char path[2][128];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s%s", dir, name);
	return path[i];
}

static void make_tree(void)
{
	need(mkdtemp(dir) != NULL);
	atexit(remove_tree);
	need(!mkdir(path_of("/.debug"), 0700) && !mkdir(path_of("/.build-id"), 0700) &&
	     !mkdir(path_of("/.build-id/01"), 0700));
}

static void put(const char *name, const uint8_t *data, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	need(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
}

static void read_kallsyms(void)
{
	struct kernel_symbols *k;
	struct err e = { "" };
	const char *module = NULL;
	__u64 addr;

	if (kernel_symbols_open(path_of(KALLSYMS), 0, false, &k, &e)) {
		need(*e.text);
		return;
	}
	for (__u64 i = 0; i < OFFSETS_MAX; i += 16) {
		const char *name = kernel_symbols_find(k, KERNEL + i, &module);

		need(!name || (*name && kernel_symbols_address(k, name, &addr)));
		need(!module || *module == '[');
	}
	kernel_symbols_close(k);
}

static void read_code_map(void)
{
	int fd = open(path_of(CODE_MAP), O_RDONLY | O_CLOEXEC);
	char why[160] = "";
	struct code_map *m = code_map_read(fd, why, sizeof(why));

	need(fd >= 0 && !close(fd));
	need(m || *why);
	for (__u64 i = 0; m && i < OFFSETS_MAX; i++) {
		const char *low = code_map_find(m, i), *high = code_map_find(m, -i);

		need((!low || *low) && (!high || *high));
	}
	code_map_free(m);
}

static void read_dump(void)
{
	int fd = open(path_of(DUMP), O_RDONLY | O_CLOEXEC);
	struct code_span span;
	struct code_dump *d;
	char why[160] = "";

	need(fd >= 0);
	d = code_dump_read(fd, why, sizeof(why));
	need(d ? !*why : *why);
	for (__u64 i = 0; d && i < OFFSETS_MAX; i++) {
		code_dump_find(d, i, i * 7 % 512, &span);
		need(span.from <= i * 7 % 512 && span.until > i * 7 % 512);
		need(!span.name || *span.name);
	}
	code_dump_free(d);
	close(fd);
}

/* What is read of a function is within the file, whatever it says of itself. */
static void decode(struct elf_file *o, struct disasm *d, const struct elf_file_function *f)
{
	unsigned char code[256];
	size_t n =
		elf_file_read(o, f->start, code, f->size < sizeof(code) ? f->size : sizeof(code));
	struct insn in;

	for (size_t i = 0; i < n; i += in.len) {
		if (!disasm_decode(d, code + i, n - i, f->start + i, &in))
			in.len = 1;
		need(!(insn_stack_access(&in) & ~(unsigned int)(INSN_READ | INSN_WRITE)));
	}
}

static void need_field(const char *path, __u64 offset, __u64 size, void *arg)
{
	(void)offset, (void)size, (void)arg;
	need(path != NULL);
}

/* What is named has a name, and a layout, in which its field is. */
static void check_access(struct elf_file *o, const struct type_access *a)
{
	need(a->kind < TYPE_KIND_N && !a->type == !TYPE_FOUND(a->kind));
	need(!a->type || (*a->type && types_layout(elf_file_types(o), a->type, need_field, NULL)));
	need(a->type || (!a->field && !a->field_size));
}

/* What was inlined is a chain that ends, and equal from one end to the other. */
static void check_inlined(struct elf_file *o, uint64_t offset)
{
	struct types_inlined f, next;
	unsigned int n = 0;

	for (; elf_file_inlined(o, offset, false, n, &f); n++) {
		need(*f.name && f.id && n < TYPES_INLINED_MAX);
		if (elf_file_inlined(o, offset, false, n + 1, &next))
			need(next.id == f.into);
	}
}

/* Rules have kinds and registers that there are. */
static void check_frame(struct elf_file *o, uint64_t offset)
{
	struct frame_row row;

	if (!elf_file_frame(o, offset, &row))
		return;
	need(row.of_signal <= 1 && row.cfa.kind < FRAME_RULE_KINDS && row.cfa.base <= FRAME_CFA);
	for (unsigned int i = 0; i < FRAME_REGS; i++)
		need(row.reg[i].kind < FRAME_RULE_KINDS && row.reg[i].base <= FRAME_CFA);
}

/* The offsets of a span have one name, and the same is inlined at both ends. */
static void check_span(struct elf_file *o, uint64_t offset)
{
	struct types_inlined f = {}, other = {};
	struct addr_span span, unused;
	const char *name = elf_file_symbol(o, offset, &span), *same;

	need(offset >= span.from && offset < span.until);
	elf_file_inlined(o, offset, false, 0, &f);
	elf_file_inlined_span(o, offset, &span);
	need(offset >= span.from && offset < span.until);
	for (int i = 0; i < 2; i++) {
		uint64_t end = i ? span.until - 1 : span.from;

		same = elf_file_symbol(o, end, &unused);
		need(name == same);
		elf_file_inlined(o, end, false, 0, &other);
		/* behind a limit nothing is known any more */
		need(f.id == other.id || elf_file_problem(o));
	}
}

static void read_object(size_t size, const char *debug_dir, const unsigned char *build_id)
{
	const struct elf_file_opts opts = { .debug_dir = debug_dir, .trusted = true };
	char why[160] = "", line[4200];
	unsigned char code[INSN_BYTES_MAX];
	struct elf_file_function f;
	struct source_place place;
	struct disasm *d;
	struct elf_file *o;
	__u64 at;

	o = elf_file_open(path_of(OBJECT), build_id, build_id ? N_IDS : 0, &opts, why, sizeof(why));
	if (!o) {
		need(*why);
		return;
	}
	d = disasm_new(false);
	need(d != NULL);
	elf_file_is_go(o);
	for (size_t i = 0; i < size && i < OFFSETS_MAX; i += 8) {
		struct addr_span span;
		const char *name = elf_file_symbol(o, i, &span);
		struct type_access access;

		/* instructions begin anywhere */
		for (size_t k = i; k < i + 8; k++) {
			need(elf_file_code(o, k, code, sizeof(code)) <= sizeof(code));
			elf_file_type(o, k, &access);
			check_access(o, &access);
			check_inlined(o, k);
			check_span(o, k);
			check_frame(o, k);
		}
		elf_file_variable_type(o, i & ~4095ul, false, i, 4, &access);
		check_access(o, &access);
		need(!name || *name);
		if (elf_file_srcline(o, i, line, sizeof(line)))
			need(strchr(line, ':') != NULL);
		if (!elf_file_function(o, i, &f, &at))
			continue;
		need(name && !strcmp(f.name, name) && f.size > at - f.start);
		need(!elf_file_line(o, at, &place) || place.file);
		decode(o, d, &f);
	}
	disasm_free(d);
	elf_file_close(o);
}

/* The object names the split file relative to the working directory, where the fuzzer finds its corpus. */
static void read_split(const uint8_t *data, size_t size, size_t first)
{
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	need(here >= 0 && !chdir(dir));
	first = first < size ? first : size;
	put(OBJECT, data, first);
	put(SPLIT, data + first, size - first);
	read_object(first, NULL, NULL);
	need(!remove(path_of(SPLIT)) && !fchdir(here) && !close(here));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char build_id[N_IDS] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	size_t first;

	if (!size)
		return 0;
	if (strstr(dir, "XXXXXX"))
		make_tree();
	if (*data == 1) {
		put(KALLSYMS, data + 1, size - 1);
		read_kallsyms();
		return 0;
	}
	if (*data == 2) {
		put(CODE_MAP, data + 1, size - 1);
		read_code_map();
		return 0;
	}
	if (*data == 254) {
		put(DUMP, data + 1, size - 1);
		read_dump();
		return 0;
	}
	if (*data == 255) {
		if (size > 4)
			read_split(data + 3, size - 3, data[1] | data[2] << 8);
		return 0;
	}
	first = *data * 32 < size - 1 && *data ? *data * 32 : size - 1;
	put(OBJECT, data + 1, first);
	put(LINK, data + 1 + first, size - 1 - first);
	put(BY_ID, data + 1 + first, size - 1 - first);
	read_object(size, NULL, NULL);
	read_object(size, dir, build_id);
	return 0;
}

/* Of random changes few are in debug information: this mutates one section of it in place. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	size_t head = *data == 255 ? 3 : 1;
	Elf64_Ehdr ehdr;
	Elf64_Shdr sh;
	size_t at;

	if (size > head + sizeof(ehdr) && seed % 2 == 0) {
		memcpy(&ehdr, data + head, sizeof(ehdr));
		at = ehdr.e_shnum ? ehdr.e_shoff + seed / 2 % ehdr.e_shnum * sizeof(sh) : 0;
		if (at && at < size - head && size - head - at >= sizeof(sh)) {
			memcpy(&sh, data + head + at, sizeof(sh));
			if (!sh.sh_flags && sh.sh_size && sh.sh_offset < size - head &&
			    sh.sh_size < size - head - sh.sh_offset) {
				at = head + sh.sh_offset;
				LLVMFuzzerMutate(data + at, sh.sh_size, sh.sh_size);
				return size;
			}
		}
	}
	return LLVMFuzzerMutate(data, size, max);
}
