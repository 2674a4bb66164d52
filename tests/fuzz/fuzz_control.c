// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a request to a collector: no crash, what is taken apart lies within the text, in
 * order, and says nothing to a terminal.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/control.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

/* A string of its own at or behind @from. Return: where it ends. */
static const char *check_text(const char *s, const char *from, const char *end)
{
	need(s >= from && s <= end);
	for (; *s; s++)
		need(s < end && ((unsigned char)*s >= ' ' || *s == '\t') && *s != 0x7f);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct control_request r;
	struct err e = {};
	const char *at;
	char *text;

	text = malloc(size + 1); /* to the byte, so that none behind is touched */
	need(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	if (control_parse(text, size, &r, &e)) {
		need(*e.text && !strchr(e.text, '\n'));
		free(text);
		return 0;
	}
	need(r.verb && *r.verb && *r.verb != '#' && r.n <= CONTROL_LINES);
	at = check_text(r.verb, text, text + size);
	for (size_t i = 0; i < r.n; i++) {
		const struct control_line *l = &r.line[i];

		need(*l->name && !strchr(l->name, '=') && !strchr(" \t", *l->name));
		at = check_text(l->name, at, text + size);
		if (l->value)
			at = check_text(l->value, at, text + size);
	}
	free(text);
	return 0;
}
