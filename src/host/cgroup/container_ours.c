// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "container.h"

#include "base/std.h"

#include <limits.h>

bool container_is_ours(const char *root, const char *path)
{
	char file[PATH_MAX], *line = NULL;
	struct container theirs, ours;
	bool found = false;
	size_t room = 0;
	FILE *f = NULL;

	if (container_of_path(path, NULL, &theirs) && *theirs.id &&
	    snprintf(file, sizeof(file), "%s/proc/self/cgroup", root) < (int)sizeof(file))
		f = fopen(file, "re");
	while (f && !found && xgetline(&line, &room, f) > 0) {
		const char *own = strchr(line, ':');

		line[strcspn(line, "\n")] = 0;
		own = own ? strchr(own + 1, ':') : NULL;
		found = own && container_of_path(own + 1, NULL, &ours) && *ours.id &&
			ours.path_len == theirs.path_len && !strncmp(own + 1, path, ours.path_len);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}
