// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64

static size_t u64_map_slot(const struct u64_map *m, __u64 key)
{
	size_t i = u64_hash(key) & (m->size - 1);

	while (m->values[i] != INTERN_NONE && m->keys[i] != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

static int u64_map_grow(struct u64_map *m)
{
	struct u64_map more = { .size = m->size ? 2 * m->size : FIRST_SIZE, .n = m->n };

	more.keys = malloc(more.size * sizeof(*more.keys));
	more.values = malloc(more.size * sizeof(*more.values));
	if (!more.keys || !more.values) {
		u64_map_free(&more);
		return -ENOMEM;
	}
	memset(more.values, 0xff, more.size * sizeof(*more.values));
	for (size_t i = 0; i < m->size; i++) {
		size_t at;

		if (m->values[i] == INTERN_NONE)
			continue;
		at = u64_map_slot(&more, m->keys[i]);
		more.keys[at] = m->keys[i];
		more.values[at] = m->values[i];
	}
	u64_map_free(m);
	*m = more;
	return 0;
}

__u32 u64_map_get(const struct u64_map *m, __u64 key)
{
	return m->size ? m->values[u64_map_slot(m, key)] : INTERN_NONE;
}

int u64_map_put(struct u64_map *m, __u64 key, __u32 value)
{
	size_t at;

	if (2 * (m->n + 1) > m->size && u64_map_grow(m))
		return -ENOMEM;
	at = u64_map_slot(m, key);
	m->n += m->values[at] == INTERN_NONE;
	m->keys[at] = key;
	m->values[at] = value;
	return 0;
}

void u64_map_free(struct u64_map *m)
{
	free(m->keys);
	free(m->values);
	memset(m, 0, sizeof(*m));
}

static __u64 text_hash(const char *text)
{
	__u64 h = 0xcbf29ce484222325ull;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return u64_hash(h);
}

static size_t intern_slot(const struct intern *in, const char *text)
{
	size_t i = text_hash(text) & (in->size - 1);

	while (in->slots[i] != INTERN_NONE && strcmp(in->text[in->slots[i]], text))
		i = (i + 1) & (in->size - 1);
	return i;
}

static int intern_grow(struct intern *in)
{
	size_t size = in->size ? 2 * in->size : FIRST_SIZE;
	char **text = realloc(in->text, size / 2 * sizeof(*text));
	__u32 *slots;

	if (!text)
		return -ENOMEM;
	in->text = text;
	slots = malloc(size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, size * sizeof(*slots));
	free(in->slots);
	in->slots = slots;
	in->size = size;
	for (size_t i = 0; i < in->n; i++)
		slots[intern_slot(in, in->text[i])] = i;
	return 0;
}

__u32 intern_get(struct intern *in, const char *text)
{
	size_t at;

	if (in->size) {
		at = intern_slot(in, text);
		if (in->slots[at] != INTERN_NONE)
			return in->slots[at];
	}
	if (2 * (in->n + 1) > in->size && intern_grow(in))
		return INTERN_NONE;
	in->text[in->n] = strdup(text);
	if (!in->text[in->n])
		return INTERN_NONE;
	at = intern_slot(in, text);
	in->slots[at] = in->n;
	return in->n++;
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
	free(in->slots);
	memset(in, 0, sizeof(*in));
}
