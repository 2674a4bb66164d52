// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "namespace_tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__u64 namespace_of(__u32 pid)
{
	char path[64], text[64];
	const char *number;
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/ns/pid");
	n = readlink(path, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = 0;
	number = strchr(text, '[');
	return number ? strtoull(number + 1, NULL, 10) : 0;
}

/* The id that a task of /proc has in its own namespace; 0: unknown. */
static __u32 innermost_id(const char *dir, const char *name)
{
	char path[256], line[256];
	__u32 id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/status", dir, name);
	f = fopen(path, "re");
	while (f && !id && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t'))
			id = strtoul(strrchr(line, '\t') + 1, NULL, 10);
	if (f)
		fclose(f);
	return id;
}

/* @ns: 0: any */
static __u32 find_task(const char *dir, __u64 ns, __u32 id)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	__u32 found = 0;

	while (d && !found && (e = readdir(d))) {
		const __u32 task = strtoul(e->d_name, NULL, 10);

		if (task && innermost_id(dir, e->d_name) == id && (!ns || namespace_of(task) == ns))
			found = task;
	}
	if (d)
		closedir(d);
	return found;
}

__u32 namespace_process(__u64 ns, __u32 pid)
{
	return find_task("/proc", ns, pid);
}

__u32 namespace_thread(__u32 tgid, __u32 tid)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/proc/%u/task", tgid);
	return find_task(dir, 0, tid);
}
