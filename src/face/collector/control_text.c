// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/trim.h"

/* Characters that would forge log lines or control a terminal. @s ends with a NUL. */
static bool is_control(const char *s)
{
	unsigned char c = *s;

	if (c == '\r')
		return s[1] && s[1] != '\n';
	return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f;
}

static int add_line(struct control_request *r, char *text, struct err *err)
{
	char *value = strchr(text, '=');
	struct control_line *l = &r->line[r->n];

	if (r->n == CONTROL_LINES)
		return err_set(err, -EINVAL, "the request has more than %d lines", CONTROL_LINES);
	if (value) {
		*value++ = 0;
		value = trim(value);
	}
	l->name = trim(text);
	l->value = value;
	if (!*l->name)
		return err_set(err, -EINVAL, "'= %.100s': missing name before '='", value);
	r->n++;
	return 0;
}

int control_parse(char *text, size_t n, struct control_request *out, struct err *err)
{
	char *save;
	int ret = 0;

	out->verb = NULL;
	out->n = 0;
	for (size_t i = 0; i < n; i++)
		if (is_control(&text[i]))
			return err_set(err, -EINVAL,
				       "invalid character %#x at byte %zu of the request",
				       (unsigned char)text[i], i + 1);
	for (char *l = strtok_r(text, "\n", &save); l && !ret; l = strtok_r(NULL, "\n", &save)) {
		char *line = trim(l);

		if (!*line || *line == '#')
			continue;
		if (out->verb)
			ret = add_line(out, line, err);
		else
			out->verb = line;
	}
	if (!ret && !out->verb)
		ret = err_set(err, -EINVAL, "missing verb; `help` lists them");
	return ret;
}
