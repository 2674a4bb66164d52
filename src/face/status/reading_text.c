// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reading_text.h"
#include "base/std.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>

void collector_put_text(struct json_writer *w, const char *key, const char *text)
{
	char *escaped;
	size_t n;
	FILE *f = xmemopen(&escaped, &n);

	utf8_put(f, text);
	xmemclose(f);
	json_put_text(w, key, escaped);
	free(escaped);
}
