// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup.h"
#include "base/array.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX (CGROUP_PATTERN_MAX / 2)

struct cgroup_pattern {
	size_t n;
	const char *name[NAMES_MAX]; /* NULL: "**" */
	char text[];
};

int cgroup_pattern_new(const char *text, struct cgroup_pattern **out)
{
	const size_t len = strlen(text);
	struct cgroup_pattern *p;
	char *rest, *name;

	if (len > CGROUP_PATTERN_MAX)
		return -E2BIG;
	p = xcalloc(1, sizeof(*p) + len + 1);
	rest = text[1] ? strcpy(p->text, text + 1) : NULL;
	while ((name = strsep(&rest, "/")) && p->n < NAMES_MAX)
		p->name[p->n++] = strcmp(name, "**") ? name : NULL;
	*out = p;
	return 0;
}

void cgroup_pattern_free(struct cgroup_pattern *p)
{
	free(p);
}

/* "**" also matches no name. */
static void skip_any(const struct cgroup_pattern *p, bool *now)
{
	for (size_t i = 0; i < p->n; i++)
		now[i + 1] |= now[i] && !p->name[i];
}

/*
 * now[i]: the path so far matches the first i names of the pattern. All alternatives advance
 * together, so no path, however deep, needs backtracking.
 */
static void take_name(const struct cgroup_pattern *p, const char *name, bool *now)
{
	for (size_t i = p->n + 1; i--;) {
		bool stays = i < p->n && now[i] && !p->name[i];

		now[i] = stays || (i && now[i - 1] && p->name[i - 1] &&
				   !fnmatch(p->name[i - 1], name, FNM_NOESCAPE));
	}
	skip_any(p, now);
}

ssize_t cgroup_pattern_deepest(const struct cgroup_pattern *p, const char *path)
{
	bool now[NAMES_MAX + 1] = { true };
	char name[PATH_MAX];
	ssize_t deepest;

	skip_any(p, now);
	deepest = now[p->n] ? 0 : -1;
	for (const char *s = path, *end; s[0] && s[1]; s = end) {
		size_t len = strcspn(s + 1, "/");

		end = s + 1 + len;
		if (len >= sizeof(name))
			break;
		*(char *)mempcpy(name, s + 1, len) = 0;
		take_name(p, name, now);
		if (now[p->n])
			deepest = end - path;
		else if (!memchr(now, 1, p->n + 1))
			break;
	}
	return deepest;
}
