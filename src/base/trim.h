/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Removing surrounding blanks. */
#ifndef IBSCOPE_TRIM_H
#define IBSCOPE_TRIM_H

#include <string.h>

#define TRIM_BLANK " \t\r\n"

/* Cut trailing blanks of @text. Return: its first character that is not blank. */
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
