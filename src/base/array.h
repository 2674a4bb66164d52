/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Growing arrays: a pointer, the number of elements that it has room for, and how many are used. */
#ifndef IBSCOPE_ARRAY_H
#define IBSCOPE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* What the macros call; @array points to the pointer. */
int array_grow(void *array, size_t *room, size_t n, size_t size, bool zero);

/**
 * array_reserve() - make room for @n elements
 * @array: lvalue, a pointer to elements; NULL while there are none
 * @room:  lvalue of type size_t
 *
 * The room doubles, so that adding elements one by one costs constant time each.
 *
 * Return: 0; or -ENOMEM, and all is as before.
 */
#define array_reserve(array, room, n) array_reserve_(array, room, n, false)

/* The same, with new elements zeroed. */
#define array_reserve_zero(array, room, n) array_reserve_(array, room, n, true)

#define array_reserve_(array, room, n, zero)                                        \
	({                                                                          \
		size_t n_ = (n);                                                    \
                                                                                    \
		n_ <= (room) ? 0                                                    \
			     : array_grow(&(array), &(room), n_, sizeof(*(array)), zero); \
	})

#endif
