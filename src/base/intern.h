/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Small numbers for strings. */
#ifndef IBSCOPE_INTERN_H
#define IBSCOPE_INTERN_H

#include "u64_map.h"

#define INTERN_NONE U64_MAP_NONE

/* Zero is an empty set. */
struct intern {
	struct u64_map numbers; /* by hash */
	char **text;
	size_t n, room;
};

/* The number of a string, adding it if new; equal strings have equal numbers. */
__u32 intern_get(struct intern *in, const char *text);

/* The same without adding it. Return: INTERN_NONE if unknown. */
__u32 intern_find(const struct intern *in, const char *text);

/* Valid as long as @in; @id must come from intern_get(). */
const char *intern_text(const struct intern *in, __u32 id);
void intern_free(struct intern *in);

#endif
