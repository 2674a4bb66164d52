// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who else has performance events. The kernel does not say of which PMU they are. */
#include "perf.h"

#include "base/std.h"
#include "base/utf8.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT "anon_inode:[perf_event]"
#define SHOWN 4 /* processes; more are counted */

/* True if a file of the process is a performance event. */
static bool has_event(const char *root, const char *pid)
{
	char path[PATH_MAX], target[sizeof(EVENT)];
	struct dirent *ent;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
	dir = opendir(path);
	while (dir && !found && (ent = readdir(dir))) {
		const ssize_t n = readlinkat(dirfd(dir), ent->d_name, target, sizeof(target));

		found = n == sizeof(EVENT) - 1 && !memcmp(target, EVENT, n);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void read_comm(const char *root, const char *pid, char *out, size_t size)
{
	char path[PATH_MAX], comm[64] = "?";
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%s/comm", root, pid);
	f = fopen(path, "re");
	if (f && !fgets(comm, sizeof(comm), f))
		strcpy(comm, "?");
	if (f)
		fclose(f);
	comm[strcspn(comm, "\n")] = 0;
	utf8_escape(out, size, comm);
}

static void append(char *buf, size_t size, const char *text)
{
	const size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s%s", n ? ", " : "", text);
}

unsigned int perf_users(const char *root, char *buf, size_t size)
{
	unsigned int n = 0;
	char path[PATH_MAX], comm[256], text[300];
	struct dirent *ent;
	DIR *dir;

	*buf = 0;
	snprintf(path, sizeof(path), "%s/sys/module/damon_ibs", root);
	if (!access(path, F_OK)) {
		append(buf, size, "the kernel's DAMON (module damon_ibs)");
		n++;
	}
	snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	while (dir && (ent = readdir(dir))) {
		if (!isdigit(*ent->d_name) || (!*root && atoi(ent->d_name) == getpid()) ||
		    !has_event(root, ent->d_name))
			continue;
		if (n++ >= SHOWN)
			continue;
		read_comm(root, ent->d_name, comm, sizeof(comm));
		snprintf(text, sizeof(text), "%s (%.10s)", comm, ent->d_name);
		append(buf, size, text);
	}
	if (dir)
		closedir(dir);
	if (n > SHOWN) {
		snprintf(text, sizeof(text), "%u more", n - SHOWN);
		append(buf, size, text);
	}
	return n;
}
