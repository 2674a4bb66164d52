// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Text that grows. */
#include "metrics_private.h"
#include "base/array.h"

#include <string.h>

void buf_put(struct metrics_buf *b, const void *s, size_t n)
{
	array_reserve(b->s, b->room, b->n + n);
	memcpy(b->s + b->n, s, n);
	b->n += n;
}

void buf_text(struct metrics_buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_number(struct metrics_buf *b, const char *before, __u64 v, const char *after)
{
	char digits[20];
	int n = sizeof(digits);

	do
		digits[--n] = '0' + v % 10;
	while (v /= 10);
	buf_text(b, before);
	buf_put(b, digits + n, sizeof(digits) - n);
	buf_text(b, after);
}
