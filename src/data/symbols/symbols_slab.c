// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols_slab.h"

#define PAGE 4096ull

/*
 * Pages of a slab are aligned to their number. Objects follow each other in it, behind what finds overruns. Return:
 * false if the address is between objects.
 */
static bool offset_of(const struct ibs_slab *s, unsigned int order, __u64 addr, __u64 *offset)
{
	__u64 at = addr & ((PAGE << (order & 15)) - 1);

	*offset = s->size ? (at - s->pad) % s->size : 0;
	return s->size && at >= s->pad && *offset < s->object_size;
}

static void open_types(struct slab_types *t, const char *btf, bool same)
{
	struct err err;

	t->tried = true;
	if (!btf && !same)
		snprintf(t->why, sizeof(t->why),
			 "types: recorded with another kernel than the one that runs; --btf FILE "
			 "gives its types");
	else if (kernel_types_open(btf, &t->types, &err))
		snprintf(t->why, sizeof(t->why), "types: %.240s", err.text);
}

/* Where the size of the slab is not known, both that it may have must say the same. */
static bool find_field(struct slab_types *t, const struct ibs_slab *s, __u64 order, __u64 addr,
		       unsigned int size, struct type_access *out)
{
	__u64 at, other;

	if (!offset_of(s, order & IBS_SLAB_MIN_ORDER ? s->min_order : s->order, addr, &at) ||
	    (!(order & (IBS_SLAB_ORDER | IBS_SLAB_MIN_ORDER)) &&
	     (!offset_of(s, s->min_order, addr, &other) || at != other)))
		return false;
	return kernel_types_field(t->types, s->name, s->object_size, at, size, out);
}

void slab_types_find(struct slab_types *t, const char *btf, bool same, const struct ibs_slab *slab,
		     __u64 order, __u64 addr, unsigned int size, struct type_access *out)
{
	char text[80];

	if (!t->tried)
		open_types(t, btf, same);
	if (t->types && !slab->merged && find_field(t, slab, order, addr, size, out))
		return;
	snprintf(text, sizeof(text), "[slab %s]", slab->name);
	*out = (struct type_access){ .kind = TYPE_SLAB_UNKNOWN,
				     .type = intern_text(&t->texts, intern_get(&t->texts, text)) };
}

void slab_types_close(struct slab_types *t)
{
	kernel_types_close(t->types);
	intern_free(&t->texts);
	*t = (struct slab_types){ 0 };
}
