/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a member of a JSON object has to be. After cmocka.h. */
#ifndef IBSCOPE_TESTS_JSON_SAME_H
#define IBSCOPE_TESTS_JSON_SAME_H

#include <jansson.h>
#include <stdio.h>

/* @want: JSON, with ' for " */
static inline void same(const json_t *o, const char *key, const char *want)
{
	const json_t *is = json_object_get(o, key);
	json_t *wanted;
	char buf[2048];

	snprintf(buf, sizeof(buf), "%s", want);
	for (char *c = buf; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	wanted = json_loads(buf, JSON_DECODE_ANY, NULL);
	assert_non_null(wanted);
	if (!json_equal(is, wanted)) {
		char *dump = is ? json_dumps(is, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

		fail_msg("%s: %s, not %s", key, dump ?: "missing", buf);
	}
	json_decref(wanted);
}

#endif
