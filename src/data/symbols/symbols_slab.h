/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an address in a slab cache to the field of its object. */
#ifndef IBSCOPE_SYMBOLS_SLAB_H
#define IBSCOPE_SYMBOLS_SLAB_H

#include "base/intern.h"
#include "types/kernel_types.h"

#include <ibscope/record.h>

/* The zero value is closed. */
struct slab_types {
	struct kernel_types *types;
	struct intern texts;
	bool tried;
	char why[256]; /* there are none; "": not asked for */
};

/**
 * slab_types_find() - the type and field at an address
 * @btf:  file with the kernel's types; NULL: those of the kernel that runs, if it is the @same
 * @order: of struct ibs_record_extra: the bits below the id
 * @size:  bytes accessed; 0: unknown
 *
 * Where the type is not known, out->type is the cache in brackets.
 */
void slab_types_find(struct slab_types *t, const char *btf, bool same, const struct ibs_slab *slab,
		     __u64 order, __u64 addr, unsigned int size, struct type_access *out);
void slab_types_close(struct slab_types *t);

#endif
