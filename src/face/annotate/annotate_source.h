/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of source files. Private to the room. */
#ifndef IBSCOPE_ANNOTATE_SOURCE_H
#define IBSCOPE_ANNOTATE_SOURCE_H

#include "base/intern.h"

/* Zero is empty. */
struct source_files {
	const char *program; /* path of the file with the code; NULL: unknown */
	struct intern paths;
	struct source_file {
		char **line; /* NULL: cannot be shown */
		size_t n;
		const char *why;
	} * v; /* by number in `paths` */
	size_t room;
};

/**
 * source_line() - a line of a file, tabs expanded
 * @path: as debug information names it
 * @line: from 1 on
 *
 * Only regular files with the suffix of a source are read: debug information may name any file. One that was
 * changed after the program was built may have other lines, so it is not shown.
 *
 * Return: NULL if there is none; lives as long as @s.
 */
const char *source_line(struct source_files *s, const char *path, int line);

/* Warn of each file that cannot be shown. */
void source_warn(const struct source_files *s);
void source_free(struct source_files *s);

#endif
