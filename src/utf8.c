// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "utf8.h"

#include <stdbool.h>
#include <string.h>

typedef unsigned char byte;

/* Unicode 15, table 3-7: only these second bytes, so neither surrogates nor a second spelling. */
size_t utf8_len(const char *text)
{
	const byte *s = (const byte *)text;
	byte low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* C0, DEL and C1; marks, embeddings, overrides and isolates of direction; line separators. */
static bool controls(const char *text, size_t n)
{
	const byte *s = (const byte *)text;

	if (n == 1)
		return s[0] < ' ' || s[0] == 0x7f;
	if (n == 2)
		return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c);
	if (n == 3 && s[0] == 0xe2 && s[1] == 0x80)
		return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
	return n == 3 && s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

/* The character at @s, or what stands for it. Return: bytes taken of @s. */
static size_t put_one(FILE *f, const char *s, size_t *count)
{
	size_t n = utf8_len(s);

	if (n && !controls(s, n)) {
		if (f)
			fwrite(s, 1, n, f);
		++*count;
		return n;
	}
	n = n ? n : 1;
	for (size_t i = 0; f && i < n; i++)
		fprintf(f, "\\x%02x", (byte)s[i]);
	*count += 4 * n;
	return n;
}

size_t utf8_put(FILE *f, const char *text)
{
	size_t count = 0;

	while (*text)
		text += put_one(f, text, &count);
	return count;
}

size_t utf8_count(const char *text)
{
	return utf8_put(NULL, text);
}

void utf8_put_csv(FILE *f, const char *text)
{
	size_t unused = 0, len = strlen(text);

	if (len && text[0] != ' ' && text[len - 1] != ' ' && !strpbrk(text, ",\"")) {
		utf8_put(f, text);
		return;
	}
	fputc('"', f);
	while (*text) {
		if (*text == '"')
			fputc('"', f);
		text += put_one(f, text, &unused);
	}
	fputc('"', f);
}

/* Bytes that a JSON string holds as they are. */
static size_t json_plain_len(const char *text)
{
	const char *s = text;
	size_t n;

	while (*s && *s != '"' && *s != '\\' && (n = utf8_len(s)) && !(n == 1 && controls(s, 1)))
		s += n;
	return s - text;
}

void utf8_put_json(FILE *f, const char *text)
{
	fputc('"', f);
	for (const char *s = text;; s++) {
		size_t plain = json_plain_len(s);

		fwrite(s, 1, plain, f);
		s += plain;
		if (!*s)
			break;
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (utf8_len(s))
			fprintf(f, "\\u%04x", (byte)*s);
		else
			fputc('?', f);
	}
	fputc('"', f);
}
