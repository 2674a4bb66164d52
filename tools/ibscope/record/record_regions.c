// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Regions of the command: those it names, and those of OpenMP. */
#include "record_private.h"

#include <limits.h>
#include <unistd.h>

#define TOOL "libibscope-omp.so"

_Static_assert(REGIONS_DIR_MAX == RANK_REGIONS_MAX, "ranks tell each other their directories");

/* Beside the program, as it is built, or where it is installed. */
static int find_tool(char path[PATH_MAX], struct err *err)
{
	static const char *const places[] = { "", "../lib/ibscope/" };
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = 0;
	if (strrchr(self, '/'))
		strrchr(self, '/')[1] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, PATH_MAX, "%s%s" TOOL, self, places[i]);
		if (!access(path, R_OK))
			return 0;
	}
	return err_set(err, -ENOENT, "--omp: cannot find " TOOL " in %s or %s../lib/ibscope", self,
		       self);
}

/* The runtime tries the tools of the list in turn. */
static int add_tool(struct err *err)
{
	const char *others = getenv("OMP_TOOL_LIBRARIES");
	char path[PATH_MAX], *list;
	int ret = find_tool(path, err);

	if (ret)
		return ret;
	list = xcalloc(1, strlen(path) + strlen(others ?: "") + 2);
	sprintf(list, "%s%s%s", path, others && *others ? ":" : "", others ?: "");
	setenv("OMP_TOOL_LIBRARIES", list, 1);
	free(list);
	return 0;
}

int record_regions_prepare(struct record *r, struct err *err)
{
	int ret = 0;

	if (r->omp && (!r->sampling.argv || r->out.format != OUTPUT_RECORDING))
		return err_set(err, -EINVAL,
			       "--omp: put the OpenMP program after '--', and record to a file");
	if (!r->sampling.argv || r->out.format != OUTPUT_RECORDING)
		return 0;
	if (r->omp)
		ret = add_tool(err);
	if (ret)
		return ret;
	ret = regions_dir_new(r->regions_dir);
	if (ret)
		log_warn("regions are not recorded: cannot make a directory in /dev/shm or /tmp: "
			 "%s",
			 strerror(-ret));
	return 0;
}

void record_regions_begin(struct record *r)
{
	const struct rank_member *m = NULL;
	size_t n = 0;

	if (r->meeting)
		m = rank_meeting_members(r->meeting, &n);
	if (!*r->regions_dir && !n)
		return;
	r->capture.regions = regions_new();
	if (*r->regions_dir)
		regions_add(r->capture.regions, r->regions_dir);
	for (size_t i = 0; i < n; i++)
		if (*m[i].regions)
			regions_add(r->capture.regions, m[i].regions);
}
