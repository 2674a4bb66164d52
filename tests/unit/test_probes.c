// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which files have the USDT probe of allocations; files that are damaged. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
