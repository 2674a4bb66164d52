// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libibscope-omp.so: an OMPT tool that reports the parallel regions of threads and their numbers in the team to
 * `ibscope record`. The OpenMP runtime loads it: see OMP_TOOL_LIBRARIES. Declarations follow OpenMP 5.0, so no
 * runtime's headers are needed.
 */
#include <ibscope/region.h>

#include <stddef.h>

union ompt_data {
	uint64_t value;
	void *ptr;
};

typedef void (*ompt_function)(void);
typedef ompt_function ompt_lookup(const char *name);
typedef int ompt_set_callback(int event, ompt_function callback);

struct ompt_start_tool_result {
	int (*initialize)(ompt_lookup *lookup, int device, union ompt_data *tool);
	void (*finalize)(union ompt_data *tool);
	union ompt_data tool_data;
};

enum { OMPT_PARALLEL_BEGIN = 3, OMPT_PARALLEL_END = 4, OMPT_IMPLICIT_TASK = 7 };
enum { OMPT_SCOPE_BEGIN = 1 };
enum { OMPT_TASK_IMPLICIT = 2 };

__attribute__((visibility("default"))) struct ompt_start_tool_result *
ompt_start_tool(unsigned int omp_version, const char *runtime);

/* A parallel region: an address in the function that contains it, and the thread that begins it. */
struct team {
	uint64_t addr;
	uint32_t tid;
};

/* Subtract 1 from the return address to get an address inside the call. */
static void parallel_begin(union ompt_data *task, const void *frame, union ompt_data *parallel,
			   unsigned int threads, int flags, const void *return_address)
{
	struct team *team = malloc(sizeof(*team));

	(void)task;
	(void)frame;
	(void)threads;
	(void)flags;
	if (team) {
		team->addr = (uintptr_t)return_address - 1;
		team->tid = syscall(SYS_gettid);
	}
	parallel->ptr = team;
}

static void parallel_end(union ompt_data *parallel, union ompt_data *task, int flags,
			 const void *return_address)
{
	(void)task;
	(void)flags;
	(void)return_address;
	free(parallel->ptr);
	parallel->ptr = NULL;
}

/* The initial task is in no region. At the end of a task, the region may no longer exist. */
static void implicit_task(int endpoint, union ompt_data *parallel, union ompt_data *task,
			  unsigned int threads, unsigned int number, int flags)
{
	struct ibscope_region_file *f = ibscope_region_file();
	const struct team *team;

	(void)task;
	(void)threads;
	if (!f)
		return;
	if (endpoint != OMPT_SCOPE_BEGIN) {
		ibscope_region_put_(f, IBSCOPE_REGION_OMP_END, 0, 0, 0);
		return;
	}
	team = flags & OMPT_TASK_IMPLICIT && parallel ? parallel->ptr : NULL;
	ibscope_region_put_(f, IBSCOPE_REGION_OMP_BEGIN, team ? team->addr : 0,
			    team ? team->tid : 0, team ? number : 0);
}

static int initialize(ompt_lookup *lookup, int device, union ompt_data *tool)
{
	ompt_set_callback *set = (ompt_set_callback *)lookup("ompt_set_callback");

	(void)device;
	(void)tool;
	if (!set)
		return 0;
	set(OMPT_PARALLEL_BEGIN, (ompt_function)parallel_begin);
	set(OMPT_PARALLEL_END, (ompt_function)parallel_end);
	set(OMPT_IMPLICIT_TASK, (ompt_function)implicit_task);
	return 1;
}

static void finalize(union ompt_data *tool)
{
	(void)tool;
}

/* Without a collector, return NULL: the runtime then runs without a tool. */
struct ompt_start_tool_result *ompt_start_tool(unsigned int omp_version, const char *runtime)
{
	static struct ompt_start_tool_result result = { initialize, finalize, { 0 } };

	(void)omp_version;
	(void)runtime;
	return ibscope_region_file() ? &result : NULL;
}
