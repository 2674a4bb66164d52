// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which file is the one that was mapped, and what lies at its offsets and addresses, of programs that are made here. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "naming/elf_file.h"
#include "naming/elf_file_private.h"
#include "tree.h"

#define TEXT   0x401000ull /* 0x1000 bytes at 0x1000 in the file */
#define DATA   0x403800ull /* 0x400 bytes at 0x2800, of 0x1800 in memory */
#define FUNC   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define OBJECT ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)

struct made {
	bool symbols;
	const char *link; /* name of its debug file; NULL: none */
	unsigned char id[20];
	unsigned int id_len;
};

enum { NONE, CODE, VARIABLES, BSS, SYMTAB, STRTAB, NOTE, LINK, SECTIONS };

static const char names[] =
	"\0one\0two\0three\0last\0var\0bss_var\0.text\0.data\0.bss\0.symtab\0.strtab\0"
	".note.gnu.build-id\0.gnu_debuglink";

static unsigned int name_at(const char *name)
{
	for (unsigned int i = 1; i < sizeof(names); i++)
		if (!strcmp(names + i, name) && !names[i - 1])
			return i;
	fail();
	return 0;
}

static void put(int fd, const void *data, size_t n, off_t at)
{
	assert_int_equal(pwrite(fd, data, n, at), n);
}

static void make(const char *path, const struct made *m)
{
	const Elf64_Ehdr head = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_shoff = 0x3800,
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = STRTAB,
	};
	/* what is not loaded has no address, whatever it says */
	const Elf64_Phdr segments[] = {
		{ PT_NULL, PF_R, 0, 0x900000, 0x900000, 0x10000, 0x10000, 8 },
		{ PT_LOAD, PF_R | PF_X, 0x1000, TEXT, TEXT, 0x1000, 0x1000, 0x1000 },
		{ PT_LOAD, PF_R | PF_W, 0x2800, DATA, DATA, 0x400, 0x1800, 0x1000 },
	};
	const Elf64_Sym symbols[] = {
		{ 0 },
		{ name_at("one"), FUNC, 0, CODE, TEXT + 0x10, 16 },
		{ name_at("two"), FUNC, 0, CODE, TEXT + 0x100, 0 },
		{ name_at("three"), FUNC, 0, CODE, TEXT + 0x200, 8 },
		{ name_at("last"), FUNC, 0, CODE, TEXT + 0xf00, 0 },
		{ name_at("var"), OBJECT, 0, VARIABLES, DATA + 0x100, 64 },
		{ name_at("bss_var"), OBJECT, 0, BSS, DATA + 0x1000, 16 },
	};
	const Elf64_Shdr sections[SECTIONS] = {
		[CODE] = { name_at(".text"), SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, 0x1000,
			   0x1000, 0, 0, 16, 0 },
		[VARIABLES] = { name_at(".data"), SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, 0x2800,
				0x400, 0, 0, 16, 0 },
		[BSS] = { name_at(".bss"), SHT_NOBITS, SHF_ALLOC | SHF_WRITE, DATA + 0x400, 0x2c00,
			  0x1400, 0, 0, 16, 0 },
		[SYMTAB] = { name_at(".symtab"), m->symbols ? SHT_SYMTAB : SHT_NULL, 0, 0, 0x3000,
			     sizeof(symbols), STRTAB, 1, 8, sizeof(Elf64_Sym) },
		[STRTAB] = { name_at(".strtab"), SHT_STRTAB, 0, 0, 0x3200, sizeof(names), 0, 0, 1,
			     0 },
		[NOTE] = { name_at(".note.gnu.build-id"), m->id_len ? SHT_NOTE : SHT_NULL, 0, 0,
			   0x3400, 16 + (m->id_len + 3) / 4 * 4, 0, 0, 4, 0 },
		[LINK] = { name_at(".gnu_debuglink"), m->link ? SHT_PROGBITS : SHT_NULL, 0, 0,
			   0x3500, 16, 0, 0, 4, 0 },
	};
	const Elf64_Nhdr note = { 4, m->id_len, NT_GNU_BUILD_ID };
	const char link[16] = "", end = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	put(fd, &head, sizeof(head), 0);
	put(fd, segments, sizeof(segments), sizeof(head));
	put(fd, "code", 4, 0x1000);
	put(fd, "the end", 8, 0x1ff8);
	put(fd, symbols, sizeof(symbols), 0x3000);
	put(fd, names, sizeof(names), 0x3200);
	put(fd, &note, sizeof(note), 0x3400);
	put(fd, "GNU", 4, 0x3400 + sizeof(note));
	put(fd, m->id, sizeof(m->id), 0x3400 + sizeof(note) + 4);
	put(fd, link, sizeof(link), 0x3500);
	if (m->link) {
		put(fd, m->link, strlen(m->link), 0x3500);
		put(fd, "\1\2\3\4", 4, 0x3500 + 12); /* a checksum, which is not checked */
	}
	put(fd, sections, sizeof(sections), 0x3800);
	put(fd, &end, 1, 0x4000);
	close(fd);
}

static const char *path_of(const char *name)
{
	static char path[4][256];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", root, name);
	return path[i];
}

static const struct made usual = { .symbols = true };
static const struct made with_id = { .symbols = true,
				     .id = { 1, 2, 3, 4, 5, 6, 7, 8 },
				     .id_len = 8 };
static struct elf_file_opts opts;
static char why[160];

static int begin(void **state)
{
	opts = (struct elf_file_opts){ .trusted = true };
	return new_root(state);
}

static struct elf_file *open_with(const char *path, const unsigned char *id, unsigned int len)
{
	*why = 0;
	return elf_file_open(path, id, len, &opts, why, sizeof(why));
}

static struct elf_file *must_open(const char *path)
{
	struct elf_file *o = open_with(path, NULL, 0);

	if (!o)
		fail_msg("%s: %s", path, why);
	return o;
}

static void refused(const char *path, const unsigned char *id, unsigned int len, const char *want)
{
	assert_null(open_with(path, id, len));
	assert_string_equal(why, want);
}

/* --- which file --- */

static void test_no_file(void **state)
{
	(void)state;
	make(path_of("x"), &usual);
	refused("/bin/x (deleted)", NULL, 0, "deleted before it was recorded");
	refused(" (deleted)", NULL, 0, "deleted before it was recorded");
	refused("x", NULL, 0, "not a file");
	refused("", NULL, 0, "not a file");
	refused("[heap]", NULL, 0, "not a file");
	refused("//anon", NULL, 0, "not a file");
	refused("[vdso]", NULL, 0, "No such file or directory");
	refused(path_of("none"), NULL, 0, "No such file or directory");
	refused(root, NULL, 0, "not a regular file");
	put_file("/text", "no program");
	assert_null(open_with(path_of("text"), NULL, 0));
	assert_memory_equal(why, "not a readable ELF file", 23);
	elf_file_close(must_open(path_of("x")));
	elf_file_close(NULL);
}

/* A file is believed if its build-id is the recorded one; if none was recorded, on the same machine only. */
static void test_build_id(void **state)
{
	static const unsigned char same[8] = { 1, 2, 3, 4, 5, 6, 7, 8 },
				   other[8] = { 1, 2, 3, 4, 5, 6, 7, 9 }, few[2] = { 0xab, 2 };
	struct elf_file *o;

	(void)state;
	make(path_of("none"), &usual);
	make(path_of("with"), &with_id);
	make(path_of("few"), &(struct made){ .id = { 1, 2 }, .id_len = 2 });
	o = open_with(path_of("with"), same, 8);
	assert_non_null(o);
	elf_file_close(o);
	refused(path_of("with"), other, 8,
		"its build-id 01020304.. is not the recorded 01020304..");
	refused(path_of("with"), same, 7, "its build-id 01020304.. is not the recorded 01020304..");
	refused(path_of("with"), few, 2, "its build-id 01020304.. is not the recorded ab020000..");
	refused(path_of("few"), same, 8, "its build-id 01020000.. is not the recorded 01020304..");
	refused(path_of("none"), same, 8, "it has no build-id, the recorded file had one");
	elf_file_close(must_open(path_of("with")));
	elf_file_close(must_open(path_of("none")));
	opts.trusted = false;
	refused(path_of("none"), NULL, 0, "no build-id was recorded, and the machine was another");
	refused(path_of("with"), NULL, 0, "no build-id was recorded, and the machine was another");
	o = open_with(path_of("with"), same, 8);
	assert_non_null(o);
	elf_file_close(o);
}

/* A debug directory has files by their build-id, in place of one that is gone or another one. */
static void test_debug_dir(void **state)
{
	static const unsigned char id[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, other[2] = { 1, 2 };
	struct elf_file *o;
	char dir[128];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/debug", root);
	put_dir("/debug/.build-id/01/");
	make(path_of("debug/.build-id/01/02030405060708"), &with_id);
	make(path_of("debug/.build-id/01/02"), &with_id); /* under a name that is not its own */
	make(path_of("x"), &usual);
	refused("/gone", id, 8, "No such file or directory");
	opts.debug_dir = dir;
	for (int i = 0; i < 3; i++) {
		o = open_with(i == 0 ? "/gone" : i == 1 ? "/x (deleted)" : path_of("x"), id, 8);
		assert_non_null(o);
		assert_string_equal(elf_file_name(o, TEXT + 0x10), "one");
		elf_file_close(o);
	}
	refused("/gone", NULL, 0, "No such file or directory");
	refused("/gone", other, 2, "No such file or directory");
}

/* The file of names that a program links to: beside it, or in .debug. */
static void test_debug_link(void **state)
{
	static const char *const places[] = { "/x.debug", "/.debug/x.debug" };
	const struct made stripped = { .link = "x.debug" },
			  with = { .link = "x.debug", .id = { 1, 2, 3 }, .id_len = 3 };
	struct elf_file *o;
	char path[128];

	(void)state;
	make(path_of("stripped"), &stripped);
	make(path_of("with"), &with);
	o = must_open(path_of("stripped"));
	assert_null(elf_file_name(o, TEXT + 0x10));
	elf_file_close(o);
	for (int i = 0; i < 2; i++) {
		put_dir(places[i]);
		snprintf(path, sizeof(path), "%s%s", root, places[i]);
		make(path, &usual);
		o = must_open(path_of("stripped"));
		assert_string_equal(elf_file_name(o, TEXT + 0x10), "one");
		elf_file_close(o);
		/* one with a build-id needs the same */
		o = must_open(path_of("with"));
		assert_null(elf_file_name(o, TEXT + 0x10));
		elf_file_close(o);
		make(path, &(struct made){ .symbols = true, .id = { 1, 2, 3 }, .id_len = 3 });
		o = must_open(path_of("with"));
		assert_string_equal(elf_file_name(o, TEXT + 0x10), "one");
		elf_file_close(o);
		assert_int_equal(unlink(path), 0);
	}
}

/* --- offsets and addresses --- */

static struct elf_file *file;

static int open_usual(void **state)
{
	if (begin(state))
		return -1;
	make(path_of("x"), &usual);
	file = must_open(path_of("x"));
	return 0;
}

static int close_usual(void **state)
{
	elf_file_close(file);
	return remove_root(state);
}

static void test_address(void **state)
{
	static const struct {
		__u64 offset, addr;
	} cases[] = {
		{ 0xfff, 0 },  { 0x1000, TEXT }, { 0x1fff, TEXT + 0xfff }, { 0x2000, 0 },
		{ 0x27ff, 0 }, { 0x2800, DATA }, { 0x2bff, DATA + 0x3ff }, { 0x2c00, 0 },
		{ ~0ull, 0 },
	};
	__u64 addr;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		addr = 0;
		assert_int_equal(elf_file_address(file, cases[i].offset, &addr),
				 cases[i].addr != 0);
		assert_int_equal(addr, cases[i].addr);
	}
}

/* Up to where the name is the same. */
static void test_symbol(void **state)
{
	static const struct {
		__u64 offset, from, until;
		const char *name;
	} cases[] = {
		{ 0, 0, 0x1000, NULL },
		{ 0xfff, 0, 0x1000, NULL },
		{ 0x1000, 0x1000, 0x1010, NULL },
		{ 0x1010, 0x1010, 0x1020, "one" },
		{ 0x101f, 0x1010, 0x1020, "one" },
		{ 0x1020, 0x1020, 0x1100, NULL },
		/* one without a size ends where the next begins */
		{ 0x1100, 0x1100, 0x1200, "two" },
		{ 0x11ff, 0x1100, 0x1200, "two" },
		{ 0x1207, 0x1200, 0x1208, "three" },
		{ 0x1208, 0x1208, 0x1f00, NULL },
		{ 0x1fff, 0x1f00, 0x2000, "last" },
		{ 0x2000, 0x2000, 0x2800, NULL },
		{ 0x2c00, 0x2c00, ~0ull, NULL },
	};
	struct addr_span span;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *name = elf_file_symbol(file, cases[i].offset, &span);

		assert_string_equal(name ?: "none", cases[i].name ?: "none");
		assert_int_equal(span.from, cases[i].from);
		assert_int_equal(span.until, cases[i].until);
	}
	assert_null(elf_file_problem(file));
}

static void function(__u64 offset, const char *name, __u64 start, __u64 size)
{
	struct elf_file_function f;
	__u64 at;

	assert_true(elf_file_function(file, offset, &f, &at));
	assert_string_equal(f.name, name);
	assert_int_equal(f.start, start);
	assert_int_equal(f.size, size);
	assert_int_equal(at, offset - 0x1000 + TEXT);
}

static void test_function(void **state)
{
	struct elf_file_function f;
	__u64 at;

	(void)state;
	function(0x1010, "one", TEXT + 0x10, 16);
	function(0x101f, "one", TEXT + 0x10, 16);
	function(0x1100, "two", TEXT + 0x100, 0x100);
	function(0x11ff, "two", TEXT + 0x100, 0x100);
	/* the last one goes as far as is known */
	function(0x1f00, "last", TEXT + 0xf00, 1);
	function(0x1f80, "last", TEXT + 0xf00, 0x81);
	assert_false(elf_file_function(file, 0x1020, &f, &at));
	assert_false(elf_file_function(file, 0x100f, &f, &at));
	assert_false(elf_file_function(file, 0x2000, &f, &at));
	assert_string_equal(elf_file_name(file, TEXT + 0x200), "three");
	assert_null(elf_file_name(file, TEXT + 0x201));
	assert_null(elf_file_name(file, TEXT));
}

static void variable(__u64 pgoff, bool exec, __u64 offset, const char *want, __u64 behind)
{
	const char *name;
	__u64 at;

	assert_true(elf_file_variable(file, pgoff, exec, offset, &name, &at));
	assert_string_equal(name ?: "none", want ?: "none");
	assert_int_equal(at, behind);
}

/* In a map of data, and behind it in .bss; or as far from a map of code. */
static void test_variable(void **state)
{
	const char *name;
	__u64 at;

	(void)state;
	variable(0x2000, false, 0x2900, "var", 0);
	variable(0x2000, false, 0x293f, "var", 63);
	variable(0x2000, false, 0x2940, NULL, 0);
	variable(0x2000, false, 0x28ff, NULL, 0);
	variable(0x2000, false, 0x380f, "bss_var", 15);
	variable(0x2000, false, 0x3fff, NULL, 0);
	assert_false(elf_file_variable(file, 0x2000, false, 0x4000, &name, &at));
	assert_false(elf_file_variable(file, 0x2000, false, 0x27ff, &name, &at));
	variable(0x1000, true, 0x3900, "var", 0);
	variable(0x1000, true, 0x4808, "bss_var", 8);
	assert_false(elf_file_variable(file, 0x1000, true, 0x5000, &name, &at));
	assert_false(elf_file_variable(file, 0x1000, true, 0x2000, &name, &at));
	/* offsets at which no segment of that kind begins */
	assert_false(elf_file_variable(file, 0x3000, true, 0x3900, &name, &at));
	assert_false(elf_file_variable(file, 0x3000, false, 0x2900, &name, &at));
	assert_false(elf_file_variable(file, 0, false, 0x2900, &name, &at));
}

static void test_code(void **state)
{
	unsigned char buf[32] = "";

	(void)state;
	assert_int_equal(elf_file_read(file, TEXT, buf, 4), 4);
	assert_memory_equal(buf, "code", 4);
	assert_int_equal(elf_file_code(file, 0x1000, buf, 32), 32);
	assert_memory_equal(buf, "code", 5);
	assert_int_equal(elf_file_read(file, TEXT + 0xff8, buf, 32), 8);
	assert_string_equal((char *)buf, "the end");
	assert_int_equal(elf_file_read(file, TEXT + 0xffc, buf, 4), 4);
	assert_int_equal(elf_file_read(file, TEXT + 0x1000, buf, 4), 0);
	assert_int_equal(elf_file_read(file, TEXT - 1, buf, 4), 0);
	assert_int_equal(elf_file_read(file, DATA + 0x400, buf, 4), 0);
	assert_int_equal(elf_file_code(file, 0xfff, buf, 4), 0);
	/* a file that was cut */
	elf_file_close(file);
	assert_int_equal(truncate(path_of("x"), 0x1ffc), 0);
	file = must_open(path_of("x"));
	assert_int_equal(elf_file_read(file, TEXT + 0xff8, buf, 32), 4);
	assert_int_equal(elf_file_read(file, TEXT + 0xffc, buf, 32), 0);
}

/* Nothing of this is known without debug information. */
static void test_no_debug(void **state)
{
	struct types_inlined inlined;
	struct addr_span span = ADDR_SPAN_ALL;
	struct source_place place;
	struct type_access access;

	(void)state;
	elf_file_code_type(file, TEXT + 0x10, &access);
	assert_int_equal(access.kind, TYPE_NO_DEBUG);
	elf_file_type(file, 0x1010, &access);
	assert_int_equal(access.kind, TYPE_NO_DEBUG);
	elf_file_type(file, 0x10, &access);
	assert_int_equal(access.kind, TYPE_NO_DEBUG);
	elf_file_variable_type(file, 0x2000, false, 0x2900, 4, &access);
	assert_int_equal(access.kind, TYPE_NO_VARIABLE);
	assert_null(access.type);
	assert_null(elf_file_types(file));
	assert_false(elf_file_inlined(file, 0x1010, false, 0, &inlined));
	elf_file_inlined_span(file, 0x1010, &span);
	assert_int_equal(span.from, 0);
	assert_int_equal(span.until, ~0ull);
	assert_false(elf_file_line(file, TEXT + 0x10, &place));
	assert_false(elf_file_is_go(file));
}

static void test_demangled(void **state)
{
	(void)state;
	assert_string_equal(elf_file_demangled(file, "_Z3foov"), "foo");
	assert_string_equal(elf_file_demangled(file, "_Z3foov"), "foo");
	assert_null(elf_file_demangled(file, "main"));
	elf_file_close(file);
	opts.mangled = true;
	file = must_open(path_of("x"));
	assert_null(elf_file_demangled(file, "_Z3foov"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, remove_root)
#define U(f) cmocka_unit_test_setup_teardown(f, open_usual, close_usual)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_no_file), T(test_build_id), T(test_debug_dir), T(test_debug_link),
		U(test_address), U(test_symbol),   U(test_function),  U(test_variable),
		U(test_code),	 U(test_no_debug), U(test_demangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
