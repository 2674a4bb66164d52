/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recordings of tests/data/perf, which are kept compressed. */
#ifndef IBSCOPE_TESTS_PERF_DATA_FILE_H
#define IBSCOPE_TESTS_PERF_DATA_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

/* All of a file, expanded if its name ends with .zst; NULL if that fails. The caller frees it. */
static inline unsigned char *load_file(const char *path, size_t *n)
{
	size_t room = 1 << 26, length = strlen(path);
	unsigned char *p = malloc(room), *out;
	FILE *f = fopen(path, "r");

	*n = 0;
	if (!p || !f) {
		free(p);
		if (f)
			fclose(f);
		return NULL;
	}
	*n = fread(p, 1, room, f);
	fclose(f);
	if (length < 4 || strcmp(path + length - 4, ".zst"))
		return p;
	out = malloc(room);
	*n = out ? ZSTD_decompress(out, room, p, *n) : 0;
	free(p);
	if (ZSTD_isError(*n)) {
		free(out);
		out = NULL;
	}
	return out;
}

/* A file in memory. */
static inline int memory_file(const void *p, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < n) {
		ssize_t got = write(fd, (const char *)p + done, n - done);

		if (got <= 0) {
			close(fd);
			return -1;
		}
		done += got;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

#endif
