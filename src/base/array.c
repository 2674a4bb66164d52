// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "array.h"

#include "err.h"
#include "exit_status.h"

#include <errno.h>
#include <jansson.h>
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

/* A text that grows. Streams of open_memstream() may lose what they have no memory for, without an error. */
struct memory {
	char **text, *buf;
	size_t *bytes, n, room;
};

static void memory_show(struct memory *m)
{
	array_reserve(m->buf, m->room, m->n + 1);
	m->buf[m->n] = 0;
	*m->text = m->buf;
	*m->bytes = m->n;
}

static ssize_t memory_write(void *cookie, const char *data, size_t bytes)
{
	struct memory *m = cookie;

	array_reserve(m->buf, m->room, m->n + bytes + 1);
	memcpy(m->buf + m->n, data, bytes);
	m->n += bytes;
	memory_show(m);
	return bytes;
}

/* For ftell() and rewind(). */
static int memory_seek(void *cookie, off64_t *offset, int whence)
{
	struct memory *m = cookie;

	if (*offset || whence == SEEK_END)
		return -1;
	if (whence == SEEK_SET)
		m->n = 0;
	*offset = m->n;
	return 0;
}

static int memory_close(void *cookie)
{
	memory_show(cookie);
	free(cookie);
	return 0;
}

FILE *xmemopen(char **text, size_t *bytes)
{
	const cookie_io_functions_t calls = {
		.write = memory_write,
		.seek = memory_seek,
		.close = memory_close,
	};
	struct memory *m = xcalloc(1, sizeof(*m));

	m->text = text;
	m->bytes = bytes;
	memory_show(m);
	return checked(fopencookie(m, "w", calls));
}

void xmemclose(FILE *f)
{
	if (fclose(f))
		out_of_memory();
}

ssize_t xgetline(char **line, size_t *room, FILE *f)
{
	ssize_t n;

	errno = 0;
	n = getline(line, room, f);
	if (n < 0 && errno == ENOMEM)
		out_of_memory();
	return n;
}

static void *json_malloc(size_t bytes)
{
	return checked(malloc(bytes ?: 1));
}

void json_checked_memory(void)
{
	json_set_alloc_funcs(json_malloc, free);
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
