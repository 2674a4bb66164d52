// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A pattern becomes a nondeterministic automaton, its states kept as bits: in state k the first k
 * tokens have matched. A byte of the path moves all states at once, so no path, however deep, needs
 * a second try.
 */
#include "cgroup_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 256
#define WORDS (CGROUP_PATTERN_MAX / 64 + 1)

struct cgroup_pattern {
	size_t n, words;      /* state n is the last */
	uint64_t star[WORDS]; /* states that stay on any byte of a name */
	uint64_t any[WORDS];  /* states that stay on any byte */
	/* From states skip[i] and skip[i] + 1 the next one is reached without a byte, by "**". */
	unsigned short skip[CGROUP_PATTERN_MAX];
	size_t n_skips;
	uint64_t accepts[]; /* of each byte: the states that it leads out of */
};

static bool has(const uint64_t *set, size_t bit)
{
	return set[bit / 64] >> (bit % 64) & 1;
}

static void put(uint64_t *set, size_t bit)
{
	set[bit / 64] |= 1ULL << (bit % 64);
}

static bool put_class(const char *name, size_t len, bool *in)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {
		{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
		{ "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
		{ "lower", islower }, { "print", isprint }, { "punct", ispunct },
		{ "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len))
			continue;
		for (int c = 0; c < BYTES; c++)
			in[c] |= classes[i].is(c) != 0;
		return true;
	}
	return false;
}

/* "[...]" at @s, as bytes. Return: its length; 0 if it is not closed within the name. */
static size_t read_bracket(const char *s, bool in[BYTES])
{
	const char *p = s + 1;
	bool not_in = *p == '!' || *p == '^';

	memset(in, 0, BYTES * sizeof(*in));
	p += not_in;
	for (const char *first = p; *p != ']' || p == first; p++) {
		const char *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;

		if (!*p || *p == '/')
			return 0;
		if (end && put_class(p + 2, end - p - 2, in)) {
			p = end + 1;
		} else if (p[1] == '-' && p[2] && p[2] != ']' && p[2] != '/') {
			for (int c = (unsigned char)p[0]; c <= (unsigned char)p[2]; c++)
				in[c] = true;
			p += 2;
		} else {
			in[(unsigned char)*p] = true;
		}
	}
	for (int c = 0; not_in && c < BYTES; c++)
		in[c] = !in[c];
	in['/'] = false;
	return p + 1 - s;
}

/* The state after the last leads on by the bytes in @in. */
static void add_token(struct cgroup_pattern *p, const bool in[BYTES])
{
	for (size_t c = 0; c < BYTES; c++)
		if (in[c])
			put(&p->accepts[c * p->words], p->n);
	p->n++;
}

static void add_byte(struct cgroup_pattern *p, unsigned char c)
{
	bool in[BYTES] = { false };

	in[c] = true;
	add_token(p, in);
}

/* "/" and "**": a slash leads to a state that takes everything; and both may be left out. */
static void add_any_names(struct cgroup_pattern *p)
{
	p->skip[p->n_skips++] = p->n;
	add_byte(p, '/');
	put(p->any, p->n);
	p->n++;
}

static bool is_any_names(const char *s)
{
	return !strncmp(s, "/**", 3) && (!s[3] || s[3] == '/');
}

static void read_pattern(struct cgroup_pattern *p, const char *s)
{
	while (*s) {
		bool in[BYTES];
		size_t len = *s == '[' ? read_bracket(s, in) : 0;

		if (is_any_names(s)) {
			add_any_names(p);
			s += 3;
		} else if (len) {
			add_token(p, in);
			s += len;
		} else if (*s == '*') {
			put(p->star, p->n);
			s++;
		} else if (*s == '?') {
			memset(in, true, sizeof(in));
			in['/'] = false;
			add_token(p, in);
			s++;
		} else {
			add_byte(p, *s++);
		}
	}
}

int cgroup_pattern_new(const char *text, struct cgroup_pattern **out)
{
	const size_t len = strlen(text), words = len / 64 + 1;
	struct cgroup_pattern *p;

	if (len > CGROUP_PATTERN_MAX)
		return -E2BIG;
	p = calloc(1, sizeof(*p) + BYTES * words * sizeof(p->accepts[0]));
	if (!p)
		return -ENOMEM;
	p->words = words;
	read_pattern(p, text[1] ? text : "");
	*out = p;
	return 0;
}

void cgroup_pattern_free(struct cgroup_pattern *p)
{
	free(p);
}

static void skip(const struct cgroup_pattern *p, uint64_t *now)
{
	for (size_t i = 0; i < p->n_skips; i++)
		if (has(now, p->skip[i]) || has(now, p->skip[i] + 1))
			put(now, p->skip[i] + 2);
}

/* Return: whether any state is left. */
static bool move(const struct cgroup_pattern *p, unsigned char c, uint64_t *now)
{
	const uint64_t *accepts = &p->accepts[c * p->words];
	uint64_t carry = 0, left = 0;

	for (size_t i = 0; i < p->words; i++) {
		uint64_t led = now[i] & accepts[i];
		uint64_t stay = now[i] & (c == '/' ? p->any[i] : p->star[i] | p->any[i]);

		now[i] = stay | led << 1 | carry;
		carry = led >> 63;
		left |= now[i];
	}
	return left;
}

ssize_t cgroup_pattern_deepest(const struct cgroup_pattern *p, const char *path)
{
	uint64_t now[WORDS] = { 1 };
	ssize_t deepest;

	skip(p, now);
	deepest = has(now, p->n) ? 0 : -1;
	if (!path[1])
		return deepest;
	for (const char *s = path; *s; s++) {
		if (!move(p, *s, now))
			break;
		skip(p, now);
		if ((!s[1] || s[1] == '/') && has(now, p->n))
			deepest = s + 1 - path;
	}
	return deepest;
}

bool cgroup_pattern_matches(const struct cgroup_pattern *p, const char *path)
{
	return cgroup_pattern_deepest(p, path) == (path[1] ? (ssize_t)strlen(path) : 0);
}
