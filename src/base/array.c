// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "array.h"

#include "err.h"
#include "exit_status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_ROOM 4
#define HUGE_FROM  ((size_t)8 << 20)

void (*out_of_memory_message)(const void *arg);
const void *out_of_memory_arg;

void out_of_memory(void)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;
	static _Thread_local bool mine;

	if (mine) /* what runs at exit needs memory, too */
		_exit(EXIT_FAILED);
	while (atomic_flag_test_and_set(&begun)) /* another thread ends the process */
		pause();
	mine = true;
	if (out_of_memory_message)
		out_of_memory_message(out_of_memory_arg);
	else
		log_error("out of memory");
	exit(EXIT_FAILED);
}

static void *checked(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ?: 1, size ?: 1));
}

void *xrealloc(void *p, size_t bytes)
{
	return checked(realloc(p, bytes ?: 1));
}

/* All of a mapping: mremap() refuses one of which a part is different. */
void array_huge_pages(void *p, size_t bytes)
{
	const uintptr_t page = sysconf(_SC_PAGESIZE), start = (uintptr_t)p & ~(page - 1);
	const uintptr_t end = ((uintptr_t)p + bytes + page - 1) & ~(page - 1);

	if (bytes >= HUGE_FROM)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

char *xstrdup(const char *text)
{
	return checked(strdup(text));
}

char *xstrndup(const char *text, size_t max)
{
	return checked(strndup(text, max));
}

char *xasprintf(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return checked(n < 0 ? NULL : text);
}

FILE *xmemopen(char **text, size_t *bytes)
{
	return checked(open_memstream(text, bytes));
}

void xmemclose(FILE *f)
{
	if (fclose(f))
		out_of_memory();
}

void *xmemdup(const void *data, size_t bytes)
{
	void *copy = xrealloc(NULL, bytes);

	return bytes ? memcpy(copy, data, bytes) : copy;
}

void array_grow(void *array, size_t *room, size_t n, size_t size, bool zero)
{
	size_t more = *room ? *room : FIRST_ROOM;
	char *p;

	while (more < n && more <= PTRDIFF_MAX / size)
		more *= 2;
	if (more > PTRDIFF_MAX / size)
		out_of_memory();
	memcpy(&p, array, sizeof(p));
	p = xrealloc(p, more * size);
	array_huge_pages(p, more * size);
	if (zero)
		memset(p + *room * size, 0, (more - *room) * size);
	memcpy(array, &p, sizeof(p));
	*room = more;
}
