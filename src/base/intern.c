// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "intern.h"

__u32 intern_get(struct intern *in, const char *text)
{
	__u64 hash = text_hash(text);
	__u32 id;

	u64_map_for_each(id, &in->numbers, hash) if (!strcmp(in->text[id], text)) return id;
	if (in->n == INTERN_NONE)
		out_of_memory();
	array_reserve(in->text, in->room, in->n + 1);
	in->text[in->n] = xstrdup(text);
	u64_map_add(&in->numbers, hash, in->n);
	return in->n++;
}

__u32 intern_find(const struct intern *in, const char *text)
{
	__u32 id;

	u64_map_for_each(id, &in->numbers, text_hash(text)) if (!strcmp(in->text[id], text)) break;
	return id;
}

const char *intern_text(const struct intern *in, __u32 id)
{
	return in->text[id];
}

void intern_free(struct intern *in)
{
	for (size_t i = 0; i < in->n; i++)
		free(in->text[i]);
	free(in->text);
	u64_map_free(&in->numbers);
	memset(in, 0, sizeof(*in));
}
