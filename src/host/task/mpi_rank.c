// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "mpi_rank.h"

#include "base/num.h"

#include <limits.h>

/*
 * Variables of each launcher. Open MPI comes first: inside a Slurm allocation its mpirun passes on
 * Slurm's variables, which belong to the batch script. Under srun with PMI-2, MPICH's variables of
 * the node are missing and Slurm's are used.
 */
static const struct launcher {
	const char *name, *rank, *ranks, *local, *locals;
	const char *job, *step;
} launchers[] = {
	{ "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	  "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", NULL },
	{ "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL },
	{ "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
	  "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

static const char *value_of(char *const *env, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	for (; n && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static int number(char *const *env, const char *name, __u32 *out, struct err *err)
{
	const struct num_arg arg = { .name = name, .max = INT_MAX };
	uint64_t v;
	int ret = num_parse(&arg, value_of(env, name), &v, err);

	*out = ret ? 0 : v;
	return ret ? -EINVAL : 0;
}

/* Parse Slurm's number of tasks per node, such as "4(x2),3": two nodes with 4 tasks, one with 3. */
static int tasks_of_node(const char *list, __u32 node, __u32 *out)
{
	unsigned int tasks, times;
	int used;

	for (; sscanf(list, "%u%n", &tasks, &used) == 1; list++) {
		list += used;
		times = 1;
		if (sscanf(list, "(x%u)%n", &times, &used) == 1)
			list += used;
		if (node < times) {
			*out = tasks;
			return 0;
		}
		node -= times;
		if (*list != ',')
			break;
	}
	return -EINVAL;
}

static int locals_of(char *const *env, const struct launcher *l, __u32 *out, struct err *err)
{
	__u32 node = 0;
	int ret;

	if (strcmp(l->name, "Slurm"))
		return number(env, l->locals, out, err);
	ret = value_of(env, "SLURM_NODEID") ? number(env, "SLURM_NODEID", &node, err) : 0;
	if (!ret && tasks_of_node(value_of(env, l->locals), node, out))
		ret = err_set(err, -EINVAL, "%s=%s: no number of tasks for node %u", l->locals,
			      value_of(env, l->locals), node);
	return ret;
}

int mpi_rank_find(char *const *env, struct mpi_rank *out, struct err *err)
{
	const struct launcher *l = launchers, *end = launchers + ARRAY_SIZE(launchers);
	const char *job, *step;
	__u32 fd;
	int ret;

	while (l < end && !(value_of(env, l->rank) && value_of(env, l->ranks) &&
			    value_of(env, l->local) && value_of(env, l->locals)))
		l++;
	if (l == end)
		return -ENOENT;
	*out = (struct mpi_rank){ .launcher = l->name, .launcher_fd = -1 };
	if (value_of(env, "PMI_FD") && !number(env, "PMI_FD", &fd, NULL))
		out->launcher_fd = fd;
	ret = number(env, l->rank, &out->rank, err);
	ret = ret ?: number(env, l->ranks, &out->ranks, err);
	ret = ret ?: number(env, l->local, &out->local, err);
	ret = ret ?: locals_of(env, l, &out->locals, err);
	if (ret)
		return ret;
	if (out->rank >= out->ranks || out->local >= out->locals || out->locals > out->ranks)
		return err_set(err, -EINVAL,
			       "rank %u of %u, and %u of %u on this node, as %s says in the "
			       "environment, is invalid: a rank must be below the number of ranks",
			       out->rank, out->ranks, out->local, out->locals, l->name);
	job = value_of(env, l->job);
	step = value_of(env, l->step);
	snprintf(out->job, sizeof(out->job), "%s%s%s", job ?: "", job && step ? "." : "",
		 job && step ? step : "");
	return 0;
}
