// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "utf8.h"

#include <ctype.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

typedef unsigned char byte;

/* Unicode 15, table 3-7: restricting the second byte excludes surrogates and overlong encodings. */
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

/* @n: bytes of the character, at least 1 */
static uint32_t code_point(const char *text, size_t n)
{
	const byte *s = (const byte *)text;
	uint32_t c = n == 1 ? s[0] : s[0] & (0x7f >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Characters that must be escaped. */
static bool is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1f },	      /* C0 */
		{ 0x7f, 0x9f },	      /* DEL, C1 */
		{ 0xad, 0xad },	      /* soft hyphen */
		{ 0x61c, 0x61c },     /* direction mark */
		{ 0x200b, 0x200b },   /* zero width space */
		{ 0x200e, 0x200f },   /* direction marks */
		{ 0x2028, 0x202e },   /* line separators, direction embeddings and overrides */
		{ 0x2060, 0x206f },   /* invisible operators, direction isolates */
		{ 0xfeff, 0xfeff },   /* byte order mark */
		{ 0xfff9, 0xfffb },   /* interlinear annotations */
		{ 0xe0000, 0xe007f }, /* tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* Bytes of the character at @s if it needs no escaping, else 0. */
static size_t plain_len(const char *s)
{
	size_t n;

	if ((byte)*s >= ' ' && (byte)*s < 0x7f)
		return 1;
	n = utf8_len(s);
	return n && !is_hidden(code_point(s, n)) ? n : 0;
}

unsigned int utf8_width(const char *s)
{
	static locale_t unicode;
	size_t n = utf8_len(s);
	locale_t before;
	int width;

	if ((byte)*s < 0x80 || !n)
		return 1;
	/* do not use the user's locale: it does not determine the width */
	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	before = unicode ? uselocale(unicode) : NULL;
	width = wcwidth(code_point(s, n));
	if (before)
		uselocale(before);
	return width < 0 ? 1 : width;
}

#define ONE_MAX (4 * 4) /* most bytes that escape_one() writes: \xNN for each of four */

/* Write the character at @s to @out, escaped. Return: bytes taken of @s. */
static size_t escape_one(const char *s, char *out, size_t *len)
{
	size_t n = utf8_len(s);

	n = n ? n : 1;
	for (size_t i = 0; i < n; i++) {
		*out++ = '\\';
		*out++ = 'x';
		*out++ = "0123456789abcdef"[(byte)s[i] >> 4];
		*out++ = "0123456789abcdef"[(byte)s[i] & 15];
	}
	*len = 4 * n;
	return n;
}

/* @quote: doubled in the output; 0: none */
static size_t put(FILE *f, const char *s, char quote)
{
	char one[ONE_MAX];
	size_t count = 0;

	while (*s) {
		const char *start = s;
		size_t n, len;

		for (; *s && (!quote || *s != quote) && (n = plain_len(s)); s += n)
			count++;
		if (f)
			fwrite_unlocked(start, 1, s - start, f);
		if (!*s)
			break;
		if (quote && *s == quote) {
			one[0] = one[1] = *s++;
			len = 2;
		} else {
			s += escape_one(s, one, &len);
		}
		if (f)
			fwrite_unlocked(one, 1, len, f);
		count += len;
	}
	return count;
}

size_t utf8_put(FILE *f, const char *text)
{
	return put(f, text, 0);
}

size_t utf8_escape(char *out, size_t size, const char *s)
{
	size_t at = 0;

	while (*s) {
		char one[ONE_MAX];
		size_t len = plain_len(s), taken = len;

		if (len)
			memcpy(one, s, len);
		else
			taken = escape_one(s, one, &len);
		if (at + len >= size)
			break;
		memcpy(out + at, one, len);
		at += len;
		s += taken;
	}
	if (size)
		out[at] = 0;
	return at;
}

void utf8_put_markup(FILE *f, const char *text)
{
	char plain[1024];

	utf8_escape(plain, sizeof(plain), text);
	for (const char *p = plain; *p; p++)
		switch (*p) {
		case '<':
			fputs("&lt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*p, f);
		}
}

/* Sign, digits, point, digits. */
static bool is_number(const char *s)
{
	s += *s == '+' || *s == '-';
	if (!isdigit((byte)*s))
		return false;
	while (isdigit((byte)*s))
		s++;
	if (*s == '.')
		s++;
	while (isdigit((byte)*s))
		s++;
	return !*s;
}

/* True if a spreadsheet would take the cell for a formula; some also accept wide forms. */
static bool is_formula(const char *s)
{
	static const char *const wide[] = { "\uff1d", "\uff0b", "\uff0d", "\uff20" };

	s += strspn(s, " ");
	if (*s && strchr("=+-@", *s))
		return !is_number(s);
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (!strncmp(s, wide[i], strlen(wide[i])))
			return true;
	return false;
}

void utf8_put_csv(FILE *f, const char *text)
{
	const bool formula = is_formula(text);
	const size_t len = strlen(text);

	/* in locales with a decimal comma, a semicolon separates cells */
	if (!formula && len && text[0] != ' ' && text[len - 1] != ' ' && !strpbrk(text, ",;\"'")) {
		utf8_put(f, text);
		return;
	}
	fputs(formula ? "\"'" : "\"", f);
	put(f, text, '"');
	fputc('"', f);
}

static void put_json_escape(FILE *f, uint32_t c)
{
	if (c >= 0x10000)
		fprintf(f, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else
		fprintf(f, "\\u%04x", c);
}

void utf8_put_json(FILE *f, const char *text)
{
	fputc('"', f);
	for (const char *s = text; *s;) {
		const char *start = s;
		size_t n;

		while (*s && *s != '"' && *s != '\\' && (n = plain_len(s)))
			s += n;
		fwrite_unlocked(start, 1, s - start, f);
		if (!*s)
			break;
		n = utf8_len(s);
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if (n)
			put_json_escape(f, code_point(s, n));
		else
			fputc('?', f);
		s += n ? n : 1;
	}
	fputc('"', f);
}
