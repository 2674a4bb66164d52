/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts without the blank around them. */
#ifndef IBSCOPE_TRIM_H
#define IBSCOPE_TRIM_H

#include <string.h>

#define TRIM_BLANK " \t\r\n"

/* Cuts the end of @text off; what is returned begins behind the blank at its begin. */
static inline char *trim(char *text)
{
	size_t n;

	text += strspn(text, TRIM_BLANK);
	n = strlen(text);
	while (n && strchr(TRIM_BLANK, text[n - 1]))
		text[--n] = 0;
	return text;
}

#endif
