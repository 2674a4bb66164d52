// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"

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
	int openmetrics2 = 0, openmetrics = 0, text = 0;
	struct choice c;

	while (accept && next_choice(&accept, end, &c)) {
		if (is(c.what, "application/openmetrics-text") &&
		    (!c.version.n || is(c.version, "1.0.0") || is(c.version, "0.0.1")))
			raise_to(&openmetrics, c.q);
		else if (is(c.what, "application/openmetrics-text") && is(c.version, "2.0.0"))
			raise_to(&openmetrics2, c.q);
		else if (is(c.what, "text/plain") && (!c.version.n || is(c.version, "0.0.4")))
			raise_to(&text, c.q);
	}
	if (openmetrics2 && openmetrics2 >= openmetrics && openmetrics2 >= text)
		return METRICS_OPENMETRICS2;
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

/* From this version on libmicrohttpd checks the framing itself: web.c asks it to. */
#define CHECKS_FRAMING (MHD_VERSION >= 0x00097701)

struct check {
	const char *why; /* NULL: nothing is wrong so far */
	const char *at;	 /* where the next line begins */
	unsigned int hosts, lengths;
	bool body;
};

static bool is_token(const char *s, size_t n)
{
	static const char digits[] = "0123456789!#$%&'*+-.^_`|~"
				     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return n && strspn(s, digits) >= n;
}

static bool is_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((s[i] >= 0 && s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	return true;
}

/* Line ends are NULs by now: a CR and an LF are two, a bare LF is one. */
static bool ends_line(const char *at)
{
	return !at[0] && !at[1];
}

static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *key, size_t n,
				    const char *value, size_t value_n)
{
	struct check *c = arg;
	const char *begin = value ?: key + n + 1;

	(void)kind;
	if (!is_token(key, n) || !is_text(begin, value_n)) {
		c->why = "invalid header line";
	} else if (!CHECKS_FRAMING &&
		   (key != c->at || key[n] || begin <= key + n || !ends_line(begin + value_n))) {
		c->why = "header lines must end with CR LF, and not be folded";
	}
	c->at = begin + value_n + 2;
	c->hosts += n == 4 && !strncasecmp(key, "Host", n);
	c->lengths += n == 14 && !strncasecmp(key, "Content-Length", n);
	c->body |= n == 14 && !strncasecmp(key, "Content-Length", n) &&
		   (value_n != 1 || *begin != '0');
	c->body |= n == 17 && !strncasecmp(key, "Transfer-Encoding", n);
	return c->why ? MHD_NO : MHD_YES;
}

const char *web_strict_check(struct MHD_Connection *mhd, const char *method, const char *url,
			     const char *version)
{
	const bool old = !strcmp(version, MHD_HTTP_VERSION_1_0);
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct check c = { .at = version + strlen(version) + 2 };

	if (!old && strcmp(version, MHD_HTTP_VERSION_1_1))
		return "unsupported version of HTTP";
	if (!CHECKS_FRAMING && (url != method + strlen(method) + 1 || !ends_line(c.at - 2)))
		return "the request line must end with CR LF, and have two spaces";
	MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, check_header, &c);
	if (c.why)
		return c.why;
	if (!CHECKS_FRAMING &&
	    (!info || !ends_line(c.at) || c.at + 2 != method + info->header_size))
		return "header lines must end with CR LF";
	if (c.hosts > 1 || (!c.hosts && !old))
		return "exactly one Host header is required";
	if (c.lengths > 1)
		return "duplicate Content-Length";
	return c.body ? "a request body is not accepted" : NULL;
}
