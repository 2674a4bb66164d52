// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_strict.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

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
