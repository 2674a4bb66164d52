// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Regions of the command: its own, and those of OpenMP; and where its processes write those and their allocations. */
#include "record_private.h"

#include <limits.h>
#include <unistd.h>

_Static_assert(REGIONS_DIR_MAX == RANK_REGIONS_MAX, "ranks send each other their directories");

/* Find a library next to the program, as in the build directory, or where it is installed. */
static int find_library(const char *name, char path[PATH_MAX], struct err *err)
{
	static const char *const places[] = { "", "../lib/ibscope/" };
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = 0;
	if (strrchr(self, '/'))
		strrchr(self, '/')[1] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, PATH_MAX, "%s%s%s", self, places[i], name);
		if (!access(path, R_OK))
			return 0;
	}
	return err_set(err, -ENOENT, "cannot find %s in %s or %s../lib/ibscope", name, self, self);
}

int record_add_library(const char *list, const char *name, struct err *err)
{
	const char *others = getenv(list);
	char path[PATH_MAX], *all;
	int ret = find_library(name, path, err);

	if (ret)
		return ret;
	all = xcalloc(1, strlen(path) + strlen(others ?: "") + 2);
	sprintf(all, "%s%s%s", path, others && *others ? ":" : "", others ?: "");
	setenv(list, all, 1);
	free(all);
	return 0;
}

int record_regions_prepare(struct record *r, struct err *err)
{
	bool collects = r->sampling.argv && r->out.format == OUTPUT_RECORDING;
	int ret = 0;

	if ((r->omp || r->markers) && !collects)
		return err_set(err, -EINVAL,
			       "--%s: put the program after '--' and record to a file",
			       r->omp ? "omp" : "markers");
	if (!collects)
		return 0;
	if (r->omp)
		ret = record_add_library("OMP_TOOL_LIBRARIES", "libibscope-omp.so", err);
	if (!ret && r->markers)
		ret = record_add_library("LD_PRELOAD", "libibscope-markers.so", err);
	if (ret)
		return ret;
	ret = regions_dir_new(r->regions_dir);
	if (ret && r->alloc_bytes)
		return err_set(err, ret,
			       "--allocs: cannot make a directory in /dev/shm or /tmp: %s",
			       strerror(-ret));
	if (ret)
		log_warn("regions are not recorded: cannot make a directory in /dev/shm or /tmp: "
			 "%s",
			 strerror(-ret));
	return 0;
}

static void collect(struct record *r, const char *dir)
{
	regions_add(r->capture.regions, dir);
	if (r->alloc_bytes)
		allocs_add(r->capture.allocs, dir);
}

static void collect_all(struct record *r)
{
	const struct rank_member *m = NULL;
	size_t n = 0;

	if (r->meeting)
		m = rank_meeting_members(r->meeting, &n);
	if (!*r->regions_dir && !n)
		return;
	r->capture.regions = regions_new();
	if (r->alloc_bytes)
		r->capture.allocs = allocs_new();
	if (*r->regions_dir)
		collect(r, r->regions_dir);
	for (size_t i = 0; i < n; i++)
		if (*m[i].regions)
			collect(r, m[i].regions);
}

int record_regions_begin(struct record *r, struct err *err)
{
	collect_all(r);
	r->info.alloc_bytes = r->alloc_bytes;
	r->info.alloc_probes = r->alloc_probes;
	return record_allocs_begin(r, err);
}
