// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define DIGITS	  "0123456789"
#define ID_SHORT  12
#define ID_PREFIX 4 /* minimum number of digits */

const char *container_label(const struct container *c, const struct container_name *name,
			    char buf[CONTAINER_LABEL])
{
	if (!*c->id || *name->container || c->uid || c->kind != CONTAINER_BY_ID)
		return *c->id ? name->container : "";
	snprintf(buf, CONTAINER_LABEL, "%.*s", ID_SHORT, c->id);
	return buf;
}

const char *container_pod_label(const struct container *c, const struct container_name *name,
				char buf[CONTAINER_LABEL])
{
	if (*name->pod && !*name->ns) /* podman's */
		return name->pod;
	if (!*name->pod) {
		if (strlen(c->pod_uid) < CONTAINER_ID_LEN)
			return c->pod_uid;
		snprintf(buf, CONTAINER_LABEL, "%.*s", ID_SHORT, c->pod_uid);
		return buf;
	}
	snprintf(buf, CONTAINER_LABEL, "%.253s/%.253s", name->ns, name->pod);
	return buf;
}

bool container_is_command(const char *name)
{
	const char *s = name + strlen(CONTAINER_COMMAND);

	if (strncmp(name, CONTAINER_COMMAND, strlen(CONTAINER_COMMAND)))
		return false;
	s += strspn(s, DIGITS);
	return isdigit(s[-1]) && *s == '-' && s[1] && !s[1 + strspn(s + 1, DIGITS)];
}

void container_cut_command(char *path)
{
	char *last = strrchr(path, '/');

	if (last && container_is_command(last + 1))
		last[last == path] = 0;
}

bool container_is_id_prefix(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return n >= ID_PREFIX && n <= CONTAINER_ID_LEN && !text[n];
}

static bool fits(const char *pattern, const char *name)
{
	return *name && !fnmatch(pattern, name, FNM_NOESCAPE | FNM_PATHNAME);
}

bool container_matches(const char *pattern, const struct container *c,
		       const struct container_name *name)
{
	const char *container = *c->id ? name->container : "", *own = container;
	char pod[CONTAINER_LABEL], full[2 * CONTAINER_LABEL];

	if (fits(pattern, container) || (!*name->ns && fits(pattern, name->pod)) ||
	    (*c->pod_uid && !strcmp(pattern, c->pod_uid)))
		return true;
	if (!*name->ns || !*name->pod)
		return false;
	/* a pod inside a container: do not repeat the container's label */
	if (strchr(name->ns, '/') && strchr(container, '/'))
		own = strchr(container, '/') + 1;
	snprintf(pod, sizeof(pod), "%s/%s", name->ns, name->pod);
	snprintf(full, sizeof(full), "%s/%s", pod, own);
	return fits(pattern, pod) || (*own && fits(pattern, full));
}
