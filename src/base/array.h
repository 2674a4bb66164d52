/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory and growing arrays: a pointer, the allocated number of elements, and the used number. A
 * program that runs out of memory cannot continue usefully, so it prints a message and exits with
 * status 1: nothing here fails, and a size of zero also returns a pointer to free.
 */
#ifndef IBSCOPE_ARRAY_H
#define IBSCOPE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t bytes);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t max);
void *xmemdup(const void *data, size_t bytes);

/* Ask for huge pages, of memory that will be used up to its end: a page fault costs more than filling a small page. */
void array_huge_pages(void *p, size_t bytes);

/* asprintf(3). */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * open_memstream(3), of which only the end can be written; ftell() works, and rewind() empties it. xmemclose() completes the text, which the caller
 * frees.
 */
FILE *xmemopen(char **text, size_t *bytes);
void xmemclose(FILE *f);

/* getline(3); without memory it would end as at the end of the file. */
ssize_t xgetline(char **line, size_t *room, FILE *f);

/* Let jansson end the program without memory, as the functions above do: it would often call JSON invalid, or drop members. */
void json_checked_memory(void);

/* Report out of memory, and exit with status 1. */
_Noreturn void out_of_memory(void);

/* Called by out_of_memory() to print a more specific message; NULL: "out of memory". */
extern void (*out_of_memory_message)(const void *arg);
extern const void *out_of_memory_arg;

/* Used by the macros; @array points to the pointer. */
void array_grow(void *array, size_t *room, size_t n, size_t size, bool zero);

/**
 * array_reserve() - make room for @n elements
 * @array: lvalue, a pointer to elements; NULL while there are none
 * @room:  lvalue of type size_t
 *
 * The room doubles, so that adding elements one by one costs constant time each.
 *
 * Return: 0
 */
#define array_reserve(array, room, n) array_reserve_(array, room, n, false)

/* The same, with new elements zeroed. */
#define array_reserve_zero(array, room, n) array_reserve_(array, room, n, true)

#define array_reserve_(array, room, n, zero)                                       \
	({                                                                         \
		size_t n_ = (n);                                                   \
                                                                                   \
		if (n_ > (room))                                                   \
			array_grow(&(array), &(room), n_, sizeof(*(array)), zero); \
		0;                                                                 \
	})

#endif
