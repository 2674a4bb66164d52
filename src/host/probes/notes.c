// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The notes of an object file that describe its USDT probes. The file is not trusted. */
#include "probes.h"

#include "base/array.h"
#include "base/std.h"

#include <elf.h>
#include <unistd.h>

#define NOTES_MAX (1u << 20) /* bytes of a section */
#define NOTE_USDT 3
#define WORDS	  3 /* addresses before the names */

#define ALIGNED(n) (((n) + 3) & ~(size_t)3)

/* Is it PROVIDER:alloc? */
static bool is_alloc(const char *desc, size_t n)
{
	static const char words[] = PROBES_PROVIDER "\0alloc";
	const size_t at = WORDS * sizeof(Elf64_Addr);

	return n >= at + sizeof(words) && !memcmp(desc + at, words, sizeof(words));
}

static bool notes_have(const char *notes, size_t n)
{
	Elf64_Nhdr head;

	for (size_t at = 0; n - at >= sizeof(head);) {
		const char *name = notes + at + sizeof(head);
		size_t left = n - at - sizeof(head), skip;

		memcpy(&head, notes + at, sizeof(head));
		if (head.n_namesz > left || ALIGNED(head.n_namesz) > left)
			return false;
		left -= ALIGNED(head.n_namesz);
		if (head.n_descsz > left)
			return false;
		if (head.n_type == NOTE_USDT && head.n_namesz == sizeof("stapsdt") &&
		    !memcmp(name, "stapsdt", sizeof("stapsdt")) &&
		    is_alloc(name + ALIGNED(head.n_namesz), head.n_descsz))
			return true;
		skip = ALIGNED(head.n_descsz);
		if (skip > left)
			return false;
		at = n - left + skip;
	}
	return false;
}

static bool section_has(int fd, const Elf64_Shdr *s)
{
	char *notes;
	bool has;

	if (s->sh_type != SHT_NOTE || s->sh_size > NOTES_MAX)
		return false;
	notes = xcalloc(1, s->sh_size);
	has = pread(fd, notes, s->sh_size, (off_t)s->sh_offset) == (ssize_t)s->sh_size &&
	      notes_have(notes, s->sh_size);
	free(notes);
	return has;
}

bool probes_has(int fd)
{
	Elf64_Ehdr head;
	Elf64_Shdr s;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_machine != EM_X86_64 || head.e_shentsize != sizeof(s))
		return false;
	for (unsigned int i = 0; i < head.e_shnum; i++) {
		const off_t at = (off_t)(head.e_shoff + i * sizeof(s));

		if (pread(fd, &s, sizeof(s), at) != sizeof(s))
			return false;
		if (section_has(fd, &s))
			return true;
	}
	return false;
}
