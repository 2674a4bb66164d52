// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "choice.h"

#include "std.h"

#define WORD_MAX 32 /* longer words are not typos */

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
static unsigned int edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int d[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			unsigned int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replaced);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[n][m];
}

void suggestion_start(struct suggestion *s, const char *word, size_t len)
{
	*s = (struct suggestion){ .word = word, .len = len };
}

void suggestion_offer(struct suggestion *s, const char *candidate)
{
	size_t m = strlen(candidate);
	unsigned int distance;

	if (!s->len || s->len > WORD_MAX || m > WORD_MAX)
		return;
	distance = edit_distance(s->word, s->len, candidate, m);
	/* half a word, or a word and a half: "contain", "containers" */
	if (s->len >= 3 && m >= 3 && !strncmp(s->word, candidate, s->len < m ? s->len : m))
		distance = distance ? 1 : 0;
	if (distance > (s->len < 3 ? 1 : ((s->len > m ? s->len : m) + 1) / 3))
		return;
	if (!s->best || distance < s->distance) {
		s->best = candidate;
		s->distance = distance;
	}
}

const char *suggestion_text(struct suggestion *s)
{
	if (s->best)
		snprintf(s->text, sizeof(s->text), "; did you mean '%s'?", s->best);
	return s->text;
}

static const char *name_at(const struct choices *c, unsigned int i)
{
	return c->names ? c->names[i] : c->name(i);
}

static int unknown(const struct choices *c, const char *text, const char *at, size_t len,
		   struct err *err)
{
	char known[512] = "", where[32] = "";
	struct suggestion s;

	suggestion_start(&s, at, len);
	for (unsigned int i = 0; i < c->n; i++) {
		size_t n = strlen(known);

		suggestion_offer(&s, name_at(c, i));
		snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", name_at(c, i));
	}
	if (at > text)
		snprintf(where, sizeof(where), " column %td:", at - text + 1);
	suggestion_text(&s);
	return err_set(err, -EINVAL, "%s:%s unknown %s '%.*s'%s%s must be one of %s", c->option,
		       where, c->what, len > 100 ? 100 : (int)len, at, s.text, s.best ? "" : ":",
		       known);
}

static bool find(const struct choices *c, const char *at, size_t len, unsigned int *which)
{
	for (unsigned int i = 0; i < c->n; i++) {
		if (strlen(name_at(c, i)) == len && !memcmp(name_at(c, i), at, len)) {
			*which = i;
			return true;
		}
	}
	return false;
}

int choice_parse(const struct choices *c, const char *text, unsigned int *which, struct err *err)
{
	return find(c, text, strlen(text), which) ? 0 : unknown(c, text, text, strlen(text), err);
}

int choice_list_parse(const struct choices *c, const char *text, unsigned int *list,
		      unsigned int *n, struct err *err)
{
	*n = 0;
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		bool twice = false;
		unsigned int i;

		if (!find(c, p, len, &i))
			return unknown(c, text, p, len, err);
		for (unsigned int k = 0; k < *n; k++)
			twice |= list[k] == i;
		if (!twice)
			list[(*n)++] = i;
		p += len;
		if (!*p)
			return 0;
	}
}
