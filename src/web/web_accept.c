// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANK " \t"

struct span {
	const char *s;
	size_t n;
};

static struct span trim(const char *s, size_t n)
{
	while (n && strchr(BLANK, *s))
		s++, n--;
	while (n && strchr(BLANK, s[n - 1]))
		n--;
	return (struct span){ s, n };
}

/* The part of @s up to the next @sep outside quotes. Return: false at the end. */
static bool next_part(const char **s, const char *end, char sep, struct span *out)
{
	const char *p = *s;
	bool quoted = false;

	if (p >= end)
		return false;
	for (; p < end && (quoted || *p != sep); p++) {
		if (quoted && *p == '\\' && p + 1 < end)
			p++;
		else if (*p == '"')
			quoted = !quoted;
	}
	*out = trim(*s, p - *s);
	*s = p + 1;
	return true;
}

static bool is(struct span a, const char *text)
{
	return a.n == strlen(text) && !strncasecmp(a.s, text, a.n);
}

/* "0.75" in thousandths; 0 if it is not a valid number. */
static int parse_q(struct span v)
{
	int q = 0, unit = 1000;

	if (!v.n || (*v.s != '0' && *v.s != '1') || (v.n > 1 && v.s[1] != '.') || v.n > 5)
		return 0;
	q = (*v.s - '0') * unit;
	for (size_t i = 2; i < v.n; i++) {
		if (v.s[i] < '0' || v.s[i] > '9')
			return 0;
		unit /= 10;
		q += (v.s[i] - '0') * unit;
	}
	return q > 1000 ? 0 : q;
}

static struct span unquote(struct span v)
{
	if (v.n >= 2 && *v.s == '"' && v.s[v.n - 1] == '"')
		return (struct span){ v.s + 1, v.n - 2 };
	return v;
}

/* One of a list: the format, its preference, and the required version. */
struct choice {
	struct span what, version;
	int q;
};

static bool next_choice(const char **s, const char *end, struct choice *c)
{
	struct span item, part;
	const char *p;

	if (!next_part(s, end, ',', &item))
		return false;
	p = item.s;
	*c = (struct choice){ .q = 1000 };
	if (!next_part(&p, item.s + item.n, ';', &c->what))
		return true;
	while (next_part(&p, item.s + item.n, ';', &part)) {
		const char *eq = memchr(part.s, '=', part.n);
		struct span name, value;

		if (!eq)
			continue;
		name = trim(part.s, eq - part.s);
		value = unquote(trim(eq + 1, part.s + part.n - eq - 1));
		if (is(name, "q"))
			c->q = parse_q(value);
		else if (is(name, "version"))
			c->version = value;
	}
	return true;
}

static void raise_to(int *best, int q)
{
	if (q > *best)
		*best = q;
}

enum metrics_format web_accept(const char *accept)
{
	const char *end = accept ? accept + strlen(accept) : NULL;
	int openmetrics = 0, text = 0;
	struct choice c;

	while (accept && next_choice(&accept, end, &c)) {
		if (is(c.what, "application/openmetrics-text") &&
		    (!c.version.n || is(c.version, "1.0.0") || is(c.version, "0.0.1")))
			raise_to(&openmetrics, c.q);
		else if (is(c.what, "text/plain") && (!c.version.n || is(c.version, "0.0.4")))
			raise_to(&text, c.q);
	}
	return openmetrics && openmetrics >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
}

bool web_accept_gzip(const char *accept)
{
	const char *end = accept ? accept + strlen(accept) : NULL;
	int gzip = -1, any = 0;
	struct choice c;

	while (accept && next_choice(&accept, end, &c)) {
		if (is(c.what, "gzip") || is(c.what, "x-gzip"))
			gzip = c.q;
		else if (is(c.what, "*"))
			any = c.q;
	}
	return gzip < 0 ? any > 0 : gzip > 0;
}
