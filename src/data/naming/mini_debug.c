// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "mini_debug.h"

#include "base/std.h"
#include "elf_section.h"

#include <lzma.h>

/* The limits that what @z decodes exceeds. */
static bool expand(lzma_stream *z, char *why, size_t size)
{
	static unsigned char out[1 << 16];
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK && z->total_out <= MINI_DEBUG_BYTES) {
		z->next_out = out;
		z->avail_out = sizeof(out);
		ret = lzma_code(z, LZMA_FINISH);
	}
	if (z->total_out > MINI_DEBUG_BYTES)
		snprintf(why, size, "its .gnu_debugdata expands to more than %u MiB",
			 MINI_DEBUG_BYTES >> 20);
	else if (ret == LZMA_MEMLIMIT_ERROR)
		snprintf(why, size, "expanding its .gnu_debugdata takes more than %u MiB",
			 MINI_DEBUG_DECODER >> 20);
	return !*why;
}

bool mini_debug_check(Elf *elf, char *why, size_t size)
{
	Elf_Scn *section = elf_section(elf, ".gnu_debugdata", NULL);
	const Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	lzma_stream z = LZMA_STREAM_INIT;
	bool ok = true;

	if (!data || !data->d_buf)
		return true;
	/* without memory libdwfl has none either */
	if (lzma_stream_decoder(&z, MINI_DEBUG_DECODER, 0) == LZMA_OK) {
		z.next_in = data->d_buf;
		z.avail_in = data->d_size;
		*why = 0;
		ok = expand(&z, why, size);
	}
	lzma_end(&z);
	return ok;
}
