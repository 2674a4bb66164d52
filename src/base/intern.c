// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "intern.h"

#include "array.h"

#include <stdlib.h>
#include <string.h>

__u32 intern_get(struct intern *in, const char *text)
{
	__u64 hash = text_hash(text);
	__u32 id;

	u64_map_for_each(id, &in->numbers, hash) if (!strcmp(in->text[id], text)) return id;
	if (array_reserve(in->text, in->room, in->n + 1))
		return INTERN_NONE;
	in->text[in->n] = strdup(text);
	if (!in->text[in->n])
		return INTERN_NONE;
	if (u64_map_add(&in->numbers, hash, in->n)) {
		free(in->text[in->n]);
		return INTERN_NONE;
	}
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
