// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "screen.h"

#include "std.h"
#include "text.h"
#include "utf8.h"

#include <errno.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PIPE_WIDTH 100
#define CONTEXT	   2	/* characters kept before the first distinguishing one */
#define MAX_WORD   4096 /* bytes of a word of a command */
#define MIN_HEAD   4	/* columns before the last part of a path, including the gap */

static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return true; /* in most containers the locale is unset, but terminals are UTF-8 */
}

void screen_of(FILE *f, struct screen *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *columns = getenv("COLUMNS");
	bool tty = isatty(fileno(f));
	unsigned long width = PIPE_WIDTH;
	struct winsize ws = {};

	if (tty && !ioctl(fileno(f), TIOCGWINSZ, &ws) && ws.ws_col)
		width = ws.ws_col;
	else if (columns && *columns)
		width = strtoul(columns, NULL, 10);
	out->width = width < SCREEN_MIN_WIDTH	? SCREEN_MIN_WIDTH
		     : width > SCREEN_MAX_WIDTH ? SCREEN_MAX_WIDTH
						: width;
	out->height = tty ? ws.ws_row ?: 24 : 0;
	out->color = tty && !(no && *no) && term && strcmp(term, "dumb");
	out->utf8 = locale_is_utf8();
}

bool screen_is_repeatable(const char *word)
{
	char plain[MAX_WORD];

	utf8_escape(plain, sizeof(plain), word);
	return strcmp(word, "-") && !strchr(word, '\\') && !strcmp(plain, word);
}

/* How this program was called, if only that finds it: "build/ibscope" as it is before it is installed. */
static const char *own_name(void)
{
	const char *called = program_invocation_name;

	return *called != '/' && strchr(called, '/') &&
			       !strcmp(program_invocation_short_name, "ibscope") &&
			       screen_is_repeatable(called)
		       ? called
		       : "ibscope";
}

void screen_next(FILE *f, const struct screen *s, ...)
{
	bool repeatable = s->height;
	const char *word;
	char *text;
	size_t size;
	va_list ap;
	FILE *line = xmemopen(&text, &size);

	text_put_word(line, own_name());
	va_start(ap, s);
	while ((word = va_arg(ap, const char *))) {
		if (!*word)
			continue;
		repeatable &= screen_is_repeatable(word);
		fputc(' ', line);
		text_put_word(line, word);
	}
	va_end(ap);
	xmemclose(line);
	if (repeatable)
		fprintf(f, "Next: %s\n", text);
	free(text);
}

static void unknown(const struct screen *s, char *buf, size_t size)
{
	snprintf(buf, size, "%s", s->utf8 ? "–" : "-");
}

void screen_count(const struct screen *s, double v, char *buf, size_t size)
{
	char digits[32];
	size_t n, k = 0;

	if (isnan(v)) {
		unknown(s, buf, size);
		return;
	}
	n = snprintf(digits, sizeof(digits), "%.0f", v);
	for (size_t i = 0; i < n && k + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			buf[k++] = ',';
		buf[k++] = digits[i];
	}
	buf[k] = 0;
}

void screen_percent(const struct screen *s, double ratio, char *buf, size_t size)
{
	if (isnan(ratio))
		unknown(s, buf, size);
	else if (ratio <= 0)
		snprintf(buf, size, "0%%");
	else if (ratio < 0.0005)
		snprintf(buf, size, "<0.1%%");
	else
		snprintf(buf, size, "%.1f%%", 100 * ratio);
}

void screen_mean(const struct screen *s, double v, char *buf, size_t size)
{
	if (isnan(v))
		unknown(s, buf, size);
	else
		snprintf(buf, size, "%.1f", v);
}

void screen_ratio(const struct screen *s, double v, char *buf, size_t size)
{
	if (isnan(v))
		unknown(s, buf, size);
	else
		snprintf(buf, size, "%.2f", v);
}

static double scale(char unit)
{
	return unit == 'T' ? 1e12 : unit == 'G' ? 1e9 : unit == 'M' ? 1e6 : unit == 'k' ? 1e3 : 1;
}

char screen_unit(double largest)
{
	for (const char *u = "TGMk"; *u; u++)
		if (largest >= scale(*u))
			return *u;
	return ' ';
}

void screen_scaled(const struct screen *s, double v, char unit, char *buf, size_t size)
{
	const char suffix[] = { unit == ' ' ? 0 : ' ', unit, 0 };

	if (isnan(v)) {
		unknown(s, buf, size);
		return;
	}
	if (unit == ' ') {
		screen_count(s, v, buf, size);
		return;
	}
	v /= scale(unit);
	if (v <= -0.005 && size) {
		*buf = '-';
		screen_scaled(s, -v * scale(unit), unit, buf + 1, size - 1);
	} else if (v <= 0)
		snprintf(buf, size, "0");
	else if (v < 0.005)
		snprintf(buf, size, "<0.01%s", suffix);
	else
		snprintf(buf, size,
			 v < 9.995   ? "%.2f%s"
			 : v < 99.95 ? "%.1f%s"
				     : "%.0f%s",
			 v, suffix);
}

static bool starts_character(char c)
{
	return (c & 0xc0) != 0x80;
}

size_t screen_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += starts_character(*text) ? utf8_width(text) : 0;
	return n;
}

/* Number of bytes that fit @n columns. */
static size_t byte_of(const char *text, size_t n)
{
	size_t i = 0;

	for (; text[i]; i++) {
		unsigned int width = starts_character(text[i]) ? utf8_width(text + i) : 0;

		if (width > n)
			break;
		n -= width;
	}
	return i;
}

/* The longest end of a text, @len columns wide, that fits @n columns: a wide character is in it as a whole, or not at all. */
static const char *end_of(const char *text, size_t len, size_t n)
{
	text += byte_of(text, len - n);
	if (screen_columns(text) <= n)
		return text;
	for (text++; *text && !starts_character(*text);)
		text++;
	return text;
}

/* The column at which two names differ; 0 for equal names. */
static size_t first_difference(const char *a, const char *b)
{
	size_t i = 0, n = 0, last = 0;

	if (!strcmp(a, b))
		return 0;
	for (; a[i] && a[i] == b[i]; i++) {
		last = starts_character(a[i]) ? utf8_width(a + i) : last;
		n += starts_character(a[i]) ? last : 0;
	}
	return n && !starts_character(a[i]) ? n - last : n;
}

struct cut {
	const char *from;
	size_t chars;
};

static char *join(const struct screen *s, const struct cut *cuts, size_t n)
{
	const char *gap = s->utf8 ? "…" : "~";
	size_t size = 1 + n * strlen(gap), k = 0;
	char *out;

	for (size_t i = 0; i < n; i++)
		size += byte_of(cuts[i].from, cuts[i].chars);
	out = xrealloc(NULL, size);
	for (size_t i = 0; i < n; i++)
		k += sprintf(out + k, "%s%.*s", i ? gap : "",
			     (int)byte_of(cuts[i].from, cuts[i].chars), cuts[i].from);
	return out;
}

/* What is between < and > of a name. */
struct arguments {
	size_t from, bytes;
	size_t column, columns;
};

/* Bytes of an operator's name, whose brackets enclose nothing; 0 if none is there. */
static size_t operator_bytes(const char *text, size_t i)
{
	/* the longest first; arguments behind them begin with a bracket, or a blank and a bracket */
	static const char *const operators[] = { "operator->", "operator<=>", "operator<<",
						 "operator>>", "operator<",   "operator>" };

	if (i && (isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_'))
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(operators); k++)
		if (!strncmp(text + i, operators[k], strlen(operators[k])))
			return strlen(operators[k]);
	return 0;
}

/* The widest outermost ones that have neither column @a nor @b; no columns: there are none. */
static struct arguments widest_arguments(const char *text, size_t a, size_t b)
{
	struct arguments best = { 0 }, now = { 0 };
	size_t column = 0, depth = 0;

	for (size_t i = 0; text[i]; i++) {
		size_t skipped = operator_bytes(text, i);

		i += skipped;
		column += skipped;
		if (!text[i])
			break;
		if (text[i] == '<' && !depth++)
			now = (struct arguments){ .from = i + 1, .column = column + 1 };
		if (text[i] == '>' && i && text[i - 1] != '-' && depth && !--depth) {
			now.bytes = i - now.from;
			now.columns = column - now.column;
			if (now.columns > best.columns && (a < now.column || a > column) &&
			    (b < now.column || b > column))
				best = now;
		}
		column += starts_character(text[i]) ? utf8_width(text + i) : 0;
	}
	return best;
}

/* Leave out arguments of templates until the name fits, except for those with a telling column. */
static char *drop_arguments(const struct screen *s, const char *name, size_t width, size_t *telling)
{
	const char *gap = s->utf8 ? "…" : "~";
	char *text = xstrdup(name), *with;

	while (screen_columns(text) > width) {
		struct arguments a = widest_arguments(text, telling[0], telling[1]);

		if (a.columns < 2)
			break;
		with = xasprintf("%.*s%s%s", (int)a.from, text, gap, text + a.from + a.bytes);
		free(text);
		text = with;
		for (int i = 0; i < 2; i++)
			telling[i] -= telling[i] > a.column ? a.columns - 1 : 0;
	}
	return text;
}

/* @telling: the first character that distinguishes the name from similar ones; it is kept. */
static char *cut(const struct screen *s, const char *name, size_t width, size_t telling)
{
	size_t len = screen_columns(name), last, head, tail, from;
	const char *slash = strrchr(name, '/');
	struct cut cuts[3];

	if (len <= width)
		return xstrdup(name);
	last = slash ? screen_columns(slash) : 0;
	tail = last && last + MIN_HEAD < width ? last : (width - 1) / 2;
	head = width - 1 - tail;
	if (telling < head || telling >= len - tail) {
		cuts[0] = (struct cut){ name, head };
		cuts[1] = (struct cut){ end_of(name, len, tail), tail };
		return join(s, cuts, 2);
	}
	from = telling > CONTEXT ? telling - CONTEXT : 0;
	if (len - from <= width - 1) { /* the rest fits */
		cuts[0] = (struct cut){ name, 0 };
		cuts[1] = (struct cut){ end_of(name, len, width - 1), width - 1 };
		return join(s, cuts, 2);
	}
	tail = tail < (width - 2) / 2 ? tail : (width - 2) / 2;
	cuts[0] = (struct cut){ name, 0 };
	cuts[1] = (struct cut){ name + byte_of(name, from), width - 2 - tail };
	cuts[2] = (struct cut){ end_of(name, len, tail), tail };
	return join(s, cuts, 3);
}

/* "inner (in outer)" says enough. */
static char *drop_words(const char *name, size_t width, size_t *telling)
{
	static const char inlined[] = SCREEN_INLINED, in[] = " (in ";
	const char *at = screen_columns(name) > width ? strstr(name, inlined) : NULL;
	size_t column = 0;

	if (!at)
		return xstrdup(name);
	for (const char *c = name; c < at; c++)
		column += starts_character(*c) ? utf8_width(c) : 0;
	for (int i = 0; i < 2; i++)
		telling[i] -=
			telling[i] >= column + strlen(inlined) ? strlen(inlined) - strlen(in) : 0;
	return xasprintf("%.*s%s%s", (int)(at - name), name, in, at + strlen(inlined));
}

/* The frame of a chain that the byte at @at is in. */
static const char *frame_with(const char *chain, const char *at, size_t *n)
{
	const char *from = at;

	while (from > chain && from[-1] != *SCREEN_FRAME)
		from--;
	*n = strcspn(from, SCREEN_FRAME);
	return from;
}

/* The longest end of a chain with whole frames that fits, or NULL. */
static const char *last_frames(const char *chain, size_t width)
{
	const char *best = NULL;

	for (const char *at = chain; at; at = strchr(at, *SCREEN_FRAME)) {
		at += at > chain || *at == *SCREEN_FRAME;
		if (screen_columns(at) <= width) {
			best = at;
			break;
		}
	}
	return best;
}

/* "…;scan;leaf", or "…;other;…;leaf" if it differs from the next there. Return: NULL if it does not fit like that. */
static char *drop_frames(const struct screen *s, const char *name, size_t width, size_t telling)
{
	const char *skip = s->utf8 ? "…" : "~", *last, *frame;
	size_t gap = screen_columns(skip) + 1, n;

	if (screen_columns(name) <= width || !strchr(name, *SCREEN_FRAME))
		return NULL;
	last = width > gap ? last_frames(name, width - gap) : NULL;
	if (!last)
		return NULL;
	frame = frame_with(name, name + byte_of(name, telling), &n);
	if (frame >= last || !telling)
		return xasprintf("%s" SCREEN_FRAME "%s", skip, last);
	gap = 2 * gap + n + 1;
	last = width > gap ? last_frames(last, width - gap) : NULL;
	return last ? xasprintf("%s" SCREEN_FRAME "%.*s" SCREEN_FRAME "%s" SCREEN_FRAME "%s", skip,
				(int)n, frame, skip, last)
		    : NULL;
}

/* @telling: where the name begins to differ from the ones before and after it, in order */
static char *shorten(const struct screen *s, const char *name, size_t width, size_t telling[2])
{
	char *frames =
		drop_frames(s, name, width, telling[0] > telling[1] ? telling[0] : telling[1]);
	char *words, *text, *out;

	if (frames)
		return frames;
	words = drop_words(name, width, telling);
	text = drop_arguments(s, words, width, telling);
	out = cut(s, text, width, telling[0] > telling[1] ? telling[0] : telling[1]);
	free(text);
	free(words);
	return out;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(**(const char *const *const *)a, **(const char *const *const *)b);
}

void screen_shorten(const struct screen *s, const char *const *names, size_t n, unsigned int width,
		    char **out)
{
	const char *const **sorted = xcalloc(n, sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		sorted[i] = &names[i];
	/* names with the longest common prefix are neighbours in sorted order */
	qsort(sorted, n, sizeof(*sorted), compare_names);
	for (size_t i = 0, next; i < n; i = next) {
		size_t before = i ? first_difference(*sorted[i], *sorted[i - 1]) : 0, after;

		for (next = i + 1; next < n && !strcmp(*sorted[i], *sorted[next]);)
			next++;
		after = next < n ? first_difference(*sorted[i], *sorted[next]) : 0;
		for (size_t k = i; k < next; k++)
			out[sorted[k] - names] =
				shorten(s, *sorted[k], width, (size_t[]){ before, after });
	}
	free(sorted);
}

void screen_wrap(FILE *f, const char *text, unsigned int indent, unsigned int width)
{
	size_t room = width > indent ? width - indent : 1, n, cut;

	for (;;) {
		n = strlen(text);
		for (cut = n; cut > room;) {
			const char *blank = memrchr(text, ' ', cut > room + 1 ? room + 1 : cut);

			cut = blank ? (size_t)(blank - text) : strcspn(text, " ");
			if (!blank)
				break;
		}
		fprintf(f, "%.*s\n", (int)cut, text);
		text += cut + strspn(text + cut, " ");
		if (!*text)
			return;
		fprintf(f, "%*s", indent, "");
	}
}
