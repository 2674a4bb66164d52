// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compressed symbols in a section: which of them may be expanded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <gelf.h>
#include <lzma.h>

#include "naming/mini_debug.h"

static char why[128];

/* Is a file with this section accepted? */
static bool check(const char *section, void *data, size_t n)
{
	static char names[64] = "\0.shstrtab\0";
	const int fd = memfd_create("elf", MFD_CLOEXEC);
	Elf *elf = (elf_version(EV_CURRENT), elf_begin(fd, ELF_C_WRITE, NULL));
	GElf_Shdr sh;
	GElf_Ehdr eh = { .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT };
	Elf_Data *d;
	Elf_Scn *s;
	bool ok;

	strcpy(names + 11, section);
	assert_non_null(gelf_newehdr(elf, ELFCLASS64));
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_shstrndx = 2;
	assert_true(gelf_update_ehdr(elf, &eh));
	for (int i = 0; i < 2; i++) {
		s = elf_newscn(elf);
		d = elf_newdata(s);
		d->d_buf = i ? names : data;
		d->d_size = i ? 11 + strlen(section) + 1 : n;
		d->d_align = 1;
		assert_non_null(gelf_getshdr(s, &sh));
		sh.sh_name = i ? 1 : 11;
		sh.sh_type = i ? SHT_STRTAB : SHT_PROGBITS;
		assert_true(gelf_update_shdr(s, &sh));
	}
	assert_true(elf_update(elf, ELF_C_WRITE) > 0);
	elf_end(elf);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	strcpy(why, "not asked");
	ok = mini_debug_check(elf, why, sizeof(why));
	elf_end(elf);
	close(fd);
	return ok;
}

static unsigned char packed[1 << 20];

/* Compress @n zeros with a dictionary of so many bytes. Return: the size of it */
static size_t pack(size_t n, uint32_t dictionary)
{
	static unsigned char zeros[1 << 16];
	lzma_options_lzma options;
	lzma_filter filters[] = { { LZMA_FILTER_LZMA2, &options }, { LZMA_VLI_UNKNOWN, NULL } };
	lzma_stream z = LZMA_STREAM_INIT;

	assert_false(lzma_lzma_preset(&options, 0));
	options.dict_size = dictionary;
	assert_int_equal(lzma_stream_encoder(&z, filters, LZMA_CHECK_NONE), LZMA_OK);
	z.next_out = packed;
	z.avail_out = sizeof(packed);
	for (size_t left = n; left;) {
		z.next_in = zeros;
		z.avail_in = left < sizeof(zeros) ? left : sizeof(zeros);
		left -= z.avail_in;
		assert_int_equal(lzma_code(&z, left ? LZMA_RUN : LZMA_FINISH),
				 left ? LZMA_OK : LZMA_STREAM_END);
	}
	lzma_end(&z);
	return sizeof(packed) - z.avail_out;
}

static void test_accepted(void **state)
{
	size_t n = pack(100000, 1 << 16);

	(void)state;
	assert_true(check(".gnu_debugdata", packed, n));
	assert_string_equal(why, "");
	/* libdwfl ignores one that is cut or damaged */
	assert_true(check(".gnu_debugdata", packed, n / 2));
	packed[n / 2] ^= 0xff;
	assert_true(check(".gnu_debugdata", packed, n));
	memset(packed, 'x', 100);
	assert_true(check(".gnu_debugdata", packed, 100));
	assert_string_equal(why, "");
	/* another section is not looked at */
	assert_true(check(".other", packed, 100));
	assert_string_equal(why, "not asked");
}

static void test_too_large(void **state)
{
	const size_t n = pack(MINI_DEBUG_BYTES + 1, 1 << 16);

	(void)state;
	assert_false(check(".gnu_debugdata", packed, n));
	assert_string_equal(why, "its .gnu_debugdata expands to more than 64 MiB");
}

/* The memory that expanding takes is that of the dictionary. */
static void test_too_much_memory(void **state)
{
	lzma_options_lzma options;
	lzma_filter filters[] = { { LZMA_FILTER_LZMA2, &options }, { LZMA_VLI_UNKNOWN, NULL } };
	static const unsigned char zero[16];
	size_t n, at;

	(void)state;
	assert_false(lzma_lzma_preset(&options, 0));
	for (int large = 0; large < 2; large++) {
		uint32_t crc;

		/* the header of its block says another size of the dictionary than the one that was used */
		options.dict_size = 1 << 16;
		n = 0;
		assert_int_equal(lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, NULL, zero,
							   sizeof(zero), packed, &n,
							   sizeof(packed)),
				 LZMA_OK);
		for (at = 12 + 2; packed[at] != 0x21 || packed[at + 1] != 1; at++)
			assert_in_range(at, 12, 40);
		packed[at + 2] = large ? 31 : 29; /* 192 and 96 MiB */
		at = 12 + packed[12] * 4;
		crc = lzma_crc32(packed + 12, at - 12, 0);
		for (int i = 0; i < 4; i++)
			packed[at + i] = crc >> 8 * i;
		assert_int_equal(check(".gnu_debugdata", packed, n), !large);
		assert_string_equal(
			why, large ? "expanding its .gnu_debugdata takes more than 128 MiB" : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_too_much_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
