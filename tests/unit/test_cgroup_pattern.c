// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Patterns of cgroup paths: by hand, against fnmatch(3) name by name, and on paths made to be slow. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"

#include <errno.h>
#include <ibscope/sim.h>

static __u64 state = 1;

static unsigned int below(unsigned int n)
{
	return ibs_sim_mix(state++) % n;
}

static ssize_t deepest(const char *pattern, const char *path)
{
	struct cgroup_pattern *p;
	ssize_t n;

	assert_int_equal(cgroup_pattern_new(pattern, &p), 0);
	n = cgroup_pattern_deepest(p, path);
	cgroup_pattern_free(p);
	return n;
}

static void test_table(void **state_)
{
	static const struct {
		const char *pattern, *path;
		int deepest;
	} rows[] = {
		{ "/", "/", 0 },
		{ "/", "/a", 0 },
		{ "/*", "/", -1 },
		{ "/*", "/a/b", 2 },
		{ "/**", "/", 0 },
		{ "/**", "/a/b", 4 },
		{ "/a/**", "/a", 2 },
		{ "/a/**", "/ab", -1 },
		{ "/a/**/c", "/a/c/b/c/d", 8 },
		{ "/**/**/c", "/c", 2 },
		{ "/a**", "/abc/d", 4 },
		{ "/**a", "/ba/a", 3 },
		{ "/a*c", "/abc/d", 4 },
		{ "/a*c", "/ab/c", -1 },
		{ "/?", "/ab", -1 },
		{ "/[!a-c]x", "/dx", 3 },
		{ "/[^a-c]x", "/bx", -1 },
		{ "/[]a]", "/]", 2 },
		{ "/[[:digit:]a]", "/7", 2 },
		{ "/[[:digit:]a]", "/b", -1 },
		{ "/[a", "/[a", 3 },
		{ "/[a/b]", "/[a/b]", 6 },
		{ "/\\*", "/\\x2d", 5 },
		{ "/a", "/a/b/c", 2 },
	};

	(void)state_;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (deepest(rows[i].pattern, rows[i].path) != rows[i].deepest)
			fail_msg("%s of %s: %zd", rows[i].pattern, rows[i].path,
				 deepest(rows[i].pattern, rows[i].path));
}

/* Both without the slash in front; names one by one, all ways tried. */
static bool matches_slowly(const char *pattern, const char *path)
{
	const size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");
	const char *pattern_rest = pattern + n + (pattern[n] == '/');
	const char *path_rest = path + m + (path[m] == '/');
	char want[64], have[64];

	if (!*pattern)
		return !*path;
	snprintf(want, sizeof(want), "%.*s", (int)n, pattern);
	snprintf(have, sizeof(have), "%.*s", (int)m, path);
	if (!strcmp(want, "**"))
		return matches_slowly(pattern_rest, path) ||
		       (*path && matches_slowly(pattern, path_rest));
	return *path && !fnmatch(want, have, FNM_NOESCAPE) &&
	       matches_slowly(pattern_rest, path_rest);
}

static void draw(char *out, const char *const *parts, size_t n_parts, unsigned int names)
{
	*out = 0;
	for (unsigned int i = 0; i < names; i++) {
		strcat(out, "/");
		for (unsigned int k = 1 + below(3); k; k--)
			strcat(out, parts[below(n_parts)]);
	}
	if (!names)
		strcpy(out, "/");
}

static void test_random(void **state_)
{
	static const char *const parts[] = { "a",    "b",    "*",     "?",  "**",
					     "[ab]", "[!a]", "[a-b]", "\\", "a*" };
	static const char *const names[] = { "a", "b", "ab", "\\", "ba" };
	unsigned int matched = 0;
	char pattern[128], path[128];

	(void)state_;
	for (int i = 0; i < 200000; i++) {
		bool want;

		draw(pattern, parts, 10, below(5));
		draw(path, names, 5, below(5));
		want = matches_slowly(pattern + 1, path + 1);
		if ((deepest(pattern, path) == (path[1] ? (ssize_t)strlen(path) : 0)) != want)
			fail_msg("%s of %s", pattern, path);
		matched += want;
	}
	assert_in_range(matched, 10000, 190000);
}

/* One mebibyte of names, and patterns that invite to try again at each. */
static void test_deep(void **state_)
{
	static const char *const patterns[] = {
		"/**/a*a*a*a*a*a*b/**/c",
		"/**/a/**/a/**/a/**/b",
		"/**/?/**/*/**/[!a]/x",
	};
	const size_t len = 1 << 20;
	char *path = malloc(len + 1);
	clock_t start = clock();

	(void)state_;
	for (size_t i = 0; i < len; i++)
		path[i] = i % 2 ? 'a' : '/';
	path[len] = 0;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		assert_int_equal(deepest(patterns[i], path), -1);
	memset(path + 1, 'a', len - 1);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		assert_int_equal(deepest(patterns[i], path), -1);
	free(path);
	/* tries in turn would take hours; this takes a tenth of a second */
	assert_in_range((clock() - start) / CLOCKS_PER_SEC, 0, 20);
}

static void test_long(void **state_)
{
	char text[CGROUP_PATTERN_MAX + 2] = "/";
	struct cgroup_pattern *p;

	(void)state_;
	memset(text + 1, '?', CGROUP_PATTERN_MAX - 1);
	assert_int_equal(deepest(text, text), CGROUP_PATTERN_MAX);
	text[CGROUP_PATTERN_MAX - 1] = 0;
	assert_int_equal(deepest(text, text), CGROUP_PATTERN_MAX - 1);
	for (size_t n = 2; n + 2 < CGROUP_PATTERN_MAX; n += 3)
		memcpy(text + n - 2, "/**", 3);
	assert_int_equal(deepest(text, "/a/b/c/d"), -1); /* ends in "?" */
	memset(text, '/', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(cgroup_pattern_new(text, &p), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
