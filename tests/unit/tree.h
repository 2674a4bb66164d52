/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fake file system below a temporary directory; include after cmocka.h. */
#ifndef IBSCOPE_TESTS_TREE_H
#define IBSCOPE_TESTS_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Make all directories of @path, which is behind the root; the last one if it ends with a slash. */
static inline void put_dir(const char *path)
{
	char full[8192], *s;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (s = full + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = 0;
		mkdir(full, 0755);
	}
}

static inline void put_file(const char *path, const char *text)
{
	char full[8192];
	FILE *f;

	put_dir(path);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline int new_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/ibscope-unit-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static inline int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
