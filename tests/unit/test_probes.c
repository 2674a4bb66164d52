// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which files have the USDT probe of allocations; files that are damaged. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "probes/probes.h"

#define NAMES                  \
	"otel_memory\0alloc\0" \
	"8@%rdi"

static struct file {
	Elf64_Ehdr head;
	Elf64_Shdr sections[2];
	/* another note first, of a length that needs padding */
	Elf64_Nhdr other;
	char other_name[4], other_desc[8];
	Elf64_Nhdr note;
	char name[8];
	Elf64_Addr words[3];
	char names[sizeof(NAMES)];
} __attribute__((packed)) good;

static void make(void)
{
	good = (struct file){
		.head = { .e_ident = ELFMAG "\2\1\1",
			  .e_machine = EM_X86_64,
			  .e_shoff = offsetof(struct file, sections),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 2 },
		.sections = { { .sh_type = SHT_PROGBITS },
			      { .sh_type = SHT_NOTE,
				.sh_offset = offsetof(struct file, other),
				.sh_size = sizeof(good) - offsetof(struct file, other) } },
		.other = { 4, 5, 1 },
		.other_name = "GNU",
		.note = { 8, sizeof(good.words) + sizeof(NAMES), 3 },
		.name = "stapsdt",
		.names = NAMES,
	};
}

static bool has(const struct file *f, size_t bytes)
{
	const int fd = memfd_create("probes", MFD_CLOEXEC);
	bool is;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f, bytes), bytes);
	is = probes_has(fd);
	close(fd);
	return is;
}

static void test_names(void **state)
{
	struct file f;

	(void)state;
	make();
	assert_true(has(&good, sizeof(good)));
	/* nothing behind the names, and not all of them */
	f = good;
	f.note.n_descsz = sizeof(f.words) + sizeof("otel_memory") + sizeof("alloc");
	assert_true(has(&f, sizeof(f)));
	f.note.n_descsz--;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.names[0] = 'O'; /* another provider */
	assert_false(has(&f, sizeof(f)));
	f = good;
	memcpy(f.names, "otel_memory\0free\0", 17);
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.note.n_type = 4;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.name[0] = 'S';
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.sections[1].sh_type = SHT_PROGBITS;
	assert_false(has(&f, sizeof(f)));
}

/* What is not an object file of this machine has no probes; nor has a table that is not there. */
static void test_headers(void **state)
{
	struct file f;

	(void)state;
	make();
	f = good;
	f.head.e_ident[EI_MAG3] = 'G';
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.head.e_machine = EM_AARCH64;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.head.e_shentsize++;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.head.e_shnum = 1; /* not that of the notes */
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.head.e_shoff += sizeof(Elf64_Shdr);
	f.head.e_shnum = 1; /* that alone */
	assert_true(has(&f, sizeof(f)));
	/* sections that are too large to be read, or not all there */
	f = good;
	f.sections[1].sh_size++;
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.sections[1].sh_size--;
	assert_false(has(&f, sizeof(f)));
	assert_false(probes_has(-1));
}

#define SECTION_MAX (1u << 20)

/* A section of at most 1 MiB is read. */
static void test_section_size(void **state)
{
	char *large = calloc(1, sizeof(good) + SECTION_MAX);

	(void)state;
	assert_non_null(large);
	make();
	good.sections[1].sh_size = SECTION_MAX;
	memcpy(large, &good, sizeof(good));
	assert_true(has((struct file *)large, sizeof(good) + SECTION_MAX));
	good.sections[1].sh_size++;
	memcpy(large, &good, sizeof(good));
	assert_false(has((struct file *)large, sizeof(good) + SECTION_MAX));
	free(large);
}

/* Notes before the one that is looked for, which end at a multiple of four. */
static void test_padding(void **state)
{
	struct file f;

	(void)state;
	make();
	for (unsigned int n = 5; n <= 8; n++) {
		f = good;
		f.other.n_descsz = n;
		assert_true(has(&f, sizeof(f)));
	}
	f = good;
	f.other.n_descsz = 4; /* what follows is no note */
	assert_false(has(&f, sizeof(f)));
	f = good;
	f.other.n_descsz = 9;
	assert_false(has(&f, sizeof(f)));
	for (unsigned int n = 1; n <= 4; n++) {
		f = good;
		f.other.n_namesz = n;
		assert_true(has(&f, sizeof(f)));
	}
	f = good;
	f.other.n_namesz = 0;
	f.other.n_descsz = 12;
	assert_true(has(&f, sizeof(f)));
	/* the name of the note itself */
	f = good;
	f.note.n_namesz = 7;
	assert_false(has(&f, sizeof(f)));
}

/* Of any length, and with any byte of the tables or notes at its limits: no access out of bounds, and an end. */
static void test_damage(void **state)
{
	(void)state;
	make();
	for (size_t n = 0; n < sizeof(good); n++)
		assert_false(has(&good, n));
	for (size_t i = 0; i < sizeof(good); i++)
		for (int k = 0; k < 4; k++) {
			struct file f = good;

			((unsigned char *)&f)[i] = (unsigned char[]){ 0, 1, 0x7f, 0xff }[k];
			has(&f, sizeof(f));
		}
	for (size_t i = 0; i + 4 <= sizeof(good); i++) {
		struct file f = good;

		memset((char *)&f + i, 0xff, 4);
		has(&f, sizeof(f));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_headers),
		cmocka_unit_test(test_section_size), cmocka_unit_test(test_padding),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
