/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_SOURCE_PLACE_H
#define IBSCOPE_SOURCE_PLACE_H

/* A line of a source; texts live as long as the object. */
struct source_place {
	const char *file, *dir; /* dir: of a relative file; NULL: unknown */
	int line;
};

#endif
